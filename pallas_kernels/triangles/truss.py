"""The k-truss in one launch: edges in too few triangles leave in rounds.

Method: edges in fewer than k - 2 triangles are listed. In a round the listed edges leave together:
the rows of both ends of such an edge are intersected, the shorter one searched for in the longer,
and each triangle of edges that were left before the round takes one from the counts of those that
stay; of several edges of a triangle that leave together the first does so. An edge whose count
falls below k - 2 is listed for the next round. So each edge is intersected once, and only if it
leaves (Wang, Cheng, "Truss decomposition in massive networks", VLDB 2012; in rounds on a GPU:
Bisson, Fatica, "Static graph challenge on GPU", HPEC 2017).

An edge is named by its slot in the row of its smaller end.

Traffic: for each edge that leaves the shorter row, a search in the longer one for each entry, and
two more in rows for each triangle found; two atomics a triangle. Two grid barriers a round.

Measured (H100), 4-trusses: the rounds of cnr-2000 1.5 ms, rmat18 1.5, coAuthorsDBLP 0.20,
delaunay18 3.0 (of many rounds, 3 us or more each), wiki-Vote 0.06, moscow-roads 0.025. Masked
products, a round each, took 2,651 ms with all around them, 991, 5.6, 154, 2.1 and 1.9.
"""

from typing import Any

import jax

from ..frontier import put_words
from ..rows.flatten import flatten
from ..simt.launch import launch
from ..simt.typed import Several

LISTED = 40  # control word: edges listed so far
GONE = -(2**30)  # the state of an edge without triangles; of one that left in round r: -r


def truss(
    indptr: jax.Array, indices: jax.Array, tails: jax.Array, counts: jax.Array, least: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """(left int32[nnz], status int32): 1 for the entries whose edges are left in the truss, else 0.

    The graph has both directions of every edge, columns ascending in each row, none twice, without
    self loops. tails: int32[nnz], the row of each entry; n behind the last. counts: what
    `triangles_of_edges` gives. least: int32, the triangles that an edge needs.
    """
    n, nse = indptr.shape[0] - 1, indices.shape[0]
    arrays = {"indptr": indptr, "indices": indices, "tails": tails}
    out = launch(
        lambda k, m: _Truss(k, m, n, nse).run(),
        arrays | {"least": least.reshape(1)},
        {"listed": nse // 2 + 1, "left": nse, "status": 1},
        inout={"state": counts},
        shared_words=4,
        name="truss",
    )
    return out["left"], out["status"][0]


class _Truss:
    """One launch. `state` of an edge: its triangles, or a negative number once it leaves."""

    def __init__(self, k: Any, m: Any, n: int, nse: int):
        self.k, self.m, self.n, self.nse = k, m, n, nse
        self.least = k.load(m.least, 0, cache="nc")

    def run(self):
        k, m = self.k, self.m
        k.spread_warps(self.nse, self._start)
        ok, last = k.grid_barrier(m.control, [(m.control, LISTED)])

        def round_(ok, turn, first, last):
            def mark(i):
                k.store(m.state, k.load(m.listed, first + i, cache="fresh"), -turn)

            def peel(i, valid):
                self._peel(k.load(m.listed, first + i, mask=valid, cache="fresh"), turn, valid)

            k.spread(last - first, mark)
            k.grid_barrier(m.control)
            k.distribute(last - first, k.warps, peel)
            ok, more = k.grid_barrier(m.control, [(m.control, LISTED)])
            return ok, turn + 1, last, more

        going = lambda ok, turn, first, last: (ok != 0) & (first < last)  # noqa: E731
        ok = k.while_(going, round_, ok, 1, 0, last)[0]
        k.spread(self.nse, self._finish)
        return ok

    def _start(self, e):
        """Lists the edges in too few triangles, but for those in none."""
        k, m = self.k, self.m
        u, v = (k.load(a, e, mask=e < self.nse, cache="nc") for a in (m.tails, m.indices))
        edge = (e < self.nse) & (u < self.n) & (u < v)
        count = k.load(m.state, e, mask=edge, cache="fresh")
        few = edge & (count < self.least)
        k.store(m.state, e, GONE, mask=few & (count == 0))
        self._list(e, few & (count > 0))

    def _list(self, edges, masks):
        """Lists edges for the next round."""
        m = self.m
        put_words(self.k, masks, (m.control, LISTED), (m.listed, 0), edges)

    def _slot(self, v, w, place, mask):
        """The name of the edge v - w, whose slot in the row of v is `place`."""
        k, m = self.k, self.m
        found = k.search(m.indices, *k.row(m.indptr, w, mask & (w < v)), v)
        return k.where(v < w, place, found)

    def _peel(self, e, turn, valid):
        """Takes the triangles of the edges e, one a lane, which leave in round `turn`."""
        k, m = self.k, self.m
        ends = [k.load(a, e, mask=valid, cache="nc") for a in (m.tails, m.indices)]
        rows = [k.row(m.indptr, v, valid) for v in ends]
        swap = rows[1][1] - rows[1][0] < rows[0][1] - rows[0][0]

        def of(pair):
            return k.where(swap, pair[1], pair[0]), k.where(swap, pair[0], pair[1])

        (near, far), (start, low), (stop, high) = map(of, (ends, *zip(*rows, strict=True)))

        def match(place, valid, e, near, far, low, high):
            w = k.load(m.indices, place, mask=valid, cache="nc")
            at = k.search(m.indices, low, k.where(valid, high, low), w)
            found = valid & (at < high)
            found = found & (k.load(m.indices, at, mask=found, cache="nc") == w)
            slots = Several((self._slot(near, w, place, found), self._slot(far, w, at, found)))
            state = k.load(m.state, slots, mask=found, other=GONE, cache="fresh")
            leaving = state == -turn
            for stays in (state >= 0) | (leaving & (e < slots)):
                found = found & stays
            before = k.atomic("add", m.state, slots, -1, mask=found & ~leaving)
            self._list(slots, found & ~leaving & (before == self.least))

        payload = (e, near, far, low, high)
        flatten(k, start, k.where(valid, stop - start, 0), payload, match, unroll=1)

    def _finish(self, e):
        """Stores whether the edge of an entry is left."""
        k, m = self.k, self.m
        u, v = (k.load(a, e, cache="nc") for a in (m.tails, m.indices))
        valid = u < self.n
        state = k.load(m.state, self._slot(u, v, e, valid), mask=valid, other=GONE, cache="fresh")
        k.store(m.left, e, k.cast(state >= 0, "i32"))
