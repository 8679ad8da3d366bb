"""Direction-optimising breadth-first search of any graph, in one launch.

State. visited: one bit a vertex, two copies. A push level claims bits in the current copy by atomic
OR; a pull level reads the current copy, writes the other, and they swap. A pull needs no bitmap of
the frontier: the visited neighbours of an unvisited vertex can only be in the newest level.
Frontier of a push level: a queue of edge ranges (start, end, vertex, -), at most `span` edges each,
so no hub occupies one warp alone; two queues alternate. A warp takes up to 32 ranges and walks
their edges 32 at a time.

Direction (Beamer, Asanovic, Patterson 2012): pull if frontier edges * alpha > edges of the
unvisited vertices (estimated as nnz * unvisited / n) and frontier edges > `pull_edges`; push again
if the frontier has fewer than n / beta vertices and fewer than an eighth of the unvisited ones. A
push level makes the next queue unless a pull is likely to follow (`Search.leads_to_pull`). A
missing queue is collected from the levels; a pull with few unvisited vertices appends to the next
queue directly. The search ends once all vertices are visited. In a pull, a warp takes up to 32
words of bits, one a lane, and searches for the vertices whose bit is 0. The work is split by
degree: a vertex probes its first 4 neighbours (one 16-byte load from `first` if prepared; most find
their parent there), then its lane probes up to `lane_probes` more, by aligned groups of four. The
remaining neighbours go to a list in shared memory, in stretches of at most 1024 that the warps of
the CTA share, 128 neighbours at a time. Frontiers of at most `solo_edges` edges are pushed by CTA 0
alone, level after level, without grid barriers.

Traffic of a pull level: n / 4 bytes of bits, 16 bytes of `first` and 1 to 4 bit tests from L1/L2
for an unvisited vertex, 4 bytes of level for a found one, no atomics. Of a push level: 4 bytes and
one bit test an edge, one atomic and 16 bytes of queue a new vertex. A grid barrier with its
counters: 1.5 us.

Measured (H200, rmat scale 21, 166.9M entries): 70 us in the kernel, of which start 4, push of the
hub 12, first pull 25, second 12, the last two 15. 60 MB move (14 us at 4.3 TB/s) and 8M bits are
tested (25 us at 325 G/s): the rest is latency of the rounds, 32 warps a multiprocessor.
"""

import dataclasses
import enum
import functools
from typing import Any

from ..frontier import Carry, Rotation, range_count, report, write_row
from ..simt.primitives import Simt
from ..simt.typed import Arrays
from .bottom_up import Copies, pull
from .problem import Problem, Targets
from .top_down import Tail, UnbufferedTail, collect, push


class Word(enum.IntEnum):
    """Control words: the first of each stretch."""

    GROUPS = 40  # 40..55: rotating groups of (ranges, vertices, edges, -) of the next frontier
    RESULT = 56  # 56..62: what CTA 0 reports after working alone
    VISITED = 63  # number of vertices visited at the start (source, isolated ones)


QUEUED = 64  # a pull of fewer than n / QUEUED vertices makes the next queue
STAY_PULL = 8  # keep pulling while unvisited vertices <= STAY_PULL * vertices of the frontier


@dataclasses.dataclass
class State(Carry):
    """The carry of the level loop; edges is 0 (unknown) after a pull."""

    level: Any
    ranges: Any  # of the queue
    vertices: Any  # of the frontier
    edges: Any  # of the frontier
    seen: Any  # vertices visited, isolated ones included
    pulling: Any  # 1: the next level is pulled
    queued: Any  # 1: the queue is made
    half: Any  # current copy of the bits
    cur: Any  # current queue
    done: Any
    ok: Any
    turn: Any


class Search:
    """One search."""

    def __init__(self, k: Simt, c: Problem, m: Arrays):
        self.k, self.c, self.m = k, c, m
        m.sums = k.shared(16)  # 4 rotating groups of (ranges, vertices, edges, -)
        m.buffer = k.shared(4 * c.buffer)
        m.news = k.shared(k.threads)  # bits that a pull finds: one word for each thread
        self.groups = Rotation(k, m.control, Word.GROUPS, 4)
        self.source = k.load(m.source, 0)
        self.valid = k.below(self.source, c.n)
        self.targets = Targets(k, c, m, c.stop, lambda t: (k.shr(t, 5), k.bit(t)))

    def run(self):
        """The search; returns (number of levels, ok)."""
        k, c, m = self.k, self.c, self.m
        start = k.load(m.indptr, self.source, mask=self.valid)
        end = k.load(m.indptr, self.source + 1, mask=self.valid)
        _initialise(k, c, m, self.source, self.valid, start, end)
        ok, seen = k.grid_barrier(
            m.control, [(m.control, Word.VISITED)], [(m.sums, 1, m.control, Word.VISITED)]
        )
        one = k.cast(self.valid, "i32")
        first = State(
            level=0,
            ranges=range_count(c.span, start, end),
            vertices=one,
            edges=end - start,
            seen=seen,
            pulling=0,
            queued=1,
            half=0,
            cur=0,
            done=self.stopped(k.const(0), one, k.const(0)),
            ok=ok,
            turn=0,
        )

        def going_on(s):
            return (s.vertices > 0) & (s.seen < c.n) & (s.done == 0) & (s.ok == 1)

        last = first.loop(k, going_on, self.step)
        return last.level + k.cast(last.vertices > 0, "i32"), last.ok

    def step(self, s):
        """One level of all CTAs, or many of CTA 0, or the making of a queue."""
        k, c = self.k, self.c
        slot = self.groups.group(s.turn)
        self.groups.clear(s.turn)
        pulling = k.const(False, "i1")
        if c.pull:
            pulling = (s.pulling == 1) | self.prefer_pull(k.cast(s.edges, "f32"), s.seen)
        gather = ~pulling & (s.queued == 0)
        small = ~pulling & ~gather & (s.edges <= c.solo_edges)
        actions = [(small, self.solo_levels), (~pulling & ~gather & ~small, self.push_level)]
        if c.pull:
            actions += [(pulling, self.pull_level), (gather, self.make_queue)]
        for when, action in actions:
            s = s.after(k, when, functools.partial(action, slot))
        s.turn = s.turn + 1
        return s

    def prefer_pull(self, edges, seen):
        """Whether to pull a level whose frontier has so many edges, a float32."""
        k, c = self.k, self.c
        unvisited = k.cast(c.n - seen, "f32") * (c.nnz / c.n)
        return (edges > float(c.pull_edges)) & (edges * c.alpha > unvisited)

    def stopped(self, level, vertices, half):
        """Whether the caller's `stop` holds after `level`."""
        return self.targets.stopped(level, vertices, self.m.visited, half * self.c.words)

    def barrier(self, slot):
        """A grid barrier that adds words 1 and 2 of `sums` to group `slot` of the control words;
        returns (ok, ranges, vertices, edges) of all CTAs."""
        control = self.m.control
        adds = [(self.m.sums, j, control, slot + j) for j in (1, 2)]
        return self.k.grid_barrier(control, [(control, slot + j) for j in range(3)], adds)

    def finish(self, s):
        s.level, s.seen = s.level + 1, s.seen + s.vertices
        s.done = self.stopped(s.level, s.vertices, s.half)

    def push_level(self, slot, s):
        k, c, m = self.k, self.c, self.m
        # the queue is only made if the next level is likely to be pushed too
        queue = k.const(True, "i1")
        if c.pull:
            queue = ~self.leads_to_pull(s)
        tail = Tail(k, c, m, s.cur ^ 1, slot)
        push(k, c, m, s, k.warps, tail, queue)
        tail.flush()
        s.ok, s.ranges, s.vertices, s.edges = self.barrier(slot)
        s.queued, s.cur = k.cast(queue, "i32"), s.cur ^ 1
        self.finish(s)

    def leads_to_pull(self, s):
        """Whether the level after this push is likely to be a pull, the same in all CTAs.

        The first estimate of its edges is the mean degree for each edge of this level. It is too
        low where edges lead to hubs. So if it says no, and there are enough edges for it to matter,
        all CTAs evaluate the same sample.
        """
        k, c = self.k, self.c
        likely = self.prefer_pull(k.cast(s.edges, "f32") * max(c.nnz / c.n, 1.0), s.seen)
        if c.nnz < c.many:
            return likely

        def by_sample():
            return self.prefer_pull(self.sampled_edges(s), s.seen)

        return k.if_(~likely & (s.edges >= c.sampled), by_sample, likely)[0]

    def sampled_edges(self, s):
        """Estimates the edges of the next frontier, a float32: each thread of a CTA samples one
        edge of one range.

        A head that several edges reach counts several times. Other CTAs change bits meanwhile, so
        new vertices are recognised by their levels, which are stable within this level. Partial
        sums are added in a fixed order, so all CTAs get the same result.
        """
        k, c, m = self.k, self.c, self.m
        each = k.maximum(k.cast(s.ranges, "f32") * (1.0 / k.threads), 1.0)
        at = k.cast(k.cast(k.thread, "f32") * each, "i32")
        is_valid, at = at < s.ranges, (s.cur * c.capacity + at) * 4
        start, end, *_ = k.load_vec(m.queue, at, 4, mask=is_valid, cache="fresh")
        place = start + k.thread % k.maximum(end - start, 1)
        head = k.load(m.indices, place, mask=is_valid & (start < end), other=c.n, cache="nc")
        is_valid = k.below(head, c.n)
        level = k.load(m.levels, head, mask=is_valid, cache="fresh")
        is_valid = is_valid & ((level < 0) | (level > s.level))
        row, after = k.row(m.indptr, head, is_valid)
        edges = k.cast(end - start, "f32") * k.cast(k.where(is_valid, after - row, 0), "f32")
        k.store(m.news, k.warp, k.bits(k.warp_sum(edges), "i32"), mask=k.lane == 0)
        k.sync()
        sums = k.load(m.news, k.lane, mask=k.lane < k.threads // 32)
        return k.warp_sum(k.bits(sums, "f32")) * each

    def pull_level(self, slot, s):
        k, c, m = self.k, self.c, self.m
        copies = Copies(k, c, m, s.half)
        queue = UnbufferedTail(k, c, m, s.cur, (m.control, slot)), c.n - s.seen <= c.n // QUEUED
        pull(k, c, m, s.level, copies, queue)
        s.ok, s.ranges, s.vertices, s.edges = self.barrier(slot)
        unvisited = c.n - s.seen - s.vertices
        stay = (s.vertices * c.beta >= c.n) | (unvisited <= s.vertices * STAY_PULL)
        s.half, s.queued, s.pulling = s.half ^ 1, k.cast(queue[1], "i32"), k.cast(stay, "i32")
        self.finish(s)

    def make_queue(self, slot, s):
        """Makes the queue that the last level did not make."""
        tail = Tail(self.k, self.c, self.m, s.cur, slot)
        collect(self.k, self.c, self.m, s.level, tail)
        tail.flush()
        s.ok, s.ranges, _, s.edges = self.barrier(slot)
        s.queued = 1

    def solo_levels(self, slot, s):
        """CTA 0: level after level until the frontier is too large, empty or the search may
        stop.
        """
        k, control, sums = self.k, self.m.control, self.m.sums

        def alone():
            first = dataclasses.replace(s, done=0, turn=0)
            last = first.loop(k, self._going_alone, self.solo_level)
            words = last.level, last.ranges, last.vertices, last.edges, last.seen, last.cur
            report(k, control, Word.RESULT, (*words, last.done))
            k.sync()
            k.store(sums, k.thread, 0, mask=k.thread < 16)

        k.if_(k.cta == 0, alone)
        words = k.grid_barrier(control, [(control, Word.RESULT + j) for j in range(7)])
        s.ok, s.level, s.ranges, s.vertices, s.edges, s.seen, s.cur, s.done = words

    def _going_alone(self, s):
        c = self.c
        return (s.vertices > 0) & (s.seen < c.n) & (s.edges <= c.solo_edges) & (s.done == 0)

    def solo_level(self, s):
        """A level of CTA 0: counts in group turn & 3 of `sums`, clears the next group."""
        k, c, m = self.k, self.c, self.m
        now, after = 4 * (s.turn & 3), 4 * ((s.turn + 1) & 3)
        k.store(m.sums, after + k.thread, 0, mask=k.thread < 4)
        tail = UnbufferedTail(k, c, m, s.cur ^ 1, (m.sums, now))
        push(k, c, m, s, (k.warp, k.threads // 32), tail, True, now)
        k.sync()
        s.ranges, s.vertices, s.edges = (k.load(m.sums, now + j) for j in range(3))
        s.done = self.stopped(s.level + 1, s.vertices, s.half)
        s.level, s.seen = s.level + 1, s.seen + s.vertices
        s.cur, s.turn = s.cur ^ 1, s.turn + 1


def _initialise(k, c, m, source, valid, start, end):
    def clear(i):
        k.store(m.levels, i, k.where((i == source) & valid, 0, -1))
        if c.parents:
            k.store(m.parents, i, k.where((i == source) & valid, source, -1))

    def bits(w, count):
        skip = 0 if m.isolated is None else k.load(m.isolated, w, cache="nc")
        word = k.where(valid & (w == k.shr(source, 5)), k.bit(source), 0) | skip
        k.store(m.visited, w, word)
        return count + k.popc(word)

    k.spread(c.n, clear)
    write_row(k, m.queue, c.span, (start, end, source))
    k.store(m.sums, k.thread, 0, mask=k.thread < 16)
    k.sync()
    (count,) = k.spread(c.words, bits, 0)
    k.reduce("add", m.sums, 1, count, mask=count != 0)
