"""The tree of shortest paths: from what threads noted when they lowered labels, and by adoption.

Adoption serves where no tight predecessor is strictly nearer, or none was noted.

An edge u -> v is tight if label[u] (+) w = label[v]. Most vertices have a tight predecessor with a
smaller label, and any of them will do: labels fall towards the source, so nothing closes a cycle.
Edges of zero weight, and weights that a float sum absorbs, connect vertices of equal label. The
vertices without a parent so far, the orphans, get theirs in rounds of adoption: a vertex that has a
parent visits its tight edges and becomes the parent of each orphan at their heads, by
compare-and-swap, so only once. So along the edges of the tree (label, time of adoption) grows, and
there is no cycle. Every reached vertex has a shortest path of tight edges, so every orphan gets a
parent. A round visits the edges of the vertices that got theirs in the round before.

Rounds: at most the longest chain of such edges, one grid barrier (1.5 us) each; a vertex gets a
parent once, so more than n rounds are an error. Work: the edges of the orphans, once, and those of
the first round (see each kernel). Traffic of an edge: as relaxed (index, weight, label), the parent
if the edge is tight, one compare-and-swap if the head is an orphan.

Measured (H200): bremen_dist, 21 of 85,277 edges of length 0: 0.530 ms with parents, 0.521 without.
"""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from ..simt.typed import Array, Body, Value, one_by_one
from .problem import Count, Word
from .rounds import Search, State

CHECK, FIND, ADOPT = 8, 9, 10  # stages of a turn that makes parents; others search


def count_orphans(search: Search, lost: Value) -> None:
    """Adds the number of lanes with an orphan to control word ORPHANS."""
    k = search.k
    votes, word = k.ballot(lost), Word.ORPHANS
    k.reduce("add", search.m.control, word, k.popc(votes), mask=(k.lane == 0) & (votes != 0))


def claim(search: Search, parents: Array, v: Value, u: Value, fits: Value) -> Value:
    """Whether this lane made u the parent of the orphan v; `fits`: the edge is tight."""
    k, n = search.k, search.c.n
    orphan = k.load(parents, v, mask=fits, cache="fresh") == n
    old = k.atomic_cas(parents, v, n, u, mask=fits & orphan)
    return fits & orphan & (old == n)


def adopt(
    search: Search, s: State, orphans: Value, parents: Array, expand: Callable[[State], object]
) -> Value:
    """Rounds of adoption from the near queue until it is empty; whether all ended well.

    expand(s) claims orphans along the edges of the near queue and queues those that got a parent.
    """
    k, n = search.k, search.c.n
    last = s.turn + n

    def round(s):
        search.begin(s)
        s.steps = s.steps + 1
        expand(s)
        search.barrier(s)
        s.turn = s.turn + 1

    s = s.loop(k, lambda s: (s.near > 0) & (s.ok == 1) & (s.turn <= last), round)
    given_up(search, parents, orphans)
    return s.ok & k.cast(s.near == 0, "i32")


def given_up(search: Search, parents: Array, orphans: Value) -> None:
    """Orphans that are left get -1: their label is above the limit of the targets, or a weight is
    negative."""
    k, n = search.k, search.c.n

    def without(v):
        parent = k.load(parents, v, cache="fresh")
        k.store(parents, v, -1, mask=parent == n)

    k.if_(orphans > 0, lambda: k.spread(n, without))


@dataclasses.dataclass
class Staged(State):
    """The state with the stage of a turn."""

    stage: Any  # CHECK, FIND or ADOPT: parents are made
    orphans: Any  # vertices without a parent


class Noted(Search):
    """A search whose threads note parents."""

    state: type[State] = Staged
    counts: Array  # words `Count` of shared memory

    @abstractmethod
    def visit_edges(self, s: Any, visit: Body, unroll: int) -> Value:
        """Visits the edges of the near queue."""

    def note(self, vertex, parent, label, mask):
        """Records who lowered a label to what: parent and label, as one word of 64 bits."""
        self.k.store_pair(self.m.noted, 2 * vertex, parent, label, mask=mask)

    def tree(self, s: Any):
        """Makes parents of the records (`note`); returns whether no barrier expired.

        Every thread that lowers a label records the tail and the label. Threads that do so at the
        same time are not ordered, so the record that stays may be of a label that was lowered
        again. So every record is checked: its label must be the final one, which makes the edge
        tight (a tail that fell later would have lowered the head, or rounding makes both sums
        equal), and its tail strictly nearer: then all that have a parent lead to the source, also
        while orphans take some of equal label. That takes a gather for a vertex, where one more
        pass over the edges would take one for each edge. The other vertices, the orphans, search
        their own rows on a symmetric graph; those that find a parent adopt others. Else
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
