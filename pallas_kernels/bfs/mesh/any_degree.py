"""Direction-optimising breadth-first search over the rows of several GPUs, one launch on each.

A vertex is numbered by its place: `places` consecutive numbers for each device. A device holds the
out-edges and the levels of its own places. A level ends with one device barrier.

Push: an edge to a place of the same device claims its level by an atomic minimum. An edge to a
place of another device sends a message, at most one for each place in the whole search: the sender
appends the place to its part of the receiver's buffer, and the payload of the barrier says how many
messages it has sent so far. The receiver reads them in the next level: `levels = min(levels,
level)`, and it pushes the edges of the places that this lowered together with its own queue. In the
same level a local edge may claim such a place one level too late; the minimum corrects this, and
pushing its edges a second time changes nothing.

Pull (only if the graph is symmetric: rows are columns): as on one device, with two copies of the
bitmap of the visited, here of the places of all devices. A device writes each changed word of its
own places to all devices. The bitmap is made from the levels before the first of several pulls.
Scans stop after the last row with entries (`LastRows`): half of all places of R-MAT graphs.

Cost of a level: the work of one device divided by the number of devices; a device barrier, some
3 us; over the link 4 bytes for each message, at most n / 8 bytes for a pull. At the end a byte for
each place (4 if the search has 255 levels or more), then 8 bytes and a random byte for each vertex.

Measured (two H200; in brackets one GPU, prepared): the kernel takes 0.38 ms on rmat24-22, 711M
entries (0.74): the pulls 0.12, 0.05, 0.03 and 0.01 of it, results by vertex 0.06. It takes 0.13 ms
on rmat21-22 (0.06), most of it for eight barriers. A call takes some 0.25 ms longer than on one
GPU: 0.89 (1.08) and 0.55 ms (0.36).
"""

import dataclasses
import functools
from typing import Any

from ...frontier import Carry, Rotation, range_count, write_row
from ...simt.mesh import MeshBarrier, Vertices
from ...simt.primitives import Simt
from ...simt.typed import Arrays, Operand
from ..any_degree import QUEUED, STAY_PULL
from ..bottom_up import pull
from ..problem import Problem as OneGPU
from ..top_down import Tail, UnbufferedTail, collect
from .messages import CLAIMED, EDGES, MESSAGES, NEW, Inbox, Push
from .places import FAR, GROUP, LINKED, SENT_TO, SQUARED, LastRows, OnMesh, finish

# The payload for a device at a barrier: places claimed here, their edges, messages sent to that
# device so far, ranges of the next queue, messages sent in this level, received places claimed.
PAYLOAD_WORDS = 6
SUMS = 16  # shared words of `sums`
HUBS, STEP = 4096, 64  # degrees of the first HUBS rows are read one by one, then means of STEP rows
SQUARES = 2**20  # the unit in which squares of degrees are added
FIRST = 2  # up to this level, assume that the next frontier has hubs: it is likely to be pulled


@dataclasses.dataclass
class State(Carry):
    """The carry of the loop over levels, equal in all CTAs of all devices except for `ranges`."""

    level: Any
    ranges: Any  # of the queue
    vertices: Any  # of the frontier
    messages: Any  # how many of them are messages not read yet
    edges: Any  # of the frontier, float32, estimated, 0 if unknown
    seen: Any  # visited vertices without those messages, isolated vertices included
    pulling: Any  # 1: the next level is pulled
    queued: Any  # 1: the queue is made
    bits: Any  # 1: the bitmap of the visited is valid
    half: Any  # its current copy
    cur: Any  # current queue
    ok: Any
    turn: Any  # number of the next barrier


@dataclasses.dataclass(frozen=True)
class Problem(OneGPU):
    """The search on this device: n and words are those of its places."""

    all_places: int = 0  # of all devices
    vertices: int = 0
    symmetric: bool = False
    local_levels: bool = True
    slots: int = 0  # the first control word behind those of barriers


class Search:
    """One search: `k` the primitives, `c` sizes and thresholds, `m` the arrays of the kernel."""

    def __init__(self, k: Simt, c: Problem, m: Arrays):
        self.k, self.c, self.m = k, c, m
        m.sums = k.shared(SUMS)  # (ranges in `buffer`, then as in `messages.py`)
        m.buffer = k.shared(4 * c.buffer)
        m.news = k.shared(k.threads)  # bits that a pull finds: one word for each thread
        m.in_indptr, m.in_indices = m.indptr, m.indices
        self.barrier = MeshBarrier(k, m.control, PAYLOAD_WORDS)
        self.inbox, self.vertices = Inbox(k, c, m), Vertices(k, m, c.n, c.vertices)
        self.last_rows = LastRows(k, c, m)
        self.groups = Rotation(k, m.control, c.slots, GROUP)

    def run(self):
        k, c = self.k, self.c
        start, end = self._initialise()
        one = k.cast(end >= 0, "i32")
        # payload of barrier 1: sources here, their edges, entries, end of the rows, squares
        own = (one, k.maximum(end - start, 0), k.load(self.m.indptr, c.n))

        def payload(device):
            added = (c.slots + LINKED, c.slots + SQUARED)
            return *own, *(k.load(self.m.control, word, cache="fresh") for word in added), 0

        ok = self.barrier.device_barrier(k.const(1), payload)
        end_of_rows = self.last_rows.receive(self.barrier, 3)
        # the sizes of a scan that stops after the last row with entries
        self.near = dataclasses.replace(c, n=end_of_rows, words=k.shr(end_of_rows, 5))
        # mean degree of the vertices with out-edges
        linked = k.maximum(self.barrier.total(3), 1)
        edges = self.barrier.total(2, k.cast)
        self.mean = k.maximum(edges / k.cast(linked, "f32"), 1.0)
        # mean degree of the vertex that a random edge leads to
        squares = self.barrier.total(4, k.cast) * float(SQUARES)
        self.reached = k.maximum(squares / k.maximum(edges, 1.0), self.mean)
        first = State(
            level=0,
            ranges=range_count(c.span, start, k.maximum(end, start)),
            vertices=self.barrier.total(0),
            messages=0,
            edges=self.barrier.total(1, k.cast),
            seen=c.all_places - linked + 1,
            pulling=0,
            queued=1,
            bits=0,
            half=0,
            cur=0,
            ok=ok,
            turn=2,
        )

        last = first.loop(k, lambda s: (s.vertices > 0) & (s.ok == 1), self.step)
        ok, levels = finish(k, c, self.m, self.vertices, self.barrier, last, self.last_rows)
        k.results(self.m, num_levels=levels)
        return ok

    def _initialise(self):
        """Fills levels, `sent`, the queue; words LINKED (end of the rows), SQUARED.

        Returns (start, end) of the source's row; end is -1 if the source lies on another device.
        """
        k, c, m = self.k, self.c, self.m
        place = self.vertices.place(k.load(m.source, 0))

        def clear(j):
            at = [j * 4 + i for i in range(4)]
            k.store_vec(m.levels, j * 4, [k.where(i == place, 0, FAR) for i in at])

        k.store(m.sums, k.thread, 0, mask=k.thread < SUMS)
        k.if_((k.cta == 0) & (k.warp == 0), lambda: self.last_rows.find(place, c.slots + LINKED))
        k.spread(c.n // 4, clear)
        k.spread(c.all_places // 32, lambda w: k.store(m.sent, w, 0))
        self._add_squares()
        here = place >= 0
        start, end = k.row(m.indptr, place, here)
        write_row(k, m.queue, c.span, (start, end, place))
        return start, k.where(here, end, -1)

    def _add_squares(self):
        """Adds the sum of squared degrees to control word SQUARED, in units of SQUARES.

        Exact for the first HUBS rows, then from means of STEP neighbouring rows of similar degree.
        """
        k, c, m = self.k, self.c, self.m
        hubs = min(HUBS, c.n)

        def some(i, squares):
            single = i < hubs
            row = k.where(single, i, hubs + (i - hubs) * STEP)
            after = k.minimum(row + k.where(single, 1, STEP), c.n)
            start, end = (k.load(m.indptr, r, cache="nc") for r in (row, after))
            edges = k.cast(end - start, "f32")
            return squares + edges * edges / k.cast(after - row, "f32")

        (squares,) = k.spread(hubs - (hubs - c.n) // STEP, some, k.const(0.0, "f32"))
        squares = k.cast(k.warp_sum(squares) * (1.0 / SQUARES), "i32")
        k.reduce("add", m.control, c.slots + SQUARED, squares, mask=(k.lane == 0) & (squares != 0))

    def step(self, s):
        """One level, or only the bitmap or the queue for one; ends with one device barrier."""
        k, c = self.k, self.c
        slot = self.groups.group(s.turn)
        self.groups.clear(s.turn)
        pulling = k.const(False, "i1")
        if c.symmetric:
            pulling = (s.pulling == 1) | self.prefer_pull(s.edges, s.seen + s.messages)
        collecting = ~pulling & (s.queued == 0)
        actions = [(~pulling & ~collecting, self.push_level)]
        if c.symmetric:
            actions += [
                (pulling & (s.bits == 1), self.pull_level),
                (pulling & (s.bits == 0), self.make_bits),
                (collecting, self.make_queue),
            ]
        for when, action in actions:
            s = s.after(k, when, functools.partial(action, slot))
        s.turn = s.turn + 1
        return s

    def prefer_pull(self, edges, seen, growth: Operand = 1.0):
        """Whether to pull a level whose frontier has edges * growth edges."""
        k, c = self.k, self.c
        edges = edges * growth
        left = k.cast(c.all_places - seen, "f32") * self.mean
        return (edges > float(c.pull_edges)) & (edges * c.alpha > left)

    def device_barrier(self, slot, s):
        """The barrier at the end of a step. Adds `sums` to group `slot` of the control words, sends
        the group, and updates ok, the sizes of the frontier and the inbox."""
        k, m, c = self.k, self.m, self.c

        def payload(d):
            def word(i):
                return k.load(m.control, i, cache="fresh")

            ranges, new, edges, sent, claimed = (word(slot + j) for j in range(5))
            return new, edges, word(c.slots + SENT_TO + d), ranges, sent, claimed

        words = enumerate((NEW, EDGES, MESSAGES, CLAIMED), 1)
        adds = [(m.sums, word, m.control, slot + j) for j, word in words]
        s.ok = s.ok & self.barrier.device_barrier(s.turn, payload, adds)
        self.inbox.receive(self.barrier)
        s.ranges = self.barrier.word(k.device, 3)
        new, s.messages = self.barrier.total(0), self.barrier.total(4)
        s.vertices, s.seen = new + s.messages, s.seen + new + self.barrier.total(5)
        edges = self.barrier.total(1, k.cast)
        # the degrees of messages are unknown: take the mean degree of the places claimed here
        s.edges = edges + edges * k.cast(s.messages, "f32") / k.cast(k.maximum(new, 1), "f32")

    def push_level(self, slot, s):
        k, c, m = self.k, self.c, self.m
        # the queue is only made if the next level is likely to be pushed too
        queue = k.const(True, "i1")
        if c.symmetric:
            growth = k.where(s.level < FIRST, self.reached, self.mean)
            queue = ~self.prefer_pull(s.edges, s.seen + s.messages, growth)
        tail = Tail(k, c, m, s.cur ^ 1, slot)
        Push(k, c, m, s, tail, queue, self.inbox).run()
        tail.flush()
        self.device_barrier(slot, s)
        s.level, s.cur, s.queued, s.bits = s.level + 1, s.cur ^ 1, k.cast(queue, "i32"), 0

    def make_bits(self, slot, s):
        """Makes the bitmap of the visited from the levels, in both copies on all devices."""
        k, m = self.k, self.m
        self.inbox.claim_all(s.level)
        s.ok = s.ok & k.grid_barrier(m.control)[0]
        worker, workers = k.warps
        copies = OnMesh(k, self.near, m, k.const(0))

        def words(w0):
            word, w = copies.of_levels(w0), w0 + k.lane
            for at in (copies.here, copies.there):
                copies.everywhere(at + copies.far + w, word, w < self.near.words)

        k.for_(worker * 32, self.near.words, workers * 32, words)
        keep = s.vertices, s.edges
        self.device_barrier(slot, s)
        s.pulling, s.bits, s.queued, s.half = 1, 1, 0, 0
        s.vertices, s.edges = keep

    def pull_level(self, slot, s):
        k, c, m = self.k, self.c, self.m
        few = c.all_places - s.seen <= c.all_places // QUEUED
        queue = UnbufferedTail(k, c, m, s.cur, (m.control, slot)), few
        pull(k, self.near, m, s.level, OnMesh(k, self.near, m, s.half), queue)
        self.device_barrier(slot, s)
        left = c.all_places - s.seen
        stay = (s.vertices * c.beta >= c.all_places) | (left <= s.vertices * STAY_PULL)
        s.half, s.queued = s.half ^ 1, k.cast(queue[1], "i32")
        s.pulling, s.level = k.cast(stay, "i32"), s.level + 1

    def make_queue(self, slot, s):
        """Makes the queue that the last level did not make. Marks visited places as sent, because
        they need no message."""
        k, c, m = self.k, self.c, self.m
        self.inbox.claim_all(s.level)
        s.ok = s.ok & k.grid_barrier(m.control)[0]
        tail = Tail(k, c, m, s.cur, slot)
        collect(k, self.near, m, s.level, tail)

        def mark_sent(w):
            seen = k.load(m.visited, s.half * (c.all_places // 32) + w, cache="fresh")
            k.reduce("or", m.sent, w, k.where(s.bits == 1, seen, 0))

        k.spread(c.all_places // 32, mark_sent)
        tail.flush()
        keep = s.vertices
        self.device_barrier(slot, s)
        s.vertices, s.queued = keep, 1
