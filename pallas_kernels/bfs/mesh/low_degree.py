"""Breadth-first search of graphs of small degree over several GPUs, one launch on each.

Each device has the rows of its own vertices and of a halo: the vertices from which one of its own
is reached in at most `depth` steps. It searches both for `depth` levels as one GPU searches its
graph (`bfs/low_degree.py`: by one CTA with bits and queue in shared memory, or by all CTAs),
without communication. Then comes a device barrier, where each device sends to the others which of
its own vertices in their halos it has reached since the last one, and which of these are of the
last level.

Why this is exact. Suppose that at a barrier all levels up to t are known, of own vertices and of
the halo. A halo vertex i steps away from the own ones gets the right level if this is in
t + 1 .. t + depth - i: its predecessor on a shortest path is at most i + 1 steps away, so that was
right one level before. So own vertices (i = 0) are right for `depth` levels. A halo vertex may be
reached too late, but at the barrier its owner says whether it is reached by then, and a bit says
no more. Late frontier entries are harmless: all their neighbours are visited already.

Ids of a device: its own vertices (those in halos of other devices first), then its halo. A message
is 2 id + (1 if it is of the last level). A device sends each vertex at most once to each device; it
appends to its part of the receiver's buffer, and the payload of the barrier says how many messages
that holds. Vertices of earlier levels are sent when they are expanded, those of the last level
before the barrier.

Cost: a level as on one device (0.9 us by one CTA, 3.8 by all), and a device barrier every `depth`
levels: 2.6 us with its messages between one CTA of each device (1.6 without), 3.0 and a grid
barrier between all CTAs. Memory: two copies of the halo's rows; 8 bytes of log for each id. The end
as in `any_degree.py`.

Measured (two H200; in brackets one GPU): grid 1000 2.8 ms (2.6; 1999 levels), with a halo of depth
8 3.2, of 4 3.8, of 1 7.7; Delaunay 2^21 2.9 (2.3; 593 levels, most of them by all CTAs). 0.3 ms of
a call are outside of the kernel.
"""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

import types

from ...rows.by_vertex import Vertices
from ...simt.barrier import MeshBarrier
from ..low_degree import TAIL, Grid, SingleCTA, claim, expand, log_entry, place_of_bit
from .levels import FAR, finish

PAYLOAD_WORDS = 2  # payload for a device: size of the frontier, messages sent to it so far
RESULT = 44  # control words 44..50: what CTA 0 reports after working alone
DEVICE_BITS = 5  # of a word of `outbox`; the other bits are an id
IDS = 2 ** (31 - DEVICE_BITS)


class State:
    """The carry of the search, equal in all CTAs of a device; end, barriers, done and ok are equal
    on all devices.

    level; start and count: of the frontier, a stretch of the log; turn: control word
    TAIL + (turn & 3) counts the next frontier; barriers: device barriers so far; end: the level of
    the next one; done; ok.
    """

    names = ("level", "start", "count", "turn", "barriers", "end", "done", "ok")

    def __init__(self, *values, **named):
        self.__dict__.update(zip(self.names, values, strict=False), **named)

    def values(self):
        return tuple(getattr(self, name) for name in self.names)


class Outbox:
    """Sends vertices to the devices that have them in their halos."""

    def __init__(self, k, c, m):
        self.k, self.c, self.m = k, c, m
        self.exported = k.load(m.exported, 0, cache="nc")

    def send(self, v, last, mask, sent):
        """Sends id v to all devices that have it in their halos.

        last: 1 if v is of the last level before a barrier. sent: (array, i): word i + d of the
        array counts the messages to device d.
        """
        k, c, m = self.k, self.c, self.m

        def some():
            for j in range(c.width):
                word = k.load(m.outbox, v * c.width + j, mask=mask, other=-1, cache="nc")
                is_valid = mask & (word >= 0)
                to = k.where(is_valid, k.shr(word, 31 - DEVICE_BITS), 0)
                at = k.atomic("add", sent[0], sent[1] + to, 1, mask=is_valid)
                message = (word & (IDS - 1)) * 2 + last
                k.store(k.on(m.messages, to), k.device * c.halo + at, message, mask=is_valid)

        k.if_(mask, some)

    def is_exported(self, v, mask):
        """Whether v is in the halo of another device."""
        return mask & self.k.below(v, self.exported)


class SingleCTAOnMesh(SingleCTA):
    """CTA 0 of a device works alone and sends the vertices that it expands. `first`: the level of
    the last barrier, whose vertices were sent before it."""

    def __init__(self, k, c, state, outbox):
        super().__init__(k, c, state)
        self.outbox, self.sent, self.first = outbox, (k.shared(k.devices), 0), None

    def record(self, at, vertex, level, mask):
        super().record(at, vertex, level, mask)
        mask = self.outbox.is_exported(vertex, mask & (level > self.first))
        self.outbox.send(vertex, 0, mask, self.sent)


class GridOnMesh(Grid):
    """All CTAs of a device work and send the vertices that they expand. `first` as above."""

    def __init__(self, k, c, state, outbox):
        super().__init__(k, c, state)
        self.outbox, self.sent, self.first = outbox, (state.control, c.sent), None

    def record(self, at, vertex, level, mask):
        mask = self.outbox.is_exported(vertex, mask & (level > self.first))
        self.outbox.send(vertex, 0, mask, self.sent)


class Search:
    """One search: `k` the primitives, `c` sizes and thresholds, `m` the arrays of the kernel."""

    def __init__(self, k, c, m):
        self.k, self.c, self.m = k, c, m
        self.barrier = MeshBarrier(k, m.control, PAYLOAD_WORDS)
        self.vertices = Vertices(k, m, c.places, c.vertices)
        self.outbox = Outbox(k, c, m)
        self.single = SingleCTAOnMesh(k, c, m, self.outbox)
        self.grid = GridOnMesh(k, c, m, self.outbox)
        self.read = k.shared(k.devices)  # how many messages of each device were read

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
        s.turn = s.barriers + 1
        sizes = types.SimpleNamespace(n=c.places, deepest=c.deepest, local_levels=True)
        ok, deep = finish(k, sizes, m, self.vertices, self.barrier, s)
        word = k.where(k.thread == 0, deep, 1 - ok)
        k.store(m.summary, k.thread, word, mask=(k.cta == 0) & (k.thread < 2))

    def _initialise(self):
        """Clears levels and bits; looks for the source's id, sets its bit and logs it.

        Control word c.source becomes that id + 1 (0 if this device does not have it). Returns ok.
        """
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
        """Levels and barriers by one CTA, or one level by all CTAs, or one barrier of all CTAs."""
        k, c, m = self.k, self.c, self.m
        # control word TAIL + (turn + 2) is free: it was last read before the previous barrier, and
        # is next written after the coming one
        k.store(m.control, TAIL + ((s.turn + 2) & 3), 0, mask=(k.cta == 0) & (k.thread == 0))
        small = s.count <= c.solo_in
        at_barrier = ~small & (s.level == s.end)
        level = ~small & ~at_barrier
        turn = s.turn + 1
        for when, action in (
            (small, self.by_one_cta),
            (at_barrier, self.device_barrier),
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
        """One level by all CTAs; control word TAIL + (turn & 3) counts the next frontier."""
        k, c, m = self.k, self.c, self.m
        over = (k.warp * k.ctas + k.cta) * 32, k.threads * k.ctas
        self.grid.first = s.end - c.depth
        expand(k, c, m, self.grid, s.level, s.start, s.count, s.turn, over)
        s.ok, new = k.grid_barrier(m.control, [(m.control, TAIL + (s.turn & 3))])
        s.level, s.start, s.count = s.level + 1, s.start + s.count, new

    def device_barrier(self, s):
        """A barrier of all CTAs: sends the vertices of the last level, reads the messages."""
        k, c, m = self.k, self.c, self.m
        s.level = s.end

        def last(i):
            v, _ = k.load_vec(m.log, 2 * (s.start + i), 2, cache="fresh")
            self.outbox.send(v, 1, self.outbox.is_exported(v, v >= 0), self.grid.sent)

        k.spread(s.count, last)

        def payload(device):
            return s.count, k.load(m.control, c.sent + device, cache="fresh")

        ok = self.barrier.device_barrier(s.barriers + 1, payload)
        over = (k.warp * k.ctas + k.cta) * 32, k.threads * k.ctas
        self.after_barrier(s, ok)
        k.if_(s.done == 0, lambda: self.read_messages(self.grid, s, s.start + s.count, over))
        ok, new = k.grid_barrier(m.control, [(m.control, TAIL + (s.turn & 3))])
        s.ok, s.count = s.ok & ok, s.count + new

    def after_barrier(self, s, ok):
        """Updates the state: the search is done if no device has a frontier."""
        k, c = self.k, self.c
        s.done, s.ok = k.cast(self.barrier.total(0) == 0, "i32"), s.ok & ok
        s.barriers, s.end = s.barriers + 1, s.end + c.depth

    def read_messages(self, place, s, after, over):
        """Sets the bits of the vertices in new messages; those of the last level join the frontier,
        from `after` on in the log. place: where bits and frontier are, `single` or `grid`."""
        k, c, m = self.k, self.c, self.m

        def of_device(d):
            high = self.barrier.word(d, 1)

            def chunk(i0):
                i = i0 + k.lane
                at = d * c.halo + i
                message = k.load(m.messages, at, mask=i < high, other=-1, cache="fresh")
                v = k.where(message >= 0, k.shr(message, 1), c.n)
                (new,) = claim(k, c, place.bits, [v])
                last = new & (message & 1 == 1)
                place.append([v], [last], s.level - 1, after, v, s.turn)

            k.for_(k.load(self.read, d) + over[0], high, over[1], chunk)

        k.for_(0, k.devices, 1, lambda d: (of_device(d), None)[1])
        k.sync()
        mine = k.thread < k.devices
        received = self.barrier.word(k.where(mine, k.thread, 0), 1)
        k.store(self.read, k.thread, received, mask=mine)
        k.sync()

    def by_one_cta(self, s):
        """CTA 0 works alone while the frontier is small; the others wait at a grid barrier.

        CTA 0 reports its state in control words RESULT .. RESULT + 6, and the numbers of messages
        sent and read in c.sent + d and c.read + d.
        """
        k, c, m = self.k, self.c, self.m
        k.if_(k.cta == 0, lambda: self._work_of_cta_0(State(*s.values())))
        names = ("level", "start", "count", "barriers", "end", "done", "ok")
        words = [(m.control, RESULT + j) for j in range(len(names))]
        ok, *words = k.grid_barrier(m.control, words)
        s.__dict__.update(zip(names, words, strict=True))
        s.ok = s.ok & ok
        mine = k.thread < k.devices
        read = k.load(m.control, c.read + k.thread, mask=mine, cache="fresh")
        k.store(self.read, k.thread, read, mask=mine)
        k.sync()

    def _work_of_cta_0(self, s):
        """Levels and device barriers until the frontier grows large or the search ends."""
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
        out = s.level, s.start, s.count, s.barriers, s.end, s.done, s.ok
        for j, word in enumerate(out):
            k.store(m.control, RESULT + j, word, mask=k.thread == 0)
        for words, first in ((single.sent[0], c.sent), (self.read, c.read)):
            word = k.load(words, k.thread, mask=mine)
            k.store(m.control, first + k.thread, word, mask=mine)

    def device_barrier_alone(self, s):
        """A device barrier by one CTA: sends the vertices of the last level, reads the messages."""
        k, single = self.k, self.single
        s.level = s.end

        def last(i):
            v = k.load(single.queues, single.at(s.level, i))
            self.outbox.send(v, 1, self.outbox.is_exported(v, v >= 0), single.sent)

        k.for_(k.thread, s.count, k.threads, last)
        k.store(single.tails, s.turn & 3, s.count, mask=k.thread == 0)
        k.store(single.tails, (s.turn + 1) & 3, 0, mask=k.thread == 0)

        def payload(device):
            return s.count, k.load(single.sent[0], device)

        ok = self.barrier.device_barrier_alone(s.barriers + 1, payload)
        self.after_barrier(s, ok)
        over = k.warp * 32, k.threads
        k.if_(s.done == 0, lambda: self.read_messages(single, s, s.start, over))
        s.count, s.turn = k.load(single.tails, s.turn & 3), s.turn + 1
