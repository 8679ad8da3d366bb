"""Products with dense matrices, declared below those that use them.

The derivative of sparse times dense is a product sampled at the entries and the other way round;
products with many vectors are one with a matrix. Forms and derivatives are in `spmm` and `sddmm`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...._core.operation import Operation
from ....algebra.semirings import Semiring, plus_times


def is_linear(semiring: Semiring, *operands: Any, **static: Any) -> bool:
    """Whether a product adds ordinary products: it has a transpose by each operand."""
    return semiring.mul.fn is jnp.multiply and semiring.add.atomic(jnp.float32) == "add"


def is_bilinear(semiring: Semiring, *arrays: Any) -> bool:
    """Whether a product adds ordinary products of arrays that all have one real dtype."""
    same = len({x.dtype for x in arrays}) == 1 and jnp.issubdtype(arrays[0].dtype, jnp.floating)
    return same and is_linear(semiring)


# transposed: A.T as a CSR, with its values, for the derivative by X; or None.
spmm = Operation("spmm", linear=is_linear)  # `spmm(semiring, A, X, transposed, flip=)`
sddmm = Operation("sddmm", linear=is_linear)  # `sddmm(semiring, A, X, Y)`
for _op in (spmm, sddmm):
    _op.gpu_forms_in(__name__.replace("common.dense_products", f"{_op.name}.gpu"))


def bare(A: Any) -> Any:
    """The pattern of A; its values are placeholders that are never read."""
    slots = (*A.overflow.shape, A.nse) if hasattr(A.overflow, "shape") else (A.nse,)
    return dataclasses.replace(A, data=np.zeros(slots, bool)) if A.takes_arrays else A


def dots(A: Any, W: Array, X: Array) -> Array:
    """`<W_i, X_j>` at the entries, of arrays of two dtypes in that of the result of a product."""
    dtype = jnp.promote_types(W.dtype, X.dtype)
    return sddmm(plus_times, bare(A), W.astype(dtype), X.astype(dtype)).astype(X.dtype)
