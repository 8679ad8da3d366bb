"""The derivatives of a product with a CSR, in one launch: one pass over its entries.

    by_values[e] = w[i] x[j]                 for the entry e = (i, j)
    by_vector[j] = sum_i w[i] A[i, j]        by atomics: the order of a sum varies

The walk is that of `rows/merge_path.py`.

Cost: 4 bytes an entry, and for by_values 4 bytes and a gather, for by_vector 4 bytes and an atomic.
H200, microseconds by both, by vector, by values: grid2000 105, 80, 55; delaunay21 233, 147, 104;
rmat18 348, 290, 143; rmat20 1487, 1032, 626. Gathers in random places come at 120 G/s, atomics at
85, and add up: both are traffic of the L2 cache. With columns numbered by degree atomics take 2.3
to 4 times as long, because hubs share cache lines, unless CTAs hold their sums (`hot`): rmat18
200, 142, 146; rmat20 996, 475, 633.
"""

import math

import jax
import jax.numpy as jnp

from ..rows.lanes import Lanes
from ..rows.merge_path import CsrRows, Shape, shape_for
from ..rows.stream import Stream
from ..simt.device import extent, target
from ..simt.launch import launch
from ..simt.typed import one_by_one

SHAPES: tuple[tuple[float, Shape], ...] = (
    (12, Stream(4)),
    (16, Lanes(4, 4, 2)),
    (32, Lanes(8, 4, 1)),
    (math.inf, Lanes(32, 4, 1)),
)
HOT = 32768, 49152  # columns whose sums a CTA holds: if the L1 cache has x as well, and if not
RESERVED = 2048  # words of shared memory that are left free


def csr_vjp(
    indptr: jax.Array,
    indices: jax.Array,
    w: jax.Array,
    n_cols: int,
    *,
    x: jax.Array | None = None,
    data: jax.Array | None = None,
    hot: int = 0,
) -> tuple[jax.Array | None, jax.Array | None]:
    """(by_values float32[nse], by_vector float32[n_cols]); n, n_cols, nse > 0.

    indptr int32[n + 1], indices int32[nse]: a CSR; slots from indptr[n] on get 0 in by_values and
    are not read. w float32[n]. x float32[n_cols]; None: no by_values. data float32[nse]; None: no
    by_vector. hot: each CTA holds the sums of the first `hot` columns in shared memory, or of
    as many as fit there, which is faster if these columns have most entries. n + nse <
    `merge_path.LIMIT`. Any number of CTAs is right.
    """
    n, nse = indptr.shape[0] - 1, indices.shape[0]
    shape, form = shape_for(n, nse, SHAPES), extent()
    capacity = target().shared_bytes // 4 - RESERVED - shape.shared_words(form["threads"])
    hot = 0 if data is None else min(hot, capacity)
    operands = {"indptr": indptr, "indices": indices, "w": w, "x": x, "data": data}

    def kernel(k, g):
        cotangents = _Cotangents(k, g, n, n_cols, shape)
        cotangents.run(hot)
        if x is not None:
            cotangents.pad(nse)

    out = launch(
        kernel,
        {name: a for name, a in operands.items() if a is not None},
        {} if x is None else {"by_values": (nse, jnp.float32)},
        inout={} if data is None else {"by_vector": jnp.zeros(n_cols, jnp.float32)},
        shared_words=hot + shape.shared_words(form["threads"]),
        name="csr_vjp",
    )
    return out.get("by_values"), out.get("by_vector")


class _Cotangents(CsrRows):
    """One launch."""

    def __init__(self, k, g, n, columns, shape):
        streams = [g.indices, g.data] if g.data else [g.indices]
        super().__init__(k, g.indptr, n, streams, shape)
        self.g, self.columns = g, columns

    def run(self, hot):
        """Each CTA holds the sums of the first `hot` columns and adds them to the result at its
        end."""
        k, self.hot = self.k, hot
        if not hot:
            return self.walk()
        self.sums = k.shared(hot, "f32")
        k.for_(k.thread, hot, k.threads, lambda j: k.store(self.sums, j, 0.0))
        k.sync()
        self.walk()
        k.sync()

        def add(j):
            total = k.load(self.sums, j)
            k.reduce("add", self.g.by_vector, j, total, mask=total != 0.0)

        k.for_(k.thread, hot, k.threads, add)

    def row(self, r, mask):
        return (self.k.load(self.g.w, r, mask=mask, cache="nc"),)

    def terms(self, fetched, places, masks, owners):
        k, g = self.k, self.g
        index, *data = fetched
        valid = k.below(index, self.columns) & masks
        if g.x:
            x = k.load(g.x, index, mask=valid, cache="nc")
        (w,) = owners()
        if g.data:
            for j, t, term in one_by_one(index, valid, w * data[0]):
                if self.hot:
                    near = k.below(j, self.hot)
                    k.reduce("add", self.sums, j, term, mask=near)
                    t = t & ~near
                k.reduce("add", g.by_vector, j, term, mask=t)
        if g.x:
            k.store(g.by_values, places, w * x, mask=masks)

    def pad(self, nse):
        """0 in the slots behind the last row."""
        k = self.k
        count = k.load(self.g.indptr, self.n, cache="nc")
        k.spread(nse - count, lambda i: k.store(self.g.by_values, count + i, 0))
