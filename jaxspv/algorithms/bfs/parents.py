"""Parents from levels: the smallest in-neighbour that is one level nearer to the source."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ...formats.base import search_rows


def smallest_parents(indptr: Array, indices: Array, source: Array, levels: Array) -> Array:
    """(n,) int32, the source its own, -1 where unreached. O(nse)."""
    return parents_by_entries(search_rows(indptr, indices.shape[0]), indices, source, levels)


def parents_by_entries(row: Array, col: Array, source: Array, levels: Array) -> Array:
    """The same from the entries (row, col) in any order; padding has row n."""
    n = levels.shape[0]
    above, below = (jnp.take(levels, v, mode="clip") for v in (row, col))
    tight = (row < n) & (above >= 0) & (below == above + 1)
    best = jnp.full(n, n, jnp.int32).at[jnp.where(tight, col, n)].min(row, mode="drop")
    vertex = jnp.arange(n, dtype=jnp.int32)
    best = jnp.where((vertex == source) & (levels == 0), source, best)
    return jnp.where(levels >= 0, best, -1)
