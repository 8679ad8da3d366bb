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

import types

import jax

from ..rows.flatten import Flat
from ..rows.merge_path import CsrRows
from ..rows.set_bits import set_bits
from ..simt.device import resident_ctas
from ..simt.launch import launch
from ..simt.primitives import CONTROL_WORDS

LIGHT = 4  # edges a vertex, both directions counted once, in the first list
DENSE = 4  # mean entries of a row above which the largest tree does not choose an edge
SAMPLE = 256  # slots whose keys are sampled to estimate which edges are light
LISTED = 40  # control words 40, 41: edges in the list of even and of odd turns
UNROLL = 2  # edges of a list that a thread has in flight
NOTHING = 2**31 - 1, -1  # key and slot behind all others
MOST_SLOTS = 2**29 - 2**20  # so that int32 can index two lists of four words


def spanning_forest(
    indptr: jax.Array,
    indices: jax.Array,
    keys: jax.Array,
    *,
    ctas: int | None = None,
    threads: int = 512,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(slots, tails int32[n - 1], status int32): the forest of least (key, slot), slots ascending.

    indptr int32[n + 1], indices, keys int32[nnz]: of a graph with both directions of every edge,
    columns ascending in each row, none twice; n at least 2. An edge is named by its slot in the row
    of its smaller endpoint, its tail, and has the key of that slot; self loops are ignored. Behind
    the last edge, slots are nnz and tails n. status 0: right; otherwise a grid barrier expired.
    """
    n, nse = indptr.shape[0] - 1, indices.shape[0]
    ctas, share = ctas or resident_ctas(), min(2 * LIGHT * n / max(nse, 1), 1.0)
    c = types.SimpleNamespace(n=n, nse=nse, capacity=nse // 2 + 1, words=-(-nse // 32))
    c.share, c.light, c.dense = share, share < 0.5, nse > DENSE * n  # of the slots that are light

    def kernel(k, m):
        k.report(m.status, _Forest(k, m, c).run())

    made = {"parent": n, "best": 4 * n, "work": 8 * c.capacity, "taken": c.words}
    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices, "keys": keys},
        made | {"slots": n - 1, "tails": n - 1, "status": 1},
        ctas=ctas,
        threads=threads,
        shared_words=2 * SAMPLE + 8 + 32 + 4,
        more_control=ctas,
        name="spanning_forest",
        interpret=interpret,
    )
    return out["slots"], out["tails"], out["status"][0]


class _Rows(CsrRows):
    """Rows whose `edges`, `row` and `wanted` are given as arguments."""

    def __init__(self, forest, **how):
        super().__init__(forest.k, forest.m.indptr, forest.c.n, (), Flat())
        vars(self).update(how)


class _Forest:
    """A forest, as the parent of each vertex, and the list of edges between its trees."""

    def __init__(self, k, m, c):
        self.k, self.m, self.c = k, m, c
        self.sample, self.bound = k.shared(2 * SAMPLE), k.shared(8)
        self.counts, self.sums = k.shared(32), k.shared(4)

    def run(self):
        """Computes the forest; returns ok. The edges are in `m.slots`."""
        k, m, c = self.k, self.m, self.c
        k.spread(c.n, lambda v: k.store(m.parent, v, v))
        k.spread(c.words, lambda i: k.store(m.taken, i, 0))
        self._reset_least()
        self._light_edges()
        ok, count = self._grid_barrier(0)
        ok, turn = self._rounds(ok, k.const(0), count)
        if c.light:
            self._compress()
            self._reset_least()
            ok, _ = self._grid_barrier(turn)
            self._heavy_edges(turn, self._largest())
            ok, count = self._grid_barrier(turn)
            ok, turn = self._rounds(ok, turn, count)
        bits = types.SimpleNamespace(array=m.taken, words=c.words, found=m.slots, capacity=c.n - 1)
        ok = ok & set_bits(k, bits, c.nse, m.control, CONTROL_WORDS, (self.counts, self.sums))
        ok_, _ = self._grid_barrier(turn)
        self._find_tails()
        return ok & ok_

    def _grid_barrier(self, turn):
        """A grid barrier; returns (ok, number of edges in the list of this turn)."""
        control = self.m.control
        return self.k.grid_barrier(control, [(control, LISTED + (self.k.const(turn) & 1))])

    def _reset_least(self):
        """Resets the least edge of all trees to none."""
        k, m, c = self.k, self.m, self.c
        key, slot = NOTHING
        k.spread(2 * c.n, lambda i: k.store_pair(m.best, 2 * i, slot, key))

    def _append(self, turn, edges, masks):
        """Appends edges (root, root, key, slot) to the list of this turn, counted by LISTED."""
        k, m, c = self.k, self.m, self.c
        votes = [k.ballot(mask) for mask in masks]
        before = [k.const(0)]
        for vote in votes:
            before.append(before[-1] + k.popc(vote))
        many = before[-1]

        def put():
            word = LISTED + (k.const(turn) & 1)
            first = k.shfl(k.atomic("add", m.control, word, many, mask=k.lane == 0), 0)
            for edge, mask, vote, low in zip(edges, masks, votes, before, strict=False):
                place = first + low + k.lanes_below(vote)
                at = ((k.const(turn) & 1) * c.capacity + place) * 4
                k.store_vec(m.work, at, edge, mask=mask & (place < c.capacity))

        k.if_(many > 0, put)

    # ---- Lists ----

    def _light_edges(self):
        """Lists the light edges, or all."""
        k, m, c = self.k, self.m, self.c
        most = self._bound() if c.light else None

        def edges(places, owners, valid):
            heads = k.loads(m.indices, places, valid, cache="nc")
            masks = [t & (r < v) for (r,), v, t in zip(owners, heads, valid, strict=True)]
            keys = k.loads(m.keys, places, masks, cache="nc")
            if most is not None:
                light = [_before(k, (key, p), most) for key, p in zip(keys, places, strict=True)]
                masks = [t & x for t, x in zip(masks, light, strict=True)]
            each = zip(owners, heads, keys, places, strict=True)
            self._append(0, [(r, v, key, p) for (r,), v, key, p in each], masks)

        _Rows(self, edges=edges, row=lambda r, valid: (r,)).walk()

    def _bound(self):
        """(key, slot) of which about `share` of all slots are before: one of a sample."""
        k, m, c = self.k, self.m, self.c
        size = k.maximum(k.load(m.indptr, c.n, cache="nc"), 1)
        wanted = max(int(c.share * SAMPLE), 4)

        def draw(i):
            slot = k.shr(i * 0x9E3779B1, 1) % size
            k.store(self.sample, 2 * i, k.load(m.keys, slot, cache="nc"))
            k.store(self.sample, 2 * i + 1, slot)

        def pair(j):
            return k.load(self.sample, 2 * j), k.load(self.sample, 2 * j + 1)

        def rank(i):
            mine = pair(i)

            def compare(j, less, equal):
                for other in (pair(j), pair(j + 1)):
                    same = (other[0] == mine[0]) & (other[1] == mine[1])
                    less = less + k.cast(_before(k, other, mine), "i32")
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

    def _largest(self):
        """The most frequent root of 32 vertices, the same in all CTAs: trees do not change."""
        k, c = self.k, self.c

        def sample():
            (root,) = self._roots([k.lane * max(c.n // 32, 1) % c.n], [k.lane >= 0])
            votes = k.const(0)
            for d in range(32):
                votes = votes + k.cast(k.shfl(root, d) == root, "i32")
            most = k.warp_fold(k.maximum, votes)
            winner = k.shfl(root, k.ctz(k.ballot(votes == most)))
            k.store(self.bound, 2, winner, mask=k.lane == 0)

        k.if_(k.warp == 0, sample)
        k.sync()
        return k.load(self.bound, 2)

    def _heavy_edges(self, turn, skip):
        """Lists the edges between trees in rows outside of the tree `skip`.

        An edge is in two rows: that of the smaller vertex lists it, or the only one that is read.
        """
        k, m = self.k, self.m

        def edges(places, owners, valid):
            heads = k.loads(m.indices, places, valid, cache="nc")
            roots = k.loads(m.parent, heads, valid)  # all are roots until the next barrier
            found, masks = [], []
            for p, (r, mine), v, root, t in zip(places, owners, heads, roots, valid, strict=True):
                mask = t & (root != mine) & ((root == skip) | (r < v))
                slot = self._slot_of(v, r, mask & (v < r))
                slot = k.where(v < r, slot, p)
                masks.append(mask)
                found.append((mine, root, k.load(m.keys, slot, mask=mask, cache="nc"), slot))
            self._append(turn, found, masks)

        def row(r, valid):
            return r, k.load(m.parent, r, mask=valid, other=skip)

        _Rows(self, edges=edges, row=row, wanted=lambda row: row[1] != skip).walk()

    def _slot_of(self, row, column, mask):
        """The slot of this column in a row, by bisection."""
        k, m = self.k, self.m
        low, high = k.row(m.indptr, row, mask)

        def halve(low, high):
            middle = k.shr(low + high, 1)
            left = k.load(m.indices, middle, cache="nc") < column
            return k.where(left, middle + 1, low), k.where(left, high, middle)

        return k.while_(lambda low, high: low < high, halve, low, high)[0]

    # ---- Rounds ----

    def _roots(self, vertices, masks):
        """The root of each vertex, -1 where masked off; it becomes the parent of the vertex."""
        k, parent = self.k, self.m.parent
        starts = [
            k.load(parent, v, mask=t, other=-1, cache="fresh")
            for v, t in zip(vertices, masks, strict=True)
        ]
        above = [
            k.load(parent, s, mask=t, other=-1, cache="fresh")
            for s, t in zip(starts, masks, strict=True)
        ]
        found = []
        for v, start, up in zip(vertices, starts, above, strict=True):
            root, _ = k.while_(
                lambda label, up: label != up,
                lambda label, up: (up, k.load(parent, up, cache="fresh")),
                start,
                up,
            )
            k.store(parent, v, root, mask=root != start)
            found.append(root)
        return found

    def _compress(self):
        """The parent of every vertex becomes its root."""

        def one(v):
            self._roots([v], [v < self.c.n])

        self.k.spread(self.c.n, one)

    def _over(self, turn, count, f):
        """f(edges, masks) for the list of this turn, all lanes present."""
        k, m, c = self.k, self.m, self.c
        first = (k.warp * k.ctas + k.cta) * 32 * UNROLL

        def some(e0):
            places = [e0 + 32 * u + k.lane for u in range(UNROLL)]
            masks = [p < count for p in places]
            at = [((turn & 1) * c.capacity + p) * 4 for p in places]
            each = zip(at, masks, strict=True)
            f([k.load_vec(m.work, p, 4, mask=t, cache="fresh") for p, t in each], masks)

        k.for_(first, count, k.ctas * k.threads * UNROLL, some)

    def _rounds(self, ok, turn, count):
        """Rounds until no edge of the list, of length count, joins two trees; gives (ok, turn)."""
        k = self.k

        def round_(ok, turn, count):
            skip = self._largest() if self.c.dense else k.const(-1)
            self._find_least(turn, count, skip)
            ok, more = self._grid_barrier(turn + 1)
            self._link(turn + 1, more, skip)
            ok, _ = self._grid_barrier(turn)
            return ok, turn + 1, more

        going = lambda ok, turn, count: (ok != 0) & (count != 0)  # noqa: E731
        return k.while_(going, round_, ok, turn, count)[:2]

    def _find_least(self, turn, count, skip):
        """Lists the edges between trees for the next turn; `best` gets the least of each tree."""
        k = self.k

        def some(edges, masks):
            endpoints = [edge[j] for edge in edges for j in range(2)]
            roots = self._roots(endpoints, [t for t in masks for _ in range(2)])
            pairs = list(zip(roots[::2], roots[1::2], strict=True))
            live = [u != v for u, v in pairs]
            found = [(u, v, e[2], e[3]) for (u, v), e in zip(pairs, edges, strict=True)]
            self._append(turn + 1, found, live)
            candidates = [
                (self._best(turn, root), root, edge[2:], t & (root != skip))
                for edge, t in zip(found, live, strict=True)
                for root in edge[:2]
            ]
            valid = [k.load_pair(self.m.best, at, t, acquire=False) for at, _, _, t in candidates]
            for (at, _, (key, slot), t), (low, high) in zip(candidates, valid, strict=True):
                better = t & _before(k, (key, slot), (high, low))
                k.least_pair(self.m.best, at, slot, key, mask=better)

        self._over(turn, count, some)

    def _best(self, turn, root):
        return ((turn & 1) * self.c.n + root) * 2

    def _link(self, turn, count, skip):
        """Makes each tree a child at the other end of its least edge: of two, the larger root.

        turn: one after that of `_find_least`. The entries of `best` for the next round are reset.
        """
        k, m = self.k, self.m
        next_list = LISTED + ((turn + 1) & 1)
        k.store(m.control, next_list, 0, mask=(k.cta == 0) & (k.thread == 0))

        def some(edges, masks):
            each = zip(edges, masks, strict=True)
            endpoints = [(edge[j], edge[2:], t) for edge, t in each for j in range(2)]
            best = [
                k.load_pair(m.best, self._best(turn + 1, root), t, acquire=False)
                for root, _, t in endpoints
            ]
            mine = [
                t & (root != skip) & (low == slot) & (high == key)
                for (root, (key, slot), t), (low, high) in zip(endpoints, best, strict=True)
            ]
            for j, (u, v, _, slot) in enumerate(edges):
                first, second = mine[2 * j : 2 * j + 2]
                k.reduce("or", m.taken, k.shr(slot, 5), k.bit(slot), mask=first | second)
                stays = first & second
                k.store(m.parent, u, v, mask=first & ~(stays & (u < v)))
                k.store(m.parent, v, u, mask=second & ~(stays & (v < u)))
            for root, _, t in endpoints:
                k.store_pair(m.best, self._best(turn, root), *NOTHING[::-1], mask=t)

        self._over(turn, count, some)

    # ---- The result ----

    def _find_tails(self):
        """Finds the tail of each edge: the last row that begins at or before its slot."""
        k, m, c = self.k, self.m, self.c

        def one(i):
            slot = k.load(m.slots, i, cache="fresh")

            def halve(low, high):
                middle = k.shr(low + high + 1, 1)
                right = k.load(m.indptr, middle, cache="nc") <= slot
                return k.where(right, middle, low), k.where(right, high, middle - 1)

            high = k.where(slot < c.nse, c.n - 1, 0)
            low, _ = k.while_(lambda low, high: low < high, halve, 0, high)
            k.store(m.tails, i, k.where(slot < c.nse, low, c.n))

        k.spread(c.n - 1, one)


def _before(k, edge, other):
    """Whether (key, slot) comes before another; slots count as unsigned."""
    (key, slot), (key_, slot_) = edge, other
    return (key < key_) | ((key == key_) & k.below(slot, slot_))
