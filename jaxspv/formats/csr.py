"""CSR and CSC: entries compressed by row or by column; mirror images of each other."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._core.batching import over_trailing
from .._core.eager.arrays import by_numpy, is_eager, to_device
from .._core.indices import with_pattern
from .._core.pytree import pytree_dataclass, static, transient
from ..algebra.monoids import plus
from ..shapes import Bool, Int, Shaped
from .base import SparseMatrix, register
from .convert.counting_sort import SPREAD, compressed_by_minor, transposed
from .convert.offsets import compress, search_rows
from .coo import COO, sort_coo
from .invariants import check, of_lines
from .stored import Edges, first_slots

_C = TypeVar("_C", bound="_Compressed")
_PROMISES = [functools.partial(of_lines, axis=axis) for axis in (0, 1)]  # programs are kept by them


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class _Compressed(SparseMatrix):
    """The base of CSR and CSC: the same arrays, read along one axis or the other."""

    index_fields: ClassVar[tuple[str, ...]] = ("indices", "indptr")
    takes_arrays: ClassVar[bool] = True
    data: Shaped[Array, " nse *entry"]
    indices: Int[Array, " nse"]
    indptr: Int[Array, " offsets"]
    overflow: Bool[Array, ""]
    shape: tuple[int, int] = static()
    sorted: bool = static(default=True)
    unique: bool = static(default=True)
    edges: Edges | None = transient(default=None)

    @property
    def count(self) -> Int[Array, ""]:
        offsets = with_pattern(self).indptr
        if is_eager(offsets) and by_numpy(offsets):  # compiles nothing
            return to_device(np.asarray(offsets)[-1], offsets)
        return offsets[-1]

    @classmethod
    def from_matrix(cls, A: SparseMatrix) -> SparseMatrix:
        if isinstance(A, _Compressed) and A.compressed != cls.compressed:
            other = with_pattern(A)
            shape: Any = A.shape if isinstance(A, CSR) else A.shape[::-1]
            if 0 < shape[1] <= SPREAD * A.nse:
                lists = other.indptr, other.indices
                indptr, indices, slots = compressed_by_minor(*lists, shape=shape)
                data = jnp.asarray(A.data)[slots]
                return cls(data, indices, indptr, A.overflow, A.shape, True, A.unique)
        return super().from_matrix(A)

    def check_invariants(self: _C) -> _C:
        return check(self, ("indices", "indptr"), _PROMISES[self.compressed == 1])

    def in_capacity(self, nse: int) -> Self:
        data, indices = first_slots((self.data, self.indices), nse)
        return dataclasses.replace(self, data=data, indices=indices)

    def _mirrored(self, kind: type[_C]) -> _C:
        """The transpose: the same arrays as a matrix compressed along the other axis."""
        (m, n), arrays = self.shape, (self.data, self.indices, self.indptr, self.overflow)
        return kind(*arrays, (n, m), self.sorted, self.unique)


@register
@pytree_dataclass
class CSR(_Compressed):
    """Row i holds slots `indptr[i] <= k < indptr[i + 1]`: entries `(i, indices[k], data[k])`.

    Slots from `indptr[m]` on are padding, with column n.

    Attributes:
        data: (nse,) values, or (nse, ...): see `with_data`.
        indices: (nse,) int32 or int64 columns, ascending within a row where `sorted`.
        indptr: (m + 1,) offsets of the same dtype; m below 2^31 - 1.
        overflow: bool scalar; some operation dropped entries for want of capacity.
        shape: (m, n), static.
        sorted, unique: static.
        edges: what it was made of, for `with_edge_data(values)`; not part of the pytree.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1], [2, 0], [6.0, 5.0], shape=(2, 3))
    >>> A.indptr.tolist(), A.indices.tolist(), A.data.tolist()
    ([0, 1, 2], [2, 0], [6.0, 5.0])
    """

    format: ClassVar[str] = "csr"
    compressed: ClassVar[int] = 0

    @property
    def row_sorted(self) -> bool:
        return True

    @property
    def T(self) -> CSC:
        return self._mirrored(CSC)

    def rowcol(self) -> tuple[Int[Array, " nse"], Int[Array, " nse"]]:
        return expand(self)

    def to_coo(self) -> COO:
        row, col = expand(self)
        coo = COO(self.data, row, col, self.overflow, self.shape, self.sorted, self.unique)
        return coo if self.sorted else sort_coo(coo)[0]

    @classmethod
    def from_coo(cls, coo: COO) -> CSR:
        indptr = compress(coo.row, coo.shape[0])
        return cls(coo.data, coo.col, indptr, coo.overflow, coo.shape, True, coo.unique)


@register
@pytree_dataclass
class CSC(_Compressed):
    """Column j holds slots `indptr[j] <= k < indptr[j + 1]`: entries `(indices[k], j, data[k])`.

    The arrays of a CSC are those of the CSR of its transpose. Padding has row m.

    Attributes:
        indices: (nse,) int32 or int64 rows, ascending within a column where `sorted`.
        indptr: (n + 1,) offsets of the same dtype; n below 2^31 - 1.
        data, overflow, shape, sorted, unique, edges: as of `CSR`.

    >>> import jaxspv as jsp
    >>> A = jsp.from_dense([[0.0, 0.0, 6.0], [5.0, 0.0, 0.0]], format="csc")
    >>> A.indptr.tolist(), A.indices.tolist(), A.data.tolist()
    ([0, 1, 1, 2], [1, 0], [5.0, 6.0])
    """

    format: ClassVar[str] = "csc"
    compressed: ClassVar[int] = 1

    @property
    def row_sorted(self) -> bool:
        return False

    @property
    def T(self) -> CSR:
        return self._mirrored(CSR)

    def rowcol(self) -> tuple[Int[Array, " nse"], Int[Array, " nse"]]:
        col, row = expand(self)
        return row, col

    def to_coo(self) -> COO:
        A = with_pattern(self)
        m, n = self.shape
        if m > SPREAD * self.nse:
            columns = COO(self.data, *self.rowcol(), self.overflow, self.shape, False, self.unique)
            return sort_coo(columns)[0]
        row, col, slots = transposed(A.indptr, A.indices, (n, m))
        data = jnp.take(self.data, slots, axis=0, mode="clip")
        return COO(data, row, col, self.overflow, self.shape, True, self.unique)

    @classmethod
    def from_coo(cls, coo: COO) -> CSC:
        if coo.sorted and max(coo.shape) <= SPREAD * coo.nse:
            rows = compress(coo.row, coo.shape[0]), coo.col
            indptr, row, slots = compressed_by_minor(*rows, shape=coo.shape)
            data = jnp.take(coo.data, slots, axis=0, mode="clip")
            return cls(data, row, indptr, coo.overflow, coo.shape, True, coo.unique)
        flipped = sort_coo(coo.T)[0]
        return CSR.from_coo(flipped).T


def sorted_csr(A: SparseMatrix) -> CSR:
    """The entries of A as a CSR whose rows are sorted."""
    return A if isinstance(A, CSR) and A.sorted else CSR.from_coo(A.to_coo())


def expand(A: CSR | CSC) -> tuple[Array, Array]:
    """(major, minor) index of every slot in slot order; both at their extent in padding."""
    major = search_rows(with_pattern(A).indptr, A.nse).astype(A.index_dtype)
    minor = jnp.where(major < A.indptr.shape[0] - 1, A.indices, A.shape[1 - A.compressed])
    return major, minor


def sort_by(minor: Array, extent: int) -> tuple[Array, Array]:
    """(offsets (extent + 1,), slots) of a stable order by a 32-bit index; `extent` is padding."""
    slots = jnp.arange(minor.shape[0], dtype=jnp.int32)
    keys, slots = lax.sort((minor.astype(jnp.uint32), slots), num_keys=1, is_stable=True)
    return compress(keys, extent).astype(jnp.int32), slots


@jax.jit
def joined(A: SparseMatrix) -> SparseMatrix:
    """A with each place once, which holds the sum of its entries; sorted, in the same capacity."""
    coo = A.to_coo()
    m, nse = coo.shape[0], coo.nse
    if nse == 0:
        return dataclasses.replace(A, unique=True)  # pyright: ignore[reportArgumentType, reportCallIssue]
    fresh = (coo.row[1:] != coo.row[:-1]) | (coo.col[1:] != coo.col[:-1])
    group = jnp.cumsum(jnp.append(True, fresh), dtype=coo.index_dtype) - 1
    group = jnp.where(coo.row < m, group, nse)
    data = over_trailing(lambda v: plus.segment_reduce(v, group, nse, sorted=True), coo.data)
    row = jnp.full_like(coo.row, m).at[group].set(coo.row, mode="drop")
    col = jnp.full_like(coo.col, coo.shape[1]).at[group].set(coo.col, mode="drop")
    once = COO(data, row, col, coo.overflow, coo.shape)
    return once.asformat(A.format if isinstance(A, (COO, CSC, CSR)) else "csr")


@jax.jit
def canonical(A: CSR) -> CSR:
    """A with sorted rows that list each column once; repeated entries are added."""
    return sorted_csr(A if A.unique else joined(A))
