"""Sparse times sparse by dense accumulators, one block of rows after the other.

No sort: products are scattered into the cells of their block as they come, and the cells that were
hit are compacted. For results that are not very sparse: a block costs its cells, hit or not.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ...._core.loops import batch_any
from ...._core.reductions import rounded
from ....algebra.masks import Mask
from ....algebra.semirings import Semiring
from .expand import LARGEST, Operands, Position, allowed_at, next_products, terms_of, wraps
from .result import Result, no_entries, offsets, term_dtype

CELLS = 1 << 24  # of one block


class _Block(NamedTuple):
    """Cells of a block of rows and the next product; `present`: cells that hold something."""

    at: Position
    total: Array
    present: Array
    wrapped: Array


def multiply_densely(
    semiring: Semiring, o: Operands, mask: Mask | None, *, nse: int, size: int
) -> Result:
    """All products, `size` at a time, block after block; O(m n + products) work."""
    (m, n), add = o.shape, semiring.add
    dtype = term_dtype(semiring, o.data.dtype, o.values.dtype)
    rows = max(min(m, CELLS // n), 1)
    cells = rows * n

    def block(state: tuple[Array, Result]) -> tuple[Array, Result]:
        first_row, r = state
        end_row = jnp.minimum(first_row + rows, m)
        end = o.indptr[end_row]

        def step(b: _Block) -> _Block:
            p, at = next_products(o, b.at, size, min(size, o.row.shape[0]))
            terms, x, y = terms_of(semiring, o, p)
            here = p.valid & (p.row < end_row) & allowed_at(mask, p.row, p.col)
            p = p._replace(valid=here)
            cell = jnp.where(here, (p.row - first_row) * n + p.col, cells)
            total, present = add.accumulate(b.total, b.present, cell, add.admit(terms))
            beyond = at.entry >= end  # entries of the next block are taken again by it
            at = Position(jnp.where(beyond, end, at.entry), jnp.where(beyond, 0, at.done))
            return _Block(at, total, present, b.wrapped | wraps(semiring, p, x, y))

        start = Position(o.indptr[first_row], jnp.int32(0))
        empty = add.accumulator(cells, dtype), jnp.zeros(cells, bool)
        b = lax.while_loop(
            lambda b: batch_any(b.at.entry < end), step, _Block(start, *empty, r.wrapped)
        )
        number = jnp.cumsum(b.present, dtype=jnp.int32)
        fits = b.present & (r.total <= nse)
        place = jnp.where(fits, r.total + number - 1, nse)
        column = jnp.arange(cells, dtype=jnp.int32) % n
        ends = number.reshape(rows, n)[:, -1]
        row = first_row + jnp.arange(rows, dtype=jnp.int32)
        total = r.total + number[-1]
        return first_row + rows, Result(
            r.indptr.at[row].set(jnp.diff(ends, prepend=0), mode="drop"),
            r.indices.at[place].set(column, mode="drop"),
            r.data.at[place].set(rounded(b.total, dtype), mode="drop"),
            jnp.where(total < 0, LARGEST, total),
            b.wrapped,
        )

    start = jnp.int32(0), no_entries(m, n, nse, dtype)
    end = block(start) if rows == m else lax.while_loop(lambda s: s[0] < m, block, start)
    return offsets(end[1])
