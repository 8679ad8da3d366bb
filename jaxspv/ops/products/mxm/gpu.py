"""Sparse times sparse on NVIDIA GPUs: when the kernels serve, how they are called, the forms."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from pallas_kernels.layouts.ragged import LIMIT, module_of, program
from pallas_kernels.products.sparse_result import ATOMIC
from pallas_kernels.simt import scalar_jaxpr
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring, trace, uses
from pallas_kernels.spgemm.api import Rows, Tuning, spgemm_assemble, spgemm_rows
from pallas_kernels.spgemm.dots import spgemm_dots
from pallas_kernels.spgemm.job import Algebra, MaskRows

from ...._core.compat import kernels_refused
from ...._core.eager.arrays import host_if_small
from ...._core.indices import index_dtype_for
from ....algebra.masks import Mask, structure
from ....algebra.semirings import Semiring, plus_times
from ....formats import CSC, CSR, SparseMatrix
from ....formats.csr import sorted_csr
from .call import Result, matrix_of, sorted_mask, term_dtype
from .jvp import both_sides, pulled, pushed
from .methods import compacted, no_dots, op

SCALARS = ("float32", "int32", "bool")


def no_kernels(semiring, A, B, mask, *_, **__) -> str | None:
    """Why the kernels do not serve a product, or None."""
    return kernels_refused() or no_rows(semiring, A, B, mask)


def no_rows(semiring: Semiring, A: SparseMatrix, B: SparseMatrix, mask: Mask | None) -> str | None:
    """Why kernels cannot make a product by rows, wherever they run, or None."""
    source = None if mask is None else mask.source
    if source is not None and not isinstance(source, SparseMatrix):
        return "the mask is an array"
    matrices: list[Any] = [A, B] if source is None else [A, B, source]
    for M in matrices:
        if M.nse == 0 or 0 in M.shape:
            return "there is nothing to multiply"
        if index_dtype_for(M) != jnp.int32 or M.nse + max(M.shape) > LIMIT:
            return "kernels count rows and entries in int32"
    for v in (A, B):
        if v.dtype.name not in SCALARS:
            return f"kernels take float32, int32 and bool, not {v.dtype}"
    if jax.tree.leaves(semiring):
        return "the semiring has parameters"
    return _no_scalars(semiring, A.dtype, B.dtype)


@functools.lru_cache(maxsize=1024)  # functions are traced, which takes milliseconds
def _no_scalars(semiring: Semiring, a: Any, b: Any) -> str | None:
    """Why kernels do not support the functions of a semiring for values of these dtypes."""
    if semiring.mul.overflow is not None and jnp.issubdtype(a, jnp.integer):
        return "kernels do not detect the overflow of integer path lengths"
    term = term_dtype(semiring, a, b)
    if term.name not in SCALARS:
        return f"kernels combine float32, int32 and bool, not {term}"
    mul, combine, given = _functions(semiring, a, b)
    parts = (semiring.mul.name, mul, given), (semiring.add.name, combine, [_word(term)] * 2)
    for name, fn, dtypes in parts:
        if reason := scalar_jaxpr.refuse(fn, *dtypes):
            return f"`{name}`: {reason}"
    product = trace(mul, *given)
    if semiring.add.takes_first and any(uses(product, j) for j in range(len(given))):
        return f"kernels meet the terms of `{semiring.add.name}` in any order"
    return None


def rows_of(
    semiring: Semiring, A: CSR, B: CSR, mask: Mask | None, *, nse: int, tuning: Tuning | None = None
) -> Rows:
    """The rows of C by kernels, in any order; all sparse operands are sorted CSR."""
    listed, term = None, term_dtype(semiring, A.dtype, B.dtype)
    if mask is not None:
        M = mask.source
        data = None if mask.structural else (M.data != 0).astype(jnp.int32)
        listed = MaskRows(M.indptr, M.indices, data, mask.complement)
    algebra = _algebra(semiring, A.dtype, B.dtype, term)
    how: dict[str, Any] = {"columns": B.shape[1], "nse": nse, "tuning": tuning or Tuning()}
    return spgemm_rows(_leaves(A), _leaves(B), algebra=algebra, mask=listed, **how)


@program
def _longest(a_indptr: Any, b_indptr: Any) -> Any:
    """At least the products of any row of A B, in float32."""
    xp = module_of(a_indptr, b_indptr)
    longest = [xp.max(xp.diff(p), initial=0).astype(jnp.float32) for p in (a_indptr, b_indptr)]
    return longest[0] * longest[1]


def tuning_for(A: Any, B: Any) -> Tuning:
    """Without the launches that no row of A B needs; eager, waits for a number."""
    if not A.compressed == B.compressed == 0:
        return Tuning()
    usual, most = Tuning(), float(_longest(*map(host_if_small, (A.indptr, B.indptr))))
    bounds = usual.few.most, usual.middle.most, usual.large
    bound = next((bound for bound in bounds if most <= bound), usual.most)
    return dataclasses.replace(usual, most=bound)  # few bounds, so that products share programs


def in_order(rows: Rows, columns: int, term: Any, *, nse: int) -> Result:
    """The rows put into their order; `term`: the dtype of their values."""
    indices, data = spgemm_assemble(rows, columns=columns, nse=nse)
    return Result(rows.indptr, indices, data.astype(term), rows.total, jnp.asarray(False))


def multiply_by_rows(semiring: Semiring, A: CSR, B: CSR, mask: Mask | None, *, nse: int) -> Result:
    """C by kernels; all sparse operands are sorted CSR."""
    rows = rows_of(semiring, A, B, mask, nse=nse)
    term = term_dtype(semiring, A.dtype, B.dtype)
    return in_order(rows, B.shape[1], term, nse=nse)


def multiply_places(semiring: Semiring, A: CSR, B: CSC, mask: Mask, *, nse: int) -> Result:
    """C at the places that a sorted CSR lists, by dot products; A and B are sorted."""
    term, M = term_dtype(semiring, A.dtype, B.dtype), mask.source
    row, col = M.rowcol()
    if not mask.structural:
        row = jnp.where(M.data.astype(bool), row, M.shape[0])
    algebra = _algebra(semiring, A.dtype, B.dtype, term)
    total, valid = spgemm_dots(_leaves(A), _leaves(B), row, col, algebra=algebra)
    return compacted(M, total.astype(term), valid != 0, nse, jnp.asarray(False))


def product_along(A: CSR, B: CSR, C: CSR) -> Array:
    """(C.nse,) values of A B over (+, x) at the entries of C, which has all of them; 0 in padding.

    A, B, C: sorted CSR.
    """
    r = multiply_by_rows(plus_times, A, B, structure(C), nse=C.nse)
    return jnp.where(jnp.arange(C.nse) < C.indptr[-1], r.data, 0)


def cotangents(A: CSR, B: CSR, C: CSR, w: Array, live: Sequence[bool]) -> tuple[Array, ...]:
    """Of `C = A B` over (+, x), for cotangents w (C.nse,), those of the values of A and of B.

        by_a[e] = sum_j w[i, j] B[k, j]       for the entry e = (i, k) of A: two rows meet
        by_b[f] = sum_i A[i, k] w[i, j]       for the entry f = (k, j) of B: two columns

    live: which of the two are wanted. A, B, C: sorted CSR. Dot products at the places that A and B
    list; the columns of A and of C are found by a sort.
    """
    W = C.with_data(w)
    algebra = _algebra(plus_times, w.dtype, w.dtype, w.dtype)

    def at_entries(M, rows, columns):
        leaves = _leaves(rows), _leaves(columns)
        total, valid = spgemm_dots(*leaves, *M.rowcol(), algebra=algebra)
        return jnp.where(valid != 0, total, 0)

    found = []
    if live[0]:
        found.append(at_entries(A, W, B))
    if live[1]:
        found.append(at_entries(B, sorted_csr(A.T), sorted_csr(W.T)))
    return tuple(found)


def _leaves(A):
    """Offsets, indices and values of a CSR or CSC, as kernels take them."""
    return A.indptr, A.indices, A.data.astype(_word(A.dtype))


def _word(dtype):
    """The dtype of values in the kernels."""
    return jnp.dtype(jnp.int32) if jnp.dtype(dtype) == jnp.bool_ else dtype


def _algebra(semiring, a, b, term) -> Algebra:
    """The semiring of the kernels, and the atomic that combines its terms."""
    mul, combine, given = _functions(semiring, a, b)
    word, first = _word(term), semiring.add.takes_first
    identity = 0 if first else semiring.add.identity_of(term).astype(word)[()].item()
    scalars = ScalarSemiring(trace(mul, *given), trace(combine, word, word), identity)
    add = "max" if first else semiring.add.atomic(term)
    return Algebra(scalars, add if add in ATOMIC else None)


def _functions(semiring, a, b):
    """The product of (a, b, i, k, j), the sum of two terms, both of words; the former's dtypes."""
    term = term_dtype(semiring, a, b)

    def value(word, dtype):
        return word != 0 if jnp.dtype(dtype) == jnp.bool_ else word

    def mul(x, y, i, k, j):
        product = semiring.mul.at(value(x, a), value(y, b), i, k, j)
        return semiring.add.admit(product).astype(_word(term))

    def combine(u, v):
        if semiring.add.takes_first:  # all terms are equal
            return jnp.maximum(u, v)
        total = jnp.asarray(semiring.add.op(value(u, term), value(v, term)), term)
        return total.astype(_word(term))

    return mul, combine, (_word(a), _word(b), *[jnp.dtype(jnp.int32)] * 3)


# ---- Forms ----


@op.register("dot", backend="pallas", refuse=lambda *a, **_: no_dots(*a) or no_kernels(*a))
def _dot(semiring, A, B, mask, found, *, nse, size, products):
    """For each place of the mask, a row of A meets a column of B, 32 in a warp: one kernel."""
    columns, wanted = sorted_csr(B.T).T, sorted_mask(mask)
    assert wanted is not None  # else refused
    return matrix_of(multiply_places(semiring, sorted_csr(A), columns, wanted, nse=nse), A, B)


@op.register("rows", backend="pallas", refuse=no_kernels)
def _rows(semiring, A, B, mask, found, *, nse, size, products):
    """Rows of few products sorted by warps, others marked and accumulated by CTAs: kernels."""
    if found is None:
        r = multiply_by_rows(semiring, sorted_csr(A), sorted_csr(B), sorted_mask(mask), nse=nse)
    else:
        r = in_order(found, B.shape[1], term_dtype(semiring, A.dtype, B.dtype), nse=nse)
    return matrix_of(r, A, B)


def _no_derivatives(a, b, C, *_, **__) -> str | None:
    return no_kernels(plus_times, a, b, structure(C))


@pushed.register("rows", backend="pallas", refuse=_no_derivatives)
def _pushed(a, b, C, parts, *, live, way):
    return both_sides(product_along, a, b, C, parts, live)


@pulled.register("dots", backend="pallas", refuse=_no_derivatives)
def _pulled(a, b, C, zeros, w, *, live, way):
    return cotangents(a, b, C, w, live)
