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
but grid1000, of 3.6 edges a vertex, 529, 123. Without compression before it: moscow-roads 128.
Without a barrier at the end and a pass for long rows where there are none: moscow-roads 76 (103 in
that program with both). Without first neighbours in the pass, which are parents: 73 (74 with them),
usroads-48 37 (39); searches from vertices with a smaller neighbour alone: 74, 38; later: 86, 44.
"""

import functools

import jax
import jax.numpy as jnp

from ..rows.flatten import flatten
from ..simt.device import DEFAULT_GRID, Grid
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
    indptr: jax.Array,
    indices: jax.Array,
    *,
    symmetric: bool = True,
    thin: bool | None = None,
    grid: Grid = DEFAULT_GRID,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(labels int32[n], status int32, count int32): the least vertex of the weakly connected
    component, and how many components there are.

    indptr int32[n + 1], indices int32[nnz]: edges v -> indices[i], indptr[v] <= i < indptr[v + 1],
    in any order. symmetric: the graph has every edge in both directions, so most of them can
    be skipped; not checked. thin: one pass over all edges; None: by their number. status 0: right;
    otherwise a grid barrier expired.
    """
    n = indptr.shape[0] - 1
    if n == 0:
        return jnp.zeros(0, jnp.int32), jnp.int32(0), jnp.int32(0)

    if thin is None:
        thin = indices.shape[0] < THIN * n
    steps = _all_edges if thin else _sampled

    def kernel(k, m):
        forest = Forest(k, m, n, n, 0)
        steps(k, forest, symmetric)
        (ok,) = k.grid_barrier(m.control)
        forest.finish()
        k.report(m.status, ok)

    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices},
        {"labels": n, "status": 1},
        **grid.form(),
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
    many = len(vertices)
    starts = k.loads(parent, vertices, masks, other=-1, cache="fresh")
    above = k.loads(parent, starts, masks, other=-1, cache="fresh")

    def below(*state):
        return [label != up for label, up in zip(state[:many], state[many:], strict=True)]

    def jump(*state):
        above, moving = state[many:], below(*state)
        for v, up, t in zip(vertices, above, moving, strict=True):
            k.store(parent, v, up, mask=t)
        found = k.loads(parent, above, moving, other=-1, cache="fresh")
        each = zip(moving, found, above, strict=True)
        return *above, *(k.where(t, new, up) for t, new, up in each)

    return k.while_(lambda *state: k.union(below(*state)), jump, *starts, *above)[:many]


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
        """carry = f(i, valid, *carry) for i = 0 .. size - 1: lists of UNROLL numbers at a time, to
        be loaded for together, and which of them are below `size`."""
        k = self.k
        step = k.ctas * k.threads

        def some(first, *carry):
            places = [first + j * step for j in range(UNROLL)]
            return f(places, [place < size for place in places], *carry)

        first = (k.warp * k.ctas + k.cta) * 32 + k.lane  # rows of a CTA as in `spread_warps`
        return k.for_(first, size, UNROLL * step, some, *carry)

    def plant(self):
        """The parent of every vertex becomes its first neighbour, if that is smaller."""
        k = self.k

        def some(rows, valid):
            near = self._neighbours(rows, valid, 0)
            for i, w, t in zip(rows, near, valid, strict=True):
                v = self.first + i
                k.store(self.labels, v, k.where(w < 0, v, k.minimum(w, v)), mask=t)

        self._several(self.rows, some)

    def hook(self, r):
        """Links every vertex of the rows to its neighbour number r."""

        def some(rows, valid):
            near, each = self._neighbours(rows, valid, r), [self.first + i for i in rows]
            # a first neighbour below v is its parent already
            pairs = zip(each, near, strict=True)
            self.link(each, near, [w > v if r == 0 else w >= 0 for v, w in pairs])

        self._several(self.rows, some)

    def _neighbours(self, rows, valid, r):
        """The r-th neighbour of each row, -1 if it has fewer."""
        k, m = self.k, self.m
        ends = [k.row(m.indptr, i, t) for i, t in zip(rows, valid, strict=True)]
        starts = [begin + r for begin, _ in ends]
        there = [start < end for start, (_, end) in zip(starts, ends, strict=True)]
        return k.loads(m.indices, starts, there, other=-1, cache="nc")

    def link(self, tails, heads, masks):
        """Joins the trees of the ends of edges: the larger root becomes a child. Labels never
        grow."""
        k, labels = self.k, self.labels
        ends = [k.loads(labels, end, masks, cache="fresh") for end in (tails, heads)]
        self._join_trees(*ends)

    def _join_trees(self, *ends):
        """Joins the trees of pairs of labels; the lower of the two at the end of each."""
        k, labels, many = self.k, self.labels, len(ends[0])

        def apart(*ends):
            return [a != b for a, b in zip(ends[:many], ends[many:], strict=True)]

        def climb(*ends):
            pairs = list(zip(ends[:many], ends[many:], strict=True))
            highs, lows = ([f(a, b) for a, b in pairs] for f in (k.maximum, k.minimum))
            above = k.loads(labels, highs, apart(*ends), other=-1, cache="fresh")
            each = list(zip(highs, lows, above, strict=True))
            found = [k.atomic_cas(labels, h, h, low, mask=h == up) for h, low, up in each]
            next_ = []
            for (high, low, up), before in zip(each, found, strict=True):
                up = k.where(up == high, before, up)
                # linked (the word still held `high`) or of one tree, or continue from its parent
                next_.append(k.where((up == high) | (up < 0), low, up))
            return *next_, *lows

        return k.while_(lambda *ends: k.union(apart(*ends)), climb, *ends[0], *ends[1])[many:]

    def short_rows(self, symmetric):
        """Links every vertex to its first FEW neighbours, of a symmetric graph to smaller ones.

        There `plant` has linked the first one, if it is smaller."""
        k, m = self.k, self.m
        start = 1 if symmetric else 0

        def some(rows, valid):
            each = [self.first + i for i in rows]
            ends = [k.row(m.indptr, i, t) for i, t in zip(rows, valid, strict=True)]
            begins = [begin for begin, _ in ends]
            stops = [k.minimum(end, begin + FEW) for begin, end in ends]
            rows_in = zip(begins, stops, valid, strict=True)
            sizes = [k.where(t, stop - begin, 0) for begin, stop, t in rows_in]
            longest = functools.reduce(k.maximum, sizes)
            # the same CTA gets these rows in `rest`
            cut = [t & (b + FEW < e) for t, b, (_, e) in zip(valid, begins, ends, strict=True)]
            k.store(self.longer, 0, 1, mask=k.union(cut))

            def neighbour(r, *mine):
                there = [b + r < s for b, s in zip(begins, stops, strict=True)]
                there = [t & a for t, a in zip(there, valid, strict=True)]
                near = k.loads(m.indices, [b + r for b in begins], there, other=0, cache="nc")
                if symmetric:
                    there = [t & (w < v) for t, w, v in zip(there, near, each, strict=True)]
                found = self._find(near, there)
                other = [k.where(t, f, a) for t, f, a in zip(there, found, mine, strict=True)]
                return self._join_trees(list(mine), other)

            k.for_(start, longest, 1, neighbour, *self._find(each, valid))

        self._several(self.rows, some)

    def _find(self, vertices, masks):
        """The roots of vertices. Each step gives the one before its grandparent as parent: only
        roots are linked, and what has a parent never becomes a root."""
        k, labels, many = self.k, self.labels, len(masks)
        above = k.loads(labels, vertices, masks, other=0, cache="fresh")
        higher = k.loads(labels, above, masks, other=0, cache="fresh")

        def below(state):
            return [a != b for a, b in zip(state[many : 2 * many], state[2 * many :], strict=True)]

        def step(*state):
            moving = below(state)
            low, middle, high = (state[i * many : (i + 1) * many] for i in range(3))
            for v, up, t in zip(low, high, moving, strict=True):
                k.store(labels, v, up, mask=t)
            found = k.loads(labels, high, moving, other=0, cache="fresh")
            low = [k.where(t, b, a) for t, a, b in zip(moving, low, middle, strict=True)]
            found = [k.where(t, f, b) for t, f, b in zip(moving, found, high, strict=True)]
            return *low, *high, *found

        state = [*vertices, *above, *higher]
        return k.while_(lambda *state: k.union(below(state)), step, *state)[many : 2 * many]

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
            for v, root, t in zip(vertices, found, valid, strict=True):
                many = many + k.cast(t & (v == root), "i32")
            return many

        (many,) = self._several(self.n, some, 0)
        k.add_sum(self.longer, 1, many)
        k.sync()
        k.reduce("add", self.control, COUNT, k.load(self.longer, 1), mask=k.thread == 0)

    def sample(self):
        """CTA 0 writes the most frequent root of 32 vertices to control word LARGEST, as ~root."""
        k = self.k

        def some():
            v = k.lane * max(self.n // 32, 1) % self.n
            (label,) = roots(k, self.labels, [v], [k.lane >= 0])
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

            def edge(places, payloads, valid):
                near = k.loads(m.indices, places, valid, cache="nc")
                self.link([self.first + i for (i,) in payloads], near, valid)

            flatten(k, start, size, (i,), edge, unroll=1)

        k.spread_warps(self.rows, vertices)
        k.sync()

        def row(j):
            i = k.load(long_rows, j)
            start = k.load(m.indptr, i, cache="nc") + taken
            end = k.load(m.indptr, i + 1, cache="nc")
            always = k.const(True, "i1")

            def edge(e):
                self.link([self.first + i], [k.load(m.indices, e, cache="nc")], [always])

            k.for_(start + k.thread, end, k.threads, edge)

        k.for_(0, k.minimum(k.load(count, 0), LISTED), 1, row)
