"""Sparse matrix times sparse vector on a CPU: in C++, or native loops over the edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from ...._core.native_loops import is_negative, read, write
from ...._core.reductions import rounded
from ....algebra.semirings import Semiring
from ....formats import CSC, CSR
from ....formats.vector import SparseVector
from ....native import bind
from ....native.codes import codes, refused
from ..common.product import product, take


def columns_sequentially(
    semiring: Semiring, A: CSC, x: SparseVector, allowed: Array | None, *, flip: bool, nse: int
) -> SparseVector:
    """`y = A x`: every product goes to a dense accumulator as it comes, and marks its row.

    The marked rows are listed at the end. O(edges that x selects + m), whatever the capacities.
    """
    m = A.shape[0]
    term, dtype, beyond = _scalars(semiring, A, x, flip)
    wide, joined = semiring.add.one_by_one(dtype)

    def column(c):
        k, *state = c
        inner, value = read(x.indices, k), read(x.data, k)
        last = read(A.indptr, inner + 1)

        def entry(c):
            e, total, mark, flag = c
            out, data = read(A.indices, e), read(A.data, e)
            here, seen = read(total, out), is_negative(read(mark, out))
            new = term(data, out, inner, value)
            new = lax.select(seen > 0, joined(here, new), rounded(new, wide))
            # Both writes depend on `seen`, so that both reads come before them: without a mask too.
            wanted = seen < 2 if allowed is None else read(allowed, out)
            total = write(total, out, lax.select(wanted, new, here))
            mark = write(mark, out, jnp.where(wanted, -1, -seen))
            return e + 1, total, mark, flag | (wanted & beyond(data, value))

        state = lax.while_loop(lambda c: c[0] < last, entry, (read(A.indptr, inner), *state))
        return k + 1, *state[1:]

    start = rounded(jnp.zeros(m, dtype), wide), jnp.zeros(m, jnp.int32), jnp.asarray(False)
    _, total, mark, flag = lax.while_loop(
        lambda c: c[0] < x.count, column, (jnp.zeros((), x.count.dtype), *start)
    )

    def listed(c):
        i, count, rows = c
        here = is_negative(read(mark, i))
        at = jnp.minimum(count, nse)  # the slot behind the last takes what does not fit
        return i + 1, count + here, write(rows, at, jnp.where(here > 0, i, m))

    state = (jnp.int32(0), jnp.int32(0), jnp.full(nse + 1, m, jnp.int32))
    _, count, rows = lax.while_loop(lambda c: c[0] < m, listed, state)
    return _vector(take(rounded(total, dtype), rows[:nse]), rows, count, flag, A, x)


def rows_sequentially(
    semiring: Semiring, A: CSR, x: SparseVector, allowed: Array | None, *, flip: bool, nse: int
) -> SparseVector:
    """`y = A x`: each allowed row looks its columns up in x. O(their entries + m + n)."""
    m, n = A.shape
    term, dtype, beyond = _scalars(semiring, A, x, flip)
    wide, joined = semiring.add.one_by_one(dtype)
    own = jnp.arange(x.nse, dtype=jnp.int32)
    slots = jnp.full(n, -1, jnp.int32).at[x.indices].set(own, mode="drop")

    def row(c):
        out, count, rows, values, flag = c
        first, last = read(A.indptr, out), read(A.indptr, out + 1)
        if allowed is not None:
            last = jnp.where(read(allowed, out), last, first)

        def entry(c):
            e, total, seen, flag = c
            inner, data = read(A.indices, e), read(A.data, e)
            slot = read(slots, inner)
            valid = slot >= 0
            value = read(x.data, jnp.maximum(slot, 0))
            new = term(data, out, inner, value)
            new = lax.select(seen, joined(total, new), rounded(new, wide))
            return (
                e + 1,
                lax.select(valid, new, total),
                seen | valid,
                flag | (valid & beyond(data, value)),
            )

        start = (first, rounded(jnp.zeros((), dtype), wide), jnp.asarray(False), flag)
        _, total, seen, flag = lax.while_loop(lambda c: c[0] < last, entry, start)
        at = jnp.minimum(count, nse)  # the slot behind the last takes what does not fit
        rows, values = (
            write(rows, at, jnp.where(seen, out, m)),
            write(values, at, rounded(total, dtype)),
        )
        return out + 1, count + seen.astype(jnp.int32), rows, values, flag

    blank = jnp.full(nse + 1, m, jnp.int32), jnp.zeros(nse + 1, dtype)
    state = (jnp.int32(0), jnp.int32(0), *blank, jnp.asarray(False))
    _, count, rows, values, flag = lax.while_loop(lambda c: c[0] < m, row, state)
    return _vector(values[:nse], rows, count, flag, A, x)


def _scalars(
    semiring: Semiring, A: CSC | CSR, x: SparseVector, flip: bool
) -> tuple[Callable[..., Array], Any, Callable[..., Array]]:
    """The product of one entry and one value, its dtype, and whether it is beyond that dtype."""
    overflow = semiring.mul.overflow

    def term(data, out, inner, value):
        return semiring.add.admit(product(semiring, data, out, inner, value, flip=flip))

    def beyond(data, value):
        if overflow is None:
            return jnp.asarray(False)
        return overflow(value, data) if flip else overflow(data, value)

    place = jax.ShapeDtypeStruct((), jnp.int32)
    data, value = (jax.ShapeDtypeStruct((), v.dtype) for v in (A.data, x.data))
    return term, jax.eval_shape(term, data, place, place, value).dtype, beyond


def _vector(values, rows, count, flag, A, x) -> SparseVector:
    nse = values.shape[0]
    over = (count > nse) | flag | A.overflow | x.overflow
    return SparseVector(values, rows[:nse], jnp.minimum(count, nse), over, A.shape[:1])


def refuse(semiring: Any, A: Any, x: Any, allowed: Any, *, flip: bool, nse: int) -> str | None:
    """Why the kernels cannot serve a call: a sentence, or None."""
    if A.compressed is None or A.index_dtype != jnp.int32:
        return f"{type(A).__name__} has no compressed axis with indices of 32 bits"
    if 0 in (A.nse, x.nse, nse, *A.shape):
        return "there is nothing to multiply"
    if semiring.mul.overflow is not None and jnp.issubdtype(A.dtype, jnp.integer):
        return "only the XLA loops detect that a sum was clamped"
    alike = A.dtype == x.dtype and not semiring.add.takes_first
    return refused(semiring, A.dtype if alike else None, flip)


def multiply(semiring: Any, A: Any, x: Any, allowed: Any, *, flip: bool, nse: int) -> SparseVector:
    """Columns of A are added to a dense array; each row of A looks its columns up in x."""
    m, n = A.shape
    results = tuple(
        jax.ShapeDtypeStruct(shape, dtype)
        for shape, dtype in (((nse,), jnp.int32), ((nse,), A.dtype), ((), jnp.int32))
    )
    indices, data, found = bind.call(
        "spmspv",
        results,
        *(A.indptr, A.indices, jnp.broadcast_to(A.data, A.indices.shape)),
        *(x.indices.astype(jnp.int32), x.data, x.count.astype(jnp.int32)),
        jnp.zeros(0, bool) if allowed is None else allowed,
        columns=A.compressed,
        rows=m,
        extent=n,
        **codes(semiring, A.dtype, flip),
    )
    overflow = (found > nse) | A.overflow | x.overflow
    return SparseVector(data, indices, jnp.minimum(found, nse), overflow, (m,))
