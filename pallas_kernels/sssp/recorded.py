"""Parents from records: a thread that lowers a label notes its tail and the new label, as 64 bits.

Traffic: a store of 8 bytes where a label falls; at the end 16 bytes of a vertex and one gather. A
record is wrong where threads lowered a label at the same time and the first one noted last.
"""

import enum
from abc import abstractmethod

from ..simt.typed import Array
from .problem import Word
from .rounds import Search
from .tree import adopt, claim, count_orphans


class Count(enum.IntEnum):
    """Shared words of a CTA (`counts`): of what it has buffered, and of its last flush."""

    NEAR = 0  # entries of the buffer of near
    FAR = 1  # entries of the buffer of far
    LEAST = 2  # greatest (MAX - label) put into far
    FAR_AT = 3  # position of its far entries
    EDGES = 4  # edges of the ranges it appended
    AWAY = 5  # entries it put into far


class Recorded(Search):
    """A search that records parents while it lowers labels."""

    counts: Array  # shared words of the CTA, see `Count`

    @abstractmethod
    def visit_edges(self, s, visit, unroll):
        """Visits the edges of the near queue, `unroll` of each lane in flight together."""

    def note(self, vertex, parent, label, mask):
        """Records who lowered a label to what: parent and label, as one word of 64 bits."""
        self.k.store_pair(self.m.noted, 2 * vertex, parent, label, mask=mask)

    def tree(self, s):
        """Makes parents of the records (`noted`); returns whether no barrier expired.

        Every thread that lowers a label records the tail and the label. Threads that do so at the
        same time are not ordered, so the record that stays may be of a label that was lowered
        again. So every record is checked: its label must be the final one, which makes the edge
        tight (a tail that fell later would have lowered the head, or rounding makes both sums
        equal), and its tail strictly nearer: then all that have a parent lead to the source, also
        while orphans take some of equal label. That takes a gather for a vertex, where one more
        pass over the edges would take one for each edge. The other vertices, the orphans, search
        their own rows on a symmetric graph; what is left gets a parent by adoption (`tree.py`),
        from the orphans that found one. Else all vertices that have a parent search theirs for
        orphans.
        """
        k, c, parents = self.k, self.c, self.m.parents
        orphans, s.away = self.find_orphans(s), 0
        if c.rule.symmetric:
            s = s.after(k, (orphans > 0) & (s.ok == 1), self._search_parents)
            orphans = orphans - s.away
        s = s.after(k, (orphans > 0) & (s.ok == 1), self._queue_parents)
        return adopt(self, s, orphans, parents, self._adopting)

    def find_orphans(self, s):
        """Checks the records; returns how many are wrong, and queues those vertices if the graph is
        symmetric."""
        k, c, m = self.k, self.c, self.m

        def check(v):
            is_valid = v < c.n
            parent, label, fine = self._record(v, is_valid)
            reached = label != c.infinity
            parent = k.where(fine, parent, k.where(v == self.source, v, k.where(reached, c.n, -1)))
            k.store(m.parents, v, parent, mask=is_valid)
            lost = is_valid & (parent == c.n)
            count_orphans(self, lost)
            if c.rule.symmetric:
                self.put_near(s, [v], [lost])

        self.begin(s)
        k.spread_warps(c.n, check)
        (orphans,) = self.barrier(s, Word.ORPHANS)
        s.turn = s.turn + 1
        return orphans

    def _record(self, v, is_valid):
        """The recorded parent of a vertex, its label, whether that is right (of the source: no)."""
        k, c, m = self.k, self.c, self.m
        parent, noted = k.load_vec(m.noted, 2 * v, 2, mask=is_valid, other=c.n, cache="fresh")
        label = k.load(m.labels, v, mask=is_valid, other=c.infinity)
        known = k.below(parent, c.n) & (noted == label)
        return parent, label, known & (k.load(m.labels, parent, mask=known) < label)

    def _search_parents(self, s):
        """The orphans of the near queue search their rows; s.away counts those that find one.

        A tail as near as the orphan serves once it has a parent itself. The claim depends on the
        load that saw that, and a GPU writes nothing on a guess: so claims along equal labels follow
        each other in time and close no cycle.
        """
        k, c, m = self.k, self.c, self.m

        def visit(labels, near, weights, edge, least):
            for j, (y, u, weight) in enumerate(zip(labels, near, weights, strict=True)):
                x = k.load(m.labels, u, mask=k.below(u, c.n), other=c.infinity)
                fits = self.tight(x, weight, y)
                above = k.load(m.parents, u, mask=fits, other=c.n, cache="fresh")
                fits = fits & ((x < y) | (above != c.n))
                won = k.popc(k.ballot(claim(self, m.parents, edge(j), u, fits)))
                k.reduce("add", self.counts, Count.AWAY, won, mask=(k.lane == 0) & (won > 0))
            return least

        self.begin(s)
        self.visit_edges(s, visit, c.unroll)
        self.barrier(s)
        s.turn = s.turn + 1

    def _queue_parents(self, s):
        """Queues the vertices that have a parent; on a symmetric graph the former orphans alone."""
        k, c = self.k, self.c

        def queue(v):
            is_valid = v < c.n
            parent = k.load(self.m.parents, v, mask=is_valid, other=-1, cache="fresh")
            wanted = k.below(parent, c.n)
            if c.rule.symmetric:
                wanted = wanted & ~self._record(v, is_valid)[2]
            self.put_near(s, [v], [wanted])

        self.begin(s)
        k.spread_warps(c.n, queue)
        self.barrier(s)
        s.turn = s.turn + 1

    def _adopting(self, s):
        """Vertices of the near queue become parents of orphans."""
        k, c, m = self.k, self.c, self.m

        def visit(labels, near, weights, edge, least):
            for j, (x, v, weight) in enumerate(zip(labels, near, weights, strict=True)):
                y = k.load(m.labels, v, mask=k.below(v, c.n), other=c.infinity)
                won = claim(self, m.parents, v, edge(j), self.tight(x, weight, y))
                self.put_near(s, [v], [won])
            return least

        self.visit_edges(s, visit, c.unroll)
