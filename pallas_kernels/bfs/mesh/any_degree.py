"""Direction-optimising breadth-first search over the rows of several GPUs, one launch on each.

Vertices are places: `places` on each device, one device after the other. A device has the edges out
of its own places and their levels. A level is one meeting of all CTAs of all devices.

Push: edges of the frontier's own places claim levels by an atomic minimum; those to places of
another device are mailed, each at most once in the whole search: the place is stored in the other's
memory behind what was mailed before, and how much there is by now is told at the meeting. Letters
are opened in the next level: `levels = min(levels, level)` there, and the edges of those that this
lowered are pushed with the others. A place that an edge nearby claimed one level too far at the
same moment is put right by the minimum, and pushing its edges once more later changes nothing.

Pull (where the graph is symmetric: rows are columns): as on one device, by two copies of the bits
of the visited, here of all places on every device. Who looks after a word writes it everywhere
where the copy differs. The bits are made from the levels before the first of several pulls. Nobody
looks at places beyond the last row with entries (`last_rows.py`): of R-MAT graphs, half of all.

Cost of a level: the work of one device divided by their number; a meeting, some 3 us; 4 bytes over
the link for a mailed vertex, n / 8 bytes at most for a pull. At the end a byte a place, or 4 where
the search was deep, and 8 bytes and a random byte a vertex.

Measured (two H200; one GPU, prepared): the kernel takes 0.38 ms of rmat24-22, 711M entries (0.74),
the pulls 0.12, 0.05, 0.03 and 0.01 of them, results by vertex 0.06; 0.13 of rmat21-22 (0.06), most
of it eight meetings. A call is some 0.25 ms longer than on one GPU: 0.89 (1.08) and 0.55 ms (0.36).
"""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

import types

from ...rows.by_vertex import Vertices
from ...simt.barrier import MeshBarrier
from ..any_degree import FEW_LEFT, QUEUED
from ..bottom_up import pull
from ..top_down import FewTail, Tail, collect, range_count
from .bitmaps import OnMesh
from .last_rows import LastRows
from .levels import FAR, finish
from .messages import EDGES, MAILED, NEW, OPENED, Inbox, Push

# 4 rotating groups of control words: (ranges of the queue, new vertices, their edges, letters sent,
# letters opened that were the first)
GROUP = 8
# words told: new vertices, their edges, letters to whom it is told so far, ranges, letters sent in
# this level, letters opened that were the first
SENT = 6
SUMS = 16
HUBS, STEP = 4096, 64  # rows looked at one by one, then so many by their mean
SQUARES = 2**20  # the squares of degrees are added in units of so many
FIRST = 2  # levels that are likely to lead to hubs, whose queue would be long and of no use


class State:
    """The carry of the loop over levels, equal in all CTAs of all devices but for `ranges`.

    level, ranges (of the queue), vertices (of the frontier) and among them letters (not opened
    yet), edges (float32, of the frontier, estimated; 0: unknown), seen (vertices but for letters,
    isolated ones included), pulling, queued, bits (those of the visited are there), half, cur, ok,
    turn.
    """

    names = (
        *("level", "ranges", "vertices", "letters", "edges", "seen", "pulling", "queued", "bits"),
        *("half", "cur", "ok", "turn"),
    )

    def __init__(self, *values, **named):
        self.__dict__.update(zip(self.names, values, strict=False), **named)

    def values(self):
        return tuple(getattr(self, name) for name in self.names)


class Search:
    """One search: `k` the primitives, `c` sizes and thresholds, `m` the arrays of the kernel."""

    def __init__(self, k, c, m):
        self.k, self.c, self.m = k, c, m
        m.sums = k.shared(SUMS)  # a group of (buffered, vertices, edges, -)
        m.buffer = k.shared(4 * c.buffer)
        m.news = k.shared(k.threads)  # bits that a pull finds, those of a word a thread
        m.in_indptr, m.in_indices = m.indptr, m.indices
        self.barrier = MeshBarrier(k, m.control, SENT)
        self.inbox, self.vertices = Inbox(k, c, m), Vertices(k, m, c.n, c.vertices)
        self.ends = LastRows(k, c, m)
        self.warps = (k.warp * k.ctas + k.cta, k.ctas * k.threads // 32)

    def run(self):
        k, c = self.k, self.c
        start, end = self._initialise()
        one = k.cast(end >= 0, "i32")
        tell = (one, k.maximum(end - start, 0), k.load(self.m.indptr, c.n))

        def words(device):
            del device
            added = (c.linked, c.squares)
            return *tell, *(k.load(self.m.control, word, cache="fresh") for word in added), 0

        ok = self.barrier.device_barrier(k.const(1), words)
        mine = self.ends.fill(self.barrier, 3)
        self.near = types.SimpleNamespace(**vars(c) | {"n": mine, "words": k.shr(mine, 5)})
        # the mean degree of those that have edges out of them
        linked = k.maximum(self.barrier.total(3), 1)
        edges = self.barrier.total(2, k.cast)
        self.mean = k.maximum(edges / k.cast(linked, "f32"), 1.0)
        # that of who an edge leads to
        squares = self.barrier.total(4, k.cast) * float(SQUARES)
        self.reached = k.maximum(squares / k.maximum(edges, 1.0), self.mean)
        first = State(
            level=0,
            ranges=range_count(c.span, start, k.maximum(end, start)),
            vertices=self.barrier.total(0),
            letters=0,
            edges=self.barrier.total(1, k.cast),
            seen=c.everyone - linked + 1,
            pulling=0,
            queued=1,
            bits=0,
            half=0,
            cur=0,
            ok=ok,
            turn=2,
        )

        def going_on(*values):
            s = State(*values)
            return (s.vertices > 0) & (s.ok == 1)

        last = State(*k.while_(going_on, lambda *v: self.step(State(*v)), *first.values()))
        ok, deep = finish(k, c, self.m, self.vertices, self.barrier, last, self.ends)
        word = k.where(k.thread == 0, deep, 1 - ok)
        k.store(self.m.summary, k.thread, word, mask=(k.cta == 0) & (k.thread < 2))

    def _initialise(self):
        """(start, end) of the source's row; end is -1 where it lies on another device."""
        k, c, m = self.k, self.c, self.m
        place = self.vertices.place(k.load(m.source, 0))

        def clear(j):
            at = [j * 4 + i for i in range(4)]
            k.store_vec(m.levels, j * 4, [k.where(i == place, 0, FAR) for i in at])

        k.store(m.sums, k.thread, 0, mask=k.thread < SUMS)
        k.if_((k.cta == 0) & (k.warp == 0), lambda: self.ends.find(place, c.linked))
        k.spread(c.n // 4, clear)
        k.spread(c.everyone // 32, lambda w: k.store(m.sent, w, 0))
        self._add_squares()
        here = place >= 0
        start, end = k.row(m.indptr, place, here)

        def item(i):
            at = start + i * c.span
            k.store_vec(m.queue, i * 4, (at, k.minimum(at + c.span, end), place, 0))

        k.spread(k.where(here, range_count(c.span, start, end), 0), item)
        return start, k.where(here, end, -1)

    def _add_squares(self):
        """The sum of the squares of degrees, from the means of rows of like degree but for hubs."""
        k, c, m = self.k, self.c, self.m
        hubs = min(HUBS, c.n)

        def some(i, squares):
            alone = i < hubs
            row = k.where(alone, i, hubs + (i - hubs) * STEP)
            after = k.minimum(row + k.where(alone, 1, STEP), c.n)
            start, end = (k.load(m.indptr, r, cache="nc") for r in (row, after))
            edges = k.cast(end - start, "f32")
            return squares + edges * edges / k.cast(after - row, "f32")

        (squares,) = k.spread(hubs - (hubs - c.n) // STEP, some, k.const(0.0, "f32"))
        squares = k.cast(k.warp_sum(squares) * (1.0 / SQUARES), "i32")
        k.reduce("add", m.control, c.squares, squares, mask=(k.lane == 0) & (squares != 0))

    def step(self, s):
        """One level, or the making of bits or of a queue; one meeting."""
        k, c, m = self.k, self.c, self.m
        slot = c.slots + GROUP * (s.turn & 3)
        # nobody reads group turn + 2 (last read at the meeting before) or adds to it (after the
        # next one)
        after = c.slots + GROUP * ((s.turn + 2) & 3)
        k.store(m.control, after + k.thread, 0, mask=(k.cta == 0) & (k.thread < GROUP))
        pulling = k.const(False, "i1")
        if c.symmetric:
            pulling = (s.pulling == 1) | self.prefer_pull(s.edges, s.seen + s.letters)
        collecting = ~pulling & (s.queued == 0)
        actions = [(~pulling & ~collecting, self.push_level)]
        if c.symmetric:
            actions += [
                (pulling & (s.bits == 1), self.pull_level),
                (pulling & (s.bits == 0), self.make_bits),
                (collecting, self.make_queue),
            ]
        for when, action in actions:
            s = self._branch(when, action, s, slot)
        s.turn = s.turn + 1
        return s.values()

    def _branch(self, when, action, s, slot):
        """The state after `action` where `when` holds, else as it was."""

        def run():
            t = State(*s.values())
            action(t, slot)
            return t.values()

        return State(*self.k.if_(when, run, *s.values()))

    def prefer_pull(self, edges, seen, growth=1.0):
        """Whether a frontier of edges * growth edges is better pulled for."""
        k, c = self.k, self.c
        edges = edges * growth
        left = k.cast(c.everyone - seen, "f32") * self.mean
        return (edges > float(c.pull_edges)) & (edges * c.alpha > left)

    def device_barrier(self, s, slot):
        """Meets; then ok and the size of the frontier are known, and the letters."""
        k, m, c = self.k, self.m, self.c

        def tell(d):
            def word(i):
                return k.load(m.control, i, cache="fresh")

            ranges, new, edges, sent, opened = (word(slot + j) for j in range(5))
            return new, edges, word(c.mailed + d), ranges, sent, opened

        words = enumerate((NEW, EDGES, MAILED, OPENED), 1)
        adds = [(m.sums, word, m.control, slot + j) for j, word in words]
        s.ok = s.ok & self.barrier.device_barrier(s.turn, tell, adds)
        self.inbox.fill(self.barrier)
        s.ranges = self.barrier.word(k.device, 3)
        new, s.letters = self.barrier.total(0), self.barrier.total(4)
        s.vertices, s.seen = new + s.letters, s.seen + new + self.barrier.total(5)
        edges = self.barrier.total(1, k.cast)
        # letters have no degree yet: as those that did not have to be mailed
        s.edges = edges + edges * k.cast(s.letters, "f32") / k.cast(k.maximum(new, 1), "f32")

    def push_level(self, s, slot):
        k, c, m = self.k, self.c, self.m
        # the queue is only made if the next level is likely to be pushed too
        queue = k.const(True, "i1")
        if c.symmetric:
            growth = k.where(s.level < FIRST, self.reached, self.mean)
            queue = ~self.prefer_pull(s.edges, s.seen + s.letters, growth)
        tail = Tail(k, c, m, s.cur ^ 1, slot)
        Push(k, c, m, s, tail, queue, self.inbox).run(self.warps)
        tail.flush()
        self.device_barrier(s, slot)
        s.level, s.cur, s.queued, s.bits = s.level + 1, s.cur ^ 1, k.cast(queue, "i32"), 0

    def make_bits(self, s, slot):
        """The bits of the visited, in both copies on all devices, from the levels."""
        k, m = self.k, self.m
        self.inbox.open(s.level)
        s.ok = s.ok & k.grid_barrier(m.control)[0]
        worker, workers = self.warps
        copies = OnMesh(k, self.near, m, k.const(0))

        def words(w0):
            word, w = copies.of_levels(w0), w0 + k.lane
            for at in (copies.here, copies.there):
                copies.everywhere(at + copies.far + w, word, w < self.near.words)

        k.for_(worker * 32, self.near.words, workers * 32, words)
        keep = s.vertices, s.edges
        self.device_barrier(s, slot)
        s.pulling, s.bits, s.queued, s.half = 1, 1, 0, 0
        s.vertices, s.edges = keep

    def pull_level(self, s, slot):
        k, c, m = self.k, self.c, self.m
        queue = FewTail(k, c, m, s.cur, slot), c.everyone - s.seen <= c.everyone // QUEUED
        pull(k, self.near, m, m, s.level, OnMesh(k, self.near, m, s.half), self.warps, queue)
        self.device_barrier(s, slot)
        left = c.everyone - s.seen
        stay = (s.vertices * c.beta >= c.everyone) | (left <= s.vertices * FEW_LEFT)
        s.half, s.queued = s.half ^ 1, k.cast(queue[1], "i32")
        s.pulling, s.level = k.cast(stay, "i32"), s.level + 1

    def make_queue(self, s, slot):
        """The queue that the last level did not make; who is visited needs no letter."""
        k, c, m = self.k, self.c, self.m
        self.inbox.open(s.level)
        s.ok = s.ok & k.grid_barrier(m.control)[0]
        tail = Tail(k, c, m, s.cur, slot)
        collect(k, self.near, m, m, s.level, self.warps, tail)

        def known(w):
            seen = k.load(m.visited, s.half * (c.everyone // 32) + w, cache="fresh")
            k.reduce("or", m.sent, w, k.where(s.bits == 1, seen, 0))

        k.spread(c.everyone // 32, lambda w: (known(w), None)[1])
        tail.flush()
        keep = s.vertices
        self.device_barrier(s, slot)
        s.vertices, s.queued = keep, 1
