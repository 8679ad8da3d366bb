"""Shortest paths on graphs of small degree (meshes, roads): a lane a vertex, fixed-width rows.

Adjacency: rows of `quads` times 4 slots, row v the neighbours of v, padded with n; a last slot
below 0 is ~(quad that continues this one), counted from the start of the table. lengths: the
weights in the same places. So a lane gets from the vertex to 4 neighbours and their weights by two
16-byte accesses that are in flight together with that of its label.

A near queue of at most `solo_out` vertices is relaxed by program 0 alone, whose queue is in its
shared memory: no grid barrier, one program barrier a round. Chain of dependent accesses a round:
queue (shared) -> row, weights and label (L2) -> labels of the neighbours (L2) -> mark (L2 atomic)
-> place in the queue (ballots, one shared atomic a warp) -> barrier. The queue in global memory is
written all the same, so that all programs can go on at any time. Wider queues are shared by all
programs: the same chain through L2 and a grid barrier (1.5 us).
"""

from pallas_kernels._sssp_rounds import (
    FAR,
    FOUND,
    LEAST,
    MAX,
    RESULT,
    State,
    clamped,
    put,
    report_least,
    reserve,
)


def first_queue(k, c, graph, state, source, valid):
    """Queues the source; returns the length of the queue."""
    del graph
    k.store(state.queue, 0, source, mask=valid & (k.program == 0) & (k.thread == 0))
    return k.cast(valid, "i32")


def expand(k, c, graph, state, s, place):
    """Relaxes from the near queue, up to `hops` edges far; the lane's least label put into far."""
    worker, workers = place.crew
    each = k.minimum(k.maximum((s.near + (workers - 1)) // workers, 1), 32)
    hops = k.where(s.near <= c.hop_most, c.hops, 1)

    def chunk(i0, least):
        there = (k.lane < each) & (i0 + k.lane < s.near)
        vertex = place.entry(s, i0 + k.lane, there)

        def hop(left, vertex, least):
            return left - 1, *_hop(k, c, graph, state, s, place, vertex, least)

        _, vertex, least = k.while_(
            lambda left, vertex, least: (left > 0) & k.any(vertex >= 0), hop, hops, vertex, least
        )
        _queue(k, state, s, place, vertex, vertex >= 0)
        return least

    return k.for_(worker * each, s.near, workers * each, chunk, MAX)[0]


def _hop(k, c, graph, state, s, place, vertex, least):
    """Relaxes the edges of the lanes' vertices; returns the next ones (-1: none) and least."""
    slots = state.slots
    base = k.warp * 32

    def one_quad(near, weights, count, least):
        there = [k.below(v, c.n) for v in near]
        new = [clamped(k, c, label, w) for w in weights]
        if c.pretest:
            old = [
                k.load(state.labels, v, mask=t, other=-1, cache="fresh")
                for v, t in zip(near, there, strict=True)
            ]
            there = [x < o for x, o in zip(new, old, strict=True)]
        old = [
            k.atomic("min", state.labels, v, x, mask=t)
            for v, x, t in zip(near, new, there, strict=True)
        ]
        won = [t & (x < o) for t, x, o in zip(there, new, old, strict=True)]
        close = [w & (x < s.bound) for w, x in zip(won, new, strict=True)]
        away = [w & (x >= s.bound) for w, x in zip(won, new, strict=True)]
        for x, w in zip(new, away, strict=True):
            least = k.where(w, k.minimum(least, x), least)

        def pile():
            was = [
                k.atomic("exch", state.marks, v + c.n, 1, mask=w)
                for v, w in zip(near, away, strict=True)
            ]
            place.put_far(s, near, [w & (x == 0) for w, x in zip(away, was, strict=True)])

        k.if_(k.any(away[0] | away[1] | away[2] | away[3]), pile)
        for v, w in zip(near, close, strict=True):
            votes = k.ballot(w)
            at = count + k.lanes_below(votes)
            k.store(slots, base + at, v, mask=w & (at < 32))
            beyond = w & (at >= 32)
            k.if_(k.any(beyond), lambda v=v, w=beyond: _queue(k, state, s, place, v, w))
            count = count + k.popc(votes)
        return count, least

    def row(quad):
        near = k.load_vec(graph.adjacency, quad * 4, 4, mask=quad >= 0, other=c.n, cache="nc")
        return near, k.load_vec(graph.lengths, quad * 4, 4, mask=quad >= 0, cache="nc")

    label = k.load(state.labels, vertex, mask=vertex >= 0, cache="fresh")
    rows = [row(k.where(vertex >= 0, vertex * c.quads + q, -1)) for q in range(c.quads)]
    count = k.const(0)
    for near, weights in rows:
        count, least = one_quad(near, weights, count, least)
    if c.linked:

        def linked(quad, count, least):
            near, weights = row(quad)
            return k.where(near[3] < 0, ~near[3], -1), *one_quad(near, weights, count, least)

        last = rows[-1][0][3]
        _, count, least = k.while_(
            lambda quad, count, least: k.any(quad >= 0),
            linked, k.where(last < 0, ~last, -1), count, least,
        )  # fmt: skip
    return k.load(slots, base + k.lane, mask=k.lane < count, other=-1), least


def _queue(k, state, s, place, vertex, mask):
    """Queues the lanes' vertices for the next round, each once."""
    was = k.atomic("exch", state.marks, vertex, s.steps, mask=mask)
    place.put_near(s, [vertex], [mask & (was != s.steps)])


class Together:
    """All programs: queues in global memory, their lengths in the control words."""

    def __init__(self, k, c, graph, state):
        del graph
        self.k, self.c, self.state = k, c, state
        self.crew = (k.warp * k.programs + k.program, k.threads // 32 * k.programs)
        state.slots = k.shared(k.threads)

    def entry(self, s, i, there):
        return self.k.load(
            self.state.queue, s.cur * self.c.n + i, mask=there, other=-1, cache="fresh"
        )

    def put_near(self, s, vertices, won):
        k, c, state = self.k, self.c, self.state
        base = (s.cur ^ 1) * c.n

        def store(at, v, mask):
            k.store(state.queue, base + at, v, mask=mask)

        put(
            k,
            vertices,
            won,
            lambda total: reserve(k, state.control, FOUND + (s.turn & 3), total),
            store,
        )

    def put_far(self, s, vertices, won):
        k, c, state = self.k, self.c, self.state
        base = (s.pile & 1) * c.n

        def store(at, v, mask):
            k.store(state.far, base + at, v, mask=mask)

        put(
            k,
            vertices,
            won,
            lambda total: reserve(k, state.control, FAR + (s.pile & 3), total),
            store,
        )

    def clear_far(self, pile):
        k, mine = self.k, (self.k.program == 0) & (self.k.thread == 0)
        for word in (FAR, LEAST):
            k.store(self.state.control, word + (pile & 3), 0, mask=mine)

    def least(self, s, least):
        report_least(self.k, least, self.state.control, LEAST + (s.pile & 3))

    def flush(self, s):
        pass


class Alone:
    """Program 0 by itself: near queues and all lengths in shared memory, far in global memory."""

    def __init__(self, k, c, graph, state):
        del graph
        self.k, self.c, self.state = k, c, state
        # lengths of near, of far, greatest (MAX - label) in far, four of each in rotation as in the
        # control words
        self.queues, self.tails = k.shared(2 * c.queue), k.shared(12)
        self.crew = (k.warp, k.threads // 32)

    def entry(self, s, i, there):
        return self.k.load(self.queues, s.cur * self.c.queue + i, mask=there, other=-1)

    def put_near(self, s, vertices, won):
        k, c, state = self.k, self.c, self.state
        into = s.cur ^ 1

        def store(at, v, mask):
            k.store(self.queues, into * c.queue + at, v, mask=mask & (at < c.queue))
            k.store(state.queue, into * c.n + at, v, mask=mask)

        put(k, vertices, won, lambda total: reserve(k, self.tails, s.turn & 3, total), store)

    def put_far(self, s, vertices, won):
        k, c, state = self.k, self.c, self.state
        base = (s.pile & 1) * c.n

        def store(at, v, mask):
            k.store(state.far, base + at, v, mask=mask)

        put(k, vertices, won, lambda total: reserve(k, self.tails, 4 + (s.pile & 3), total), store)

    def clear_near(self, turn):
        self.k.store(self.tails, turn & 3, 0, mask=self.k.thread == 0)

    def clear_far(self, pile):
        for word in (4, 8):
            self.k.store(self.tails, word + (pile & 3), 0, mask=self.k.thread == 0)

    def least(self, s, least):
        report_least(self.k, least, self.tails, 8 + (s.pile & 3))

    def counts(self, s):
        k = self.k
        return tuple(
            k.load(self.tails, w) for w in (s.turn & 3, 4 + (s.pile & 3), 8 + (s.pile & 3))
        )

    def enter(self, s):
        """Takes over the near queue and the lengths."""
        k, c, state = self.k, self.c, self.state
        k.store(self.tails, k.thread, 0, mask=k.thread < 4)
        for j, word in ((4, FAR), (8, LEAST)):
            now = k.load(state.control, word + (s.pile & 3), cache="fresh")
            here = k.thread == (s.pile & 3)
            k.store(self.tails, j + k.thread, k.where(here, now, 0), mask=k.thread < 4)

        def copy(i):
            k.store(
                self.queues,
                s.cur * c.queue + i,
                k.load(state.queue, s.cur * c.n + i, cache="fresh"),
            )

        k.for_(k.thread, s.near, k.threads, copy)
        k.sync()

    def leave(self, s):
        """Hands the lengths back; threads may differ in s.far and s.least while near is not 0."""
        k, state = self.k, self.state
        k.sync()
        for j, word in ((4, FAR), (8, LEAST)):
            here = k.thread == (s.pile & 3)
            k.store(state.control, word + k.thread, k.load(self.tails, j + k.thread, mask=here),
                    mask=k.thread < 4)  # fmt: skip
        for j, word in enumerate(s.values(State.solo)):
            k.store(state.control, RESULT + j, word, mask=k.thread == 0)
