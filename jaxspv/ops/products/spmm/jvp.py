"""The tangent of sparse times dense, and what its transpose is made of.

Over (+, x) the derivative by X is a product with the transpose, that by the values a dot of two
rows at each entry; over other semirings the columns are those of `mxv`, block by block.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero

from ...._core.derivatives import dense_tangent, is_zero
from ...._core.operation import Operation, typed
from ....algebra.semirings import plus_times
from ..common.dense_products import dots, is_bilinear
from ..common.dense_products import spmm as op
from ..spmv import api as spmv

HELD = 2**24  # numbers that a block of columns holds


def tangent(primals, tangents, Y, *, flip):
    semiring, A, X, transposed = primals
    if 0 in (A.nse, *A.shape, X.shape[1]):
        return jnp.zeros_like(Y)
    if A.compressed is None or not is_bilinear(semiring, A, X, Y):
        return _by_columns(primals, tangents, Y, flip)
    d, V = (None if is_zero(t) else t for t in (tangents[1].data, tangents[2]))
    return pushed(A, X, d, V, transposed) if d is not None or V is not None else jnp.zeros_like(Y)


def _by_columns(primals, tangents, Y, flip):
    """The tangent of `mxv` column by column; a block's intermediate values are recomputed."""
    semiring, A, X, _ = primals
    semiring_dot, A_dot, X_dot, _ = tangents
    perturbed = not is_zero(X_dot)
    constant = SymbolicZero(jax.typeof(X[:, 0]))

    def column(x, y, x_dot=None):
        x_dot = constant if x_dot is None else x_dot
        dots = semiring_dot, A_dot, x_dot, None
        return spmv.op.tangent((semiring, A, x, None), dots, y, flip=flip)

    columns = (X.T, Y.T, dense_tangent(X_dot).T) if perturbed else (X.T, Y.T)
    size = max(1, HELD // (A.nse + sum(A.shape)))
    return lax.map(jax.checkpoint(lambda c: column(*c)), columns, batch_size=size).T


def _push(A, X, d, V, transposed):
    """`Y_dot = d X + A V`; None stands for zero."""
    parts = [] if d is None else [op(plus_times, A.with_data(d), X, None, flip=False)]
    parts += [] if V is None else [op(plus_times, A, V, transposed, flip=False)]
    return functools.reduce(jnp.add, parts)


def _pull(W, A, X, d, V, transposed):
    """The cotangents of `_push`: dots of two rows at each entry, a product with the transpose."""
    steady = _steady(A)
    by_values = None if d is None else dots(steady, W, X)
    by_X = None
    if V is not None:  # by the rows of the transpose, if they are prepared
        back = steady.T if transposed is None else transposed
        by_X = op(plus_times, back, W, A, flip=False)
    return None, None, by_values, by_X, None


pushed = Operation("tangent of spmm", "definition", transpose=_pull, internal=True)
pushed.types = lambda A, X, *_: typed(X.dtype, A.shape[0], X.shape[1])
pushed.register("products")(_push)


def _steady(A: Any) -> Any:
    """A with a pattern that XLA does not know: of a constant one it would sort the indices, or
    search their rows, while compiling, for minutes."""
    if A.compressed is None:
        return A
    indptr, indices = lax.optimization_barrier((A.indptr, A.indices))
    return dataclasses.replace(A, indptr=indptr, indices=indices)
