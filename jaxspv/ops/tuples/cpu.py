"""Products of tuples on CPUs: row by row in a native loop, whatever the functions are."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core.compat import large_loops_are_native
from ..._core.native_loops import each, read_natural, write_natural
from ..._core.reductions import rounded
from ..._core.tuples import choose
from ...formats.csr import sorted_csr
from ...formats.tuples import Tuples
from ..products.common.elementwise import refuses
from .common import traced
from .operations import product

UNROLL = 4 if large_loops_are_native() else 2  # entries a turn: so many that all stays native
MOST = 4  # numbers of a value: so few that all stays native


def _refuse(
    semiring: Any, A: Tuples, x: Any, hit: Any, *, flip: bool, in_order: bool = False
) -> str | None:
    if semiring.add.by_segments is not None:
        return f"{semiring.add} joins terms by scatters"
    if A.places.index_dtype != jnp.int32 or A.places.nse == 0 or 0 in A.places.shape:
        return "it takes entries with indices of 32 bits"
    try:
        mul, combine, term = traced(semiring, A, x, flip)
    except Exception as error:  # the form in XLA says it with the values
        return f"the functions of the semiring refuse: {error}"
    values = [jax.tree.leaves(v) for v in (A.values, x, term)]
    deep = any(v.ndim > (k < 2) for k, leaves in enumerate(values) for v in leaves)
    if deep or max(map(len, values)) > MOST:
        return f"values are more than {MOST} numbers each"
    reason = refuses(mul.jaxpr) or refuses(combine.jaxpr)
    return reason and f"`{reason}` is not element by element"


@product.register("rows", backend="cpu", refuse=_refuse)
def _rows(semiring: Any, A: Tuples, x: Any, hit: Any, *, flip: bool, in_order: bool = False) -> Any:
    """Each row is one loop over its entries, in order; floats are joined in float64."""
    places, term = sorted_csr(A.places.asformat("csr")), traced(semiring, A, x, flip)[2]
    in_order = in_order and places is A.places
    wide, joined = semiring.add.one_by_one(jax.tree.map(lambda t: t.dtype, term))
    identity = semiring.add.like(jax.tree.map(lambda t: jnp.zeros((1,), t.dtype), term))

    def widened(value):
        return jax.tree.map(rounded, value, wide)

    def at(values, slot):
        return jax.tree.map(lambda v: read_natural(v, slot), values)

    def product_of(e):
        j = read_natural(places.indices, e)
        a, v = at(A.values, e if in_order else read_natural(places.data, e)), at(x, j)
        value = semiring.mul(*((v, a) if flip else (a, v)))
        there = True if hit is None else read_natural(hit, j)
        return there, jax.tree.map(lambda z, t: jnp.asarray(z, t.dtype), value, term)

    def row(i, y, first):
        last = read_natural(places.indptr, i + 1)

        def entries(c):
            e, some, total = c
            for k in range(UNROLL):
                there, value = product_of(e + k)
                valid = (e + k < last) & there
                total = choose(valid, choose(some, joined(total, value), widened(value)), total)
                some |= valid
            return e + UNROLL, some, total

        _, _, total = lax.while_loop(
            lambda c: c[0] < last, entries, (first, jnp.asarray(False), widened(identity))
        )
        new = jax.tree.map(lambda v, t: rounded(t, v.dtype), y, total)
        return jax.tree.map(lambda v, z: write_natural(v, i, z), y, new), last

    m = places.shape[0]
    y = jax.tree.map(lambda z: jnp.full(m, np.asarray(z)), identity)
    return each(0, m, row, y, jnp.int32(0))[0]
