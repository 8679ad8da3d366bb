"""Weakly connected components in one launch: hooking and compression with sampled neighbours.

Method: Afforest (Sutton, Ben-Nun, Barak 2018). labels is a forest whose parents have smaller
numbers than their children, so a root is the least vertex of its tree. Every vertex starts as a
child of its first neighbour (if that is smaller). A few sampled rounds link it to the next ones;
in between, trees are compressed. A sample finds the largest tree, and only vertices outside of it
visit their other neighbours. That skips nearly all edges of a graph with a giant component. It
needs both directions of an edge: for a graph that is not symmetric, all edges are visited.

A thin graph, of fewer than THIN edges a vertex, has few edges left after samples: all that lead to
smaller vertices are linked in one pass. A search for a root then gives each vertex on its way the
parent of its parent (Jaiganesh, Burtscher, "A high-performance connected components implementation
for GPUs", HPDC 2018).

Cost: n (rounds + 1) gathers for the sampled rounds and about as many for the compressions, then
one gather an edge of the vertices outside the largest tree; 8 grid barriers. An atomic
(compare-and-swap) for each hook. Climbing ends: the larger of the two labels falls in every step.

Measured (H200): rmat18 0.128 ms in the kernel: 9.4 MB from memory, 0.07M atomics, 460 GB/s from L2,
3.5% of the issue slots; coAuthorsDBLP 0.111, luxembourg_osm 0.036. Neither bytes nor gathers bind;
barriers are 10 us of it, and climbs are chains of loads from L2, 0.2 us each. rmat21: 1.09 ms in a
program, 2.41 if every edge is visited, of which one gather an edge (117 G/s) is 0.59. In one pass,
and with samples first (H100, us): moscow-roads 87, 113; usroads-48 44, 50; luxembourg_osm 27, 32;
but grid1000, of 3.6 edges a vertex, 529, 123.
"""

import functools

import jax

from ..rows.flatten import flatten
from ..simt.launch import launch

SAMPLED = 2  # neighbours of every vertex that are linked before the sample
UNROLL = 4  # vertices that a thread has in flight
LONG = 1024  # a row of so many edges or more is shared by the warps of a CTA
LISTED = 2048  # capacity of the list of long rows of a CTA
SHARED = LISTED + 8  # words of shared memory
FEW = 8  # edges of a vertex of a thin graph that one thread links
THIN = 3  # mean edges a vertex of a thin graph
LARGEST, COUNT = 40, 41  # control words: ~root of the largest tree of the sample; trees


def components(
    indptr: jax.Array, indices: jax.Array, *, symmetric: bool = True, thin: bool | None = None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(labels int32[n], status int32, count int32): the least vertex of the weakly connected
    component, and how many components there are.

    symmetric: the graph has every edge in both directions, so most of them can be skipped; not
    checked. thin: one pass over all edges; None: by their number.
    """
    n = indptr.shape[0] - 1
    if thin is None:
        thin = indices.shape[0] < THIN * n
    steps = _all_edges if thin else _sampled

    def kernel(k, m):
        forest = Forest(k, m, n, n, 0)
        steps(k, forest, symmetric)
        (ok,) = k.grid_barrier(m.control)
        forest.finish()
        return ok

    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices},
        {"labels": n, "status": 1},
        shared_words=SHARED,
        name="components",
    )
    return out["labels"], out["status"][0], out["control"][COUNT]


def _all_edges(k, forest, symmetric):
    """Links every edge in one pass: where few edges are left after samples, barriers cost more."""
    forest.plant()
    k.grid_barrier(forest.control)
    forest.compress()
    k.grid_barrier(forest.control)
    forest.short_rows(symmetric)
    k.sync()
    some = lambda: forest.rest(k.const(-1), FEW)  # noqa: E731
    k.if_(k.load(forest.longer, 0) > 0, some)


def _sampled(k, forest, symmetric):
    forest.plant()
    k.grid_barrier(forest.control)
    forest.compress()
    k.grid_barrier(forest.control)
    for r in range(SAMPLED):
        forest.hook(r)
        k.grid_barrier(forest.control)
        if r == SAMPLED - 1:  # roots do not change until the trees are linked again
            forest.sample()
        forest.compress()
        if r < SAMPLED - 1:
            k.grid_barrier(forest.control)
    # all CTAs must skip the same tree: an edge between two skipped trees would be lost
    _, word = k.grid_barrier(forest.control, [(forest.control, LARGEST)])
    forest.rest(~word if symmetric else k.const(-1), SAMPLED)


def most_frequent(k, label):
    """The label that most lanes of a warp have."""
    votes = k.const(0)
    for d in range(32):
        votes = votes + k.cast(k.shfl(label, d) == label, "i32")
    most = k.warp_fold(k.maximum, votes)
    return k.shfl(label, k.ctz(k.ballot(votes == most)))


def roots(k, parent, vertices, masks):
    """The root of each vertex, -1 where masked off; it becomes the parent of the vertex.

    A vertex takes the parent of its parent in every step, and so halves the paths through it: a
    path of length d takes log2(d) steps. No thread may link trees meanwhile.
    """
    start = k.load(parent, vertices, mask=masks, other=-1, cache="fresh")
    above = k.load(parent, start, mask=masks, other=-1, cache="fresh")

    def jump(label, above):
        moving = label != above
        k.store(parent, vertices, above, mask=moving)
        found = k.load(parent, above, mask=moving, other=-1, cache="fresh")
        return above, k.where(moving, found, above)

    return k.while_(lambda label, above: k.union(label != above), jump, start, above)[0]


class Forest:
    """A forest over n vertices; the edges of `rows` vertices, from `first` on, link its trees.

    m has the labels, the edges of these rows and the control words.
    """

    def __init__(self, k, m, n, rows, first):
        self.k, self.m, self.n, self.rows, self.first = k, m, n, rows, first
        self.labels, self.control = m.labels, m.control
        self.long_rows, self.count, self.longer = k.shared(LISTED), k.shared(4), k.shared(4)
        for word in (self.count, self.longer):
            k.store(word, k.thread, 0, mask=k.thread < 4)

    def _several(self, size, f, *carry):
        """carry = f(i, valid, *carry) for i = 0 .. size - 1, UNROLL of them side by side; valid:
        which are below `size`."""
        k = self.k
        step = k.ctas * k.threads

        def some(first, *carry):
            places = k.several(UNROLL, lambda j: first + j * step)
            return f(places, places < size, *carry)

        first = k.warps[0] * 32 + k.lane  # rows of a CTA as in `spread_warps`
        return k.for_(first, size, UNROLL * step, some, *carry)

    def plant(self):
        """The parent of every vertex becomes its first neighbour, if that is smaller."""
        k = self.k

        def some(rows, valid):
            near, v = self._neighbours(rows, valid, 0), self.first + rows
            k.store(self.labels, v, k.where(near < 0, v, k.minimum(near, v)), mask=valid)

        self._several(self.rows, some)

    def hook(self, r):
        """Links every vertex of the rows to its neighbour number r."""

        def some(rows, valid):
            near, v = self._neighbours(rows, valid, r), self.first + rows
            # a first neighbour below v is its parent already
            self.link(v, near, near > v if r == 0 else near >= 0)

        self._several(self.rows, some)

    def _neighbours(self, rows, valid, r):
        """The r-th neighbour of each row, -1 if it has fewer."""
        k, m = self.k, self.m
        begin, end = k.row(m.indptr, rows, valid)
        at = begin + r
        return k.load(m.indices, at, mask=at < end, other=-1, cache="nc")

    def link(self, tails, heads, masks):
        """Joins the trees of the ends of edges: the larger root becomes a child. Labels never
        grow."""
        k, labels = self.k, self.labels
        self._join_trees(*(k.load(labels, v, mask=masks, cache="fresh") for v in (tails, heads)))

    def _join_trees(self, one, other):
        """Joins the trees of pairs of labels; the lower of the two at the end of each."""
        k, labels = self.k, self.labels

        def climb(a, b):
            high, low = k.maximum(a, b), k.minimum(a, b)
            above = k.load(labels, high, mask=a != b, other=-1, cache="fresh")
            before = k.atomic_cas(labels, high, high, low, mask=high == above)
            above = k.where(above == high, before, above)
            # linked (the word still held `high`) or of one tree, or continue from its parent
            return k.where((above == high) | (above < 0), low, above), low

        return k.while_(lambda a, b: k.union(a != b), climb, one, other)[1]

    def short_rows(self, symmetric):
        """Links every vertex to its first FEW neighbours, of a symmetric graph to smaller ones.

        There `plant` has linked the first one, if it is smaller."""
        k, m = self.k, self.m
        start = 1 if symmetric else 0

        def some(rows, valid):
            v, (begin, end) = self.first + rows, k.row(m.indptr, rows, valid)
            stop = k.minimum(end, begin + FEW)
            longest = functools.reduce(k.maximum, k.where(valid, stop - begin, 0))
            # the same CTA gets these rows in `rest`
            k.store(self.longer, 0, 1, mask=k.union(valid & (begin + FEW < end)))

            def neighbour(r, mine):
                there = (begin + r < stop) & valid
                near = k.load(m.indices, begin + r, mask=there, other=0, cache="nc")
                there = there & (near < v) if symmetric else there
                other = k.where(there, self._find(near, there), mine)
                return (self._join_trees(mine, other),)

            k.for_(start, longest, 1, neighbour, self._find(v, valid))

        self._several(self.rows, some)

    def _find(self, vertices, masks):
        """The roots of vertices. Each step gives the one before its grandparent as parent: only
        roots are linked, and what has a parent never becomes a root."""
        k, labels = self.k, self.labels
        above = k.load(labels, vertices, mask=masks, other=0, cache="fresh")
        higher = k.load(labels, above, mask=masks, other=0, cache="fresh")

        def step(low, middle, high):
            moving = middle != high
            k.store(labels, low, high, mask=moving)
            found = k.load(labels, high, mask=moving, other=0, cache="fresh")
            return k.where(moving, middle, low), high, k.where(moving, found, high)

        going = lambda low, middle, high: k.union(middle != high)  # noqa: E731
        return k.while_(going, step, vertices, above, higher)[1]

    def compress(self):
        """Every label becomes its root."""

        def some(vertices, valid):
            roots(self.k, self.labels, vertices, valid)

        self._several(self.n, some)

    def finish(self):
        """Every label becomes its root; control word COUNT becomes the number of roots."""
        k = self.k

        def some(vertices, valid, many):
            found = roots(k, self.labels, vertices, valid)
            return k.total(k.cast(valid & (vertices == found), "i32"), many)

        (many,) = self._several(self.n, some, 0)
        k.add_sum(self.longer, 1, many)
        k.sync()
        k.reduce("add", self.control, COUNT, k.load(self.longer, 1), mask=k.thread == 0)

    def sample(self):
        """CTA 0 writes the most frequent root of 32 vertices to control word LARGEST, as ~root."""
        k = self.k

        def some():
            v = k.lane * max(self.n // 32, 1) % self.n
            label = roots(k, self.labels, v, k.lane >= 0)
            k.store(self.control, LARGEST, ~most_frequent(k, label), mask=k.lane == 0)

        k.if_((k.cta == 0) & (k.warp == 0), some)

    def rest(self, skip, taken):
        """Links the neighbours after the first `taken` of all rows outside the tree `skip`."""
        k, m, count, long_rows = self.k, self.m, self.count, self.long_rows

        def vertices(i):
            valid = i < self.rows
            label = k.load(self.labels, self.first + i, mask=valid, other=-1, cache="fresh")
            out = valid & (label != skip)
            start = k.load(m.indptr, i, mask=out, cache="nc") + taken
            end = k.load(m.indptr, i + 1, mask=out, cache="nc")
            size = k.where(out, k.maximum(end - start, 0), 0)
            place = k.atomic("add", count, 0, 1, mask=size >= LONG)
            listed = (size >= LONG) & (place < LISTED)
            k.store(long_rows, place, i, mask=listed)
            size = k.where(listed, 0, size)

            def edge(place, valid, i):
                self.link(self.first + i, k.load(m.indices, place, mask=valid, cache="nc"), valid)

            flatten(k, start, size, (i,), edge, unroll=1)

        k.spread_warps(self.rows, vertices)
        k.sync()

        def row(j):
            i = k.load(long_rows, j)
            start = k.load(m.indptr, i, cache="nc") + taken
            end = k.load(m.indptr, i + 1, cache="nc")
            always = k.const(True, "i1")

            def edge(e):
                self.link(self.first + i, k.load(m.indices, e, cache="nc"), always)

            k.for_(start + k.thread, end, k.threads, edge)

        k.for_(0, k.minimum(k.load(count, 0), LISTED), 1, row)
