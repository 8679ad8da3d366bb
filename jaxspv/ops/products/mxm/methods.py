"""The methods of `mxm`, what they refuse, and those that run on any device: sorts of products,
dense accumulators, dot products. Each gives a `Result` by rows.

Sorts take all products in one step or in chunks. Dense accumulators are for results that are not
very sparse: products are scattered into the cells of a block of rows as they come, and the cells
that were hit are compacted, so that a block costs its cells, hit or not. Dot products are for
masks: of a row of A and a column of B the shorter one is walked and each of its indices searched in
the longer one, and nothing is computed that the mask does not ask for.

Source of dot products: Azad, Buluc, Gilbert, "Parallel triangle counting and enumeration using
matrix algebra", IPDPSW 2015 (masked products).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ...._core.indices import lower_bound
from ...._core.loops import batch_any
from ...._core.operation import Operation, typed
from ...._core.reductions import rounded
from ....algebra.masks import Mask
from ....algebra.semirings import Semiring, any_pair
from ....formats import CSC, CSR
from ....formats.csr import sorted_csr
from ..common.product import safe, take
from .call import Result, lists_places, matrix_of, no_entries, offsets, sorted_mask, term_dtype
from .cpu import counted, multiply, multiply_natively, no_pattern, not_compiled
from .expand import (
    LARGEST,
    Operands,
    Position,
    allowed_at,
    next_products,
    operands,
    saturating_cumsum,
    sort_by_place,
    terms_of,
    wraps,
)
from .jvp import tangent


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


class _Lists(NamedTuple):
    """Rows of A, then columns of B, in one array; and for each place of the mask two of them.

    Attributes:
        indices: (A.nse + B.nse,) the inner index of each entry.
        low, high: (mask.nse,) slots of the list that is searched.
        rows: (mask.nse,) bool, whether the list that is walked is the row of A.
    """

    indices: Array
    low: Array
    high: Array
    rows: Array


@op.register("dot", refuse=no_dots)
def _dot(semiring, A, B, mask, found, *, nse, size, products):
    """For each place of the mask, a row of A meets a column of B."""
    rows: Any = sorted_mask(mask)
    A, B, M = sorted_csr(A), sorted_csr(B.T).T, rows.source
    o, lists = _lists_of_mask(A, B, rows)
    places, window = M.nse, min(size, M.nse)
    dtype = term_dtype(semiring, A.dtype, B.dtype)
    add = semiring.add

    def step(c):
        at, total, present, wrapped = c
        p, at = next_products(o, at, size, window)
        first, second, valid = _pairs(lists, A.nse, p)
        x, y = safe(take(A.data, first), valid), safe(take(B.data, second), valid)
        k, j = take(lists.indices, p.b), take(o.col, p.a)
        terms = add.admit(semiring.mul.at(x, y, p.row, k, j))
        wrapped |= wraps(semiring, p._replace(valid=valid), x, y)
        place = jnp.where(valid, p.a, places)
        if not add.scatters:  # places ascend: a missing product counts as the identity
            terms = jnp.where(valid, terms, jnp.asarray(add.identity_of(dtype)))
            part = add.segment_reduce(terms, p.a, places, sorted=True)
            here = jnp.zeros(places, bool).at[place].set(True, mode="drop")
            return at, add.op(total, part).astype(dtype), present | here, wrapped
        return at, *add.accumulate(total, present, place, terms), wrapped

    zero = jnp.int32(0)
    nothing = add.accumulator(places, dtype), jnp.zeros(places, bool)
    state = (Position(zero, zero), *nothing, jnp.asarray(False))
    _, total, present, wrapped = lax.while_loop(
        lambda c: batch_any(c[0].entry < places), step, state
    )
    return matrix_of(compacted(M, rounded(total, dtype), present, nse, wrapped), A, B)


def _lists_of_mask(A: CSR, B: CSC, mask: Mask) -> tuple[Operands, _Lists]:
    """The lists to walk, as `Operands` whose entries are the places of the mask, and to search."""
    M = mask.source
    row, col = M.rowcol()
    is_valid = row < M.shape[0]
    if not mask.structural:
        is_valid &= M.data.astype(bool)
    i, j = jnp.where(is_valid, row, 0), jnp.where(is_valid, col, 0)
    a_low, a_high = take(A.indptr, i), take(A.indptr, i + 1)
    b_low, b_high = take(B.indptr, j) + A.nse, take(B.indptr, j + 1) + A.nse
    rows = a_high - a_low <= b_high - b_low
    start, end = jnp.where(rows, a_low, b_low), jnp.where(rows, a_high, b_high)
    indices = jnp.concatenate([A.indices, B.indices])
    length, shape = jnp.where(is_valid, end - start, 0), (M.shape[0], A.shape[1])
    walked = Operands(M.indptr, row, col, M.data, start, length, indices, indices, shape)
    low, high = jnp.where(rows, b_low, a_low), jnp.where(rows, b_high, a_high)
    return walked, _Lists(indices, low, high, rows)


def _pairs(lists: _Lists, a_nse: int, p: Any) -> tuple[Array, Array, Array]:
    """Slots of A and B that meet in each walked index, and whether they do."""
    low, end = take(lists.low, p.a), take(lists.high, p.a)
    wanted = take(lists.indices, p.b)
    low = lower_bound((lists.indices,), (wanted,), low, end, unroll=True)
    valid = p.valid & (low < end) & (take(lists.indices, low) == wanted)
    rows = take(lists.rows, p.a)
    return jnp.where(rows, p.b, low), jnp.where(rows, low, p.b) - a_nse, valid


def compacted(M: CSR, total: Array, present: Array, nse: int, wrapped: Array) -> Result:
    """The places that hold something, as rows."""
    n, (_, col) = M.shape[1], M.rowcol()
    number = jnp.cumsum(present, dtype=jnp.int32)
    place = jnp.where(present, number - 1, nse)
    indices = jnp.full(nse, n, jnp.int32).at[place].set(col, mode="drop")
    data = jnp.zeros(nse, total.dtype).at[place].set(total, mode="drop")
    before = jnp.append(jnp.int32(0), number)
    indptr = jnp.minimum(before[M.indptr], nse)
    return Result(indptr, indices, data, number[-1], wrapped)


@op.register("sort")
def _sort(semiring, A, B, mask, found, *, nse, size, products):
    """All products expanded, sorted by place, joined; `size` of them at a time."""
    o = operands(sorted_csr(A), sorted_csr(B))
    once = products is not None and products <= size
    multiplied = multiply_once if once else multiply_in_steps
    r = multiplied(semiring, o, sorted_mask(mask), nse=nse, size=size)
    return matrix_of(r, A, B)


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


CELLS = 1 << 24  # of one block


class _Block(NamedTuple):
    """Cells of a block of rows and the next product; `present`: cells that hold something."""

    at: Position
    total: Array
    present: Array
    wrapped: Array


@op.register("dense", refuse=no_cells)
def _dense(semiring, A, B, mask, found, *, nse, size, products):
    """All products, `size` at a time, scattered into dense accumulators of blocks of rows, which
    are compacted; O(m n + products) work."""
    o, mask = operands(sorted_csr(A), sorted_csr(B)), sorted_mask(mask)
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
    return matrix_of(offsets(end[1]), A, B)


@op.register("gustavson", backend="cpu", refuse=not_compiled)
def _native(semiring, A, B, mask, found, *, nse, size, products):
    """Row by row into a dense accumulator, or into the places that a mask lists, in C++."""
    return matrix_of(multiply_natively(semiring, A, B, mask, nse=nse), A, B)


@op.register("gustavson", backend="cpu", refuse=lambda _, *abm, **__: no_pattern(*abm[:3]))
def _loop(semiring, A, B, mask, found, *, nse, size, products):
    """The same over any semiring: the pattern in C++, the values by a loop that XLA compiles."""
    return matrix_of(multiply(semiring, A, B, mask, nse=nse), A, B)


@counted.register("sort")
def _count_by_sorting(A, B, mask, *, size) -> Array:
    o = operands(sorted_csr(A), sorted_csr(B))
    return multiply_in_steps(any_pair, o, sorted_mask(mask), nse=0, size=size).total
