"""Weakly connected components in one launch: hooking and compression with sampled neighbours.

Method: Afforest (Sutton, Ben-Nun, Barak 2018). labels is a forest whose parents have smaller
numbers than their children, so a root is the least vertex of its tree. Every vertex starts below
its first neighbour; a few sampled rounds hook it to the next ones, trees are compressed in between;
a sample finds the largest tree, and only vertices outside of it look at their other neighbours.
That skips nearly all edges of a graph with a giant component. It needs both directions of an edge:
a graph that is not symmetric has all its edges looked at.

Cost: n (rounds + 1) gathers for the sampled rounds and about as many for the compressions, then
one gather an edge of the vertices outside the largest tree; 9 grid barriers. An atomic
(compare-and-swap) for each hook. Climbing ends: the larger of the two labels falls in every step.

Measured (H200): rmat18 0.128 ms in the kernel: 9.4 MB from memory, 0.07M atomics, 460 GB/s from L2,
3.5% of the issue slots; coAuthorsDBLP 0.111, luxembourg_osm 0.036. Neither bytes nor gathers bind;
barriers are 10 us of it, and climbs are chains of loads from L2, 0.2 us each. rmat21: 1.09 ms in a
program, 2.41 where every edge is looked at, of which one gather an edge (117 G/s) is 0.59.
"""

import types

import jax
import jax.numpy as jnp

from .rows.flatten import flatten
from .simt.device import resident_ctas
from .simt.launch import launch

SAMPLED = 2  # neighbours of every vertex that are hooked before the sample
LONG = 1024  # edges from which a row is shared by the warps of a CTA
LISTED = 2048  # long rows a CTA has room for
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
    in any order. symmetric: every edge is there in both directions, which lets most of them be
    skipped; not checked. status 0: right; otherwise a grid barrier expired.
    """
    n = indptr.shape[0] - 1
    if n == 0:
        return jnp.zeros(0, jnp.int32), jnp.int32(0)
    c = types.SimpleNamespace(n=n, symmetric=symmetric)

    def kernel(k, m):
        ok = _body(k, c, m, m.control)
        k.store(m.status, 0, 1 - ok, mask=(k.cta == 0) & (k.thread == 0))

    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices},
        {"labels": n, "status": 1},
        ctas=ctas or resident_ctas(),
        threads=threads,
        shared_words=LISTED + 4,
        name="components",
        interpret=interpret,
    )
    return out["labels"], out["status"][0]


def _body(k, c, graph, control):
    long_rows, count = k.shared(LISTED), k.shared(4)
    k.store(count, k.thread, 0, mask=k.thread < 4)

    def first(v):
        near = _neighbour(k, graph, v, 0)
        k.store(graph.labels, v, k.where(near < 0, v, k.minimum(near, v)))

    k.spread(c.n, first)
    (ok,) = k.grid_barrier(control)
    _compress(k, c, graph)
    k.grid_barrier(control)
    for r in range(SAMPLED):

        def next_one(v, r=r):
            near = _neighbour(k, graph, v, r)
            # a first neighbour below v is its parent already
            _link(k, graph.labels, v, near, near > v if r == 0 else near >= 0)

        k.spread(c.n, next_one)
        k.grid_barrier(control)
        _compress(k, c, graph)
        k.grid_barrier(control)
    skip = k.const(-1)
    if c.symmetric:
        k.if_((k.cta == 0) & (k.warp == 0), lambda: _sample(k, c, graph, control))
        # all CTAs must skip the same tree: an edge between two skipped trees would be lost
        _, skip = k.grid_barrier(control, [(control, LARGEST)])
        skip = ~skip
    _rest(k, c, graph, skip, long_rows, count)
    k.grid_barrier(control)
    _compress(k, c, graph)
    (ok,) = k.grid_barrier(control)
    return ok


def _neighbour(k, graph, v, r):
    """The r-th neighbour of v, -1 if it has fewer."""
    start = k.load(graph.indptr, v, cache="nc") + r
    there = start < k.load(graph.indptr, v + 1, cache="nc")
    return k.load(graph.indices, start, mask=there, other=-1, cache="nc")


def _link(k, labels, u, v, mask):
    """Joins the trees of u and v, by the larger root; a label on the way to it never grows."""
    a = k.load(labels, u, mask=mask, cache="fresh")
    b = k.load(labels, v, mask=mask, cache="fresh")

    def climb(a, b):
        high, low = k.maximum(a, b), k.minimum(a, b)
        above = k.load(labels, high, cache="fresh")
        root = above == high
        above = k.where(root, k.atomic_cas(labels, high, high, low, mask=root), above)
        # hooked (the word still held `high`), or a parent further down
        return k.where(above == high, low, above), low

    k.while_(lambda a, b: a != b, climb, a, b)


def _compress(k, c, graph):
    """Every label becomes its root."""

    def one(v):
        start = k.load(graph.labels, v, cache="fresh")
        label, _ = k.while_(
            lambda label, above: label != above,
            lambda label, above: (above, k.load(graph.labels, above, cache="fresh")),
            start,
            k.load(graph.labels, start, cache="fresh"),
        )
        k.store(graph.labels, v, label, mask=label != start)

    k.spread(c.n, one)


def _sample(k, c, graph, control):
    """The commonest of 32 labels, one a lane."""
    label = k.load(graph.labels, k.lane * max(c.n // 32, 1) % c.n, cache="fresh")
    votes = k.const(0)
    for d in range(32):
        votes = votes + k.cast(k.shfl(label, d) == label, "i32")
    most = k.warp_fold(k.maximum, votes)
    winner = k.shfl(label, k.ctz(k.ballot(votes == most)))
    k.store(control, LARGEST, ~winner, mask=k.lane == 0)


def _rest(k, c, graph, skip, long_rows, count):
    """Links the neighbours after the sampled ones of all vertices outside the tree `skip`."""

    def vertices(v):
        there = v < c.n
        out = there & (k.load(graph.labels, v, mask=there, other=-1, cache="fresh") != skip)
        start = k.load(graph.indptr, v, mask=out, cache="nc") + SAMPLED
        end = k.load(graph.indptr, v + 1, mask=out, cache="nc")
        size = k.where(out, k.maximum(end - start, 0), 0)
        place = k.atomic("add", count, 0, 1, mask=size >= LONG)
        listed = (size >= LONG) & (place < LISTED)
        k.store(long_rows, place, v, mask=listed)
        size = k.where(listed, 0, size)

        def edge(places, payloads, there):
            (at,), ((u,),), (there,) = places, payloads, there
            near = k.load(graph.indices, at, mask=there, cache="nc")
            _link(k, graph.labels, u, near, there)

        flatten(k, start, size, (v,), edge, unroll=1)

    k.spread_warps(c.n, vertices)
    k.sync()

    def row(i):
        v = k.load(long_rows, i)
        start = k.load(graph.indptr, v, cache="nc") + SAMPLED
        end = k.load(graph.indptr, v + 1, cache="nc")

        def edge(e):
            _link(k, graph.labels, v, k.load(graph.indices, e, cache="nc"), k.const(True, "i1"))

        k.for_(start + k.thread, end, k.threads, edge)

    k.for_(0, k.minimum(k.load(count, 0), LISTED), 1, row)
