"""A spanning tree of the component of a root, as the parent of each vertex, in one launch.

Method: clusters of vertices that grow from many seeds (`clusters.py`) become the vertices of a
small graph, whose tree is then rooted. The growth leaves each vertex with its path to the seed of
its cluster, and a tree of clusters by edges between them (random shifts: Miller, Peng, Xu,
"Parallel graph decompositions using random shifts", SPAA 2013; Shun, Dhulipala, Blelloch, "A simple
and practical linear-work parallel algorithm for connectivity", SPAA 2014). The Euler tour of that
tree from the root's cluster (Tarjan, Vishkin, "An efficient parallel biconnectivity algorithm",
SIAM J. Computing 14, 1985), ranked by pointer jumping, shows in which direction each edge leads
away from the root. Last, every cluster but the root's reverses its path from that edge to its seed,
one thread a cluster: it is no longer than a cluster has levels.

Traffic: each entry is read once, with one gather of a cluster; 16 bytes of results and marks a
vertex and an atomic for each claim; some 60 bytes a cluster. Seven grid barriers. 52 bytes a vertex
of memory.

Floor (grid3000, 9M vertices, 32M entries): 164 MB of the graph, 0.05 ms; one gather an entry (117
G/s) 0.27 ms.
Measured (H100, the kernel alone, ms; BFS inside jit in parentheses): grid3000 1.32 (11.5 to 13.6),
delaunay21 0.41 (1.5). rmat18 0.71 (0.06), so BFS serves dense graphs.
"""

import jax
import jax.numpy as jnp

from ..rows.flatten import piece_capacity
from ..simt.device import extent
from ..simt.launch import launch
from .clusters import CLUSTERS, NONE, UNROLL, Clusters, Sizes, shared_words

MOST = 2**28  # vertices, so that int32 can index four words a vertex
REACHED = -2  # the mark of a cluster in the tree of the root


def spanning_tree(
    indptr: jax.Array, indices: jax.Array, root: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(parents int32[n], status int32, clusters int32): a tree of what `root` is joined to.

    The graph has both directions of every edge; n from 1 to MOST. root int32: its own parent; the
    parent of vertices outside of its component is -1, that of all if the root is no vertex. status
    is also 1 where a loop reached its bound.
    """
    n, form = indptr.shape[0] - 1, extent(threads=512)
    c = Sizes(n, piece_capacity(indices.shape[0]))
    made = {"tree": 2 * n, "pieces": 4 * c.pieces, "seeds": n}
    made |= {"edges": 2 * n, "first": n, "following": 2 * n, "tour": 4 * n}
    out = launch(
        lambda k, m: _Tree(k, m, c).run(),
        {"indptr": indptr, "indices": indices, "root": jnp.reshape(root, 1).astype(jnp.int32)},
        {"parents": n, "status": 1} | made,
        **form,
        shared_words=shared_words(form["threads"]),
        name="spanning_tree",
    )
    return out["parents"], out["status"][0], out["control"][CLUSTERS]


class _Tree(Clusters):
    """The tree of one launch. m.first: of each seed its first edge, REACHED at the end."""

    def run(self):
        """Computes the tree; returns ok."""
        ok, clusters = self.grow()
        for phase in (self._list_edges, self._begin_tour, self._rank, self._turn_round):
            self.k.if_(ok != 0, lambda phase=phase: phase(clusters))
            ok = ok & self.k.grid_barrier(self.m.control)[0]
        self.k.if_(ok != 0, self._write)
        return ok

    def _directed(self, clusters, f):
        """f(e, tail, head) for the edges of clusters in both directions: 2 * seed and the next
        number."""
        k, m = self.k, self.m

        def one(i):
            seed, side = k.load(m.seeds, k.shr(i, 1), cache="fresh"), i & 1

            def some():
                edge = k.load_pair(m.edges, 2 * seed, acquire=False)
                ends = [k.where(side == j, *edge) for j in range(2)]
                f(2 * seed + side, *(k.load(m.tree, 2 * v, cache="fresh") for v in ends))

            k.if_(k.load(m.tree, 2 * seed + 1, cache="fresh") != seed, some)

        k.spread(2 * clusters, one)

    def _list_edges(self, clusters):
        """The edges of each cluster become a list: `first`, then `following` of each."""
        k, m = self.k, self.m

        def root(i):
            seed = k.load(m.seeds, i, cache="fresh")
            mask = k.load(m.tree, 2 * seed + 1, cache="fresh") == seed
            k.store_pair(m.edges, 2 * seed, NONE, NONE, mask=mask)

        def edge(e, tail, head):
            k.store(m.following, e, k.atomic("exch", m.first, tail, e))

        k.spread(clusters, root)
        self._directed(clusters, edge)

    def _begin_tour(self, clusters):
        """After an edge comes the one that follows its reverse; `tour` has that and the distance.

        Behind the last edge of the root's cluster it ends.
        """
        k, m = self.k, self.m

        def edge(e, tail, head):
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

            def jump(after, far):
                after, more = k.load_pair(m.tour, 2 * after, acquire=False)
                far = k.minimum(far + more, most)
                k.store_pair(m.tour, 2 * e, after, far)
                return after, far

            start = k.load_pair(m.tour, 2 * e, acquire=False)
            k.while_(lambda after, far: (after != NONE) & (far < most), jump, *start)

        self._directed(clusters, edge)

    def _turn_round(self, clusters):
        """Of each edge the direction that comes first leads away from the root: there, the cluster
        at the head gets the tail as its parent. A path has `depth` vertices before its seed, or
        fewer.
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
                seed = k.load(m.tree, 2 * child, cache="fresh")
                k.store(m.first, seed, REACHED)

                def step(v, parent, left):
                    up = k.where(v == seed, NONE, k.load(m.tree, 2 * v + 1, cache="fresh"))
                    k.store(m.tree, 2 * v + 1, parent)
                    return up, v, left - 1

                going = lambda v, _, left: (v != NONE) & (left > 0)  # noqa: E731
                v, *_ = k.while_(going, step, child, parent, self.c.depth + 1)
                k.give_up(m.control, v != NONE)

            k.if_(there & (after == NONE), turn)

        k.spread(clusters, one)
        mine = self.first_thread & k.below(self.root, self.c.n)
        k.store(m.tree, 2 * self.root + 1, self.root, mask=mine)
        k.store(m.first, self.root, REACHED, mask=mine)

    def _write(self):
        """The parents; vertices in other components get none."""
        k, m, n = self.k, self.m, self.c.n
        part = -(-n // UNROLL)

        def some(i):
            v = k.several(UNROLL, lambda j: i + j * part)
            seed, parent = k.load_pair(m.tree, 2 * v, v < n, acquire=False)
            mark = k.load(m.first, seed, mask=v < n, cache="fresh")
            k.store(m.parents, v, k.where(mark == REACHED, parent, NONE), mask=v < n)

        k.spread(part, some)
