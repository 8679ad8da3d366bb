"""Matrices and dense references that tests of operations for learning share: NumPy alone."""

import jax.numpy as jnp
import numpy as np

import jaxspv as jsp


def pattern(m=37, n=29, density=0.15, seed=0):
    """(rows, columns) of a random matrix, with an empty row and a full one."""
    valid = np.random.default_rng(seed).random((m, n)) < density
    valid[2], valid[5] = False, True
    return valid.nonzero()


def made(row, col, shape, values=None, *, format="csr", spare=5, fill=np.nan):
    """The matrix of entries in the order of rows, then columns; `fill` in its padding."""
    values = np.ones(row.size, np.float32) if values is None else values
    values = np.concatenate([values, np.full((spare, *values.shape[1:]), fill, values.dtype)])
    row, col = (
        np.pad(i, (0, spare), constant_values=n) for i, n in zip((row, col), shape, strict=True)
    )
    row, col = row.astype(np.int32), col.astype(np.int32)
    arrays = map(jnp.asarray, (values, row, col))
    return jsp.COO(*arrays, jnp.asarray(False), shape).asformat(format)


def normal(seed, *shape, dtype=np.float32):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


def operands(heads, d, seed=0, m=37, n=29):
    """Q, K and V of `attention`."""
    return (
        normal(seed, m, *heads, d),
        normal(seed + 1, n, *heads, d),
        normal(seed + 2, n, *heads, 3),
    )


def padded(values, A, fill=np.nan):
    """What entries have of their own, with `fill` for the padding of A."""
    spare = jnp.full((A.nse - values.shape[0], *values.shape[1:]), fill, values.dtype)
    return jnp.concatenate([values, spare])


def attended(row, col, m, score, V):
    """(outputs, logarithms) of attention by the definition in float64, row after row."""
    score, V = np.asarray(score, np.float64), np.asarray(V, np.float64)
    y = np.zeros((m, *V.shape[1:]))
    logs = np.full((m, *score.shape[1:]), -np.inf)
    for i in set(row.tolist()):
        s, v = score[row == i], V[col[row == i]]
        top = s.max(axis=0)
        e = np.exp(s - np.where(np.isfinite(top), top, 0))
        total = e.sum(axis=0)
        y[i] = (e[..., None] * v).sum(axis=0) / np.where(total == 0, 1, total)[..., None]
        with np.errstate(divide="ignore"):
            logs[i] = np.log(total) + np.where(np.isfinite(top), top, 0)
    return y, logs


def ulps(got, want, dtype):
    """By how many units in the last place of `dtype` numbers differ, at the largest of a row."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    size = np.maximum(np.abs(want), float(jnp.finfo(dtype).smallest_normal))
    unit = float(jnp.finfo(dtype).eps) * 2.0 ** np.floor(np.log2(size))
    return np.max(np.abs(got - want) / unit)
