"""Clusters that grow breadth-first together and are joined: what `rooted.py` does first.

Seeds are a root and vertices in a pseudo-random order: one in SEEDS at first, then more wherever
the frontier is small, each time twice as many (eight times once half of the vertices are claimed),
until all were tried. So the levels are few, whatever the diameter, and in the end every vertex is
in a cluster. An edge that is met between two clusters joins their sets, unless one set holds both:
the larger root of the two becomes a child, by a compare-and-swap, and its cluster keeps the edge.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

from ..frontier.append import put, range_count, reserve, write_ranges
from ..frontier.carry import Carry
from ..frontier.control import Rotation
from ..rows.flatten import LONG, PIECE, flatten

SEEDS = 512  # one vertex in so many is a seed at first
UNROLL = 4  # entries that a lane has in flight
# control words 40..47: four rotating groups of QUEUED and CUT, the vertices and pieces of long rows
# of the next level; then the number of clusters
GROUPS, QUEUED, CUT, CLUSTERS = 40, 0, 1, 48
NONE = -1  # no cluster, no edge


class Sizes(NamedTuple):
    """n: vertices. bits: of the order of the seeds. wide: a frontier that needs no more seeds.
    pieces: of long rows, at most.
    """

    n: int
    bits: int
    wide: int
    pieces: int


@dataclasses.dataclass
class State(Carry):
    """The carry of the levels: the frontier is start .. start + count - 1 of the queue, and as many
    pieces of long rows as `cut`, from `low` on."""

    start: Any
    count: Any
    low: Any
    cut: Any
    tried: Any  # vertices that were tried as seeds
    tries: Any  # how many the next ones are
    clusters: Any
    turn: Any
    ok: Any  # 0: a barrier expired


class Clusters:
    """The clusters of one launch.

    m.cluster: of each vertex its seed, NONE before it is claimed. m.parents: of a vertex the one
    that claimed it; of a seed a seed of the same set with a smaller number, or itself. m.edges: at
    a seed that is not the root of its set, the edge (u, v) that joined it.
    """

    def __init__(self, k: Any, m: Any, c: Sizes):
        self.k, self.m, self.c = k, m, c
        self.groups = Rotation(k, m.control, GROUPS, 2)
        self.warps = k.warp * k.ctas + k.cta, k.ctas * k.threads // 32
        self.root = k.load(m.root, 0)
        self.first_thread = (k.cta == 0) & (k.thread == 0)

    def grow(self):
        """Grows all clusters; returns (ok, how many there are, levels)."""
        k, c = self.k, self.c
        size, most = 1 << c.bits, c.n // c.wide + c.bits + 16  # every level claims or tries
        valid = k.cast(k.below(self.root, c.n), "i32")
        self._initialise(valid)
        (ok,) = k.grid_barrier(self.m.control)
        first = State.of(count=valid, tries=max(size // SEEDS, 1), clusters=valid, ok=ok)

        def left(s):
            return (s.count > 0) | (s.cut > 0) | (s.tried < size)

        going = lambda s: (s.ok != 0) & left(s) & (s.turn < most)  # noqa: E731
        last = first.loop(k, going, self._level)
        return last.ok & k.cast(~left(last), "i32"), last.clusters, last.turn

    def _initialise(self, valid):
        k, m, root = self.k, self.m, self.root

        def vertex(v):
            k.store(m.parents, v, v)
            k.store(m.cluster, v, k.where(v == root, root, NONE))

        k.spread(self.c.n, vertex)
        mine = self.first_thread & (valid != 0)
        for array in (m.queue, m.seeds):
            k.store(array, 0, root, mask=mine)
        k.store(m.first, root, NONE, mask=mine)
        k.store(m.control, CLUSTERS, 1, mask=mine)

    def _level(self, s: State) -> None:
        """Clusters claim the neighbours of the frontier, and new seeds themselves."""
        k, control = self.k, self.m.control
        self.groups.clear(s.turn)
        self.group, self.end = self.groups.group(s.turn), s.start + s.count
        self.end_of_cut = s.low + s.cut
        size, few = 1 << self.c.bits, s.count < self.c.wide
        more = k.where(few, k.minimum(s.tries, size - s.tried), 0)
        tries = k.minimum(s.tries, max(size >> 3, 1)) * k.where(self.end > self.c.n // 2, 8, 2)
        k.distribute(s.count, self.warps, lambda i, valid: self._vertices(s.start + i, valid))
        k.distribute(s.cut, self.warps, lambda i, valid: self._pieces(s.low + i, valid))
        k.distribute(more, self.warps, lambda i, valid: self._try(s.tried + i, valid))
        words = self.group + QUEUED, self.group + CUT, CLUSTERS
        found = k.grid_barrier(control, [(control, word) for word in words])
        s.start, s.low = self.end, self.end_of_cut
        s.ok, s.count, s.cut, s.clusters = found
        s.tried, s.tries = s.tried + more, k.where(few, tries, s.tries)
        s.turn = s.turn + 1

    def _vertices(self, i, valid):
        k, m = self.k, self.m
        u = k.load(m.queue, i, mask=valid, cache="fresh")
        mine = k.load(m.cluster, u, mask=valid, cache="fresh")
        begin, end = k.row(m.indptr, u, valid)
        long = valid & (end - begin > LONG)
        self._expand(begin, k.where(valid & ~long, end, begin), u, mine)

        def cut():
            parts = k.where(long, range_count(PIECE, begin, end), 0)
            upto, total = k.warp_scan(parts)
            at = self.end_of_cut + reserve(k, m.control, self.group + CUT, total) + upto - parts

            def store(j, begin, end, u, mine, at):
                low = begin + j * PIECE
                piece = low, k.minimum(low + PIECE, end), u, mine
                k.store_vec(m.pieces, (at + j) * 4, piece)

            write_ranges(k, parts, (begin, end, u, mine, at), store)

        k.if_(k.any(long), cut)

    def _pieces(self, i, valid):
        piece = self.k.load_vec(self.m.pieces, i * 4, 4, mask=valid, cache="fresh")
        self._expand(*piece)

    def _try(self, i, valid):
        """Vertices number i in the pseudo-random order become seeds, unless they are claimed."""
        k, m, bits = self.k, self.m, self.c.bits
        v = i
        for factor in (0x9E3779B1, 0x85EBCA6B):  # each step permutes the numbers of so many bits
            v = (v * factor) & ((1 << bits) - 1)
            v = v ^ k.shr(v, (bits + 1) // 2)
        valid = valid & (v < self.c.n)
        seen = k.load(m.cluster, v, mask=valid, other=0, cache="fresh")
        free = seen == NONE
        won = free & (k.atomic_cas(m.cluster, v, NONE, v, mask=free) == NONE)
        k.store(m.first, v, NONE, mask=won)
        self._append([v], [won])
        allocate = lambda total: reserve(k, m.control, CLUSTERS, total)  # noqa: E731
        put(k, [v], [won], allocate, lambda at, v, won: k.store(m.seeds, at, v, mask=won))

    def _append(self, vertices, won):
        """Appends vertices to the next frontier."""
        k, m = self.k, self.m

        def allocate(total):
            return self.end + reserve(k, m.control, self.group + QUEUED, total)

        put(k, vertices, won, allocate, lambda at, v, won: k.store(m.queue, at, v, mask=won))

    def _expand(self, begin, end, u, mine):
        """Visits the entries begin .. end - 1 of vertex u in cluster `mine`, each lane its own.

        An edge whose ends are claimed in the same level is met in the next one.
        """
        k, m = self.k, self.m

        def edges(places, owners, valid):
            heads = k.loads(m.indices, places, valid, cache="nc")
            seen = k.loads(m.cluster, heads, valid, other=0, cache="fresh")
            each = list(zip(owners, heads, seen, valid, strict=True))
            old = [
                k.atomic_cas(m.cluster, v, NONE, mine, mask=t & (c == NONE))
                for (_, mine), v, c, t in each
            ]
            won = [t & (c == NONE) & (x == NONE) for (*_, c, t), x in zip(each, old, strict=True)]
            for ((u, _), v, *_), t in zip(each, won, strict=True):
                k.store(m.parents, v, u, mask=t)
            self._append(heads, won)
            mine = [owner[1] for owner in owners]
            theirs = [k.where(c == NONE, x, c) for c, x in zip(seen, old, strict=True)]
            apart = zip(valid, won, mine, theirs, strict=True)
            apart = [t & ~claimed & (a != b) for t, claimed, a, b in apart]
            above = [k.loads(m.parents, x, apart, cache="fresh") for x in (mine, theirs)]
            for (u, _), v, *pairs in zip(owners, heads, mine, theirs, *above, strict=True):
                (*clusters, up, to) = pairs
                k.if_(up != to, functools.partial(self._join, (u, v), clusters, (up, to)))

        flatten(k, begin, end - begin, (u, mine), edges, unroll=UNROLL)

    def _join(self, edge, clusters, above):
        """Joins the sets of two clusters by an edge; above: what the clusters have as parents.

        The larger of two numbers falls in every step. The clusters get what both lead to as their
        parent, if they have one: then they never are roots again.
        """
        k, m = self.k, self.m

        def climb(a, b):
            high, low = k.maximum(a, b), k.minimum(a, b)
            up = k.load(m.parents, high, cache="fresh")
            before = k.atomic_cas(m.parents, high, high, low, mask=up == high)
            won = (up == high) & (before == high)
            k.store_pair(m.edges, 2 * high, *edge, mask=won)
            return k.where(won, low, k.where(up == high, before, up)), low

        both, _ = k.while_(lambda a, b: a != b, climb, *above)
        for cluster, up in zip(clusters, above, strict=True):
            k.store(m.parents, cluster, both, mask=(up != cluster) & (up != both))
