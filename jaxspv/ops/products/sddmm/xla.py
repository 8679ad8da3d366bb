"""Values of a function of the ends of every entry, in chunks of entries: every platform."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ...._core.derivatives import dense_tangent, is_inexact, is_zero
from ...._core.operation import Operation, typed
from ....algebra.semirings import Semiring, plus_times
from ....formats import SparseMatrix
from ....native.codes import refused
from ...aggregate import wide
from ..common.dense_products import is_linear, spmm
from ..common.dense_products import sddmm as op
from ..common.product import term_dtype
from .by_entry import ByEntry, chunk_for


def inner(semiring: Semiring, x: Array, y: Array, _: None = None) -> Array:
    """`add_k mul(x[..., k], y[..., k])`; of what min and max choose from the first at ties."""
    add = semiring.add
    dtype = term_dtype(semiring, x.dtype, y.dtype)
    terms = add.admit(semiring.mul(wide(x), wide(y)))
    if add.selective and not add.takes_first and terms.shape[-1] and is_inexact(terms):
        fixed = jax.lax.stop_gradient(terms)
        first = jnp.argmax(fixed == add.reduce(fixed)[..., None], axis=-1, keepdims=True)
        return jnp.take_along_axis(terms, first, axis=-1)[..., 0].astype(dtype)
    return add.reduce(terms).astype(dtype)


def live_tangents(tangents: Any) -> list[Any]:
    """The tangents of all leaves, None for those that are known to be zero."""
    return [None if is_zero(t) else dense_tangent(t) for t in jax.tree.leaves(tangents)]


def _tangent(primals, tangents, values):
    """(nse, ...) tangent of the values: linear in the tangents of X, Y and the semiring's."""
    semiring, A, X, Y = primals
    dots = live_tangents((tangents[0], *tangents[2:]))
    perturbed = tuple(t is not None for t in dots)
    if not any(perturbed):
        return jnp.zeros_like(values)
    parts = [t for t in dots if t is not None]
    return pushed(semiring, A, X, Y, parts, perturbed=perturbed)


def _ends(backend, semiring, A, X, Y) -> tuple[ByEntry, list[Any]]:
    operands = (semiring, X, Y, None)
    ends = ByEntry.of(inner, A, operands, chunk_for(backend, X, Y))
    return ends, jax.tree.leaves(operands)


def _pushed(backend, semiring, A, X, Y, parts, *, perturbed):
    """The tangent of the values, by values of other operands or in chunks of entries."""
    if is_ordinary(semiring, X, Y):
        given = iter(parts)
        x, y = (next(given) if on else None for on in perturbed)
        sides = [] if x is None else [op(semiring, A, x, Y)]
        return functools.reduce(jnp.add, sides if y is None else [*sides, op(semiring, A, X, y)])
    ends, leaves = _ends(backend, semiring, A, X, Y)
    given = iter(parts)
    dots = [next(given) if on else None for on in perturbed]

    def step(_, row, col):
        place = (row, col, [])
        return None, ends.moved(ends.local(leaves, *place), ends.local(dots, *place))[1]

    return ends.over(step, None)[1]


def _pulled(backend, semiring, A, X, Y, g, *, perturbed):
    """The cotangents of the perturbed leaves, in chunks of entries or by products. On a CPU by
    products where these are C++ and there is one head: others need a transpose each."""
    one = X.ndim == 2 and A.index_dtype == jnp.int32 and refused(plus_times, X.dtype) is None
    if is_ordinary(semiring, X, Y) and (backend == "xla" or one):
        sides = ((A, Y), (A.T, X))
        wanted = [side for side, on in zip(sides, perturbed, strict=True) if on]
        return [by_heads(M, g, v) for M, v in wanted]
    ends, leaves = _ends(backend, semiring, A, X, Y)

    def step(sums, row, col, g):
        local = ends.local(leaves, row, col, [])
        return ends.pull(local, perturbed, sums, row, col, lambda _: g)[0], None

    sums = ends.over(step, ends.zeros(leaves, perturbed, g.dtype), g)[0]
    return [s for s in sums if s is not None]


def is_ordinary(semiring: Semiring, X: Array, Y: Array) -> bool:
    """Whether it adds ordinary products of one floating dtype."""
    return is_linear(semiring) and X.dtype == Y.dtype and is_inexact(X)


def by_heads(A: SparseMatrix, data: Array, X: Array) -> Array:
    """`sum_j data[i, j, h] X[j, h]` (m, heads, k): a product with X for each head.

    By the kernel of `spmm`.
    """
    (n, *heads, k) = X.shape
    if A.takes_arrays:  # sorted by row once for all heads
        A = A.with_data(data.reshape(data.shape[0], -1)).asformat("csr")
        data = A.data
    values = data.reshape(data.shape[0], -1).T

    def product(one):
        values, x = one
        return spmm(plus_times, A.with_data(values), x, None, flip=False)

    parts = values, jnp.moveaxis(X.reshape(n, -1, k), 1, 0)
    if values.shape[0] == 1:
        Y = product(jax.tree.map(lambda v: v[0], parts))[None]
    else:
        Y = jax.lax.map(product, parts)
    return jnp.moveaxis(Y, 0, 1).reshape(A.shape[0], *heads, k)


op.tangent = _tangent
op.types = lambda semiring, A, X, Y: typed(
    term_dtype(semiring, X.dtype, Y.dtype), A.nse, *X.shape[1:-1]
)


def values_in_chunks(backend, semiring: Semiring, A: SparseMatrix, X: Array, Y: Array) -> Array:
    ends, leaves = _ends(backend, semiring, A, X, Y)
    return ends.over(lambda _, r, c: (None, ends.at(ends.local(leaves, r, c, []))), None)[1]


def register_chunks(op: Operation, name: str, run: Callable[..., Any]) -> None:
    """Enters `run(backend, *operands, **static)` for CPUs and for all; JAX's own batching."""
    for backend in ("cpu", "xla"):
        op.register(name, backend=backend, batched="vmap")(functools.partial(run, backend))


def _transposed(g, semiring, A, X, Y, parts, *, perturbed):
    found = pulled(semiring, A, X, Y, g, perturbed=perturbed)
    found = [c.astype(p.dtype) for c, p in zip(found, parts, strict=True)]
    return None, None, None, None, found


pushed = Operation("tangent of sddmm", "definition", transpose=_transposed, internal=True)
pulled = Operation("cotangent of sddmm", "definition", internal=True)
register_chunks(pushed, "chunks", _pushed)
register_chunks(pulled, "chunks", _pulled)
