"""The transpose of a CSR with the slot of each of its entries, and whether it equals the matrix."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pallas_kernels.layouts.ragged import owners_from, piece_of, within

from ..._core.compilation import on_gpu, to_device
from ..csr import CSR, sort_by

EXACT, ROUNDED, PATTERN = range(3)  # how `known_symmetric` compares values
SMALL = 1 << 16  # entries that NumPy sorts in less time than importing scipy.sparse takes


def transposed_with_slots(A: CSR) -> tuple[CSR, Array, Array | bool]:
    """A transposed, the slot of each of its entries in A, and whether A equals it; eager.

    The check compares pattern and values, NaN as equal to NaN. Where the matrix is: by NumPy and
    SciPy on a CPU, by one program on a GPU.
    """
    return (_on_device if on_gpu(A.indices) else _on_host)(A)


def known_symmetric(A: CSR, compare: int = EXACT) -> bool | None:
    """Whether a matrix on a GPU equals its transpose, found without it; None: not known so; eager.

    Memory: some bytes for each entry of an eighth of them.

    Args:
        compare: EXACT, ROUNDED (values but for rounding) or PATTERN (no values): one program.
    """
    if not on_gpu(A.indices) or A.nse == 0 or not (A.sorted and A.unique):
        return None
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


def _on_host(A: CSR) -> tuple[CSR, Array, bool]:
    """The transpose, the slot of each of its entries in A, and whether it equals A.

    Counting sort by column: nothing to compile.
    """
    indptr, indices, data = (np.asarray(x) for x in (A.indptr, A.indices, A.data))
    count = int(indptr[-1])
    slots, columns, ends = _by_column(indptr, indices[:count], A.shape)
    pad = (0, A.nse - count)
    slots = np.pad(slots, pad, constant_values=A.nse).astype(np.int32)
    columns = np.pad(columns.astype(np.int32), pad, constant_values=A.shape[0])
    values = data[np.minimum(slots, A.nse - 1)] if A.nse else data
    ends = ends.astype(np.int32)
    same = np.array_equal(ends, indptr) and np.array_equal(columns[:count], indices[:count])
    same = same and bool(_equal(values[:count], data[:count]).all())
    values, columns, ends, slots = to_device((values, columns, ends, slots))
    return _flipped(A, values, columns, ends), slots, same


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


def _flipped(A: CSR, data: Array, indices: Array, indptr: Array) -> CSR:
    return CSR(data, indices, indptr, A.overflow, (A.shape[1], A.shape[0]), True, A.unique)


def _equal(a: Any, b: Any) -> Any:
    """Element-wise, NaN as equal to NaN."""
    return (a == b) | ((a != a) & (b != b))
