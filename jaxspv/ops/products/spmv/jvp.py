"""The tangent of a product: linear over (+, x); elsewhere, of what min, max or any chooses."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from ...._core.operation import Operation, typed
from ....algebra.semirings import Semiring
from ....formats import CSR
from ....formats.convert.offsets import search_rows
from ....native import bind
from ....native.codes import codes, refused
from ..common.product import product, take, winners
from ..row_layouts.layout import Arranged, Rows
from .vjp import csr_vjp


def winning_slots(semiring: Semiring, A: CSR, x: Array, y: Array, flip: bool) -> Array:
    """(m,) int32: the first slot of each row whose product is `y[i]`; nse where there is none.

    Nothing of it is differentiated. O(nse + m).
    """
    nse = A.nse
    if 0 in (nse, *A.shape):
        return jnp.full(A.shape[0], nse, jnp.int32)
    if semiring.add.takes_first:
        begin, end = A.indptr[:-1], A.indptr[1:]
        return jnp.where(begin < end, begin, nse).astype(jnp.int32)
    return op(A.indptr, A.indices, semiring, A.data, x, y, flip=flip)


op = Operation("winning entries", internal=True)
op.types = lambda indptr, indices, semiring, data, x, y, **_: typed(jnp.int32, *y.shape)


@op.register("segments")
def _by_segments(indptr, indices, semiring, data, x, y, *, flip):
    out = search_rows(indptr, indices.shape[0])
    terms = product(semiring, data, out, indices, take(x, indices), flip=flip)
    return winners(semiring.add, semiring.add.admit(terms), out, y)


def _refuse(indptr, indices, semiring, data, x, y, *, flip) -> str | None:
    alike = data.dtype == x.dtype == y.dtype and indptr.dtype == indices.dtype == jnp.int32
    alike &= jnp.issubdtype(y.dtype, jnp.floating)
    return refused(semiring, y.dtype if alike else None, flip)


@op.register("native", backend="cpu", refuse=_refuse, batched="vmap")
def _in_cpp(indptr, indices, semiring, data, x, y, *, flip):
    """The first of each row in C++."""
    slots, number = typed(jnp.int32, *y.shape), codes(semiring, y.dtype, flip)
    return bind.call("winners", slots, indptr, indices, data, x, y, **number)


def cotangents(
    product: Any, A: Any, x: Array, w: Array, rows: Arranged | None, values: bool, vector: bool
) -> tuple[Array | None, Array | None]:
    """`(w[i] x[j], sum_i w[i] A[i, j])`: the cotangents of A's values and of x, given w of `A x`.

    Args:
        product: `product(A, x)` computes `A x` by the best means.
        A: compressed along either axis.
        rows: what was prepared of the rows of a CSR; its values are not looked at.
        values, vector: which of the two are wanted; None for the other.
    """
    m, n = A.shape
    if A.compressed == 0:
        wanted: dict[str, Any] = {"x": x if values else None, "data": A.data if vector else None}
        if isinstance(rows, Rows):
            ranked = None if rows.ranks is None else (rows.ranks, rows.bins.order)
            wanted |= {"rows": rows.owners, "ranked": ranked}
        return csr_vjp(A.indptr, A.indices, w, n, **wanted)
    # A CSC is the CSR of its transpose: x multiplies the rows of that, w its columns.
    by_values = csr_vjp(A.indptr, A.indices, x, m, x=w)[0] if values else None
    return by_values, product(A.T, w) if vector else None
