"""Sparse matrix times sparse vector on CPUs in C++, for built-in semirings."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ....formats.vector import SparseVector
from ....native import bind
from ....native.codes import codes


def refuse(semiring: Any, A: Any, x: Any, allowed: Any, *, flip: bool, nse: int) -> str | None:
    """Why the kernels cannot serve a call: a sentence, or None."""
    if A.compressed is None or A.index_dtype != jnp.int32:
        return f"{type(A).__name__} has no compressed axis with indices of 32 bits"
    if 0 in (A.nse, x.nse, nse, *A.shape):
        return "there is nothing to multiply"
    if semiring.mul.overflow is not None and jnp.issubdtype(A.dtype, jnp.integer):
        return "only the XLA loops detect that a sum was clamped"
    if A.dtype != x.dtype or semiring.add.takes_first or codes(semiring, A.dtype, flip) is None:
        return "it takes built-in semirings on float32, float64, int32, int64 or bool, all alike"
    return bind.refused()


def multiply(semiring: Any, A: Any, x: Any, allowed: Any, *, flip: bool, nse: int) -> SparseVector:
    """Columns of A are added to a dense array; each row of A looks its columns up in x."""
    m, n = A.shape
    kind = codes(semiring, A.dtype, flip)
    assert kind is not None
    results = tuple(
        jax.ShapeDtypeStruct(shape, dtype)
        for shape, dtype in (((nse,), jnp.int32), ((nse,), A.dtype), ((), jnp.int32))
    )
    indices, data, found = bind.call(
        "spmspv",
        results,
        *(A.indptr, A.indices, jnp.broadcast_to(A.data, A.indices.shape)),
        *(x.indices.astype(jnp.int32), x.data, x.count.astype(jnp.int32)),
        jnp.zeros(0, bool) if allowed is None else allowed,
        columns=A.compressed,
        rows=m,
        extent=n,
        **kind,
    )
    overflow = (found > nse) | A.overflow | x.overflow
    return SparseVector(data, indices, jnp.minimum(found, nse), overflow, (m,))
