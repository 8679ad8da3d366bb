"""The tree of shortest paths where no tight predecessor is strictly nearer, or none was noted.

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

from collections.abc import Callable

from ..simt.typed import Array, Value
from .problem import Word
from .rounds import Search, State


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
