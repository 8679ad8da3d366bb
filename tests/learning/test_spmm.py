"""Sparse times dense against loops in NumPy: formats, semirings, dtypes, masks, gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from learning_cases import made, normal, pattern, ulps

import jaxspv as jsp
from jaxspv._core.compat import KERNELS_FROM, jax_version
from jaxspv.algebra import semirings
from jaxspv.ops.products.spmm.gpu import SCATTERED

ROW, COL = pattern(13, 9, 0.3)
SHAPE = 13, 9
ADD = {"plus": np.add, "min": np.minimum, "max": np.maximum, "lor": np.logical_or}
MUL = {"times": np.multiply, "plus": np.add, "land": np.logical_and, "first": lambda a, x: a}
SEMIRINGS = {  # name: add, mul, identity
    "plus_times": ("plus", "times", 0),
    "min_plus": ("min", "plus", np.inf),
    "max_times": ("max", "times", -np.inf),
    "plus_first": ("plus", "first", 0),
    "log_plus": (np.logaddexp, "plus", -np.inf),
}
METHODS = ("auto", "pieces", "segments")


def product(row, col, values, X, shape, name="plus_times"):
    """The definition, entry by entry, in float64."""
    add, mul, identity = SEMIRINGS[name]
    add, mul = ADD.get(add, add), MUL[mul]
    Y = np.full((shape[0], X.shape[1]), identity, np.float64)
    for i, j, a in zip(row, col, np.asarray(values, np.float64), strict=True):
        Y[i] = add(Y[i], mul(a, np.asarray(X[j], np.float64)))
    return Y


def values_of(dtype=np.float32):
    values = np.random.default_rng(1).uniform(0.5, 1.5, ROW.size)
    return values.astype(dtype)


@pytest.mark.parametrize("name", SEMIRINGS)
@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("method", METHODS)
def test_is_the_definition(name, format, method):
    """Padding is NaN, one row is empty and one full."""
    A = made(ROW, COL, SHAPE, values_of(), format=format)
    for k in (5, 19):
        X = np.asarray(normal(2, SHAPE[1], k))
        Y = jsp.mxm(A, X, getattr(semirings, name), method=method)
        want = product(ROW, COL, values_of(), X, SHAPE, name)
        np.testing.assert_allclose(Y, want, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (1, 1), (3, 5)])
@pytest.mark.parametrize("k", [0, 1])
@pytest.mark.parametrize("format", ["csr", "coo"])
def test_nothing_stored_or_little(shape, k, format):
    none = np.zeros(0, int)
    A = made(none, none, shape, np.zeros(0, np.float32), format=format, spare=2)
    X = np.ones((shape[1], k), np.float32)
    assert jsp.mxm(A, X).tolist() == np.zeros((shape[0], k)).tolist()
    assert jsp.mxm(A, X, semirings.min_plus).tolist() == np.full((shape[0], k), np.inf).tolist()
    assert (X.T @ A.T).tolist() == np.zeros((k, shape[0])).tolist()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("backend", [None, "xla"])
def test_narrow_floats_are_added_in_float32(dtype, backend):
    A = made(ROW, COL, SHAPE, values_of()).astype(dtype)
    X = normal(3, SHAPE[1], 6).astype(dtype)
    Y = jsp.mxm(A, X, backend=backend)
    assert Y.dtype == dtype
    exact = [np.asarray(v.astype(jnp.float32)) for v in (A.data[: ROW.size], X)]
    assert ulps(Y.astype(jnp.float32), product(ROW, COL, *exact, SHAPE), dtype) <= 2


@pytest.mark.parametrize("backend", [None, "xla"])
def test_whole_numbers_and_truth(backend):
    rng = np.random.default_rng(4)
    values, X = rng.integers(-9, 9, ROW.size), rng.integers(-9, 9, (SHAPE[1], 6))
    A = made(ROW, COL, SHAPE, values.astype(np.int32), fill=99)
    Y = jsp.mxm(A, X.astype(np.int32), backend=backend)
    assert Y.dtype == np.int32
    np.testing.assert_array_equal(Y, product(ROW, COL, values, X, SHAPE))
    true, X = values > 0, X > 4
    Y = jsp.mxm(made(ROW, COL, SHAPE, true, fill=True), X, semirings.lor_land, backend=backend)
    assert Y.dtype == bool
    np.testing.assert_array_equal(Y, product(ROW, COL, true, X, SHAPE) > 0)


def test_float64():
    with jax.enable_x64(True):
        A = made(ROW, COL, SHAPE, values_of(np.float64))
        X = np.asarray(normal(2, SHAPE[1], 9, dtype=np.float64))
        for semiring in ("plus_times", "min_plus"):
            Y = jsp.mxm(A, X, getattr(semirings, semiring))
            want = product(ROW, COL, values_of(np.float64), X, SHAPE, semiring)
            assert Y.dtype == np.float64
            np.testing.assert_allclose(Y, want, rtol=1e-14)


def test_masks_and_what_is_written():
    A, X = made(ROW, COL, SHAPE, values_of()), normal(2, SHAPE[1], 4)
    Y = product(ROW, COL, values_of(), np.asarray(X), SHAPE)
    rng = np.random.default_rng(5)
    rows, places = rng.random(SHAPE[0]) < 0.5, rng.random(Y.shape) < 0.5
    out = rng.random(Y.shape).astype(np.float32)
    stored = np.isin(np.arange(SHAPE[0]), ROW)[:, None]
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5)
    for mask, allowed in (
        (rows, rows[:, None]),
        (places, places),
        (~jsp.structure(jsp.from_dense(places)), ~places),
    ):
        close(jsp.mxm(A, X, mask=mask), np.where(allowed, Y, 0))
        close(jsp.mxm(A, X, mask=mask, replace=True, out=out), np.where(allowed & stored, Y, 0))
        both = jsp.mxm(A, X, mask=mask, accum=jnp.subtract, out=out)
        close(both, np.where(allowed & stored, out - Y, out), atol=1e-6)
    with pytest.raises(ValueError, match="`mask` must have the shape"):
        jsp.mxm(A, X, mask=rows[:-1])


def test_batches_and_both_sides():
    A, X = made(ROW, COL, SHAPE, values_of()), normal(2, 2, 3, SHAPE[1], 4)
    dense = np.asarray(A.todense(), np.float64)
    np.testing.assert_allclose(A @ X, dense @ np.asarray(X, np.float64), rtol=1e-5, atol=1e-5)
    left = normal(2, 2, 5, SHAPE[0])
    want = np.asarray(left, np.float64) @ dense
    np.testing.assert_allclose(left @ A, want, rtol=1e-5, atol=1e-5)


def test_vmap_of_a_product_by_vector_is_one_product():
    A, X = made(ROW, COL, SHAPE, values_of()), normal(2, 7, SHAPE[1])
    run = jax.vmap(functools.partial(jsp.mxv, A))
    np.testing.assert_allclose(run(X), (A @ X.T).T, rtol=1e-5)
    assert "spmm" in str(jsp.explain(lambda x: run(x), X))


@pytest.mark.parametrize("part", ["values", "X", "both"])
def test_vmap_of_the_product(part):
    values, X = values_of()[None] * np.array([[1.0], [2], [3]], np.float32), normal(2, 3, 9, 4)
    axes = (0 if part != "X" else None, 0 if part != "values" else None)
    given = [v if a == 0 else v[0] for v, a in zip((values, X), axes, strict=True)]

    def f(v, X):
        return made(ROW, COL, SHAPE).with_data(jnp.pad(v, (0, 5))) @ X

    found = jax.jit(jax.vmap(f, axes))(*given)
    for b in range(3):
        one = [np.asarray(v[b] if a == 0 else v) for v, a in zip(given, axes, strict=True)]
        np.testing.assert_allclose(found[b], product(ROW, COL, *one, SHAPE), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "graph"])
@pytest.mark.parametrize("name", ["plus_times", "min_plus", "max_times", "log_plus"])
def test_gradients_in_both_modes(name, kind):
    """The slopes of padding, which is NaN, are zero."""
    n = SHAPE[1]
    row, col = ROW[ROW < n], COL[ROW < n]
    A = made(row, col, (n, n), values_of()[: row.size], format="csr" if kind == "graph" else kind)
    A = jsp.prepare(A, for_="mxv") if kind == "graph" else A
    real = np.isfinite(np.asarray(A.data))

    def f(data, X):
        data = jnp.where(real, data, jnp.nan)
        Y = jsp.mxm(A.with_data(data), X, getattr(semirings, name))
        return jnp.where(jnp.isfinite(Y), Y, 0)

    data, X = jnp.where(real, A.data, 0), normal(2, n, 3)
    check_grads(jax.jit(f), (data, X), order=1, atol=2e-2, rtol=2e-2)
    gradients = jax.grad(lambda *v: f(*v).sum(), (0, 1))(data, X)
    assert all(np.isfinite(s).all() for s in gradients)
    assert not np.asarray(gradients[0])[~real].any()


def test_second_order():
    A, X = made(ROW, COL, SHAPE, values_of(), spare=0), normal(2, SHAPE[1], 3)
    f = lambda data, X: jnp.sin(A.with_data(data) @ X)  # noqa: E731
    check_grads(f, (A.data, X), order=2, atol=3e-2, rtol=3e-2)


def test_a_prepared_graph_is_differentiated_without_a_sort():
    n = SHAPE[1]
    row, col = ROW[ROW < n], COL[ROW < n]
    A = made(row, col, (n, n), values_of()[: row.size])

    def sorts(M, columns):
        f = jax.jit(jax.grad(lambda M, X: (M @ X).sum(), 1))
        lowered = f.trace(M, normal(2, n, columns)).lower(lowering_platforms=("cuda",))
        return "stablehlo.sort" in lowered.as_text()

    assert sorts(A, SCATTERED + 1) and not sorts(jsp.prepare(A), SCATTERED + 1)
    assert sorts(A, 3) == (jax_version() < KERNELS_FROM)  # few columns are added in place


def test_constants_are_no_work_for_the_compiler():
    """A pattern captured by a jitted gradient stays behind a barrier."""
    A, X = made(ROW, COL, SHAPE, values_of()), normal(2, SHAPE[1], 3)
    f = jax.jit(jax.grad(lambda d, X: (A.with_data(d) @ X).sum(), (0, 1)))
    assert "optimization_barrier" in f.lower(A.data, X).as_text()


def test_what_is_exported_calls_nothing_of_other_modules():
    A, X = made(ROW, COL, SHAPE, values_of()), normal(2, SHAPE[1], 3)
    f = jsp.export(lambda A, X: A @ X)(A, X)
    assert "custom_call @cpu_" not in f.mlir_module()
    np.testing.assert_allclose(f.call(A, X), A @ X, rtol=1e-5, atol=1e-5)


def test_bad_operands():
    A, X = made(ROW, COL, SHAPE), normal(2, SHAPE[1], 3)
    with pytest.raises(ValueError, match="`B` must have shape"):
        jsp.mxm(A, X[:-1])
    with pytest.raises(TypeError, match="semiring"):
        jsp.mxm(A, X, 3)
    with pytest.raises(ValueError, match="`method` must be one of"):
        jsp.mxm(A, X, method="gustavson")
