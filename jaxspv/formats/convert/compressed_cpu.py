"""Matrices by row or by column for native loops on a CPU."""

from __future__ import annotations

import jax.numpy as jnp

from ..base import SparseMatrix
from ..coo import COO
from ..csr import CSC, CSR, compress
from .counting_sort import Compressed, transpose


def by_rows(A: SparseMatrix) -> Compressed:
    """The entries of A by row, in ascending order of column where A is sorted."""
    if isinstance(A, CSR):
        return Compressed(A.indptr, A.indices, A.data)
    if isinstance(A, CSC):
        return transpose(Compressed(A.indptr, A.indices, A.data), A.shape[0])
    coo = A if isinstance(A, COO) else A.to_coo()
    m, n = coo.shape
    if coo.sorted:
        return Compressed(compress(coo.row, m), coo.col, coo.data)
    # By column, then by row: stable, so rows end up sorted.
    whole = Compressed(jnp.stack([jnp.int32(0), coo.count]), coo.col, coo.data)
    if n == 0 or m == 0:
        return Compressed(jnp.zeros(m + 1, jnp.int32), coo.col, coo.data)
    columns = transpose(whole, n, major=coo.row)
    return transpose(columns, m)


def by_columns(A: SparseMatrix) -> Compressed:
    """The entries of A by column, in ascending order of row."""
    if isinstance(A, CSC):
        return Compressed(A.indptr, A.indices, A.data)
    return transpose(by_rows(A), A.shape[1])
