"""Sparse times sparse for a CPU: Gustavson's algorithm as native loops, a dense accumulator.

Column by column, C(:, j) = add over k of mul(A(:, k), B(k, j)), in three passes, each a loop of the
kind that `native_loops` describes:

1. `pattern`: which rows a column has, in order of discovery; a row is marked when it is found.
2. `fill`: the values, in an accumulator of m numbers of which only the marked ones are set.
3. a counting sort by row, which leaves every row of C sorted by column.

Source: Gustavson, "Two fast algorithms for sparse matrices: multiplication and permuted
transposition", ACM TOMS 4 (3), 1978.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ...._core.native_loops import is_negative, read, write
from ....formats import SparseMatrix
from ....formats.turning.compressed_cpu import by_columns
from ....formats.turning.counting_sort import LARGEST, Compressed, transpose
from ....masks import Mask
from ....semirings import Semiring
from ...frame.product import take
from ..result import Result, term_dtype

UNROLL = 4  # products a turn of the innermost loop of `fill`
SKIP = 4  # rows that `pattern` passes over together, where columns of A are long


class Pattern(NamedTuple):
    """Rows of each column of C, unsorted: (n + 1,) offsets, (capacity + 1,) rows.

    `cut`: there are more, and the offsets from some column on are the capacity. Else `total` is
    their number.
    """

    indptr: Array
    rows: Array
    cut: Array
    total: Array


class Found(NamedTuple):
    """A and B by columns, with the numbers of their slots for values, and where C has entries."""

    a: Compressed
    b: Compressed
    where: Pattern


class Allowed(NamedTuple):
    """Where C may hold entries: columns of rows (with truth values or None), or a dense (m, n).

    `complement`: the sparse form lists where it may not.
    """

    sparse: Compressed | None
    dense: Array | None
    complement: bool


def multiply(
    semiring: Semiring,
    A: SparseMatrix,
    B: SparseMatrix,
    mask: Mask | None,
    found: Found | None,
    *,
    nse: int,
) -> Result:
    """The product by rows; `found` is its pattern where somebody has it."""
    m, n, slots = A.shape[0], B.shape[1], max(nse, 1)
    if found is None:
        a, b = by_columns(A), by_columns(B)
        where = pattern(a, b, _allowed_by_columns(mask), m, nse)
    else:
        a, b = (c._replace(data=take(M.data, c.data)) for c, M in ((found.a, A), (found.b, B)))
        where = found.where
    values, wrapped = fill(semiring, a, b, where, m, slots)
    spare = max(slots - where.rows.shape[0], 0)
    columns = Compressed(where.indptr, jnp.pad(where.rows, (0, spare))[:slots], values)
    rows = transpose(columns, m)
    indices = jnp.where(jnp.arange(slots) < rows.indptr[-1], rows.indices, n)
    total = jnp.where(where.cut, nse + 1, where.total)
    return Result(rows.indptr, indices[:nse], rows.data[:nse], total, wrapped)


def find(A: SparseMatrix, B: SparseMatrix, mask: Mask | None, capacity: int) -> Found:
    """The pattern of the product, before its values; those of A and B are numbers of slots."""
    a, b = by_columns(A), by_columns(B)
    return Found(a, b, pattern(a, b, _allowed_by_columns(mask), A.shape[0], capacity))


def _allowed_by_columns(mask: Mask | None) -> Allowed | None:
    if mask is None:
        return None
    source = mask.source
    if not isinstance(source, SparseMatrix):
        return Allowed(None, source ^ mask.complement, False)
    true = jnp.ones(source.nse, bool) if mask.structural else source.data.astype(bool)
    return Allowed(by_columns(source.with_data(true)), None, mask.complement)


def pattern(
    a: Compressed, b: Compressed, allowed: Allowed | None, m: int, capacity: int
) -> Pattern:
    """The `Pattern` of the product of A and B, both by columns. It ends where `capacity` does.

    Row i is marked by `mark[i]`, which is j once it is found in column j: any other mark means that
    it is new. A mask marks by j what it forbids. Or it marks by ~j what it allows, and then only
    that mark is new. Slot m takes the marks that do not count. Stretches of A in which nothing is
    new, most of them where many products fall on one place, are passed over by reads alone.
    """
    n = b.indptr.shape[0] - 1
    long = a.indices.shape[0] >= 2 * SKIP * (a.indptr.shape[0] - 1)
    only = allowed is not None and not (allowed.sparse is not None and allowed.complement)

    def is_new(mark, i, j):
        return read(mark, i) == ~j if only else read(mark, i) != j

    def column(c):
        j, e, top, mark, rows, ends = c
        last = read(b.indptr, j + 1)
        if allowed is not None:
            mark = _mark_allowed(allowed, mark, j, m)
            if only and allowed.sparse is not None:
                nothing = read(allowed.sparse.indptr, j) == read(allowed.sparse.indptr, j + 1)
                e = jnp.where(nothing, last, e)
        mark = write(mark, jnp.int32(m), j)

        def entry(c):
            e, top, mark, rows = c
            k = read(b.indices, e)
            end = read(a.indptr, k + 1)

            def stretch(c):
                f, top, mark, rows = c

                def known(f):
                    inside = f + (SKIP - 1) < end
                    for u in range(SKIP):
                        inside &= ~is_new(mark, read(a.indices, f + u), j)
                    return inside

                if long:
                    (f,) = lax.while_loop(lambda c: known(c[0]), lambda c: (c[0] + SKIP,), (f,))
                for u in range(2):
                    i = jnp.where(f + u < end, read(a.indices, f + u), m)
                    new = is_negative(-is_new(mark, i, j).astype(jnp.int32))
                    mark = write(mark, jnp.where(new > 0, i, m), j)
                    rows = write(rows, jnp.minimum(top, capacity), i)
                    top = top + new
                return f + 2, top, mark, rows

            first = (read(a.indptr, k), top, mark, rows)
            _, top, mark, rows = lax.while_loop(lambda c: c[0] < end, stretch, first)
            return e + 1, top, mark, rows

        e, top, mark, rows = lax.while_loop(lambda c: c[0] < last, entry, (e, top, mark, rows))
        return j + 1, e, top, mark, rows, write(ends, j + 1, jnp.minimum(top, capacity))

    # 2^31 - 1 slots at most, and a column adds less than 2^31 rows: the sum never wraps unseen.
    marks, rows = jnp.full(m + 1, LARGEST), jnp.zeros(capacity + 1, jnp.int32)
    state = (jnp.int32(0), b.indptr[0], jnp.int32(0), marks, rows, jnp.zeros(n + 1, jnp.int32))
    j, _, total, _, rows, ends = lax.while_loop(
        lambda c: (c[0] < n) & (c[2] >= 0) & (c[2] <= capacity), column, state
    )
    cut = (total < 0) | (total > capacity)
    ends = jnp.where(jnp.arange(n + 1) < j, ends, jnp.where(cut, capacity, total))
    return Pattern(ends, rows, cut, jnp.where(cut, capacity, total))


def _mark_allowed(allowed: Allowed, mark: Array, j: Array, m: int) -> Array:
    if allowed.sparse is None:
        dense = allowed.dense
        assert dense is not None

        def cell(c):
            i, mark = c
            here = lax.dynamic_slice(dense, (i, j), (1, 1), allow_negative_indices=False)
            return i + 1, write(mark, jnp.where(lax.squeeze(here, (0, 1)), i, m), ~j)

        return lax.while_loop(lambda c: c[0] < m, cell, (jnp.int32(0), mark))[1]
    entries = allowed.sparse
    sign = j if allowed.complement else ~j

    def entry(c):
        e, mark = c
        i = jnp.where(read(entries.data, e), read(entries.indices, e), m)
        return e + 1, write(mark, i, sign)

    end = read(entries.indptr, j + 1)
    return lax.while_loop(lambda c: c[0] < end, entry, (read(entries.indptr, j), mark))[1]


def fill(
    semiring: Semiring, a: Compressed, b: Compressed, found: Pattern, m: int, capacity: int
) -> tuple[Array, Array]:
    """(capacity,) values of the `Pattern`, and whether a product did not fit its dtype.

    `any` takes the products from the last to the first, each over the one before.
    """
    n, add, mul = b.indptr.shape[0] - 1, semiring.add, semiring.mul
    zero = jnp.int32(0)
    dtype = term_dtype(semiring, a.data.dtype, b.data.dtype)
    identity = jnp.asarray(add.identity_of(dtype))
    first_wins = add.takes_first

    def column(c):
        j, begin, acc, values, flag = c
        last, low, high = read(b.indptr, j + 1), read(found.indptr, j), read(found.indptr, j + 1)
        _, acc = lax.while_loop(
            lambda c: c[0] < high,
            lambda c: (c[0] + 1, write(c[1], read(found.rows, c[0]), identity)),
            (low, acc),
        )

        def entry(c):
            e, acc, flag = c
            place = begin + last - 1 - e if first_wins else e
            k, y = read(b.indices, place), read(b.data, place)
            end = read(a.indptr, k + 1)

            def products(c):
                f, acc, flag = c
                for u in range(UNROLL):
                    i = jnp.where(f + u < end, read(a.indices, f + u), m)
                    x = read(a.data, f + u)
                    value = add.admit(mul.at(x, y, i, k, j))
                    if not first_wins:
                        value = add.op(read(acc, i), value).astype(dtype)
                    acc = write(acc, i, value)
                    if mul.overflow is not None:
                        flag = flag | ((f + u < end) & mul.overflow(x, y))
                return f + UNROLL, acc, flag

            state = (read(a.indptr, k), acc, flag)
            _, acc, flag = lax.while_loop(lambda c: c[0] < end, products, state)
            return e + 1, acc, flag

        first = jnp.where(low < high, begin, last)
        _, acc, flag = lax.while_loop(lambda c: c[0] < last, entry, (first, acc, flag))
        _, values = lax.while_loop(
            lambda c: c[0] < high,
            lambda c: (c[0] + 1, write(c[1], c[0], read(acc, read(found.rows, c[0])))),
            (low, values),
        )
        return j + 1, last, acc, values, flag

    acc, values = jnp.full(m + 1, identity), jnp.zeros(capacity, dtype)
    state = (zero, b.indptr[0], acc, values, jnp.asarray(False))
    state = lax.while_loop(lambda c: c[0] < n, column, state)
    return state[3], state[4]
