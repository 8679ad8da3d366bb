"""Matrices in the memory of a host: what is asked for eagerly and small work for NumPy.

NumPy has no program for each size, so a first call of a new size compiles nothing.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ..._core.eager.arrays import is_eager, on_accelerator, to_device
from ..._core.indices import eager_capacity
from ...formats import CSR
from ...formats.stored import in_slots
from .index import Index


def is_listed(A: Any) -> bool:
    """Whether `entries_on_host` lists the entries of a matrix, each once."""
    return A.format in ("coo", "csr", "csc") and A.unique and not A.entry_shape


def is_on_host(A: Any, *operands: Any) -> bool:
    """Whether A has compressed rows or columns there, in order, and all operands are eager."""
    if A.format == "coo" or not (is_listed(A) and A.sorted):
        return False
    return is_eager(A, *operands) and not on_accelerator(*jax.tree.leaves((A, operands)))


def listed(index: Index) -> Any:
    """The places of an index as NumPy takes them: an array, or a slice."""
    if index.values is not None:
        return np.asarray(index.values)
    end = index.start + index.size * index.step
    return slice(index.start, end if end >= 0 else None, index.step)


def csr_like(A: Any, arrays: tuple[Any, ...], shape: tuple[int, int], overflow: Any) -> CSR:
    """A CSR of (data, indices, indptr), in the capacity of eager results, with dtypes of A."""
    data, indices, indptr = arrays
    capacity = eager_capacity(data.size, shape[0] * shape[1])
    return CSR(
        in_slots(data, capacity, 0, A.dtype),
        in_slots(indices, capacity, shape[1], A.index_dtype),
        to_device(indptr.astype(A.index_dtype)),
        overflow,
        shape,
    )
