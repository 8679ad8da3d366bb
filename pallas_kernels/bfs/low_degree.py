"""Breadth-first search of graphs of small degree (meshes, roads), whatever their diameter, in one
launch.

State. log: every reached vertex as (vertex, level, parent, -), in the order of discovery; the
frontier is its stretch start .. start + count - 1. visited: one bit a vertex. While one CTA works
alone, bits and frontier are in its shared memory and the log is only written; otherwise both are in
global memory (L2). At the end all CTAs write levels and parents from the log, which also undoes a
renumbering. A scattered store would cost a CTA that works alone as much as the rest of an
expansion; the coalesced stores of the log cost next to nothing. Adjacency: rows of `quads` times 4
slots: row v holds the neighbours of v, padded with n; a last slot below 0 is ~(quad that continues
this one), counted from the start of the table. A lane takes one quad of one vertex: 16 bytes in one
access, without row offsets.

A level of at most `solo_out` vertices is expanded by CTA 0 alone: no grid barrier, one CTA
barrier a level. Chain of dependent accesses a level: queue (shared) -> row (L2, 200 ns) -> bit
(shared atomic) -> place in the queue (ballots, one shared atomic a warp) -> barrier. Wider levels
are shared by all CTAs: the same chain through L2 (atomics 300 ns) and a grid barrier (1.1 us,
1.5 us with the counter read back).

Traffic: 4 w bytes of adjacency, 16 bytes of log written and read and 8 of results a vertex, one
atomic a stored entry. The bit is claimed by the atomic itself, so a vertex is logged once.

Measured (H200): a level of one CTA 0.84 us (luxembourg_osm, 120 vertices a level) to 1.17 us
(grid 1000x1000, 500), of which about 0.26 us is the row from L2 and 0.06 the barrier; the chain
above is 0.57 us, the rest is issuing its instructions from one warp. Wide frontiers of one CTA
are bound by the misses one multiprocessor can have in flight (0.8 rows/ns), hence small queues:
what shared memory leaves is L1. A level of all CTAs takes 3.4 us (delaunay 2^21), 1.5 of it the
barrier.
"""

import functools
import operator
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from ..frontier.append import put, reserve
from ..frontier.control import Rotation, report
from ..simt.primitives import Simt
from ..simt.typed import Array, Value
from .problem import Arrays, Problem

TAIL = 40  # control words 40..43: lengths of the next frontier, in rotation
RESULT = 44  # control words 44..47: what CTA 0 reports after working alone


def body(k: Simt, c: Problem, m: Arrays):
    """The search itself; returns (number of levels, ok). `c` is the Config, `m` the
    arrays of the kernel."""
    n, control = c.n, m.control
    source = k.load(m.source, 0)
    valid = (source >= 0) & (source < n)
    targets = [k.load(m.targets, j) for j in range(c.targets)]
    known = [(t >= 0) & (t < n) for t in targets]
    targets = [k.where(ok, t, 0) for t, ok in zip(targets, known, strict=True)]
    if m.rank is not None:
        source = k.load(m.rank, k.where(valid, source, 0))
        targets = [k.load(m.rank, t) for t in targets]
    single, grid = SingleCTA(k, c, m), Grid(k, c, m)
    tails = Rotation(k, control, TAIL, 1)
    _initialise(k, c, m, source, valid)
    (ok,) = k.grid_barrier(control)

    def stopped(level, count, bits):
        if c.stop is None:
            return k.const(0)
        places = [place_of_bit(k, c, t) for t in targets]
        words = [k.load(bits, word, cache="fresh") for word, _ in places]
        reached = tuple(
            (word & bit != 0) & is_valid
            for word, (_, bit), is_valid in zip(words, places, known, strict=True)
        )
        return k.cast(k.const(c.stop(level, reached, count == 0), "i1"), "i32")

    def solo(level, start, count):
        """CTA 0: level after level until the frontier outgrows it, is empty or the search may
        stop.
        """
        single.enter(level, start, count)

        def one_level(level, start, count, done, turn):
            k.store(single.tails, (turn + 1) & 3, 0, mask=k.thread == 0)
            single.expand(Frontier(level, start, count, turn), (k.warp * 32, k.threads))
            k.sync()
            new = k.load(single.tails, turn & 3)
            return level + 1, start + count, new, stopped(level + 1, new, single.bits), turn + 1

        *out, _ = k.while_(
            lambda _, start, count, done, turn: (count > 0) & (count <= c.solo_out) & (done == 0),
            one_level,
            level,
            start,
            count,
            0,
            0,
        )
        single.leave(*out[:3])
        report(k, control, RESULT, tuple(out))

    def step(level, start, count, done, ok, turn):
        tails.clear(turn)

        def small():
            k.if_(k.cta == 0, lambda: solo(level, start, count))
            ok, *words = k.grid_barrier(control, [(control, RESULT + j) for j in range(4)])
            return *words, ok

        def large():
            first, stride = (k.warp * k.ctas + k.cta) * 32, k.threads * k.ctas
            grid.expand(Frontier(level, start, count, turn), (first, stride))
            ok, new = k.grid_barrier(control, [(control, TAIL + (turn & 3))])
            return level + 1, start + count, new, stopped(level + 1, new, m.visited), ok

        is_small = count <= c.solo_in
        out = k.if_(is_small, small, level, start, count, done, ok)
        out = k.if_(~is_small, large, *out)
        return *out, turn + 1

    count = k.cast(valid, "i32")
    level, start, count, _, ok, _ = k.while_(
        lambda level, start, count, done, ok, turn: (count > 0) & (done == 0) & (ok == 1),
        step,
        0,
        0,
        count,
        stopped(k.const(0), count, m.visited),
        ok,
        0,
    )
    _write_results(k, c, m, start + count)
    return level + k.cast(count > 0, "i32"), ok


def place_of_bit(k, c, v):
    """(index of the word, mask) of the bit of v. In shared memory neighbouring vertices have
    neighbouring words, to avoid bank conflicts.
    """
    if c.shared_bits:
        bit = v // c.words
        return v - bit * c.words, k.const(1) << bit
    return k.shr(v, 5), k.bit(v)


def claim(k, c, bits, near):
    """For each of `near`: whether this thread set its bit (never for padding and links)."""
    is_valid = [k.below(v, c.n) for v in near]
    places = [place_of_bit(k, c, v) for v in near]
    if bits.space == "global" and c.pretest:
        olds = [
            k.load(bits, w, mask=t, other=-1, cache="fresh")
            for (w, _), t in zip(places, is_valid, strict=True)
        ]
        is_valid = [
            t & (old & bit == 0) for t, old, (_, bit) in zip(is_valid, olds, places, strict=True)
        ]
    olds = [
        k.atomic("or", bits, w, bit, mask=t) for (w, bit), t in zip(places, is_valid, strict=True)
    ]
    return [t & (old & bit == 0) for t, old, (_, bit) in zip(is_valid, olds, places, strict=True)]


def log_entry(k: Simt, c: Problem, m: Arrays, at: Value, entry: tuple, mask: Value) -> None:
    """Stores (vertex, level, parent) at place `at` of the log."""
    k.store_vec(m.log, at * c.entry, (*entry, 0) if c.parents else entry[:2], mask=mask)


def _initialise(k, c, m, source, valid):
    def clear(i):
        k.store(m.levels, i, -1)
        if c.parents:
            k.store(m.parents, i, -1)

    word, bit = place_of_bit(k, c, source)
    k.spread(c.n, clear)
    k.spread(c.words, lambda w: k.store(m.visited, w, k.where(valid & (w == word), bit, 0)))
    log_entry(k, c, m, k.const(0), (source, 0, source), (k.cta == 0) & (k.thread == 0))


def _write_results(k, c, m, reached):
    """Levels and parents of all logged vertices, in the caller's numbering."""

    def old(v):
        return v if m.order is None else k.load(m.order, v, cache="nc")

    def result(i):
        v, level, *parent = k.load_vec(m.log, i * c.entry, c.entry, cache="fresh")
        v = old(v)
        k.store(m.levels, v, level)
        if c.parents:
            k.store(m.parents, v, old(parent[0]))

    k.spread(reached, result)


class Frontier(NamedTuple):
    """Vertices of a level: entries start .. start + count - 1 of the log; `turn` selects the word
    that counts the next frontier."""

    level: Any
    start: Any
    count: Any
    turn: Any


class Place(ABC):
    """Where the bits and the frontier are."""

    bits: Array

    def __init__(self, k: Simt, c: Problem, m: Arrays):
        self.k, self.c, self.m = k, c, m

    @abstractmethod
    def entry(self, f: Frontier, i: Value, is_valid: Value) -> Value:
        """The vertex of entry i of the frontier, -1 where not valid."""

    @abstractmethod
    def record(self, at: Value, vertex: Value, level: Any, mask: Value) -> None:
        """Logs a vertex that is expanded, if it was not logged when it was found."""

    @abstractmethod
    def append(self, f: Frontier, near: Any, won: list[Value], parent: Value) -> None:
        """Puts the vertices with `won` into the next frontier."""

    def expand(self, f: Frontier, over: tuple[Any, Any]) -> None:
        """Expands a frontier, this warp the entries from over[0] on in strides of over[1]."""
        k, c, m = self.k, self.c, self.m

        def entries(i0):
            i = i0 + k.lane
            entry = i // c.quads
            vertex = self.entry(f, entry, entry < f.count)

            def one_quad(quad, meanwhile=lambda: None):
                near = k.load_vec(m.adjacency, quad * 4, 4, mask=quad >= 0, other=c.n, cache="nc")
                meanwhile()
                won = claim(k, c, self.bits, near)
                self.append(f, near, won, vertex)
                return k.where(near[3] < 0, ~near[3], -1)

            part = i - entry * c.quads
            quad = k.where(vertex >= 0, vertex * c.quads + part, -1)

            def record():
                self.record(f.start + entry, vertex, f.level, (vertex >= 0) & (part == 0))

            if c.linked:
                record()
                k.while_(lambda quad: k.any(quad >= 0), one_quad, quad)
            else:
                one_quad(quad, record)

        k.for_(over[0], f.count * c.quads, over[1], entries)


class Grid(Place):
    """All CTAs: bits and frontier in global memory."""

    def __init__(self, k: Simt, c: Problem, m: Arrays):
        super().__init__(k, c, m)
        self.bits = m.visited

    def entry(self, f, i, is_valid):
        at = (f.start + i) * self.c.entry
        return self.k.load(self.m.log, at, mask=is_valid, other=-1, cache="fresh")

    def record(self, at, vertex, level, mask):
        pass  # `append` has logged the vertex

    def append(self, f, near, won, parent):
        """Adds to the word of TAIL of this turn."""
        k, c, m = self.k, self.c, self.m
        after = f.start + f.count

        def store(at, v, mask):
            log_entry(k, c, m, after + at, (v, f.level + 1, parent), mask)
            k.prefetch(
                m.adjacency, v * (4 * c.quads), mask=mask
            )  # it arrives in L2 during the barrier
            if c.quads > 2:
                k.prefetch(m.adjacency, v * (4 * c.quads) + 4 * c.quads - 1, mask=mask)

        word = TAIL + (f.turn & 3)
        put(k, near, won, lambda total: reserve(k, m.control, word, total), store)


class SingleCTA(Place):
    """CTA 0 works alone: bits (if they fit) and frontier in shared memory, two queues by the parity
    of the level.

    A queue holds (vertex, parent) pairs, or only vertices if no parents are asked for. They are
    logged when they are expanded, while their row is in flight: one store for each vertex instead
    of one for each slot of the row that found it. Word turn & 3 of `tails` counts the next queue.
    """

    def __init__(self, k: Simt, c: Problem, m: Arrays):
        super().__init__(k, c, m)
        self.width = 2 if c.parents else 1
        self.queues, self.tails = k.shared(2 * self.width * c.queue), k.shared(4)
        self.bits = k.shared(c.words) if c.shared_bits else m.visited

    def at(self, level, i):
        return ((level & 1) * self.c.queue + i) * self.width

    def entry(self, f, i, is_valid):
        vertex, *self.parent = self.k.load_vec(
            self.queues, self.at(f.level, i), self.width, mask=is_valid, other=-1
        )
        return vertex

    def record(self, at, vertex, level, mask):
        parent = self.parent[0] if self.parent else 0
        log_entry(self.k, self.c, self.m, at, (vertex, level, parent), mask)

    def append(self, f, near, won, parent):
        """Adds to word turn & 3 of `tails`."""
        k, c = self.k, self.c

        def queue(at, v, mask):
            k.store_vec(self.queues, self.at(f.level + 1, at), (v, parent)[: self.width], mask=mask)

        def log(at, v, mask):
            queue(at, v, mask & (at < c.queue))
            entry = v, f.level + 1, parent
            log_entry(k, c, self.m, f.start + f.count + at, entry, mask & (at >= c.queue))

        votes = [k.ballot(w) for w in won]
        total = functools.reduce(operator.add, map(k.popc, votes))

        def each(base, store):
            for v, w, b in zip(near, won, votes, strict=True):
                store(base + k.lanes_below(b), v, w)
                base = base + k.popc(b)

        def some():
            first = reserve(k, self.tails, f.turn & 3, total)
            full = first + total > c.queue
            k.if_(~full, lambda: each(first, queue))
            k.if_(full, lambda: each(first, log))

        k.if_(total > 0, some)

    def enter(self, level, start, count):
        """Copies visited bits and frontier from global to shared memory."""
        k, c, m = self.k, self.c, self.m
        if c.shared_bits:
            k.for_(
                k.thread * 4,
                c.words,
                k.threads * 4,
                lambda w: k.store_vec(self.bits, w, k.load_vec(m.visited, w, 4, cache="fresh")),
            )

        def copy(i):
            v, _, *parent = k.load_vec(m.log, (start + i) * c.entry, c.entry, cache="fresh")
            k.store_vec(self.queues, self.at(level, i), (v, *parent)[: self.width])

        k.for_(k.thread, count, k.threads, copy)
        k.store(self.tails, k.thread, 0, mask=k.thread < 4)
        k.sync()

    def leave(self, level, start, count):
        """Logs the frontier, which was not expanded; copies the visited bits back to global memory
        if the search goes on.
        """
        k, c = self.k, self.c

        def log(i):
            entry = k.load_vec(self.queues, self.at(level, i), self.width)
            logged = entry[0], level, entry[-1]
            log_entry(k, c, self.m, start + i, logged, k.const(True, "i1"))

        def back(w):
            k.store_vec(self.m.visited, w, k.load_vec(self.bits, w, 4))

        k.for_(k.thread, k.minimum(count, c.queue), k.threads, log)
        if c.shared_bits:
            k.if_(count > 0, lambda: k.for_(k.thread * 4, c.words, k.threads * 4, back) and None)
