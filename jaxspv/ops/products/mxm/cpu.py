"""Sparse times sparse on a CPU, by Gustavson's algorithm: in C++ for built-in semirings; for any
other the pattern from C++ and the values by native loops, which give derivatives too."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ...._core.compat import large_loops_are_native
from ...._core.native_loops import each, read, read_natural, write, write_natural
from ...._core.operation import Operation, typed
from ...._core.reductions import rounded
from ....algebra.masks import Mask
from ....algebra.monoids import plus
from ....algebra.semirings import Semiring, any_pair, plus_times
from ....formats import CSR, SparseMatrix
from ....formats.csr import sorted_csr
from ....native import bind
from ....native.codes import MUL, PAIR, codes
from .call import Result, lists_places, sorted_mask, term_dtype

NONE, LISTED, WITHOUT = range(3)  # masks as the kernels know them
NUMBERS = ("float32", "float64", "int32", "int64", "bool")
ANY_PAIR = {"add": 2, "mul": PAIR}  # of ones any is the largest


def _codes(semiring: Semiring, A: SparseMatrix, B: SparseMatrix) -> dict[str, int] | None:
    """The semiring as the kernels know it; None: they do not serve it."""
    dtype = term_dtype(semiring, A.dtype, B.dtype)
    pairs = semiring.mul.position is None and MUL.get(semiring.mul.fn) == PAIR
    if not pairs and not A.dtype == B.dtype == dtype:
        return None
    if semiring.mul.overflow is not None and jnp.issubdtype(dtype, jnp.integer):
        return None  # only the XLA loops detect that a sum was clamped
    if pairs and semiring.add.takes_first:
        return ANY_PAIR if codes(semiring, dtype) is not None or dtype.name in NUMBERS else None
    return codes(semiring, dtype)


def no_pattern(A, B, mask) -> str | None:
    """Why the kernels do not find the places of a product, or None."""
    if mask is not None and not isinstance(mask.source, SparseMatrix):
        return "a mask that is an array is for XLA"
    if not A.index_dtype == B.index_dtype == jnp.int32:
        return "it takes indices of 32 bits"
    return bind.refused()


def not_compiled(semiring, A, B, mask, *_, **__) -> str | None:
    """Why the kernels do not compute the values, or None."""
    if _codes(semiring, A, B) is None:
        return "it takes built-in semirings on float32, float64, int32, int64 or bool, all alike"
    return no_pattern(A, B, mask)


def pattern(A: SparseMatrix, B: SparseMatrix, mask: Mask | None, *, nse: int) -> Result:
    """The places of a product; its values are true."""
    a, b = (M.with_data(jnp.zeros(M.nse, bool)) for M in (A, B))
    return multiply_natively(any_pair, a, b, mask, nse=nse)


def multiply_natively(
    semiring: Semiring, A: SparseMatrix, B: SparseMatrix, mask: Mask | None, *, nse: int
) -> Result:
    """The product; what exceeds nse is counted and not kept."""
    kind = _codes(semiring, A, B)
    assert kind is not None
    dtype = term_dtype(semiring, A.dtype, B.dtype)
    a, b = sorted_csr(A), sorted_csr(B)
    which, places = _mask(mask)
    lengths = typed(jnp.int32, a.shape[0] + 1), typed(jnp.int32, nse)
    types = *lengths, typed(dtype, nse), typed(jnp.int32)
    arrays = [v for M in (a, b) for v in (M.indptr, M.indices, jnp.asarray(M.data).astype(dtype))]
    found = bind.call("mxm", types, *arrays, *places, mask=which, columns=b.shape[1], **kind)
    indptr, indices, data, total = found
    return Result(indptr, indices, data, total, jnp.asarray(False))


def _mask(mask: Mask | None) -> tuple[int, tuple[Array, Array, Array]]:
    """The kind of a mask; its rows, columns and truth values, of which none stand for all true."""
    none = jnp.zeros(0, bool)
    if mask is None:
        return NONE, (jnp.zeros(1, jnp.int32), jnp.zeros(0, jnp.int32), none)
    rows: Any = sorted_mask(mask)
    source = rows.source
    holds = none if mask.structural or source.nse == 0 else source.data.astype(bool)
    kind = LISTED if lists_places(mask) else WITHOUT
    return kind, (source.indptr, source.indices, holds)


counted = Operation("entries of a product", internal=True)
counted.types = lambda A, B, mask, **_: typed(jnp.int32)


@counted.register("native", backend="cpu", refuse=lambda A, B, mask, **_: no_pattern(A, B, mask))
def _count_natively(A, B, mask, *, size) -> Array:
    if lists_places(mask):
        return pattern(A, B, mask, nse=mask.source.nse).total
    a, b = sorted_csr(A), sorted_csr(B)
    which, places = _mask(mask)
    operands = a.indptr, a.indices, b.indptr, b.indices, *places
    return bind.call("mxm_count", typed(jnp.int32), *operands, mask=which, columns=b.shape[1])


# Products, and entries of C, a turn of the innermost loops: so many that all stays native.
UNROLL = 4 if large_loops_are_native() else 2


def multiply(
    semiring: Semiring, A: SparseMatrix, B: SparseMatrix, mask: Mask | None, *, nse: int
) -> Result:
    """The product; what exceeds nse is counted and not kept."""
    a, b = sorted_csr(A), sorted_csr(B)
    found = pattern(a, b, mask, nse=nse)
    if nse == 0:
        return found._replace(data=jnp.zeros(0, term_dtype(semiring, a.dtype, b.dtype)))
    places = found.indptr, found.indices
    values, wrapped = fill(semiring, a, b, *places, masked=mask is not None)
    return found._replace(data=values, wrapped=wrapped)


def fill(
    semiring: Semiring, a: CSR, b: CSR, ends: Array, columns: Array, *, masked: bool = False
) -> tuple[Array, Array]:
    """The values of C = A B at the `columns` between `ends`, by rows, and whether a product there
    did not fit its dtype. Columns behind the last end are n. masked: some products belong to none.

    `any` takes the products from the last to the first, each over the one before.
    """
    (m, _), n, add, mul = a.shape, b.shape[1], semiring.add, semiring.mul
    dtype = term_dtype(semiring, a.dtype, b.dtype)
    wide, joined = add.one_by_one(dtype)
    identity = rounded(jnp.asarray(add.identity_of(dtype)), wide)
    first_wins = add.takes_first
    spare = n + 1  # for what does not count; place n is the 0 of padding

    def row(i, begin, low, acc, asked, values, flag):
        last, high = read(a.indptr, i + 1), read(ends, i + 1)

        def clear(c):
            p, acc, asked = c
            for u in range(UNROLL):
                j = jnp.where(p + u < high, read_natural(columns, p + u), spare)
                acc = write_natural(acc, j, identity)
                asked = None if asked is None else write_natural(asked, j, i)
            return p + UNROLL, acc, asked

        _, acc, asked = lax.while_loop(lambda c: c[0] < high, clear, (low, acc, asked))

        def entry(e, acc, flag):
            at = begin + last - 1 - e if first_wins else e
            k, x = read(a.indices, at), read(a.data, at)
            end = read(b.indptr, k + 1)

            def products(c):
                f, acc, flag = c
                for u in range(UNROLL):
                    j = jnp.where(f + u < end, read_natural(b.indices, f + u), spare)
                    y = read_natural(b.data, f + u)
                    value = add.admit(mul.at(x, y, i, k, j))
                    if not first_wins:
                        value = joined(read_natural(acc, j), value)
                    acc = write_natural(acc, j, value)
                    if mul.overflow is not None:
                        here = f + u < end
                        if asked is not None:
                            here &= read_natural(asked, j) == i
                        flag = flag | (here & mul.overflow(x, y))
                return f + UNROLL, acc, flag

            state = (read(b.indptr, k), acc, flag)
            return lax.while_loop(lambda c: c[0] < end, products, state)[1:]

        acc, flag = each(jnp.where(low < high, begin, last), last, entry, acc, flag)

        def take(c):
            p, values = c
            for u in range(UNROLL):
                value = rounded(read_natural(acc, read_natural(columns, p + u)), dtype)
                values = write_natural(values, p + u, value)
            return p + UNROLL, values

        _, values = lax.while_loop(lambda c: c[0] < high, take, (low, values))
        return last, high, acc, asked, values, flag

    acc = jnp.full(n + 2, add.identity_of(dtype)).at[n].set(np.zeros((), dtype))
    acc = rounded(acc, wide)
    asked = None  # for each column the last row that has it
    if masked and mul.overflow is not None:
        asked = jnp.full(n + 2, -1, jnp.int32)
    values = jnp.zeros(columns.shape[0], dtype)
    start = a.indptr[0], jnp.int32(0), acc, asked, values, jnp.asarray(False)
    return each(0, m, row, *start)[4:]


TURN = 2  # products a turn of the innermost loop: with 4 the body is no longer compiled natively


def product_along(A: CSR, B: CSR, C: CSR) -> Array:
    """(C.nse,) values of A B at the entries of C, which has all of them, or all that fit."""
    return fill(plus_times, A, B, C.indptr, C.indices)[0]


def cotangents(A: CSR, B: CSR, C: CSR, w: Array) -> tuple[Array, Array]:
    """(by_a, by_b) for cotangents w (C.nse,); 0 in padding."""
    (m, _), n, places = A.shape, B.shape[1], C.nse
    wide, added = plus.one_by_one(w.dtype)

    def row(i, mark, by_a, by_b):
        low, high = read(C.indptr, i), read(C.indptr, i + 1)
        (mark,) = each(low, high, lambda p, mark: (write(mark, read(C.indices, p), p),), mark)

        def entry(e, by_a, by_b):
            k, x = read(A.indices, e), read(A.data, e)
            end = read(B.indptr, k + 1)

            def products(c):
                f, total, by_b = c
                for u in range(TURN):
                    inside = f + u < end
                    cell = read(mark, jnp.where(inside, read(B.indices, f + u), n))
                    valid = cell >= low  # marks of rows before are smaller
                    cotangent = read(w, jnp.where(valid, cell, places))
                    total = added(total, jnp.where(valid, cotangent * read(B.data, f + u), 0))
                    at = jnp.where(inside, f + u, B.nse)
                    more = jnp.where(valid, cotangent * x, 0)
                    by_b = write(by_b, at, added(read(by_b, at), more))
                return f + TURN, total, by_b

            start = (read(B.indptr, k), rounded(jnp.zeros((), w.dtype), wide), by_b)
            _, total, by_b = lax.while_loop(lambda c: c[0] < end, products, start)
            return write(by_a, e, rounded(total, w.dtype)), by_b

        return mark, *each(read(A.indptr, i), read(A.indptr, i + 1), entry, by_a, by_b)

    marks, w = jnp.full(n + 1, -1, jnp.int32), jnp.append(w, 0)
    sums = jnp.zeros(A.nse, w.dtype), rounded(jnp.zeros(B.nse + 1, w.dtype), wide)
    _, by_a, by_b = each(0, m, row, marks, *sums)
    return by_a, rounded(by_b, w.dtype)[:-1]
