"""Shortest paths on graphs of any degree: near is a queue of edge ranges, and new vertices are
buffered in shared memory.

Near queue: ranges (start, end, vertex, -) of at most `span` edges, so no hub binds one warp; a warp
takes up to 32 of them and walks their edges 32 * `unroll` at a time, the owner of an edge found by
binary search over the warp's prefix sums. Vertices whose label falls go to two buffers of the
CTA, near and far. At the end of a round a CTA appends them: the near ones cut into ranges
(their row offsets are read then, 32 at a time), the far ones by one atomic a CTA. Vertices beyond
the capacity of a buffer are appended immediately.

Parents: a thread that lowers a label notes its tail and the new label, as 64 bits. A record is
wrong where threads lowered a label at the same time and the first one noted last.

Traffic of a relaxed edge: 8 bytes of index and weight, one gather of a label; where it improves an
atomic minimum, an exchange of the mark and, for parents, a store of 8 bytes. Of a parent: 16 bytes
of a vertex and one gather. A range is 16 bytes, written and read.

Measured (H200): rmat18 (19.4M entries, prepared or not), one bucket after the other, moves 275 MB
in 0.58 ms, 0.48 TB/s of the 4.3 of a copy, reads 1.9 TB/s from L2, does 1.9M atomics and issues in
20% of the slots; no throughput limit, but chains of accesses in 41 rounds and splits. With joined
rounds, 18 of them, 0.47 ms; rmat21 2.38 (2.98 before), of which one gather an entry takes 1.4
(117 G/s) and parents 0.4 (by records of slots, one gather more a vertex and weight).
"""

import functools

from ..frontier import nth, range_count, store_each, take_shares, write_ranges, write_row
from .problem import MAX, Count, Problem, Word
from .tree import Noted

LONG = 32  # if ranges have more edges than this in the mean, a warp takes fewer in one step


def shared_words(c: Problem) -> int:
    """Words of shared memory of a CTA."""
    return len(Count) + c.near_buffer + c.far_buffer + 12


def capacity(c: Problem, entries: int) -> int:
    """Ranges of a near queue at most."""
    return c.n + entries // c.span + 1


class AnyDegree(Noted):
    """The queues of all CTAs, and how they are expanded."""

    def allocate(self):
        k, c = self.k, self.c
        self.capacity = self.m.queue.size // 8  # ranges of each of the two queues
        self.counts = k.shared(len(Count))
        self.near, self.far = k.shared(c.near_buffer), k.shared(c.far_buffer)
        self.counted = (
            (Word.EDGES, (self.counts, Count.EDGES)),
            (Word.AWAY, (self.counts, Count.AWAY)),
        )
        self.small_round, self.small_far = (
            few * k.warps[1] for few in (c.small_round, c.small_far)
        )

    def clear(self):
        self.k.store(self.counts, self.k.thread, 0, mask=self.k.thread < len(Count))

    def first_queue(self, source, valid):
        k, c, m = self.k, self.c, self.m
        start = k.load(m.indptr, source, mask=valid)
        end = k.load(m.indptr, source + 1, mask=valid)
        write_row(k, m.queue, c.span, (start, end, source))
        self.clear()
        return range_count(c.span, start, end)

    def expand(self, s):
        return self.visit_edges(s, functools.partial(self._relax, s), self.c.unroll)

    def visit_edges(self, s, visit, unroll):
        """Visits the edges of the near queue; returns the least label that this lane put into far.

        least = visit(labels of the tails, heads (n: none), weights, tails, least) for `unroll`
        edges of each lane; tails() gives their tails, called by all lanes of the warp.
        """
        k, c, m = self.k, self.c, self.m

        def chunk(i, mine, least):
            at = (s.cur * self.capacity + i) * 4
            start, end, vertex, _ = k.load_vec(m.queue, at, 4, mask=mine, cache="fresh")
            label = k.load(m.labels, vertex, mask=mine, cache="fresh")
            end = self.end_of(label, vertex, start, end, mine)
            upto, total = k.warp_scan(end - start)
            before = upto - (end - start)

            def stride(e0, least):
                def edge(j):
                    e = e0 + 32 * j + k.lane
                    owner = k.owner(before, e)
                    at, of_tail = k.shfl(start - before, owner) + e, k.shfl(label, owner)
                    near = k.load(m.indices, at, mask=e < total, other=c.n, cache="nc")
                    return of_tail, near, k.load(m.weights, at, mask=e < total, cache="nc"), owner

                *edges, owner = k.several(unroll, edge)
                return visit(*edges, lambda: k.shfl(vertex, owner), least)

            return k.for_(0, total, 32 * unroll, stride, least)

        most = k.where(s.edges // LONG >= s.near, c.taken, 32)
        taken = m.control, Word.TAKEN.at(s.turn)
        return take_shares(k, s.near, most, k.warps, taken, chunk, MAX)[0]

    def row_of(self, s, v, mask):
        """Where the edges of vertices to be queued begin and end."""
        return self.k.row(self.m.indptr, v, mask)

    def end_of(self, label, vertex, start, end, mask):
        """Where the edges of a range end that can matter."""
        return end

    def _relax(self, s, labels, near, weights, tails, least):
        """Lowers the labels of the heads `near`; all lanes of the warp take part."""
        is_valid = self.k.below(near, self.c.n)
        return self.lower(s, (near, self.extended(labels, weights), is_valid), tails, least)

    def lower(self, s, offers, tails, least):
        """Lowers labels; offers: vertices, labels, masks. tails(): by way of which vertices.

        The first load may be served by L1: an old label is at worst too great.
        """
        k, c, m = self.k, self.c, self.m
        near, new, is_valid = offers
        old = k.load(m.labels, near, mask=is_valid, other=-1)
        less = is_valid & (new < old) & self.within(new)
        old = k.atomic("min", m.labels, near, new, mask=less)
        won = less & (new < old)
        if c.rule.parents:
            k.if_(k.any(won), lambda: self.note(near, tails(), new, won))
        close, away, first = self.near_and_far(s, new, old, won)
        least = self.least_of(least, new, away)

        def mark(wanted, shift, value):
            return wanted & (k.atomic("exch", m.marks, near + shift, value, mask=wanted) != value)

        def to_far():
            self.put_far(s, near, mark(first, c.n, 1) if c.marked else first)

        to_near = lambda: self.put_near(s, near, mark(close, 0, s.steps))  # noqa: E731
        k.if_(k.any(close), to_near)
        k.if_(k.any(first), to_far)
        return least

    def put_near(self, s, vertices, won):
        self._put(s, vertices, won, (Count.NEAR, self.near, self.append))

    def put_far(self, s, vertices, won):
        self._put(s, vertices, won, (Count.FAR, self.far, self._append_far))

    def _put(self, s, vertices, won, into):
        """Buffers vertices; into: (shared word that counts them, buffer, what appends others)."""
        k, (word, buffer, append) = self.k, into
        votes = k.ballot(won)
        total = k.total(k.popc(votes), k.const(0))

        def some():
            base, beyond = k.reserve(self.counts, word, total), []

            def store(at, v, mask):
                k.store(buffer, at, v, mask=mask & (at < buffer.size))
                beyond.append((v, mask & (at >= buffer.size)))

            end = store_each(k, base, votes, store, vertices, won)
            one_after_another = lambda j: append(s, *nth(k, beyond, j))  # noqa: E731
            k.if_(end > buffer.size, lambda: k.for_(0, len(beyond), 1, one_after_another))

        k.if_(total > 0, some)

    def _append_far(self, s, v, mask):
        """Appends to far: adds to the word of FAR of this split."""
        k = self.k
        votes = k.ballot(mask)
        base = k.reserve(self.m.control, Word.FAR.at(s.pile), k.popc(votes))
        at = base + k.lanes_below(votes)
        k.store(self.m.far, (s.pile & 1) * self.c.n + at, v, mask=mask)

    def append(self, s, v, mask):
        """Cuts the rows of the lanes' vertices into ranges of the next near queue: adds to the word
        of FOUND of this turn."""
        k, c = self.k, self.c
        start, end = self.row_of(s, v, mask)
        parts = range_count(c.span, start, end)
        upto, total = k.warp_scan(parts)

        def some():
            edges = k.warp_sum(end - start)
            k.reduce("add", self.counts, Count.EDGES, edges, mask=k.lane == 0)
            base = (s.cur ^ 1) * self.capacity + s.carried
            first = base + k.reserve(self.m.control, Word.FOUND.at(s.turn), total)

            def write(j, at, s, e, v):
                b = s + j * c.span
                k.store_vec(self.m.queue, (at + j) * 4, (b, k.minimum(e, b + c.span), v, 0))

            write_ranges(k, parts, (first + upto - parts, start, end, v), write)

        k.if_(total > 0, some)

    def report_least(self, s, least):
        self.maximise_least(least, self.counts, Count.LEAST)

    def flush(self, s):
        """Appends what the CTA has buffered: adds to the words of FAR and LEAST of this split."""
        k, c, m, counts = self.k, self.c, self.m, self.counts
        mine = k.thread == 0
        k.sync()
        away = k.load(counts, Count.FAR)
        near = k.minimum(k.load(counts, Count.NEAR), self.near.size)
        far = k.minimum(away, self.far.size)

        def some():
            base = k.atomic("add", m.control, Word.FAR.at(s.pile), far, mask=mine & (far > 0))
            least = k.load(counts, Count.LEAST)
            k.reduce("max", m.control, Word.LEAST.at(s.pile), least, mask=mine & (least != 0))
            k.store(counts, Count.FAR_AT, base, mask=mine)
            k.reduce("add", counts, Count.AWAY, away, mask=mine & (away > 0))
            k.sync()
            base = k.load(counts, Count.FAR_AT) + (s.pile & 1) * c.n
            k.store(counts, k.thread, 0, mask=k.thread < Count.FAR_AT)

            def ranges(i0):
                i = i0 + k.lane
                self.append(s, k.load(self.near, i, mask=i < near), i < near)

            def copy(i):
                k.store(m.far, base + i, k.load(self.far, i))

            k.for_(k.warp * 32, near, k.threads, ranges)
            k.for_(k.thread, far, k.threads, copy)

        k.if_((near | far | k.load(counts, Count.LEAST)) != 0, some)
