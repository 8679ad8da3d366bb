"""Values of a function of the ends of every entry, in chunks of entries: every platform."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..._core.batching import vmapped
from ..._core.derivatives.tangents import dense_tangent, is_inexact, is_symbolic, is_zero
from ..._core.dispatch import Op
from ..._core.platforms import Form, choose
from ...formats import SparseMatrix
from ...semirings import Semiring, plus_times
from ..aggregate import wide
from ..spmm.xla import Prepared
from ..spmm.xla import op as spmm
from .by_entry import ByEntry, chunk_for
from .linear import linear_map


def inner(semiring: Semiring, x: Array, y: Array, _: None = None) -> Array:
    """`add_k mul(x[..., k], y[..., k])`; of what min and max choose from the first at ties."""
    add = semiring.add
    dtype = jax.eval_shape(lambda: add.admit(semiring.mul(x, y))).dtype
    terms = add.admit(semiring.mul(wide(x), wide(y)))
    if add.selective and not add.takes_first and terms.shape[-1] and is_inexact(terms):
        fixed = jax.lax.stop_gradient(terms)
        first = jnp.argmax(fixed == add.reduce(fixed)[..., None], axis=-1, keepdims=True)
        return jnp.take_along_axis(terms, first, axis=-1)[..., 0].astype(dtype)
    return add.reduce(terms).astype(dtype)


def live_tangents(tangents: Any) -> list[Any]:
    """The tangents of all leaves, None for those that are known to be zero."""
    leaves = jax.tree.leaves(tangents, is_leaf=is_symbolic)
    return [None if is_zero(t) else dense_tangent(t) for t in leaves]


def by_platform(
    name: str, run: Callable[..., Any], *operands: Any, kernel: Callable[..., Any] | None = None
) -> Any:
    """`run(backend, *operands)` in the chunks that suit a CPU, or other platforms.

    kernel: `kernel(*operands)` for NVIDIA GPUs, one after the other under vmap.
    """
    forms = [] if kernel is None else [Form("rows", "pallas", kernel, "map")]
    for backend in ("cpu", "xla"):
        fn = functools.partial(run, backend)
        forms.append(Form("chunks", backend, fn, functools.partial(vmapped, fn)))
    return choose(name, operands, *forms)


def _tangent(primals, tangents, values):
    """(nse, ...) tangent of the values: linear in the tangents of X, Y and the semiring's."""
    semiring, A, X, Y = primals
    operands = (semiring, X, Y, None)
    leaves = jax.tree.leaves(operands)
    dots = live_tangents((tangents[0], *tangents[2:]))
    perturbed = [t is not None for t in dots]
    if not any(perturbed):
        return jnp.zeros_like(values)
    ordinary = is_ordinary(semiring, X, Y)

    def spread(parts):
        parts = iter(parts)
        return [next(parts) if on else None for on in perturbed]

    def definition(parts):
        ends = ByEntry.of(inner, A, operands, max(A.nse, 1))
        place = (ends.row, ends.col, [])
        return [ends.moved(ends.local(leaves, *place), ends.local(spread(parts), *place))[1]]

    def forward(parts):
        if ordinary:
            x, y = spread(parts)
            sides = [op(semiring, A, *v) for v in ((x, Y), (X, y)) if all(p is not None for p in v)]
            return [functools.reduce(jnp.add, sides)]

        def run(backend, A, leaves, parts):
            ends = ByEntry.of(inner, A, operands, chunk_for(backend, X, Y))

            def step(_, row, col):
                place = (row, col, [])
                return None, ends.moved(
                    ends.local(leaves, *place), ends.local(spread(parts), *place)
                )[1]

            return ends.over(step, None)[1]

        return [by_platform("tangent of sddmm", run, A, leaves, list(parts))]

    def transposed(cotangents):
        def run(backend, A, leaves, g):
            if ordinary and backend == "xla":
                sides = ((A, Y), (A.T, X))
                wanted = [side for side, on in zip(sides, perturbed, strict=True) if on]
                return [by_heads(M, g, v) for M, v in wanted]
            ends = ByEntry.of(inner, A, operands, chunk_for(backend, X, Y))

            def step(sums, row, col, g):
                local = ends.local(leaves, row, col, [])
                return ends.pull(local, perturbed, sums, row, col, lambda _: g)[0], None

            sums = ends.over(step, ends.zeros(leaves, perturbed, g.dtype), g)[0]
            return [s for s in sums if s is not None]

        return by_platform("cotangent of sddmm", run, A, leaves, *cotangents)

    parts = [t for t in dots if t is not None]
    floats = [v for v in leaves if is_inexact(v)]
    return linear_map(definition, forward, transposed, parts, [values], floats)[0]


def is_ordinary(semiring: Semiring, X: Array, Y: Array) -> bool:
    """Whether it adds ordinary products of one floating dtype."""
    plain = semiring.add.atomic(X.dtype) == "add" and semiring.mul.fn is jnp.multiply
    return plain and X.dtype == Y.dtype and is_inexact(X)


def by_heads(A: SparseMatrix, data: Array, X: Array) -> Array:
    """`sum_j data[i, j, h] X[j, h]` (m, heads, k): a product with X for each head.

    On GPUs the kernel of `spmm`; on a CPU a scatter in chunks is faster.
    """
    (n, *heads, k) = X.shape
    if A.takes_arrays:  # sorted by row once for all heads
        A = A.with_data(data.reshape(data.shape[0], -1)).asformat("csr")
        data = A.data
    values = data.reshape(data.shape[0], -1).T

    def product(one):
        values, x = one
        return spmm(plus_times, A.with_data(values), x, Prepared(), flip=False)

    parts = values, jnp.moveaxis(X.reshape(n, -1, k), 1, 0)
    if values.shape[0] == 1:
        Y = product(jax.tree.map(lambda v: v[0], parts))[None]
    else:
        Y = jax.lax.map(product, parts)
    return jnp.moveaxis(Y, 0, 1).reshape(A.shape[0], *heads, k)


op = Op("sddmm", _tangent)


def values_in_chunks(backend, semiring: Semiring, A: SparseMatrix, X: Array, Y: Array) -> Array:
    operands = (semiring, X, Y, None)
    ends = ByEntry.of(inner, A, operands, chunk_for(backend, X, Y))
    leaves = jax.tree.leaves(operands)
    return ends.over(lambda _, r, c: (None, ends.at(ends.local(leaves, r, c, []))), None)[1]


def register_chunks(op: Op, name: str, run: Callable[..., Any]) -> None:
    """Enters `run(backend, *operands, **static)` for CPUs and for all; JAX's own batching."""

    def rule(run, axis_size, in_batched, *operands, **static):
        return vmapped(functools.partial(run, **static), axis_size, in_batched, *operands)

    for backend in ("cpu", "xla"):
        fn = functools.partial(run, backend)
        op.register(name, backend=backend, batched=functools.partial(rule, fn))(fn)
