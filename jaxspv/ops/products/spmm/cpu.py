"""Sparse times dense on CPUs: a kernel in C++."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from ...._core.batching import one_by_one
from ...._core.reductions import is_narrow
from ....native import bind
from ....native.codes import codes
from .xla import columns_together, no_dense_fold, op, result_dtype, widened


def _not_native(semiring, A, X, transposed, *, flip) -> str | None:
    if reason := no_dense_fold(semiring, A, X, transposed, flip=flip):
        return reason
    if A.index_dtype != jnp.int32:
        return "it takes indices of 32 bits"
    dtype = result_dtype(semiring, A, X, flip)
    wide, x = jax.eval_shape(functools.partial(widened, dtype=dtype), A, X)
    computed = jnp.dtype("float32") if is_narrow(dtype) else dtype
    if not wide.dtype == x.dtype == computed or codes(semiring, x.dtype, flip) is None:
        return "it takes built-in semirings on float32, float64, int32, int64 or bool, all alike"
    return bind.refused()


def _native(semiring, A, X, transposed, *, flip):
    """A loop in C++ over entries for each row and 16 columns."""
    dtype = result_dtype(semiring, A, X, flip)
    A, X = widened(A, X, dtype)
    rows = A.asformat("csr")
    kind = codes(semiring, X.dtype, flip)
    assert kind is not None
    Y = jax.ShapeDtypeStruct((A.shape[0], X.shape[1]), X.dtype)
    operands = rows.indptr, rows.indices, jnp.asarray(rows.data), X
    return bind.call("spmm", Y, *operands, **kind).astype(dtype)


_batched = columns_together(_native, one_by_one)
op.register("native", backend="cpu", refuse=_not_native, batched=_batched)(_native)
