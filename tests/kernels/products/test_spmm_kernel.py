"""The kernel of sparse times dense: interpreted, against loops in NumPy; lowered; on a GPU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv._core.compat import KERNELS_FROM, jax_version
from pallas_kernels.products.spmm import Config, coo_spmm, csr_spmm, tile_for
from pallas_kernels.rows.columns import Tile
from pallas_kernels.simt.device import Grid
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring
from tests.kernels.products.test_csr_kernels import COLUMNS, ROWS, SEMIRINGS, matrix
from tests.kernels.test_lowering import lower
from tests.kernels.warps_apart import gridded

coo_spmm, csr_spmm = map(gridded, (coo_spmm, csr_spmm))

HOST = {"grid": Grid(ctas=3, threads=64, interpret=True)}
DTYPES = (jnp.float32, jnp.int32, jnp.bfloat16, jnp.float16)


def by_definition(A, x, name, base):
    indptr, indices, data = A
    mul, _, add, identity = SEMIRINGS[name]
    y = np.full((len(indptr) - 1, x.shape[1]), identity[np.dtype(base).kind], base)
    for i in range(len(y)):
        for e in range(indptr[i], indptr[i + 1]):
            y[i] = add(y[i], np.asarray(mul(data[e], x[indices[e]])))
    return y


def check(lengths, dtype, k, name, tile=None, values=None, result=None, **options):
    """Small integers, which every dtype holds: sums of hubs round once, at the end."""
    base = np.int32 if dtype == jnp.int32 else np.float32
    A = indptr, indices, data = matrix(lengths, base)
    x = np.random.default_rng(1).integers(-4, 5, (COLUMNS, k)).astype(base)
    mul, combine, _, identity = SEMIRINGS[name]
    y = csr_spmm(
        jnp.asarray(indptr),
        jnp.asarray(indices),
        jnp.asarray(data).astype(values or dtype),
        jnp.asarray(x).astype(dtype),
        semiring=ScalarSemiring.of(mul, combine, identity[np.dtype(base).kind], base),
        config=Config(result or dtype, tile=tile),
        **(options or HOST),
    )
    want = jnp.asarray(by_definition(A, x, name, base)).astype(result or dtype)
    assert y.dtype == want.dtype and y.shape == want.shape
    np.testing.assert_array_equal(y.astype(base), want.astype(base))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", ROWS)
def test_products(rows, dtype):
    for name, k in zip(SEMIRINGS, (8, 5, 3, 1, 136), strict=True):
        check(ROWS[rows], dtype, k, name)


@pytest.mark.parametrize(
    "tile",
    [Tile(1, 4, 1), Tile(2, 2, 8), Tile(4, 4, 4), Tile(8, 1, 2), Tile(16, 4, 16), Tile(32, 4, 4)],
)
@pytest.mark.parametrize("grid", [(1, 32), (1, 128), (7, 32)])
def test_tiles_and_ctas(tile, grid):
    for rows in ("hubs", "short", "one row"):
        check(ROWS[rows], jnp.float32, 72, "plus_times", tile, grid=Grid(*grid, interpret=True))


@pytest.mark.parametrize(("k", "tile"), [(3, None), (8, Tile(2, 2, 8)), (136, None)])
def test_logarithms_of_sums_of_exponentials(k, tile):
    """A row's largest term may be infinite, or there may be none; sums are as exact as float32."""
    indptr, indices, data = matrix(ROWS["hubs"], np.float32)
    x = np.random.default_rng(1).normal(scale=30, size=(COLUMNS, k)).astype(np.float32)
    x[3], x[5], x[7, 0] = -np.inf, np.inf, np.nan
    semiring = ScalarSemiring.of(lambda a, b: a + b, jnp.logaddexp, -np.inf, np.float32)
    arrays = map(jnp.asarray, (indptr, indices, data, x))
    y = csr_spmm(*arrays, semiring=semiring, config=Config(log_sum=True, tile=tile), **HOST)
    want = np.full(y.shape, -np.inf)
    for i in range(len(want)):
        for e in range(indptr[i], indptr[i + 1]):
            with np.errstate(invalid="ignore"):
                want[i] = np.logaddexp(want[i], data[e].astype(float) + x[indices[e]])
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "dtype,values,result",
    [
        (jnp.bfloat16, jnp.float32, jnp.float32),
        (jnp.float16, jnp.float16, jnp.float32),
        (jnp.float32, jnp.bfloat16, jnp.float32),
    ],
)
def test_values_and_columns_of_other_dtypes(dtype, values, result):
    for k in (6, 7):
        check(ROWS["hubs"], dtype, k, "plus_times", values=values, result=result)


def test_extremes_stay_in_their_rows():
    """inf and NaN stay in their row; an entry beyond the columns adds nothing."""
    indptr, indices = jnp.array([0, 2, 3, 4, 5]), jnp.array([0, 1, 2, 2, 37])
    data = jnp.array([jnp.inf, 1, jnp.nan, 2, 7])
    mul, combine, *_ = SEMIRINGS["plus_times"]
    semiring = ScalarSemiring.of(mul, combine, 0.0, "f")
    y = csr_spmm(indptr, indices, data, jnp.ones((COLUMNS, 2)), semiring=semiring, **HOST)
    np.testing.assert_array_equal(y, np.repeat([[np.inf], [np.nan], [2], [0]], 2, 1))


def test_a_tile_covers_narrow_rows_at_once():
    assert [tile_for(w).lanes * tile_for(w).words for w in (1, 3, 8, 32, 128)] == [1, 4, 8, 32, 128]


@pytest.mark.skipif(jax_version() < KERNELS_FROM, reason="its kernels need a newer JAX")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_lowers_for_a_gpu_in_one_launch(dtype, format):
    A = jsp.from_dense(np.eye(9, dtype=np.float32), format=format).astype(dtype)
    for k in (1, 8, 300):
        text = lower(lambda A, X: jsp.mxm(A, X), A, jnp.ones((9, k), dtype))
        assert text.count("custom_call @mosaic_gpu") == 1
    mapped = jax.vmap(lambda x, A: jsp.mxv(A, x), (1, None))
    text = lower(lambda A, X: mapped(X, A), A, jnp.ones((9, 8), dtype))
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.skipif(jax_version() < KERNELS_FROM, reason="its kernels need a newer JAX")
def test_sums_of_exponentials_lower_for_a_gpu():
    A = jsp.from_dense(np.eye(9, dtype=np.float32))
    for dtype in (jnp.float32, jnp.bfloat16):
        text = lower(lambda X: jsp.mxm(A, X, "log_plus"), jnp.ones((9, 8), dtype))
        assert text.count("custom_call @mosaic_gpu") == 1


def check_scattered(lengths, k, tile=None, **options):
    """Small integers, so that sums do not depend on their order; two places are out of range."""
    indptr, indices, data = matrix(lengths, np.float32)
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)).astype(np.int32)
    out, inner = indices[: row.size].copy(), row  # of the transpose: rows lie anywhere
    data, values = data[: row.size], np.random.default_rng(2).integers(-4, 5, (len(lengths), k))
    x = values.astype(np.float32)
    want = np.zeros((COLUMNS, k))
    np.add.at(want, out, data[:, None] * x[inner])
    out = np.concatenate([out, [-1, COLUMNS, 0, 0]]).astype(np.int32)
    inner = np.concatenate([inner, [0, 0, -1, len(lengths)]]).astype(np.int32)
    data = np.concatenate([data, np.full(4, np.nan, np.float32)])
    mul, combine, *_ = SEMIRINGS["plus_times"]
    semiring = ScalarSemiring.of(mul, combine, 0.0, "f")
    arrays = map(jnp.asarray, (out, inner, data, x))
    y = coo_spmm(*arrays, COLUMNS, semiring=semiring, tile=tile, **(options or HOST))
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("rows", ROWS)
def test_entries_of_columns_are_added_in_place(rows):
    for k in (1, 3, 8):
        check_scattered(ROWS[rows], k)


@pytest.mark.parametrize("tile", [Tile(1, 4, 1), Tile(4, 2, 8), Tile(16, 4, 2), Tile(32, 1, 4)])
def test_tiles_of_scattered_entries(tile):
    check_scattered(ROWS["hubs"], 72, tile)
    check_scattered(ROWS["short"], 72, tile, grid=Grid(1, 32, interpret=True))


@pytest.mark.gpu
def test_entries_added_in_place_on_a_gpu():
    for rows in ROWS:
        for k in (1, 5, 8, 32, 136):
            check_scattered(ROWS[rows], k, grid=Grid())


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_on_a_gpu(dtype):
    for rows in ROWS:
        for name, k in zip(SEMIRINGS, (8, 5, 32, 1, 136), strict=True):
            check(ROWS[rows], dtype, k, name, grid=Grid())
