"""The tangent of a product over (+, x): a linear map with a fast transpose."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from ....algebra.semirings import Semiring
from ..row_layouts.layout import Arranged, Rows
from .vjp import csr_vjp


def is_bilinear(semiring: Semiring, A: Any, x: Array, y: Array) -> bool:
    """Whether `y = A x` adds ordinary products of one floating dtype along a compressed axis."""
    return (
        A.compressed is not None
        and semiring.add.atomic(y.dtype) == "add"
        and semiring.mul.fn is jnp.multiply
        and A.dtype == x.dtype == y.dtype
        and jnp.issubdtype(y.dtype, jnp.floating)
    )


def cotangents(
    product: Any, A: Any, x: Array, w: Array, rows: Arranged | None, values: bool, vector: bool
) -> tuple[Array | None, Array | None]:
    """`(w[i] x[j], sum_i w[i] A[i, j])`: the cotangents of A's values and of x, given w of `A x`.

    Args:
        product: `product(A, x)` computes `A x` by the best means.
        A: compressed along either axis.
        rows: what was prepared of the rows of a CSR; its values are not looked at.
        values, vector: which of the two are wanted; None for the other.
    """
    m, n = A.shape
    if A.compressed == 0:
        return csr_vjp(
            A.indptr,
            A.indices,
            w,
            n,
            x=x if values else None,
            data=A.data if vector else None,
            **_entries(rows),
        )
    # A CSC is the CSR of its transpose: x multiplies the rows of that, w its columns.
    by_values = csr_vjp(A.indptr, A.indices, x, m, x=w)[0] if values else None
    return by_values, product(A.T, w) if vector else None


def _entries(rows: Arranged | None) -> dict[str, Any]:
    if not isinstance(rows, Rows):
        return {}
    ranked = None if rows.ranks is None else (rows.ranks, rows.bins.order)
    return {"rows": rows.owners, "ranked": ranked}
