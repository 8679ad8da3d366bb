"""The kernel for products of rows at entries: interpreted against NumPy, and lowered for a GPU."""

import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels.products.sddmm import Tile, sddmm
from pallas_kernels.simt.device import Grid
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring
from tests.kernels.test_lowering import lower
from tests.kernels.warps_apart import gridded

sddmm = gridded(sddmm)

M, N, NSE = 9, 7, 53
HOST = Grid(threads=32, interpret=True)


def operands(heads, k, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    row, col = (np.sort(rng.integers(0, s, NSE)).astype(np.int32) for s in (M, N))
    row[-4:], col[-4:] = M, N  # padding
    x, y = (rng.integers(-4, 5, (s, heads, k)).astype(dtype) for s in (M, N))
    return tuple(map(jnp.asarray, (row, rng.permuted(col[:-4]).tolist() + [N] * 4, x, y)))


def run(row, col, x, y, add=jnp.add, mul=jnp.multiply, identity=0, **how):
    term = jnp.float32 if x.dtype.itemsize == 2 else x.dtype
    col = jnp.asarray(col, jnp.int32)
    return sddmm(row, col, x, y, semiring=ScalarSemiring.of(mul, add, identity, term), **how)


@pytest.mark.parametrize(
    ("heads", "k", "tile"),
    [(1, 1, None), (1, 5, None), (8, 16, None), (3, 6, None), (2, 128, None), (1, 200, None)]
    + [(1, 64, Tile(4, 4, 3)), (2, 8, Tile(1, 1, 2)), (1, 40, Tile(32, 2, 1))],
    ids=str,
)
@pytest.mark.parametrize("ctas", [1, 3])
def test_is_the_definition(heads, k, tile, ctas):
    row, col, x, y = operands(heads, k)
    got = run(row, col, x, y, tile=tile, grid=Grid(ctas, 64, interpret=True))
    x, y = np.asarray(x), np.asarray(y)
    want = (x[np.minimum(row, M - 1)] * y[np.minimum(col, N - 1)]).sum(-1)
    np.testing.assert_array_equal(got[:-4], want[:-4])
    assert (got[-4:] == 0).all()


@pytest.mark.parametrize("dtype", [jnp.bfloat16, np.float16])
@pytest.mark.parametrize("k", [3, 8])
def test_narrow_floats(dtype, k):
    row, col, x, y = operands(2, k, dtype)
    got = run(row, col, x, y, jnp.maximum, jnp.add, -np.inf, grid=HOST)
    assert got.dtype == np.float32
    x, y = (np.asarray(v, np.float32) for v in (x, y))
    want = (x[np.minimum(row, M - 1)] + y[np.minimum(col, N - 1)]).max(-1)
    np.testing.assert_array_equal(got[:-4], want[:-4])
    assert (got[-4:] == -np.inf).all()


def test_integers_of_another_semiring():
    row, col, x, y = operands(1, 6, np.int32)
    got = run(row, col, x, y, jnp.minimum, jnp.add, 2**31 - 1, grid=HOST)
    x, y = np.asarray(x), np.asarray(y)
    want = (x[np.minimum(row, M - 1)] + y[np.minimum(col, N - 1)]).min(-1)
    np.testing.assert_array_equal(got[:-4], want[:-4])


@pytest.mark.parametrize(("heads", "k"), [(1, 128), (8, 16), (1, 33)])
@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16])
def test_is_one_launch(heads, k, dtype):
    row, col, x, y = operands(heads, k, dtype)
    text = lower(run, row, jnp.asarray(col, jnp.int32), x, y)
    assert text.count("custom_call @mosaic_gpu") == 1
