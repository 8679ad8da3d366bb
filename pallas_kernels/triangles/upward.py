"""The edges of an undirected graph to the end of higher rank, in one launch.

Method: the rank of a vertex is (degree, number), so no vertex has more than sqrt(2 m) edges to
higher ranks (Chiba, Nishizeki, "Arboricity and subgraph listing algorithms", SIAM J. Comput. 14,
1985). Each row is compacted where it begins, so no offsets are summed and no CTA waits for another.
A warp compares 32 rows together; rows of MIDDLE entries or more are listed in shared memory and
then compared by a warp each, those of LONG entries by the whole CTA, which leaves their heads in
any order.

Traffic: an entry and two offsets (mostly of one sector) a stored entry, a word an edge written, two
words a vertex. Atomics: one for 32 rows of which one has BIG edges or more; in shared memory one
for 128 entries of a long row.

Measured (H200): rmat21 1.65 ms (167M entries, whose gathers take 1.4), rmat18 0.26, delaunay21
0.136, coAuthorsDBLP 0.040, moscow-roads 0.014; by gathers and scatters of XLA rmat18 0.8, grid1000
0.9, moscow-roads 0.4.
"""

from typing import Any, NamedTuple

import jax

from ..frontier import put, store_each
from ..simt.device import extent, resident_ctas
from ..simt.launch import launch
from ..simt.typed import one_by_one

BIG = 8  # vertices of so many edges to higher ranks have a table (`count.py`)
MIDDLE = 128  # entries of a row that a warp takes alone
LONG = 2048  # entries of a row that a CTA takes
LISTED = 1024  # capacity of the lists of middle and of long rows of a CTA, each
UNROLL = 4  # strides of 32 entries that are in flight together
FEW, SHORT = 64, 512  # big vertices of at most FEW heads and SHORT entries are for a warp
NUMBER, EDGES, MEDIUM = 40, 41, 42  # control words: big vertices, edges, big vertices for warps


class Upward(NamedTuple):
    """Edges to higher ranks.

    Attributes:
        rows: int32[2 n], for each vertex where its heads begin and how many they are.
        heads: int32[nnz], from there on.
        big: int32[...], the vertices of at least BIG heads, in any order; those whose table a warp
            makes from the end backwards.
        totals: int32[...], word NUMBER: how many are at the start of `big`; word MEDIUM: at its
            end; word EDGES: all heads.
    """

    rows: jax.Array
    heads: jax.Array
    big: jax.Array
    totals: jax.Array


def upward(indptr: jax.Array, indices: jax.Array) -> Upward:
    """The edges v -> w with (degree of v, v) < (degree of w, w) of a graph with both directions of
    every edge; degrees count stored entries."""
    n, nse = indptr.shape[0] - 1, indices.shape[0]
    capacity = nse // BIG + 1
    out = launch(
        lambda k, m: _Upward(k, m, n, capacity).run(),
        {"indptr": indptr, "indices": indices},
        {"rows": 2 * max(n, 1), "heads": max(nse, 1), "big": capacity},
        **extent(2 * resident_ctas(), threads=512),
        shared_words=2 * LISTED + 8,
        name="upward_edges",
    )
    return Upward(out["rows"], out["heads"], out["big"], out["control"])


class _Upward:
    """One launch; every method is called by whole warps."""

    def __init__(self, k: Any, m: Any, n: int, capacity: int):
        self.k, self.m, self.n, self.capacity = k, m, n, capacity
        # shared: the middle and the long rows of this CTA; how many they are (words 2 and 0), the
        # heads of the current long one
        self.listed, self.count = k.shared(2 * LISTED), k.shared(4)
        k.store(self.count, k.thread, 0, mask=k.thread < 4)
        k.sync()

    def run(self):
        k, m = self.k, self.m
        (edges,) = k.spread_warps(self.n, self._rows, 0)
        k.sync()
        middle, long = (k.minimum(k.load(self.count, j), LISTED) for j in (2, 0))
        (edges,) = k.for_(k.warp, middle, k.threads // 32, self._middle_row, edges)
        (edges,) = k.for_(0, long, 1, self._long_row, edges)
        k.add_sum(m.control, EDGES, edges)

    def _rows(self, v, edges):
        """The rows of a warp, one a lane; gives `edges` and their number more."""
        k, m = self.k, self.m
        begin, end = k.row(m.indptr, v, v < self.n)
        size, listed = end - begin, k.const(False, "i1")
        for j, some in ((0, size >= LONG), (2, (size >= MIDDLE) & (size < LONG))):
            place = k.atomic("add", self.count, j, 1, mask=some)
            some = some & (place < LISTED)
            k.store(self.listed, (LISTED if j else 0) + place, v, mask=some)
            listed = listed | some
        number = self._compact(v, begin, k.where(listed, 0, size))
        self._finish(v, (begin, end), number, (v < self.n) & ~listed)
        return edges + number

    def _middle_row(self, j, edges):
        """A row by this warp."""
        k, first = self.k, self.k.lane == 0
        v = k.load(self.listed, LISTED + j)
        begin, end = k.row(self.m.indptr, v)
        number = self._compact(v, begin, k.where(first, end - begin, 0))
        self._finish(v, (begin, end), number, first)
        return edges + number

    def _finish(self, v, row, number, mask):
        """Stores the row of each lane's vertex and lists it if it is big."""
        k, m, (begin, end) = self.k, self.m, row
        k.store_pair(m.rows, 2 * v, begin, number, mask=mask)
        medium = (number <= FEW) & (end - begin <= SHORT)
        for word, listed in ((NUMBER, ~medium), (MEDIUM, medium)):

            def store(place, v, mask, word=word):
                place = self.capacity - 1 - place if word == MEDIUM else place
                k.store(m.big, place, v, mask=mask)

            put(k, mask & (number >= BIG) & listed, (m.control, word), store, v)

    def _is_up(self, heads, valid, owners):
        """Which heads are of higher rank than their (degree, vertex) in `owners`."""
        k = self.k
        begin, end = k.row(self.m.indptr, heads, valid)
        theirs, (degree, v) = end - begin, owners
        return valid & ((theirs > degree) | ((theirs == degree) & (heads > v)))

    def _compact(self, v, begin, size):
        """Moves the heads of each lane's row to its beginning, in their order; their number."""
        k, m = self.k, self.m
        upto, total = k.warp_scan(size)
        before = upto - size

        def stride(e0, number):
            firsts = k.several(UNROLL, lambda u: e0 + 32 * u)
            lanes = k.owner(before, firsts + k.lane)
            starts, rows = k.shfl(before, lanes), k.shfl(begin, lanes)
            valid = firsts + k.lane < total
            heads = k.load(m.indices, rows + firsts + k.lane - starts, mask=valid, cache="nc")
            ups = self._is_up(heads, valid, (k.shfl(size, lanes), k.shfl(v, lanes)))
            each = one_by_one(firsts, lanes, starts, rows, heads, ups)
            for first, lane, start, row, w, up in each:
                vote = k.ballot(up)
                rank = _below(k, vote, k.lane) - _below(k, vote, k.maximum(start - first, 0))
                k.store(m.heads, row + k.shfl(number, lane) + rank, w, mask=up)
                low, high = (k.minimum(k.maximum(x - first, 0), 32) for x in (before, upto))
                number = number + _below(k, vote, high) - _below(k, vote, low)
            return number

        return k.for_(0, total, 32 * UNROLL, stride, 0)[0]

    def _long_row(self, j, edges):
        """A row by this CTA."""
        k, m = self.k, self.m
        v = k.load(self.listed, j)
        begin, end = k.row(m.indptr, v)
        k.store(self.count, 1, 0, mask=k.thread == 0)
        k.sync()

        def stride(e0):
            places = k.several(UNROLL, lambda u: e0 + 32 * u + k.lane)
            heads = k.load(m.indices, places, mask=places < end, cache="nc")
            ups = self._is_up(heads, places < end, (end - begin, v))
            votes = k.ballot(ups)
            base = begin + k.reserve(self.count, 1, k.total(k.popc(votes)))
            move = lambda at, w, up: k.store(m.heads, at, w, mask=up)  # noqa: E731
            store_each(k, base, votes, move, heads, ups)

        k.for_(begin + k.warp * (32 * UNROLL), end, k.threads * UNROLL, stride)
        k.sync()
        number = k.load(self.count, 1)
        k.if_(k.warp == 0, lambda: self._finish(v, (begin, end), number, k.lane == 0))
        k.sync()
        return edges + k.where(k.thread == 0, number, 0)


def _below(k, word, j):
    """How many of the bits 0 .. j - 1 of a word are set; 0 <= j <= 32."""
    mask = (k.const(1) << (j & 31)) - 1
    return k.popc(word & k.where(j > 31, -1, mask))
