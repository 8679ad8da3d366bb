"""Sparse matrix times dense vector straight from a CSR, in one launch: everything may be traced.

    y[i] = combine over the entries j of row i of mul(A[i, j], x[j])

The walk is that of `rows/merge_path.py`, with cut rows joined by `rows/cut.py`.

Cost: 8 bytes an entry, read once, and a gather. H200, microseconds: grid2000 52 (163 MB at 3.1
TB/s); delaunay21 106, rmat18 138, rmat20 662: gathers in random places, 119 to 141 G/s in every
shape tried (cuSPARSE 104 on delaunay21); with columns numbered by degree rmat18 114, rmat20 496.
"""

import functools
import math

import jax

from ..rows.cut import WholeRows, shared_words
from ..rows.lanes import Lanes
from ..rows.merge_path import Shape, shape_for
from ..rows.stream import Stream
from ..simt.device import DEFAULT_GRID, Grid
from ..simt.launch import launch
from ..simt.scalar_jaxpr import ScalarSemiring, evaluate, uses
from ..tuning import constants

SHAPES: tuple[Shape, ...] = (  # from short rows to long ones: see `Constants.spmv_bounds`
    Stream(4),
    Lanes(8, 3, 1, ahead=True),
    Stream(8),
    Lanes(16, 2, 4, ahead=True, stream=True),
)
IN_GROUPS = Stream(4)


def csr_spmv(
    indptr: jax.Array,
    indices: jax.Array,
    data: jax.Array,
    x: jax.Array,
    *,
    semiring: ScalarSemiring,
    width: int = 1,
    shape: Shape | None = None,
    grid: Grid = DEFAULT_GRID,
) -> jax.Array:
    """y[n] of a matrix with n > 0 rows, at least one slot and at least one column.

    indptr int32[n + 1], indices int32[nse], data[nse]: a CSR; slots from indptr[n] on are not read.
    data and x[columns] are float32 or int32. n + nse < `merge_path.LIMIT`. Any number of CTAs is
    right. width 2 or 4: entry e of indptr and indices stands for so many, of the columns from
    indices[e] on, a multiple of width, and the values from data[e width] on.
    """
    n = indptr.shape[0] - 1
    table = tuple(zip((*constants().spmv_bounds, math.inf), SHAPES, strict=True))
    shape = shape or (IN_GROUPS if width > 1 else shape_for(n, indices.shape[0], table))
    form = grid.form()
    ctas, threads = form["ctas"], form["threads"]
    return launch(
        lambda k, m: _Product(k, m, n, x.shape[0], shape, semiring, width).run(),
        {"indptr": indptr, "indices": indices, "data": data, "x": x},
        {"y": (n, semiring.dtype), "rows": ctas, "parts": (ctas, semiring.dtype)},
        **form,
        shared_words=shared_words(1) + shape.shared_words(threads),
        name="csr_spmv",
    )["y"]


class _Product(WholeRows):
    """One launch."""

    def __init__(self, k, g, n, columns, shape, semiring, width):
        self.reads, self.reads_x = uses(semiring.mul, 0), uses(semiring.mul, 1)
        streams = [g.indices, g.data] if self.reads and width == 1 else [g.indices]
        super().__init__(k, g, [g.y], [g.parts], n, streams, shape, semiring.neutral(k))
        self.g, self.columns, self.semiring, self.width = g, columns, semiring, width

    def terms(self, fetched, places, masks, owners):
        k, g, width, (index, *data) = self.k, self.g, self.width, fetched
        valid = k.below(index, self.columns) & masks
        data, x = data or [None] * width, [None] * width
        if self.reads and width > 1:
            data = k.load_vec(g.data, places * width, width, mask=valid, cache="stream")
        if self.reads_x:
            x = k.load_vec(g.x, index, width, mask=valid, cache="nc")
        each = [evaluate(k, self.semiring.mul, *both) for both in zip(data, x, strict=True)]
        return k.where(valid, functools.reduce(self.combine, each), self.identity)

    def combine(self, a, b):
        return evaluate(self.k, self.semiring.combine, a, b)
