"""Sparse times dense on NVIDIA GPUs: when the kernel over a CSR serves, and how it is called."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from pallas_kernels.layouts.ragged import LIMIT
from pallas_kernels.products.spmm import NARROW, Config, coo_spmm, csr_spmm

from ...._core.loops import one_by_one
from ..spmv.gpu import SCALARS, no_scalars, scalars
from .api import no_dense_fold, register, result_dtype, widened

SCATTERED = 64  # columns up to which atomics cost less than a sort of the entries by row


def _not_here(semiring, A, X, transposed, *, flip) -> str | None:
    if reason := no_dense_fold(semiring, A, X, transposed, flip=flip):
        return reason
    if A.index_dtype != jnp.int32 or A.nse + A.shape[0] > LIMIT:
        return "kernels count rows and entries in int32"
    if max(A.shape) * X.shape[1] > LIMIT:
        return "kernels count the numbers of X and of the result in int32"
    for v in (A, X):
        if v.dtype.name not in (*SCALARS, *NARROW):
            return f"kernels take float32, int32, bfloat16 and float16, not {v.dtype}"
    by_sums = semiring.add.sums_exponentials  # in place of the addition's function
    return no_scalars(semiring, _wide(A), _wide(X), flip, addition=not by_sums)


def _wide(v):
    """The type of what the kernel computes with."""
    return jax.ShapeDtypeStruct(v.shape, "float32") if v.dtype.name in NARROW else v


def _not_scattered(semiring, A, X, transposed, *, flip) -> str | None:
    """Why the entries of columns are not added in place."""
    if A.compressed != 1:
        return "the entries of a row lie side by side"
    if X.shape[1] > SCATTERED:
        return f"with more than {SCATTERED} columns a sort of the entries by row costs less"
    dtype = result_dtype(semiring, A, X, flip)
    if semiring.add.atomic(dtype) != "add" or dtype.name not in ("float32", *NARROW):
        return "its atomics add float32"
    return _not_here(semiring, A, X, transposed, flip=flip)


@register("scatter", one_by_one, backend="pallas", refuse=_not_scattered)
def _scatter(semiring, A, X, transposed, *, flip):
    """The entries as they lie, each product added in place by atomics; one launch."""
    dtype = result_dtype(semiring, A, X, flip)
    data, X = A.data.astype(jnp.float32), X.astype(jnp.float32)
    (row, col), how = A.rowcol(), scalars(semiring, data, X, flip)
    return coo_spmm(row, col, data, X, A.shape[0], semiring=how).astype(dtype)


@register("merge_path", one_by_one, backend="pallas", refuse=_not_here)
def _merge_path(semiring, A, X, transposed, *, flip):
    """Rows and entries shared evenly by groups of lanes, which have the columns; one launch."""
    A, dtype = A.asformat("csr"), result_dtype(semiring, A, X, flip)
    if X.dtype.name in NARROW and dtype.name not in ("float32", X.dtype.name):
        A, X = widened(A, X, dtype)
    how = scalars(semiring, _wide(A), _wide(X), flip)
    config = Config(dtype, log_sum=semiring.add.sums_exponentials)
    y = csr_spmm(A.indptr, A.indices, A.data, X, semiring=how, config=config)
    return y.astype(dtype)
