"""Sparse matrix times sparse vector on a CPU: in C++, or native loops over the edges."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from ...._core.native_loops import each, is_negative, read, write
from ...._core.operation import typed
from ...._core.reductions import rounded
from ....formats.vector import SparseVector
from ....native import bind
from ....native.codes import codes, refused
from ..common.product import take
from .api import needs_columns, op
from .xla import Call, register


def _refuse(semiring: Any, A: Any, x: Any, allowed: Any, *, flip: bool, nse: int) -> str | None:
    if A.compressed is None or A.index_dtype != jnp.int32:
        return f"{type(A).__name__} has no compressed axis with indices of 32 bits"
    if 0 in (A.nse, x.nse, nse, *A.shape):
        return "there is nothing to multiply"
    if semiring.mul.overflow is not None and jnp.issubdtype(A.dtype, jnp.integer):
        return "only the XLA loops detect that a sum was clamped"
    alike = A.dtype == x.dtype and not semiring.add.takes_first
    return refused(semiring, A.dtype if alike else None, flip)


@op.register("native", backend="cpu", refuse=_refuse)
def _native(semiring: Any, A: Any, x: Any, allowed: Any, *, flip: bool, nse: int) -> SparseVector:
    """Columns of A are added to a dense array; each row of A looks its columns up in x."""
    indices, data, found = bind.call(
        "spmspv",
        (typed(jnp.int32, nse), typed(A.dtype, nse), typed(jnp.int32)),
        *(A.indptr, A.indices, jnp.broadcast_to(A.data, A.indices.shape)),
        *(x.indices.astype(jnp.int32), x.data, x.count.astype(jnp.int32)),
        jnp.zeros(0, bool) if allowed is None else allowed,
        columns=A.compressed,
        rows=A.shape[0],
        extent=A.shape[1],
        **codes(semiring, A.dtype, flip),
    )
    return _vector(Call(semiring, A, x, allowed, flip, nse), data, indices, found, False)


def _vector(c: Call, values: Array, rows: Array, count: Array, flag: Any) -> SparseVector:
    kept = jnp.minimum(count, c.nse)
    y = SparseVector(values, rows[: c.nse], kept, count > c.nse, c.A.shape[:1])
    return c.sealed(y, flag)


@register("columns", backend="cpu", refuse=needs_columns)
def _columns(call: Call) -> SparseVector:
    """The edges that x selects one by one, into a dense accumulator that marks its rows. The marked
    rows are listed at the end. O(edges that x selects + m), whatever the capacities."""
    A, x, allowed, m, nse = call.A, call.x, call.allowed, call.A.shape[0], call.nse
    dtype, add = call.dtype, call.semiring.add
    wide, joined = add.one_by_one(dtype)

    def column(k, *state):
        inner, value = read(x.indices, k), read(x.data, k)
        last = read(A.indptr, inner + 1)

        def entry(e, total, mark, flag):
            out, data = read(A.indices, e), read(A.data, e)
            here, seen = read(total, out), is_negative(read(mark, out))
            new = add.admit(call.product(data, out, inner, value))
            new = lax.select(seen > 0, joined(here, new), rounded(new, wide))
            # Both writes depend on `seen`, so that both reads come before them: without a mask too.
            wanted = seen < 2 if allowed is None else read(allowed, out)
            total = write(total, out, lax.select(wanted, new, here))
            mark = write(mark, out, jnp.where(wanted, -1, -seen))
            return total, mark, flag | (wanted & call.beyond(data, value))

        return each(read(A.indptr, inner), last, entry, *state)

    start = rounded(jnp.zeros(m, dtype), wide), jnp.zeros(m, jnp.int32), jnp.asarray(False)
    total, mark, flag = each(0, x.count, column, *start)

    def listed(i, count, rows):
        here = is_negative(read(mark, i))
        at = jnp.minimum(count, nse)  # the slot behind the last takes what does not fit
        return count + here, write(rows, at, jnp.where(here > 0, i, m))

    count, rows = each(0, m, listed, jnp.int32(0), jnp.full(nse + 1, m, jnp.int32))
    return _vector(call, take(rounded(total, dtype), rows[:nse]), rows, count, flag)


def _needs_rows(semiring, A, x, allowed, **_) -> str | None:
    return None if A.compressed == 0 else f"it reads rows, which {type(A).__name__} does not list"


@register("row", backend="cpu", refuse=_needs_rows)
def _rows(call: Call) -> SparseVector:
    """Every allowed row looks up its columns in x. O(their entries + m + n)."""
    A, x, allowed, nse, (m, n) = call.A, call.x, call.allowed, call.nse, call.A.shape
    dtype, add = call.dtype, call.semiring.add
    wide, joined = add.one_by_one(dtype)
    own = jnp.arange(x.nse, dtype=jnp.int32)
    slots = jnp.full(n, -1, jnp.int32).at[x.indices].set(own, mode="drop")

    def row(out, count, rows, values, flag):
        first, last = read(A.indptr, out), read(A.indptr, out + 1)
        if allowed is not None:
            last = jnp.where(read(allowed, out), last, first)

        def entry(e, total, seen, flag):
            inner, data = read(A.indices, e), read(A.data, e)
            slot = read(slots, inner)
            valid = slot >= 0
            value = read(x.data, jnp.maximum(slot, 0))
            new = add.admit(call.product(data, out, inner, value))
            new = lax.select(seen, joined(total, new), rounded(new, wide))
            flag |= valid & call.beyond(data, value)
            return lax.select(valid, new, total), seen | valid, flag

        start = rounded(jnp.zeros((), dtype), wide), jnp.asarray(False), flag
        total, seen, flag = each(first, last, entry, *start)
        at = jnp.minimum(count, nse)  # the slot behind the last takes what does not fit
        rows = write(rows, at, jnp.where(seen, out, m))
        values = write(values, at, rounded(total, dtype))
        return count + seen.astype(jnp.int32), rows, values, flag

    blank = jnp.full(nse + 1, m, jnp.int32), jnp.zeros(nse + 1, dtype)
    count, rows, values, flag = each(0, m, row, jnp.int32(0), *blank, jnp.asarray(False))
    return _vector(call, values[:nse], rows, count, flag)
