"""Louvain's moving phase in one launch: rounds of moves, weights to communities in hash tables.

Method: in every turn about half of the vertices, drawn by a hash, search for the community of a
neighbour with the largest `w(v, c) - factor k(v) tot(c)`; all that found a better one than their
current one move together after a grid barrier (Lu, Halappanavar, Kalyanaraman, "Parallel heuristics
for scalable community detection", Parallel Computing 47, 2015). A vertex searches again only after
a neighbour has moved (Ozaki, Tezuka, Inaba, "A simple acceleration method for the Louvain
algorithm", IJCEE 8, 2016). If two vertices are alone in their communities, only the one with the
larger number moves to the other. Weights and their sums are integers, so the order of additions
does not matter: every run gives the same result. The weights to one community are summed by
comparing all lanes in rows of up to 8 and 32 edges, by a hash table of the warp in shared memory up
to `ROW` edges, and by a table of the CTA beyond (tables by degree: Naim, Manne, Halappanavar,
Tumeo, "Community detection on the GPU", IPDPS 2017). A row with more edges than that holds is read
once for each share of the communities that fits: looking at one share a turn instead costs rmat16
8% of its modularity.

Traffic: for each vertex that searches, its row, and two gathers an edge, of the neighbour's
community and that one's sum; for each move the row again and four atomics. Two grid barriers a
turn.

Floor (H200): delaunay21's first level reads its edges four times, 100M gathers of communities
and sums, 0.7 ms. Measured, all levels with their joins in XLA: delaunay21 17.6 ms, grid1000 7.7,
coAuthorsDBLP 7.2, moscow-roads 4.2, cnr-2000 25.
"""

import jax

from ..rows.flatten import flatten
from ..simt.device import extent, target
from ..simt.launch import launch
from .looking import COUNTS, PARTS, ROW, SLOTS, Looking

TURNS = 48  # at most so many turns
ENOUGH = 512  # ends once `patience` turns together move at most one in so many vertices
LARGE = 160 * 1024  # bytes of shared memory of a CTA from which its table is twice as large
LONG, ROWS = 44, 45  # control words: number of long rows, number of rows with edges


def patience(n: int) -> int:
    """Turns after which a level may end. In PARTS turns a fourth of the vertices are never drawn:
    of few vertices these may be all that would move."""
    return PARTS if n >= ENOUGH else 4 * PARTS


def moves(
    indptr: jax.Array,
    indices: jax.Array,
    weights: jax.Array,
    strength: jax.Array,
    factor: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """(group int32[n], status int32): a community for each vertex, named by a vertex.

    The graph is symmetric. weights int32[nnz] >= 0; self loops count in strength alone. strength
    int32[n]: the sum of the weights of each row, all of them below 2^31 together. factor: float32,
    resolution over that sum.
    """
    n, form = indptr.shape[0] - 1, extent()
    many = 2 if target().shared_bytes >= LARGE else 1
    table = many * SLOTS * (form["threads"] // 32)
    out = launch(
        lambda k, m: _Moves(k, m, n, table).run(),
        {
            "indptr": indptr,
            "indices": indices,
            "weights": weights,
            "strength": strength,
            "factor": factor.reshape(1),
        },
        dict.fromkeys(("group", "sums", "size", "due", "long"), n)
        | {"moved": 2 * n, "moved_long": 2 * n, "status": 1},
        shared_words=2 * table + form["threads"] + 128,
        name="louvain_moves",
    )
    return out["group"], out["status"][0]


class _Moves(Looking):
    """The turns of a level."""

    def run(self):
        """Runs the turns; returns ok. The communities are in `m.group`."""
        k, m = self.k, self.m
        (rows,) = k.spread_warps(self.n, self._start, 0)
        k.reduce("add", m.control, ROWS, k.warp_sum(rows), mask=k.lane == 0)
        counted = [(m.control, LONG), (m.control, ROWS)]
        ok, long, rows = k.grid_barrier(m.control, counted)
        enough = rows // ENOUGH

        def turn_(ok, turn, before, now):
            word = COUNTS + (turn & 1) * 2
            self.word = word
            self.look(turn)
            self.look_long(turn, long)
            counted = [(m.control, word), (m.control, word + 1)]
            ok, short, far = k.grid_barrier(m.control, counted)
            self._move(short)
            self._move_long(far)
            later = COUNTS + ((turn + 1) & 1) * 2
            for j in range(2):
                k.store(m.control, later + j, 0, mask=(k.cta == 0) & (k.thread == 0))
            (ok,) = k.grid_barrier(m.control)
            now, ends = now + short + far, (turn + 1) % patience(self.n) == 0
            return ok, turn + 1, k.where(ends, now, before), k.where(ends, 0, now)

        def going(ok, turn, before, now):
            return (ok != 0) & (turn < TURNS) & (before > enough)

        return k.while_(going, turn_, ok, 0, 2**31 - 1, 0)[0]

    def _start(self, v, rows):
        """Puts every vertex into a community of its own, marks those with edges as due, and lists
        long rows."""
        k, m = self.k, self.m
        valid = v < self.n
        begin, end = k.row(m.indptr, v, valid)
        k.store(m.group, v, v, mask=valid)
        k.store(m.sums, v, k.load(m.strength, v, mask=valid, cache="nc"), mask=valid)
        k.store(m.size, v, 1, mask=valid)
        k.store(m.due, v, k.cast(end > begin, "i32"), mask=valid)
        self.put(m.long, LONG, (v,), valid & (end - begin > ROW))
        return rows + k.cast(end > begin, "i32")

    # ---- Moving ----

    def _change(self, u, to, mask):
        """Moves u to the community `to`."""
        k, m = self.k, self.m
        own = k.load(m.group, u, mask=mask, cache="fresh")
        strength = k.load(m.strength, u, mask=mask, cache="nc")
        k.store(m.group, u, to, mask=mask)
        for place, sign in ((own, -1), (to, 1)):
            k.reduce("add", m.sums, place, strength * sign, mask=mask)
            k.reduce("add", m.size, place, sign, mask=mask)

    def _move(self, count):
        """Moves the listed vertices with short rows and marks their neighbours as due."""
        k, m = self.k, self.m

        def some(i):
            valid = i < count
            u, to = k.load_vec(m.moved, 2 * i, 2, mask=valid, cache="fresh")
            self._change(u, to, valid)
            begin, end = k.row(m.indptr, u, valid)

            def mark_due(places, valid):
                heads = k.load(m.indices, places, mask=valid, cache="nc")
                k.store(m.due, heads, 1, mask=valid)

            flatten(k, begin, end - begin, (), mark_due)

        k.spread_warps(count, some)

    def _move_long(self, count):
        """The same for long rows, one CTA each."""
        k, m = self.k, self.m

        def one(i):
            u, to = k.load_vec(m.moved_long, 2 * i, 2, cache="fresh")
            self._change(u, to, k.thread == 0)
            begin, end = k.row(m.indptr, u)

            def mark_due(e):
                k.store(m.due, k.load(m.indices, e, cache="nc"), 1)

            k.for_(begin + k.thread, end, k.threads, mark_due)

        k.for_(k.cta, count, k.ctas, one)
