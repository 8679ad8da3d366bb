"""Sparse matrix times dense vector in one launch: of a CSR, all traced, and of padded rows.

    y[i] = combine over the entries j of row i of mul(A[i, j], x[j])

`csr_spmv`: the walk is that of `rows/merge_path.py`, where cut rows are joined. Cost: 8 bytes an
entry, read once, and a gather. H200, microseconds: grid2000 52 (163 MB at 3.1 TB/s); delaunay21
106, rmat18 138, rmat20 662: gathers in random places, 119 to 141 G/s in every shape tried (cuSPARSE
104 on delaunay21); with columns numbered by degree rmat18 114, rmat20 496.

`padded_spmv`, of ELL and SELL: one thread for each row: neighbouring threads read neighbouring
slots, some positions of a row are in flight together. There are no atomics and no barrier, and no
row is cut, so results do not change from run to run. Traffic: 8 bytes a slot, padding included,
each once, in full lines (4 where `mul` does not read the values), 4 a gather of x, 4 a row; SELL 4
more for its order and 8 a slice.
"""

import functools
import math

import jax

from ..rows.lanes import Lanes
from ..rows.merge_path import Shape, WholeRows, shape_for, shared_words
from ..rows.stream import Stream
from ..simt.device import extent, resident_ctas
from ..simt.launch import launch
from ..simt.scalar_jaxpr import ScalarSemiring, evaluate, uses
from ..simt.typed import Several
from ..tuning import constants

SHAPES: tuple[Shape, ...] = (  # from short rows to long ones: see `Constants.spmv_bounds`
    Stream(4),
    Lanes(8, 3, 1, ahead=True),
    Stream(8),
    Lanes(16, 2, 4, ahead=True, stream=True),
)
IN_GROUPS = Stream(4)
UNROLL = 8  # positions of a padded row that are in flight together


def csr_spmv(
    indptr: jax.Array,
    indices: jax.Array,
    data: jax.Array,
    x: jax.Array,
    *,
    semiring: ScalarSemiring,
    width: int = 1,
    shape: Shape | None = None,
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
    form = extent()
    ctas, threads = form["ctas"], form["threads"]
    return launch(
        lambda k, m: _Product(k, m, n, x.shape[0], shape, semiring, width).run(),
        {"indptr": indptr, "indices": indices, "data": data, "x": x},
        {"y": (n, semiring.dtype), "rows": ctas, "parts": (ctas, semiring.dtype)},
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


def padded_spmv(
    indices: jax.Array,
    data: jax.Array,
    x: jax.Array,
    rows: int,
    *,
    semiring: ScalarSemiring,
    slices: tuple[jax.Array, jax.Array] | None = None,
    unroll: int = UNROLL,
) -> jax.Array:
    """y[rows] of a matrix with rows > 0, at least one slot and at least one column.

    indices int32[nse], data[nse]: position p of row i in slot p rows + i, or, with slices =
    (slice_ptr int32[s + 1], order int32[s C]), that of row order[s C + l] in slot
    slice_ptr[s] + p C + l. An index of len(x) or more is padding.
    """
    mul = semiring.mul
    listed = {} if slices is None else {"slice_ptr": slices[0], "order": slices[1]}
    lanes = rows if slices is None else slices[1].shape[0]
    C = 0 if slices is None else lanes // (slices[0].shape[0] - 1)

    def kernel(k, m):
        neutral = semiring.neutral(k)
        reads = uses(mul, 0), uses(mul, 1)

        def fold(first, stride, end):
            def some(at, y):
                places = Several(at + stride * u for u in range(unroll))
                masks = places < end
                index = k.load(m.indices, places, mask=masks, other=x.shape[0], cache="stream")
                valid, a, b = k.below(index, x.shape[0]), None, None
                if reads[0]:
                    a = k.load(m.data, places, mask=valid, cache="stream")
                if reads[1]:
                    b = k.load(m.x, index, mask=valid, cache="nc")
                terms = k.where(valid, evaluate(k, mul, a, b), neutral)
                # Among themselves first: a long row is rounded less often.
                return at + stride * unroll, combined(y, functools.reduce(combined, terms))

            return k.while_(lambda at, y: at < end, some, first, neutral)[1]

        def combined(u, v):
            return evaluate(k, semiring.combine, u, v)

        def of_ell(i):
            k.store(m.y, i, fold(i, rows, indices.shape[0]))

        def of_sell(lane):
            s, row = lane // C, k.load(m.order, lane, cache="nc")
            first, end = (k.load(m.slice_ptr, s + j, cache="nc") for j in range(2))
            k.store(m.y, row, fold(first + lane % C, C, end), mask=row < rows)

        k.spread(lanes, of_sell if listed else of_ell)

    return launch(
        kernel,
        {"indices": indices, "data": data, "x": x, **listed},
        {"y": (rows, semiring.dtype)},
        **extent(2 * resident_ctas(), threads=512),
        name="sell_spmv" if listed else "ell_spmv",
    )["y"]
