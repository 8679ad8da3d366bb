"""Breadth-first search of graphs of small degree over several GPUs, one launch on each.

Each device has the rows of its own vertices and of a halo: those from which one of its own is
reached in at most `depth` steps. It searches both as one device searches its graph
(`bfs/low_degree.py`: by one CTA with bits and queue in shared memory, or by all), for `depth`
levels without asking anybody. Then the devices meet and tell each other which of their own
vertices, in the halo of another, were reached meanwhile, and which of them are of the last level.

Why that is exact. Let all levels up to t be known of own vertices and halo at a meeting. A vertex
of the halo that is i steps away from the own ones has the right level in t + 1 .. t + depth - i:
who precedes it on a shortest path is at most i + 1 steps away, so it was right one level before. So
own vertices (i = 0) are right for `depth` levels. In the halo a level may be too late, but never
beyond the meeting, where their owners tell who was reached by then: bits say no more than that.
Frontier entries that are there too late reach nobody whose bit is not set.

Ids of a device: its own vertices (first those in the halo of others), then its halo. Letters:
2 id + (is of the last level), each vertex at most once to each device, stored in the other's memory
where its count, told at the meeting, says. Letters of earlier levels go out when the vertex is
expanded, those of the last level before the meeting.

Cost: a level that of one device (0.9 us by one CTA, 3.8 by all), and every `depth` levels a
meeting: of one CTA of each device 2.6 us with its letters (1.6 without), of all 3.0 and a grid
barrier. Memory: rows of the halo twice; 8 bytes an id for the log. At the end as `any_degree.py`.

Measured (two H200, one GPU in brackets): grid 1000 2.8 ms (2.6; 1999 levels), with a halo of depth
8 3.2, 4 3.8, 1 7.7; Delaunay 2^21 2.9 (2.3; 593 levels, most of them by all CTAs). 0.3 ms of
a call are not the kernel's.
"""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

import types

from ...rows.by_vertex import Vertices
from ...simt.barrier import MeshBarrier
from ..low_degree import TAIL, Grid, SingleCTA, claim, expand, log_entry, place_of_bit
from .levels import FAR, finish

SENT = 2  # words told: entries of the frontier, letters sent to whom it is told so far
RESULT = 44  # control words 44..50: what CTA 0 reports after working alone
DEVICE_BITS = 5  # of a word of `outbox`; ids of a halo have the rest
IDS = 2 ** (31 - DEVICE_BITS)


class State:
    """The carry of the search: of all CTAs of a device alike; end, meetings, done and ok of all.

    level, start and count (of the frontier in the log), turn (of the slots that count finds),
    meetings (so far), end (the level of the next one), done, ok.
    """

    names = ("level", "start", "count", "turn", "meetings", "end", "done", "ok")

    def __init__(self, *values, **named):
        self.__dict__.update(zip(self.names, values, strict=False), **named)

    def values(self):
        return tuple(getattr(self, name) for name in self.names)


class Outbox:
    """Letters: `sent` says where the next one to each device goes."""

    def __init__(self, k, c, m):
        self.k, self.c, self.m = k, c, m
        self.told = k.load(m.told, 0, cache="nc")

    def post(self, v, last, mask, sent):
        """Mails id v wherever it is in the halo; sent: (array, first of its words)."""
        k, c, m = self.k, self.c, self.m

        def some():
            for j in range(c.width):
                word = k.load(m.outbox, v * c.width + j, mask=mask, other=-1, cache="nc")
                is_valid = mask & (word >= 0)
                to = k.where(is_valid, k.shr(word, 31 - DEVICE_BITS), 0)
                at = k.atomic("add", sent[0], sent[1] + to, 1, mask=is_valid)
                message = (word & (IDS - 1)) * 2 + last
                k.store(k.on(m.letters, to), k.device * c.halo + at, message, mask=is_valid)

        k.if_(mask, some)

    def of(self, v, mask):
        """Whether v is one of those that others wait for."""
        return mask & self.k.below(v, self.told)


class Alone(SingleCTA):
    """CTA 0 of a device by itself, that posts what it expands."""

    def __init__(self, k, c, state, outbox):
        super().__init__(k, c, state)
        self.outbox, self.sent, self.first = outbox, (k.shared(k.devices), 0), None

    def record(self, at, vertex, level, mask):
        super().record(at, vertex, level, mask)
        mask = self.outbox.of(vertex, mask & (level > self.first))
        self.outbox.post(vertex, 0, mask, self.sent)


class Together(Grid):
    """All CTAs of a device, that post what they expand."""

    def __init__(self, k, c, state, outbox):
        super().__init__(k, c, state)
        self.outbox, self.sent, self.first = outbox, (state.control, c.sent), None

    def record(self, at, vertex, level, mask):
        mask = self.outbox.of(vertex, mask & (level > self.first))
        self.outbox.post(vertex, 0, mask, self.sent)


class Search:
    """One search: `k` the primitives, `c` sizes and thresholds, `m` the arrays of the kernel."""

    def __init__(self, k, c, m):
        self.k, self.c, self.m = k, c, m
        self.barrier = MeshBarrier(k, m.control, SENT)
        self.vertices = Vertices(k, m, c.places, c.vertices)
        self.outbox = Outbox(k, c, m)
        self.single, self.grid = Alone(k, c, m, self.outbox), Together(k, c, m, self.outbox)
        self.read = k.shared(k.devices)  # letters of each device that were read

    def run(self):
        k, c, m = self.k, self.c, self.m
        ok = self._initialise()
        found = k.load(m.control, c.source, cache="fresh")
        first = State(0, 0, k.cast(found > 0, "i32"), 0, 1, c.depth, 0, ok)

        def going(*values):
            s = State(*values)
            return (s.done == 0) & (s.ok == 1) & (s.level <= c.vertices)

        s = State(*k.while_(going, lambda *v: self.step(State(*v)), *first.values()))

        def result(i):
            v, level = k.load_vec(m.log, 2 * i, 2, cache="fresh")
            own = k.below(v, c.places)
            place = k.load(m.places_of, v, mask=own, cache="nc") - self.vertices.first
            k.store(m.levels, place, level, mask=own)

        k.spread(s.start + s.count, result)
        s.ok = s.ok & k.grid_barrier(m.control)[0]
        s.turn = s.meetings + 1
        own = types.SimpleNamespace(n=c.places, deepest=c.deepest, own=True)
        ok, deep = finish(k, own, m, self.vertices, self.barrier, s)
        word = k.where(k.thread == 0, deep, 1 - ok)
        k.store(m.summary, k.thread, word, mask=(k.cta == 0) & (k.thread < 2))

    def _initialise(self):
        """ok; where the source is an id its bit is set, it is logged, and `control` tells it."""
        k, c, m = self.k, self.c, self.m
        source = k.load(m.source, 0)
        valid = k.below(source, c.vertices)
        place = k.load(m.positions, source, mask=valid, other=-2, cache="nc")
        k.spread(c.places, lambda i: k.store(m.levels, i, FAR))
        k.spread(c.words, lambda w: k.store(m.visited, w, 0))

        def look(i):
            here = k.load(m.places_of, i, cache="nc") == place
            k.store(m.control, c.source, i + 1, mask=here)

        k.spread(c.n, look)
        k.store(self.read, k.thread, 0, mask=k.thread < k.devices)
        ok = self.barrier.device_barrier(k.const(1), lambda device: (0, 0))
        source = k.load(m.control, c.source, cache="fresh") - 1
        mine = (k.cta == 0) & (k.thread == 0) & (source >= 0)
        word, bit = place_of_bit(k, c, k.maximum(source, 0))
        k.store(m.visited, word, bit, mask=mine)
        log_entry(k, c, m, k.const(0), source, 0, source, mine)
        return ok & k.grid_barrier(m.control)[0]

    def step(self, s):
        """Levels and meetings by one CTA, one level by all, or one meeting of all."""
        k, c, m = self.k, self.c, self.m
        # nobody reads slot turn + 2 (last read before the previous barrier) or adds to it (after
        # the next one)
        k.store(m.control, TAIL + ((s.turn + 2) & 3), 0, mask=(k.cta == 0) & (k.thread == 0))
        few = s.count <= c.solo_in
        meeting = ~few & (s.level == s.end)
        level = ~few & ~meeting
        turn = s.turn + 1
        for when, action in (
            (few, self.alone),
            (meeting, self.device_barrier),
            (level, self.expand),
        ):
            s = self._branch(when, action, s)
        s.turn = turn
        return s.values()

    def _branch(self, when, action, s):
        """The state after `action` where `when` holds, else as it was."""

        def run():
            t = State(*s.values())
            action(t)
            return t.values()

        return State(*self.k.if_(when, run, *s.values()))

    def expand(self, s):
        """One level by all CTAs."""
        k, c, m = self.k, self.c, self.m
        over = (k.warp * k.ctas + k.cta) * 32, k.threads * k.ctas
        self.grid.first = s.end - c.depth
        expand(k, c, m, self.grid, s.level, s.start, s.count, s.turn, over)
        s.ok, new = k.grid_barrier(m.control, [(m.control, TAIL + (s.turn & 3))])
        s.level, s.start, s.count = s.level + 1, s.start + s.count, new

    def device_barrier(self, s):
        """All CTAs of this device tell those of the others who is in the last level."""
        k, c, m = self.k, self.c, self.m
        s.level = s.end

        def last(i):
            v, _ = k.load_vec(m.log, 2 * (s.start + i), 2, cache="fresh")
            self.outbox.post(v, 1, self.outbox.of(v, v >= 0), self.grid.sent)

        k.spread(s.count, last)

        def tell(device):
            return s.count, k.load(m.control, c.sent + device, cache="fresh")

        ok = self.barrier.device_barrier(s.meetings + 1, tell)
        over = (k.warp * k.ctas + k.cta) * 32, k.threads * k.ctas
        self.heard(s, ok)
        k.if_(s.done == 0, lambda: self.open(self.grid, s, s.start + s.count, over))
        ok, new = k.grid_barrier(m.control, [(m.control, TAIL + (s.turn & 3))])
        s.ok, s.count = s.ok & ok, s.count + new

    def heard(self, s, ok):
        """After a meeting: the search has ended where no frontier is left."""
        k, c = self.k, self.c
        s.done, s.ok = k.cast(self.barrier.total(0) == 0, "i32"), s.ok & ok
        s.meetings, s.end = s.meetings + 1, s.end + c.depth

    def open(self, place, s, after, over):
        """Sets the bits of those that letters tell of; those of the last level join the frontier,
        from `after` on in the log."""
        k, c, m = self.k, self.c, self.m

        def of_device(d):
            high = self.barrier.word(d, 1)

            def letters(i0):
                i = i0 + k.lane
                at = d * c.halo + i
                message = k.load(m.letters, at, mask=i < high, other=-1, cache="fresh")
                v = k.where(message >= 0, k.shr(message, 1), c.n)
                (new,) = claim(k, c, place.bits, [v])
                last = new & (message & 1 == 1)
                place.append([v], [last], s.level - 1, after, v, s.turn)

            k.for_(k.load(self.read, d) + over[0], high, over[1], letters)

        k.for_(0, k.devices, 1, lambda d: (of_device(d), None)[1])
        k.sync()
        mine = k.thread < k.devices
        heard = self.barrier.word(k.where(mine, k.thread, 0), 1)
        k.store(self.read, k.thread, heard, mask=mine)
        k.sync()

    def alone(self, s):
        """CTA 0 goes on alone, the others wait."""
        k, c, m = self.k, self.c, self.m
        k.if_(k.cta == 0, lambda: self._alone(State(*s.values())))
        names = ("level", "start", "count", "meetings", "end", "done", "ok")
        words = [(m.control, RESULT + j) for j in range(len(names))]
        ok, *words = k.grid_barrier(m.control, words)
        s.__dict__.update(zip(names, words, strict=True))
        s.ok = s.ok & ok
        mine = k.thread < k.devices
        read = k.load(m.control, c.read + k.thread, mask=mine, cache="fresh")
        k.store(self.read, k.thread, read, mask=mine)
        k.sync()

    def _alone(self, s):
        k, c, m, single = self.k, self.c, self.m, self.single
        mine = k.thread < k.devices
        sent = k.load(m.control, c.sent + k.thread, mask=mine, cache="fresh")
        k.store(single.sent[0], k.thread, sent, mask=mine)
        single.enter(s.level, s.start, s.count)
        s.turn = k.const(0)

        def one_level(level, start, count, turn):
            k.store(single.tails, (turn + 1) & 3, 0, mask=k.thread == 0)
            over = k.warp * 32, k.threads
            expand(k, c, m, single, level, start, count, turn, over)
            k.sync()
            return level + 1, start + count, k.load(single.tails, turn & 3), turn + 1

        def until_barrier(*values):
            s = State(*values)
            single.first = s.end - c.depth

            def within(level, start, count, turn):
                del start, turn
                return (count > 0) & (count <= c.solo_out) & (level < s.end)

            found = k.while_(within, one_level, s.level, s.start, s.count, s.turn)
            s.__dict__.update(zip(("level", "start", "count", "turn"), found, strict=True))
            return self._branch(s.count <= c.solo_out, self.device_barrier_alone, s).values()

        def going(*values):
            s = State(*values)
            is_valid = (s.done == 0) & (s.ok == 1) & (s.level <= c.vertices)
            return is_valid & (s.count <= c.solo_out)

        s = State(*k.while_(going, until_barrier, *s.values()))
        single.leave(s.level, s.start, s.count)
        out = s.level, s.start, s.count, s.meetings, s.end, s.done, s.ok
        for j, word in enumerate(out):
            k.store(m.control, RESULT + j, word, mask=k.thread == 0)
        for words, first in ((single.sent[0], c.sent), (self.read, c.read)):
            word = k.load(words, k.thread, mask=mine)
            k.store(m.control, first + k.thread, word, mask=mine)

    def device_barrier_alone(self, s):
        """One CTA of this device tells those of the others who is in the last level."""
        k, single = self.k, self.single
        s.level = s.end

        def last(i):
            v = k.load(single.queues, single.at(s.level, i))
            self.outbox.post(v, 1, self.outbox.of(v, v >= 0), single.sent)

        k.for_(k.thread, s.count, k.threads, last)
        k.store(single.tails, s.turn & 3, s.count, mask=k.thread == 0)
        k.store(single.tails, (s.turn + 1) & 3, 0, mask=k.thread == 0)

        def tell(device):
            return s.count, k.load(single.sent[0], device)

        ok = self.barrier.device_barrier_alone(s.meetings + 1, tell)
        self.heard(s, ok)
        over = k.warp * 32, k.threads
        k.if_(s.done == 0, lambda: self.open(single, s, s.start, over))
        s.count, s.turn = k.load(single.tails, s.turn & 3), s.turn + 1
