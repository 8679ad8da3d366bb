"""Breadth-first search of graphs of small degree (meshes, roads), whatever their diameter, in one
launch.

State. log: every reached vertex as (vertex, level, parent, -), in the order of discovery; the
frontier is its stretch start .. start + count - 1. visited: one bit a vertex. While one CTA works
alone, bits and frontier are in its shared memory and the log is only written; otherwise both are in
global memory (L2). At the end all CTAs write levels and parents from the log. A scattered store
would cost a CTA that works alone as much as the rest of an expansion; the coalesced stores of the
log cost next to nothing. Adjacency: rows of `quads` times 4 slots: row v holds the neighbours of v,
padded with n; a last slot below 0 is ~(quad that continues this one), counted from the start of the
table. A lane takes one quad of one vertex: 16 bytes in one access, without row offsets.

Three ways, by the size of the frontier (`places.py`). A level of at most `solo_out` vertices is
expanded by CTA 0 alone: no grid barrier, one CTA barrier a level. Chain of dependent accesses a
level: queue (shared) -> row (L2, 200 ns) -> bit (shared atomic) -> place in the queue (ballots, one
shared atomic a warp) -> barrier. Up to `local_most` vertices, each CTA expands what it found
itself, from a queue in its shared memory: its rows are loaded while the barrier waits. One atomic a
CTA on the word of the barrier counts the frontier and gives each queue its place in the log. Where
one queue grows too long or overflows, all are logged and divided anew. Wider levels are taken from
the log: one atomic a warp that found something, and the length is read back after the barrier (1.1
us, 1.5 us with it).

Traffic: 4 w bytes of adjacency, 16 bytes of log written and read and 8 of results a vertex, one
atomic a stored entry. The bit is claimed by the atomic itself, so a vertex is logged once.

Measured (H200): a level of one CTA 0.84 us (luxembourg_osm, 120 vertices a level) to 1.17 us
(grid 1000x1000, 500), of which about 0.26 us is the row from L2 and 0.06 the barrier; the chain
above is 0.57 us, the rest is issuing its instructions from one warp. Wide frontiers of one CTA
are bound by the misses one multiprocessor can have in flight (0.8 rows/ns), hence small queues:
what shared memory leaves is L1. A level of all CTAs takes 3.4 us (delaunay 2^21), 1.5 of it the
barrier.
"""

import dataclasses
from typing import Any

from ..frontier import Carry, Rotation, report
from ..simt.primitives import MOST_COUNTING, Simt
from ..simt.typed import Arrays
from .places import Frontier, Grid, LocalQueues, SingleCTA, log_entry, place_of_bit
from .problem import Problem, Targets

# control words 40..47: four rotating groups of TAIL, the length of the next frontier, and COUNTED,
# the word of a counting barrier
GROUPS, TAIL, COUNTED = 40, 0, 1
RESULT = 48  # control words 48..51: what CTA 0 reports after working alone
UNEVEN = 4  # queues of this many times their mean length are evened out


@dataclasses.dataclass
class State(Carry):
    """The carry of the level loop: the frontier is entries start to start + count of the log."""

    level: Any
    start: Any
    count: Any
    done: Any  # 1: the caller's `stop` holds
    ok: Any  # 0: a barrier expired
    turn: Any


@dataclasses.dataclass
class Local(State):
    """The same while each CTA expands a queue of its own, which differs from CTA to CTA."""

    base: Any  # where this queue will be logged
    length: Any  # of this queue
    held: Any  # what this lane will expand first, as `LocalQueues.hold` gives it
    uneven: Any  # 1: some queue is too long


class Search:
    """One search."""

    def __init__(self, k: Simt, c: Problem, m: Arrays):
        self.k, self.c, self.m = k, c, m
        self.source = k.load(m.source, 0)
        self.valid = (self.source >= 0) & (self.source < c.n)
        self.stopped = Targets(k, c, m, c.stop, lambda t: place_of_bit(k, c, t)).stopped
        queues, tails = k.shared(c.entry * c.queue), k.shared(4)
        self.single = SingleCTA(k, c, m, queues, tails)
        self.local, self.grid = LocalQueues(k, c, m, queues, tails), Grid(k, c, m)
        self.groups = Rotation(k, m.control, GROUPS, 2)
        self.local_most = min(c.local_most, k.ctas * c.queue) if k.ctas <= MOST_COUNTING else 0

    def run(self):
        """The search; returns (number of levels, ok)."""
        k, c, m = self.k, self.c, self.m
        _initialise(k, c, m, self.source, self.valid)
        (ok,) = k.grid_barrier(m.control)
        count = k.cast(self.valid, "i32")
        first = State.of(count=count, done=self.stopped(k.const(0), count, m.visited), ok=ok)
        going = lambda s: (s.count > 0) & (s.done == 0) & (s.ok == 1)  # noqa: E731
        last = first.loop(k, going, self.step)
        _write_results(k, c, m, last.start + last.count)
        return last.level + k.cast(last.count > 0, "i32"), last.ok

    def step(self, s: State) -> State:
        """A level of all CTAs, or levels until the frontier asks for another way."""
        k, c = self.k, self.c
        alone = s.count <= c.solo_in
        local = ~alone & (s.count <= self.local_most)
        ways = [
            (alone, self.alone),
            (local, self.local_levels),
            (~(alone | local), self.wide_level),
        ]
        self.groups.clear(s.turn)
        for when, way in ways if self.local_most else ways[::2]:
            s = s.after(k, when, way)
        s.turn = s.turn + 1
        return s

    def wide_level(self, s: State) -> None:
        """One level of all CTAs, from the log to the log; reads the word of TAIL of this turn."""
        k, control = self.k, self.m.control
        first, stride = k.warps[0] * 32, k.threads * k.ctas
        end = s.start + s.count
        self.grid.word = self.groups.group(s.turn) + TAIL
        self.grid.expand(Frontier(s.level, s.start, s.count, end, s.turn), (first, stride))
        s.ok, new = k.grid_barrier(control, [(control, self.grid.word)])
        s.done = self.stopped(s.level + 1, new, self.m.visited)
        s.level, s.start, s.count = s.level + 1, end, new

    def alone(self, s: State) -> None:
        """CTA 0: level after level until the frontier outgrows it, is empty or the search may
        stop; reads the words of RESULT."""
        k, c, single, control = self.k, self.c, self.single, self.m.control

        def level(s: State) -> None:
            k.store(single.tails, (s.turn + 1) & 3, 0, mask=k.thread == 0)
            end = s.start + s.count
            single.expand(Frontier(s.level, s.start, s.count, end, s.turn), single.warps)
            k.sync()
            s.level, s.start, s.count = s.level + 1, end, k.load(single.tails, s.turn & 3)
            s.done, s.turn = self.stopped(s.level, s.count, single.bits), s.turn + 1

        def levels():
            single.enter(s.level, s.start, s.count)
            first = State.of(level=s.level, start=s.start, count=s.count)
            going = lambda s: (s.count > 0) & (s.count <= c.solo_out) & (s.done == 0)  # noqa: E731
            last = first.loop(k, going, level)
            single.leave(last.level, last.start, last.count)
            report(k, control, RESULT, last.values()[:4])

        k.if_(k.cta == 0, levels)
        words = k.grid_barrier(control, [(control, RESULT + j) for j in range(4)])
        s.ok, s.level, s.start, s.count, s.done = words

    def local_levels(self, s: State) -> None:
        """Level after level of all CTAs, each expanding what it found itself, until the frontier is
        too small or too large, or one CTA has too much of it."""
        k, c, local = self.k, self.c, self.local
        share = (s.count + (k.ctas - 1)) // k.ctas
        length = k.minimum(k.maximum(s.count - k.cta * share, 0), share)
        base = s.start + k.cta * share
        local.enter(s.level, base, length)
        held = local.hold(s.level, length)
        first = Local(**vars(s), base=base, length=length, held=held, uneven=0)

        def going(s: Local):
            fits = (s.count > c.solo_in) & (s.count <= self.local_most) & (s.uneven == 0)
            return fits & (s.done == 0) & (s.ok == 1)

        last = first.loop(k, going, self.local_level)
        local.leave(last.level, last.base, last.length)
        (ok,) = k.grid_barrier(self.m.control)
        s.level, s.start, s.count, s.done = last.values()[:4]
        s.ok, s.turn = last.ok & ok, last.turn - 1

    def local_level(self, s: Local) -> None:
        """A level: uses the word of COUNTED of this turn."""
        k, c, local, control = self.k, self.c, self.local, self.m.control
        self.groups.clear(s.turn)
        k.store(local.tails, (s.turn + 1) & 3, 0, mask=k.thread == 0)
        end, word = s.start + s.count, self.groups.group(s.turn) + COUNTED
        local.word = word
        local.expand(Frontier(s.level, s.base, s.length, end, s.turn), local.warps, s.held)
        most = k.maximum(c.threads // c.quads, s.count // k.ctas * UNEVEN)
        most = k.minimum(most, c.queue)

        def found():
            new = k.load(local.tails, s.turn & 3)
            k.reduce("or", control, word, -(1 << 31), mask=new > most)
            return k.minimum(new, c.queue)

        def hold():
            length = k.minimum(k.load(local.tails, s.turn & 3), c.queue)
            return length, local.hold(s.level + 1, length)

        s.ok, before, count, s.uneven, (s.length, s.held) = k.counting_barrier(
            control, word, found, hold
        )
        s.level, s.start, s.count, s.base = s.level + 1, end, count, end + before
        s.done, s.turn = self.stopped(s.level, count, self.m.visited), s.turn + 1


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
    """Levels and parents of all logged vertices."""

    def result(i):
        v, level, *parent = k.load_vec(m.log, i * c.entry, c.entry, cache="fresh")
        k.store(m.levels, v, level)
        if c.parents:
            k.store(m.parents, v, parent[0])

    k.spread(reached, result)
