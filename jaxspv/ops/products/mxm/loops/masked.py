"""Masked sparse products for a CPU: Gustavson's algorithm by rows, one cell for each place allowed.

Row i of a sparse mask marks its columns by its slots. The products of row i are joined into the
cells of the slots that their columns are marked with, and the cells that were hit are written out.
One native loop (see `native_loops`): no pattern beforehand and no sort, for the mask has both.

Source: Azad, Buluc, Gilbert, "Parallel triangle counting and enumeration using matrix algebra",
IPDPSW 2015 (masked products).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from ....._core.native_loops import read, write
from .....algebra.masks import Mask
from .....algebra.semirings import Semiring
from .....formats import SparseMatrix
from .....formats.convert.compressed_cpu import by_rows
from .....formats.csr import sorted_csr
from ..result import Result, term_dtype

TURN = 2  # products a turn of the innermost loop: with 4 the body is no longer compiled natively


def multiply_where(
    semiring: Semiring, A: SparseMatrix, B: SparseMatrix, mask: Mask, *, nse: int
) -> Result:
    """The product at the places that a mask lists; what exceeds nse is counted and not kept."""
    a, b, allowed = by_rows(A), by_rows(B), by_rows(sorted_csr(mask.source))
    true = jnp.ones(allowed.data.shape, bool) if mask.structural else allowed.data.astype(bool)
    m, n, places, capacity = A.shape[0], B.shape[1], allowed.indices.shape[0], nse
    add, mul, zero = semiring.add, semiring.mul, jnp.int32(0)
    dtype = term_dtype(semiring, A.dtype, B.dtype)
    identity = jnp.asarray(add.identity_of(dtype))
    first_wins = add.takes_first  # the products from the last to the first, each over the others
    none, forbidden = n, n + 1  # cells of `mark` for no column, and for what the mask has as False

    def row(c):
        i, top, mark, acc, hit, columns, values, ends, flag = c
        low, high = read(allowed.indptr, i), read(allowed.indptr, i + 1)

        def allow(c):
            p, mark = c
            j = jnp.where(read(true, p), read(allowed.indices, p), forbidden)
            return p + 1, write(mark, j, p)

        _, mark = lax.while_loop(lambda c: c[0] < high, allow, (low, mark))
        begin, last = read(a.indptr, i), read(a.indptr, i + 1)

        def entry(c):
            e, acc, hit, flag = c
            place = begin + last - 1 - e if first_wins else e
            k, x = read(a.indices, place), read(a.data, place)
            end = read(b.indptr, k + 1)

            def products(c):
                f, acc, hit, flag = c
                for u in range(TURN):
                    j = jnp.where(f + u < end, read(b.indices, f + u), none)
                    cell = read(mark, j)
                    valid = cell >= low  # marks of rows before are smaller
                    cell = jnp.where(valid, cell, places)
                    y = read(b.data, f + u)
                    value = add.admit(mul.at(x, y, i, k, j))
                    if not first_wins:
                        value = add.op(read(acc, cell), value).astype(dtype)
                    acc, hit = write(acc, cell, value), write(hit, cell, jnp.int32(1))
                    if mul.overflow is not None:
                        flag = flag | (valid & mul.overflow(x, y))
                return f + TURN, acc, hit, flag

            state = (read(b.indptr, k), acc, hit, flag)
            _, acc, hit, flag = lax.while_loop(lambda c: c[0] < end, products, state)
            return e + 1, acc, hit, flag

        first = jnp.where(low < high, begin, last)
        state = (first, acc, hit, flag)
        _, acc, hit, flag = lax.while_loop(lambda c: c[0] < last, entry, state)

        def emit(c):
            p, top, columns, values = c
            valid = read(hit, p)
            at = jnp.where(valid > 0, jnp.minimum(top, capacity), capacity)
            columns = write(columns, at, read(allowed.indices, p))
            return p + 1, top + valid, columns, write(values, at, read(acc, p))

        state = (low, top, columns, values)
        _, top, columns, values = lax.while_loop(lambda c: c[0] < high, emit, state)
        ends = write(ends, i + 1, jnp.minimum(top, capacity))
        return i + 1, top, mark, acc, hit, columns, values, ends, flag

    state = (
        zero,
        zero,
        jnp.full(n + 2, -1, jnp.int32),
        jnp.full(places + 1, identity),
        jnp.zeros(places + 1, jnp.int32),
        jnp.full(capacity + 1, n, jnp.int32),
        jnp.zeros(capacity + 1, dtype),
        jnp.zeros(m + 1, jnp.int32),
        jnp.asarray(False),
    )
    _, top, _, _, _, columns, values, ends, flag = lax.while_loop(lambda c: c[0] < m, row, state)
    kept = jnp.where(jnp.arange(capacity) < ends[-1], columns[:capacity], n)
    return Result(ends, kept, values[:capacity], top, flag)
