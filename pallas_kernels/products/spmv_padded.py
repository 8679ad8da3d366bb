"""Sparse matrix times dense vector over padded rows, ELL and SELL, in one launch.

    y[i] = combine over the entries j of row i of mul(A[i, j], x[j])

One thread for each row: neighbouring threads read neighbouring slots, `UNROLL` positions of a row
are in flight together. There are no atomics and no barrier, and no row is cut, so results do not
change from run to run.

Traffic: 8 bytes a slot, padding included, each once, in full lines (4 where `mul` does not read the
values), 4 a gather of x, 4 a row; SELL 4 more for its order and 8 a slice.
"""

import functools

import jax

from ..simt.device import DEFAULT_GRID, Grid, resident_ctas
from ..simt.launch import launch
from ..simt.scalar_jaxpr import ScalarSemiring, evaluate, uses
from ..simt.typed import Several

UNROLL = 8


def padded_spmv(
    indices: jax.Array,
    data: jax.Array,
    x: jax.Array,
    rows: int,
    *,
    semiring: ScalarSemiring,
    slices: tuple[jax.Array, jax.Array] | None = None,
    unroll: int = UNROLL,
    grid: Grid = DEFAULT_GRID,
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
        **grid.form(2 * resident_ctas(), threads=512),
        name="sell_spmv" if listed else "ell_spmv",
    )["y"]
