"""COO: triplets, sorted by row, then column."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Self

import jax.numpy as jnp
from jax import Array, lax

from .._core.indices import index_dtype_for, with_pattern
from .._core.pytree import pytree_dataclass, static, transient
from ..shapes import Bool, Int, Shaped
from .base import SparseMatrix, register
from .invariants import check, of_pairs
from .stored import Edges, first_slots


@register
@pytree_dataclass
class COO(SparseMatrix):
    """Triplets `(row[k], col[k], data[k])` for k < count; padding has row m and column n.

    Attributes:
        data: (nse,) values, or (nse, ...): see `with_data`.
        row, col: (nse,) indices, int32 or int64; any extents that they hold.
        overflow: bool scalar; some operation dropped entries for want of capacity.
        shape: (m, n), static.
        sorted: by row, then column, static; padding comes last.
        unique: no index pair twice, static.
        edges: what it was made of, for `with_edge_data(values)`; not part of the pytree.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1], [2, 0], [6.0, 5.0], shape=(2, 3), format="coo")
    >>> A, A.row.tolist(), A.col.tolist(), A.data.tolist()
    (COO(float32[2], shape=(2, 3)), [0, 1], [2, 0], [6.0, 5.0])
    """

    format: ClassVar[str] = "coo"
    index_fields: ClassVar[tuple[str, ...]] = ("row", "col")
    takes_arrays: ClassVar[bool] = True
    data: Shaped[Array, " nse *entry"]
    row: Int[Array, " nse"]
    col: Int[Array, " nse"]
    overflow: Bool[Array, ""]
    shape: tuple[int, int] = static()
    sorted: bool = static(default=True)
    unique: bool = static(default=True)
    edges: Edges | None = transient(default=None)

    @property
    def count(self) -> Int[Array, ""]:
        return jnp.sum(with_pattern(self).row < self.shape[0], dtype=self.index_dtype)

    @property
    def indices(self) -> Int[Array, "nse 2"]:
        """(nse, 2), as BCOO names them."""
        return jnp.stack([self.row, self.col], axis=-1)

    def check_invariants(self) -> COO:
        return check(self, ("row", "col"), of_pairs)

    @property
    def row_sorted(self) -> bool:
        return self.sorted

    @property
    def T(self) -> COO:
        m, n = self.shape
        return COO(self.data, self.col, self.row, self.overflow, (n, m), False, self.unique)

    def in_capacity(self, nse: int) -> Self:
        data, row, col = first_slots((self.data, self.row, self.col), nse)
        return dataclasses.replace(self, data=data, row=row, col=col)

    def rowcol(self) -> tuple[Int[Array, " nse"], Int[Array, " nse"]]:
        return with_pattern(self).row, self.col

    def to_coo(self) -> COO:
        return self if self.sorted else sort_coo(self)[0]

    @classmethod
    def from_coo(cls, coo: COO) -> COO:
        return coo


def sort_coo(coo: COO) -> tuple[COO, Array]:
    """Sorts by row, then column, stably; also gives `slots` with `new.data = old.data[slots]`."""
    slots = jnp.arange(coo.nse, dtype=index_dtype_for(sizes=(coo.nse,)))
    row, col, slots = lax.sort((coo.row, coo.col, slots), num_keys=2, is_stable=True)
    data = jnp.asarray(coo.data)[slots]
    return COO(data, row, col, coo.overflow, coo.shape, True, coo.unique), slots
