"""The operations behind products and reductions of tuples, and what all functions of tuples share.

In XLA they are gathers and segmented scans. On a CPU a product is a native loop over the entries of
each row, whatever the functions are.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.compat import large_loops_are_native
from ..._core.forms import ON_TUPLES
from ..._core.native_loops import each, read_natural, write_natural
from ..._core.operation import Operation
from ..._core.reductions import rounded
from ..._core.tuples import choose, multiplied, ones_unless, take
from ...formats import BitTiled
from ...formats.base import ours
from ...formats.csr import sorted_csr
from ...formats.stored import Stored
from ...formats.tuples import Tuples
from ...formats.vector import from_present
from ...graph import Graph, kind, linked
from ..products.common.elementwise import refuses


def on_tuples(fn: Any) -> Any:
    """Decorator: what the public function of this name does on tuples."""
    ON_TUPLES[fn.__name__] = fn
    return fn


def as_tuples(name: str, A: Any) -> Tuples:
    """A matrix or sparse vector, or that of a Graph, with its values by number. Raises TypeError:
    it is none."""
    A = linked(A).out if isinstance(A, Graph) else ours(A)
    if isinstance(A, Tuples):
        return A
    if not isinstance(A, Stored):
        raise TypeError(f"`{name}` must be sparse, on one device; got {kind(A)}.")
    A = A.asformat("csr") if isinstance(A, BitTiled) else A
    return Tuples.of(A, A.data)


def is_sparse(x: Any) -> bool:
    """Whether it is a matrix or vector of this library, of tuples or not."""
    return isinstance(x, (Tuples, Stored, Graph))


def present_elements(y: Any, present: Array, like: Any) -> Tuples:
    """The elements that are there, numbered by their places."""
    v = from_present(jnp.arange(present.shape[0], dtype=jnp.int32), present)
    return Tuples(dataclasses.replace(v, overflow=v.overflow | like.overflow), y)


def traced(semiring: Any, A: Tuples, x: Any, flip: bool) -> tuple[Any, Any, Any]:
    """`mul` and the addition as closed jaxprs of leaves, and the shape of a term."""

    def single(values):
        return jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape[1:], v.dtype), values)

    def multiply(a, v):
        return jax.tree.map(jnp.asarray, semiring.mul(*((v, a) if flip else (a, v))))

    def add(u, v):
        return jax.tree.map(lambda z, like: jnp.asarray(z, like.dtype), semiring.add.op(u, v), u)

    a, v = single(A.values), single(x)
    term = jax.eval_shape(multiply, a, v)
    return jax.make_jaxpr(multiply)(a, v), jax.make_jaxpr(add)(term, term), term


product = Operation("product of tuples", "definition")
reduction = Operation("reduction of tuples", "definition")
product.gpu_forms_in(f"{__package__}.gpu")


@product.register("segments")
def _by_segments(
    semiring: Any, A: Tuples, x: Any, hit: Any, *, flip: bool, in_order: bool = False
) -> Any:
    """y (m, ...) of dense x (n, ...); hit: (n,) bool, the elements of x that are there, or None.
    in_order: as of `Tuples`; kernels read less then."""
    places, m = A.places, A.shape[0]
    if semiring.add.by_segments is None:  # which takes them in any order
        places = places.to_coo()
    rows, cols = places.rowcol()
    valid = rows < m
    if hit is not None:
        valid &= take(hit, cols)
    a, v = (ones_unless(valid, take(*p)) for p in ((A.values, places.data), (x, cols)))
    terms = multiplied(semiring, *((v, a) if flip else (a, v)))
    rows = jnp.where(valid, rows, m)
    return semiring.add.segment_reduce(terms, rows, m, sorted=hit is None)


@reduction.register("scan")
def _reduction(add: Any, A: Tuples, *, axis: int | None) -> Any:
    if A.places.ndim == 1:
        valid, terms = A.valid(), A.data
        return add.reduce(choose(valid, terms, add.like(terms)), 0)
    coo = (A.T if axis == 0 else A).places.to_coo()
    terms = take(A.values, coo.data)
    if axis is None:
        return add.reduce(choose(coo.row < coo.shape[0], terms, add.like(terms)), 0)
    return add.segment_reduce(terms, coo.row, coo.shape[0], sorted=True)


UNROLL = 4 if large_loops_are_native() else 2  # entries a turn: so many that all stays native
MOST = 4  # numbers of a value: so few that all stays native


def _not_here(
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


@product.register("rows", backend="cpu", refuse=_not_here)
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
