"""Long sums of sparse products in float32: as near to float64 as one rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

TERMS = 30_000
ROW = jnp.asarray(np.random.default_rng(0).uniform(990, 1010, TERMS).astype(np.float32))
WANT = np.asarray(ROW, np.float64).sum()
PLACES = np.arange(TERMS, dtype=np.int32)


def row():
    return jsp.from_edges(np.ones_like(PLACES), PLACES, ROW, shape=(3, TERMS))


def near(total):
    np.testing.assert_allclose(float(total), WANT, rtol=1.2e-7)


@pytest.mark.parametrize("method", ["scatter", "sort"])
def test_sparse_vectors(method):
    arrays = jnp.ones(TERMS), jnp.asarray(PLACES), jnp.int32(TERMS), jnp.asarray(False)
    x = jsp.SparseVector(*arrays, (TERMS,))
    near(jsp.mxv(row().asformat("csc"), x, method=method).data[0])


@pytest.mark.parametrize("method", ["dense", "sort", "dot"])
def test_sparse_matrices(method):
    B = jsp.from_edges(PLACES, np.ones_like(PLACES), np.ones(TERMS, np.float32), shape=(TERMS, 3))
    mask = jsp.structure(jsp.from_edges([1, 2], [1, 0], shape=(3, 3))) if method == "dot" else None
    B = B.asformat("csc") if method == "dot" else B
    near(jsp.mxm(row(), B, mask=mask, method=method, backend="xla").data[0])


def test_dense_matrices_of_columns():
    X = jnp.ones((TERMS, 2))
    near(jsp.mxm(row().asformat("csc"), X, backend="xla")[1, 1])


def test_attention_over_a_row_of_a_million():
    rng, n = np.random.default_rng(0), 10**6
    A = jsp.from_edges(np.zeros(n, int), np.arange(n), shape=(1, n))
    K, V = (rng.uniform(size=(n, 1)).astype(np.float32) for _ in range(2))
    y, log = jsp.learning.attention(A, jnp.ones((1, 1)), K, V, return_logs=True)
    weights = np.exp(K[:, 0].astype(np.float64))
    np.testing.assert_allclose(y[0], weights @ V / weights.sum(), rtol=5e-7)
    np.testing.assert_allclose(log[0], np.log(weights.sum()), rtol=5e-7)


OWN = {  # a product or a sum of the user's, which no C++ kernel serves
    "product": jsp.semiring(jnp.add, lambda a, b: a * b),
    "sum": jsp.semiring(jsp.monoid(lambda a, b: a + b, 0), lambda a, b: a * b),
}


def of_ones(dtype, fmt):
    """(A row of numbers, their sum in float64, a sparse vector and a column of ones)."""
    scale = 0.01 if dtype == jnp.float16 else 1000  # a sum below the largest float16
    data = (np.random.default_rng(0).uniform(0.99, 1.01, 10**6) * scale).astype(dtype)
    places, n = np.arange(len(data)), len(data)
    A = jsp.from_edges(0 * places, places, jnp.asarray(data), shape=(1, n)).asformat(fmt)
    arrays = jnp.ones(n, dtype), jnp.asarray(places), jnp.int32(n), jnp.asarray(False)
    X = jsp.from_edges(places, 0 * places, jnp.ones(n, dtype), shape=(n, 1))
    return A, data.astype(np.float64).sum(), jsp.SparseVector(*arrays, (n,), True, True), X


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float16, jnp.bfloat16])
@pytest.mark.parametrize("ring", OWN)
def test_own_semirings_over_a_row_of_a_million(ring, dtype):
    """In the loops that XLA compiles for a CPU, where each term comes after the other."""
    R, mask = OWN[ring], jnp.ones(1, bool)
    for fmt in ("csr", "csc"):
        A, want, x, X = of_ones(dtype, fmt)
        found = {
            "mxv": jsp.mxv(A, x, R),
            "mxv, masked": jsp.mxv(A, x, R, mask=mask),
            "vxm": jsp.vxm(x, A.T, R),
            "mxm": jsp.mxm(A, X, R, nse=4),
        }
        for name, y in found.items():
            assert y.data.dtype == dtype
            got = float(y.data[0].astype(jnp.float32))
            assert abs(got - want) <= 2 * float(jnp.finfo(dtype).eps) * want, (name, fmt, got, want)


@pytest.mark.parametrize("ring", [None, *OWN])
def test_the_derivative_by_a_value_in_many_products(ring):
    A, want, _, _ = of_ones(jnp.float32, "csr")
    one = jsp.from_edges([0], [0], jnp.ones(1), shape=(1, 1))
    R, n = OWN[ring] if ring else jsp.semirings.plus_times, A.shape[1]
    left = jax.grad(lambda d: jnp.sum(jsp.mxm(one.with_data(d), A, R, nse=n).data))(jnp.ones(1))
    right = jax.grad(lambda d: jnp.sum(jsp.mxm(A.T, one.with_data(d), R, nse=n).data))(jnp.ones(1))
    np.testing.assert_allclose([float(left[0]), float(right[0])], want, rtol=2.4e-7)


def test_an_operator_on_bits_stays_in_its_dtype():
    """What float64 cannot enter is joined as it is."""

    def larger(a, b):
        a, b = (jax.lax.bitcast_convert_type(v, jnp.int32) for v in (a, b))
        return jax.lax.bitcast_convert_type(jnp.maximum(a, b), jnp.float32)

    R = jsp.semiring(jsp.monoid(larger, 0.0), lambda a, b: a * b)
    A = jsp.from_edges([0, 0, 1], [0, 1, 1], jnp.float32([2, 3, 5]), shape=(2, 2))
    x = jsp.vector_from_entries([0, 1], jnp.ones(2), 2)
    for M in (A, A.asformat("csc")):
        assert jsp.mxv(M, x, R).data.tolist() == [3, 5]
    assert jsp.mxm(A, A, R).todense().tolist() == [[4, 15], [0, 25]]
