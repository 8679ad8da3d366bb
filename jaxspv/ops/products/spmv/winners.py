"""The entry of each row that decides a product over (min, .), (max, .) or (any, .)."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax

from ...._core.native_loops import read, write
from ...._core.operation import Operation
from ....algebra.semirings import Semiring
from ....formats import CSR
from ....formats.base import search_rows
from ..common.product import product, take, winners


def winning_slots(semiring: Semiring, A: CSR, x: Array, y: Array, flip: bool) -> Array:
    """(m,) int32: the first slot of each row whose product is `y[i]`; nse where there is none.

    Nothing of it is differentiated. O(nse + m); on a CPU one native loop (see `native_loops`),
    which has no temporaries and under vmap works off one lane after the other.
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


@op.register("loop", backend="cpu")
def _sequential(indptr, indices, semiring, data, x, y, *, flip):
    def term(e, i):
        j = read(indices, e)
        return _terms(semiring, read(data, e), i, j, read(x, j), flip)

    return _first_of_rows(indptr, term, y, indices.shape[0])


@op.register("segments")
def _by_segments(indptr, indices, semiring, data, x, y, *, flip):
    out = search_rows(indptr, indices.shape[0])
    terms = _terms(semiring, data, out, indices, take(x, indices), flip)
    return winners(semiring.add, terms, out, y)


def _first_of_rows(indptr: Array, term: Callable[..., Array], y: Array, nse: int) -> Array:
    def row(c):
        i, first = c
        end, best = read(indptr, i + 1), read(y, i)
        e = lax.while_loop(
            lambda e: (e < end) & (term(e, i) != best), lambda e: e + 1, read(indptr, i)
        )
        return i + 1, write(first, i, jnp.where(e < end, e, nse))

    start = jnp.int32(0), jnp.full(y.shape[0], nse, jnp.int32)
    return lax.while_loop(lambda c: c[0] < y.shape[0], row, start)[1]
