"""Sparse times dense: what `mxm` and `@` do where one operand is an array."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ...._core.eager.arrays import array_of, on_gpu
from ...._core.eager.programs import one_program
from ...._core.indices import index_dtype_for, narrowed
from ...._core.loops import one_by_one
from ...._core.platforms import Backend
from ....algebra.masks import Mask
from ....algebra.semirings import Semiring, as_semiring
from ....formats import SparseMatrix
from ....formats.stored import Stored
from ....graph import Graph, linked
from ....native import bind
from ....native.codes import codes, refused
from ...write_rule.call import Options, as_operand_mask
from ...write_rule.write import as_accum, write_vector
from ..common.product import computed_dtype, entry_rows, joined, positions_as
from ..common.product import spmm as op
from .xla import no_dense_fold, register, result_dtype, widened


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
