"""Shortest paths on graphs of any degree: near is a queue of edge ranges, and new vertices are
buffered in shared memory.

Near queue: ranges (start, end, vertex, -) of at most `span` edges, so no hub binds one warp; a warp
takes up to 32 of them and walks their edges 32 * `unroll` at a time, the owner of an edge found by
binary search over the warp's prefix sums. Vertices whose label falls go to two buffers of the
CTA, near and far. At the end of a round a CTA appends them: the near ones cut into ranges
(their row offsets are read then, 32 at a time), the far ones by one atomic a CTA. Vertices beyond
the capacity of a buffer are appended immediately.

Traffic of a relaxed edge: 8 bytes of index and weight, one gather of a label; where it improves an
atomic minimum, an exchange of the mark and, for parents, a store of 8 bytes. Of a parent: 5 gathers
a vertex. A range is 16 bytes, written and read.

Measured (H200): rmat18 (19.4M entries, prepared or not), one bucket after the other, moves 275 MB
in 0.58 ms, 0.48 TB/s of the 4.3 of a copy, reads 1.9 TB/s from L2, does 1.9M atomics and issues in
20% of the slots; no throughput limit, but chains of accesses in 41 rounds and splits. With joined
rounds, 18 of them, 0.47 ms; rmat21 2.38 (2.98 before), of which one gather an entry takes 1.4
(117 G/s) and parents 0.4.
"""

import functools
import operator

from .rounds import (
    AWAY,
    EDGES,
    FAR,
    FOUND,
    INFINITY,
    LEAST,
    MAX,
    ORPHANS,
    TAKEN,
    branch,
    extended,
    marked,
    new_to_far,
    put,
    report_least,
    reserve,
    tight,
    within,
)
from .tree import adopt, claim, count_orphans

# shared words of a CTA: entries of near and far, greatest (MAX - label) put into far, position of
# its far entries, edges of the ranges it appended, entries it put into far
NEAR_HERE, FAR_HERE, LEAST_HERE, FAR_AT, EDGES_HERE, AWAY_HERE, COUNTS = range(7)
LONG = 32  # if ranges have more edges than this in the mean, a warp takes fewer in one step
LANE_RANGES = 4  # ranges of a vertex that its lane writes; the warp writes the others


def first_queue(k, c, graph, state, source, valid):
    """Queues the ranges of the source; returns their number."""
    start = k.load(graph.indptr, source, mask=valid)
    end = k.load(graph.indptr, source + 1, mask=valid)
    ranges = (end - start + (c.span - 1)) // c.span

    def item(i):
        at = start + i * c.span
        k.store_vec(state.queue, i * 4, (at, k.minimum(at + c.span, end), source, 0))

    k.spread(ranges, item)
    k.store(state.counts, k.thread, 0, mask=k.thread < COUNTS)
    return ranges


def expand(k, c, graph, state, s, place, visit=None, unroll=None):
    """Visits the edges of the near queue; returns the least label that this lane put into far.

    least = visit(labels of the tails, heads (n: none), weights, edge, least), the first three lists
    over `unroll` edges; edge(j) gives (tail, slot) of the j-th, called by all lanes of the warp.
    """
    visit, unroll = visit or _relaxing(k, c, state, s, place), unroll or c.unroll

    def chunk(i, mine, least):
        at = (s.cur * c.capacity + i) * 4
        start, end, vertex, _ = k.load_vec(state.queue, at, 4, mask=mine, cache="fresh")
        label = k.load(state.labels, vertex, mask=mine, cache="fresh")
        upto, total = k.warp_scan(end - start)
        before = upto - (end - start)

        def stride(e0, least):
            labels, near, weights, owners = [], [], [], []
            for j in range(unroll):
                e = e0 + 32 * j + k.lane
                owner = k.owner(before, e)
                at = k.shfl(start - before, owner) + e
                owners.append(owner)
                labels.append(k.shfl(label, owner))
                near.append(k.load(graph.indices, at, mask=e < total, other=c.n, cache="nc"))
                weights.append(k.load(graph.weights, at, mask=e < total, cache="nc"))

            def edge(j):
                slot = k.shfl(start - before, owners[j]) + (e0 + 32 * j + k.lane)
                return k.shfl(vertex, owners[j]), slot

            return visit(labels, near, weights, edge, least)

        return k.for_(0, total, 32 * unroll, stride, least)

    return _distributed(k, c, state, s, place, chunk, MAX)[0]


def _distributed(k, c, state, s, place, chunk, *carry):
    """carry = chunk(i, valid, *carry) for the ranges i of the near queue.

    Each warp first takes an equal share; then warps take more by control word TAKEN + (turn & 3)
    until none is left: up to 32 in one step, or `c.taken` if ranges are long.
    """
    worker, workers = place.warps
    most = k.where(s.edges // LONG >= s.near, c.taken, 32)
    each = k.minimum((s.near + (workers - 1)) // workers, most)
    shared_out = each * workers
    more = (k.lane == 0) & (s.near > shared_out)

    def some(at, *carry):
        after = k.atomic("add", state.control, TAKEN + (s.turn & 3), each, mask=more)
        i = at + k.lane
        carry = chunk(i, (k.lane < each) & (i < s.near), *carry)
        return shared_out + k.shfl(after, 0), *k.as_tuple(carry)

    return k.while_(lambda at, *carry: at < s.near, some, worker * each, *carry)[1:]


def _relaxing(k, c, state, s, place):
    def visit(labels, near, weights, edge, least):
        new = [extended(k, c, label, w) for label, w in zip(labels, weights, strict=True)]

        def note_all(won):
            for j, (v, w) in enumerate(zip(near, won, strict=True)):
                tail, slot = edge(j)
                note(k, state, v, tail, slot, w)

        return _relax(k, c, state, s, place, near, new, least, note_all)

    return visit


def note(k, state, vertex, parent, slot, mask):
    """Records the edge that lowered a label: parent and slot, as one word of 64 bits."""
    k.store_pair(state.noted, 2 * vertex, parent, slot, mask=mask)


def tree(search, s):
    """Makes parents of the recorded edges (`noted`); returns whether no barrier expired.

    Every thread that lowers a label records the edge. Threads that do so at the same time are not
    ordered, so the record that stays may belong to a label that was lowered again. So every record
    is checked: its edge must be tight and its tail strictly nearer. That takes a few gathers for a
    vertex, where one more pass over the edges would take one for each edge. The other vertices get
    a parent by adoption (`tree.py`): on a symmetric graph they search their own rows, else all
    vertices that have a parent search theirs for orphans.
    """
    k, c, state = search.k, search.c, search.state
    search.begin(s)
    k.spread_warps(c.n, lambda v: _check(search, s, v, v < c.n))
    (orphans,) = search.barrier(s, ORPHANS)
    s.turn = s.turn + 1
    if c.symmetric:
        return adopt(search, s, orphans, state.parents, functools.partial(_adopting, pull=s.turn))

    def offer(s):
        def queue(v):
            parent = k.load(state.parents, v, mask=v < c.n, other=-1, cache="fresh")
            search.place.put_near(s, [v], [k.below(parent, c.n)])

        search.begin(s)
        k.spread_warps(c.n, queue)
        search.barrier(s)
        s.turn = s.turn + 1

    return adopt(search, branch(k, orphans > 0, offer, s), orphans, state.parents, _adopting)


def _check(search, s, v, is_valid):
    """The parent of a vertex from its recorded edge; the source is its own parent, n stands for an
    orphan."""
    k, c, graph, state = search.k, search.c, search.graph, search.state
    parent, slot = k.load_vec(state.noted, 2 * v, 2, mask=is_valid, other=c.n, cache="fresh")
    label = k.load(state.labels, v, mask=is_valid)
    known = k.below(parent, c.n)
    above = k.load(state.labels, parent, mask=known)
    weight = k.load(graph.weights, slot, mask=known, cache="nc")
    fine = known & (above < label) & tight(k, c, above, weight, label)
    reached = label != INFINITY[c.real]
    parent = k.where(fine, parent, k.where(v == state.source, v, k.where(reached, c.n, -1)))
    k.store(state.parents, v, parent, mask=is_valid)
    lost = is_valid & (parent == c.n)
    count_orphans(k, state, lost)
    if c.symmetric:
        search.place.put_near(s, [v], [lost])


def _adopting(search, s, pull=None):
    """Vertices of the near queue become parents of orphans. Where `pull` is true the queue holds
    the orphans, which search their own rows for a parent."""
    k, c, state = search.k, search.c, search.state

    def visit(labels, near, weights, edge, least):
        (x,), (v,), (weight,) = labels, near, weights
        u, _ = edge(0)
        is_valid = k.below(v, c.n)
        y = k.load(state.labels, v, mask=is_valid)
        if pull is not None:
            back = s.turn == pull
            u, v, x, y = (k.where(back, q, p) for p, q in ((u, v), (v, u), (x, y), (y, x)))
        fits = is_valid & tight(k, c, x, weight, y)
        if pull is not None:
            above = k.load(state.parents, u, mask=fits, other=c.n, cache="fresh")
            fits = fits & ((x < y) | (above != c.n))
        search.place.put_near(s, [v], [claim(k, c, state.parents, v, u, fits)])
        return least

    expand(k, c, search.graph, state, s, search.place, visit, 1)


def _relax(k, c, state, s, place, near, new, least, note_all):
    """Lowers the labels of the vertices `near` to `new`; all lanes of the warp take part.

    The first load may be served by L1: an old label is at worst too great.
    """
    is_valid = [k.below(v, c.n) for v in near]
    old = k.loads(state.labels, near, is_valid, other=-1)
    less = [
        t & (x < o) & within(x, state.limit) for t, x, o in zip(is_valid, new, old, strict=True)
    ]
    old = k.atomics("min", state.labels, near, new, less)
    won = [m & (x < o) for m, x, o in zip(less, new, old, strict=True)]
    if c.parents:
        k.if_(k.any(functools.reduce(operator.or_, won)), lambda: note_all(won))
    close = [w & (x < s.bound) for w, x in zip(won, new, strict=True)]
    away = [w & (x >= s.bound) for w, x in zip(won, new, strict=True)]
    for x, w in zip(new, away, strict=True):
        least = k.where(w, k.minimum(least, x), least)

    def mark(wanted, shift, value):
        each = zip(near, wanted, strict=True)
        was = [k.atomic("exch", state.marks, v + shift, value, mask=w) for v, w in each]
        return [w & (x != value) for w, x in zip(wanted, was, strict=True)]

    def queue():
        place.put_near(s, near, mark(close, 0, s.steps))

    def pile():
        place.put_far(s, near, mark(first, c.n, 1) if marked(c) else first)

    first = new_to_far(c, away, old)
    k.if_(k.any(functools.reduce(operator.or_, close)), queue)
    k.if_(k.any(functools.reduce(operator.or_, first)), pile)
    return least


class Grid:
    """The queues of all CTAs; a round of less than `small_round` edges is bound by latency."""

    def __init__(self, k, c, graph, state):
        self.k, self.c, self.graph, self.state = k, c, graph, state
        counts = state.counts = k.shared(COUNTS)
        self.near, self.far = k.shared(c.near_buffer), k.shared(c.far_buffer)
        self.counted = (EDGES, (counts, EDGES_HERE)), (AWAY, (counts, AWAY_HERE))
        self.warps = (k.warp * k.ctas + k.cta, k.threads // 32 * k.ctas)
        self.small_round, self.small_far = (
            c.small_round * self.warps[1],
            c.small_far * self.warps[1],
        )

    def clear(self):
        """Empties the buffers of the CTA."""
        self.k.store(self.state.counts, self.k.thread, 0, mask=self.k.thread < COUNTS)

    def put_near(self, s, vertices, won):
        self._put(s, vertices, won, NEAR_HERE, self.near, self.append)

    def put_far(self, s, vertices, won):
        self._put(s, vertices, won, FAR_HERE, self.far, self._append_far)

    def _put(self, s, vertices, won, word, buffer, append):
        k = self.k

        def store(at, v, mask):
            k.store(buffer, at, v, mask=mask & (at < buffer.size))
            beyond = mask & (at >= buffer.size)
            k.if_(k.any(beyond), lambda: append(s, v, beyond))

        put(k, vertices, won, lambda total: reserve(k, self.state.counts, word, total), store)

    def _append_far(self, s, v, mask):
        k = self.k
        votes = k.ballot(mask)
        at = reserve(k, self.state.control, FAR + (s.pile & 3), k.popc(votes)) + k.lanes_below(
            votes
        )
        k.store(self.state.far, (s.pile & 1) * self.c.n + at, v, mask=mask)

    def append(self, s, v, mask):
        """Cuts the rows of the lanes' vertices into ranges of the next near queue."""
        k, c, graph = self.k, self.c, self.graph
        start, end = k.row(graph.indptr, v, mask)
        parts = (end - start + (c.span - 1)) // c.span
        upto, total = k.warp_scan(parts)

        def some():
            edges = k.warp_sum(end - start)
            k.reduce("add", self.state.counts, EDGES_HERE, edges, mask=k.lane == 0)
            base = (s.cur ^ 1) * c.capacity + s.carried
            first = base + reserve(k, self.state.control, FOUND + (s.turn & 3), total)

            def write(j, at, s, e, v):
                b = s + j * c.span
                k.store_vec(self.state.queue, (at + j) * 4, (b, k.minimum(e, b + c.span), v, 0))

            at = first + upto - parts
            k.for_(0, k.minimum(parts, LANE_RANGES), 1, lambda j: write(j, at, start, end, v))

            def long(left):
                count, *row = (k.shfl(x, k.ctz(left)) for x in (parts, at, start, end, v))
                k.for_(k.lane + LANE_RANGES, count, 32, lambda j: write(j, *row))
                return left & (left - 1)

            k.while_(lambda left: left != 0, long, k.ballot(parts > LANE_RANGES))

        k.if_(total > 0, some)

    def least(self, s, least):
        report_least(self.k, least, self.state.counts, LEAST_HERE)

    def flush(self, s):
        """Appends what the CTA has collected in its buffers."""
        k, c, state = self.k, self.c, self.state
        mine = k.thread == 0
        k.sync()
        away = k.load(state.counts, FAR_HERE)
        near = k.minimum(k.load(state.counts, NEAR_HERE), self.near.size)
        far = k.minimum(away, self.far.size)

        def some():
            base = k.atomic("add", state.control, FAR + (s.pile & 3), far, mask=mine & (far > 0))
            least = k.load(state.counts, LEAST_HERE)
            k.reduce("max", state.control, LEAST + (s.pile & 3), least, mask=mine & (least != 0))
            k.store(state.counts, FAR_AT, base, mask=mine)
            k.store(state.counts, AWAY_HERE, away, mask=mine)
            k.sync()
            base = k.load(state.counts, FAR_AT) + (s.pile & 1) * c.n
            k.store(state.counts, k.thread, 0, mask=k.thread < FAR_AT)

            def ranges(i0):
                i = i0 + k.lane
                self.append(s, k.load(self.near, i, mask=i < near), i < near)

            k.for_(k.warp * 32, near, k.threads, ranges)
            k.for_(
                k.thread,
                far,
                k.threads,
                lambda i: k.store(state.far, base + i, k.load(self.far, i)),
            )

        k.if_((near | far | k.load(state.counts, LEAST_HERE)) != 0, some)
