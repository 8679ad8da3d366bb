"""Sparse times dense: the operation behind `mxm` on an array, its forms in XLA, its tangent.

All forms process the columns of X in blocks, so that no (nse, columns) array of gathered rows is
ever in memory. Over (+, x) the derivative by X is a product with the transpose, that by the values
a dot of two rows at each entry; over other semirings the columns are those of `mxv`, in blocks.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_derivatives import SymbolicZero

from ...._core.derivatives import dense_tangent, is_zero
from ...._core.loops import vmapped
from ...._core.operation import Operation, typed
from ....algebra.semirings import plus_times
from ..common.product import bare, is_bilinear, product, result_dtype, safe, sddmm, take
from ..common.product import spmm as op
from ..spmv import api as spmv
from ..spmv.api import fold_of, widened
from ..spmv.xla import csr_spmv, piece_width

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
    # Of a constant pattern XLA would sort the indices, or search their rows, while compiling.
    indptr, indices = lax.optimization_barrier((A.indptr, A.indices))
    steady = dataclasses.replace(A, indptr=indptr, indices=indices)
    by_values = None if d is None else sddmm(plus_times, bare(steady), W, X)
    by_X = None
    if V is not None:  # by the rows of the transpose, if they are prepared
        back = steady.T if transposed is None else transposed
        by_X = op(plus_times, back, W, A, flip=False)
    return None, None, by_values, by_X, None


pushed = Operation("tangent of spmm", "definition", transpose=_pull, internal=True)
pushed.types = lambda A, X, *_: typed(X.dtype, A.shape[0], X.shape[1])
pushed.register("products")(_push)


LEAST_HELD = 2**24  # numbers that a block of columns may hold, if entries are few


def _types(semiring, A, X, transposed, *, flip):
    if semiring.mul.position is not None:
        return None
    return typed(result_dtype(semiring, A, X, flip), A.shape[0], X.shape[1])


op.tangent, op.types = tangent, _types


def by_columns(run: Callable[[Array], Array], X: Array, held: int) -> Array:
    """`run(X)`, (n, k) -> (m, k), which treats columns independently, in blocks of columns.

    held: temporary numbers that `run` holds for each column.
    """
    k, most = X.shape[1], max(LEAST_HELD, 4 * held)
    size = max(1, most // max(held, 1))
    return run(X) if size >= k else in_blocks(run, X, -(-k // -(-k // size)))


def in_blocks(run: Callable[[Array], Array], X: Array, size: int) -> Array:
    """`run(X)`, which treats columns independently, in blocks of `size` columns."""
    k = X.shape[1]

    def block(i, Y):
        at = jnp.minimum(i * size, k - size)  # the last block overlaps the one before
        part = run(lax.dynamic_slice_in_dim(X, at, size, 1))
        return lax.dynamic_update_slice_in_dim(Y, part, at, 1)

    one = jax.eval_shape(lambda X: run(X[:, :size]), X)
    return lax.fori_loop(0, -(-k // size), block, jnp.zeros((one.shape[0], k), one.dtype))


def register(name: str, others=vmapped, **how):
    """Decorator: enters a form. vmap over x alone: more columns of one product; else by `others`,
    `one_by_one` or JAX's."""

    def add(run):
        def batched(axis_size, in_batched, semiring, A, X, transposed, *, flip):
            if any(jax.tree.leaves((in_batched[0], in_batched[1], in_batched[3]))):
                return others(run, axis_size, in_batched, semiring, A, X, transposed, flip=flip)
            wide = jnp.moveaxis(X, 0, 1).reshape(X.shape[1], -1)
            Y = op(semiring, A, wide, transposed, flip=flip)
            return jnp.moveaxis(Y.reshape(Y.shape[0], axis_size, -1), 1, 0)

        return op.register(name, batched=batched, **how)(run)

    return add


def no_dense_fold(semiring, A, X, transposed, *, flip) -> str | None:
    """Why no form that pads with the identity serves."""
    if 0 in (A.nse, *A.shape, X.shape[1]):
        return "there is nothing to multiply"
    return spmv.no_fold(semiring, A)


@register("pieces", refuse=no_dense_fold)
def _pieces(semiring, A, X, transposed, *, flip):
    """Rows in pieces of fixed width, joined by row."""
    dtype = result_dtype(semiring, A, X, flip)
    A, X = widened(A.asformat("csr"), X, dtype)
    how = fold_of(semiring, A, X, flip)
    scatter = semiring.add.scatter(result_dtype(semiring, A, X, flip))

    def run(X):
        return csr_spmv(A.indptr, A.indices, A.data, X, how, scatter=scatter)

    pieces = A.shape[0] + A.nse // piece_width(A.shape[0], A.nse)
    return by_columns(run, X, max(pieces, A.nse // 4)).astype(dtype)


@op.register("segments")
def _segments(semiring, A, X, transposed, *, flip):
    """One product a slot and column, joined by row: segmented reductions of nse terms."""
    dtype = result_dtype(semiring, A, X, flip)
    A, X = widened(A, X, dtype)
    out, inner = A.rowcol()
    data = safe(A.data, out < A.shape[0])

    def column(x):
        terms = product(semiring, data, out, inner, take(x, inner), flip=flip)
        return semiring.add.segment_reduce(terms, out, A.shape[0], sorted=A.row_sorted)

    if X.shape[1] == 0:
        return jnp.zeros((A.shape[0], 0), dtype)
    run = jax.vmap(column, in_axes=1, out_axes=1)
    return by_columns(run, X, 2 * A.nse + A.shape[0]).astype(dtype)
