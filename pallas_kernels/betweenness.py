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
them; 28 bytes a vertex of memory for each block. Measured (H100), 64 sources: moscow-roads 10.2
ms, for 0.10 of bytes, because 847 levels each way follow one another.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .frontier import put_words
from .rows.flatten import flatten
from .simt.device import extent
from .simt.launch import launch
from .simt.primitives import Simt
from .simt.typed import Array, Arrays, Value

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
) -> tuple[jax.Array, jax.Array]:
    """(dependency of each vertex, float32[n]; bool, whether a number of paths overflows float32).

    in_indptr, in_indices: the edges into each vertex. sources: int32[k], others than 0 .. n - 1 are
    skipped. endpoints: whether both ends of a path count as passed. There is no barrier between
    blocks, so any number of them is right.
    """
    n, count = indptr.shape[0] - 1, sources.shape[0]
    form = extent()
    ctas = form["ctas"] = max(1, min(form["ctas"], count, MOST_WORDS // (WORDS * n)))
    rows = {"indptr": indptr, "indices": indices, "in_indptr": in_indptr, "in_indices": in_indices}
    out = launch(
        lambda k, m: Searches(k, m, n, endpoints).run(count),
        rows | {"sources": sources},
        {
            "state": STATE * ctas * n,
            "queue": ctas * n,
            "starts": ctas * (n + 2),
            "passed": (ctas * n, jnp.float32),
            "infinite": ctas,
        },
        **form,
        shared_words=12,
        name="betweenness",
    )
    return jnp.sum(out["passed"].reshape(ctas, n), axis=0), jnp.any(out["infinite"] != 0)


class Searches:
    """The searches of one block."""

    def __init__(self, k: Simt, m: Arrays, n: int, endpoints: bool):
        self.k, self.m, self.n, self.endpoints = k, m, n, endpoints
        self.found = k.shared(4)  # word 0: vertices of the next level
        self.first, self.levels = k.cta * n, k.cta * (n + 2)  # this block's parts of the arrays
        self.warps = k.warp, k.threads // 32

    def run(self, count: int) -> None:
        """The searches from this block's share of `count` sources."""
        k, m = self.k, self.m

        def clean(v):
            k.store(m.state, self.word(v, LEVEL), -1)
            k.store(m.passed, self.first + v, 0.0)

        k.for_(k.thread, self.n, k.threads, clean)
        k.store(m.infinite, k.cta, 0, mask=k.thread == 0)
        k.store(self.found, k.thread, 0, mask=k.thread < 4)
        k.sync()

        def source(i):
            s = k.load(m.sources, i, cache="nc")
            k.if_(k.below(s, self.n), lambda: self.search(s))

        k.for_(k.cta, count, k.ctas, source)

    def word(self, v: Value, word: int = 0) -> Value:
        """Index of a state word of v."""
        return (self.first + v) * STATE + word

    def listed(self, j: Value, valid: Any = None) -> Value:
        """Entry j of the queue."""
        return self.k.load(self.m.queue, self.first + j, mask=valid, cache="fresh")

    def search(self, s: Value) -> None:
        """Both passes from s; all levels are -1 before and after."""
        k, m, alone = self.k, self.m, self.k.thread == 0
        k.store_vec(m.state, self.word(s), [k.const(x) for x in (0, ONE, ONE, 0)], mask=alone)
        k.store(m.queue, self.first, s, mask=alone)
        k.store(m.starts, self.levels + k.thread, k.thread, mask=k.thread < 2)
        k.sync()
        step = lambda d, begin, end: (d + 1, end, self.further(d, begin, end))  # noqa: E731
        depth, _, end = k.while_(lambda d, begin, end: begin < end, step, 0, 0, 1)
        back = lambda d, end: (d - 1, self.back(d, end))  # noqa: E731
        k.while_(lambda d, end: d > 0, back, depth - 1, end)
        if self.endpoints:
            passed = k.load(m.passed, self.first + s, mask=alone, cache="fresh")
            k.store(m.passed, self.first + s, passed + k.cast(end - 1, "f32"), mask=alone)
        k.for_(k.thread, end, k.threads, lambda j: k.store(m.state, self.word(self.listed(j)), -1))
        k.sync()

    def further(self, d: Value, begin: Value, end: Value) -> Value:
        """Lists level d + 1 behind level d, which is queue[begin:end]; returns the end of level
        d + 1."""
        k, m = self.k, self.m

        def edges(places, valid):
            heads = k.load(m.indices, places, mask=valid, cache="nc")
            at = self.word(heads, LEVEL)
            new = k.load(m.state, at, mask=valid, other=0, cache="fresh") == -1
            won = new & (k.atomic_cas(m.state, at, -1, d + 1, mask=new) == -1)
            put_words(k, won, (self.found, 0), (m.queue, self.first + end), heads)

        def out_of(i, valid):
            low, high = k.row(m.indptr, self.listed(begin + i, valid), valid)
            flatten(k, low, k.where(valid, high - low, 0), (), edges, unroll=UNROLL)

        k.distribute(end - begin, self.warps, out_of)
        k.sync()
        found = k.load(self.found, 0)

        def into(i, valid):
            w = self.listed(end + i, valid)
            low, high = k.row(m.in_indptr, w, valid)
            paths = self.sum(m.in_indices, (low, k.where(valid, high - low, 0)), d, PATHS)
            k.store(m.state, self.word(w, PATHS), k.bits(paths, "i32"), mask=valid)
            k.store(m.infinite, k.cta, 1, mask=valid & (paths == float("inf")))

        k.distribute(found, self.warps, into)
        k.store(m.starts, self.levels + d + 2, end + found, mask=k.thread == 0)
        k.sync()
        k.store(self.found, 0, 0, mask=k.thread == 0)
        k.sync()
        return end + found

    def back(self, d: Value, end: Value) -> Value:
        """Adds the dependencies of the vertices of level d, which ends at `end`; returns its
        begin."""
        k, m = self.k, self.m
        begin = k.load(m.starts, self.levels + d, cache="fresh")

        def vertex(i, valid):
            v = self.listed(begin + i, valid)
            low, high = k.row(m.indptr, v, valid)
            paths = k.load(m.state, self.word(v, PATHS), mask=valid, other=ONE, cache="fresh")
            paths = k.bits(paths, "f32")
            passed = k.load(m.passed, self.first + v, mask=valid, cache="fresh")
            y = self.sum(m.indices, (low, k.where(valid, high - low, 0)), d + 1, X)
            x = k.const(1.0, "f32") / paths + y
            k.store(m.state, self.word(v, X), k.bits(x, "i32"), mask=valid)
            more = paths * y + (1.0 if self.endpoints else 0.0)
            k.store(m.passed, self.first + v, passed + more, mask=valid)

        k.distribute(end - begin, self.warps, vertex)
        k.sync()
        return begin

    def sum(self, heads: Array, row: Sequence[Value], level: Value, word: int) -> Value:
        """For each lane's row (begin, size): the sum of state word `word` over its heads of level
        `level`."""
        k, m, (begin, size) = self.k, self.m, row
        zero = k.const(0.0, "f32")

        def places(begin, end, step):
            def stride(e, total):
                at = k.several(UNROLL, lambda j: e + j * step)
                valid = at < end
                at = self.word(k.load(heads, at, mask=valid, cache="nc"))
                words = k.load_vec(m.state, at, STATE, mask=valid, other=-1, cache="fresh")
                counts = valid & (words[LEVEL] == level)
                return k.total(k.where(counts, k.bits(words[word], "f32"), zero), total)

            return k.for_(begin, end, UNROLL * step, stride, zero)[0]

        long = size >= LONG

        def whole(owner, total):
            low, count = k.shfl(begin, owner), k.shfl(size, owner)
            found = k.warp_sum(places(low + k.lane, low + count, 32))
            return k.where(k.lane == owner, found, total)

        short = places(begin, begin + k.where(long, 0, size), 1)
        return k.each_bit(k.ballot(long), whole, short)[0]
