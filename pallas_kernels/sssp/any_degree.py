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

import dataclasses
import enum
import functools
from typing import Any

from ..frontier.append import nth, range_count, store_each, take_shares, write_ranges, write_row
from ..simt.typed import one_by_one
from .problem import MAX, Problem, Word
from .rounds import Search, State
from .tree import claim, count_orphans, given_up

CHECK, FIND, ADOPT = 8, 9, 10  # stages of a turn that makes parents; others search
LONG = 32  # if ranges have more edges than this in the mean, a warp takes fewer in one step


class Count(enum.IntEnum):
    """Shared words of a CTA (`counts`): of what it has buffered, and of its last flush."""

    NEAR = 0  # entries of the buffer of near
    FAR = 1  # entries of the buffer of far
    LEAST = 2  # greatest (MAX - label) put into far
    FAR_AT = 3  # position of its far entries
    EDGES = 4  # edges of the ranges it appended
    AWAY = 5  # entries it put into far


def shared_words(c: Problem) -> int:
    """Words of shared memory of a CTA."""
    return len(Count) + c.near_buffer + c.far_buffer + 12


def capacity(c: Problem, entries: int) -> int:
    """Ranges of a near queue at most."""
    return c.n + entries // c.span + 1


@dataclasses.dataclass
class Staged(State):
    """The state with the stage of a turn."""

    stage: Any  # CHECK, FIND or ADOPT: parents are made
    orphans: Any  # vertices without a parent


class AnyDegree(Search):
    """The queues of all CTAs, and how they are expanded."""

    state: type[State] = Staged

    def allocate(self):
        k, c = self.k, self.c
        self.capacity = self.m.queue.size // 8  # ranges of each of the two queues
        self.counts = k.shared(len(Count))
        self.near, self.far = k.shared(c.near_buffer), k.shared(c.far_buffer)
        self.counted = (
            (Word.EDGES, (self.counts, Count.EDGES)),
            (Word.AWAY, (self.counts, Count.AWAY)),
        )
        warps = k.threads // 32 * k.ctas
        self.small_round, self.small_far = c.small_round * warps, c.small_far * warps

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
        return take_shares(k, s.near, most, self.warps, taken, chunk, MAX)[0]

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

    # ---- Parents ----

    def note(self, vertex, parent, label, mask):
        """Records who lowered a label to what: parent and label, as one word of 64 bits."""
        self.k.store_pair(self.m.noted, 2 * vertex, parent, label, mask=mask)

    def tree(self, s: Any):
        """Makes parents of the records (`noted`); returns whether no barrier expired.

        Every thread that lowers a label records the tail and the label. Threads that do so at the
        same time are not ordered, so the record that stays may be of a label that was lowered
        again. So every record is checked: its label must be the final one, which makes the edge
        tight (a tail that fell later would have lowered the head, or rounding makes both sums
        equal), and its tail strictly nearer: then all that have a parent lead to the source, also
        while orphans take some of equal label. That takes a gather for a vertex, where one more
        pass over the edges would take one for each edge. The other vertices, the orphans, search
        their own rows on a symmetric graph; those that find a parent adopt others (`tree.py`). Else
        all vertices that have a parent adopt.
        """
        k, c = self.k, self.c
        last = s.turn + (c.n + 2)
        s.stage, s.away = CHECK, 0

        def going(s: Any):
            more = (s.orphans > 0) & ((s.near > 0) | (s.stage == FIND))
            return ((s.stage == CHECK) | more) & (s.ok == 1) & (s.turn <= last)

        def turn(s: Any):
            self.begin(s)
            k.if_(s.stage == CHECK, lambda: self.find_orphans(s))
            if not c.rule.symmetric:
                k.if_(s.stage == FIND, lambda: self._queue_parents(s))
            visiting = s.stage != CHECK if c.rule.symmetric else s.stage == ADOPT
            k.if_(visiting, lambda: self._find_parents(s))
            (found,) = self.barrier(s, Word.ORPHANS)
            s.orphans = found - s.away
            s.turn, s.stage = s.turn + 1, k.minimum(s.stage + 1, ADOPT)

        s = s.loop(k, going, turn)
        given_up(self, self.m.parents, s.orphans)
        return s.ok & k.cast((s.near == 0) | (s.orphans == 0), "i32")

    def find_orphans(self, s):
        """Checks the records; counts those that are wrong, and queues their vertices if the graph
        is symmetric."""
        k, c, m = self.k, self.c, self.m

        def check(v):
            is_valid = v < c.n
            parent, noted = k.load_vec(m.noted, 2 * v, 2, mask=is_valid, other=c.n, cache="fresh")
            label = k.load(m.labels, v, mask=is_valid, other=c.infinity)
            known = k.below(parent, c.n) & (noted == label)
            fine = known & (k.load(m.labels, parent, mask=known) < label)
            reached = label != c.infinity
            parent = k.where(fine, parent, k.where(v == self.source, v, k.where(reached, c.n, -1)))
            k.store(m.parents, v, parent, mask=is_valid)
            lost = is_valid & (parent == c.n)
            count_orphans(self, lost)
            if c.rule.symmetric:
                self.put_near(s, v, lost)

        k.spread_warps(c.n, check)

    def _queue_parents(self, s):
        """Queues the vertices that have a parent."""
        k, c = self.k, self.c

        def queue(v):
            parent = k.load(self.m.parents, v, mask=v < c.n, other=-1, cache="fresh")
            self.put_near(s, v, k.below(parent, c.n))

        k.spread_warps(c.n, queue)

    def _find_parents(self, s: Any):
        """Orphans find parents along the edges of the near queue: their tails where it holds
        orphans (FIND, on a symmetric graph), else their heads. Queues those that find one, and
        counts them as entries put away.

        A vertex as near as the orphan serves once it has a parent itself. The claim depends on the
        load that saw that, and a GPU writes nothing on a guess: so claims along equal labels follow
        each other in time and close no cycle.
        """
        k, c, m = self.k, self.c, self.m

        def visit(labels, near, weights, tails, least):
            for tail, head, weight, at_tail in one_by_one(tails(), near, weights, labels):
                at_head = k.load(m.labels, head, mask=k.below(head, c.n), other=c.infinity)
                v, u, y, x = head, tail, at_head, at_tail
                if c.rule.symmetric:
                    pairs = ((v, u), (u, v), (y, x), (x, y))
                    v, u, y, x = (k.where(s.stage == FIND, b, a) for a, b in pairs)
                fits = k.below(head, c.n) & self.tight(x, weight, y)
                above = k.load(m.parents, u, mask=fits, other=c.n, cache="fresh")
                won = claim(self, m.parents, v, u, fits & ((x < y) | (above != c.n)))
                self.put_near(s, v, won)
                votes = k.ballot(won)
                mine = (k.lane == 0) & (votes != 0)
                k.reduce("add", self.counts, Count.AWAY, k.popc(votes), mask=mine)
            return least

        self.visit_edges(s, visit, 1)
