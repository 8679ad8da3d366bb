"""Products over extents beyond int32: rows and columns with entries are numbered anew.

An axis of 2^40 places has at most nse places with entries. They are numbered in ascending order,
the product runs on these int32 numbers, and the result gets the original indices back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array

from ...._core.indices import LIMIT
from ....algebra.masks import Mask, as_mask
from ....algebra.semirings import Semiring
from ....formats import COO, SparseMatrix
from ....formats.coo import sort_coo
from ....formats.stored import Stored
from ....formats.vector import SparseVector
from ...write_rule.entries import entries_of, keep, take


@dataclasses.dataclass(frozen=True)
class Axis:
    """The places of an axis that matter: ascending `ids`, the extent behind them; None: all."""

    extent: int
    ids: Array | None

    @property
    def size(self) -> int:
        """How many places there are by the new numbers."""
        return self.extent if self.ids is None else self.ids.shape[0]

    def number(self, index: Array) -> Array:
        """The new numbers of indices, `size` where they are not among the places."""
        if self.ids is None:
            return index
        number = jnp.searchsorted(self.ids, index).astype(jnp.int32)
        known = (index < self.extent) & (take(self.ids, number) == index)
        return jnp.where(known, number, self.size)

    def index(self, number: Array) -> Array:
        """The indices of new numbers; the extent for `size`."""
        if self.ids is None:
            return number
        return jnp.where(number < self.size, take(self.ids, number), self.extent)


def axis(extent: int, *indices: Array) -> Axis:
    """The places of an axis that any of the indices names, if the extent does not fit int32."""
    if extent < LIMIT:
        return Axis(extent, None)
    named = jnp.concatenate(indices)
    return Axis(extent, jnp.unique(named, size=named.shape[0], fill_value=extent))


def beyond_int32(*operands: Any) -> bool:
    """Whether a sparse operand has an extent that int32 does not hold."""
    shapes = (x.shape for x in operands if isinstance(x, Stored))
    return any(extent >= LIMIT for shape in shapes for extent in shape)


def multiply_matrices(
    product: Callable[..., Any], A: SparseMatrix, B: SparseMatrix, semiring: Semiring, mask: Any
) -> COO:
    """`product(A, B, mask)` on renumbered operands. Masks of such shapes are sparse."""
    _check(A.shape[1], B.shape, semiring)
    a, b = A.to_coo(), B.to_coo()
    rows, cols = axis(a.shape[0], a.row), axis(b.shape[1], b.col)
    inner = axis(a.shape[1], a.col, b.row)
    small = None if mask is None else as_mask(mask)
    if small is not None and isinstance(small.source, SparseMatrix):
        small = dataclasses.replace(small, source=_small(small.source.to_coo(), rows, cols))
    C = product(_small(a, rows, inner), _small(b, inner, cols), small).to_coo()
    row, col = rows.index(C.row), cols.index(C.col)
    return COO(C.data, row, col, C.overflow, (rows.extent, cols.extent), True, True)


def multiply_vector(
    product: Callable[..., Any], A: SparseMatrix, x: Any, semiring: Semiring, mask: Any
) -> SparseVector:
    """`product(A, x, mask)` on renumbered operands. Raises ValueError: shapes do not match; x is
    dense."""
    _check(A.shape[1], x.shape, semiring)
    if not isinstance(x, Stored):
        raise ValueError(f"`x` must be a SparseVector for a matrix of shape {A.shape}.")
    a, e = A.to_coo(), entries_of(x)
    rows, inner = axis(a.shape[0], a.row), axis(a.shape[1], a.col, e.keys[0])
    small = None if mask is None else as_mask(mask)
    if small is not None and isinstance(small.source, Stored):
        small = dataclasses.replace(small, source=_short(small, rows))
    v = SparseVector(e.data, inner.number(e.keys[0]), e.count, e.overflow, (inner.size,))
    y = product(_small(a, rows, inner), v, small)
    return dataclasses.replace(y, indices=rows.index(y.indices), shape=(rows.extent,))


def _check(inner: int, shape: tuple[int, ...], semiring: Semiring) -> None:
    if inner != shape[0]:
        raise ValueError(f"extents do not match: {inner} columns meet {shape[0]} places.")
    if semiring.mul.position is not None:
        raise ValueError(
            f"`{semiring.mul.name}` is positional: it needs extents below 2^31 - 1, as int32 holds."
        )


def _small(A: COO, rows: Axis, cols: Axis) -> COO:
    """A by the new numbers; what they do not know becomes padding."""
    row, col = rows.number(A.row), cols.number(A.col)
    known = (row < rows.size) & (col < cols.size)
    row, col = jnp.where(known, row, rows.size), jnp.where(known, col, cols.size)
    small = COO(A.data, row, col, A.overflow, (rows.size, cols.size), False, A.unique)
    return sort_coo(small)[0]


def _short(mask: Mask, rows: Axis) -> SparseVector:
    e = entries_of(mask.source)
    number = rows.number(e.keys[0])
    e = keep(dataclasses.replace(e, keys=(number,), shape=(rows.size,)), number < rows.size)
    return SparseVector(e.data, e.keys[0], e.count, e.overflow, (rows.size,))
