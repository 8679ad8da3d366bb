"""The tangent of a product over (+, x): a linear map with a fast transpose."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from ...formats import CSC, CSR
from ...monoids import plus
from ...semirings import Semiring
from ..frame.product import safe, take
from ..frame.transposable import with_transpose
from .rows.layout import Arranged, Rows
from .rows.vjp import csr_vjp


def is_bilinear(semiring: Semiring, A: Any, x: Array, y: Array) -> bool:
    """Whether `y = A x` adds ordinary products of one floating dtype along a compressed axis."""
    return (
        A.compressed is not None
        and semiring.add.atomic(y.dtype) == "add"
        and semiring.mul.fn is jnp.multiply
        and A.dtype == x.dtype == y.dtype
        and jnp.issubdtype(y.dtype, jnp.floating)
    )


def bilinear_tangent(
    product: Any,
    A: CSR | CSC,
    x: Array,
    data_dot: Array | None,
    x_dot: Array | None,
    rows: Arranged | None = None,
) -> Array:
    """`y_dot[i] = sum_j (data_dot[i, j] x[j] + A[i, j] x_dot[j])`; None stands for zero.

    `product(A, x, perturbed)` computes `A x` by the best means;
    `perturbed`: the values of A are new.
    rows: what was prepared of the rows of a CSR; its values are not looked at.

    Left to JAX, the transpose of that is a gather, products and a scatter, each with an array of
    all entries, after the row of every entry has been found. It is `csr_vjp` instead:
    `(w[i] x[j], sum_i w[i] A[i, j])`.
    """
    m, n = A.shape
    live = [t is not None for t in (data_dot, x_dot)]
    perturbed = tuple(t for t in (data_dot, x_dot) if t is not None)

    def named(parts):
        parts = iter(parts)
        return [next(parts) if on else None for on in live]

    def by_definition(parts):
        d, v = named(parts)
        out, inner = A.rowcol()
        valid = out < m
        terms = jnp.zeros(A.nse, x.dtype)
        if d is not None:
            terms += safe(d, valid) * take(x, inner)
        if v is not None:
            terms += safe(A.data, valid) * take(v, inner)
        return plus.segment_reduce(jnp.where(valid, terms, 0), out, m)

    def forward(parts):
        d, v = named(parts)
        y = jnp.zeros(m, x.dtype)
        if d is not None:
            y = y + product(A.with_data(d), x, perturbed=True)
        if v is not None:
            y = y + product(A, v, perturbed=False)
        return y

    def transposed(w):
        return tuple(s for s in _transposed(product, A, x, w, rows, *live) if s is not None)

    return with_transpose(by_definition, forward, transposed, perturbed, m, (A.data, x))


def _transposed(product, A, x, w, rows, values: bool, vector: bool):
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
    # A CSC is the CSR of its transpose: x weighs what are rows there, w meets the columns.
    by_values = csr_vjp(A.indptr, A.indices, x, m, x=w)[0] if values else None
    return by_values, product(A.T, w, perturbed=False) if vector else None


def _entries(rows: Arranged | None) -> dict[str, Any]:
    if not isinstance(rows, Rows):
        return {}
    ranked = None if rows.ranks is None else (rows.ranks, rows.bins.order)
    return {"rows": rows.owners, "ranked": ranked}
