"""Sparse times sparse by Gustavson's algorithm in C++, for built-in semirings."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from ....._core.operation import Operation, typed
from .....algebra.masks import Mask
from .....algebra.semirings import Semiring, any_pair
from .....formats import SparseMatrix
from .....formats.csr import sorted_csr
from .....native import bind
from .....native.codes import MUL, PAIR, codes
from ..esc import multiply_in_steps
from ..expand import operands
from ..result import Result, lists_places, sorted_mask, term_dtype

NONE, LISTED, WITHOUT = range(3)  # masks as the kernels know them
NUMBERS = ("float32", "float64", "int32", "int64", "bool")
ANY_PAIR = {"add": 2, "mul": PAIR}  # of ones any is the largest


def _codes(semiring: Semiring, A: SparseMatrix, B: SparseMatrix) -> dict[str, int] | None:
    """The semiring as the kernels know it; None: they do not serve it."""
    dtype = term_dtype(semiring, A.dtype, B.dtype)
    pairs = semiring.mul.position is None and MUL.get(semiring.mul.fn) == PAIR
    if not pairs and not A.dtype == B.dtype == dtype:
        return None
    if semiring.mul.overflow is not None and jnp.issubdtype(dtype, jnp.integer):
        return None  # only the XLA loops detect that a sum was clamped
    if pairs and semiring.add.takes_first:
        return ANY_PAIR if codes(semiring, dtype) is not None or dtype.name in NUMBERS else None
    return codes(semiring, dtype)


def no_pattern(A, B, mask) -> str | None:
    """Why the kernels do not find the places of a product, or None."""
    if mask is not None and not isinstance(mask.source, SparseMatrix):
        return "a mask that is an array is for XLA"
    if not A.index_dtype == B.index_dtype == jnp.int32:
        return "it takes indices of 32 bits"
    return bind.refused()


def not_compiled(semiring, A, B, mask, *_, **__) -> str | None:
    """Why the kernels do not compute the values, or None."""
    if _codes(semiring, A, B) is None:
        return "it takes built-in semirings on float32, float64, int32, int64 or bool, all alike"
    return no_pattern(A, B, mask)


def pattern(A: SparseMatrix, B: SparseMatrix, mask: Mask | None, *, nse: int) -> Result:
    """The places of a product; its values are true."""
    a, b = (M.with_data(jnp.zeros(M.nse, bool)) for M in (A, B))
    return multiply_natively(any_pair, a, b, mask, nse=nse)


def multiply_natively(
    semiring: Semiring, A: SparseMatrix, B: SparseMatrix, mask: Mask | None, *, nse: int
) -> Result:
    """The product; what exceeds nse is counted and not kept."""
    kind = _codes(semiring, A, B)
    assert kind is not None
    dtype = term_dtype(semiring, A.dtype, B.dtype)
    a, b = sorted_csr(A), sorted_csr(B)
    which, places = _mask(mask)
    lengths = typed(jnp.int32, a.shape[0] + 1), typed(jnp.int32, nse)
    types = *lengths, typed(dtype, nse), typed(jnp.int32)
    arrays = [v for M in (a, b) for v in (M.indptr, M.indices, jnp.asarray(M.data).astype(dtype))]
    found = bind.call("mxm", types, *arrays, *places, mask=which, columns=b.shape[1], **kind)
    indptr, indices, data, total = found
    return Result(indptr, indices, data, total, jnp.asarray(False))


def _mask(mask: Mask | None) -> tuple[int, tuple[Array, Array, Array]]:
    """The kind of a mask; its rows, columns and truth values, of which none stand for all true."""
    none = jnp.zeros(0, bool)
    if mask is None:
        return NONE, (jnp.zeros(1, jnp.int32), jnp.zeros(0, jnp.int32), none)
    rows: Any = sorted_mask(mask)
    source = rows.source
    holds = none if mask.structural or source.nse == 0 else source.data.astype(bool)
    kind = LISTED if lists_places(mask) else WITHOUT
    return kind, (source.indptr, source.indices, holds)


counted = Operation("entries of a product", internal=True)
counted.types = lambda A, B, mask, **_: typed(jnp.int32)


@counted.register("native", backend="cpu", refuse=lambda A, B, mask, **_: no_pattern(A, B, mask))
def _count_natively(A, B, mask, *, size) -> Array:
    if lists_places(mask):
        return pattern(A, B, mask, nse=mask.source.nse).total
    a, b = sorted_csr(A), sorted_csr(B)
    which, places = _mask(mask)
    operands = a.indptr, a.indices, b.indptr, b.indices, *places
    return bind.call("mxm_count", typed(jnp.int32), *operands, mask=which, columns=b.shape[1])


@counted.register("sort")
def _count_by_sorting(A, B, mask, *, size) -> Array:
    o = operands(sorted_csr(A), sorted_csr(B))
    return multiply_in_steps(any_pair, o, sorted_mask(mask), nse=0, size=size).total
