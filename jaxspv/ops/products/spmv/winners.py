"""The entry of each row that decides a product over (min, .), (max, .) or (any, .)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ...._core.operation import Operation
from ....algebra.semirings import Semiring
from ....formats import CSR
from ....formats.base import search_rows
from ..common.product import product, take, winners


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


def _types(indptr, indices, semiring, data, x, y, *, flip):
    return jax.ShapeDtypeStruct(y.shape, jnp.int32)


op = Operation("winning entries", types=_types, internal=True)


def _terms(semiring, data, out, inner, values, flip):
    return semiring.add.admit(product(semiring, data, out, inner, values, flip=flip))


@op.register("segments")
def _by_segments(indptr, indices, semiring, data, x, y, *, flip):
    out = search_rows(indptr, indices.shape[0])
    terms = _terms(semiring, data, out, indices, take(x, indices), flip)
    return winners(semiring.add, terms, out, y)
