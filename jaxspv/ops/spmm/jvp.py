"""The tangent of sparse times dense, and what its transpose is made of.

Over (+, x) the derivative by X is a product with the transpose, that by the values a dot of two
rows at each entry; over other semirings the columns are those of `mxv`, block by block.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_derivatives import SymbolicZero

from ..._core.derivatives.tangents import dense_tangent, is_zero
from ...semirings import plus_times
from ..frame.product import safe, take
from ..frame.transposable import with_transpose
from ..mxv import spmv
from ..mxv.jvp import is_bilinear

HELD = 2**24  # numbers that a block of columns holds
AT_ENTRIES: dict[str, Callable[..., Array]] = {}  # "dots": `<W_i, X_j>` there, set by ops.sddmm


def tangent_of(product: Callable[..., Array]) -> Callable[..., Array]:
    """The tangent of `product(semiring, A, X, prepared, flip=)`, which is its own means."""

    def tangent(primals, tangents, Y, *, flip):
        semiring, A, X, prepared = primals
        if 0 in (A.nse, *A.shape, X.shape[1]):
            return jnp.zeros_like(Y)
        if is_bilinear(semiring, A, X, Y):
            return _bilinear(product, primals, tangents, flip)
        return _by_columns(primals, tangents, Y, flip)

    return tangent


def _by_columns(primals, tangents, Y, flip):
    """The tangent of `mxv` column by column; a block's intermediate values are recomputed."""
    semiring, A, X, _ = primals
    semiring_dot, A_dot, X_dot, _ = tangents
    perturbed = not is_zero(X_dot)
    constant = SymbolicZero(jax.typeof(X[:, 0]))

    assert spmv.op.tangent is not None
    of_vector = spmv.op.tangent

    def column(x, y, x_dot=None):
        x_dot = constant if x_dot is None else x_dot
        dots = semiring_dot, A_dot, x_dot, None
        return of_vector((semiring, A, x, None), dots, y, flip=flip)

    columns = (X.T, Y.T, dense_tangent(X_dot).T) if perturbed else (X.T, Y.T)
    size = max(1, HELD // (A.nse + sum(A.shape)))
    return lax.map(jax.checkpoint(lambda c: column(*c)), columns, batch_size=size).T


def _bilinear(product, primals, tangents, flip):
    """`Y_dot = A_dot X + A X_dot` with a transpose of its own."""
    semiring, A, X, prepared = primals
    _, A_dot, X_dot, _ = tangents
    (m, n), k = A.shape, X.shape[1]
    live = [not is_zero(A_dot.data), not is_zero(X_dot)]
    perturbed = [t for t, on in zip((A_dot.data, X_dot), live, strict=True) if on]
    if not perturbed:
        return jnp.zeros((m, k), X.dtype)

    def named(parts):
        parts = iter(parts)
        d, v = (next(parts) if on else None for on in live)
        return d, None if v is None else v.reshape(n, k)

    def definition(parts):
        return _by_definition(A, X, *named(parts)).reshape(-1)

    def forward(parts):
        d, v = named(parts)
        Y = jnp.zeros((m, k), X.dtype)
        if d is not None:
            Y = Y + product(semiring, A.with_data(d), X, prepared._replace(rows=None), flip=flip)
        if v is not None:
            Y = Y + product(semiring, A, v, prepared, flip=flip)
        return Y.reshape(-1)

    def transposed(w):
        W = w.reshape(m, k)
        by_values = AT_ENTRIES["dots"](_steady(A), W, X) if live[0] else None
        by_X = _turned_product(product, A, W, prepared).reshape(-1) if live[1] else None
        return tuple(s for s in (by_values, by_X) if s is not None)

    flat = tuple(t.reshape(-1) for t in perturbed)
    residuals = (A.data, X.reshape(-1))
    return with_transpose(definition, forward, transposed, flat, m * k, residuals).reshape(m, k)


def _by_definition(A, X, d, v):
    """In operations that JAX differentiates and transposes, a block of columns at a time."""
    out, inner = A.rowcol()
    there = out < A.shape[0]
    data = safe(A.data, there)

    def column(c):
        x, x_dot = c
        terms = jnp.zeros(A.nse, X.dtype)
        if d is not None:
            terms += safe(d, there) * take(x, inner)
        if v is not None:
            terms += data * take(x_dot, inner)
        y = jnp.zeros(A.shape[0], X.dtype)
        return y.at[out].add(jnp.where(there, terms, 0), mode="drop")

    columns = X.T, (jnp.zeros_like(X) if v is None else v).T
    size = max(1, HELD // (A.nse + sum(A.shape)))
    return lax.map(jax.checkpoint(column), columns, batch_size=size).T


def _turned_product(product, A, W, prepared):
    """`A^T W` over (+, x), by the rows of the transpose where somebody has them."""
    turned = _steady(A.T) if prepared.turned is None else prepared.turned
    return product(plus_times, turned, W, type(prepared)(None, A), flip=False)


def _steady(A: Any) -> Any:
    """A with a pattern that XLA does not know: of a constant one it would sort the indices, or
    search their rows, while compiling, for minutes."""
    if A.compressed is None:
        return A
    indptr, indices = lax.optimization_barrier((A.indptr, A.indices))
    return dataclasses.replace(A, indptr=indptr, indices=indices)
