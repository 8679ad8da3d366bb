"""The work of a sparse product, from the patterns of its operands: products and searches."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...._core.compilation import known_while_tracing
from ....algebra.masks import Mask
from ....formats import SparseMatrix

BLOCK = 1 << 16  # entries whose products are counted together


def count_on_host(A: SparseMatrix, B: SparseMatrix) -> int:
    """The products, where reading the arrays costs nothing and no program need be compiled."""
    return int(_lengths(A, 1) @ _lengths(B, 0))


def searches_on_host(A: SparseMatrix, B: SparseMatrix, mask: Mask) -> int:
    """The entries of the shorter list of each place of the mask."""
    row, col = _places(mask.source)
    return int(np.minimum(_lengths(A, 0)[row], _lengths(B, 1)[col]).sum())


def count_on_device(A: SparseMatrix, B: SparseMatrix, mask: Mask | None) -> tuple[int, int | None]:
    """The number of products and, with a mask, about that of searches: one program, one sync."""
    with known_while_tracing():
        parts, searches = jax.device_get(_count(A, B, mask))
    high, low = (int(part.astype(np.int64).sum()) for part in parts)
    return (high << 16) + low, None if searches is None else int(searches)


def _places(A: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries, on the host."""
    if A.compressed is None:
        row, col = (np.asarray(v) for v in A.rowcol())
        valid = row < A.shape[0]
        return row[valid], col[valid]
    lengths: Any = np.diff(np.asarray(A.indptr))
    major = np.repeat(np.arange(lengths.size), lengths)
    minor = np.asarray(A.indices)[: major.size]
    return (major, minor) if A.compressed == 0 else (minor, major)


def _lengths(A: Any, axis: int) -> np.ndarray:
    """The number of entries of each row (axis 0) or column (axis 1), on the host."""
    if A.compressed == axis:
        return np.diff(np.asarray(A.indptr).astype(np.int64))
    return np.bincount(_places(A)[axis], minlength=A.shape[axis])


@jax.jit
def _count(A: SparseMatrix, B: SparseMatrix, mask: Mask | None) -> Any:
    return _count_products(A, B), None if mask is None else _count_searches(A, B, mask)


def _count_products(A: SparseMatrix, B: SparseMatrix) -> jax.Array:
    """(2, k) sums of the high and of the low 16 bits of what 2^16 entries of A select at a time.

    Neither wraps, and the host adds them up: no 64-bit integers, no prefix sum.
    """
    row, col = A.rowcol()
    each = jnp.take(_lengths_of_rows(B), col, mode="clip")
    each = jnp.where(row < A.shape[0], each, 0).astype(jnp.uint32)
    each = jnp.pad(each, (0, -A.nse % BLOCK)).reshape(-1, BLOCK)
    halves = jnp.stack([each >> 16, each & 0xFFFF])
    return jnp.sum(halves, axis=2, dtype=jnp.uint32)


def _count_searches(A: SparseMatrix, B: SparseMatrix, mask: Mask) -> jax.Array:
    row, col = mask.source.rowcol()
    a, b = _lengths_of_rows(A), _lengths_of_rows(B.T)
    shorter = jnp.minimum(a.at[row].get(mode="fill", fill_value=0), b.at[col].get(mode="clip"))
    return jnp.sum(shorter, dtype=jnp.float32)  # without 64-bit integers, and near enough


def _lengths_of_rows(A: Any) -> jax.Array:
    if A.compressed == 0:
        return jnp.diff(A.indptr)
    return jnp.zeros(A.shape[0], jnp.int32).at[A.rowcol()[0]].add(1, mode="drop")
