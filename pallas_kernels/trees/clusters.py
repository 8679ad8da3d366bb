"""Clusters of vertices that warps grow breadth-first and join: what `rooted.py` does first.

A warp grows a few clusters at a time, from a queue of its own in shared memory, without waiting for
others: all that is near its seeds stays in L2. It takes blocks of 32 vertices in a pseudo-random
order, and seeds are those that are in no cluster. A cluster has at most `depth` levels. So paths to
seeds are short, whatever the diameter, and in the end every vertex is in a cluster. An edge that is
met between two clusters joins their sets, unless one set holds both: the larger root of the two
becomes a child, by a compare-and-swap, and its cluster keeps the edge.
"""

import functools
from typing import Any, NamedTuple

from ..frontier import range_count, write_ranges
from ..rows.flatten import LONG, PIECE, flatten
from ..simt.typed import one_by_one

DEPTH = 64  # levels of a cluster, as far as the numbers of vertices leave bits
FEW = 8  # vertices in the queue of a warp that needs no further seed
RING = 256  # places of a warp's queue, a power of 2
UNROLL = 4  # entries that a lane has in flight
BLOCK = 32  # vertices that a warp takes to look for seeds
TICKET, CUT, CLUSTERS = 40, 41, 42  # control words: of blocks, pieces of long rows and clusters
NONE = -1  # no cluster, no edge


class Sizes(NamedTuple):
    """n: vertices, 2^28 at most. pieces: of long rows, at most."""

    n: int
    pieces: int

    @property
    def bits(self) -> int:
        """Of the order of the blocks."""
        return ((self.n - 1) // BLOCK).bit_length()

    @property
    def level(self) -> int:
        """The bit of a tag where the level of a vertex begins; the number of its seed is below."""
        return (self.n - 1).bit_length()

    @property
    def depth(self) -> int:
        """Levels of a cluster: 15 fit into the tags of 2^28 vertices, 255 into those of 2^24."""
        return min(DEPTH, 2 ** (32 - self.level) - 1)


class Clusters:
    """The clusters of one launch.

    m.tree: two words of each vertex: its seed, NONE before it is claimed; and the vertex that
    claimed it, of a seed a seed of the same set with a smaller number, or itself. m.edges: at a
    seed that is not the root of its set, the edge (u, v) that joined it.
    """

    def __init__(self, k: Any, m: Any, c: Sizes):
        self.k, self.m, self.c = k, m, c
        self.ring, self.at = k.shared(shared_words(k.threads)), k.warp * RING
        self.root = k.load(m.root, 0)
        self.first_thread = (k.cta == 0) & (k.thread == 0)

    def grow(self):
        """Grows all clusters; returns (ok, how many there are)."""
        k, control = self.k, self.m.control
        valid = k.below(self.root, self.c.n)
        self._initialise(valid)
        (ok,) = k.grid_barrier(control)
        k.if_(ok != 0, lambda: self._grow(valid))
        ok, cut, clusters = k.grid_barrier(control, [(control, CUT), (control, CLUSTERS)])
        k.if_(ok != 0, lambda: k.distribute(cut, k.warps, self._piece))
        return ok & k.grid_barrier(control)[0], clusters

    def _initialise(self, valid):
        k, m, root = self.k, self.m, self.root

        def vertex(v):
            k.store_pair(m.tree, 2 * v, k.where(v == root, root, NONE), v)

        k.spread(self.c.n, vertex)
        mine = self.first_thread & valid
        k.store(m.seeds, 0, root, mask=mine)
        k.store(m.first, root, NONE, mask=mine)
        k.store(m.control, CLUSTERS, 1, mask=mine)

    def _grow(self, valid):
        """This warp's clusters, until no vertex is left; the first has the root.

        The queue is head .. tail - 1, modulo RING, of vertices and tags: the seed of a vertex and
        its level. left: vertices of the block from `base` on that may become seeds, as bits. more:
        whether there are further blocks.
        """
        k = self.k
        first = k.cast((k.cta == 0) & (k.warp == 0) & valid, "i32")
        self._put(0, self.root, self.root, (first != 0) & (k.lane == 0))

        def going(head, tail, base, left, more):
            return (head != tail) | (left != 0) | (more != 0)

        def step(head, tail, base, left, more):
            few = tail - head < FEW
            take = few & (left == 0) & (more != 0)
            base, left, more = k.if_(take, self._take_block, base, left, more)
            seed = few & (left != 0)
            tail = k.if_(seed, lambda: self._seed(base + k.ctz(left), tail), tail)[0]
            left = k.where(seed, left & (left - 1), left)
            k.sync_warp()
            many = k.minimum(tail - head, 32)
            place = self.at + ((head + k.lane) & (RING - 1))
            u, tag = (k.load(self.ring, 2 * place + j) for j in range(2))
            k.sync_warp()
            tail = self._vertices(u, tag, k.lane < many, head + many, tail)
            return head + many, tail, base, left, more

        k.while_(going, step, 0, first, 0, 0, 1)

    def _put(self, i, vertex, tag, mask):
        """Place i of the queue gets a vertex."""
        place = self.at + (i & (RING - 1))
        for j, word in enumerate((vertex, tag)):
            self.k.store(self.ring, 2 * place + j, word, mask=mask)

    def _take_block(self):
        """The next block: its first vertex, which of its vertices are free, whether there are
        more."""
        k, m, bits = self.k, self.m, self.c.bits
        ticket = k.reserve(m.control, TICKET, k.const(1, "i32"))
        block = ticket
        for factor in (0x9E3779B1, 0x85EBCA6B):  # each step permutes the numbers of so many bits
            block = (block * factor) & ((1 << bits) - 1)
            block = block ^ k.shr(block, (bits + 1) // 2)
        more = k.below(ticket, 1 << bits)
        v = block * BLOCK + k.lane
        seen = k.load(m.tree, 2 * v, mask=more & k.below(v, self.c.n), other=0, cache="fresh")
        return block * BLOCK, k.ballot(seen == NONE), k.cast(more, "i32")

    def _seed(self, v, tail):
        """Vertex v becomes a seed and enters the queue, unless it is claimed."""
        k, m, mine = self.k, self.m, self.k.lane == 0
        won = k.shfl(k.atomic_cas(m.tree, 2 * v, NONE, v, mask=mine), 0) == NONE
        mine = mine & won
        k.store(m.first, v, NONE, mask=mine)
        k.store(m.seeds, k.atomic("add", m.control, CLUSTERS, 1, mask=mine), v, mask=mine)
        self._put(tail, v, v, mine)
        return tail + k.cast(won, "i32")

    def _vertices(self, u, tag, valid, head, tail):
        """Expands a vertex of each lane; long rows become pieces. Returns the tail."""
        k, m = self.k, self.m
        begin, end = k.row(m.indptr, u, valid)
        long = valid & (end - begin > LONG)

        def cut():
            parts = k.where(long, range_count(PIECE, begin, end), 0)
            upto, total = k.warp_scan(parts)
            at = k.reserve(m.control, CUT, total) + upto - parts

            def store(j, begin, end, u, tag, at):
                low = begin + j * PIECE
                k.store_vec(m.pieces, (at + j) * 4, (low, k.minimum(low + PIECE, end), u, tag))

            write_ranges(k, parts, (begin, end, u, tag, at), store)

        k.if_(k.any(long), cut)
        size = k.where(valid & ~long, end - begin, 0)
        return self._expand(begin, size, u, tag, tail, RING + head - 32 * UNROLL)

    def _piece(self, i, valid):
        """Joins along pieces of long rows, when all vertices are claimed."""
        begin, end, u, tag = self.k.load_vec(self.m.pieces, i * 4, 4, mask=valid, cache="fresh")
        self._expand(begin, end - begin, u, tag, 0, NONE)

    def _expand(self, begin, size, u, tag, tail, most):
        """Visits entries of vertex u, each lane its own; claims others while the tail is `most` or
        less. Returns the tail.

        An edge to a vertex that is in no cluster is met again from there.
        """
        k, m = self.k, self.m

        def edges(places, valid, owners, tags, tail):
            heads = k.load(m.indices, places, mask=valid, cache="nc")
            seen = k.load(m.tree, 2 * heads, mask=valid, other=0, cache="fresh")
            mine, fits = tags & ((1 << self.c.level) - 1), tail <= most
            free = (seen == NONE) & fits & (k.shr(tags, self.c.level) < self.c.depth)
            old = k.atomic_cas(m.tree, 2 * heads, NONE, mine, mask=free)
            theirs = k.where(free, old, seen)
            for u, tag, v, won in one_by_one(owners, tags, heads, free & (theirs == NONE)):
                k.store(m.tree, 2 * v + 1, u, mask=won)
                votes = k.ballot(won)
                self._put(tail + k.lanes_below(votes), v, tag + (1 << self.c.level), won)
                tail = tail + k.popc(votes)
            apart = valid & (theirs != NONE) & (mine != theirs)
            above = [k.load(m.tree, 2 * x + 1, mask=apart, cache="fresh") for x in (mine, theirs)]
            for *edge, a, b, up, to in one_by_one(owners, heads, mine, theirs, *above):
                k.if_(up != to, functools.partial(self._join, edge, (a, b), (up, to)))
            return tail

        return flatten(k, begin, size, (u, tag), edges, tail, unroll=UNROLL)[0]

    def _join(self, edge, clusters, above):
        """Joins the sets of two clusters by an edge; above: what the clusters have as parents.

        The larger of two numbers falls in every step. The clusters get what both lead to as their
        parent, if they have one: then they never are roots again.
        """
        k, m = self.k, self.m

        def climb(a, b):
            high, low = k.maximum(a, b), k.minimum(a, b)
            up = k.load(m.tree, 2 * high + 1, cache="fresh")
            before = k.atomic_cas(m.tree, 2 * high + 1, high, low, mask=up == high)
            won = (up == high) & (before == high)
            k.store_pair(m.edges, 2 * high, *edge, mask=won)
            return k.where(won, low, k.where(up == high, before, up)), low

        both, _ = k.while_(lambda a, b: a != b, climb, *above)
        for cluster, up in zip(clusters, above, strict=True):
            k.store(m.tree, 2 * cluster + 1, both, mask=(up != cluster) & (up != both))


def shared_words(threads: int) -> int:
    """Words of shared memory of a CTA."""
    return threads // 32 * RING * 2
