"""Gustavson's algorithm by columns: for jaxlib before 0.12, where `gustavson` would not be native.

Column by column, C(:, j) = add over k of mul(A(:, k), B(k, j)), in three passes, each a loop of the
kind that `native_loops` describes:

1. `pattern`: which rows a column has, in order of discovery; a row is marked when it is found.
2. `accumulate.fill`: the values, in an accumulator of m numbers.
3. a counting sort by row, which leaves every row of C sorted by column.

Source: Gustavson, "Two fast algorithms for sparse matrices: multiplication and permuted
transposition", ACM TOMS 4 (3), 1978.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ....._core.native_loops import is_negative, read, write
from .....algebra.masks import Mask
from .....algebra.semirings import Semiring
from .....formats import SparseMatrix
from .....formats.convert.compressed_cpu import by_columns
from .....formats.convert.counting_sort import LARGEST, Compressed, transpose
from ..result import Result
from .accumulate import fill

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


class Allowed(NamedTuple):
    """Where C may hold entries: a list by rows or by columns, with truth values, or a dense (m, n).

    `complement`: the sparse form lists where it may not.
    """

    sparse: Compressed | None
    dense: Array | None
    complement: bool


def multiply(
    semiring: Semiring, A: SparseMatrix, B: SparseMatrix, mask: Mask | None, *, nse: int
) -> Result:
    """The product by rows."""
    m, n, slots = A.shape[0], B.shape[1], max(nse, 1)
    a, b = by_columns(A), by_columns(B)
    where = pattern(a, b, allowed_by(by_columns, mask), m, nse)
    values, wrapped = fill(semiring, b, a, where.indptr, where.rows, m, transposed=True)
    spare = max(slots - where.rows.shape[0], 0)
    found = (jnp.pad(v, (0, spare))[:slots] for v in (where.rows, values))
    columns = Compressed(where.indptr, *found)
    rows = transpose(columns, m)
    indices = jnp.where(jnp.arange(slots) < rows.indptr[-1], rows.indices, n)
    total = jnp.where(where.cut, nse + 1, where.total)
    return Result(rows.indptr, indices[:nse], rows.data[:nse], total, wrapped)


def count(A: SparseMatrix, B: SparseMatrix, mask: Mask | None) -> Array:
    """The entries of the product; 2^31 - 1 stands for any larger number."""
    a, b, allowed = by_columns(A), by_columns(B), allowed_by(by_columns, mask)
    return pattern(a, b, allowed, A.shape[0], 0, whole=True).total


def allowed_by(compressed: Callable[[Any], Compressed], mask: Mask | None) -> Allowed | None:
    """What the mask allows; `compressed` gives a sparse one by rows or by columns."""
    if mask is None:
        return None
    source = mask.source
    if not isinstance(source, SparseMatrix):
        return Allowed(None, source ^ mask.complement, False)
    true = jnp.ones(source.nse, bool) if mask.structural else source.data.astype(bool)
    return Allowed(compressed(source.with_data(true)), None, mask.complement)


def pattern(
    a: Compressed,
    b: Compressed,
    allowed: Allowed | None,
    m: int,
    capacity: int,
    whole: bool = False,
) -> Pattern:
    """The `Pattern` of the product of A and B, both by columns. It ends where `capacity` does, or
    where `whole` only counts the others.

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
        lambda c: (c[0] < n) & (c[2] >= 0) & (whole | (c[2] <= capacity)), column, state
    )
    if whole:
        return Pattern(ends, rows, total < 0, jnp.where(total < 0, LARGEST, total))
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
