"""SDDMM on a CPU, over the entries of a CSR, in C++."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ....native import bind
from ....native.codes import codes
from .xla import op


def _refuse(semiring, A, X, Y) -> str | None:
    if A.compressed != 0 or A.index_dtype != jnp.int32:
        return "it takes entries by row with indices of 32 bits"
    if X.ndim != 2 or 0 in (A.nse, *X.shape, *Y.shape):
        return "it takes one head, and something to multiply"
    if X.dtype != Y.dtype or semiring.add.takes_first or codes(semiring, X.dtype) is None:
        return "it takes built-in semirings on float32, float64, int32, int64 or bool, all alike"
    return bind.refused()


@op.register("native", backend="cpu", refuse=_refuse)
def _native(semiring, A, X, Y) -> Array:
    """A dot product in eight parts for each entry."""
    kind = codes(semiring, X.dtype)
    assert kind is not None
    values = jax.ShapeDtypeStruct((A.nse,), X.dtype)
    return bind.call("sddmm", values, A.indptr, A.indices, X, Y, **kind)
