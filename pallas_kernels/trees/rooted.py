"""A spanning tree of the component of a root, as the parent of each vertex, in one launch.

Method: clusters of vertices that grow from many seeds together (`clusters.py`) become the vertices
of a small graph, whose tree is then rooted. The growth has few levels, whatever the diameter; it
leaves each vertex with its path to the seed of its cluster, and a tree of clusters by edges between
them (random shifts: Miller, Peng, Xu, "Parallel graph decompositions using random shifts", SPAA
2013; Shun, Dhulipala, Blelloch, "A simple and practical linear-work parallel algorithm for
connectivity", SPAA 2014). The Euler tour of that tree from the root's cluster (Tarjan, Vishkin, "An
efficient parallel biconnectivity algorithm", SIAM J. Computing 14, 1985), ranked by pointer
jumping, shows in which direction each edge leads away from the root. Last, every cluster but the
root's reverses its path from that edge to its seed, one thread a cluster: it is no longer than
there were levels.

Traffic: each entry is read once, with one gather of a cluster; 8 bytes of the queue, 16 of results
and marks a vertex and an atomic for each claim; some 60 bytes a cluster. A grid barrier a level,
and five. 52 bytes a vertex of memory.

Floor (grid3000, 9M vertices, 32M entries): 164 MB of the graph, 0.05 ms; one gather an entry (117
G/s) 0.27 ms.
Measured (H100, inside jit; BFS in parentheses): grid3000 2.4 ms (13.6), grid1000 0.37 (2.8),
delaunay21 0.86 (1.5), moscow-roads 0.32 (1.1); rmat18 0.48 (0.06), so BFS serves dense graphs.
grid3000 with 1,024 threads 2.6, with 256 2.8; two entries in flight 2.8; one vertex in 1,024 a seed
at first 3.0, and with WIDE 256 2.5.
"""

import jax
import jax.numpy as jnp

from ..rows.flatten import piece_capacity
from ..simt.device import DEFAULT_GRID, Grid, resident_ctas
from ..simt.launch import launch
from .clusters import CLUSTERS, NONE, UNROLL, Clusters, Sizes

WIDE = 1024  # a frontier of n / WIDE vertices or more needs no further seeds
MOST = 2**28  # vertices, so that int32 can index four words a vertex
LEVELS = 49  # control word: how many there were
REACHED = -2  # the mark of a cluster in the tree of the root


def spanning_tree(
    indptr: jax.Array, indices: jax.Array, root: jax.Array, *, grid: Grid = DEFAULT_GRID
) -> tuple[jax.Array, jax.Array, tuple[jax.Array, jax.Array]]:
    """(parents int32[n], status int32, (levels, clusters)): a tree of what `root` is joined to.

    indptr int32[n + 1], indices int32[nnz]: of a graph with both directions of every edge; n from 1
    to MOST. root int32: its own parent; the parent of vertices outside of its component is -1, that
    of all if the root is no vertex. status 0: right; otherwise a grid barrier expired, or a loop
    reached its bound.
    """
    n, ctas, threads = indptr.shape[0] - 1, grid.ctas or resident_ctas(), grid.threads or 512
    wide = max(n // WIDE, ctas * threads // 4)
    c = Sizes(n, (n - 1).bit_length(), wide, piece_capacity(indices.shape[0]))

    def kernel(k, m):
        k.report(m.status, _Tree(k, m, c).run())

    made = {"cluster": n, "queue": n, "pieces": 4 * c.pieces, "seeds": n}
    made |= {"edges": 2 * n, "first": n, "following": 2 * n, "tour": 4 * n}
    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices, "root": jnp.reshape(root, 1).astype(jnp.int32)},
        {"parents": n, "status": 1} | made,
        ctas=ctas,
        threads=threads,
        name="spanning_tree",
        interpret=grid.interpret,
    )
    control = out["control"]
    return out["parents"], out["status"][0], (control[LEVELS], control[CLUSTERS])


class _Tree(Clusters):
    """The tree of one launch. m.first: of each seed its first edge, REACHED at the end."""

    def run(self):
        """Computes the tree; returns ok."""
        ok, clusters, levels = self.grow()
        self.k.store(self.m.control, LEVELS, levels, mask=self.first_thread)
        for phase in (self._list_edges, self._begin_tour, self._rank):
            ok = self._after(ok, phase, clusters)
        ok = self._after(ok, self._turn_round, clusters, levels)
        self.k.if_(ok != 0, self._leave_out)
        return ok

    def _after(self, ok, phase, *operands):
        """ok after a phase, which runs if all was well before, and a grid barrier."""
        self.k.if_(ok != 0, lambda: phase(*operands))
        return ok & self.k.grid_barrier(self.m.control)[0]

    def _directed(self, clusters, f):
        """f(e, tail, head) for the edges of clusters in both directions: 2 * seed and the next
        number."""
        k, m = self.k, self.m

        def one(i):
            seed, side = k.load(m.seeds, k.shr(i, 1), cache="fresh"), i & 1

            def some():
                edge = k.load_pair(m.edges, 2 * seed, acquire=False)
                ends = [k.where(side == j, *edge) for j in range(2)]
                f(2 * seed + side, *(k.load(m.cluster, v, cache="fresh") for v in ends))

            k.if_(k.load(m.parents, seed, cache="fresh") != seed, some)

        k.spread(2 * clusters, one)

    def _list_edges(self, clusters):
        """The edges of each cluster become a list: `first`, then `following` of each."""
        k, m = self.k, self.m

        def root(i):
            seed = k.load(m.seeds, i, cache="fresh")
            mask = k.load(m.parents, seed, cache="fresh") == seed
            k.store_pair(m.edges, 2 * seed, NONE, NONE, mask=mask)

        def edge(e, tail, head):
            del head
            k.store(m.following, e, k.atomic("exch", m.first, tail, e))

        k.spread(clusters, root)
        self._directed(clusters, edge)

    def _begin_tour(self, clusters):
        """After an edge comes the one that follows its reverse; `tour` has that and the distance.

        Behind the last edge of the root's cluster it ends.
        """
        k, m = self.k, self.m

        def edge(e, tail, head):
            del tail
            after = k.load(m.following, e ^ 1, cache="fresh")
            again = k.load(m.first, head, cache="fresh")
            after = k.where((after == NONE) & (head != self.root), again, after)
            k.store_pair(m.tour, 2 * e, after, 1)

        self._directed(clusters, edge)

    def _rank(self, clusters):
        """Pointer jumping to the end of the tour; a tour of another component has none.

        A pair is always an edge and its distance, whenever it is read, so no barrier is needed. A
        distance grows in each step, and is less than 2 * clusters in a tour that ends.
        """
        k, m, most = self.k, self.m, 2 * clusters

        def edge(e, tail, head):
            del tail, head

            def jump(after, far):
                after, more = k.load_pair(m.tour, 2 * after, acquire=False)
                far = k.minimum(far + more, most)
                k.store_pair(m.tour, 2 * e, after, far)
                return after, far

            start = k.load_pair(m.tour, 2 * e, acquire=False)
            k.while_(lambda after, far: (after != NONE) & (far < most), jump, *start)

        self._directed(clusters, edge)

    def _turn_round(self, clusters, levels):
        """Of each edge the direction that comes first leads away from the root: there, the cluster
        at the head gets the tail as its parent. A path has at most a vertex a level.
        """
        k, m = self.k, self.m

        def one(i):
            seed = k.load(m.seeds, i, cache="fresh")
            edge = k.load_pair(m.edges, 2 * seed, acquire=False)
            there = edge[0] != NONE
            tours = [k.load_pair(m.tour, 4 * seed + 2 * j, there, acquire=False) for j in range(2)]
            (after, far), (_, back) = tours
            away = far > back
            parent, child = k.where(away, edge[0], edge[1]), k.where(away, edge[1], edge[0])

            def turn():
                seed = k.load(m.cluster, child, cache="fresh")
                k.store(m.first, seed, REACHED)

                def step(v, parent, left):
                    up = k.where(v == seed, NONE, k.load(m.parents, v, cache="fresh"))
                    k.store(m.parents, v, parent)
                    return up, v, left - 1

                going = lambda v, _, left: (v != NONE) & (left > 0)  # noqa: E731
                v, *_ = k.while_(going, step, child, parent, levels + 1)
                k.give_up(m.control, v != NONE)

            k.if_(there & (after == NONE), turn)

        k.spread(clusters, one)
        mine = self.first_thread & k.below(self.root, self.c.n)
        k.store(m.parents, self.root, self.root, mask=mine)
        k.store(m.first, self.root, REACHED, mask=mine)

    def _leave_out(self):
        """Vertices in other components get no parent."""
        k, m, n = self.k, self.m, self.c.n
        part = -(-n // UNROLL)

        def some(i):
            each = [i + j * part for j in range(UNROLL)]
            valid = [v < n for v in each]
            seeds = k.loads(m.cluster, each, valid, cache="fresh")
            marks = k.loads(m.first, seeds, valid, other=REACHED, cache="fresh")
            for v, mark in zip(each, marks, strict=True):
                k.store(m.parents, v, -1, mask=mark != REACHED)

        k.spread(part, some)
