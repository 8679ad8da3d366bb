"""SpMV on a bare CSR, traced: rows cut in pieces of fixed width, then one small segmented fold.

    y[i] = add_j mul(A[i, j], x[j])        (rows without entries: the identity of add)

Nothing is known of the lengths of the rows while tracing, but the number of pieces of `width`
entries is at most n_rows + nse // width whatever they are. So the pieces of all rows are reduced
densely, and only one value a piece goes through the slow part: a scatter where the addition
has one and pieces are few, doubling otherwise. With `width` near the mean length of a row that is
about two values a row instead of one an entry. No value meets one of another row.

Cost: at most nse + n_rows * width slots read, n_rows + nse / width values scattered or doubled.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from ...._core.reductions import ROUNDED, fold, sum_in_double
from ..common.product import Fold, take
from ..row_layouts.layout import take_inside

UNROLL = 8  # pieces up to this width are folded by an unrolled chain, wider ones by lax.reduce
MOST_SCATTERED = 2**21  # more pieces are joined by doubling: atomics of long rows collide


def piece_width(n_rows: int, nse: int) -> int:
    """The power of two nearest to the mean number of entries a row, within [4, 64]."""
    width = 4
    while width < 64 and 2 * nse > 3 * width * n_rows:
        width *= 2
    return width


def csr_spmv(
    indptr: Array, indices: Array, data: Any, x: Array, how: Fold, *, scatter: str | None = None
) -> Array:
    """y[i] = combine over the entries j of row i of mul(A[i, j], x[j]); everything may be traced.

    indptr: (n_rows + 1,). indices: (nse,); entries from indptr[-1] on are padding and change
    nothing. data: (nse,), or a scalar that every entry has. x: (n_cols,) or (n_cols, B).
    scatter: the name under which `.at[]` has the addition if the backend does it fast, else None.
    Returns (n_rows,) or (n_rows, B).
    """
    n_rows, nse, batch = indptr.shape[0] - 1, indices.shape[0], x.shape[1:]
    data = jnp.asarray(data)
    if nse == 0 or n_rows == 0:
        out = jax.eval_shape(how.mul, jax.ShapeDtypeStruct((1,), data.dtype), x[:1])
        return jnp.full((n_rows, *batch), how.identity, out.dtype)
    width = piece_width(n_rows, nse)
    indptr = indptr.astype(indices.dtype)
    row, begin, end, pieces_end = _pieces(indptr, n_rows + nse // width, width)

    def term(entry: jax.Array, end: jax.Array) -> jax.Array:
        index = jnp.minimum(entry, nse - 1)
        column = jnp.clip(take_inside(indices, index), 0, x.shape[0] - 1)
        value = take_inside(data, index) if data.ndim else data
        value = value.reshape(value.shape + (1,) * (entry.ndim + len(batch) - value.ndim))
        shape = entry.shape + batch
        product = how.mul(jnp.broadcast_to(value, shape), take_inside(x, column))
        present = (entry < end).reshape(entry.shape + (1,) * len(batch))
        return jnp.where(present, product, jnp.asarray(how.identity, product.dtype))

    if width <= UNROLL:
        folded = functools.reduce(how.combine, [term(begin + k, end) for k in range(width)])
    else:
        block = term(begin[:, None] + jnp.arange(width, dtype=begin.dtype), end[:, None])
        folded = lax.reduce(block, jnp.asarray(how.identity, block.dtype), how.combine, (1,))
    if scatter is not None and row.shape[0] <= MOST_SCATTERED:
        if scatter == "add" and folded.dtype in ROUNDED:
            return sum_in_double(folded, row, n_rows)
        # No indices_are_sorted: on a GPU it makes the scatter up to ten times slower.
        y = jnp.full((n_rows, *batch), how.identity, folded.dtype)
        return getattr(y.at[row], scatter)(folded, mode="drop")
    return _fold_pieces(folded, row, pieces_end, how)


def _pieces(indptr: jax.Array, capacity: int, width: int) -> tuple[jax.Array, ...]:
    """Row, first entry and end of each piece, (capacity,) each, and where each row's pieces end.
    Spare pieces are empty and belong to row n_rows, which a scatter drops. The row of a piece is
    the number of rows that ended before it: a scatter of one mark a row and a prefix sum."""
    length = indptr[1:] - indptr[:-1]
    pieces_end = jnp.cumsum(-(-length // width), dtype=indptr.dtype)
    marks = jnp.zeros(capacity, indptr.dtype).at[pieces_end].add(1, mode="drop")
    row = jnp.cumsum(marks, dtype=indptr.dtype)
    first = jnp.where(row > 0, take_inside(pieces_end, jnp.maximum(row - 1, 0)), 0)
    piece = jnp.arange(capacity, dtype=indptr.dtype)
    begin = take_inside(indptr, row) + (piece - first) * width
    end = take_inside(indptr, jnp.minimum(row + 1, indptr.shape[0] - 1))
    # Computed once: fused into the unrolled chain they would be gathered anew for every slot.
    return *lax.optimization_barrier((row, begin, end)), pieces_end


def _fold_pieces(folded: Array, row: Array, pieces_end: Array, how: Fold) -> Array:
    """Fold the pieces of each row onto its first one by doubling [Hillis and Steele, 1986]. After
    the step of stride s the first piece holds the fold of the first 2 s pieces of its row; the
    number of steps is log2 of the most pieces a row has, a traced number."""
    capacity = row.shape[0]
    pieces = jnp.diff(pieces_end, prepend=0)
    place = jnp.arange(capacity, dtype=row.dtype)
    trailing = (1,) * (folded.ndim - 1)

    def step(state):
        stride, partial = state
        other = jnp.minimum(place + stride, capacity - 1)
        same = (take_inside(row, other) == row) & (place + stride < capacity)
        both = how.combine(partial, take_inside(partial, other))
        return 2 * stride, jnp.where(same.reshape(-1, *trailing), both, partial)

    most = jnp.max(pieces)
    state = jnp.ones((), row.dtype), lax.optimization_barrier(folded)
    _, folded = lax.while_loop(lambda state: state[0] < most, step, state)
    first = jnp.minimum(pieces_end - pieces, capacity - 1)
    y = take_inside(folded, first)
    return jnp.where((pieces > 0).reshape(-1, *trailing), y, jnp.asarray(how.identity, y.dtype))


MOST_UNROLLED = 64  # positions up to so many are folded by an unrolled chain


def ell_spmv(indices: Array, data: Array, x: Array, rows: int, how: Fold) -> Array:
    """indices, data: (width * rows,), position by position; x: (n,) or (n, B) -> (rows, ...)."""
    terms = _terms(indices.reshape(-1, rows), data, x, how)
    if terms.shape[0] > MOST_UNROLLED:
        return fold(how.combine, terms, (0,), how.identity)
    return functools.reduce(how.combine, terms)  # a reduction over the first axis is slow on a CPU


def sell_spmv(
    indices: Array, data: Array, slices: tuple[Array, Array], x: Array, rows: int, how: Fold
) -> Array:
    """As `ell_spmv` for slices: the slice (groups,) of each group of C slots, order (slices * C,).

    how.combine(terms (groups,), slice of each, slices): the addition by segments, for one lane.
    """
    slice_of, order = slices
    slots, groups = indices.shape[0], slice_of.shape[0]
    terms = _terms(indices.reshape(groups, slots // groups), data, x, how)
    lanes = terms.reshape(groups, -1)
    count = order.shape[0] * groups // slots
    combined = jax.vmap(lambda lane: how.combine(lane, slice_of, count), 1, 1)(lanes)
    y = jnp.full((rows, *x.shape[1:]), jnp.asarray(how.identity, terms.dtype))
    return y.at[order].set(combined.reshape(-1, *x.shape[1:]), mode="drop")


def _terms(index: Array, data: Array, x: Array, how: Fold) -> Array:
    """(*index.shape, *batch): the product of every slot, the identity in padding."""
    n, ones = x.shape[0], (1,) * (x.ndim - 1)
    read = take(x, jnp.minimum(index, n - 1))
    value = jnp.broadcast_to(data.reshape(*index.shape, *ones), read.shape)
    term = how.mul(value, read)
    valid = (index < n).reshape(*index.shape, *ones)
    return jnp.where(valid, term, jnp.asarray(how.identity, term.dtype))
