"""The common result type of the methods of a sparse product, and helpers to make it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from ....algebra.masks import Mask
from ....algebra.semirings import Semiring
from ....formats import CSR, SparseMatrix
from ....formats.csr import sorted_csr
from ..common.product import term_dtype as term_dtype


class Result(NamedTuple):
    """C by rows: offsets (m + 1,), columns and values (nse,), and what to know about them.

    Attributes:
        total: entries that C has, also where they exceed nse; 2^31 - 1 stands for any larger.
        wrapped: a product did not fit its dtype.
    """

    indptr: Array
    indices: Array
    data: Array
    total: Array
    wrapped: Array


def no_entries(m: int, n: int, nse: int, dtype: Any) -> Result:
    """What a loop adds entries to; `indptr` (m,) holds the lengths of the rows, for `offsets`."""
    lengths, indices = jnp.zeros(m, jnp.int32), jnp.full(nse, n, jnp.int32)
    return Result(lengths, indices, jnp.zeros(nse, dtype), jnp.int32(0), jnp.asarray(False))


def offsets(r: Result) -> Result:
    """The result with (m + 1,) offsets of its rows, cut at nse, in place of their lengths."""
    nse = r.data.shape[0]
    ends = jnp.cumsum(r.indptr, dtype=jnp.int32)  # wraps only where the total exceeds nse
    wrapped = jnp.cumsum((ends < 0).astype(jnp.int32)) > 0
    ends = jnp.where(wrapped, nse, jnp.minimum(ends, nse))
    return r._replace(indptr=jnp.append(jnp.int32(0), ends))


def matrix_of(r: Result, A: SparseMatrix, B: SparseMatrix) -> CSR:
    """The result as a matrix; its overflow is sticky."""
    over = (r.total > r.data.shape[0]) | r.wrapped | A.overflow | B.overflow
    shape = (A.shape[0], B.shape[1])
    return CSR(r.data, r.indices, r.indptr, over, shape, True, True)


def empty(semiring: Semiring, A: SparseMatrix, B: SparseMatrix, nse: int) -> CSR:
    """A product without entries."""
    (m, _), (_, n) = A.shape, B.shape
    data = jnp.zeros(nse, term_dtype(semiring, A.dtype, B.dtype))
    indptr = jnp.zeros(m + 1, jnp.int32)
    indices = jnp.full(nse, n, jnp.int32)
    return CSR(data, indices, indptr, A.overflow | B.overflow, (m, n), True, True)


def sorted_mask(mask: Mask | None) -> Mask | None:
    """A mask whose sparse source is a sorted CSR."""
    if mask is None or not isinstance(mask.source, SparseMatrix):
        return mask
    return Mask(sorted_csr(mask.source), mask.structural, mask.complement)


def lists_places(mask: Mask | None) -> bool:
    """Whether a mask names the places that C may have."""
    return mask is not None and not mask.complement and isinstance(mask.source, SparseMatrix)
