"""BFS from up to 32 sources at once on a CPU: a bit a source, a word a vertex, native loops."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._scalar_loops import read, write

SOURCES = 32  # bits of a word
# Cost of an edge by direction; only the ratio matters. A pull ends where no bit is missing any
# more, so it seldom looks at all the edges that are counted for it.
PUSH, PULL = 4.0, 1.0
PLANES = 6  # bits of a level: deeper searches are long and thin, and better done one by one
LAST_LEVEL = (1 << PLANES) - 1


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
        planes: (PLANES n,) uint32, the levels in binary: bit s of the word j n + v is bit j of the
            level of vertex v from source s.
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
    planes: Array


def bfs_sources_sequential(
    indptr: Array,
    indices: Array,
    sources: Array,
    in_indptr: Array | None,
    in_indices: Array | None,
) -> tuple[Array, Array, Array]:
    """Search from at most 32 sources: (planes, seen, whether it came to its end).

    A vertex carries one word, a bit a source, so that an edge is looked at once for all the
    sources whose frontiers hold its tail. A level is pushed (every out-edge of the frontier) or
    pulled (every vertex that some source misses joins the words of its in-neighbours until no bit
    is missing), whichever has fewer edges. Levels are noted in binary, a word for each bit of the
    level, so that all sources of a vertex share the write. Ends after level `LAST_LEVEL`.

    Cost: the edges of the frontiers' union in every level, and one or two words for every vertex
    and level at which it is found. `levels_of` and `parents_of` make results of it.

    Source: Then et al., "The more the merrier: efficient multi-source graph traversal", VLDB 2014.
    """
    count = sources.shape[0]
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

    first = _start(indptr, in_indptr, sources)
    end = lax.while_loop(lambda s: (s.begin < s.end) & (s.depth < LAST_LEVEL), step, first)
    return end.planes, end.seen, end.begin >= end.end


def levels_of(planes: Array, seen: Array, count: int) -> Array:
    """(count, n) int32 from the levels in binary; -1 where unreached."""
    n = seen.shape[0]
    source = jnp.arange(count, dtype=jnp.uint32)[:, None]

    def bit(words):
        return ((words >> source) & np.uint32(1)).astype(jnp.int32)

    level = sum(bit(planes[j * n : (j + 1) * n]) << j for j in range(PLANES))
    return jnp.where(bit(seen) != 0, level, -1)


def parents_of(
    in_indptr: Array, in_indices: Array, planes: Array, seen: Array, sources: Array, near: bool
) -> Array:
    """(sources, n) int32: the first in-neighbour one level nearer to each source.

    One pass over the in-edges, for all sources at once: a word for each bit of the level says where
    two vertices agree in it. Ends at a vertex when every source has its parent. near: the levels at
    both ends of an edge differ by at most 1 (symmetric graphs), so that two bits tell them apart.
    """
    n, count = seen.shape[0], sources.shape[0]
    compared = 2 if near else PLANES
    skips = near and in_indices.shape[0] > 16 * n

    def vertex(c):
        v, parents = c
        last = read(in_indptr, v + 1)
        level = [read(planes, j * n + v) for j in range(PLANES)]
        beyond = functools.reduce(jnp.bitwise_or, level)  # not the source itself
        above, borrow = [], ~np.uint32(0)
        for word in level[:compared]:
            above.append(word ^ borrow)
            borrow = borrow & ~word

        def nearer(e):
            u = read(in_indices, e)
            same = ~np.uint32(0) if near else read(seen, u)
            for j, word in enumerate(above):
                same = same & ~(read(planes, j * n + u) ^ word)
            return same

        def nothing(e, left):
            ahead = functools.reduce(jnp.bitwise_or, [nearer(e + k) for k in range(4)])
            return (e + 4 <= last) & (left & ahead == 0)

        def edge(c):
            e, left, parents = c
            if skips:
                e, left = lax.while_loop(
                    lambda c: nothing(*c), lambda c: (c[0] + 4, c[1]), (e, left)
                )
            u = read(in_indices, e)
            here = jnp.where(e < last, left & nearer(e), np.uint32(0))

            def mark(c):
                bits, parents = c
                s = lax.population_count((bits & (~bits + 1)) - 1).astype(jnp.int32)
                return bits & (bits - 1), write(parents, s * n + v, u)

            rest, parents = lax.while_loop(lambda c: c[0] != 0, mark, (here, parents))
            return e + 1, left & ~here, parents

        first = (read(in_indptr, v), read(seen, v) & beyond, parents)
        parents = lax.while_loop(lambda c: (c[0] < last) & (c[1] != 0), edge, first)[2]
        return v + 1, parents

    first = (jnp.int32(0), _own_parents(sources, n))
    return lax.while_loop(lambda c: c[0] < n, vertex, first)[1].reshape(count, n)


def _own_parents(sources: Array, n: int) -> Array:
    """(sources * n,) int32: -1, but every source is its own parent."""
    count = sources.shape[0]
    inside = (sources >= 0) & (sources < n)
    at = jnp.where(inside, jnp.arange(count, dtype=jnp.int32) * n + sources, count * n)
    return jnp.full(count * n, -1, jnp.int32).at[at].set(sources, mode="drop")


def _start(indptr, in_indptr, sources) -> Search:
    n, count = indptr.shape[0] - 1, sources.shape[0]
    number = jnp.arange(count, dtype=jnp.int32)
    inside = (sources >= 0) & (sources < n)
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
        planes=jnp.zeros(PLANES * n, jnp.uint32),
    )


class Found(NamedTuple):
    """What a level writes: the end and the items of the queue, `seen` of `Search`."""

    tail: Array
    queue: Array
    seen: Array


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
                )

            seen = read(f.seen, v)
            first = (seen == read(s.old, v)).astype(jnp.int32)
            f = lax.while_loop(lambda c: c[0], record, (e < last, v, seen, first, f))[-1]
            return e + 1, f

        first = (read(indptr, u), found)
        return i + 1, lax.while_loop(lambda c: c[0] < last, edge, first)[1]

    begin = jnp.where(active, s.begin, s.end)
    found = Found(jnp.where(s.begin < n, n, 0), s.queue, s.seen)
    return lax.while_loop(lambda c: c[0] < s.end, vertex, (begin, found))[1]


def _pull(s: Search, found: Found, active, every, indptr, indices) -> Found:
    """If `active`: every vertex asks its in-neighbours for the bits that it misses."""
    n = s.seen.shape[0]
    block = 8 if indices.shape[0] > 16 * n else 4

    def vertex(c):
        v, found = c
        last = read(indptr, v + 1)

        def join(c, masked):
            e, left, got = c
            joined = np.uint32(0)
            for k in range(block):
                word = read(s.words, read(indices, e + k))
                joined = joined | (jnp.where(e + k < last, word, np.uint32(0)) if masked else word)
            return e + block, left & ~joined, got | (left & joined)

        c = (read(indptr, v), every & ~read(found.seen, v), jnp.uint32(0))
        c = lax.while_loop(
            lambda c: (c[0] + block <= last) & (c[1] != 0), lambda c: join(c, False), c
        )
        c = lax.while_loop(lambda c: (c[0] < last) & (c[1] != 0), lambda c: join(c, True), c)
        _, left, got = c
        found = Found(
            found.tail + (got != 0).astype(jnp.int32),
            write(found.queue, found.tail, v),
            write(found.seen, v, every & ~left),
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
        i, edges, missing, words, old, planes = c
        v = read(found.queue, i)
        seen = read(found.seen, v)

        def note(c):  # one turn, so that what it is given is computed once
            _, new, words, old, planes = c

            def plane(c):
                bits, planes = c
                j = lax.population_count((bits & -bits) - 1)
                at = j * n + v
                return bits & (bits - 1), write(planes, at, read(planes, at) | new)

            planes = lax.while_loop(lambda c: c[0] != 0, plane, (depth, planes))[1]
            return jnp.bool_(False), new, write(words, v, new), write(old, v, seen), planes

        first = (jnp.bool_(True), seen ^ read(old, v), words, old, planes)
        words, old, planes = lax.while_loop(lambda c: c[0], note, first)[2:]
        edges = edges + read(indptr, v + 1) - read(indptr, v)
        if in_indptr is not None:
            degree = read(in_indptr, v + 1) - read(in_indptr, v)
            missing = missing - jnp.where(seen == every, degree, 0)
        return i + 1, edges, missing, words, old, planes

    begin, depth = n - s.begin, s.depth + 1
    first = (begin, jnp.int32(0), s.missing, words, s.old, s.planes)
    _, edges, missing, words, old, planes = lax.while_loop(
        lambda c: c[0] < found.tail, enter, first
    )
    return Search(
        depth, begin, found.tail, edges, missing, found.queue, words, found.seen, old, planes
    )


def transposed_in_turn(indptr: Array, indices: Array) -> tuple[Array, Array]:
    """The CSR arrays of the transpose by a counting sort, rows ascending; the capacity is kept."""
    n, last = indptr.shape[0] - 1, indptr[-1]

    def count(c):
        e, ends = c
        at = read(indices, e) + 2
        return e + 1, write(ends, at, read(ends, at) + 1)

    zero = jnp.int32(0)
    ends = lax.while_loop(lambda c: c[0] < last, count, (zero, jnp.zeros(n + 2, jnp.int32)))[1]

    def row(c):
        u, place, heads = c
        end = read(indptr, u + 1)

        def entry(c):
            e, place, heads = c

            def put(c):  # one turn, so that the place is read once
                _, v, at, place, heads = c
                return jnp.bool_(False), v, at, write(place, v, at + 1), write(heads, at, u)

            v = read(indices, e) + 1
            first = (jnp.bool_(True), v, read(place, v), place, heads)
            return e + 1, *lax.while_loop(lambda c: c[0], put, first)[3:]

        _, place, heads = lax.while_loop(
            lambda c: c[0] < end, entry, (read(indptr, u), place, heads)
        )
        return u + 1, place, heads

    first = (zero, jnp.cumsum(ends, dtype=jnp.int32), jnp.full(indices.shape[0], n, jnp.int32))
    _, place, heads = lax.while_loop(lambda c: c[0] < n, row, first)
    return place[: n + 1], heads
