"""The push side of `any_degree.py`: queues of edge ranges and the level that expands them."""

import functools
import operator

from ..rows.flatten import flatten

LANE_RANGES = 4  # ranges of a vertex that its lane stores; the warp stores the others


def append(k, span, tail, won, start, end, vertex):
    """Cuts the rows start .. end of lanes with `won` into ranges and appends them to `tail`; all
    lanes of the warp take part.
    """
    parts = k.where(won, range_count(span, start, end), 0)
    upto, total = k.warp_scan(parts)
    k.if_(
        total > 0,
        lambda: write(k, span, tail, tail.reserve(total), parts, upto - parts, start, end, vertex),
    )


def write(k, span, tail, base, parts, before, start, end, vertex):
    """Stores the ranges of every lane from position base + before on. A negative base stands for
    position ~base of the queue itself, and positions then run downwards.
    """

    def store(j, s, e, v, offset, mask=None):
        at, b = k.where(base < 0, base - offset - j, base + offset + j), s + j * span
        tail.store(at, (b, k.minimum(e, b + span), v, 0), mask)

    k.for_(0, k.minimum(parts, LANE_RANGES), 1, lambda j: store(j, start, end, vertex, before))

    def long(left):
        lane = k.ctz(left)
        count, s, e, v, offset = (k.shfl(x, lane) for x in (parts, start, end, vertex, before))
        k.for_(k.lane + LANE_RANGES, count, 32, lambda j: store(j, s, e, v, offset))
        return left & (left - 1)

    k.while_(lambda left: left != 0, long, k.ballot(parts > LANE_RANGES))


class SingleCTATail:
    """The end of the next queue while one CTA works alone: the queue lies in global memory, its
    length in word `word` of `sums`, in shared memory.
    """

    def __init__(self, k, c, state, into, word):
        self.k, self.c, self.state, self.word = k, c, state, word
        self.base = into * c.capacity

    def reserve(self, total):
        """Position of the first of `total` ranges of this warp (valid in every lane)."""
        k = self.k
        return k.shfl(k.atomic("add", self.state.sums, self.word, total, mask=k.lane == 0), 0)

    def store(self, at, entry, mask=None):
        self.k.store_vec(self.state.queue, (self.base + at) * 4, entry, mask=mask)


class UnbufferedTail(SingleCTATail):
    """The same for all CTAs, for few ranges: each warp appends directly, by an atomic on control
    word `slot`, the length of the queue."""

    def __init__(self, k, c, state, into, slot):
        super().__init__(k, c, state, into, 0)
        self.slot = slot

    def reserve(self, total):
        k, mine = self.k, self.k.lane == 0
        return k.shfl(k.atomic("add", self.state.control, self.slot, total, mask=mine), 0)


class Tail(SingleCTATail):
    """The same for all CTAs: each buffers its ranges in shared memory and appends them at the end
    of the level.

    This takes one atomic a CTA on control word `slot`, the length of the queue, instead of one a
    warp; atomics on one word take 1/1.7 ns each. Word 0 of `sums` counts the buffered ranges. If
    the buffer is full, a position in the queue itself is reserved immediately and encoded as
    ~position until `store` decodes it.
    """

    def __init__(self, k, c, state, into, slot):
        super().__init__(k, c, state, into, 0)
        self.slot = slot

    def reserve(self, total):
        k, c, state = self.k, self.c, self.state
        at = super().reserve(total)

        def beyond():
            # fill the rest of the buffer with ranges of no edges
            def blank(i):
                k.store_vec(state.buffer, i * 4, (0, 0, 0, 0))

            k.for_(at + k.lane, c.buffer, 32, blank)
            return ~k.shfl(k.atomic("add", state.control, self.slot, total, mask=k.lane == 0), 0)

        return k.if_(at + total > c.buffer, beyond, at)[0]

    def store(self, at, entry, mask=None):
        k = self.k
        mask = k.const(True, "i1") if mask is None else mask
        k.store_vec(self.state.buffer, at * 4, entry, mask=mask & (at >= 0))
        k.store_vec(self.state.queue, (self.base + ~at) * 4, entry, mask=mask & (at < 0))

    def flush(self):
        k, c, state = self.k, self.c, self.state
        k.sync()
        count = k.minimum(k.load(state.sums, 0), c.buffer)

        def copy():
            mine = k.thread == 0
            base = k.atomic("add", state.control, self.slot, count, mask=mine)
            k.store(state.sums, 3, base, mask=mine)
            k.sync()
            k.store(state.sums, 0, 0, mask=mine)
            base = self.base + k.load(state.sums, 3)
            k.for_(
                k.thread,
                count,
                k.threads,
                lambda i: k.store_vec(
                    state.queue, (base + i) * 4, k.load_vec(state.buffer, i * 4, 4)
                ),
            )

        k.if_(count > 0, copy)


def range_count(span, start, end):
    return (end - start + (span - 1)) // span


def push(k, c, graph, state, s, warps, tail, queue, group=0):
    """One push level: visits the edges of the current queue, claims unvisited vertices, stores
    their levels and parents and, where `queue`, appends their edges to the next queue.

    Words group + 1 and group + 2 of `sums` count the claimed vertices and their edges.
    """
    level, ranges, half, cur, sums = s.level, s.ranges, s.half, s.cur, state.sums

    def chunk(i, mine, found, edges):
        at = (cur * c.capacity + i) * 4
        start, end, vertex, _ = k.load_vec(state.queue, at, 4, mask=mine, cache="fresh")

        def edge(places, payloads, valid, found, edges):
            (at,), ((parent,),), (valid,) = places, payloads, valid
            v = k.load(graph.indices, at, mask=valid, other=c.n, cache="nc")
            valid = k.below(v, c.n)
            word = half * c.words + k.shr(v, 5)
            new = valid & (k.load(state.visited, word, mask=valid, other=-1) & k.bit(v) == 0)
            s, t = k.row(graph.indptr, v, new)
            new = new & (k.atomic("or", state.visited, word, k.bit(v), mask=new) & k.bit(v) == 0)
            k.store(state.levels, v, level + 1, mask=new)
            if c.parents:
                k.store(state.parents, v, parent, mask=new)
            k.if_(queue, lambda: append(k, c.span, tail, new, s, t, v))
            return found + k.cast(new, "i32"), edges + k.where(new, t - s, 0)

        return flatten(k, start, end - start, (vertex,), edge, found, edges, unroll=1)

    found, edges = k.distribute(ranges, warps, chunk, 0, 0)
    found, edges = k.warp_sum(found), k.warp_sum(edges)
    k.reduce("add", sums, group + 1, found, mask=(k.lane == 0) & (found != 0))
    k.reduce("add", sums, group + 2, edges, mask=(k.lane == 0) & (edges != 0))


def collect(k, c, graph, state, level, warps, tail):
    """Makes the queue of the vertices of `level` from the levels: after a pull, or after a push
    that made none. Word 2 of `sums` counts their edges.
    """
    worker, workers = warps

    def stretch(v0, edges):
        v = [v0 + 32 * j + k.lane for j in range(4)]
        mine = [k.load(state.levels, x, mask=k.below(x, c.n), other=-1) == level for x in v]

        def some():
            start = k.loads(graph.indptr, v, mine, cache="nc")
            end = [
                k.load(graph.indptr, x + 1, mask=m, cache="nc")
                for x, m in zip(v, mine, strict=True)
            ]
            for x, m, s, t in zip(v, mine, start, end, strict=True):
                k.if_(k.any(m), lambda x=x, m=m, s=s, t=t: append(k, c.span, tail, m, s, t, x))
            return sum((t - s for s, t in zip(start, end, strict=True)), edges)

        return k.if_(k.any(functools.reduce(operator.or_, mine)), some, edges)

    (edges,) = k.for_(worker * 128, c.n, workers * 128, stretch, 0)
    edges = k.warp_sum(edges)
    k.reduce("add", state.sums, 2, edges, mask=(k.lane == 0) & (edges != 0))
