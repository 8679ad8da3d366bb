"""Matrices with duplicate entries: every product takes their sum."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp

from ... import monoids, operators
from ...formats import COO, CSC, CSR, SparseMatrix
from ...semirings import Semiring


def joined(A: SparseMatrix, semiring: Semiring) -> SparseMatrix:
    """A with each place once, unless the semiring makes the same of the entries apart.

    Only (plus, times) distributes over the sum of repeated entries: max_plus would take the larger
    of two, plus_pair would count both.
    """
    apart = (semiring.add.op.fn, semiring.mul.fn) == (operators.plus.fn, operators.times.fn)
    return A if A.unique or apart else _joined(A)


@functools.partial(jax.jit)
def _joined(A: SparseMatrix) -> SparseMatrix:
    coo = A.to_coo()
    m, nse = coo.shape[0], coo.nse
    if nse == 0:
        return dataclasses.replace(A, unique=True)  # pyright: ignore[reportArgumentType, reportCallIssue]
    fresh = (coo.row[1:] != coo.row[:-1]) | (coo.col[1:] != coo.col[:-1])
    group = jnp.cumsum(jnp.append(True, fresh), dtype=coo.index_dtype) - 1
    group = jnp.where(coo.row < m, group, nse)
    data = monoids.plus.segment_reduce(coo.data, group, nse, sorted=True)
    row = jnp.full_like(coo.row, m).at[group].set(coo.row, mode="drop")
    col = jnp.full_like(coo.col, coo.shape[1]).at[group].set(coo.col, mode="drop")
    once = COO(data, row, col, coo.overflow, coo.shape)
    return once.asformat(A.format if isinstance(A, (COO, CSC, CSR)) else "csr")
