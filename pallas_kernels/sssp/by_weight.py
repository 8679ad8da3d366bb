"""Shortest paths where the rows of a symmetric graph are ordered by classes of weight: most edges
are never looked at.

Method: an edge u -> v matters to no label up to a ceiling if d[u] + w is above it. So the search
runs below a low ceiling and reads each row only as far as its edges can stay below. Then all labels
up to the ceiling are final. If most edges have their tail there, the other vertices pull: each
takes the least d[u] + w over its own row, with u below the ceiling. They are then the far set of a
search without a ceiling. Otherwise the ceiling rises, and the vertices below it relax again,
further along their rows. Pruning by the ceiling and the pull: Chakaravarthy, Checconi, Petrini,
Sabharwal, "Scalable single source shortest path algorithms for massively parallel systems", IPDPS
2014, there bucket by bucket.

On R-MAT graphs with weights 1 to 64 this looks at 0.15 to 0.2 of the edges: the vertices within an
eighth of the largest weight have 0.96 of them.

Classes: CLASSES ranges of weights, whose least weights are `least`; parts[v * CLASSES + j] is where
class j of row v begins. least[-1] = 0 says that the weights are not in this order: then there is no
ceiling. Only parts of rows that can matter are queued, and a range is cut again when its label is
known. Ranges are short (SPAN), as a warp takes 32 of them: with up to 128 edges in each the last
warps took 100 us in rounds of few edges.

Traffic besides that of `any_degree.py`: two offsets for a vertex that is queued, one for a range,
and for each ceiling the labels and offsets of all vertices, twice.

Measured (H200, ms, inside jit, one bucket after the other before): rmat21 2.46 -> 1.29, of which
parents take 0.18, rmat18 0.54 -> 0.38. Before parents were made in one loop: from another vertex
than the hub of rmat21 3.30 -> 1.50; of the 1.24 in the kernel the pushes below the ceiling took
0.57, the look and the choice 0.08, the pull 0.13, the rest of the search 0.22, parents 0.23.
"""

import dataclasses
import functools
from typing import Any

from ..layouts.lengths import CLASSES
from .any_degree import AnyDegree
from .problem import MAX, Count
from .tree import CHECK, Staged

SPAN = 32  # edges of a range at most: parts of rows are short
WIDER = 2  # doublings of the width of buckets after the pull: they have few edges
MOST_RISES = 8  # then the other vertices pull, however many edges they have
# stages; LOOKED: `edges` are of the vertices below the ceiling; PULLING: a pull is next
PUSHING, LOOKED, PULLING = range(3)


@dataclasses.dataclass
class Below(Staged):
    """The state with the ceiling."""

    ceiling: Any  # labels above it are neither stored nor relaxed; MAX: there is none
    floor: Any  # labels up to it are final, and edges that lead there were relaxed
    known: Any  # `edges` of the stage LOOKED before
    rises: Any  # of the ceiling
    stride: Any  # doublings of the width by which it rises
    wider: Any  # doublings of the width of a bucket


class ByWeight(AnyDegree):
    """A search below a ceiling, a pull, a search of the rest."""

    state = Below

    def allocate(self):
        super().allocate()
        self.least = [self.k.load(self.m.least, j) for j in range(CLASSES)]

    def first_state(self, near, ok):
        s: Any = super().first_state(near, ok)
        k = self.k
        ordered = (self.least[-1] > 0) & (near > 0)
        quarter = self.delta * 0.25 if self.c.rule.real else k.shr(self.delta, 2)
        lowest = k.minimum(self.clamped(s.bound, quarter), MAX - 1)
        s.ceiling = k.where(ordered, lowest, MAX)
        s.bound = k.where(ordered, lowest + 1, s.bound)
        return s

    def going_on(self, s: Any):
        return super().going_on(s) | ((s.ceiling != MAX) & (s.ok == 1))

    def advance(self, s: Any, active):
        self.limit = s.ceiling
        idle = (s.near == 0) & (s.far == 0) & (s.ceiling != MAX)
        pulling = s.stage == PULLING
        looking, choosing = (idle & (s.stage == stage) for stage in (PUSHING, LOOKED))
        s = super().advance(s, active & ~(pulling | idle))
        s = s.after(self.k, looking, self._look).after(self.k, choosing, self._choose)
        return s.after(self.k, pulling, self._pull)

    def end_of(self, label, vertex, start, end, mask):
        if self.limit is None:
            return end
        k = self.k
        last = self._part(vertex, self._classes(label, self.least, self.limit), mask)
        return k.maximum(start, k.minimum(end, last))

    def row_of(self, s: Any, v, mask):
        """The part of a row that leads above the floor and may lead below the ceiling: a label
        above the floor may still fall, but not to it. Of an orphan what its label can hold."""
        k = self.k
        label = k.load(self.m.labels, v, mask=mask, other=MAX, cache="fresh")
        orphan = s.stage == CHECK
        whole = ((s.stage == PULLING) | (s.ceiling == MAX)) & (s.stage != CHECK)
        first = k.where(whole | orphan, 0, self._classes(label, self.least[1:], s.floor))
        begin = k.where(orphan, 0, k.minimum(label, s.floor))
        last = self._classes(begin, self.least, k.where(orphan, label, s.ceiling))
        last = k.where(whole, CLASSES, last)
        start, end = self._part(v, first, mask), self._part(v, last, mask)
        return start, k.maximum(start, end)

    def _classes(self, label, bounds, limit):
        """How many classes an edge can be of to lead from `label` to at most `limit`; bounds: the
        least weight of each."""
        k, count = self.k, self.k.const(0)
        for bound in bounds:
            count = count + k.cast(self.clamped(label, bound) <= limit, "i32")
        return count

    def _part(self, vertex, classes, mask):
        return self.k.load(self.m.parts, vertex * CLASSES + classes, mask=mask, cache="nc")

    def bucket(self, s: Any):
        return self.width(s.doublings + s.wider)

    def tree(self, s):
        self.limit = None
        return super().tree(s)

    def _look(self, s):
        """Adds up the edges of the vertices below the ceiling: all that have a label."""
        k, c, m = self.k, self.c, self.m

        def some(v):
            label = k.load(m.labels, v, mask=v < c.n, other=MAX, cache="fresh")
            start, end = k.row(m.indptr, v, label < c.infinity)
            edges = k.warp_sum(end - start)
            k.reduce("add", self.counts, Count.EDGES, edges, mask=k.lane == 0)

        k.spread_warps(c.n, some)
        s.stage = LOOKED

    def _choose(self, s):
        """Queues the vertices above the ceiling to pull, or raises it and queues those below it."""
        k, c, m = self.k, self.c, self.m
        entries = k.load(m.indptr, c.n, cache="nc")
        few = s.edges < k.shr(entries, c.few)  # the search is not among most edges yet
        pulls = (entries - s.edges <= k.shr(entries, c.rest)) | (s.rises >= MOST_RISES)
        pulls = pulls | (~few & (s.edges - s.known < k.shr(s.known, 3)))
        s.stride = k.where(few, k.minimum(s.stride + 1, 30), s.stride)

        higher = k.minimum(self.clamped(s.ceiling, self.width(s.stride)), MAX - 1)
        s.floor = k.where(pulls, s.floor, s.ceiling)
        s.ceiling = k.where(pulls, s.ceiling, higher)
        s.stage = k.where(pulls, PULLING, PUSHING)
        s.bound, s.known, s.rises = s.ceiling + 1, s.edges, s.rises + 1

        def queue(v):
            label = k.load(m.labels, v, mask=v < c.n, other=MAX, cache="fresh")
            reached = label < c.infinity
            self.put_near(s, v, (v < c.n) & (reached ^ pulls))

        k.spread_warps(c.n, queue)

    def _pull(self, s):
        """The vertices of the near queue take labels from those below the ceiling; no ceiling is
        left."""
        s.steps = s.steps + 1
        self.limit = None
        least = self.visit_edges(s, functools.partial(self._take, s), self.c.unroll)
        self.limit = s.ceiling
        s.ceiling, s.stage, s.doublings, s.wider = MAX, PUSHING, 0, WIDER
        self.report_least(s, least)

    def _take(self, s, labels, near, weights, tails, least):
        """Lowers the labels of the tails by way of the heads `near`.

        L1 may serve the loads: labels up to the ceiling are final since a barrier before this turn,
        and an old label above it is as little of use as the new one.
        """
        k, tails = self.k, tails()
        is_valid = k.below(near, self.c.n)
        labels = k.load(self.m.labels, near, mask=is_valid, other=MAX)
        fits = is_valid & (labels <= s.ceiling)
        return self.lower(s, (tails, self.extended(labels, weights), fits), lambda: near, least)
