"""Sparse times sparse by expansion, sorting and compression: in one step or in chunks."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ...._core.batching import batch_any
from ....algebra.masks import Mask
from ....algebra.semirings import Semiring
from .expand import (
    LARGEST,
    Operands,
    Position,
    allowed_at,
    next_products,
    saturating_cumsum,
    sort_by_place,
    terms_of,
    wraps,
)
from .result import Result, term_dtype


def multiply_once(
    semiring: Semiring, o: Operands, mask: Mask | None, *, nse: int, size: int
) -> Result:
    """All products in one step: `size` must not be less than their number."""
    n, window = o.shape[1], o.row.shape[0]
    start = Position(jnp.int32(0), jnp.int32(0))
    p, _ = next_products(o, start, size, window)
    terms, x, y = terms_of(semiring, o, p)
    p = p._replace(valid=p.valid & allowed_at(mask, p.row, p.col))
    g = sort_by_place(p.row, jnp.where(p.valid, p.col, n), o.shape)
    values = semiring.add.segment_reduce(terms[g.order], g.group, nse, sorted=True)
    place = jnp.where(g.starts, g.group, nse)
    indices = jnp.full(nse, n, jnp.int32).at[place].set(g.col, mode="drop")
    # Sorting moves products only within their row, so the offsets of rows stay valid.
    ends = saturating_cumsum(o.length, size, n)
    entries = jnp.append(jnp.int32(0), ends)[o.indptr]
    before = jnp.append(jnp.int32(0), jnp.cumsum(g.starts, dtype=jnp.int32))
    indptr = jnp.minimum(before[entries], nse)
    return Result(indptr, indices, values, g.count, wraps(semiring, p, x, y))


class _State(NamedTuple):
    at: Position
    carried: Array  # how many entries of the row that may go on
    carried_row: Array
    carried_col: Array
    carried_data: Array
    count: Array  # entries of each row
    indices: Array
    data: Array
    total: Array
    wrapped: Array


def multiply_in_steps(
    semiring: Semiring, o: Operands, mask: Mask | None, *, nse: int, size: int
) -> Result:
    """`size` products at a time, in a loop that ends when A does; O(size + n + nse) memory."""
    (m, n), entries = o.shape, o.row.shape[0]
    window = min(size, entries)
    dtype = term_dtype(semiring, o.data.dtype, o.values.dtype)
    capacity = min(n, entries * max(o.indices.shape[0], 1))  # of one row of C

    def step(s: _State) -> _State:
        p, at = next_products(o, s.at, size, window)
        terms, x, y = terms_of(semiring, o, p)
        terms = semiring.add.admit(terms)
        p = p._replace(valid=p.valid & allowed_at(mask, p.row, p.col))
        old = jnp.arange(capacity, dtype=jnp.int32) < s.carried
        row = jnp.concatenate([jnp.where(old, s.carried_row, m), jnp.where(p.valid, p.row, m)])
        col = jnp.concatenate([s.carried_col, p.col])
        g = sort_by_place(row, col, (m, n))
        both = jnp.concatenate([s.carried_data, terms])
        values = semiring.add.segment_reduce(both[g.order], g.group, row.shape[0], sorted=True)
        at_start = jnp.where(g.starts, g.group, row.shape[0])
        cols = jnp.full(row.shape[0], n, jnp.int32).at[at_start].set(g.col, mode="drop")
        # The last row may go on in the next step, unless there is none.
        last = jnp.max(jnp.where(row < m, row, -1))
        last = jnp.where(at.entry >= entries, m, last)
        ready = jnp.sum(g.starts & (g.row < last), dtype=jnp.int32)
        number = jnp.arange(row.shape[0], dtype=jnp.int32)
        place = jnp.where((number < ready) & (s.total <= nse), s.total + number, nse)
        rest = ready + jnp.arange(capacity, dtype=jnp.int32)
        total = s.total + ready
        return _State(
            at,
            g.count - ready,
            last,
            cols.at[rest].get(mode="fill", fill_value=n),
            values.at[rest].get(mode="fill", fill_value=0),
            s.count.at[jnp.where(g.starts & (g.row < last), g.row, m)].add(1, mode="drop"),
            s.indices.at[place].set(cols, mode="drop"),
            s.data.at[place].set(values, mode="drop"),
            jnp.where(total < 0, LARGEST, total),
            s.wrapped | wraps(semiring, p, x, y),
        )

    zero = jnp.int32(0)
    s = _State(
        Position(zero, zero),
        zero,
        zero,
        jnp.full(capacity, n, jnp.int32),
        jnp.zeros(capacity, dtype),
        jnp.zeros(m, jnp.int32),
        jnp.full(nse, n, jnp.int32),
        jnp.zeros(nse, dtype),
        zero,
        jnp.asarray(False),
    )
    s = lax.while_loop(lambda s: batch_any(s.at.entry < entries), step, s)
    return Result(offsets(s.count, nse), s.indices, s.data, s.total, s.wrapped)


def offsets(count: Array, nse: int) -> Array:
    """(m + 1,) offsets of rows of these lengths, cut at nse."""
    ends = jnp.cumsum(count, dtype=jnp.int32)  # wraps only where the total exceeds nse
    wrapped = jnp.cumsum((ends < 0).astype(jnp.int32)) > 0
    return jnp.append(jnp.int32(0), jnp.where(wrapped, nse, jnp.minimum(ends, nse)))
