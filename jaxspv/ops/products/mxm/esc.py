"""Sparse times sparse by expansion, sorting and compression: in one step or in chunks."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ...._core.loops import batch_any
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
from .result import Result, no_entries, offsets, term_dtype


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


class _Carried(NamedTuple):
    """The entries of the row that may go on, and how many they are."""

    count: Array
    row: Array
    col: Array
    data: Array


def multiply_in_steps(
    semiring: Semiring, o: Operands, mask: Mask | None, *, nse: int, size: int
) -> Result:
    """`size` products at a time, in a loop that ends when A does; O(size + n + nse) memory."""
    (m, n), entries = o.shape, o.row.shape[0]
    window = min(size, entries)
    dtype = term_dtype(semiring, o.data.dtype, o.values.dtype)
    capacity = min(n, entries * max(o.indices.shape[0], 1))  # of one row of C

    def step(state: tuple[Position, _Carried, Result]) -> tuple[Position, _Carried, Result]:
        at, c, r = state
        p, at = next_products(o, at, size, window)
        terms, x, y = terms_of(semiring, o, p)
        terms = semiring.add.admit(terms)
        p = p._replace(valid=p.valid & allowed_at(mask, p.row, p.col))
        old = jnp.arange(capacity, dtype=jnp.int32) < c.count
        row = jnp.concatenate([jnp.where(old, c.row, m), jnp.where(p.valid, p.row, m)])
        col = jnp.concatenate([c.col, p.col])
        g = sort_by_place(row, col, (m, n))
        both = jnp.concatenate([c.data, terms])
        values = semiring.add.segment_reduce(both[g.order], g.group, row.shape[0], sorted=True)
        at_start = jnp.where(g.starts, g.group, row.shape[0])
        cols = jnp.full(row.shape[0], n, jnp.int32).at[at_start].set(g.col, mode="drop")
        # The last row may go on in the next step, unless there is none.
        last = jnp.max(jnp.where(row < m, row, -1))
        last = jnp.where(at.entry >= entries, m, last)
        ready = jnp.sum(g.starts & (g.row < last), dtype=jnp.int32)
        number = jnp.arange(row.shape[0], dtype=jnp.int32)
        place = jnp.where((number < ready) & (r.total <= nse), r.total + number, nse)
        rest = ready + jnp.arange(capacity, dtype=jnp.int32)
        total = r.total + ready
        left = cols.at[rest].get(mode="fill", fill_value=n)
        kept = values.at[rest].get(mode="fill", fill_value=0)
        result = Result(
            r.indptr.at[jnp.where(g.starts & (g.row < last), g.row, m)].add(1, mode="drop"),
            r.indices.at[place].set(cols, mode="drop"),
            r.data.at[place].set(values, mode="drop"),
            jnp.where(total < 0, LARGEST, total),
            r.wrapped | wraps(semiring, p, x, y),
        )
        return at, _Carried(g.count - ready, last, left, kept), result

    zero, none = jnp.int32(0), jnp.full(capacity, n, jnp.int32)
    carried = _Carried(zero, zero, none, jnp.zeros(capacity, dtype))
    state = Position(zero, zero), carried, no_entries(m, n, nse, dtype)
    state = lax.while_loop(lambda s: batch_any(s[0].entry < entries), step, state)
    return offsets(state[2])
