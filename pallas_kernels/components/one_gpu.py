"""Weakly connected components in one launch: hooking and compression with sampled neighbours.

Method: Afforest (Sutton, Ben-Nun, Barak 2018). labels is a forest whose parents have smaller
numbers than their children, so a root is the least vertex of its tree. Every vertex starts as a
child of its first neighbour (if that is smaller). A few sampled rounds link it to the next ones;
in between, trees are compressed. A sample finds the largest tree, and only vertices outside of it
visit their other neighbours. That skips nearly all edges of a graph with a giant component. It
needs both directions of an edge: for a graph that is not symmetric, all edges are visited.

Cost: n (rounds + 1) gathers for the sampled rounds and about as many for the compressions, then
one gather an edge of the vertices outside the largest tree; 9 grid barriers. An atomic
(compare-and-swap) for each hook. Climbing ends: the larger of the two labels falls in every step.

Measured (H200): rmat18 0.128 ms in the kernel: 9.4 MB from memory, 0.07M atomics, 460 GB/s from L2,
3.5% of the issue slots; coAuthorsDBLP 0.111, luxembourg_osm 0.036. Neither bytes nor gathers bind;
barriers are 10 us of it, and climbs are chains of loads from L2, 0.2 us each. rmat21: 1.09 ms in a
program, 2.41 if every edge is visited, of which one gather an edge (117 G/s) is 0.59.
"""

import jax
import jax.numpy as jnp

from ..rows.flatten import flatten
from ..simt.device import resident_ctas
from ..simt.launch import launch

SAMPLED = 2  # neighbours of every vertex that are linked before the sample
LONG = 1024  # a row of so many edges or more is shared by the warps of a CTA
LISTED = 2048  # capacity of the list of long rows of a CTA
SHARED = LISTED + 4  # words of shared memory
LARGEST = 40  # control word: ~root of the largest tree of the sample


def components(
    indptr: jax.Array,
    indices: jax.Array,
    *,
    symmetric: bool = True,
    ctas: int | None = None,
    threads: int = 1024,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """(labels int32[n], status int32): the least vertex of the weakly connected component.

    indptr int32[n + 1], indices int32[nnz]: edges v -> indices[i], indptr[v] <= i < indptr[v + 1],
    in any order. symmetric: the graph has every edge in both directions, so most of them can
    be skipped; not checked. status 0: right; otherwise a grid barrier expired.
    """
    n = indptr.shape[0] - 1
    if n == 0:
        return jnp.zeros(0, jnp.int32), jnp.int32(0)

    def kernel(k, m):
        ok = _all(k, Forest(k, m, n, n, 0), symmetric)
        k.report(m.status, ok)

    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices},
        {"labels": n, "status": 1},
        ctas=ctas or resident_ctas(),
        threads=threads,
        shared_words=SHARED,
        name="components",
        interpret=interpret,
    )
    return out["labels"], out["status"][0]


def _all(k, forest, symmetric):
    forest.plant()
    k.grid_barrier(forest.control)
    forest.compress()
    k.grid_barrier(forest.control)
    for r in range(SAMPLED):
        forest.hook(r)
        k.grid_barrier(forest.control)
        forest.compress()
        k.grid_barrier(forest.control)
    skip = k.const(-1)
    if symmetric:
        # all CTAs must skip the same tree: an edge between two skipped trees would be lost
        skip = forest.largest()
    forest.rest(skip)
    k.grid_barrier(forest.control)
    forest.compress()
    (ok,) = k.grid_barrier(forest.control)
    return ok


class Forest:
    """A forest over n vertices; the edges of `rows` vertices, from `first` on, link its trees.

    m has the labels, the edges of these rows and the control words.
    """

    def __init__(self, k, m, n, rows, first):
        self.k, self.m, self.n, self.rows, self.first = k, m, n, rows, first
        self.labels, self.control = m.labels, m.control
        self.long_rows, self.count = k.shared(LISTED), k.shared(4)
        k.store(self.count, k.thread, 0, mask=k.thread < 4)

    def plant(self):
        """The parent of every vertex becomes its first neighbour, if that is smaller."""
        k = self.k

        def one(i):
            v, near = self.first + i, self._neighbour(i, 0)
            k.store(self.labels, v, k.where(near < 0, v, k.minimum(near, v)))

        k.spread(self.rows, one)

    def hook(self, r):
        """Links every vertex of the rows to its neighbour number r."""

        def one(i):
            v, near = self.first + i, self._neighbour(i, r)
            # a first neighbour below v is its parent already
            self.link(v, near, near > v if r == 0 else near >= 0)

        self.k.spread(self.rows, one)

    def _neighbour(self, i, r):
        """The r-th neighbour of row i, -1 if it has fewer."""
        k, m = self.k, self.m
        start = k.load(m.indptr, i, cache="nc") + r
        valid = start < k.load(m.indptr, i + 1, cache="nc")
        return k.load(m.indices, start, mask=valid, other=-1, cache="nc")

    def link(self, u, v, mask):
        """Joins the trees of u and v: the larger root becomes a child. Labels never grow."""
        k, labels = self.k, self.labels
        a = k.load(labels, u, mask=mask, cache="fresh")
        b = k.load(labels, v, mask=mask, cache="fresh")

        def climb(a, b):
            high, low = k.maximum(a, b), k.minimum(a, b)
            above = k.load(labels, high, cache="fresh")
            root = above == high
            above = k.where(root, k.atomic_cas(labels, high, high, low, mask=root), above)
            # linked (the word still held `high`), or continue from its parent
            return k.where(above == high, low, above), low

        k.while_(lambda a, b: a != b, climb, a, b)

    def compress(self):
        """Every label becomes its root."""
        k, labels = self.k, self.labels

        def one(v):
            start = k.load(labels, v, cache="fresh")
            label, _ = k.while_(
                lambda label, above: label != above,
                lambda label, above: (above, k.load(labels, above, cache="fresh")),
                start,
                k.load(labels, start, cache="fresh"),
            )
            k.store(labels, v, label, mask=label != start)

        k.spread(self.n, one)

    def largest(self):
        """The most frequent root of 32 sampled vertices, the same in all CTAs: CTA 0 writes it to
        control word LARGEST, a grid barrier follows."""
        k = self.k

        def sample():
            label = k.load(self.labels, k.lane * max(self.n // 32, 1) % self.n, cache="fresh")
            votes = k.const(0)
            for d in range(32):
                votes = votes + k.cast(k.shfl(label, d) == label, "i32")
            most = k.warp_fold(k.maximum, votes)
            winner = k.shfl(label, k.ctz(k.ballot(votes == most)))
            k.store(self.control, LARGEST, ~winner, mask=k.lane == 0)

        k.if_((k.cta == 0) & (k.warp == 0), sample)
        return ~k.grid_barrier(self.control, [(self.control, LARGEST)])[1]

    def rest(self, skip):
        """Links the neighbours after the sampled ones of all rows outside the tree `skip`."""
        k, m, count, long_rows = self.k, self.m, self.count, self.long_rows

        def vertices(i):
            valid = i < self.rows
            label = k.load(self.labels, self.first + i, mask=valid, other=-1, cache="fresh")
            out = valid & (label != skip)
            start = k.load(m.indptr, i, mask=out, cache="nc") + SAMPLED
            end = k.load(m.indptr, i + 1, mask=out, cache="nc")
            size = k.where(out, k.maximum(end - start, 0), 0)
            place = k.atomic("add", count, 0, 1, mask=size >= LONG)
            listed = (size >= LONG) & (place < LISTED)
            k.store(long_rows, place, i, mask=listed)
            size = k.where(listed, 0, size)

            def edge(places, payloads, valid):
                (at,), ((i,),), (valid,) = places, payloads, valid
                near = k.load(m.indices, at, mask=valid, cache="nc")
                self.link(self.first + i, near, valid)

            flatten(k, start, size, (i,), edge, unroll=1)

        k.spread_warps(self.rows, vertices)
        k.sync()

        def row(j):
            i = k.load(long_rows, j)
            start = k.load(m.indptr, i, cache="nc") + SAMPLED
            end = k.load(m.indptr, i + 1, cache="nc")
            always = k.const(True, "i1")

            def edge(e):
                self.link(self.first + i, k.load(m.indices, e, cache="nc"), always)

            k.for_(start + k.thread, end, k.threads, edge)

        k.for_(0, k.minimum(k.load(count, 0), LISTED), 1, row)
