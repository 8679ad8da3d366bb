"""Shortest paths on graphs of small degree (meshes, roads): one lane for each vertex, fixed-width
rows.

Adjacency: rows of `quads` times 4 slots, row v the neighbours of v, padded with n; a last slot
below 0 is ~(quad that continues this one), counted from the start of the table. lengths: the
weights in the same places. So a lane gets from a vertex to 4 neighbours and their weights by two
16-byte accesses that are in flight together with that of its label.

A warp takes its part of the near queue, one vertex a lane, and follows its own discoveries for up
to `hops` edges before the round ends: the vertices whose labels it lowered become the next ones of
its lanes through 32 words of shared memory, without any barrier. Vertices beyond 32, and those left
after the last hop, are queued for the next round. A vertex whose label another warp lowers
meanwhile is followed by that warp. So a round costs one grid barrier
(1.5 us) for `hops` levels, each a chain of dependent accesses: row, weights and label (L2) ->
atomic minimum (L2) -> ballots -> lanes (shared). Running ahead relaxes some vertices too early; in
exchange a path of many edges takes few rounds.

Traffic of a relaxed vertex: 8 bytes a slot of its row, its label, one atomic minimum an edge; 8
bytes of queue and one exchange where it ends a warp's walk. The tree: one more pass over all rows.

Measured (H200): luxembourg_osm 1.16 ms, in which 4.3 MB come from memory and 0.52M atomics are
done, in 3.6% of the issue slots: bound by the chain, 1.0 to 1.3 us a hop, of which an atomic is 0.3
and the row 0.2. delaunay 2^21: 4.4 ms.
"""

from typing import Any

from ..frontier import put_words
from ..simt.typed import Several, one_by_one
from .problem import MAX, Problem, Word
from .rounds import Search
from .tree import adopt, claim, count_orphans


def pile_words(c: Problem) -> int:
    """Words of shared memory of a warp's pile: up to 31 entries are left over, then every lane may
    add 4 for each quad."""
    return 32 * (1 + 4 * min(c.together, c.quads))


def shared_words(c: Problem) -> int:
    """Words of shared memory of a CTA."""
    return c.threads + c.threads // 32 * pile_words(c) + 8


class LowDegree(Search):
    """Queues in global memory, their lengths in the control words. Edges are not counted: a round
    follows chains of them."""

    def allocate(self):
        k, c = self.k, self.c
        self.tail = c.tail
        self.slots = k.shared(k.threads)  # the next vertices of each warp, 32 a warp
        self.piles = k.shared(k.threads // 32 * pile_words(c))  # of each warp, for far
        self.first = k.warp * pile_words(c)

    def first_queue(self, source, valid):
        k = self.k
        k.store(self.m.queue, 0, source, mask=valid & (k.cta == 0) & (k.thread == 0))
        return k.cast(valid, "i32")

    def expand(self, s):
        return self.follow(s, self._relaxing)

    def follow(self, s, hop):
        """Follows paths of up to `hops` edges from the near queue; returns the least label that
        this lane put into far.

        hop(s, vertex, least, piled) -> (number of the warp's next vertices, least, piled), piled
        the length of the warp's pile.
        """
        k, c, m = self.k, self.c, self.m
        hops = k.where(s.near <= c.hop_most, c.hops, 1)

        def chunk(i, is_valid, least, piled):
            at = s.cur * c.n + i
            vertex = k.load(m.queue, at, mask=is_valid, other=-1, cache="fresh")

            def one(left, vertex, least, piled):
                count, least, piled = hop(s, vertex, least, piled)
                slot = k.warp * 32 + k.lane
                vertex = k.load(self.slots, slot, mask=k.lane < count, other=-1)
                return left - 1, vertex, least, piled

            def going(left, vertex, least, piled):
                return (left > 0) & k.any(vertex >= 0)

            _, vertex, least, piled = k.while_(going, one, hops, vertex, least, piled)
            self._queue(s, vertex, vertex >= 0)
            return least, piled

        least, piled = k.distribute(s.near, k.warps, chunk, MAX, 0)
        self._to_far(s, piled, k.const(0))
        return least

    def _relaxing(self, s, vertex, least, piled):
        label = self.k.load(self.m.labels, vertex, mask=vertex >= 0, cache="fresh")

        def relaxed(near, weights, count, least, piled):
            new = self.extended(label, weights)
            close, least, piled = self._relax(s, near, new, least, piled)
            return self._next_vertices(s, near, close, count), least, piled

        return self._walk(vertex, relaxed, self.k.const(0), least, piled)

    def _walk(self, vertex, visit, *carry) -> tuple[Any, ...]:
        """carry = visit(neighbours, weights, *carry) for all quads of the lanes' rows (-1: none),
        `together` quads in one call; the quads that continue a row come one by one."""
        k, c, m = self.k, self.c, self.m

        def row(quad):
            near = k.load_vec(m.adjacency, quad * 4, 4, mask=quad >= 0, other=c.n, cache="nc")
            return near, k.load_vec(m.lengths, quad * 4, 4, mask=quad >= 0, cache="nc")

        rows = [row(k.where(vertex >= 0, vertex * c.quads + q, -1)) for q in range(c.quads)]
        for q in range(0, c.quads, c.together):
            some = rows[q : q + c.together]
            near, weights = (Several(x for row in some for x in row[j]) for j in (0, 1))
            carry = visit(near, weights, *carry)
        if c.linked:

            def linked(quad, *carry):
                near, weights = map(Several, row(quad))
                return k.where(near[3] < 0, ~near[3], -1), *visit(near, weights, *carry)

            last = rows[-1][0][3]
            first = k.where(last < 0, ~last, -1)
            _, *carry = k.while_(lambda quad, *carry: k.any(quad >= 0), linked, first, *carry)
        return tuple(carry)

    def _relax(self, s, near, new, least, piled):
        """Lowers labels; returns masks of those that this lane lowered below the bound, the least
        other label, and the length of the pile. The other vertices go to the warp's pile for far,
        in shared memory, which is written to global memory by 32."""
        k = self.k
        is_valid = k.below(near, self.c.n) & self.within(new)
        old = k.atomic("min", self.m.labels, near, new, mask=is_valid)
        won = is_valid & (new < old)
        close, away, first = self.near_and_far(s, new, old, won)
        least = self.least_of(least, new, away)

        def pile():
            count = piled
            for v, w in one_by_one(near, first):
                votes = k.ballot(w)
                k.store(self.piles, self.first + count + k.lanes_below(votes), v, mask=w)
                count = count + k.popc(votes)
            return self._to_far(s, count, count & 31)

        return close, least, k.if_(k.any(first), pile, piled)[0]

    def _next_vertices(self, s, near, close, count):
        """Adds vertices to the warp's next ones, after `count` others; those beyond 32 are queued
        for the next round. Returns the new number."""
        k = self.k
        for v, w in one_by_one(near, close):
            votes = k.ballot(w)
            at = count + k.lanes_below(votes)
            k.store(self.slots, k.warp * 32 + at, v, mask=w & (at < 32))
            beyond = w & (at >= 32)
            k.if_(k.any(beyond), lambda v=v, w=beyond: self._queue(s, v, w))
            count = count + k.popc(votes)
        return count

    def _queue(self, s, vertex, mask):
        """Queues the lanes' vertices for the next round, each once."""
        was = self.k.atomic("exch", self.m.marks, vertex, s.steps, mask=mask)
        self.put_near(s, vertex, mask & (was != s.steps))

    def put_near(self, s, vertices, won):
        into = self.m.queue, (s.cur ^ 1) * self.c.n + s.carried
        put_words(self.k, won, (self.m.control, Word.FOUND.at(s.turn)), into, vertices)

    def put_far(self, s, vertices, won):
        into = self.m.far, (s.pile & 1) * self.c.n
        put_words(self.k, won, (self.m.control, Word.FAR.at(s.pile)), into, vertices)

    def _to_far(self, s, piled, left):
        """Moves the pile from entry `left` on into far; returns `left`."""
        k, c = self.k, self.c
        k.sync_warp()

        def some(at):
            is_valid = at + k.lane < piled
            v = k.load(self.piles, self.first + at + k.lane, mask=is_valid)
            if c.marked:
                was = k.atomic("exch", self.m.marks, c.n + v, 1, mask=is_valid)
                is_valid = is_valid & (was == 0)
            self.put_far(s, v, is_valid)
            return at + 32

        k.while_(lambda at: at < piled, some, left)
        return left

    def report_least(self, s, least):
        self.maximise_least(least, self.m.control, Word.LEAST.at(s.pile))

    def note(self, vertex, parent, label, mask):
        self.k.store(self.m.noted, vertex, parent, mask=mask)

    def tree(self, s):
        """Records for every vertex a tight predecessor that is strictly nearer, if it has one.

        This is one more pass over all edges, which costs little where rows are short; any such
        predecessor is right, so the order does not matter. The others get a parent by adoption
        (`tree.py`). Returns whether no barrier expired.

        marks[n + v], zero because far is empty, is set if a tight edge of v leads to a vertex of
        equal label: adoption begins at these vertices.
        """
        k, c, m = self.k, self.c, self.m

        def look(vertex):
            label = k.load(m.labels, vertex, mask=vertex >= 0)

            def visit(near, weights, level):
                is_valid = k.below(near, c.n)
                x = k.load(m.labels, near, mask=is_valid)
                short = is_valid & self.tight(label, weights, x)
                k.store(m.noted, near, vertex, mask=short & (label < x))
                return (k.union((level, *(short & (label == x) & (near != vertex)))),)

            (level,) = self._walk(vertex, visit, k.const(False, "i1"))
            k.store(m.marks, c.n + vertex, 1, mask=level)

        def known(vertex):
            is_valid = vertex >= 0
            label = k.load(m.labels, vertex, mask=is_valid)
            k.store(m.noted, vertex, -1, mask=is_valid & (label == c.infinity))
            k.store(m.noted, vertex, vertex, mask=is_valid & (vertex == self.source))
            parent = k.load(m.noted, vertex, mask=is_valid, cache="fresh")
            level = k.load(m.marks, c.n + vertex, mask=is_valid, cache="fresh") == 1
            self.put_near(s, vertex, level & (parent != c.n))
            count_orphans(self, is_valid & (parent == c.n))

        def everywhere(f):
            k.spread_warps(c.n, lambda i: f(k.where(i < c.n, i, -1)))

        self.begin(s)
        everywhere(look)
        k.grid_barrier(m.control)  # an expired one makes the next fail as well
        everywhere(known)
        (orphans,) = self.barrier(s, Word.ORPHANS)
        s.turn = s.turn + 1
        return adopt(self, s, orphans, m.noted, lambda s: self.follow(s, self._adopting))

    def _adopting(self, s, vertex, least, piled):
        """The lanes' vertices become parents of their tight successors that have none."""
        k, m = self.k, self.m
        label = k.load(m.labels, vertex, mask=vertex >= 0)

        def visit(near, weights, count):
            is_valid = k.below(near, self.c.n)
            labels = k.load(m.labels, near, mask=is_valid)
            fits = is_valid & self.tight(label, weights, labels)
            won = [claim(self, m.noted, v, vertex, fit) for v, fit in one_by_one(near, fits)]
            return (self._next_vertices(s, near, Several(won), count),)

        (count,) = self._walk(vertex, visit, k.const(0))
        return count, least, piled
