"""BFS from up to 32 sources together on a CPU: a bit a source, a word a vertex, native loops."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pallas_kernels.layouts.adjacency import Adjacency

from ...._core.native_loops import read_natural as read
from ...._core.native_loops import write

SOURCES = 32  # bits of a word
# How a level is processed: push the listed frontier and list the new one; push it and find the new
# one by a pass over all vertices; pull.
LISTED, PUSHED, PULLED = 0, 1, 2
NARROW = 16  # frontiers with fewer edges than one in NARROW vertices are LISTED
# Cost of an edge pushed and of a vertex pulled, in edges pulled.
PUSH, VERTEX = 2.0, 2.0
BLOCK = 4  # edges whose words a pull combines without a branch
# A search that has read less than one in HOPELESS of all edges of all sources by level
# EARLY_LEVEL has many levels: sources share few edges, and one search for each is faster.
EARLY_LEVEL, HOPELESS = 32, 8


class State(NamedTuple):
    """State between levels.

    Attributes:
        depth: int32, the level of the frontier.
        way: int32, how the next level is processed.
        begin, end: int32; `queue[begin:end]` are the vertices of the frontier, each once; anything
            if the next level is PULLED.
        edges: int32, out-edges of the frontier.
        looked: float32, out-edges of all frontiers before.
        missing: int32, in-edges of the vertices that some source has not reached.
        queue: (2 n + 1,) int32: frontiers, alternately in the first and the second half.
        seen: (n,) uint32; bit s of a vertex's word is set where source s has reached it.
        old: (n,) uint32, the same; a level reads this one and writes the other.
        planes: (bits, n) uint32, the levels in binary: bit s of planes[j, v] is bit j of the
            level of vertex v from source s.
    """

    depth: Array
    way: Array
    begin: Array
    end: Array
    edges: Array
    looked: Array
    missing: Array
    queue: Array
    seen: Array
    old: Array
    planes: Array


def bfs_sources_cpu(graph: Adjacency, sources: Array, bits: int) -> tuple[Array, Array, Array]:
    """Search from at most 32 sources: (planes, seen, whether it is complete).

    A vertex has one word, a bit a source. An edge is read once for all sources that have reached
    its tail, and its head receives the whole word of the tail: sources that reached the tail before
    the last level have reached the head already. A level is pushed (every out-edge of the frontier)
    or pulled (every vertex that some source has not reached reads the words of its in-neighbours
    until no bit is missing), whichever has fewer edges. Levels are stored in binary, a word for
    each bit of the level, so that all sources of a vertex share the write. The search ends early
    if levels need more than `bits` bits, or are predicted to.

    Cost: the edges of the frontiers' union in every level; for a pulled level also a few passes
    over words of all vertices, which are vectorised; for a pushed one a few words for every vertex
    found. `levels_of` and `parents_of` make results of it.

    Source: Then et al., "The more the merrier: efficient multi-source graph traversal", VLDB 2014.
    """
    indptr, indices, in_indptr, in_indices = graph
    count = sources.shape[0]
    every = np.uint32((1 << count) - 1)

    def step(s: State) -> State:
        tail, queue, seen = _push_and_list(s, indptr, indices)
        seen = _push(s, seen, indptr, indices)
        if in_indptr is not None and in_indices is not None:
            seen = _pull(s, seen, every, in_indptr, in_indices)
        looked = s.looked + s.edges.astype(jnp.float32)
        found = s._replace(depth=s.depth + 1, looked=looked, queue=queue, seen=seen)
        found = _enter_listed(found, tail, every, indptr, in_indptr)
        return _enter_all(found, s.way, every, indptr, in_indptr)

    def going(s: State):
        all_edges = indptr[-1].astype(jnp.float32) * count
        hopeless = (s.depth == EARLY_LEVEL) & (s.looked * HOPELESS < all_edges)
        return (s.edges > 0) & (s.missing > 0) & (s.depth < 2**bits - 1) & ~hopeless

    end = lax.while_loop(going, step, _start(indptr, in_indptr, sources, bits))
    return end.planes, end.seen, (end.edges == 0) | (end.missing == 0)


def _start(indptr, in_indptr, sources, planes) -> State:
    n, count = indptr.shape[0] - 1, sources.shape[0]
    number = jnp.arange(count, dtype=jnp.int32)
    inside = (sources >= 0) & (sources < n)
    bits = jnp.uint32(1) << number.astype(jnp.uint32)
    word = jnp.zeros(n, jnp.uint32)
    word = word.at[jnp.where(inside, sources, n)].add(bits, mode="drop")
    twice = jnp.any(jnp.tril(sources[:, None] == sources, -1), axis=1)
    new = inside & ~twice
    place = jnp.where(new, jnp.cumsum(new) - 1, 2 * n + 1)
    queue = jnp.zeros(2 * n + 1, jnp.int32).at[place].set(sources, mode="drop")
    vertex = jnp.clip(sources, 0, n - 1)
    degree = indptr[vertex + 1] - indptr[vertex]
    return State(
        depth=jnp.int32(0),
        way=jnp.int32(LISTED),
        begin=jnp.int32(0),
        end=jnp.sum(new, dtype=jnp.int32),
        edges=jnp.sum(jnp.where(new, degree, 0), dtype=jnp.int32),
        looked=jnp.float32(0),
        missing=jnp.int32(1) if in_indptr is None else in_indptr[-1],
        queue=queue,
        seen=word,
        old=word,
        planes=jnp.zeros((planes, n), jnp.uint32),
    )


def _push_and_list(s: State, indptr, indices) -> tuple[Array, Array, Array]:
    """If LISTED: follows the out-edges of the frontier: (end of the queue, queue, seen)."""
    n = s.seen.shape[0]

    def vertex(c):
        i, tail, queue, seen = c
        u = read(queue, i)
        word, last = read(s.old, u), read(indptr, u + 1)

        def edge(c):
            e, tail, queue, seen = c

            def nothing_new(e):
                return (e < last) & (word & ~read(seen, read(indices, e)) == 0)

            e = lax.while_loop(nothing_new, lambda e: e + 1, e)
            v = read(indices, e)

            def record(c):
                _, v, known, first, tail, queue, seen = c
                return (
                    jnp.bool_(False),
                    v,
                    known,
                    first,
                    tail + first,
                    write(queue, tail, v),
                    write(seen, v, known | word),
                )

            known = read(seen, v)
            first = (known == read(s.old, v)).astype(jnp.int32)
            turn = (e < last, v, known, first, tail, queue, seen)
            return e + 1, *lax.while_loop(lambda c: c[0], record, turn)[4:]

        first = (read(indptr, u), tail, queue, seen)
        return i + 1, *lax.while_loop(lambda c: c[0] < last, edge, first)[1:]

    begin = jnp.where(s.way == LISTED, s.begin, s.end)
    first = (begin, jnp.where(s.begin < n, jnp.int32(n), 0), s.queue, s.seen)
    return lax.while_loop(lambda c: c[0] < s.end, vertex, first)[1:]


def _push(s: State, seen: Array, indptr, indices) -> Array:
    """`seen` after the level if it is PUSHED: out-neighbours take the words of the frontier."""

    def vertex(c):
        i, seen = c
        u = read(s.queue, i)
        word, last = read(s.old, u), read(indptr, u + 1)

        def edge(c):
            e, seen = c
            v = read(indices, e)
            return e + 1, write(seen, v, read(seen, v) | word)

        return i + 1, lax.while_loop(lambda c: c[0] < last, edge, (read(indptr, u), seen))[1]

    begin = jnp.where(s.way == PUSHED, s.begin, s.end)
    return lax.while_loop(lambda c: c[0] < s.end, vertex, (begin, seen))[1]


def _pull(s: State, seen: Array, every, indptr, indices) -> Array:
    """`seen` after the level if it is PULLED: a vertex takes the words of its in-neighbours."""
    n = seen.shape[0]

    def vertex(c):
        v, e, seen = c
        last = read(indptr, v + 1)

        def combine(c):
            e, word = c
            for k in range(BLOCK):
                other = read(s.old, read(indices, e + k))
                word = word | jnp.where(e + k < last, other, np.uint32(0))
            return e + BLOCK, word

        _, word = lax.while_loop(
            lambda c: (c[0] < last) & (c[1] != every), combine, (e, read(s.old, v))
        )
        return v + 1, last, write(seen, v, word)

    begin = jnp.where(s.way == PULLED, 0, n).astype(jnp.int32)
    return lax.while_loop(lambda c: c[0] < n, vertex, (begin, indptr[0], seen))[2]


def _enter_listed(s: State, tail, every, indptr, in_indptr) -> State:
    """Makes the listed vertices the frontier: writes their levels, counts their edges."""
    n = s.seen.shape[0]
    begin = jnp.where(s.begin < n, jnp.int32(n), 0)

    def enter(c):
        i, edges, missing, old, planes = c
        v = read(s.queue, i)
        word = read(s.seen, v)

        def note(c):  # one turn, so that what it is given is computed once
            _, new, old, planes = c

            def plane(c):
                bits, planes = c
                j = lax.population_count((bits & -bits) - 1)
                noted = lax.dynamic_slice(planes, (j, v), (1, 1), allow_negative_indices=False)
                planes = lax.dynamic_update_slice(
                    planes, noted | new, (j, v), allow_negative_indices=False
                )
                return bits & (bits - 1), planes

            planes = lax.while_loop(lambda c: c[0] != 0, plane, (s.depth, planes))[1]
            return jnp.bool_(False), new, write(old, v, word), planes

        first = (jnp.bool_(True), word ^ read(old, v), old, planes)
        old, planes = lax.while_loop(lambda c: c[0], note, first)[2:]
        edges = edges + read(indptr, v + 1) - read(indptr, v)
        if in_indptr is not None:
            degree = read(in_indptr, v + 1) - read(in_indptr, v)
            missing = missing - jnp.where(word == every, degree, 0)
        return i + 1, edges, missing, old, planes

    first = (begin, jnp.int32(0), s.missing, s.old, s.planes)
    _, edges, missing, old, planes = lax.while_loop(lambda c: c[0] < tail, enter, first)
    return s._replace(
        way=_way(n, edges, missing, in_indptr),
        begin=begin,
        end=tail,
        edges=edges,
        missing=missing,
        old=old,
        planes=planes,
    )


def _way(n: int, edges, missing, in_indptr) -> Array:
    """How to process a level with that many edges to push or to pull."""
    way = jnp.where(edges > n // NARROW, PUSHED, LISTED)
    if in_indptr is not None:
        pulled = missing.astype(jnp.float32) + VERTEX * n
        way = jnp.where((edges.astype(jnp.float32) * PUSH > pulled), PULLED, way)
    return way.astype(jnp.int32)


def _enter_all(s: State, way, every, indptr, in_indptr) -> State:
    """The same over all vertices, if the level was not LISTED; lists those to be pushed."""
    n = s.seen.shape[0]

    def enter(c):
        _, s = c
        new = s.seen ^ s.old
        edges = jnp.sum(jnp.where(new != 0, jnp.diff(indptr), 0), dtype=jnp.int32)
        missing = s.missing
        if in_indptr is not None:
            missing = jnp.sum(jnp.where(s.seen != every, jnp.diff(in_indptr), 0), dtype=jnp.int32)
        way = _way(n, edges, missing, in_indptr)

        def plane(c):
            bits, planes = c
            j = lax.population_count((bits & -bits) - 1)
            place = (j, jnp.int32(0))  # a bare 0 is int64 under x64
            noted = lax.dynamic_slice(planes, place, (1, n)) | new
            return bits & (bits - 1), lax.dynamic_update_slice(planes, noted, place)

        planes = lax.while_loop(lambda c: c[0] != 0, plane, (s.depth, s.planes))[1]

        def put(c):
            v, tail, queue = c
            found = (read(s.seen, v) != read(s.old, v)).astype(jnp.int32)
            return v + 1, tail + found, write(queue, tail, v)

        first = (jnp.where(way == PULLED, n, 0).astype(jnp.int32), s.begin, s.queue)
        _, tail, queue = lax.while_loop(lambda c: c[0] < n, put, first)
        return jnp.bool_(False), s._replace(
            way=way, end=tail, edges=edges, missing=missing, queue=queue, old=s.seen, planes=planes
        )

    return lax.while_loop(lambda c: c[0], enter, (way != LISTED, s))[1]
