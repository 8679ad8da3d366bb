"""Shortest paths on graphs of any degree: near holds edge ranges, shared memory new vertices.

Near queue: ranges (start, end, vertex, -) of at most `span` edges, so no hub binds one warp; a warp
takes up to 32 of them and walks their edges 32 * `unroll` at a time, the owner of an edge found by
binary search over the warp's prefix sums. Vertices whose label falls go to two buffers of the
CTA, near and far. At the end of a round a CTA appends them: the near ones cut into ranges
(their row offsets are read there, 32 at a time), the far ones by one atomic a CTA. What finds
no room in a buffer is appended at once.

Traffic of a relaxed edge: 8 bytes of index and weight, one gather of a label; where it improves an
atomic minimum, an exchange of the mark and, for parents, a store of 8 bytes. Of a parent: 5 gathers
a vertex. A range is 16 bytes, written and read.

Measured (H200): rmat18 (19.4M entries, prepared or not) moves 275 MB in 0.58 ms, 0.48 TB/s of the
4.3 of a copy, reads 1.9 TB/s from L2, does 1.9M atomics and issues in 20% of the slots; no
throughput limit, but chains of accesses in 41 rounds and splits. rmat21: 2.66 ms, where one gather
an entry takes 1.4 (117 G/s): 0.54 of the limit; parents 0.40 more.
"""

import functools
import operator

from .rounds import (
    FAR,
    FOUND,
    INFINITY,
    LEAST,
    MAX,
    ORPHANS,
    branch,
    extended,
    put,
    report_least,
    reserve,
    tight,
    within,
)
from .tree import adopt, claim, count_orphans

OWN_RANGES = 4  # ranges of a vertex that its lane writes itself, the others are written by the warp


def first_queue(k, c, graph, state, source, valid):
    """Queues the ranges of the source; returns their number."""
    start = k.load(graph.indptr, source, mask=valid)
    end = k.load(graph.indptr, source + 1, mask=valid)
    ranges = (end - start + (c.span - 1)) // c.span

    def item(i):
        at = start + i * c.span
        k.store_vec(state.queue, i * 4, (at, k.minimum(at + c.span, end), source, 0))

    k.spread(ranges, item)
    k.store(state.counts, k.thread, 0, mask=k.thread < 4)
    return ranges


def expand(k, c, graph, state, s, place, visit=None, unroll=None):
    """Looks at the edges of the near queue; the lane's least label put into far.

    least = visit(labels of their tails, heads (n: none), weights, edge, least), lists over `unroll`
    edges; edge(j) gives tail and slot of the j-th, with all lanes of the warp present.
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

    return k.deal(s.near, place.warps, chunk, MAX)[0]


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
    """Notes what lowered a label: parent and slot of the edge, as one word of 64 bits."""
    k.store_pair(state.noted, 2 * vertex, parent, slot, mask=mask)


def tree(search, s):
    """Turns the notes into parents; returns whether no barrier expired.

    Whoever lowers a label notes the edge, without any order among those who do so at the same time:
    the note that stays may be of a label that was lowered again. So every note is checked: its edge
    must be tight and its tail strictly nearer. A few gathers a vertex where one more look at every
    edge costs one an edge. The others adopt a parent (`tree.py`): on a symmetric graph they
    search their own rows, else every vertex that has one is offered along its edges.
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


def _check(search, s, v, there):
    """The parent of a vertex from its note: the source's is itself, n stands for an orphan."""
    k, c, graph, state = search.k, search.c, search.graph, search.state
    parent, slot = k.load_vec(state.noted, 2 * v, 2, mask=there, other=c.n, cache="fresh")
    label = k.load(state.labels, v, mask=there)
    known = k.below(parent, c.n)
    above = k.load(state.labels, parent, mask=known)
    weight = k.load(graph.weights, slot, mask=known, cache="nc")
    fine = known & (above < label) & tight(k, c, above, weight, label)
    reached = label != INFINITY[c.real]
    parent = k.where(fine, parent, k.where(v == state.source, v, k.where(reached, c.n, -1)))
    k.store(state.parents, v, parent, mask=there)
    lost = there & (parent == c.n)
    count_orphans(k, state, lost)
    if c.symmetric:
        search.place.put_near(s, [v], [lost])


def _adopting(search, s, pull=None):
    """Orphans adopt vertices of the near queue; in the turn `pull` the queue holds the orphans."""
    k, c, state = search.k, search.c, search.state

    def visit(labels, near, weights, edge, least):
        (x,), (v,), (weight,) = labels, near, weights
        u, _ = edge(0)
        there = k.below(v, c.n)
        y = k.load(state.labels, v, mask=there)
        if pull is not None:
            back = s.turn == pull
            u, v, x, y = (k.where(back, q, p) for p, q in ((u, v), (v, u), (x, y), (y, x)))
        fits = there & tight(k, c, x, weight, y)
        if pull is not None:
            above = k.load(state.parents, u, mask=fits, other=c.n, cache="fresh")
            fits = fits & ((x < y) | (above != c.n))
        search.place.put_near(s, [v], [claim(k, c, state.parents, v, u, fits)])
        return least

    expand(k, c, search.graph, state, s, search.place, visit, 1)


def _relax(k, c, state, s, place, near, new, least, note_all):
    """Lowers the labels of the vertices `near` to `new`; all lanes of the warp take part.

    The load that filters may come from L1: a label there is at worst too great.
    """
    there = [k.below(v, c.n) for v in near]
    old = k.loads(state.labels, near, there, other=-1)
    less = [t & (x < o) & within(x, state.limit) for t, x, o in zip(there, new, old, strict=True)]
    old = k.atomics("min", state.labels, near, new, less)
    won = [m & (x < o) for m, x, o in zip(less, new, old, strict=True)]
    if c.parents:
        k.if_(k.any(functools.reduce(operator.or_, won)), lambda: note_all(won))
    close = [x < s.bound for x in new]
    mark = [k.where(x, s.steps, 1) for x in close]
    was = [
        k.atomic("exch", state.marks, k.where(x, v, v + c.n), m, mask=w)
        for v, x, m, w in zip(near, close, mark, won, strict=True)
    ]
    for x, x_close, w in zip(new, close, won, strict=True):
        least = k.where(w & ~x_close, k.minimum(least, x), least)
    first = [w & (m != x) for w, m, x in zip(won, mark, was, strict=True)]
    place.put_near(s, near, [x & y for x, y in zip(first, close, strict=True)])
    place.put_far(s, near, [x & ~y for x, y in zip(first, close, strict=True)])
    return least


class Grid:
    """All CTAs.

    counts: near, far, greatest (MAX - label) put into far, position of the CTA's far entries.
    """

    def __init__(self, k, c, graph, state):
        self.k, self.c, self.graph, self.state = k, c, graph, state
        state.counts = k.shared(4)
        self.near, self.far = k.shared(c.near_buffer), k.shared(c.far_buffer)
        self.warps = (k.warp * k.ctas + k.cta, k.threads // 32 * k.ctas)

    def clear(self):
        """Empties the buffers of the CTA."""
        self.k.store(self.state.counts, self.k.thread, 0, mask=self.k.thread < 4)

    def put_near(self, s, vertices, won):
        self._put(s, vertices, won, 0, self.near, self.append)

    def put_far(self, s, vertices, won):
        self._put(s, vertices, won, 1, self.far, self._append_far)

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
            first = (
                reserve(k, self.state.control, FOUND + (s.turn & 3), total)
                + (s.cur ^ 1) * c.capacity
            )

            def write(j, at, s, e, v):
                b = s + j * c.span
                k.store_vec(self.state.queue, (at + j) * 4, (b, k.minimum(e, b + c.span), v, 0))

            at = first + upto - parts
            k.for_(0, k.minimum(parts, OWN_RANGES), 1, lambda j: write(j, at, start, end, v))

            def long(left):
                count, *row = (k.shfl(x, k.ctz(left)) for x in (parts, at, start, end, v))
                k.for_(k.lane + OWN_RANGES, count, 32, lambda j: write(j, *row))
                return left & (left - 1)

            k.while_(lambda left: left != 0, long, k.ballot(parts > OWN_RANGES))

        k.if_(total > 0, some)

    def least(self, s, least):
        report_least(self.k, least, self.state.counts, 2)

    def flush(self, s):
        """Appends what the CTA has collected in its buffers."""
        k, c, state = self.k, self.c, self.state
        mine = k.thread == 0
        k.sync()
        near, far = (
            k.minimum(k.load(state.counts, j), b.size) for j, b in enumerate((self.near, self.far))
        )

        def some():
            base = k.atomic("add", state.control, FAR + (s.pile & 3), far, mask=mine & (far > 0))
            least = k.load(state.counts, 2)
            k.reduce("max", state.control, LEAST + (s.pile & 3), least, mask=mine & (least != 0))
            k.store(state.counts, 3, base, mask=mine)
            k.sync()
            base = k.load(state.counts, 3) + (s.pile & 1) * c.n
            k.store(state.counts, k.thread, 0, mask=k.thread < 3)

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

        k.if_((near | far | k.load(state.counts, 2)) != 0, some)
