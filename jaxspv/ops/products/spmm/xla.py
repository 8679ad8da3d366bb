"""Sparse times dense: the operation behind `mxm` on an array, and its forms in XLA.

All of them process the columns of X in blocks, so that no (nse, columns) array of gathered rows
is ever in memory.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax

from ...._core.batching import vmapped
from ...._core.operation import typed
from ..common.dense_products import spmm as op
from ..common.product import product, result_dtype, safe, take
from ..spmv import api as spmv
from ..spmv.api import fold_of, widened
from ..spmv.xla import csr_spmv, piece_width
from .jvp import tangent

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
    if size >= k:
        return run(X)
    steps = -(-k // size)
    size = -(-k // steps)

    def block(i, Y):
        at = jnp.minimum(i * size, k - size)  # the last block overlaps the one before
        part = run(lax.dynamic_slice_in_dim(X, at, size, 1))
        return lax.dynamic_update_slice_in_dim(Y, part, at, 1)

    shape = jax.eval_shape(run, jax.ShapeDtypeStruct((X.shape[0], size), X.dtype))
    return lax.fori_loop(0, steps, block, jnp.zeros((shape.shape[0], k), shape.dtype))


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
    fold = fold_of(semiring, A, X, flip)
    scatter = semiring.add.scatter(result_dtype(semiring, A, X, flip))

    def run(X):
        return csr_spmv(A.indptr, A.indices, A.data, X, scatter=scatter, **fold)

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
