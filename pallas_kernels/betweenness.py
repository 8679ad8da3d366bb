"""Betweenness by breadth-first searches, one thread block for each source at a time.

Method: Brandes, "A faster algorithm for betweenness centrality", Journal of Mathematical Sociology
25, 2001; a block for each source: McLaughlin, Bader, "Scalable and high performance betweenness
centrality on the GPU", SC 2014. Forward, level by level: the edges out of a level list the vertices
that are not listed yet; then each new vertex v sums paths(u) over its in-edges from the level
before. Backward: each vertex v of a level computes y(v), the sum of `x(w) = 1 / paths(w) + y(w)`
over its edges to the next level; its dependency is paths(v) y(v). Sums run over rows in a fixed
order, so the result is the same every time. A level costs three barriers of one block, independent
of other blocks; a row of LONG entries or more is summed by all lanes of its warp.

Cost: three passes over the edges that each source reaches, a gather of 16 bytes an edge in two of
them; 28 bytes a vertex of memory for each block.
"""

import functools
import types

import jax
import jax.numpy as jnp

from .rows.flatten import flatten
from .simt.device import DEFAULT_GRID, Grid, resident_ctas
from .simt.launch import launch

LONG = 64
UNROLL = 4
LEVEL, PATHS, X = range(3)  # of the STATE words of a vertex, the last unused; level -1: unreached
STATE = 4
ONE = 0x3F800000  # 1.0 as a word
WORDS = STATE + 3  # words of memory for a vertex: state, and entries of queue, starts and sums
MOST_WORDS = 2**28  # of memory for all blocks


def betweenness(
    indptr: jax.Array,
    indices: jax.Array,
    in_indptr: jax.Array,
    in_indices: jax.Array,
    sources: jax.Array,
    *,
    endpoints: bool = False,
    grid: Grid = DEFAULT_GRID,
) -> tuple[jax.Array, jax.Array]:
    """(dependency of each vertex, float32[n]; bool, whether a number of paths overflows float32).

    indptr int32[n + 1], indices: edges v -> indices[i], indptr[v] <= i < indptr[v + 1];
    in_indptr, in_indices: those into each vertex. sources: int32[k], others than 0 .. n - 1 are
    skipped. endpoints: whether both ends of a path count as passed. There is no barrier between
    blocks, so any number of them is right.
    """
    n, count = indptr.shape[0] - 1, sources.shape[0]
    if n == 0 or count == 0:
        return jnp.zeros(n, jnp.float32), jnp.bool_(False)
    ctas = max(1, min(grid.ctas or resident_ctas(), count, MOST_WORDS // (WORDS * n)))
    c = types.SimpleNamespace(n=n, count=count, endpoints=endpoints)
    out = launch(
        lambda k, m: _body(k, c, m),
        {
            "indptr": indptr,
            "indices": indices,
            "in_indptr": in_indptr,
            "in_indices": in_indices,
            "sources": sources,
        },
        {
            "state": STATE * ctas * n,
            "queue": ctas * n,
            "starts": ctas * (n + 2),  # of the levels in the queue
            "passed": (ctas * n, jnp.float32),
            "infinite": ctas,
        },
        ctas=ctas,
        threads=grid.threads or 1024,
        shared_words=12,
        name="betweenness",
        interpret=grid.interpret,
    )
    return jnp.sum(out["passed"].reshape(ctas, n), axis=0), jnp.any(out["infinite"] != 0)


def _body(k, c, m):
    c.found = k.shared(4)
    c.first, c.levels, c.warps = k.cta * c.n, k.cta * (c.n + 2), (k.warp, k.threads // 32)

    def clean(v):
        k.store(m.state, (c.first + v) * STATE + LEVEL, -1)
        k.store(m.passed, c.first + v, 0.0)

    k.for_(k.thread, c.n, k.threads, clean)
    k.store(m.infinite, k.cta, 0, mask=k.thread == 0)
    k.store(c.found, k.thread, 0, mask=k.thread < 4)
    k.sync()

    def source(i):
        s = k.load(m.sources, i, cache="nc")
        k.if_(k.below(s, c.n), lambda: _search(k, c, m, s))

    k.for_(k.cta, c.count, k.ctas, source)


def _search(k, c, m, s):
    """Both passes from s; all levels are -1 before and after."""
    alone = k.thread == 0
    k.store_vec(m.state, (c.first + s) * STATE, [k.const(x) for x in (0, ONE, ONE, 0)], mask=alone)
    k.store(m.queue, c.first, s, mask=alone)
    k.store(m.starts, c.levels + k.thread, k.thread, mask=k.thread < 2)
    k.sync()
    step = lambda d, begin, end: (d + 1, end, _further(k, c, m, d, begin, end))  # noqa: E731
    depth, _, end = k.while_(lambda d, begin, end: begin < end, step, 0, 0, 1)
    back = lambda d, end: (d - 1, _back(k, c, m, d, end))  # noqa: E731
    k.while_(lambda d, end: d > 0, back, depth - 1, end)
    if c.endpoints:
        passed = k.load(m.passed, c.first + s, mask=alone, cache="fresh")
        k.store(m.passed, c.first + s, passed + k.cast(end - 1, "f32"), mask=alone)

    def unmark(j):
        k.store(m.state, (c.first + _listed(k, c, m, j)) * STATE + LEVEL, -1)

    k.for_(k.thread, end, k.threads, unmark)
    k.sync()


def _listed(k, c, m, j, valid=None):
    return k.load(m.queue, c.first + j, mask=valid, cache="fresh")


def _further(k, c, m, d, begin, end):
    """Lists level d + 1 behind level d, which is queue[begin:end]; returns the end of level d +
    1."""

    def edges(places, payloads, valid):
        del payloads
        heads = k.loads(m.indices, places, valid, cache="nc")
        levels = [(c.first + w) * STATE + LEVEL for w in heads]
        seen = k.loads(m.state, levels, valid, other=0, cache="fresh")
        new = [level == -1 for level in seen]
        old = [
            k.atomic_cas(m.state, at, -1, d + 1, mask=mask)
            for at, mask in zip(levels, new, strict=True)
        ]
        for w, mask, level in zip(heads, new, old, strict=True):
            put(w, k.ballot(mask & (level == -1)))

    def put(w, votes):
        def some():
            place = k.atomic("add", c.found, 0, k.popc(votes), mask=k.lane == 0)
            place = c.first + end + k.shfl(place, 0) + k.lanes_below(votes)
            k.store(m.queue, place, w, mask=(votes & k.bit(k.lane)) != 0)

        k.if_(votes != 0, some)

    def out_of(i, valid):
        low, high = k.row(m.indptr, _listed(k, c, m, begin + i, valid), valid)
        flatten(k, low, k.where(valid, high - low, 0), (), edges, unroll=UNROLL)

    k.distribute(end - begin, c.warps, out_of)
    k.sync()
    found = k.load(c.found, 0)

    def into(i, valid):
        w = _listed(k, c, m, end + i, valid)
        low, high = k.row(m.in_indptr, w, valid)
        size = k.where(valid, high - low, 0)
        paths = _sum(k, c, m, m.in_indices, low, size, d, PATHS)
        k.store(m.state, (c.first + w) * STATE + PATHS, k.bits(paths, "i32"), mask=valid)
        k.store(m.infinite, k.cta, 1, mask=valid & (paths == float("inf")))

    k.distribute(found, c.warps, into)
    k.store(m.starts, c.levels + d + 2, end + found, mask=k.thread == 0)
    k.sync()
    k.store(c.found, 0, 0, mask=k.thread == 0)
    k.sync()
    return end + found


def _back(k, c, m, d, end):
    """Adds the dependencies of the vertices of level d, which ends at `end`; returns its begin."""
    begin = k.load(m.starts, c.levels + d, cache="fresh")

    def vertex(i, valid):
        v = _listed(k, c, m, begin + i, valid)
        low, high = k.row(m.indptr, v, valid)
        at = (c.first + v) * STATE
        paths = k.bits(k.load(m.state, at + PATHS, mask=valid, other=ONE, cache="fresh"), "f32")
        passed = k.load(m.passed, c.first + v, mask=valid, cache="fresh")
        y = _sum(k, c, m, m.indices, low, k.where(valid, high - low, 0), d + 1, X)
        k.store(m.state, at + X, k.bits(k.const(1.0, "f32") / paths + y, "i32"), mask=valid)
        more = paths * y + (1.0 if c.endpoints else 0.0)
        k.store(m.passed, c.first + v, passed + more, mask=valid)

    k.distribute(end - begin, c.warps, vertex)
    k.sync()
    return begin


def _sum(k, c, m, heads, begin, size, level, word):
    """For each lane's row: the sum of state word `word` over the heads of level `level`."""

    def places(begin, end, step):
        def stride(e, total):
            at = [e + j * step for j in range(UNROLL)]
            valid = [place < end for place in at]
            at = [(c.first + w) * STATE for w in k.loads(heads, at, valid, cache="nc")]
            load = functools.partial(k.load_vec, m.state, width=STATE, other=-1, cache="fresh")
            found = [load(i=place, mask=mask) for place, mask in zip(at, valid, strict=True)]
            for words, mask in zip(found, valid, strict=True):
                counts = mask & (words[LEVEL] == level)
                total = total + k.where(counts, k.bits(words[word], "f32"), k.const(0.0, "f32"))
            return total

        return k.for_(begin, end, UNROLL * step, stride, k.const(0.0, "f32"))[0]

    long = size >= LONG

    def whole(left, total):
        owner = k.ctz(left)
        low, count = k.shfl(begin, owner), k.shfl(size, owner)
        found = k.warp_sum(places(low + k.lane, low + count, 32))
        return left & (left - 1), k.where(k.lane == owner, found, total)

    short = places(begin, begin + k.where(long, 0, size), 1)
    return k.while_(lambda left, total: left != 0, whole, k.ballot(long), short)[1]
