"""Matrices that list a place twice, or rows out of order: the same matrix in canonical form."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from .._core.batching import over_trailing
from ..algebra.monoids import plus
from .base import SparseMatrix
from .coo import COO
from .csr import CSC, CSR, sorted_csr


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
