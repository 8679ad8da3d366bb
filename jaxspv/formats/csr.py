"""CSR and CSC, mirror images of each other; the transpose of a CSR, and whether it equals it."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pallas_kernels.layouts.ragged import owners_from, piece_of, within

from .._core.eager.arrays import by_numpy, is_eager, to_device
from .._core.indices import with_pattern
from .._core.loops import over_trailing
from .._core.pytree import pytree_dataclass, static, transient
from ..algebra.monoids import plus
from ..shapes import Bool, Int, Shaped
from .base import SparseMatrix, register
from .coo import COO, sort_coo
from .invariants import check, of_lines
from .offsets import SPREAD, compress, compressed_by_minor, search_rows
from .stored import Edges, first_slots

EXACT, ROUNDED, PATTERN = range(3)  # how `known_symmetric` compares values
SMALL = 1 << 16  # entries that NumPy sorts in less time than importing scipy.sparse takes

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
        ends, col, slots = compressed_by_minor(A.indptr, A.indices, shape=(n, m))
        row = search_rows(ends, self.nse).astype(col.dtype)
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


# ---- The transpose ----


def transposed_with_slots(A: CSR) -> tuple[CSR, Array, Array | bool]:
    """A transposed, the slot of each of its entries in A, and whether A equals it; eager.

    The check compares pattern and values, NaN as equal to NaN. By NumPy and SciPy, whose arrays are
    the result; a large matrix on a GPU by one program there.
    """
    return _on_host(A) if by_numpy(A.indices) else _on_device(A)


def known_symmetric(A: CSR, compare: int = EXACT) -> bool | None:
    """Whether a matrix equals its transpose; None: its rows are not sorted; eager.

    On a GPU no transpose is made: an eighth of the entries at a time are looked up, in some bytes
    each.

    Args:
        compare: EXACT, ROUNDED (values but for rounding) or PATTERN (no values). One program serves
            all three.
    """
    if not (A.sorted and A.unique):
        return None
    if A.nse == 0 or by_numpy(A.indices):
        return A.nse == 0 or _on_host(A, compare)[2]
    arrays = A.indptr, A.indices, A.data
    return bool(_equals_transpose(*arrays, np.int32(compare), capacity=piece_of(A.nse)))


@functools.partial(jax.jit, static_argnames="capacity")
def _equals_transpose(
    indptr: Array, indices: Array, data: Array, compare: Array, *, capacity: int
) -> Array:
    """Whether each entry's mirror image, found by bisection in its sorted row, has its value."""
    count = indptr[-1]
    widest = jnp.max(jnp.diff(indptr), initial=0)
    halvings = 32 - lax.clz(widest)

    def piece(state):
        begin, _ = state
        valid, slot = within(begin, count, capacity)
        row = owners_from(indptr[1:], begin, capacity)
        col = jnp.where(valid, indices[slot], 0)

        def halve(_, bounds):
            low, high = bounds
            middle = low + (high - low) // 2
            below = (low < high) & (indices.at[middle].get(mode="clip") < row)
            low = jnp.where(below, middle + 1, low)
            return low, jnp.where(below, high, jnp.maximum(middle, low))

        low, _ = lax.fori_loop(0, halvings, halve, (indptr[col], indptr[col + 1]))
        mirror = jnp.minimum(low, indices.shape[0] - 1)
        found = (low < indptr[col + 1]) & (indices[mirror] == row)
        a, b = data[mirror], data[slot]
        near = (compare == ROUNDED) & jnp.isclose(a, b, equal_nan=True)
        same = jnp.all(~valid | (found & (_equal(a, b) | near | (compare == PATTERN))))
        return jnp.where(count - begin > capacity, begin + capacity, count), same.astype(jnp.int32)

    def going(state):
        return (state[0] < count) & (state[1] > 0)

    return lax.while_loop(going, piece, (jnp.int32(0), jnp.int32(1)))[1] > 0


def _on_host(A: CSR, compare: int = EXACT) -> tuple[CSR, Any, bool]:
    """The transpose, the slot of each of its entries in A, and whether it equals A. Counting sort
    by column: nothing to compile."""
    indptr, indices, data = (np.asarray(x) for x in (A.indptr, A.indices, A.data))
    count = int(indptr[-1])
    slots, columns, ends = _by_column(indptr, indices[:count], A.shape)
    padding = np.arange(count, A.nse)
    slots = np.append(slots, padding).astype(np.int32)
    columns = np.append(columns, np.full_like(padding, A.shape[0])).astype(np.int32)
    values, ends = data[slots], ends.astype(np.int32)
    same = np.array_equal(ends, indptr) and np.array_equal(columns[:count], indices[:count])
    if same and compare != PATTERN:
        both = values[:count], data[:count]
        same = (_equal(*both) if compare == EXACT else _near(*both)).all()
    return _flipped(A, values, columns, ends), slots, bool(same)


def _by_column(indptr: np.ndarray, indices: np.ndarray, shape: tuple[int, int]) -> tuple[Any, ...]:
    """Slots and rows of the entries by column, stable, and where each column begins."""
    if indices.size < SMALL:
        slots = np.argsort(indices, kind="stable")
        rows = np.repeat(np.arange(shape[0]), np.diff(indptr))[slots]
        counts = np.bincount(indices, minlength=shape[1])
        return slots, rows, np.append(0, np.cumsum(counts))
    import scipy.sparse

    order = np.arange(indices.size, dtype=np.int64 if indices.size >= 2**31 else np.int32)
    flipped = scipy.sparse.csr_array((order, indices, indptr), shape=shape).tocsc()
    return flipped.data, flipped.indices, flipped.indptr


@jax.jit
def _on_device(A: CSR) -> tuple[CSR, Array, Array]:
    """The same by a stable sort of slot numbers by column."""
    row, col = A.rowcol()
    valid = row < A.shape[0]
    ends, slots = sort_by(jnp.where(valid, col, A.shape[1]), A.shape[1])
    columns, values = row[slots], A.data[slots]
    same = jnp.array_equal(ends, A.indptr)
    same &= jnp.all(~valid | ((columns == A.indices) & _equal(values, A.data)))
    return _flipped(A, values, columns, ends), slots, same


def _flipped(A: CSR, data: Any, indices: Any, indptr: Any) -> CSR:
    return CSR(data, indices, indptr, A.overflow, (A.shape[1], A.shape[0]), True, A.unique)


def _near(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Element-wise, equal but for rounding."""
    wide = np.result_type(a.dtype, np.float64) if a.dtype.kind == "c" else np.float64
    return np.isclose(a.astype(wide), b.astype(wide), equal_nan=True)


def _equal(a: Any, b: Any) -> Any:
    """Element-wise, NaN as equal to NaN."""
    return (a == b) | ((a != a) & (b != b))
