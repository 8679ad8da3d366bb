"""Parents from levels: the smallest in-neighbour that is one level nearer to the source.

Two forms: on a CPU a loop over the edges of reached vertices takes half the time of the scatter
that runs elsewhere.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from ..._core.native_loops import is_negative, read, write
from ...formats.base import search_rows


def smallest_parents(indptr: Array, indices: Array, source: Array, levels: Array) -> Array:
    """(n,) int32, the source its own, -1 where unreached; for every platform. O(nse)."""
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


def smallest_parents_cpu(indptr: Array, indices: Array, source: Array, levels: Array) -> Array:
    """The same in native loops: edges in ascending order of their tail, the first one wins."""
    n = levels.shape[0]
    root = jnp.clip(source, 0, n - 1)
    at = jnp.where(source < 0, n, source)
    parents = jnp.full(n, -1, jnp.int32).at[at].set(source, mode="drop")

    def of_vertex(c):
        u, parents = c
        level = read(levels, u)
        last = read(indptr, u + 1)
        first = jnp.where(level < 0, last, read(indptr, u))

        def of_edge(c):
            e, parents = c
            v = read(indices, e)
            new = is_negative(read(parents, v)) * (read(levels, v) == level + 1)
            at, value = jnp.where(new > 0, v, root), jnp.where(new > 0, u, root)
            return e + 1, write(parents, at, value)

        _, parents = lax.while_loop(lambda c: c[0] < last, of_edge, (first, parents))
        return u + 1, parents

    # Nothing is reached from a source out of range, and the root's mark must not be repeated then.
    begin = jnp.where((source >= 0) & (source < n), 0, n).astype(jnp.int32)
    return lax.while_loop(lambda c: c[0] < n, of_vertex, (begin, parents))[1]
