"""ELL: every row padded to the same number of slots, stored position by position."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core.eager.arrays import is_eager, on_accelerator, to_device
from .._core.indices import LIMIT, with_pattern
from .._core.pytree import is_concrete, pytree_dataclass, static, transient
from ..shapes import Bool, Int, Shaped
from .base import SparseMatrix, register
from .coo import COO, sort_coo
from .invariants import Promises, check, check_places, length
from .offsets import compress
from .stored import Edges

MOST_SLOTS_AN_ENTRY = 4  # more padding than that is refused: the longest row decides for all
CAPACITY = 1 << 14  # slots that no matrix is refused for


def check_padding(format: str, slots: int, entries: int, instead: str) -> None:
    """Raises ValueError where a format of padded rows would hold mostly padding."""
    most = MOST_SLOTS_AN_ENTRY * entries + CAPACITY
    if slots > min(most, LIMIT):
        raise ValueError(
            f"{format} would take {slots} slots for {entries} entries, more than {most}: {instead}."
        )


class PaddedRows(SparseMatrix):
    """The base of ELL and SELL: padded rows; the column of padding is the number of columns."""

    indices: Int[Array, " nse"]
    transposed: bool

    @property
    def stored_shape(self) -> tuple[int, int]:
        """(rows, columns) of the arrays: `shape`, reversed where they describe the transpose."""
        m, n = self.shape
        return (n, m) if self.transposed else (m, n)

    @property
    def count(self) -> Int[Array, ""]:
        valid = with_pattern(self).indices < self.stored_shape[1]
        return jnp.sum(valid, dtype=self.index_dtype)

    @property
    def T(self) -> Self:
        changed: dict[str, Any] = {"shape": self.shape[::-1], "transposed": not self.transposed}
        return dataclasses.replace(self, **changed)  # pyright: ignore[reportArgumentType]

    def to_coo(self) -> COO:
        row, col = self.rowcol()
        coo = COO(self.data, row, col, self.overflow, self.shape, False, self.unique)
        coo = sort_coo(coo)[0]
        return coo.trim() if is_eager(coo) else coo


@register
@pytree_dataclass
class ELL(PaddedRows):
    """Row i holds slots `k = p m + i` for positions p < width: entry `(i, indices[k], data[k])`.

    Positions ascend with the column; those behind the last entry of a row are padding, with column
    n. Good where rows are about equally long: neighbouring rows lie side by side, and nothing says
    where a row begins.

    Attributes:
        data: (nse,) values, nse = m width.
        indices: (nse,) int32 or int64 columns.
        overflow: bool scalar; some operation dropped entries for want of capacity.
        shape: (m, n), static.
        transposed: the arrays describe the transpose, static.
        unique: no index pair twice, static.
        edges: what it was made of, for `with_edge_data(values)`; not part of the pytree.

    Source: Bell, Garland, "Implementing sparse matrix-vector multiplication on throughput-oriented
    processors", SC 2009, section 2.2.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 0, 1], [0, 2, 1], [1.0, 2.0, 3.0], shape=(2, 3), format="ell")
    >>> A, A.width, A.indices.tolist(), A.data.tolist()
    (ELL(float32[4], shape=(2, 3)), 2, [0, 1, 2, 3], [1.0, 3.0, 2.0, 0.0])
    """

    format: ClassVar[str] = "ell"
    index_fields: ClassVar[tuple[str, ...]] = ("indices",)
    data: Shaped[Array, " nse"]
    indices: Int[Array, " nse"]
    overflow: Bool[Array, ""]
    shape: tuple[int, int] = static()
    transposed: bool = static(default=False)
    unique: bool = static(default=True)
    edges: Edges | None = transient(default=None)

    @property
    def width(self) -> int:
        """Slots a row."""
        return self.nse // max(self.stored_shape[0], 1)

    def check_invariants(self) -> ELL:
        return check_places(check(self, ("indices",), _promises))

    def rowcol(self) -> tuple[Int[Array, " nse"], Int[Array, " nse"]]:
        m, n = self.stored_shape
        row = jnp.arange(self.nse, dtype=with_pattern(self).indices.dtype) % max(m, 1)
        row = jnp.where(self.indices < n, row, m)
        return (self.indices, row) if self.transposed else (row, self.indices)

    def in_capacity(self, nse: int) -> ELL:
        return type(self).from_coo(self.to_coo().in_capacity(nse))

    @classmethod
    def from_coo(cls, coo: COO, *, width: int | None = None) -> ELL:
        """The rows of a sorted COO.

        Args:
            width: slots a row; None: as many as the longest row has where indices are concrete,
                under jit as many as it can have.

        Returns:
            The same entries; under jit those beyond a given width are dropped and set `overflow`.

        Raises:
            ValueError: the slots would be mostly padding (`MOST_SLOTS_AN_ENTRY`), or a concrete
                row is longer than `width`.
        """
        (m, n), concrete = coo.shape, is_concrete(coo.row, coo.col)
        host = is_eager(coo) and not on_accelerator(coo.row)
        host = host and m <= MOST_SLOTS_AN_ENTRY * coo.nse + CAPACITY  # more rows are refused below
        ends: Any = _offsets(jax.block_until_ready(coo.row), m) if host else compress(coo.row, m)
        xp = np if host else jnp
        longest = int(xp.max(ends[1:] - ends[:-1], initial=0)) if concrete else min(n, coo.nse)
        if width is not None and concrete and longest > width:
            raise ValueError(f"`width` must be at least {longest}, the longest row; got {width}.")
        width = longest if width is None else width
        check_padding("ELL", m * width, coo.nse, "SELL pads slices of rows, CSR pads nothing")
        return (_arrange_on_host if host else _arrange)(coo, ends, width)

    @classmethod
    def from_matrix(cls, A: SparseMatrix) -> ELL:
        """`A` in this format: see `from_coo`."""
        one_program = is_eager(A) and A.format in ("csr", "csc")
        return cls.from_coo(A.asformat("coo") if one_program else A.to_coo())


def _offsets(row: Array, m: int) -> np.ndarray:
    """As `compress`, of a concrete row index."""
    return np.append(0, np.cumsum(np.bincount(np.minimum(np.asarray(row), m), minlength=m + 1)[:m]))


def _arrange_on_host(coo: COO, ends: np.ndarray, width: int) -> ELL:
    """As `_arrange` where no row is longer than `width`; compiles nothing for a shape."""
    (m, n), used = coo.shape, int(ends[-1])
    row = np.asarray(coo.row)[:used]
    place = (np.arange(used) - ends[row]) * m + row
    data, indices = np.zeros(m * width, coo.dtype), np.full(m * width, n, coo.col.dtype)
    data[place], indices[place] = np.asarray(coo.data)[:used], np.asarray(coo.col)[:used]
    data, indices = to_device((data, indices), coo.row)
    return ELL(data, indices, coo.overflow, coo.shape, False, coo.unique)


@functools.partial(jax.jit, static_argnums=2)
def _arrange(coo: COO, ends: Array, width: int) -> ELL:
    m, n = coo.shape
    slot = jnp.arange(coo.nse, dtype=coo.row.dtype)
    position = slot - ends.at[coo.row].get(mode="clip")
    fits = (coo.row < m) & (position < width)
    place = jnp.where(fits, position * m + coo.row, m * width)
    data = jnp.zeros(m * width, coo.dtype).at[place].set(coo.data, mode="drop")
    indices = jnp.full(m * width, n, coo.col.dtype).at[place].set(coo.col, mode="drop")
    overflow = coo.overflow | jnp.any((coo.row < m) & ~fits)
    return ELL(data, indices, overflow, coo.shape, False, coo.unique)


def _promises(x: Any, xp: Any) -> Promises:
    m, n = x.shape[::-1] if x.transposed else x.shape
    whole = x.nse % m == 0 if m else x.nse == 0
    used = x.indices < n
    rows = used.reshape(-1, m) if m and whole else used.reshape(1, -1)
    return [
        *length("indices", x.indices, x.nse),
        (f"the slots must be a multiple of {m} rows; got {x.nse}", not whole),
        (f"`indices` must lie in [0, {n}]", xp.any((x.indices < 0) | (x.indices > n))),
        ("entries of a row must come before its padding", xp.any(rows[1:] & ~rows[:-1])),
    ]
