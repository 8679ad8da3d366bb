"""Sparse times sparse for any device: expand the products, sort by place, combine equal ones.

The products of row i are those of A[i, k] with row k of B. They are numbered through all rows, so
that every step takes equally many, whatever the rows look like. A step carries the last row on,
which may not be complete, so that memory is bounded by `chunk` and the columns of one row.

Source: Dalton, Olson, Bell, "Optimizing sparse matrix-matrix multiplication for the GPU" (expand,
sort, compress), ACM TOMS 41 (4), 2015.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ...._core.indices import lower_bound
from ....algebra.masks import Mask
from ....algebra.semirings import Semiring
from ....formats import CSR, SparseMatrix
from ..common.product import safe, take

LARGEST = np.int32(np.iinfo(np.int32).max)


class Operands(NamedTuple):
    """Entries of A in row order and the rows of B that they select.

    Attributes:
        indptr: (m + 1,) entries of A by row.
        row, col, data: of the entries of A; row m in padding.
        start, length: (A.nse,) the rows of B: first slot and number of entries; 0 in padding.
        indices, values: (B.nse,) columns and values of B.
        shape: (m, n) of C.
    """

    indptr: Array
    row: Array
    col: Array
    data: Array
    start: Array
    length: Array
    indices: Array
    values: Array
    shape: tuple[int, int]


class Position(NamedTuple):
    """The next product: entry of A, and how many of its products are done."""

    entry: Array
    done: Array


class Products(NamedTuple):
    """Some products in order of (row, k): slots of A and B, row and column of C, and validity."""

    a: Array
    b: Array
    row: Array
    col: Array
    valid: Array


def operands(A: CSR, B: CSR) -> Operands:
    """The entries of A with the rows of B that they select. O(nse)."""
    row, col = A.rowcol()
    k = jnp.where(row < A.shape[0], col, 0)
    start = jnp.take(B.indptr, k, mode="clip")
    length = jnp.where(row < A.shape[0], jnp.take(B.indptr, k + 1, mode="clip") - start, 0)
    shape = (A.shape[0], B.shape[1])
    return Operands(A.indptr, row, col, A.data, start, length, B.indices, B.data, shape)


def next_products(o: Operands, at: Position, size: int, window: int) -> tuple[Products, Position]:
    """The next `size` products, of at most `window` entries of A, and the position after them."""
    nse = o.row.shape[0]
    entry = at.entry + jnp.arange(window, dtype=jnp.int32)
    inside = entry < nse
    entry = jnp.minimum(entry, nse - 1)
    before = jnp.where(jnp.arange(window) == 0, at.done, 0)
    length = jnp.where(inside, o.length[entry], 0) - before
    ends = saturating_cumsum(length, size + 1, o.shape[1])
    previous = jnp.append(jnp.int32(0), ends)[:-1]
    shift = o.start[entry] + before - previous
    # The owner of a product: how many rows end at it or before.
    marks = jnp.zeros(size, jnp.int32).at[ends].add(1, mode="drop")
    owner = jnp.minimum(jnp.cumsum(marks, dtype=jnp.int32), window - 1)
    number = jnp.arange(size, dtype=jnp.int32)
    valid = number < ends[-1]
    a = jnp.minimum(at.entry + owner, nse - 1)
    b = jnp.clip(shift[owner] + number, 0, o.indices.shape[0] - 1)
    row = jnp.where(valid, o.row[a], o.shape[0])
    col = jnp.where(valid, o.indices[b], o.shape[1])
    whole = jnp.sum(ends <= size, dtype=jnp.int32)
    last = jnp.minimum(whole, window - 1)
    done = jnp.where(whole < window, size - previous[last] + before[last], 0)
    return Products(a, b, row, col, valid), Position(at.entry + whole, done)


def saturating_cumsum(length: Array, limit: int, longest: int) -> Array:
    """Inclusive prefix sums of lengths in [0, longest], min(sum, limit), without 64-bit integers.

    The sums wrap around 2^32; each term is less than 2^31, so a sum below the one before shows it.
    """
    if length.shape[0] * longest < 2**31:
        return jnp.minimum(jnp.cumsum(length, dtype=jnp.int32), limit)
    low = jnp.cumsum(length.astype(jnp.uint32), dtype=jnp.uint32)
    wrapped = low < jnp.append(jnp.uint32(0), low)[:-1]
    large = lax.cummax(wrapped.astype(jnp.int32)) > 0
    return jnp.where(large, limit, jnp.minimum(low, np.uint32(limit)).astype(jnp.int32))


def terms_of(
    semiring: Semiring, o: Operands, p: Products, take: Callable[[Array, Array], Array] = take
) -> tuple[Array, Array, Array]:
    """(products, their first and second factors), 0 for factors where there is none."""
    x, y = safe(take(o.data, p.a), p.valid), safe(take(o.values, p.b), p.valid)
    return semiring.mul.at(x, y, p.row, take(o.col, p.a), p.col), x, y


def wraps(semiring: Semiring, p: Products, x: Array, y: Array) -> Array:
    """Whether a product did not fit its dtype."""
    overflow = semiring.mul.overflow
    return jnp.asarray(False) if overflow is None else jnp.any(p.valid & overflow(x, y))


def allowed_at(mask: Mask | None, row: Array, col: Array) -> Array:
    """Whether a mask allows (row, col); a sparse one is a sorted CSR."""
    if mask is None:
        return jnp.ones(row.shape, bool)
    if not isinstance(mask.source, SparseMatrix):
        return mask.source.at[row, col].get(mode="fill", fill_value=False) ^ mask.complement
    M: Any = mask.source
    slot = find(M.indptr, M.indices, row, col)
    found = slot < M.nse
    if not mask.structural:
        found &= take(M.data, slot).astype(bool)
    return found ^ mask.complement


def find(indptr: Array, indices: Array, row: Array, col: Array) -> Array:
    """The first slot of (row, col) in rows sorted by column; nse where it is not stored."""
    m, nse = indptr.shape[0] - 1, indices.shape[0]
    end = take(indptr, row + 1)
    low = lower_bound((indices,), (col,), take(indptr, row), end, unroll=True)
    found = (row < m) & (low < end) & (take(indices, low) == col)
    return jnp.where(found, low, nse)


class Groups(NamedTuple):
    """Products of one place, in order of the places.

    Attributes:
        order: (size,) slots of the products, sorted by place, then as they came.
        group: (size,) number of the place of each sorted product; `size` where there is none.
        starts: (size,) bool, the first product of a place.
        row, col: (size,) of each sorted product.
        count: number of places.
    """

    order: Array
    group: Array
    starts: Array
    row: Array
    col: Array
    count: Array


def sort_by_place(row: Array, col: Array, shape: tuple[int, int]) -> Groups:
    """Sorts products by (row, column), stably; those of row m or column n form no group.

    One key with one value is a radix sort on a GPU, in time with the bits of the key: one of 32
    where a place has a number below 2^32; else one by the column and the low bits of the row,
    another by its high bits, which are few.
    """
    (m, n), size = shape, row.shape[0]
    slots = jnp.arange(size, dtype=jnp.int32)
    if (m + 1) * (n + 1) < 2**32:
        key = row.astype(jnp.uint32) * np.uint32(n + 1) + col.astype(jnp.uint32)
        key, order = lax.sort((key, slots), num_keys=1, is_stable=True)
        row = (key // np.uint32(n + 1)).astype(jnp.int32)
        col = (key % np.uint32(n + 1)).astype(jnp.int32)
    else:
        bits = n.bit_length()
        most = m >> (32 - bits)
        narrow = jnp.uint8 if most < 2**8 else jnp.uint16 if most < 2**16 else jnp.uint32
        high = (row >> (32 - bits)).astype(narrow)
        low = (row.astype(jnp.uint32) << bits) | col.astype(jnp.uint32)
        _, order = lax.sort((low, slots), num_keys=1, is_stable=True)
        _, order = lax.sort((high[order], order), num_keys=1, is_stable=True)
        row, col = row[order], col[order]
    is_valid = (row < m) & (col < n)
    same = (row[1:] == row[:-1]) & (col[1:] == col[:-1])
    starts = jnp.append(True, ~same)[:size] & is_valid
    number = jnp.cumsum(starts, dtype=jnp.int32)
    group = jnp.where(is_valid, number - 1, size)
    return Groups(order, group, starts, row, col, number[-1])
