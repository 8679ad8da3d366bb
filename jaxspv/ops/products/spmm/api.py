"""Sparse times dense: what `mxm` and `@` do where one operand is an array; forms, derivative."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_derivatives import SymbolicZero

from ...._core.derivatives import dense_tangent, is_zero
from ...._core.eager.arrays import array_of, on_gpu
from ...._core.eager.programs import one_program
from ...._core.indices import index_dtype_for, narrowed
from ...._core.loops import one_by_one, vmapped
from ...._core.operation import Operation, typed
from ...._core.platforms import Backend
from ....algebra.masks import Mask
from ....algebra.semirings import Semiring, as_semiring, plus_times
from ....formats import SparseMatrix
from ....formats.stored import Stored
from ....graph import Graph, linked
from ....native import bind
from ....native.codes import codes, refused
from ...write_rule.call import Options, as_operand_mask
from ...write_rule.write import as_accum, write_vector
from ..common.product import (
    bare,
    computed_dtype,
    entry_rows,
    is_bilinear,
    joined,
    positions_as,
    product,
    result_dtype,
    safe,
    sddmm,
    take,
)
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


def multiply(
    A: Any, B: Any, semiring: Any, options: Options, method: str, backend: Backend | None
) -> Array:
    """`mxm` of a matrix and an array, in either order.

    An array has shape (..., l, n) on the right, (..., m, l) on the left, any axes before; the
    result is one. Eagerly it is one program. Raises TypeError, ValueError: as `mxm`.
    """
    semiring = as_semiring(semiring)
    flip = not isinstance(A, (SparseMatrix, Graph))
    M, transposed = _operand(B if flip else A, flip)
    X = array_of("A" if flip else "B", A if flip else B)
    if not M.unique:
        M = joined(M, semiring)
        transposed = M.T if M.compressed == 1 else None
    if X.ndim < 2 or X.shape[-1 if flip else -2] != M.shape[1]:
        l = M.shape[1]
        name, shape = ("A", f"(..., k, {l})") if flip else ("B", f"(..., {l}, k)")
        raise ValueError(f"`{name}` must have shape {shape}; got {X.shape}.")
    if method != "auto" and method not in (names := {"auto", *(impl.name for impl in op.impls)}):
        raise ValueError(f"`method` must be one of {sorted(names)} for an array; got {method!r}.")
    if isinstance(options.out, Stored):
        raise TypeError(f"`out` must be an array, as X is; got {type(options.out).__name__}.")
    how: dict[str, Any] = {"method": None if method == "auto" else method, "backend": backend}
    how |= {"flip": flip, "replace": bool(options.replace)}
    out = None if options.out is None else array_of("out", options.out)
    write = as_operand_mask(options.mask), as_accum(options.accum), out
    operands = M, X, transposed, semiring, write
    if backend == "pallas" and not on_gpu(M):  # the operation says so
        return _traced(*operands, **how)
    return one_program(_traced, *operands, **how)


def _operand(A: Any, flip: bool) -> tuple[SparseMatrix, SparseMatrix | None]:
    """The matrix whose rows are places of the result, and its transpose where that is known."""
    if isinstance(A, Graph):
        A = linked(A)
        if not flip:
            return A.out, A.inn
        return A.out.T if A.inn is None else A.inn, A.out
    if not isinstance(A, SparseMatrix):
        raise TypeError(
            "one operand must be a sparse matrix or a Graph of jaxspv; got an array and "
            f"{type(A).__name__}."
        )
    M = A.T if flip else A
    M = M if M.compressed is not None else M.asformat("csr")
    return M, M.T if M.compressed == 1 else None


def _traced(M, X, transposed, semiring, write, *, replace, flip, **asked) -> Array:
    """With the array as (l, k): leading axes are columns too."""
    semiring = positions_as(semiring, index_dtype_for(M))
    M, transposed = narrowed("a product", M, transposed)
    inner = -1 if flip else -2
    columns = jnp.moveaxis(X, inner, 0)
    shape = (M.shape[0], *columns.shape[1:])
    columns = columns.reshape(X.shape[inner], math.prod(columns.shape[1:]))
    Y = op(semiring, M, columns, transposed, flip=flip, **asked)
    Y = jnp.moveaxis(Y.reshape(shape), 0, inner)
    return written(Y, semiring, Options(*write, replace=replace), lambda: entry_rows(M), flip)


def written(
    Y: Array, semiring: Semiring, options: Options, present: Callable[[], Array], flip: bool
) -> Array:
    """A product under the options; present(): (rows,) which rows of the matrix store an entry."""
    mask, out = options.mask, options.out
    if mask is None and out is None:
        return Y
    rows = None if out is None else _broadcast(present(), Y, flip)
    if mask is not None:
        options = dataclasses.replace(options, mask=Mask(allowed_at(mask, Y, flip)))
    fill = semiring.zero(Y.dtype if out is None else jnp.asarray(out).dtype)
    return write_vector(Y, options, fill, rows)


def allowed_at(mask: Mask, Y: Array, flip: bool) -> Array:
    """A mask of rows of the matrix, or of the result, as one of the shape of the result. Raises
    ValueError: it has another shape."""
    rows = Y.shape[-1 if flip else -2]
    shape = tuple(mask.shape)
    if shape not in ((rows,), Y.shape[-2:], Y.shape):
        raise ValueError(
            f"`mask` must have the shape ({rows},), one place a row of A, or {Y.shape[-2:]} of the "
            f"result; got {shape}."
        )
    return _broadcast(mask.allowed(), Y, flip)


def _broadcast(v: Array, Y: Array, flip: bool) -> Array:
    """A vector over the rows of the matrix, or what broadcasts, in the shape of the result."""
    return jnp.broadcast_to(v[:, None] if v.ndim == 1 and not flip else v, Y.shape)


def _not_native(semiring, A, X, transposed, *, flip) -> str | None:
    if reason := no_dense_fold(semiring, A, X, transposed, flip=flip):
        return reason
    if A.index_dtype != jnp.int32:
        return "it takes indices of 32 bits"
    return refused(semiring, computed_dtype(semiring, A, X, flip), flip)


@register("native", one_by_one, backend="cpu", refuse=_not_native)
def _native(semiring, A, X, transposed, *, flip):
    """A loop in C++ over entries for each row and 16 columns; entries by column are sorted."""
    dtype = result_dtype(semiring, A, X, flip)
    A, X = widened(A, X, dtype)
    by_columns = A.compressed == 1
    rows = A if A.compressed is not None else A.asformat("csr")
    Y = jax.ShapeDtypeStruct((A.shape[0], X.shape[1]), X.dtype)
    operands = rows.indptr, rows.indices, jnp.broadcast_to(rows.data, rows.indices.shape), X
    number = codes(semiring, X.dtype, flip)
    return bind.call("spmm", Y, *operands, by_columns=by_columns, **number).astype(dtype)
