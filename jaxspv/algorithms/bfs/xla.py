"""BFS one level at a time with operations on whole frontiers: the traversal for a GPU under XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pallas_kernels.layouts.adjacency import Adjacency

from ..common.frontier import Queue, append, distinct_or_dropped, edges_of, one_of_each, rows_of
from .direction import pull_is_cheaper

# Edges of one chunk of a push: small frontiers must not pay for large buffers.
CHUNKS = (1 << 12, 1 << 16, 1 << 20)
PROBES = 8  # in-neighbours that a pull looks at before it lists the vertices still unreached


class State(NamedTuple):
    """State between levels.

    Attributes:
        queue: its frontier holds the vertices of level `depth` that have out-edges.
        depth: int32.
        size: int32, vertices of level `depth`.
        reached: int32, vertices of all levels up to it.
        edges: int32, out-edges of level `depth`.
        levels: (n,) int32, -1 where unreached.
        parents: (n,) int32 or None; `NONE` where unreached.
        claims: (n,) int32, scratch of `one_of_each`.
    """

    queue: Queue
    depth: Array
    size: Array
    reached: Array
    edges: Array
    levels: Array
    parents: Array | None
    claims: Array


NONE = np.int32(np.iinfo(np.int32).max)  # no parent yet; what a minimum of parents starts from


def bfs_xla(
    graph: Adjacency,
    source: Array,
    stop: Callable[[Array, Array, Array], Any] | None,
    parents: bool,
    deterministic: bool,
) -> tuple[Array, Array | None, Array]:
    """Levels, parents and the number of levels; arguments as in `search`, in-edges or None.

    A level is pushed in the smallest of a few static capacities that holds its edges, or pulled.
    For each of these kinds there is a loop that runs as long as levels of its kind follow each
    other: a `switch` would copy the arrays of n entries in every level. About a dozen kernels and
    one predicate a level. With `deterministic` nothing is pulled and parents are a scatter-min.

    Cost: O(edges of the frontier * log) a level pushed, at least `CHUNKS[0]`; O(n + edges probed) a
        level pulled.
    Source: Beamer, Asanovic, Patterson, "Direction-optimizing breadth-first search", SC 2012.
    """
    n, nse = graph.n, graph.indices.shape[0]
    out, inn = graph[:2], graph[2:]
    pulls = graph.in_indices is not None and not (deterministic and parents)
    chunks = [c for c in CHUNKS if c < nse] or [min(nse, CHUNKS[-1])]
    kinds = [_push_vectorised(out, c, deterministic) for c in chunks]
    if chunks[-1] < nse:
        kinds.append(_push_in_chunks(out, chunks[-1], deterministic))
    if pulls:
        kinds.append(_pull(out, inn, chunks[-1]))

    def going(s: State):
        more = s.size > 0
        return more if stop is None else more & ~jnp.asarray(stop(s.depth, s.levels, s.size))

    def kind(s: State):
        which = jnp.sum(s.edges > jnp.array(chunks, jnp.int32), dtype=jnp.int32)
        if pulls:
            pull = pull_is_cheaper(s.edges, s.reached, n, nse)
            which = jnp.where(pull, len(kinds) - 1, which)
        return which

    def run_of_each(s: State):
        for which, one_level in enumerate(kinds):
            s = lax.while_loop(lambda s, w=which: going(s) & (kind(s) == w), one_level, s)
        return s

    end = lax.while_loop(going, run_of_each, _start(graph.indptr, source, parents))
    tree = None if end.parents is None else jnp.where(end.parents == NONE, -1, end.parents)
    return end.levels, tree, end.depth + (end.size > 0)


def _start(indptr: Array, source: Array, parents: bool) -> State:
    n = indptr.shape[0] - 1
    valid = (source >= 0) & (source < n)
    at = jnp.where(valid, source, n)
    levels = jnp.full(n, -1, jnp.int32).at[at].set(0, mode="drop")
    tree = jnp.full(n, NONE, jnp.int32).at[at].set(source, mode="drop") if parents else None
    edges = jnp.where(valid, indptr[jnp.minimum(at + 1, n)] - indptr[at], 0)
    items = jnp.zeros(n, jnp.int32).at[0].set(at)
    queue = Queue(items, jnp.int32(0), (edges > 0).astype(jnp.int32))
    one = valid.astype(jnp.int32)
    claims = jnp.zeros(n, jnp.int32)
    return State(queue, jnp.int32(0), one, one, edges, levels, tree, claims)


def _degrees(indptr: Array, vertices: Array) -> Array:
    begin, end = (indptr.at[vertices + k].get(mode="clip") for k in (0, 1))
    return end - begin


def _next_level(s: State, size: Array, edges: Array) -> State:
    """The state whose new vertices, already queued and marked, are its frontier."""
    return s._replace(depth=s.depth + 1, size=size, reached=s.reached + size, edges=edges)


def _visit(out, s: State, edges, deterministic: bool) -> tuple[State, Array, Array]:
    """Follows edges: (state with the new vertices queued and marked, their number, their edges)."""
    indptr, indices = out
    n = s.levels.shape[0]
    v = jnp.where(edges.valid, indices.at[edges.slot].get(mode="clip"), 0)
    level = s.levels[v]
    claims, keep = one_of_each(s.claims, v, edges.valid & (level < 0))
    index = distinct_or_dropped(v, keep, n)
    levels = s.levels.at[index].set(s.depth + 1, mode="drop", unique_indices=True)
    tree = s.parents
    if tree is not None and deterministic:
        tight = edges.valid & ((level < 0) | (level == s.depth + 1))
        tree = tree.at[jnp.where(tight, v, n)].min(edges.tail, mode="drop")
    elif tree is not None:
        tree = tree.at[index].set(edges.tail, mode="drop", unique_indices=True)
    degree = jnp.where(keep, _degrees(indptr, v), 0)
    queue = append(s.queue, v, degree > 0)
    s = s._replace(queue=queue, levels=levels, parents=tree, claims=claims)
    return s, jnp.sum(keep, dtype=jnp.int32), jnp.sum(degree, dtype=jnp.int32)


def _push_vectorised(out, capacity: int, deterministic: bool):
    """A push of at most `capacity` edges (hence vertices: the queue holds none without edges)."""

    def push(s: State) -> State:
        vertices, rows = rows_of(out[0], s.queue, min(capacity, s.levels.shape[0]))
        edges = edges_of(vertices, rows, jnp.int32(0), capacity)
        head = s.queue.tail
        s, size, degree = _visit(out, s, edges, deterministic)
        return _next_level(s._replace(queue=s.queue._replace(head=head)), size, degree)

    return push


def _push_in_chunks(out, chunk: int, deterministic: bool):
    """A push of any number of edges, `chunk` at a time."""

    def push(s: State) -> State:
        vertices, rows = rows_of(out[0], s.queue, s.levels.shape[0])
        head = s.queue.tail

        def one(c):
            first, s, size, degree = c
            s, more, edges = _visit(out, s, edges_of(vertices, rows, first, chunk), deterministic)
            # The last chunk begins within int32; its end may not, and such numbers are not valid.
            return first + chunk, s, size + more, degree + edges

        zero = jnp.int32(0)
        _, s, size, degree = lax.while_loop(
            lambda c: (c[0] < rows.total) & (c[0] >= 0), one, (zero, s, zero, zero)
        )
        return _next_level(s._replace(queue=s.queue._replace(head=head)), size, degree)

    return push


def _pull(out, inn, chunk: int):
    """Every unreached vertex looks for an in-neighbour of level `depth`: first among `PROBES`
    in-neighbours, vectorised; vertices that found none go through the rest in chunks."""
    indptr, indices = inn

    def pull(s: State) -> State:
        n = s.levels.shape[0]
        begin, degree = indptr[:-1], jnp.diff(indptr)
        parent = jnp.full(n, NONE, jnp.int32)
        for k in reversed(range(PROBES)):
            u = indices.at[begin + k].get(mode="clip")
            hit = (k < degree) & (s.levels.at[u].get(mode="clip") == s.depth)
            parent = jnp.where(hit, u, parent)
        unreached = s.levels < 0
        found = unreached & (parent != NONE)
        rest = unreached & ~found & (degree > PROBES)
        parent = _pull_rest(s, inn, rest, jnp.where(found, parent, NONE), chunk)
        found = unreached & (parent != NONE)
        every = jnp.arange(n, dtype=jnp.int32)
        leaving = jnp.where(found, jnp.diff(out[0]), 0)
        queue = append(s.queue._replace(head=s.queue.tail), every, leaving > 0)
        s = s._replace(queue=queue, levels=jnp.where(found, s.depth + 1, s.levels))
        if s.parents is not None:
            s = s._replace(parents=jnp.where(found, parent, s.parents))
        total = jnp.sum(leaving, dtype=jnp.int32)
        return _next_level(s, jnp.sum(found, dtype=jnp.int32), total)

    return pull


def _pull_rest(s: State, inn, rest: Array, parent: Array, chunk: int) -> Array:
    """`parent` with the in-edges of the vertices in `rest` looked at too, beyond the first ones."""
    indptr, indices = inn
    n = rest.shape[0]
    every = jnp.arange(n, dtype=jnp.int32)
    none = Queue(jnp.zeros(n, jnp.int32), jnp.int32(0), jnp.int32(0))
    queue = append(none, every, rest)

    vertices, rows = rows_of(indptr, queue, n)

    def one(c):
        first, parent = c
        edges = edges_of(vertices, rows, first, chunk)
        u = indices.at[edges.slot].get(mode="clip")
        hit = edges.valid & (s.levels.at[u].get(mode="clip") == s.depth)
        return first + chunk, parent.at[jnp.where(hit, edges.tail, n)].set(u, mode="drop")

    _, parent = lax.while_loop(
        lambda c: (c[0] < rows.total) & (c[0] >= 0), one, (jnp.int32(0), parent)
    )
    return parent
