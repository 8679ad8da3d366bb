"""The spanning forest of least weight in one launch: Boruvka's rounds, the lightest edges first.

Method: edges are ordered by (key, slot), so that there is one forest. A list of the lightest edges,
about LIGHT a vertex, estimated from a sample of the keys, goes through Boruvka's rounds (1926). In
a round each tree finds the least edge that leaves it, by an atomic minimum of 64 bits, and becomes
a child of the tree at the other endpoint; edges within a tree leave the list. Then only rows
outside of the largest tree are read, and their edges to other trees make the next list: an edge of
the largest tree is found from its other endpoint. The largest tree does not choose an edge, because
all its atomics would hit one word; the choices of the others are right by the cut property. Light
edges first: Kruskal, 1956; both joined with atomics on a GPU: Fallin, Gonzalez, Seo, Burtscher, "A
high-performance MST implementation for GPUs", SC 2023; skipping the largest tree: Sutton, Ben-Nun,
Barak, "Optimizing parallel graph connectivity computation via subgraph sampling", IPDPS 2018.

Traffic: a pass over columns and keys; 32 bytes and two gathers for each edge of a list and round,
two atomics (each after a load that shows whether it improves) for each that leaves a tree; a pass
over the rows outside of the largest tree; a bit an entry for the result. Two grid barriers a round,
some ten rounds. Lists have capacity for all edges, together 16 bytes for each entry of the graph.

Floor (H200): 155 MB of rmat18's columns and keys, 0.04 ms; two gathers for 6.3M edges of delaunay21
0.08 ms. Measured: rmat21 7.3 ms, rmat18 1.9, delaunay21 2.1, grid1000 0.84, moscow-roads 0.26.
"""

import jax
import jax.numpy as jnp

from ..rows.flatten import Flat
from ..rows.merge_path import CsrRows
from ..simt.device import extent
from ..simt.launch import launch
from ..simt.primitives import CONTROL_WORDS
from .rounds import Rounds, Sizes, before

LIGHT = 4  # edges a vertex, both directions counted once, in the first list
DENSE = 4  # mean entries of a row above which the largest tree does not choose an edge
SAMPLE = 256  # slots whose keys are sampled to estimate which edges are light
MOST_SLOTS = 2**29 - 2**20  # so that int32 can index two lists of four words


def spanning_forest(
    indptr: jax.Array, indices: jax.Array, weights: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(slots, tails int32[n - 1], status int32): the forest of least (weight, slot).

    The graph has both directions of every edge, columns ascending in each row, none twice; n at
    least 2. weights: int32 or float32. An edge is named by its slot in the row of its smaller
    endpoint, its tail, and has the weight of that slot; self loops are ignored. Slots ascend;
    behind the last edge they are nnz, and tails n.
    """
    n, nse = indptr.shape[0] - 1, indices.shape[0]
    form, share = extent(threads=512), min(2 * LIGHT * n / max(nse, 1), 1.0)
    light, dense = share < 0.5, nse > DENSE * n
    c = Sizes(n, nse, nse // 2 + 1, -(-nse // 32), share, light, dense)
    made = {"parent": n, "best": 4 * n, "work": 8 * c.capacity, "taken": c.words}
    out = launch(
        lambda k, m: _Forest(k, m, c, weights.dtype == jnp.float32).run(),
        {"indptr": indptr, "indices": indices, "weights": weights},
        made | {"slots": n - 1, "tails": n - 1, "status": 1},
        **form,
        shared_words=2 * SAMPLE + 8 + 32 + 4,
        more_control=form["ctas"],
        name="spanning_forest",
    )
    return out["slots"], out["tails"], out["status"][0]


class _Rows(CsrRows):
    """Rows whose `edges`, `row` and `wanted` are given as arguments."""

    def __init__(self, forest, **how):
        super().__init__(forest.k, forest.m.indptr, forest.c.n, (), Flat())
        vars(self).update(how)


class _Forest(Rounds):
    """The forest of one launch."""

    def __init__(self, k, m, c, floats):
        """floats: whether weights are float32, not int32."""
        super().__init__(k, m, c)
        self.floats = floats
        self.sample, self.counts, self.sums = k.shared(2 * SAMPLE), k.shared(32), k.shared(4)

    def run(self):
        """Computes the forest; returns ok. The edges are in `m.slots`."""
        k, m, c = self.k, self.m, self.c
        k.spread(c.n, lambda v: k.store(m.parent, v, v))
        k.spread(c.words, lambda i: k.store(m.taken, i, 0))
        self.reset_least()
        self._light_edges()
        ok, count = self.grid_barrier(0)
        ok, turn = self.run_rounds(ok, k.const(0), count)
        if c.light:
            self.compress()
            self.reset_least()
            ok, _ = self.grid_barrier(turn)
            self._heavy_edges(turn, self.largest())
            ok, count = self.grid_barrier(turn)
            ok, turn = self.run_rounds(ok, turn, count)
        ok = ok & self._list_slots()
        ok_, _ = self.grid_barrier(turn)
        self._find_tails()
        return ok & ok_

    # ---- Lists ----

    def _keys(self, slots, masks):
        """int32 in the order of the weights at some slots, -0 as 0."""
        k = self.k
        found = k.load(self.m.weights, slots, mask=masks, cache="nc")
        if not self.floats:
            return found
        word = k.bits(found, "i32")
        return k.where(word < 0, -(word & 0x7FFFFFFF), word)

    def _light_edges(self):
        """Lists the light edges, or all."""
        k, m, c = self.k, self.m, self.c
        most = self._bound() if c.light else None

        def edges(places, valid, r):
            v = k.load(m.indices, places, mask=valid, cache="nc")
            masks = valid & (r < v)
            keys = self._keys(places, masks)
            if most is not None:
                masks = masks & before(k, (keys, places), most)
            self.append(0, (r, v, keys, places), masks)

        _Rows(self, edges=edges, row=lambda r, valid: (r,)).walk()

    def _bound(self):
        """(key, slot) of which about `share` of all slots are before: one of a sample."""
        k, m, c = self.k, self.m, self.c
        size = k.maximum(k.load(m.indptr, c.n, cache="nc"), 1)
        wanted = max(int(c.share * SAMPLE), 4)

        def draw(i):
            slot = k.shr(i * 0x9E3779B1, 1) % size
            k.store(self.sample, 2 * i, self._keys(slot, None))
            k.store(self.sample, 2 * i + 1, slot)

        def pair(j):
            return k.load(self.sample, 2 * j), k.load(self.sample, 2 * j + 1)

        def rank(i):
            mine = pair(i)

            def compare(j, less, equal):
                for other in (pair(j), pair(j + 1)):
                    same = (other[0] == mine[0]) & (other[1] == mine[1])
                    less = less + k.cast(before(k, other, mine), "i32")
                    equal = equal + k.cast(same, "i32")
                return less, equal

            less, equal = k.for_(0, SAMPLE, 2, compare, 0, 0)
            found = (less <= wanted) & (wanted < less + equal)
            for j in range(2):
                k.store(self.bound, j, mine[j], mask=found)

        k.for_(k.thread, SAMPLE, k.threads, draw)
        k.sync()
        k.for_(k.thread, SAMPLE, k.threads, rank)
        k.sync()
        return k.load(self.bound, 0), k.load(self.bound, 1)

    def _heavy_edges(self, turn, skip):
        """Lists the edges between trees in rows outside of the tree `skip`.

        An edge is in two rows: that of the smaller vertex lists it, or the only one that is read.
        """
        k, m = self.k, self.m

        def edges(places, valid, r, mine):
            v = k.load(m.indices, places, mask=valid, cache="nc")
            root = k.load(m.parent, v, mask=valid)  # all are roots until the next barrier
            masks = valid & (root != mine) & ((root == skip) | (r < v))
            slots = k.search(m.indices, *k.row(m.indptr, v, masks & (v < r)), r)
            slots = k.where(v < r, slots, places)
            self.append(turn, (mine, root, self._keys(slots, masks), slots), masks)

        def row(r, valid):
            return r, k.load(m.parent, r, mask=valid, other=skip)

        _Rows(self, edges=edges, row=row, wanted=lambda row: row[1] != skip).walk()

    # ---- The result ----

    def _list_slots(self):
        """Writes the numbers of the bits that are set in `taken`, in order, then nse; returns ok.
        Control words from CONTROL_WORDS on, one a CTA, serve once."""
        k, m, c = self.k, self.m, self.c
        warps = k.threads // 32
        each = -(-c.words // (32 * k.ctas * warps)) * 32  # words of a warp
        first = (k.cta * warps + k.warp) * each
        stop = k.minimum(first + each, c.words)

        def word(i):
            return k.load(m.taken, i + k.lane, mask=i + k.lane < stop, cache="fresh")

        k.store(self.counts, k.thread, 0, mask=k.thread < 32)
        k.sync()
        (many,) = k.for_(first, stop, 32, lambda i, many: many + k.popc(word(i)), 0)
        many = k.warp_sum(many)
        k.store(self.counts, k.warp, many, mask=k.lane == 0)
        k.sync()
        upto, here = k.warp_scan(k.load(self.counts, k.lane))
        ok, before, total = k.sums_of_ctas(m.control, CONTROL_WORDS, here, self.sums)

        def put(i, place):
            mine = word(i)
            upto, many = k.warp_scan(k.popc(mine))

            def bit(j, place):
                k.store(m.slots, place, (i + k.lane) * 32 + j, mask=place < c.n - 1)
                return place + 1

            k.each_bit(mine, bit, place + upto - k.popc(mine))
            return place + many

        k.for_(first, stop, 32, put, before + k.shfl(upto, k.warp) - many)
        k.spread(c.n - 1, lambda i: k.store(m.slots, i, c.nse, mask=i >= total))
        return ok

    def _find_tails(self):
        """Finds the tail of each edge: the last row that begins at or before its slot."""
        k, m, c = self.k, self.m, self.c

        def one(i):
            slot = k.load(m.slots, i, cache="fresh")
            valid = slot < c.nse
            behind = k.search(m.indptr, k.const(1), k.where(valid, c.n, 1), slot + 1)
            k.store(m.tails, i, k.where(valid, behind - 1, c.n))

        k.spread(c.n - 1, one)
