"""The transpose of a CSR with the slot of each of its entries, and whether it equals the matrix."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pallas_kernels.layouts.ragged import owners_from, piece_of, within

from ..._core.eager.arrays import by_numpy
from ..csr import CSR, sort_by

EXACT, ROUNDED, PATTERN = range(3)  # how `known_symmetric` compares values
SMALL = 1 << 16  # entries that NumPy sorts in less time than importing scipy.sparse takes


def transposed_with_slots(A: CSR) -> tuple[CSR, Array, Array | bool]:
    """A transposed, the slot of each of its entries in A, and whether A equals it; eager.

    The check compares pattern and values, NaN as equal to NaN. By NumPy and SciPy, whose arrays are
    the result; a large matrix on a GPU by one program there.
    """
    return _on_host(A) if by_numpy(A.indices) else _on_device(A)


def known_symmetric(A: CSR, compare: int = EXACT) -> bool | None:
    """Whether a matrix equals its transpose; None: its rows are not sorted; eager.

    On a GPU without the transpose. Memory: some bytes for each entry of an eighth of them.

    Args:
        compare: EXACT, ROUNDED (values but for rounding) or PATTERN (no values): one program.
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
