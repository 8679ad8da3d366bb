"""The transpose of a CSR with the slot of each of its entries, and whether it equals the matrix."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..._core.compilation import on_gpu
from ..csr import CSR, sort_by


def transposed_with_slots(A: CSR) -> tuple[CSR, Array, Array | bool]:
    """A transposed, the slot of each of its entries in A, and whether A equals it; eager.

    The check compares pattern and values, NaN as equal to NaN. Where the matrix is: by NumPy and
    SciPy on a CPU, by one program on a GPU.
    """
    return (_on_device if on_gpu(A.indices) else _on_host)(A)


def _on_host(A: CSR) -> tuple[CSR, Array, bool]:
    """The transpose, the slot of each of its entries in A, and whether it equals A.

    Counting sort by column, in SciPy: nothing to compile.
    """
    import scipy.sparse

    indptr, indices, data = (np.asarray(x) for x in (A.indptr, A.indices, A.data))
    count = int(indptr[-1])
    order = np.arange(count, dtype=np.int64 if count >= 2**31 else np.int32)
    flipped = scipy.sparse.csr_array((order, indices[:count], indptr), shape=A.shape).tocsc()
    pad = (0, A.nse - count)
    slots = np.pad(flipped.data, pad, constant_values=A.nse).astype(np.int32)
    columns = np.pad(flipped.indices.astype(np.int32), pad, constant_values=A.shape[0])
    values = data[np.minimum(slots, A.nse - 1)] if A.nse else data
    ends = flipped.indptr.astype(np.int32)
    same = np.array_equal(ends, indptr) and np.array_equal(columns[:count], indices[:count])
    same = same and bool(_equal(values[:count], data[:count]).all())
    values, columns, ends, slots = (jnp.asarray(x) for x in (values, columns, ends, slots))
    return _flipped(A, values, columns, ends), slots, same


@jax.jit
def _on_device(A: CSR) -> tuple[CSR, Array, Array]:
    """The same by a stable sort of slot numbers by column."""
    row, col = A.rowcol()
    there = row < A.shape[0]
    ends, slots = sort_by(jnp.where(there, col, A.shape[1]), A.shape[1])
    columns, values = row[slots], A.data[slots]
    same = jnp.array_equal(ends, A.indptr)
    same &= jnp.all(~there | ((columns == A.indices) & _equal(values, A.data)))
    return _flipped(A, values, columns, ends), slots, same


def _flipped(A: CSR, data: Array, indices: Array, indptr: Array) -> CSR:
    return CSR(data, indices, indptr, A.overflow, (A.shape[1], A.shape[0]), True, A.unique)


def _equal(a: Any, b: Any) -> Any:
    """Element-wise, NaN as equal to NaN."""
    return (a == b) | ((a != a) & (b != b))
