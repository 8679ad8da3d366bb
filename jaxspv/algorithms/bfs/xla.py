"""BFS on every platform: the edges of a frontier in chunks, or a bit a source, 32 a word."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from pallas_kernels.layouts.adjacency import Adjacency

from ..._core.loops import while_going
from ...formats.csr import sort_by
from ...formats.offsets import search_rows
from ...ops.products.common.product import Fold
from ...ops.products.spmv.xla import csr_spmv
from ..common.frontier import Edges, Queue, append, distinct_or_dropped, for_edges, one_of_each

SOURCES = 32  # a word


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


# ---- Several sources together ----


def search_sources(
    graph: Adjacency, sources: Array, *, parents: bool = True
) -> tuple[Array, Array | None]:
    """Breadth-first search from every one of `sources`, which may be out of range.

    Every level combines the words of all in-neighbours by `or`: O(nse) a level, no atomics. Words
    of 32 sources come one after the other.

    Args:
        graph: as for `search`; with its in-edges, or they are made here by a sort.
        sources: (count,) int32.
        parents: whether to compute them, the smallest of several, static.

    Returns:
        levels (count, n) int32, -1 where unreached; parents the same, or None.
    """
    n = graph.n
    if n == 0 or graph.indices.shape[0] == 0:
        return lax.map(lambda source: search(graph, source, parents=parents)[:2], sources)
    if graph.in_indices is None:
        tail = search_rows(graph.indptr, graph.indices.shape[0])
        ends, slots = sort_by(jnp.where(tail < n, graph.indices, n), n)
        graph = graph._replace(in_indptr=ends, in_indices=tail[slots])
    return in_words(lambda some: _search(graph, some, parents), sources, n)


def in_words(search: Callable[[Array], Any], sources: Array, n: int) -> Any:
    """`search(sources)` where it takes at most 32 of them: words of 32 after each other.

    A leaf of the result has a row for each source, or is one number for all of a word.
    """
    count = sources.shape[0]
    if 0 < count <= SOURCES:
        result = search(sources)
    else:
        words = max(-(-count // SOURCES), 1)
        padded = jnp.pad(sources, (0, words * SOURCES - count), constant_values=n)
        result = lax.map(search, padded.reshape(words, SOURCES))
        result = jax.tree.map(
            lambda v: lax.collapse(v, 0, 2)[:count] if v.ndim > 1 else jnp.max(v), result
        )
    return jax.tree.map(lambda v: v if v.ndim else jnp.broadcast_to(v, (count,)), result)


def joined_words(indptr: Array, indices: Array, words: Array) -> Array:
    """For each row the union of the words of its columns."""
    return csr_spmv(indptr, indices, 1, words, Fold(lambda _, word: word, lax.bitwise_or, 0))


def _search(graph: Adjacency, sources: Array, parents: bool) -> tuple[Array, Array | None]:
    indptr, indices = graph.in_indptr, graph.in_indices
    assert indptr is not None and indices is not None
    at_source = jnp.arange(graph.n, dtype=jnp.int32) == sources[:, None]
    levels = word_levels(functools.partial(joined_words, indptr, indices), at_source)
    tree = parents_of_each(graph, sources, levels) if parents else None
    return levels, tree


def word_levels(
    joined: Callable[[Array], Array],
    at_source: Array,
    some: Callable[[Array], Array] = lambda words: jnp.any(words != 0),
) -> Array:
    """(count, n) levels from all sources in one traversal.

    Args:
        joined: from a word of each vertex to the union of those of its in-neighbours.
        at_source: (count, n) bool.
        some: whether a bit is set in some word.
    """
    bit = jnp.uint32(1) << jnp.arange(at_source.shape[0], dtype=jnp.uint32)[:, None]

    def step(c):
        depth, words, seen, levels, _ = c
        words = joined(words) & ~seen
        levels = jnp.where(words & bit != 0, depth + 1, levels)
        return depth + 1, words, seen | words, levels, some(words)

    words = jnp.sum(jnp.where(at_source, bit, 0), axis=0, dtype=jnp.uint32)
    levels = jnp.where(at_source, jnp.int32(0), jnp.int32(-1))
    first = jnp.int32(0), words, words, levels, some(words)
    return while_going(step, first)[3]


def parents_of_each(graph: Adjacency, sources: Array, levels: Array) -> Array:
    """The `smallest_parents` of every source."""
    return lax.map(lambda c: smallest_parents(*graph[:2], *c), (sources, levels))
