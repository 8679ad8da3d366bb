"""Products of rows at the entries of a matrix: against NumPy, in chunks, in both modes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from learning_cases import made, normal, pattern, ulps

import jaxspv as jsp
from jaxspv._core.compat import KERNELS_FROM, jax_version
from jaxspv._core.platforms import using
from jaxspv.algebra import semirings
from jaxspv.ops.products.sddmm import by_entry, gpu
from pallas_kernels.simt.device import Grid
from tests.kernels.test_lowering import lower
from tests.kernels.warps_apart import gridded

ROW, COL = pattern()
M, N = 37, 29
NUMPY = {
    "plus_times": lambda x, y: (x * y).sum(-1),
    "min_plus": lambda x, y: (x + y).min(-1),
    "max_times": lambda x, y: (x * y).max(-1),
    "log_plus": lambda x, y: np.log(np.exp(x + y).sum(-1)),
}


@pytest.fixture(params=["whole", "chunks"])
def pieces(request, monkeypatch):
    """All entries at once, or 64 at a time; the width tells their compiled programs apart."""
    if request.param == "chunks":
        monkeypatch.setattr(by_entry, "ELEMENTS", {"cpu": 1, "xla": 1})
    return 5 if request.param == "chunks" else 4


@pytest.mark.parametrize("name", NUMPY)
def test_is_the_definition(name, pieces):
    for heads, format in (((), "coo"), ((3,), "csr"), ((2, 2), "csc")):
        X, Y = normal(0, M, *heads, pieces), normal(1, N, *heads, pieces)
        S = jsp.sddmm(made(ROW, COL, (M, N), format=format), X, Y, getattr(semirings, name))
        assert S.format == format and S.entry_shape == heads
        got = S.asformat("coo").data[: ROW.size]
        want = NUMPY[name](np.asarray(X)[ROW], np.asarray(Y)[COL])
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NUMPY)
def test_gradients_in_both_modes(name, pieces):
    A, semiring = made(ROW, COL, (M, N)), getattr(semirings, name)

    def f(X, Y):
        return jsp.sddmm(A, X, Y, semiring).data[: ROW.size]

    X, Y = normal(2, M, 2, pieces), normal(3, N, 2, pieces)
    check_grads(jax.jit(f), (X, Y), order=1, atol=2e-2, rtol=2e-2)
    one = jax.grad(lambda X: jnp.sum(f(X, Y) ** 2))(X)  # one side alone
    whole = jax.grad(lambda X: jnp.sum(f(X, Y) ** 2), argnums=0)(X)
    np.testing.assert_array_equal(one, whole)


def test_second_order():
    A = made(ROW, COL, (M, N))
    X, Y = normal(2, M, 3), normal(3, N, 3)
    check_grads(lambda X, Y: jsp.sddmm(A, X, Y).data[:9], (X, Y), order=2, atol=2e-2, rtol=2e-2)


def test_parameters_of_a_semiring_are_differentiated():
    def f(weight):
        mul = jsp.BinaryOp(_weighted, "weighted", (weight,))
        return jsp.sddmm(made(ROW, COL, (M, N)), X, Y, jsp.semiring(jnp.add, mul)).data[: ROW.size]

    X, Y = normal(4, M, 3), normal(5, N, 3)
    check_grads(jax.jit(f), (jnp.float32(1.5),), order=1, atol=1e-1, rtol=2e-2)


def _weighted(x, y, weight):
    return weight * x * y


@pytest.mark.parametrize("dtype", [jnp.bfloat16, np.float16, np.int32, bool])
def test_dtypes(dtype):
    rng = np.random.default_rng(0)
    X, Y = (jnp.asarray(rng.integers(-3, 4, (s, 64)), dtype) for s in (M, N))
    semiring = semirings.or_and if dtype is bool else semirings.plus_times
    S = jsp.sddmm(made(ROW, COL, (M, N)), X, Y, semiring)
    assert S.dtype == dtype
    x, y = (np.asarray(v, np.float64 if dtype is not bool else bool) for v in (X, Y))
    want = (x[ROW] & y[COL]).any(-1) if dtype is bool else (x[ROW] * y[COL]).sum(-1)
    np.testing.assert_array_equal(S.data[: ROW.size], np.asarray(want).astype(dtype))


def test_bfloat16_is_added_in_float32():
    X, Y = (normal(k, s, 512, dtype=jnp.bfloat16) for k, s in enumerate((M, N)))
    got = jsp.sddmm(made(ROW, COL, (M, N)), X, Y).data[: ROW.size]
    x, y = (np.asarray(v, np.float32) for v in (X, Y))
    assert ulps(got, (x[ROW] * y[COL]).sum(-1), jnp.bfloat16) <= 1


def test_at_ties_the_first_wins():
    A = jsp.from_edges([0], [0], shape=(1, 1))
    slope = jax.grad(lambda X: jsp.sddmm(A, X, jnp.zeros((1, 3)), semirings.max_plus).data[0])
    assert slope(jnp.array([[1.0, 2.0, 2.0]])).tolist() == [[0, 1, 0]]


def test_vmap_and_jit():
    A = made(ROW, COL, (M, N))
    X, Y = normal(6, 2, M, 3), normal(7, N, 3)
    got = jax.jit(jax.vmap(lambda X: jsp.sddmm(A, X, Y).data))(X)
    for k in range(2):
        np.testing.assert_allclose(got[k], jsp.sddmm(A, X[k], Y).data, rtol=1e-5)
    values = jax.vmap(lambda d: jsp.sddmm(A.with_data(d), X[0], Y).data)(jnp.ones((2, A.nse)))
    np.testing.assert_allclose(values[1], jsp.sddmm(A, X[0], Y).data, rtol=1e-5)


def test_the_gradient_holds_no_row_for_each_entry():
    """Memory of the compiled gradient: a fraction of (entries, features)."""
    n, nse, k = 64, 1 << 14, 128
    rng = np.random.default_rng(0)
    A = jsp.COO(
        jnp.zeros(nse),
        jnp.asarray(np.sort(rng.integers(0, n, nse)).astype(np.int32)),
        jnp.asarray(rng.integers(0, n, nse).astype(np.int32)),
        jnp.asarray(False),
        (n, n),
    )
    f = jax.jit(jax.grad(lambda X: jnp.sum(jsp.sddmm(A, X, X).data ** 2)))
    memory = f.lower(normal(0, n, k)).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 4 * nse * k / 2


def test_bad_arguments():
    A, X, Y = made(ROW, COL, (M, N)), normal(0, M, 3), normal(1, N, 3)
    with pytest.raises(ValueError, match=r"`X` must have shape \(37, ..., k\); got \(29, 3\)"):
        jsp.sddmm(A, Y, Y)
    with pytest.raises(ValueError, match=r"`Y` must have shape \(29, 3\); got \(29, 2\)"):
        jsp.sddmm(A, X, Y[:, :2])
    with pytest.raises(ValueError, match="must not be positional"):
        jsp.sddmm(A, X, Y, semirings.any_secondi)
    with pytest.raises(ValueError, match="need a COO, CSR or CSC; got a Tiled"):
        jsp.sddmm(A.trim().asformat("tiled"), X[:, None], Y[:, None])
    by_name = jsp.sddmm(A, X, Y, "min_plus").data[: ROW.size]
    assert by_name.tolist() == jsp.sddmm(A, X, Y, semirings.min_plus).data[: ROW.size].tolist()
    with pytest.raises(TypeError, match="`semiring` must be"):
        jsp.sddmm(A, X, Y, 3)


def test_derivatives_of_ordinary_products_are_products():
    """On other platforms than CPUs, by `backend="xla"` here: with heads, narrow floats too."""
    A = made(ROW, COL, (M, N))
    for heads, dtype in (((2,), np.float32), ((), jnp.bfloat16)):
        X, Y = normal(2, M, *heads, 3, dtype=dtype), normal(3, N, *heads, 3, dtype=dtype)
        g = normal(4, A.nse, *heads, dtype=dtype)

        def pulled(backend, X=X, Y=Y, g=g):
            with using(backend):
                return jax.vjp(lambda X, Y: jsp.sddmm(A, X, Y).data, X, Y)[1](g)

        for got, want in zip(pulled("xla"), pulled("cpu"), strict=True):
            assert got.dtype == dtype
            np.testing.assert_allclose(
                *(np.asarray(v, np.float32) for v in (got, want)), rtol=2e-2, atol=1e-2
            )


@pytest.mark.skipif(jax_version() < KERNELS_FROM, reason="its kernels need a newer JAX")
def test_a_gpu_takes_the_kernel():
    A = made(ROW, COL, (M, N))
    X, Y = normal(2, M, 8, 16), normal(3, N, 8, 16)
    text = lower(lambda X, Y: jsp.sddmm(A, X, Y).data, X, Y)
    assert text.count("custom_call @mosaic_gpu") == 1
    batched = lower(jax.vmap(lambda X: jsp.sddmm(A, X, Y).data), jnp.stack([X, X]))
    assert batched.count("custom_call @mosaic_gpu") == 1
    assert "sddmm: pallas/entries on NVIDIA GPUs" in str(jsp.explain(jsp.sddmm, A, X, Y))


@pytest.mark.parametrize("heads", [(), (2, 2)], ids=str)
def test_what_a_gpu_runs_is_the_same(heads, monkeypatch):
    """The kernel interpreted, called as it is on a GPU."""
    kernel = functools.partial(gridded(gpu.kernel), grid=Grid(threads=64, interpret=True))
    monkeypatch.setattr(gpu, "kernel", kernel)
    A, X, Y = made(ROW, COL, (M, N)), normal(2, M, *heads, 5), normal(3, N, *heads, 5)
    for name in ("plus_times", "min_plus", "max_times"):
        semiring = getattr(semirings, name)
        assert gpu._not_here(semiring, A, X, Y) is None
        got = gpu._entries(semiring, A, X, Y)[: ROW.size]
        want = jsp.sddmm(A, X, Y, semiring).data[: ROW.size]
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16, np.int32])
@pytest.mark.parametrize("name", ["plus_times", "min_plus"])
def test_the_native_kernel_is_the_xla_form(name, dtype):
    A, semiring = jsp.generators.rmat(jax.random.key(0), 12), getattr(semirings, name)
    for shape in ((128,), (8, 16), (3, 5)):
        X, Y = (jnp.round(4 * normal(k, A.shape[0], *shape)).astype(dtype) for k in range(2))
        got, want = (jsp.sddmm(A, X, Y, semiring, backend=b).data for b in ("pallas", "xla"))
        got, want = (np.asarray(v, np.float32) for v in (got, want))
        np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-2)
