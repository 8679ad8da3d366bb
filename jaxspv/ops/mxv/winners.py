"""The entry of each row that decides a product over (min, .), (max, .) or (any, .)."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax

from ..._core.native_loops import read, write
from ..._core.platforms import Form, choose
from ...formats import CSR
from ...formats.base import search_rows
from ...semirings import Semiring
from ..frame.product import product, take, winners


def winning_slots(semiring: Semiring, A: CSR, x: Array, y: Array, flip: bool) -> Array:
    """(m,) int32: the first slot of each row whose product is `y[i]`; nse where there is none.

    Nothing of it is differentiated. O(nse + m); on a CPU one native loop (see `native_loops`),
    which has no temporaries and under vmap works off one lane after the other.
    """
    semiring, data, x, y = jax.tree.map(lax.stop_gradient, (semiring, A.data, x, y))
    nse = A.nse
    if 0 in (nse, *A.shape):
        return jnp.full(A.shape[0], nse, jnp.int32)
    if semiring.add.takes_first:
        begin, end = A.indptr[:-1], A.indptr[1:]
        return jnp.where(begin < end, begin, nse).astype(jnp.int32)

    def terms(semiring, data, out, inner, values):
        return semiring.add.admit(product(semiring, data, out, inner, values, flip=flip))

    def native(indptr, indices, semiring, data, x, y):
        def term(e, i):
            j = read(indices, e)
            return terms(semiring, read(data, e), i, j, read(x, j))

        return _first_of_rows(indptr, term, y, nse)

    def at_once(indptr, indices, semiring, data, x, y):
        out = search_rows(indptr, nse)
        return winners(semiring.add, terms(semiring, data, out, indices, take(x, indices)), out, y)

    operands = A.indptr, A.indices, semiring, data, x, y
    return choose(
        "winning entries", operands, Form("loop", "cpu", native), Form("segments", "xla", at_once)
    )


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
