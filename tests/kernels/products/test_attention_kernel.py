"""The attention kernel: interpreted, against float64 in NumPy; rows cut between warps; lowered."""

import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels.products.attention import csr_attention
from tests.kernels.products.test_csr_kernels import COLUMNS, ROWS, matrix
from tests.kernels.test_lowering import lower


def by_definition(indptr, indices, q, k, v, scale, bias):
    n, heads = q.shape[:2]
    y, log = np.zeros((n, heads, v.shape[2])), np.full((n, heads), -np.inf)
    for i in range(n):
        at = slice(indptr[i], indptr[i + 1])
        js = indices[at]
        if len(js) == 0:
            continue
        s = scale * np.einsum("hd,jhd->jh", q[i], k[js])
        if bias is not None:
            s = s + (bias[at, None] if bias.ndim == 1 else bias[at])
        top = s.max(0)
        shift = np.where(np.isfinite(top), top, 0)
        e = np.exp(s - shift)
        total = e.sum(0)
        some = np.where(total == 0, 1, total)
        y[i] = np.einsum("jh,jhf->hf", e, v[js]) / some[:, None]
        log[i] = np.where(total == 0, -np.inf, np.log(some) + shift)
    return y, log


def operands(lengths, heads, d, f, own=None, seed=0):
    rng = np.random.default_rng(seed)
    indptr, indices, _ = matrix(lengths, np.float32)
    shapes = (len(lengths), heads, d), (COLUMNS, heads, d), (COLUMNS, heads, f)
    q, k, v = (rng.normal(size=s).astype(np.float32) for s in shapes)
    bias = None
    if own is not None:
        bias = rng.normal(size=(indices.size, *own)).astype(np.float32)
        bias[rng.random(indices.size) < 0.2] = -np.inf
        bias[indptr[-1] :] = np.nan
    return indptr, indices, q, k, v, bias


def check(lengths, heads, d, f, own=None, **options):
    indptr, indices, q, k, v, bias = operands(lengths, heads, d, f, own)
    arrays = (None if x is None else jnp.asarray(x) for x in (indptr, indices, q, k, v, bias))
    y, log = csr_attention(*arrays, scale=0.3, threads=64, interpret=True, **options)
    wide = (x.astype(np.float64) for x in (q, k, v))
    want = by_definition(indptr, indices, *wide, 0.3, bias)
    np.testing.assert_allclose(y, want[0], rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(log, want[1], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("rows", ROWS)
def test_rows_of_all_lengths_cut_anywhere(rows):
    check(ROWS[rows], 2, 8, 8, (2,), ctas=3)
    check(ROWS[rows], 8, 16, 16, ctas=5)


@pytest.mark.parametrize(
    ("heads", "d", "f"),
    [(1, 1, 1), (1, 3, 5), (3, 4, 2), (1, 128, 64), (5, 32, 32), (1, 16, 16), (9, 16, 7)],
)
def test_features_and_heads(heads, d, f):
    lengths = [3, 0, 40, 1, 0, 7, 90, 2]
    check(lengths, heads, d, f, (), ctas=2)
    check(lengths, heads, d, f, (heads,), unroll=1)


@pytest.mark.parametrize("own", [None, (), (8,)])
def test_is_one_launch(own):
    arrays = operands([3, 0, 40], 8, 16, 16, own)
    arrays = [jnp.asarray(x) for x in arrays if x is not None]
    text = lower(lambda *a: csr_attention(*a, scale=0.25), *arrays)
    assert text.count("custom_call @mosaic_gpu") == 1
