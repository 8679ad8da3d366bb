"""BFS from up to 32 sources at once on a CPU: a bit a source, a word a vertex, native loops."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._scalar_loops import read, write

SOURCES = 32  # bits of a word
# Cost of an edge by direction; only the ratio matters. A pull ends where no bit is missing any
# more, so it seldom looks at all the edges that are counted for it.
PUSH, PULL = 4.0, 1.0


class Search(NamedTuple):
    """State between levels.

    Attributes:
        depth: int32, the level of the frontier.
        begin, end: int32; `queue[begin:end]` are the vertices of the frontier, each once.
        edges: int32, out-edges of the frontier.
        missing: int32, in-edges of the vertices that some source has not reached.
        queue: (2 n + 1,) int32: frontiers in turns in one half and in the other.
        words: (n,) uint32; bit s of a vertex's word is set where it is in the frontier of source
            s; zero outside of the frontier.
        seen: (n,) uint32, the sources that have reached a vertex.
        old: (n,) uint32, `seen` as it was when the level began.
        levels: (32 n,) int32, of source s and vertex v at 32 v + s.
        parents: the same, or None.
    """

    depth: Array
    begin: Array
    end: Array
    edges: Array
    missing: Array
    queue: Array
    words: Array
    seen: Array
    old: Array
    levels: Array
    parents: Array | None


def bfs_sources_sequential(
    indptr: Array,
    indices: Array,
    sources: Array,
    in_indptr: Array | None,
    in_indices: Array | None,
    parents: bool,
) -> tuple[Array, Array | None]:
    """Levels and parents, each (sources, n) and -1 where unreached; at most 32 sources.

    A vertex carries one word, a bit a source, so that an edge is looked at once for all the
    sources whose frontiers hold its tail. A level is pushed (every out-edge of the frontier) or
    pulled (every vertex that some source misses asks its in-neighbours until no bit is missing),
    whichever has fewer edges. Cost: the edges of the frontiers' union in every level, and a row of
    32 results for every vertex and level at which it is found.

    Source: Then et al., "The more the merrier: efficient multi-source graph traversal", VLDB 2014.
    """
    n, count = indptr.shape[0] - 1, sources.shape[0]
    pulls = in_indptr is not None and in_indices is not None
    every = np.uint32((1 << count) - 1)

    def step(s: Search):
        to_pull = jnp.bool_(False)
        if pulls:
            to_pull = s.edges.astype(jnp.float32) * PUSH > s.missing.astype(jnp.float32) * PULL
        found = _push(s, ~to_pull, indptr, indices)
        if pulls:
            found = _pull(s, found, to_pull, every, in_indptr, in_indices)
        return _advance(s, found, every, indptr, in_indptr)

    first = _start(indptr, in_indptr, sources, parents)
    end = lax.while_loop(lambda s: s.begin < s.end, step, first)

    def by_source(rows):
        return rows.reshape(n, SOURCES).T[:count]

    return by_source(end.levels), None if end.parents is None else by_source(end.parents)


def _start(indptr, in_indptr, sources, parents) -> Search:
    n, count = indptr.shape[0] - 1, sources.shape[0]
    number = jnp.arange(count, dtype=jnp.int32)
    inside = (sources >= 0) & (sources < n)
    at = jnp.where(inside, sources * SOURCES + number, n * SOURCES)
    nothing = jnp.full(n * SOURCES, -1, jnp.int32)
    bits = jnp.uint32(1) << number.astype(jnp.uint32)
    word = jnp.zeros(n, jnp.uint32)
    word = word.at[jnp.where(inside, sources, n)].add(bits, mode="drop")
    active = word != 0
    order = jnp.nonzero(active, size=n, fill_value=0)[0].astype(jnp.int32)
    return Search(
        depth=jnp.int32(0),
        begin=jnp.int32(0),
        end=jnp.sum(active, dtype=jnp.int32),
        edges=jnp.sum(jnp.where(active, jnp.diff(indptr), 0), dtype=jnp.int32),
        missing=jnp.int32(0) if in_indptr is None else in_indptr[-1],
        queue=jnp.concatenate([order, jnp.zeros(n + 1, jnp.int32)]),
        words=word,
        seen=word,
        old=word,
        levels=nothing.at[at].set(0, mode="drop"),
        parents=nothing.at[at].set(sources, mode="drop") if parents else None,
    )


class Found(NamedTuple):
    """What a level writes: the end and the items of the queue, `seen`, `parents` of `Search`."""

    tail: Array
    queue: Array
    seen: Array
    parents: Array | None


def _write_row(rows: Array, v: Array, word: Array, value: Array) -> Array:
    """`rows[32 v + s] = value` where bit s of `word` is set."""
    place = v * SOURCES
    row = lax.dynamic_slice(rows, (place,), (SOURCES,), allow_negative_indices=False)
    bits = (word >> jnp.arange(SOURCES, dtype=jnp.uint32)) & np.uint32(1)
    row = jnp.where(bits != 0, value, row)
    return lax.dynamic_update_slice(rows, row, (place,), allow_negative_indices=False)


def _push(s: Search, active, indptr, indices) -> Found:
    """Unless `active` is false: follows the out-edges of the frontier."""
    n = s.seen.shape[0]

    def vertex(c):
        i, found = c
        u = read(found.queue, i)
        word, last = read(s.words, u), read(indptr, u + 1)

        def edge(c):
            e, f = c

            def nothing_new(e):
                return (e < last) & (word & ~read(f.seen, read(indices, e)) == 0)

            e = lax.while_loop(nothing_new, lambda e: e + 1, e)
            v = read(indices, e)

            def record(c):
                _, v, seen, first, f = c
                return jnp.bool_(False), v, seen, first, Found(
                    f.tail + first,
                    write(f.queue, f.tail, v),
                    write(f.seen, v, seen | word),
                    None if f.parents is None else _write_row(f.parents, v, word & ~seen, u),
                )

            seen = read(f.seen, v)
            first = (seen == read(s.old, v)).astype(jnp.int32)
            f = lax.while_loop(lambda c: c[0], record, (e < last, v, seen, first, f))[-1]
            return e + 1, f

        first = (read(indptr, u), found)
        return i + 1, lax.while_loop(lambda c: c[0] < last, edge, first)[1]

    begin = jnp.where(active, s.begin, s.end)
    found = Found(jnp.where(s.begin < n, n, 0), s.queue, s.seen, s.parents)
    return lax.while_loop(lambda c: c[0] < s.end, vertex, (begin, found))[1]


def _pull(s: Search, found: Found, active, every, indptr, indices) -> Found:
    """If `active`: every vertex asks its in-neighbours for the bits that it misses."""
    n = s.seen.shape[0]

    def vertex(c):
        v, found = c
        last = read(indptr, v + 1)

        def edge(c):
            e, missing, got, parents = c

            def nothing_new(e):
                return (e < last) & (missing & read(s.words, read(indices, e)) == 0)

            e = lax.while_loop(nothing_new, lambda e: e + 1, e)
            u = read(indices, e)
            new = jnp.where(e < last, missing & read(s.words, u), np.uint32(0))
            if parents is not None:
                parents = _write_row(parents, v, new, u)
            return e + 1, missing & ~new, got | new, parents

        first = (read(indptr, v), every & ~read(found.seen, v), np.uint32(0), found.parents)
        _, missing, got, parents = lax.while_loop(
            lambda c: (c[0] < last) & (c[1] != 0), edge, first
        )
        found = Found(
            found.tail + (got != 0).astype(jnp.int32),
            write(found.queue, found.tail, v),
            write(found.seen, v, every & ~missing),
            parents,
        )
        return v + 1, found

    begin = jnp.where(active, 0, n).astype(jnp.int32)
    return lax.while_loop(lambda c: c[0] < n, vertex, (begin, found))[1]


def _advance(s: Search, found: Found, every, indptr, in_indptr) -> Search:
    """Makes what was found the frontier: its words and levels are written, its edges counted."""
    n = s.seen.shape[0]

    def clear(c):
        i, words = c
        return i + 1, write(words, read(found.queue, i), jnp.uint32(0))

    _, words = lax.while_loop(lambda c: c[0] < s.end, clear, (s.begin, s.words))

    def enter(c):
        i, edges, missing, words, old, levels = c
        v = read(found.queue, i)
        seen = read(found.seen, v)

        def note(c):  # one turn, so that what it is given is computed once
            _, new, words, old, levels = c
            old = write(old, v, seen)
            levels = _write_row(levels, v, new, depth)
            return jnp.bool_(False), new, write(words, v, new), old, levels

        first = (jnp.bool_(True), seen ^ read(old, v), words, old, levels)
        words, old, levels = lax.while_loop(lambda c: c[0], note, first)[2:]
        edges = edges + read(indptr, v + 1) - read(indptr, v)
        if in_indptr is not None:
            degree = read(in_indptr, v + 1) - read(in_indptr, v)
            missing = missing - jnp.where(seen == every, degree, 0)
        return i + 1, edges, missing, words, old, levels

    begin, depth = n - s.begin, s.depth + 1
    first = (begin, jnp.int32(0), s.missing, words, s.old, s.levels)
    _, edges, missing, words, old, levels = lax.while_loop(
        lambda c: c[0] < found.tail, enter, first
    )
    return Search(
        depth, begin, found.tail, edges, missing, found.queue, words, found.seen, old, levels,
        found.parents,
    )
