"""The first tight edge into every vertex, in one launch: one pass over the entries of a CSR.

An edge u -> v of length w is tight if before[u] + w = after[v], which is finite. The first one into
v, that of smallest slot, is found by an atomic maximum of nse - slot. Rows ascend with their slots,
so a second atomic maximum, of n - row, finds its row without a search in the offsets. The walk over
the rows is that of `rows/merge_path.py`. Rows whose `before` is infinite are skipped.

Cost: 8 bytes an entry, coalesced, one gather of `after`; two atomics a tight edge (1.02 to 1.2 a
vertex where lengths are integers of 1..64). H200: rmat18 0.17 ms, rmat20 0.69 (predicted, as a
product with the same CSR: 0.15 and 0.63).
"""

import math

import jax
import jax.numpy as jnp

from ..rows.lanes import Lanes
from ..rows.merge_path import CsrRows, Shape, shape_for
from ..simt.device import extent
from ..simt.launch import launch
from ..simt.typed import one_by_one

SHAPES: tuple[tuple[float, Shape], ...] = (
    (4.5, Lanes(2, 4, 2)),
    (16, Lanes(4, 4, 2)),
    (32, Lanes(8, 4, 1)),
    (math.inf, Lanes(32, 4, 1, stream=True)),
)


def first_tight(
    indptr: jax.Array,
    indices: jax.Array,
    lengths: jax.Array,
    before: jax.Array,
    after: jax.Array,
    *,
    rule: int | jax.Array,
    shape: Shape | None = None,
) -> tuple[jax.Array, jax.Array]:
    """(slots int32[n], rows int32[n]) of the first tight edge into each vertex; (nse, n): none.

    indptr int32[n + 1], indices int32[nse], lengths float32[nse]: a square CSR, n > 0, nse > 0;
    slots from indptr[n] on are not read. before, after float32[n]: lengths of paths to the tails
    and the heads of edges; NaN: no edge at this vertex counts. rule: 0: before[u] < after[v] as
    well; 1: <=; 2: any; read at run time, so that all are one kernel. n + nse <
    `merge_path.LIMIT`. The result does not depend on the number of CTAs.
    """
    n, nse = indptr.shape[0] - 1, indices.shape[0]
    shape, form = shape or shape_for(n, nse, SHAPES), extent()
    operands = {"indptr": indptr, "indices": indices, "lengths": lengths}
    operands["rule"] = jnp.asarray(rule, jnp.int32).reshape(1)
    none = jnp.zeros(n, jnp.int32)
    out = launch(
        lambda k, m: _Edges(k, m, shape, n, nse).walk(),
        operands | {"before": before, "after": after},
        {},
        inout={"slots": none, "rows": none},
        shared_words=shape.shared_words(form["threads"]),
        name="first_tight",
    )
    return nse - out["slots"], n - out["rows"]


class _Edges(CsrRows):
    """One launch; `slots`, `rows` hold nse - slot and n - row of the first tight edge, else 0."""

    def __init__(self, k, g, shape, n, nse):
        super().__init__(k, g.indptr, n, [g.indices, g.lengths], shape)
        self.g, self.nse = g, nse
        self.rule = k.load(g.rule, 0)

    def row(self, r, mask):
        return r, self.k.load(self.g.before, r, mask=mask, cache="nc")

    def wanted(self, row):
        return row[1] < math.inf

    def terms(self, fetched, places, masks, owners):
        k, g, n, nse = self.k, self.g, self.n, self.nse
        heads, w = fetched
        y = k.load(g.after, heads, mask=k.below(heads, n) & masks, other=math.nan, cache="nc")
        rows, x = owners()
        near = (x < y) | ((self.rule > 0) & (x <= y)) | (self.rule > 1)
        tight = (x + w == y) & (y < math.inf) & near
        for p, j, r, t in one_by_one(places, heads, rows, tight):
            k.reduce("max", g.slots, j, nse - p, mask=t)
            k.reduce("max", g.rows, j, n - r, mask=t)
