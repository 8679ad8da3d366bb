"""BFS one level at a time, the edges of its frontier in chunks: on every platform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from pallas_kernels.layouts.adjacency import Adjacency

from ...formats.offsets import search_rows
from ..common.frontier import Edges, Queue, append, distinct_or_dropped, for_edges, one_of_each


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


Stop = Callable[[Array, Array, Array], Any]


class State(NamedTuple):
    """State between levels; (n,) int32 each but for the queue.

    Attributes:
        queue: what is reached, in order of discovery; its frontier is the level `depth`.
        levels: -1 where unreached.
        parents: -1 where unreached, or None.
        claims: scratch of `one_of_each`.
    """

    queue: Queue
    levels: Array
    parents: Array | None
    claims: Array


def search(
    graph: Adjacency,
    source: Array,
    *,
    stop: Stop | None = None,
    parents: bool = True,
    deterministic: bool = False,
) -> tuple[Array, Array | None, Array]:
    """Levels (n,), parents (n,) or None, the number of levels, in O(n + nse).

    `stop(level, levels, frontier_size)` is asked after each level, the source's first. Slots from
    indptr[n] on are padding; from a source out of range nothing is reached.
    """
    n, source = graph.n, jnp.asarray(source, jnp.int32)
    at_source = jnp.arange(n, dtype=jnp.int32) == source
    inside = jnp.any(at_source).astype(jnp.int32)
    levels = jnp.where(at_source, 0, -1).astype(jnp.int32)
    tree = jnp.where(at_source, source, -1) if parents and not deterministic else None
    queue = Queue(jnp.full(n, source, jnp.int32), jnp.int32(0), inside)
    depth = inside
    if n and graph.indices.shape[0]:
        start = jnp.int32(0), State(queue, levels, tree, jnp.zeros(n, jnp.int32))
        depth, (_, levels, tree, _) = _levels(graph, start, stop)
    if parents and deterministic:
        tree = smallest_parents(graph.indptr, graph.indices, source, levels)
    return levels, tree, depth


def _levels(graph: Adjacency, start: tuple[Array, State], stop: Stop | None):
    """(levels that hold a vertex, the state at the end)."""

    def size(s: State) -> Array:
        return s.queue.tail - s.queue.head

    def going(c):
        depth, s = c
        more = size(s) > 0
        return more if stop is None else more & ~jnp.asarray(stop(depth, s.levels, size(s)))

    def level(c):
        depth, s = c

        def visit(s: State, edges: Edges) -> State:
            edges = Edges(*lax.optimization_barrier(edges))  # else searched for by every reader
            v = graph.indices.at[edges.slot].get(mode="clip")
            v = jnp.where(edges.valid, v, 0)
            claims, keep = one_of_each(s.claims, v, edges.valid & (s.levels[v] < 0))
            index = distinct_or_dropped(v, keep, graph.n)
            how: Any = {"mode": "drop", "unique_indices": True}
            levels, tree = s.levels.at[index].set(depth + 1, **how), s.parents
            tree = None if tree is None else tree.at[index].set(edges.tail, **how)
            return State(append(s.queue, v, keep), levels, tree, claims)

        s = for_edges(graph.indptr, graph.indices.shape[0], s.queue, s, visit)
        return depth + 1, s._replace(queue=s.queue._replace(head=c[1].queue.tail))

    depth, s = lax.while_loop(going, level, start)
    return depth + (size(s) > 0), s
