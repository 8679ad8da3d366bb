"""Sparse matrix times dense vector on CPUs: kernels in C++, else segmented reductions."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ....native import bind
from ....native.codes import codes, refused
from ..common.product import computed_dtype
from ..row_layouts.diagonals import Diagonals
from ..spmv.api import added_in_float32, no_fold, register, segments


def _refuse(semiring, A, x, rows, *, flip) -> str | None:
    if A.compressed is None or A.index_dtype != jnp.int32:
        return f"{type(A).__name__} has no compressed axis with indices of 32 bits"
    if 0 in A.shape or A.nse == 0:
        return "there is nothing to multiply"
    if reason := no_fold(semiring, A):
        return reason
    if isinstance(rows, Diagonals):
        return "the entries are arranged by diagonals, which is faster"
    return refused(semiring, computed_dtype(semiring, A, x, flip), flip)


@register("native", backend="cpu", refuse=_refuse)
@added_in_float32
def _native(semiring, A, x, rows, *, flip):
    """By rows, each in the order of its entries; the entries of columns are scattered."""
    handler = "spmv" if A.compressed == 0 else "spmv_transposed"
    y = jax.ShapeDtypeStruct(A.shape[:1], x.dtype)
    data = jnp.broadcast_to(A.data, A.indices.shape)
    return bind.call(handler, y, A.indptr, A.indices, data, x, **codes(semiring, x.dtype, flip))


def _not_rows(semiring, A, x, rows, *, flip) -> str | None:
    if isinstance(rows, Diagonals) and no_fold(semiring, A) is None:
        return "the entries are arranged by diagonals, which is faster"
    if A.compressed != 0:
        return "XLA's form of this name serves"
    return None if semiring.add.scatters else f"the monoid `{semiring.add.name}` has no scatter"


# Before XLA's pieces, which take twice as long and compile five times as long on a CPU.
register("segments", backend="cpu", refuse=_not_rows)(segments)
