"""Sparse times sparse for a CPU: Gustavson's algorithm by rows as native loops.

C(i, :) = sum over k of mul(A(i, k), B(k, :)), in two passes, loops as `native_loops` describes:

1. `_pattern`: each product sets the bit of its column, that of the 32-column word, and that of the
   group of 32 words. Reading the bits gives the columns in order, without a sort; they are
   cleared before the next row. `count` does the same without writing the columns.
2. `accumulate.fill`: the values, in an accumulator of n numbers of which a row's columns are used.

A read that two operations share is made by each of them, and behind a write costs a copy of the
whole array: here each array has one reader between two writes.

Source: Gustavson, "Two fast algorithms for sparse matrices: multiplication and permuted
transposition", ACM TOMS 4 (3), 1978.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ....._core.compat import large_loops_are_native
from ....._core.native_loops import read, read_natural, write
from .....algebra.masks import Mask
from .....algebra.semirings import Semiring
from .....formats import SparseMatrix
from .....formats.convert.compressed_cpu import by_rows
from .....formats.convert.counting_sort import LARGEST, Compressed
from .....formats.csr import sorted_csr
from ..result import Result
from . import gustavson_by_columns
from .accumulate import fill
from .gustavson_by_columns import Allowed, allowed_by

TURN = 4  # products a turn of the innermost loop
SKIP = 2  # empty groups passed over together
WIDE = 1 << 18  # columns from which on blocks of groups are marked too
WORD, GROUP, BLOCK = 5, 10, 15  # log2 of the columns of each


class Bits(NamedTuple):
    """Columns of a row: a bit each in `words`, a bit for each word in `groups`, and in `blocks`,
    of wide matrices, one for each group."""

    words: Array
    groups: Array
    blocks: Array | None


def multiply(
    semiring: Semiring, A: SparseMatrix, B: SparseMatrix, mask: Mask | None, *, nse: int
) -> Result:
    """The product; entries beyond nse are left out, `total` counts them too."""
    if not large_loops_are_native():
        return gustavson_by_columns.multiply(semiring, A, B, mask, nse=nse)
    a, b = _rows(A), _rows(B)
    ends, columns, total = _pattern(a, b, allowed_by(by_rows, mask), B.shape[1], nse)
    values, wrapped = fill(semiring, a, b, ends, columns, B.shape[1])
    return Result(ends, columns[:nse], values[:nse], total, wrapped)


def _pattern(
    a: Compressed, b: Compressed, allowed: Allowed | None, n: int, nse: int
) -> tuple[Array, Array, Array]:
    """Offsets and columns of C, cut at nse entries, and their number; nse + 1: there are more."""
    m = a.indptr.shape[0] - 1

    def row(c):
        i, top, _, bits, stamps, columns, ends = c
        stamps = _stamp(allowed, stamps, i)
        reach, bits = _products(i, a, b, (allowed, stamps), n, bits)

        def emit(base, word, state):
            def column(c):
                word, top, columns = c
                found = write(columns, top, base + _lowest(word))
                return word & (word - 1), top + 1, found

            top, columns, left = state
            left, top, columns = lax.while_loop(
                lambda c: (c[0] != 0) & (c[1] < nse), column, (word, top, columns)
            )
            return left, (top, columns, left)

        bits, (top, columns, left) = _sweep(bits, reach, emit, (top, columns, jnp.uint32(0)))
        return i + 1, top, left, bits, stamps, columns, write(ends, i + 1, top)

    state = (
        *(jnp.int32(0), jnp.int32(0), jnp.uint32(0), _no_bits(n), _no_stamps(allowed, n)),
        *(jnp.full(max(nse, 1), n, jnp.int32), jnp.zeros(m + 1, jnp.int32)),
    )
    state = lax.while_loop(lambda c: (c[0] < m) & (c[2] == 0), row, state)
    i, top, left, _, _, columns, ends = state
    return jnp.where(jnp.arange(m + 1) <= i, ends, top), columns, top + (left != 0)


def count(A: SparseMatrix, B: SparseMatrix, mask: Mask | None) -> Array:
    """The entries of the product; 2^31 - 1 stands for any larger number."""
    if not large_loops_are_native():
        return gustavson_by_columns.count(A, B, mask)
    m, n = A.shape[0], B.shape[1]
    a, b, allowed = _rows(A), _rows(B), allowed_by(by_rows, mask)

    def row(c):
        i, total, bits, stamps = c
        stamps = _stamp(allowed, stamps, i)
        reach, bits = _products(i, a, b, (allowed, stamps), n, bits)

        def emit(base, word, total):
            def once(c):
                return jnp.uint32(0), c[1] + lax.population_count(c[0]).astype(jnp.int32)

            return lax.while_loop(lambda c: c[0] != 0, once, (word, total))

        bits, total = _sweep(bits, reach, emit, total)
        return i + 1, total, bits, stamps

    state = (jnp.int32(0), jnp.int32(0), _no_bits(n), _no_stamps(allowed, n))
    # A row adds less than 2^31 columns: the sum never wraps unseen.
    total = lax.while_loop(lambda c: (c[0] < m) & (c[1] >= 0), row, state)[1]
    return jnp.where(total < 0, LARGEST, total)


def _rows(A: Any) -> Compressed:
    return by_rows(A if A.sorted else sorted_csr(A))


def _products(
    i: Array,
    a: Compressed,
    b: Compressed,
    mask: tuple[Allowed | None, Array | None],
    n: int,
    bits: Bits,
) -> tuple[tuple[Array, Array], Bits]:
    """(least and largest column of the rows of B that row i of A meets, bits with the columns of
    its products set)."""
    spare = _spare(n)

    def entry(c):
        e, least, most, bits = c
        k = read(a.indices, e)
        first, end = read(b.indptr, k), read(b.indptr, k + 1)
        # Of a row without entries its neighbours': the reach is too wide, and no column is missed.
        least = jnp.minimum(least, read(b.indices, first))
        most = jnp.maximum(most, read(b.indices, end - 1))

        def products(c):
            f, bits = c
            for u in range(TURN):
                j = read(b.indices, f + u)
                bits = _set(bits, jnp.where((f + u < end) & _may(mask, i, j), j, spare))
            return f + TURN, bits

        _, bits = lax.while_loop(lambda c: c[0] < end, products, (first, bits))
        return e + 1, least, most, bits

    last, start = read(a.indptr, i + 1), (read(a.indptr, i), jnp.int32(n), jnp.int32(-1), bits)
    _, least, most, bits = lax.while_loop(lambda c: c[0] < last, entry, start)
    return (least, most), bits


# ---- Bits of columns ----


def _spare(n: int) -> int:
    """A column for products that the mask excludes, beyond every column that a sweep visits."""
    step = BLOCK if n > WIDE else GROUP
    return ((n >> step) + 2 + SKIP) << step


def _no_bits(n: int) -> Bits:
    def zeros(level):
        return jnp.zeros((_spare(n) >> level) + 1 + SKIP, jnp.uint32)

    return Bits(zeros(WORD), zeros(GROUP), zeros(BLOCK) if n > WIDE else None)


def _set(bits: Bits, j: Array) -> Bits:
    j = j.astype(jnp.uint32)

    def at(array, j):
        bit = lax.shift_left(np.uint32(1), j & 31)
        place = lax.shift_right_logical(j, np.uint32(WORD))
        return write(array, place, read(array, place) | bit), place

    words, j = at(bits.words, j)
    groups, j = at(bits.groups, j)
    return Bits(words, groups, None if bits.blocks is None else at(bits.blocks, j)[0])


def _lowest(word: Array) -> Array:
    """The number of the lowest bit that is set."""
    return lax.population_count((word & -word) - 1).astype(jnp.int32)


def _sweep(
    bits: Bits, reach: tuple[Array, Array], emit: Callable[..., Any], state: Any
) -> tuple[Bits, Any]:
    """All words with bits in order: `0, state = emit(first column, word, state)`, bits taken back.

    A number other than 0 stays in the word.
    """

    def skip(array, s, last):
        def none(s):
            some = read(array, s)
            for u in range(1, SKIP):
                some = some | read(array, s + u)
            return (some == 0) & (s <= last)

        return lax.while_loop(lambda c: none(c[0]), lambda c: (c[0] + SKIP,), (s,))[0]

    def groups_from(first, last, words, groups, state):
        def group(c):
            s, words, groups, state = c
            s = skip(groups, s, last)

            def word(c):
                rest, words, state = c
                at = (s << WORD) + _lowest(rest)
                left, state = emit(at << WORD, read(words, at), state)
                return rest & (rest - 1), write(words, at, left), state

            start = (read(groups, s), words, state)
            rest, words, state = lax.while_loop(lambda c: c[0] != 0, word, start)
            return s + 1, words, write(groups, s, rest), state

        start = (first, words, groups, state)
        return lax.while_loop(lambda c: c[0] <= last, group, start)[1:]

    least, most = reach
    if bits.blocks is None:
        words, groups, state = groups_from(
            least >> GROUP, most >> GROUP, bits.words, bits.groups, state
        )
        return Bits(words, groups, None), state

    def block(c):
        q, words, groups, blocks, state = c
        q = skip(blocks, q, most >> BLOCK)
        first = q << WORD
        words, groups, state = groups_from(first, first + 31, words, groups, state)
        return q + 1, words, groups, write(blocks, q, jnp.uint32(0)), state

    start = (least >> BLOCK, bits.words, bits.groups, bits.blocks, state)
    _, words, groups, blocks, state = lax.while_loop(
        lambda c: c[0] <= (most >> BLOCK), block, start
    )
    return Bits(words, groups, blocks), state


# ---- Masks ----


def _no_stamps(allowed: Allowed | None, n: int) -> Array | None:
    """For each column the last row that the mask lists it in; one more for what does not count."""
    listed = allowed is not None and allowed.sparse is not None
    return jnp.full(n + 1, -1, jnp.int32) if listed else None


def _stamp(allowed: Allowed | None, stamps: Array | None, i: Array) -> Array | None:
    if allowed is None or allowed.sparse is None or stamps is None:
        return None
    entries, n = allowed.sparse, stamps.shape[0] - 1

    def entry(c):
        e, stamps = c
        j = jnp.where(read(entries.data, e), read(entries.indices, e), n)
        return e + 1, write(stamps, j, i)

    last = read(entries.indptr, i + 1)
    return lax.while_loop(lambda c: c[0] < last, entry, (read(entries.indptr, i), stamps))[1]


def _may(mask: tuple[Allowed | None, Array | None], i: Array, j: Array) -> Any:
    """Whether the mask allows C[i, j]; `stamps` are those of row i."""
    allowed, stamps = mask
    if allowed is None:
        return True
    if stamps is not None:
        return (read_natural(stamps, j) == i) ^ allowed.complement
    assert allowed.dense is not None
    here = lax.dynamic_slice(allowed.dense, (i, j), (1, 1), allow_negative_indices=False)
    return lax.squeeze(here, (0, 1))
