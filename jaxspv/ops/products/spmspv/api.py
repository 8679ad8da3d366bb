"""Sparse matrix times sparse vector: the operation, its capacity and its tangent.

Every method (`spmspv_xla`, those of Yang 2015 and GraphBLAS-sharp; `spmspv_gpu`) gives the same
`SparseVector`: the rows that hold at least one product, ascending. `A` maps `inner` (its columns)
to `out` (its rows); a CSC of A lists the entries of a column, which is what the push methods need.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ...._core.eager.arrays import on_accelerator
from ...._core.indices import eager_capacity
from ...._core.operation import Operation, typed
from ...._core.pytree import is_concrete
from ...._core.reductions import is_narrow
from ....algebra.masks import Mask
from ....algebra.semirings import Semiring
from ....formats import SparseMatrix
from ....formats.vector import SparseVector
from ..common.product import Factors, Pairs, joined_tangent, result_dtype, take

METHODS = ("auto", "scatter", "sort", "merge", "row", "dense", "tile")


def multiply_sparse(
    A: SparseMatrix, x: SparseVector, semiring: Semiring, mask: Mask | None, how: Any
) -> SparseVector:
    """`y = A x` for checked operands; `how` holds the options `method`, `backend`, `nse` of `mxv`,
    and `flip`."""
    dtype, nse, method, flip = result_dtype(semiring, A, x, how.flip), how.nse, how.method, how.flip
    if is_narrow(dtype):
        A, x = A.astype(jnp.float32), x.astype(jnp.float32)
        return multiply_sparse(A, x, semiring, mask, how).astype(dtype)
    x = x.canonical()  # methods search in x, or let one entry stand for its place
    known = A.compressed == 1 and is_concrete(A.indptr, x.indices, x.count)  # pyright: ignore
    bound = bound_of(A, x) if nse is None and known else min(A.shape[0], A.nse)
    capacity = bound if nse is None else nse
    allowed = None if mask is None else mask.allowed()
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {METHODS}; got {method!r}.")
    chosen = None if method == "auto" else method
    y = op(semiring, A, x, allowed, backend=how.backend, method=chosen, flip=flip, nse=capacity)
    if nse is not None and is_concrete(y.overflow, x.overflow) and y.overflow and not x.overflow:
        whole = op(semiring, A, x, allowed, flip=flip, nse=min(A.shape[0], A.nse))
        needed = int(whole.count)
        raise ValueError(f"`nse` must be at least {needed} to hold the result; got {nse}.")
    return y


def bound_of(A: Any, x: Any) -> int:
    """The bucket of a bound on the entries of an eager `y = A x`, without a sync with a device.

    On a host the bound is the edges that x selects or the rows, whichever are fewer.
    """
    (m, _), most = A.shape, min(A.shape[0], A.nse)
    coarse = most > eager_capacity(0, m)
    if coarse and A.compressed == 1 and not on_accelerator(A.indptr, x.indices):
        indptr = np.asarray(A.indptr)
        chosen = np.asarray(x.indices)[: int(x.count)]
        most = min(most, int((indptr[chosen + 1] - indptr[chosen]).sum(dtype=np.int64)))
    return eager_capacity(most, m)


def needs_columns(semiring, A, x, allowed, **_) -> str | None:
    if A.compressed == 1:
        return None
    return f"it reads columns, and {type(A).__name__} lists rows (use a CSC, or vxm with a CSR)"


def _tangent(primals, tangents, y, *, flip, nse):
    """The tangent has the pattern of y: each product is added to its place in y."""
    semiring, A, x, allowed = primals
    semiring_dot, A_dot, x_dot, _ = tangents
    out, inner = A.rowcol()
    place_of = jnp.full(A.shape[1], x.nse, jnp.int32)
    place_of = place_of.at[x.indices].set(jnp.arange(x.nse, dtype=jnp.int32), mode="drop")
    owner = place_of.at[inner].get(mode="fill", fill_value=x.nse)
    valid = (out < A.shape[0]) & (owner < x.nse)
    if allowed is not None:
        valid &= allowed.at[out].get(mode="fill", fill_value=False)
    target = jnp.searchsorted(y.indices, out).astype(jnp.int32)
    target = jnp.where(valid & (take(y.indices, target) == out), target, nse)

    pairs = Pairs(A.data, out, inner, x.data, owner, valid)
    dots = Factors(semiring_dot, A_dot.data, x_dot.data)
    ascending = getattr(A, "sorted", False)
    data = joined_tangent(semiring, pairs, dots, target, y.data, flip=flip, ascending=ascending)
    return SparseVector(data, None, None, None, y.shape)  # pyright: ignore[reportArgumentType]


def _types(semiring, A, x, allowed, *, flip, nse):
    data, index = typed(result_dtype(semiring, A, x, flip), nse), A.index_dtype
    return SparseVector(data, typed(index, nse), typed(index), typed(jnp.bool_), A.shape[:1])


op = Operation("spmspv", _tangent, types=_types)
op.gpu_forms_in(f"{__package__}.gpu")
