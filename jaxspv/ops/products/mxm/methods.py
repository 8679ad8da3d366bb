"""The implementations of `mxm`, each of which gives a `Result` by rows, and what they refuse."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ...._core.batching import batch_any
from ...._core.operation import Operation, typed
from ...._core.reductions import rounded
from ....algebra.masks import Mask
from ....algebra.semirings import Semiring
from ....formats import CSR
from ....formats.csr import sorted_csr
from .dot import multiply_by_dots
from .esc import multiply_in_steps, multiply_once, offsets
from .expand import (
    LARGEST,
    Operands,
    Position,
    allowed_at,
    next_products,
    operands,
    terms_of,
    wraps,
)
from .jvp import tangent
from .loops.accumulate import multiply
from .loops.native import multiply_natively, no_pattern, not_compiled
from .result import Result, lists_places, matrix_of, sorted_mask, term_dtype

CELLS = 1 << 24  # of one block


class _Block(NamedTuple):
    """Cells of a block of rows and the next product; `present`: cells that hold something."""

    at: Position
    total: Array
    present: Array
    wrapped: Array


class _State(NamedTuple):
    first_row: Array
    count: Array  # entries of each row
    indices: Array
    data: Array
    stored: Array  # entries so far
    wrapped: Array


def multiply_densely(
    semiring: Semiring, o: Operands, mask: Mask | None, *, nse: int, size: int
) -> Result:
    """All products, `size` at a time, block after block; O(m n + products) work."""
    (m, n), add = o.shape, semiring.add
    dtype = term_dtype(semiring, o.data.dtype, o.values.dtype)
    rows = max(min(m, CELLS // n), 1)
    cells = rows * n

    def block(s: _State) -> _State:
        end_row = jnp.minimum(s.first_row + rows, m)
        end = o.indptr[end_row]

        def step(b: _Block) -> _Block:
            p, at = next_products(o, b.at, size, min(size, o.row.shape[0]))
            terms, x, y = terms_of(semiring, o, p)
            here = p.valid & (p.row < end_row) & allowed_at(mask, p.row, p.col)
            p = p._replace(valid=here)
            cell = jnp.where(here, (p.row - s.first_row) * n + p.col, cells)
            total, present = add.accumulate(b.total, b.present, cell, add.admit(terms))
            beyond = at.entry >= end  # entries of the next block are taken again by it
            at = Position(jnp.where(beyond, end, at.entry), jnp.where(beyond, 0, at.done))
            return _Block(at, total, present, b.wrapped | wraps(semiring, p, x, y))

        start = Position(o.indptr[s.first_row], jnp.int32(0))
        empty = add.accumulator(cells, dtype), jnp.zeros(cells, bool)
        b = lax.while_loop(
            lambda b: batch_any(b.at.entry < end), step, _Block(start, *empty, s.wrapped)
        )
        number = jnp.cumsum(b.present, dtype=jnp.int32)
        fits = b.present & (s.stored <= nse)
        place = jnp.where(fits, s.stored + number - 1, nse)
        column = jnp.arange(cells, dtype=jnp.int32) % n
        ends = number.reshape(rows, n)[:, -1]
        row = s.first_row + jnp.arange(rows, dtype=jnp.int32)
        stored = s.stored + number[-1]
        return _State(
            s.first_row + rows,
            s.count.at[row].set(jnp.diff(ends, prepend=0), mode="drop"),
            s.indices.at[place].set(column, mode="drop"),
            s.data.at[place].set(rounded(b.total, dtype), mode="drop"),
            jnp.where(stored < 0, LARGEST, stored),
            b.wrapped,
        )

    zero = jnp.int32(0)
    s = _State(
        zero,
        jnp.zeros(m, jnp.int32),
        jnp.full(nse, n, jnp.int32),
        jnp.zeros(nse, dtype),
        zero,
        jnp.asarray(False),
    )
    s = block(s) if rows == m else lax.while_loop(lambda s: s.first_row < m, block, s)
    return Result(offsets(s.count, nse), s.indices, s.data, s.stored, s.wrapped)


def _types(semiring, A, B, mask, found, *, nse, size, products):
    (m, _), (_, n) = A.shape, B.shape
    data = typed(term_dtype(semiring, A.dtype, B.dtype), nse)
    indices, indptr = typed(jnp.int32, nse), typed(jnp.int32, m + 1)
    return CSR(data, indices, indptr, typed(jnp.bool_), (m, n), True, True)


op = Operation("mxm", tangent, types=_types)
op.gpu_forms_in(f"{__package__}.gpu")


def no_dots(semiring, A, B, mask, *_, **__) -> str | None:
    """Why dot products are refused, or None."""
    if not lists_places(mask):
        return "dot products need a sparse mask that is not a complement"
    if not (A.unique and B.unique):
        return "a search finds one of several entries of one place"
    return None


def no_cells(semiring, A, B, mask, *_, **__) -> str | None:
    """Why dense accumulators are refused, or None."""
    if not semiring.add.scatters:
        return f"the monoid `{semiring.add.name}` has no scatter"
    if B.shape[1] > CELLS:
        return f"a row of {B.shape[1]} places exceeds a block of {CELLS} cells"
    return None


@op.register("dot", refuse=no_dots)
def _dot(semiring, A, B, mask, found, *, nse, size, products):
    """For each place of the mask, a row of A meets a column of B."""
    wanted = sorted_mask(mask)
    assert wanted is not None  # else refused
    columns = sorted_csr(B.T).T
    r = multiply_by_dots(semiring, sorted_csr(A), columns, wanted, nse=nse, size=size)
    return matrix_of(r, A, B)


@op.register("sort")
def _sort(semiring, A, B, mask, found, *, nse, size, products):
    """All products expanded, sorted by place, joined; `size` of them at a time."""
    o = operands(sorted_csr(A), sorted_csr(B))
    once = products is not None and products <= size
    r = (multiply_once if once else multiply_in_steps)(
        semiring, o, sorted_mask(mask), nse=nse, size=size
    )
    return matrix_of(r, A, B)


@op.register("dense", refuse=no_cells)
def _dense(semiring, A, B, mask, found, *, nse, size, products):
    """All products scattered into dense accumulators of blocks of rows, which are compacted."""
    o = operands(sorted_csr(A), sorted_csr(B))
    return matrix_of(multiply_densely(semiring, o, sorted_mask(mask), nse=nse, size=size), A, B)


@op.register("gustavson", backend="cpu", refuse=not_compiled)
def _native(semiring, A, B, mask, found, *, nse, size, products):
    """Row by row into a dense accumulator, or into the places that a mask lists, in C++."""
    return matrix_of(multiply_natively(semiring, A, B, mask, nse=nse), A, B)


def _no_loop(semiring, A, B, mask, found, **_) -> str | None:
    return no_pattern(A, B, mask)


@op.register("gustavson", backend="cpu", refuse=_no_loop, batched="map")
def _loop(semiring, A, B, mask, found, *, nse, size, products):
    """The same over any semiring: the pattern in C++, the values by a loop that XLA compiles."""
    return matrix_of(multiply(semiring, A, B, mask, nse=nse), A, B)
