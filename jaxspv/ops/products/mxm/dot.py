"""Masked sparse products by dot products: a row of A and a column of B for each place of the mask.

The shorter of the two lists is walked and each of its indices searched in the longer one, so that
nothing is computed that the mask does not ask for. The lists of all places are expanded as in
`expand`, `size` indices a step.

Source: Azad, Buluc, Gilbert, "Parallel triangle counting and enumeration using matrix algebra",
IPDPSW 2015 (masked products).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ...._core.indices import lower_bound
from ...._core.loops import batch_any
from ...._core.reductions import rounded
from ....algebra.masks import Mask
from ....algebra.semirings import Semiring
from ....formats import CSC, CSR
from ..common.product import safe, take
from .expand import Operands, Position, next_products, wraps
from .result import Result, term_dtype


class _Lists(NamedTuple):
    """Rows of A, then columns of B, in one array; and for each place of the mask two of them.

    Attributes:
        indices: (A.nse + B.nse,) the inner index of each entry.
        low, high: (mask.nse,) slots of the list that is searched.
        rows: (mask.nse,) bool, whether the list that is walked is the row of A.
    """

    indices: Array
    low: Array
    high: Array
    rows: Array


def multiply_by_dots(
    semiring: Semiring, A: CSR, B: CSC, mask: Mask, *, nse: int, size: int
) -> Result:
    """C at the places that a sparse mask, a sorted CSR, allows; A and B are sorted."""
    M = mask.source
    o, lists = _lists_of_mask(A, B, mask)
    places, window = M.nse, min(size, M.nse)
    dtype = term_dtype(semiring, A.dtype, B.dtype)
    add = semiring.add

    def step(c):
        at, total, present, wrapped = c
        p, at = next_products(o, at, size, window)
        first, second, valid = _pairs(lists, A.nse, p)
        x, y = safe(take(A.data, first), valid), safe(take(B.data, second), valid)
        k, j = take(lists.indices, p.b), take(o.col, p.a)
        terms = add.admit(semiring.mul.at(x, y, p.row, k, j))
        wrapped |= wraps(semiring, p._replace(valid=valid), x, y)
        place = jnp.where(valid, p.a, places)
        if not add.scatters:  # places ascend: a missing product counts as the identity
            terms = jnp.where(valid, terms, jnp.asarray(add.identity_of(dtype)))
            part = add.segment_reduce(terms, p.a, places, sorted=True)
            here = jnp.zeros(places, bool).at[place].set(True, mode="drop")
            return at, add.op(total, part).astype(dtype), present | here, wrapped
        return at, *add.accumulate(total, present, place, terms), wrapped

    zero = jnp.int32(0)
    nothing = add.accumulator(places, dtype), jnp.zeros(places, bool)
    state = (Position(zero, zero), *nothing, jnp.asarray(False))
    _, total, present, wrapped = lax.while_loop(
        lambda c: batch_any(c[0].entry < places), step, state
    )
    return compacted(M, rounded(total, dtype), present, nse, wrapped)


def _lists_of_mask(A: CSR, B: CSC, mask: Mask) -> tuple[Operands, _Lists]:
    """The lists to walk, as `Operands` whose entries are the places of the mask, and to search."""
    M = mask.source
    row, col = M.rowcol()
    is_valid = row < M.shape[0]
    if not mask.structural:
        is_valid &= M.data.astype(bool)
    i, j = jnp.where(is_valid, row, 0), jnp.where(is_valid, col, 0)
    a_low, a_high = take(A.indptr, i), take(A.indptr, i + 1)
    b_low, b_high = take(B.indptr, j) + A.nse, take(B.indptr, j + 1) + A.nse
    rows = a_high - a_low <= b_high - b_low
    start, end = jnp.where(rows, a_low, b_low), jnp.where(rows, a_high, b_high)
    indices = jnp.concatenate([A.indices, B.indices])
    length, shape = jnp.where(is_valid, end - start, 0), (M.shape[0], A.shape[1])
    walked = Operands(M.indptr, row, col, M.data, start, length, indices, indices, shape)
    low, high = jnp.where(rows, b_low, a_low), jnp.where(rows, b_high, a_high)
    return walked, _Lists(indices, low, high, rows)


def _pairs(lists: _Lists, a_nse: int, p: Any) -> tuple[Array, Array, Array]:
    """Slots of A and B that meet in each walked index, and whether they do."""
    low, end = take(lists.low, p.a), take(lists.high, p.a)
    wanted = take(lists.indices, p.b)
    low = lower_bound((lists.indices,), (wanted,), low, end, unroll=True)
    valid = p.valid & (low < end) & (take(lists.indices, low) == wanted)
    rows = take(lists.rows, p.a)
    return jnp.where(rows, p.b, low), jnp.where(rows, low, p.b) - a_nse, valid


def compacted(M: CSR, total: Array, present: Array, nse: int, wrapped: Array) -> Result:
    """The places that hold something, as rows."""
    n, (_, col) = M.shape[1], M.rowcol()
    number = jnp.cumsum(present, dtype=jnp.int32)
    place = jnp.where(present, number - 1, nse)
    indices = jnp.full(nse, n, jnp.int32).at[place].set(col, mode="drop")
    data = jnp.zeros(nse, total.dtype).at[place].set(total, mode="drop")
    before = jnp.append(jnp.int32(0), number)
    indptr = jnp.minimum(before[M.indptr], nse)
    return Result(indptr, indices, data, number[-1], wrapped)
