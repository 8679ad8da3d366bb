"""Sparse times sparse as one product with a sparse vector for each row of the result."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from .....algebra.masks import Mask
from .....algebra.semirings import Semiring
from .....formats import CSR
from .....formats.vector import SparseVector
from ...common.product import take
from ...spmspv.api import op as multiply_vector
from ..esc import offsets
from ..expand import LARGEST, allowed_at
from ..result import Result, term_dtype


def multiply_by_vectors(
    semiring: Semiring, A: CSR, B: CSR, mask: Mask | None, *, nse: int
) -> Result:
    """`C[i, :] = A[i, :] B`, appended row after row; O(l + n) beside the products of a row."""
    (m, l), n = A.shape, B.shape[1]
    columns: Any = B.T
    slot = jnp.arange(min(l, A.nse), dtype=jnp.int32)
    column = jnp.arange(n, dtype=jnp.int32)

    def row(i, state):
        total, count, indices, data, wrapped = state
        first, own = A.indptr[i], A.indptr[i + 1] - A.indptr[i]
        inner = jnp.where(slot < own, take(A.indices, first + slot), l)
        x = SparseVector(take(A.data, first + slot), inner, own, A.overflow, (l,))
        allowed = None if mask is None else allowed_at(mask, jnp.full(n, i, jnp.int32), column)
        y = multiply_vector(semiring, columns, x, allowed, flip=True, nse=n)
        place = jnp.where((column < y.count) & (total <= nse), total + column, nse)
        indices = indices.at[place].set(y.indices, mode="drop")
        data = data.at[place].set(y.data.astype(data.dtype), mode="drop")
        total = total + y.count
        total = jnp.where(total < 0, LARGEST, total)
        return total, count.at[i].set(y.count), indices, data, wrapped | y.overflow

    dtype = term_dtype(semiring, A.dtype, B.dtype)
    empty = jnp.zeros(m, jnp.int32), jnp.full(nse, n, jnp.int32), jnp.zeros(nse, dtype)
    end = lax.fori_loop(0, m, row, (jnp.int32(0), *empty, jnp.asarray(False)))
    return Result(offsets(end[1], nse), end[2], end[3], end[0], end[4])
