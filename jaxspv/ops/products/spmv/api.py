"""Sparse matrix times dense vector: the implementations behind `mxv`, and their tangent."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from ...._core.derivatives import is_zero
from ...._core.eager.arrays import on_gpu
from ...._core.loops import vmapped
from ...._core.operation import Operation, typed
from ...._core.reductions import in_float32, is_narrow
from ....algebra.semirings import plus_times
from ....formats import ELL, SELL
from ....formats.base import serves
from ....native import bind
from ....native.codes import codes, refused
from ..common.product import (
    Factors,
    Fold,
    Pairs,
    computed_dtype,
    is_bilinear,
    is_linear,
    joined_tangent,
    picked_tangent,
    product,
    result_dtype,
    safe,
    spmm,
    take,
)
from ..row_layouts import diagonals, layout
from ..row_layouts.diagonals import Diagonals
from ..row_layouts.layout import Rows
from .jvp import csr_vjp, winning_slots
from .xla import csr_spmv, ell_spmv, sell_spmv


def _tangent(primals, tangents, y, *, flip):
    """(m,) tangent of `y = A x` in the semiring's parameters, the values of A and x. (+, x) on a
    compressed axis has a transpose of its own, a CSR over a selective monoid finds its winners by
    rows; the rest goes through the list of all entries."""
    semiring, A, x, _ = primals
    semiring_dot, A_dot, x_dot, _ = tangents
    if A.compressed is not None and is_bilinear(semiring, A, x, y):
        d, v = (None if is_zero(t) else t for t in (A_dot.data, x_dot))
        return pushed(A, x, d, v, primals[3]) if d is not None or v is not None else 0 * y
    if A.nse == 0:
        return jnp.zeros_like(y)
    dots = Factors(semiring_dot, A_dot.data, x_dot)
    ascending = getattr(A, "sorted", False)  # a remainder of tiles is behind them
    if A.compressed == 0 and ascending and semiring.add.selective:
        slots = winning_slots(semiring, A, x, y, flip)
        out, inner = jnp.arange(A.shape[0], dtype=A.indices.dtype), take(A.indices, slots)
        factors = Factors(semiring, A.data, x)
        return picked_tangent(factors, dots, slots, out, inner, inner, flip=flip)
    out, inner = A.rowcol()
    pairs = Pairs(A.data, out, inner, x, inner, out < A.shape[0])
    return joined_tangent(
        semiring, pairs, dots, out, y, flip=flip, sorted=A.row_sorted, ascending=ascending
    )


def _types(semiring, A, x, rows, *, flip):
    if semiring.mul.position is not None:
        return None
    return typed(result_dtype(semiring, A, x, flip), A.shape[0])


def _advice(semiring, A, x, rows, *, flip):
    purpose = "vxm" if flip else "mxv"
    bare = rows is None and on_gpu(A.data)
    return [f"`prepare(A, for_={purpose!r})` would arrange the rows in bins."] if bare else []


op = Operation("spmv", _tangent, linear=is_linear, types=_types, advice=_advice)
op.gpu_forms_in(f"{__package__}.gpu")


def _product(A, x, rows=None):
    return op(plus_times, A, x, rows, flip=False)


def _push(A, x, d, v, rows):
    """`y_dot[i] = sum_j (d[i, j] x[j] + A[i, j] v[j])`; None stands for zero."""
    parts = [] if d is None else [_product(A.with_data(d), x)]  # what is prepared has A's values
    parts += [] if v is None else [_product(A, v, rows)]
    return functools.reduce(jnp.add, parts)


def _pull(w, A, x, d, v, rows):
    """The cotangents of `_push`: `w[i] x[j]` of the values, `sum_i w[i] A[i, j]` of the vector."""
    m, n = A.shape
    if A.compressed == 0:
        wanted = {"x": None if d is None else x, "data": None if v is None else A.data}
        if isinstance(rows, Rows):
            ranked = None if rows.ranks is None else (rows.ranks, rows.bins.order)
            wanted |= {"rows": rows.owners, "ranked": ranked}
        by_values, by_vector = csr_vjp(A.indptr, A.indices, w, n, **wanted)
    else:  # a CSC is the CSR of its transpose: x multiplies the rows of that, w its columns
        by_values = None if d is None else csr_vjp(A.indptr, A.indices, x, m, x=w)[0]
        by_vector = None if v is None else _product(A.T, w)
    return None, None, by_values, by_vector, None


pushed = Operation("tangent of spmv", "definition", transpose=_pull, internal=True)
pushed.types = lambda A, x, *_: typed(x.dtype, A.shape[0])
pushed.register("products")(_push)


def multiply_values(semiring, flip):
    def mul(a, x):
        return semiring.add.admit(semiring.mul(x, a) if flip else semiring.mul(a, x))

    return mul


def widened(A, X, dtype):
    """A and X as they are computed with: in float32 where the product is in a narrower float."""
    if is_narrow(dtype):
        return A.with_data(A.data.astype(jnp.float32)), X.astype(jnp.float32)
    return A, X


def no_fold(semiring, A) -> str | None:
    """Why no form that pads with the identity serves."""
    if semiring.mul.position is not None:
        return f"`{semiring.mul.name}` is positional"
    if semiring.add.identity is None:
        return f"the monoid `{semiring.add.name}` has no identity to pad with"
    return "there are no columns to read" if A.shape[1] == 0 else None


def no_rows(A) -> str | None:
    listed = A.compressed == 0
    return None if listed else f"{type(A).__name__} does not list the entries of a row side by side"


def _arranged(kind, otherwise: str):
    """Refuses where rows are not arranged in this way."""

    def refuse(semiring, A, x, rows, *, flip) -> str | None:
        return no_fold(semiring, A) if isinstance(rows, kind) else otherwise

    return refuse


def register(name: str, columns=None, **how):
    """Decorator: enters a form. Products in a float narrower than float32 are made and added in
    that, and rounded once. vmap over x alone: one product with the matrix of all vectors; else by
    JAX's vmap of `columns`, the form itself by default."""

    def add(run):
        @functools.wraps(run)
        def wide(semiring, A, x, rows, *, flip):
            if semiring.mul.position is not None:
                return run(semiring, A, x, rows, flip=flip)
            dtype = result_dtype(semiring, A, x, flip)
            A, x = widened(A, x, dtype)
            rows = jax.tree.map(lambda v: in_float32(v) if hasattr(v, "dtype") else v, rows)
            return run(semiring, A, x, rows, flip=flip).astype(dtype)

        def batched(axis_size, in_batched, semiring, A, x, rows, *, flip):
            if any(jax.tree.leaves((in_batched[0], in_batched[1], in_batched[3]))):
                one = columns or wide
                return vmapped(one, axis_size, in_batched, semiring, A, x, rows, flip=flip)
            Y = spmm(semiring, A, jnp.moveaxis(x, 0, -1), None, flip=flip)
            return jnp.moveaxis(Y, -1, 0)

        return op.register(name, batched=batched, **how)(wide)

    return add


_NO_DIAGONALS = "`prepare(A, for_=...)` has not found the entries on few diagonals"
_NO_BINS = "the rows are not arranged in bins: `prepare(A, for_=...)`"


@register("diagonals", refuse=_arranged(Diagonals, _NO_DIAGONALS))
def by_diagonals(semiring, A, x, rows, *, flip):
    """Shifted slices of x times the diagonals: no gather. `prepare` only."""
    return diagonals.spmv(rows, x, fold_of(semiring, A, x, flip))


@register("row_bins", refuse=_arranged(Rows, _NO_BINS))
def _row_bins(semiring, A, x, rows, *, flip):
    """Rows in bins of equal width: fused gathers and reductions, no scatter. `prepare` only."""
    return layout.spmv(rows.bins, rows.values, x, fold_of(semiring, A, x, flip))


def fold_of(semiring, A, x, flip):
    dtype = result_dtype(semiring, A, x, flip)

    def combine(u, v):
        return semiring.add.op(u, v).astype(dtype)

    return Fold(multiply_values(semiring, flip), combine, semiring.add.identity_of(dtype)[()])


@register("pieces", refuse=lambda semiring, A, *_, **__: no_rows(A) or no_fold(semiring, A))
def pieces(semiring, A, x, rows, *, flip):
    """A bare CSR: rows in pieces of fixed width, joined by row."""
    scatter = semiring.add.scatter(result_dtype(semiring, A, x, flip))
    how = fold_of(semiring, A, x, flip)
    return csr_spmv(A.indptr, A.indices, A.data, x, how, scatter=scatter)


def _stored_by_column(semiring, A, x, rows, *, flip) -> str | None:
    if A.transposed:
        return "the arrays list the entries by column"
    if A.nse == 0 or 0 in A.shape:
        return "there is nothing to multiply"
    return no_fold(semiring, A)


@register("ell", refuse=serves(ELL, reads="rows that are padded", refuse=_stored_by_column))
def ell(semiring, A, x, rows, *, flip):
    """Rows of one width, reduced along their positions."""
    return ell_spmv(A.indices, A.data, x, A.shape[0], fold_of(semiring, A, x, flip))


@register("sell", refuse=serves(SELL, reads="rows that are padded", refuse=_stored_by_column))
def sell(semiring, A, x, rows, *, flip):
    """Slices of rows, reduced along their positions, then put back in the order of the rows."""
    combine = functools.partial(semiring.add.segment_reduce, sorted=True)
    how = fold_of(semiring, A, x, flip)._replace(combine=combine)
    return sell_spmv(A.indices, A.data, (A.slices(), A.order), x, A.shape[0], how)


@register("segments")
def segments(semiring, A, x, rows, *, flip):
    """One product a slot, joined by row: a gather and a segmented reduction of nse terms."""
    out, inner = A.rowcol()
    terms = product(semiring, safe(A.data, out < A.shape[0]), out, inner, take(x, inner), flip=flip)
    return semiring.add.segment_reduce(terms, out, A.shape[0], sorted=A.row_sorted)


def _not_native(semiring, A, x, rows, *, flip) -> str | None:
    if A.compressed is None or A.index_dtype != jnp.int32:
        return f"{type(A).__name__} has no compressed axis with indices of 32 bits"
    if 0 in A.shape or A.nse == 0:
        return "there is nothing to multiply"
    if reason := no_fold(semiring, A):
        return reason
    if isinstance(rows, Diagonals):
        return "the entries are arranged by diagonals, which is faster"
    return refused(semiring, computed_dtype(semiring, A, x, flip), flip)


@register("native", backend="cpu", refuse=_not_native)
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
