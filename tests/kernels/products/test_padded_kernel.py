"""The kernel over padded rows, ELL and SELL, interpreted, lowered and on a GPU, against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv._core.compat import KERNELS_FROM, jax_version
from pallas_kernels.products.spmv import padded_spmv
from pallas_kernels.simt.device import Grid
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring
from tests.kernels.test_lowering import lower
from tests.kernels.warps_apart import gridded

padded_spmv = gridded(padded_spmv)

HOST = {"grid": Grid(ctas=2, threads=64, interpret=True)}
SEMIRINGS = {  # mul, add, identity, by NumPy
    "plus_times": (lambda a, b: a * b, lambda a, b: a + b, 0, np.multiply, np.add),
    "min_plus": (lambda a, b: a + b, jnp.minimum, 2**31 - 1, np.add, np.minimum),
    "max_second": (lambda a, b: b, jnp.maximum, -(2**31), lambda a, b: b, np.maximum),
}
LENGTHS = {
    "short": [3, 0, 1, 4, 2, 0, 0, 7, 1, 1, 5, 2, 0, 3, 6, 1, 8, 0],
    "a hub": [2, 0, 1, 3, 90, 0, 1, 2],
    "one row": [50],
    "even": [9] * 70,
}


def matrix(lengths, dtype):
    rng = np.random.default_rng(0)
    cols = [np.sort(rng.choice(100, size, replace=False)) for size in lengths]
    indptr, indices = np.append(0, np.cumsum(lengths)), np.concatenate(cols)
    data = rng.integers(-8, 9, indices.size).astype(dtype)
    return sp.csr_array((data, indices, indptr), shape=(len(lengths), 100))


def by_definition(S, x, mul, add, identity):
    y = np.full(S.shape[0], identity, S.dtype)
    for i in range(S.shape[0]):
        for e in range(S.indptr[i], S.indptr[i + 1]):
            y[i] = add(y[i], mul(S.data[e], x[S.indices[e]]))
    return y


def product(A, x, name, options):
    mul, combine, identity, *_ = SEMIRINGS[name]
    slices = (A.slice_ptr, A.order) if isinstance(A, jsp.SELL) else None
    dtype = A.dtype
    return padded_spmv(
        A.indices,
        A.data,
        x,
        A.shape[0],
        semiring=ScalarSemiring.of(mul, combine, identity, dtype),
        slices=slices,
        **options,
    )


@pytest.mark.parametrize("rows", LENGTHS)
@pytest.mark.parametrize("name", SEMIRINGS)
@pytest.mark.parametrize("C", [None, 4, 32])
def test_interpreted(rows, name, C):
    S = matrix(LENGTHS[rows], np.int32)
    A = jsp.from_scipy(S)
    A = A.asformat("ell") if C is None else jsp.SELL.from_matrix(A, C=C, sigma=16)
    x = np.arange(-50, 50, dtype=np.int32)
    _, _, identity, mul, add = SEMIRINGS[name]
    want = by_definition(S, x, mul, add, identity)
    for options in (HOST, {"unroll": 3, "grid": Grid(1, 32, interpret=True)}):
        np.testing.assert_array_equal(product(A, jnp.asarray(x), name, options), want)


@pytest.mark.skipif(jax_version() < KERNELS_FROM, reason="kernels need a newer JAX")
@pytest.mark.parametrize("format", ["ell", "sell"])
def test_lowered_as_one_launch(format):
    A = jsp.from_scipy(matrix(LENGTHS["short"], np.float32)).asformat(format)
    text = lower(lambda A, x: A @ x, A, jnp.ones(100))
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("format", ["ell", "sell"])
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "max_second"])
def test_native(format, semiring):
    S = sp.random_array((3001, 2000), density=0.01, rng=np.random.default_rng(1)).tocsr()
    A = jsp.from_scipy(S.astype(np.float32))
    x = jnp.asarray(np.random.default_rng(2).random(2000, np.float32))
    ring = getattr(jsp.semirings, semiring)
    want = jsp.mxv(A, x, ring, backend="xla")
    got = jax.jit(lambda A, x: jsp.mxv(A, x, ring, backend="pallas"))(A.asformat(format), x)
    np.testing.assert_allclose(got, want, rtol=1e-5)
