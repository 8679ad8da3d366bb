"""Sums of many terms: as near to the sum in float64 as the dtype of the result allows."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

N = 100_000
FLOATS = ("float16", "bfloat16", "float32")


def row(values, dtype, format="csr"):
    """(1, N) matrix of one full row."""
    A = jsp.COO(
        jnp.asarray(values, dtype),
        jnp.zeros(N, jnp.int32),
        jnp.arange(N, dtype=jnp.int32),
        jnp.asarray(False),
        (1, N),
    )
    return A.asformat(format)


def terms(dtype):
    """N values whose sum fits the dtype, rounded to it, and that sum."""
    values = np.random.default_rng(0).random(N) + 1
    values = values * (0.25 if dtype == "float16" else 1000)
    rounded = np.asarray(jnp.asarray(values, dtype)).astype(np.float64)
    return rounded, rounded.sum()


def near(found, want, dtype):
    """Within one rounding of the dtype, and three of float32 in between."""
    error = abs(float(found) / want - 1)
    assert error <= float(jnp.finfo(dtype).eps) / 2 + 3e-7, error


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("method", ["auto", "pieces", "segments"])
def test_mxv(dtype, method):
    values, want = terms(dtype)
    near(jsp.mxv(row(values, dtype), jnp.ones(N, dtype), method=method)[0], want, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_reductions(dtype):
    values, want = terms(dtype)
    A = row(values, dtype)
    near(jsp.reduce(A, axis=1).data[0], want, dtype)
    near(jsp.reduce(A), want, dtype)
    near(jsp.reduce(A.T, axis=0).data[0], want, dtype)
    near(jsp.learning.aggregate(A)[0], want, dtype)
    near(jsp.learning.aggregate(A, "mean")[0], want / N, dtype)
    near(jsp.learning.aggregate(A, "var")[0], values.var(), dtype)
    share = float(jsp.learning.normalize(A, "row").data[0])
    assert share == pytest.approx(float(jnp.asarray(values[0] / want, dtype)), rel=1e-6)


@pytest.mark.parametrize("format", ["ell", "sell", "tiled"])
def test_sums_of_padded_formats_sort_nothing(format):
    """It took half a second for a million entries; what padding holds reaches no sum."""
    D = np.where(np.random.default_rng(2).random((20, 30)) < 0.2, 2.5, 0).astype(np.float32)
    for A, want in ((jsp.from_dense(D), D), (jsp.from_dense(D).astype(int), D.astype(int))):
        A = A.asformat(format)
        A = A.with_data(jnp.where(A.rowcol()[0] < 20, A.data, 99))
        for B, dense in ((A, want), (A.T, want.T)):
            for axis in (None, 0, 1):
                fn = functools.partial(jsp.reduce, axis=axis)
                assert "stablehlo.sort" not in jax.jit(fn).lower(B).as_text()
                found = fn(B) if axis is None else fn(B).todense()
                np.testing.assert_array_equal(found, dense.sum(axis))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("format", ["ell", "tiled"])
def test_reductions_of_padded_formats(format, dtype):
    rounded, want = terms(dtype)
    A = row(rounded, dtype, format)
    near(jsp.reduce(A), want, dtype)
    near(jsp.reduce(A, axis=1).todense()[0], want, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_dense_products(dtype):
    values, want = terms(dtype)
    A = row(values, dtype)
    near(jsp.mxm(A, jnp.ones((N, 2), dtype))[0, 0], want, dtype)
    near(jsp.mxm(A, jnp.ones((N, 2), dtype), jsp.semirings.plus_first)[0, 0], want, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sparse_results(dtype):
    """Summed in float32, one product after the other."""
    values, want = terms(dtype)
    A, ones = row(values, dtype), row(np.ones(N), dtype)
    near(jsp.mxm(A, ones.T, nse=1).data[0], want, dtype)
    x = jsp.vector_from_entries(np.arange(N), np.ones(N), N).astype(dtype)
    for M in (A, A.asformat("csc")):
        y = jsp.mxv(M, x)
        assert y.dtype == dtype
        near(y.data[0], want, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_shortest_paths_go_on(dtype):
    n = 400
    path = jsp.from_edges(np.arange(n), np.arange(1, n + 1), np.ones(n), shape=(n + 1, n + 1))
    found = jsp.sssp(path.astype(dtype), 0)
    assert found.distances.dtype == dtype and found.converged
    want = np.asarray(jnp.arange(n + 1, dtype=jnp.float32).astype(dtype))
    np.testing.assert_array_equal(np.asarray(found.distances), want)


def test_infinities_stay():
    values = np.ones(N)
    values[7] = np.inf
    assert float(jsp.mxv(row(values, "float32"), jnp.ones(N))[0]) == np.inf
    assert float(jsp.learning.aggregate(row(values, "float32"))[0]) == np.inf
    values[9] = -np.inf
    assert np.isnan(float(jsp.mxv(row(values, "float32"), jnp.ones(N))[0]))


def test_integers_that_are_accumulated_stay_integers():
    with jax.enable_x64(True):
        large = np.uint64(2**53 + 1)
        A = jsp.from_edges([0], [0], np.array([2], np.int64), shape=(1, 1))
        x = jnp.ones(1, jnp.int64)
        out = jnp.full(1, large, jnp.uint64)
        y = jsp.mxv(A, x, accum=jsp.operators.plus, out=out)
        assert y.dtype == jnp.uint64 and int(y[0]) == 2**53 + 3
        C = jsp.from_edges([0], [0], np.array([large]), shape=(1, 1))
        D = jsp.mxm(A, A, accum=jsp.operators.plus, out=C)
        assert int(D.data[0]) == 2**53 + 5
        assert int(jsp.reduce(A, accum=jsp.operators.plus, out=out[0])) == 2**53 + 3


def test_integers_that_floats_are_added_to_stay_exact():
    half, large = jsp.vector_from_entries([0, 1], np.float32([0.5, 0.5]), 2), 2**24 + 1
    how = {"accum": jsp.operators.plus, "out": jnp.int32(large)}
    assert int(jsp.reduce(half, **how)) == large + 1
    assert int(jax.jit(lambda v: jsp.reduce(v, **how))(half)) == large + 1


def test_extents_whose_product_is_beyond_int32():
    A = jsp.from_edges([0, 5], [1, 7], [2.0, -4.0], shape=(50_000, 50_000))
    assert (float(A.max()), float(A.min()), float(A.sum())) == (2.0, -4.0, -2.0)
    assert float(A.mean()) == pytest.approx(-2 / 2.5e9)
    positive = jsp.from_edges([0], [1], [2.0], shape=(50_000, 50_000))
    assert float(positive.min()) == 0.0
