"""The attention kernel: interpreted, against float64 in NumPy; rows cut between warps; lowered."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels.products.attention.forward import csr_attention
from pallas_kernels.products.attention.job import Operands, Schedule, Score
from pallas_kernels.products.attention.vjp import Wanted, csr_attention_vjp
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


def check(lengths, heads, d, f, own=None, **schedule):
    indptr, indices, q, k, v, bias = operands(lengths, heads, d, f, own)
    arrays = (None if x is None else jnp.asarray(x) for x in (indptr, indices, q, k, v, bias))
    how = {"schedule": Schedule(threads=64, interpret=True, **schedule)}
    y, log = csr_attention(Operands(*arrays), scale=0.3, **how)
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
    check(lengths, heads, d, f, None, together=2, ctas=2)


@pytest.mark.parametrize("own", [None, (), (8,)])
def test_is_one_launch(own):
    arrays = operands([3, 0, 40], 8, 16, 16, own)
    arrays = [jnp.asarray(x) for x in arrays if x is not None]
    text = lower(lambda *a: csr_attention(Operands(*a), scale=0.25), *arrays)
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.parametrize("dtype", [jnp.bfloat16, np.float16])
@pytest.mark.parametrize(("heads", "d", "f"), [(8, 16, 16), (2, 1, 1), (3, 5, 3), (1, 4, 64)])
def test_narrow_keys_and_values(dtype, heads, d, f):
    """Read in 16 bits, computed in float32: as if they had been widened before."""
    indptr, indices, q, k, v, bias = operands([3, 0, 40, 1, 0, 7, 90, 2], heads, d, f, ())
    rng = np.random.default_rng(3)
    w = jnp.asarray(rng.normal(size=(8, heads, f)), jnp.float32)
    q, k, v = (jnp.asarray(x).astype(dtype) for x in (q, k, v))
    places, bias = (jnp.asarray(indptr), jnp.asarray(indices)), jnp.asarray(bias)
    wide = [x.astype(np.float32) for x in (q, k, v)]
    runs = []
    for of_a_lane, operands_of_all in ((8, wide), (8, (q, k, v)), (4, (wide[0], k, v))):
        schedule = Schedule(threads=64, ctas=3, features=of_a_lane, interpret=True)
        how = {"scale": 0.3, "schedule": schedule}
        given = Operands(*places, *operands_of_all, bias)
        y, log = csr_attention(given, **how)
        thin = csr_attention(given, thin=True, **how)[0]
        assert thin.dtype == given.v.dtype
        np.testing.assert_array_equal(thin, y.astype(given.v.dtype))  # rounded once, to even
        less = jnp.sum(w * y, axis=-1)
        runs.append((y, log, *csr_attention_vjp(given, log, w, less, **how)[:3]))
    for run in runs[1:]:
        for got, want in zip(run, runs[0], strict=True):
            assert got.dtype == np.float32 and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


# ---- Derivatives ----


def slopes(indptr, indices, q, k, v, bias, log, w, less, scale):
    """(dq, dk, dv, dbias) by loops in float64."""
    dq, dk, dv = (np.zeros(x.shape) for x in (q, k, v))
    dbias = np.zeros((len(indices), q.shape[1]))
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            s = scale * np.sum(q[i] * k[j], -1) + (0 if bias is None else bias[e])
            p = np.exp(s - np.where(log[i] > -np.inf, log[i], np.inf))
            ds = p * (np.sum(w[i] * v[j], -1) - less[i])
            dbias[e] = ds
            dq[i] += scale * ds[:, None] * k[j]
            dk[j] += scale * ds[:, None] * q[i]
            dv[j] += p[:, None] * w[i]
    return dq, dk, dv, dbias


@pytest.mark.parametrize(
    ("heads", "d", "f", "own"), [(2, 8, 8, (2,)), (8, 16, 16, None), (1, 3, 5, ()), (3, 4, 2, None)]
)
@pytest.mark.parametrize("rows", ["hub", "short"])
def test_cotangents(heads, d, f, own, rows):
    lengths = ROWS.get(rows, [3, 0, 40, 1, 0, 7, 90, 2])
    indptr, indices, q, k, v, bias = operands(lengths, heads, d, f, own)
    wide = [x.astype(np.float64) for x in (q, k, v)]
    y, log = by_definition(indptr, indices, *wide, 0.3, bias)
    rng = np.random.default_rng(3)
    w, u = rng.normal(size=y.shape), rng.normal(size=log.shape)
    less = np.sum(w * y, -1) - u
    arrays = [indptr, indices, q, k, v] if bias is None else [indptr, indices, q, k, v, bias]
    found = csr_attention_vjp(
        Operands(*map(jnp.asarray, arrays)),
        *(jnp.asarray(x, jnp.float32) for x in (log, w, less)),
        scale=0.3,
        wanted=Wanted(biases=True),
        schedule=Schedule(threads=64, ctas=3, interpret=True),
    )[:4]
    want = slopes(indptr, indices, *wide, bias, log, w, less, 0.3)
    for got, wanted in zip(found, want, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def of_gat(q, k, e):
    s = q + k * e
    return jnp.where(s > 0, s, 0.2 * s)


def by_hand(q, k, e):
    """The score and its derivatives by q, k and e."""
    s = q + k * e
    slope = np.where(s > 0, 1, 0.2)
    return slope * s, slope, slope * e, slope * k


@pytest.mark.parametrize(("heads", "f"), [(2, 8), (8, 16), (1, 5)])
@pytest.mark.parametrize("ctas", [1, 3])
def test_scores_of_one_number_a_head(heads, f, ctas):
    indptr, indices, q, k, v, _ = operands([3, 0, 40, 1, 0, 7, 90, 2], heads, 1, f)
    q, k = q[:, :, 0], k[:, :, 0]
    rng = np.random.default_rng(5)
    edges = rng.normal(size=(indices.size, heads)).astype(np.float32)
    score = Score.of(of_gat, (), 0, [()] * 3)
    given = Operands(*map(jnp.asarray, (indptr, indices, q, k, v)), edges=jnp.asarray(edges))
    schedule = Schedule(threads=64, ctas=ctas, interpret=True)
    how = {"scale": 0.7, "score": score, "schedule": schedule}
    y, log = csr_attention(given, **how)
    w, u = rng.normal(size=y.shape), rng.normal(size=log.shape)
    want_y, want_log = np.zeros(y.shape), np.full(log.shape, -np.inf)
    less = np.zeros(log.shape)
    want = [np.zeros(x.shape) for x in (q, k, v, edges)]
    for i in range(len(indptr) - 1):
        at = slice(indptr[i], indptr[i + 1])
        js = indices[at]
        if len(js) == 0:
            continue
        s, by_q, by_k, by_e = by_hand(q[i].astype(float), k[js], edges[at])
        want_log[i] = np.log(np.exp(0.7 * s).sum(0))
        p = np.exp(0.7 * s - want_log[i])
        want_y[i] = np.einsum("jh,jhf->hf", p, v[js])
        less[i] = np.sum(w[i] * want_y[i], -1) - u[i]
        ds = 0.7 * p * (np.einsum("hf,jhf->jh", w[i], v[js]) - less[i])
        want[0][i] = (ds * by_q).sum(0)
        np.add.at(want[1], js, ds * by_k)
        np.add.at(want[2], js, p[..., None] * w[i])
        want[3][at] = ds * by_e
    np.testing.assert_allclose(y, want_y, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(log, want_log, rtol=1e-4, atol=1e-5)
    rest = (jnp.asarray(x, jnp.float32) for x in (want_log, w, less))
    found = csr_attention_vjp(given, *rest, **how)
    for got, wanted in zip((*found[:3], found[4]), want, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_cotangents_are_one_launch():
    indptr, indices, q, k, v, bias = operands([3, 0, 40], 8, 16, 16, (8,))
    w, less = q, q[:, :, 0]
    given = Operands(*map(jnp.asarray, (indptr, indices, q, k, v, bias)))
    cotangents = functools.partial(csr_attention_vjp, scale=0.25, wanted=Wanted(biases=True))
    text = lower(cotangents, given, *map(jnp.asarray, (less, w, less)))
    assert text.count("custom_call @mosaic_gpu") == 1
