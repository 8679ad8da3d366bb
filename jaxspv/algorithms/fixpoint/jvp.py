"""Tangents of a fixpoint: implicit where a step contracts, along the tree where it is monotone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..._core.derivatives import dense_tangent, is_zero, jvp_of_perturbed
from ..._core.loops import scan
from ..._core.native_loops import computed_once
from ...ops.products.common.product import product, safe, take
from ...ops.products.spmv.api import op as spmv_op
from ..common.derivatives import implicit
from ..sssp.xla import forest
from .xla import Call, differs


def tangent(primals, tangents, result, **static) -> Array:
    """The tangent of the vector."""
    if not jnp.issubdtype(result.x.dtype, jnp.inexact):
        return jnp.zeros_like(result.x)
    call = Call(*primals, **static)
    rule = _along_tree if call.monotone else _implicit
    return rule(call, tangents, result)


def _parts(call, tangents) -> tuple[tuple[Any, ...], tuple[Any, ...], Callable[..., Any]]:
    """Leaves, their tangents, and leaves -> (semiring, data, operands, captured, x0)."""
    whole = call.semiring, call.graph.data, call.operands, call.captured, call.x0
    semiring_dot, graph_dot, x0_dot, operands_dot, captured_dot, _ = tangents
    dots = semiring_dot, graph_dot.out.data, operands_dot, captured_dot, x0_dot
    leaves, tree = jax.tree.flatten(whole)
    return tuple(leaves), tuple(jax.tree.leaves(dots)), tree.unflatten


def _implicit(call, tangents, result) -> Array:
    """As of any `fixed_point`: dF/dx contracts."""
    leaves, dots, together = _parts(call, tangents)
    if is_zero(dots[:-1]):  # x0 has no influence
        return jnp.zeros_like(result.x)

    def step(x, *leaves):
        semiring, data, operands, captured, _ = together(leaves)
        y = spmv_op(semiring, call.graph.out.with_data(data).T, x, None, flip=True)
        moved = call._replace(operands=operands, captured=captured)
        return moved.updated(x, y, result.iterations)

    return implicit(step, leaves, result.x, dots)


def _along_tree(call, tangents, result) -> Array:
    """An element has the tangent of x0, or that of the term that determined its value."""
    semiring, graph, x0, operands, captured, *_ = call
    x, n = result.x, graph.n
    if n == 0 or graph.nse == 0:
        return dense_tangent(tangents[2])
    leaves, dots, together = _parts(call, tangents)

    def settled(parts, before, slot, tail, v, live: Any = True, update=call.update):
        """The term that the edge contributes to element v when x at its tail is `before`.

        Where it is not `live` all values are 1: no infinity meets the cotangent 0. update: of n
        elements, with the derivatives that functions define, or `call.update.at`.
        """
        semiring, data, operands, captured, x0 = parts
        before, weight, old = (
            jnp.where(live, value, jnp.ones((), value.dtype))
            for value in (before, take(data, slot), take(x0, v))
        )
        term = semiring.add.admit(product(semiring, weight, v, tail, before, flip=True))

        def part(a):
            return a if a.ndim == 0 else take(a, v)

        consts = [part(c) for c in captured[0]]
        return update(consts, old, term, result.iterations, [part(a) for a in operands], {})

    data = safe(graph.data, graph.out.rowcol()[0] < n)
    parts = (semiring, data, operands, captured, x0)
    missing = jnp.full_like(x, semiring.add.identity_of(x.dtype)[()])

    row, col = graph.out.rowcol()
    before, every = take(x, row), jnp.arange(graph.nse, dtype=jnp.int32)
    known = jax.tree.map(computed_once, parts)  # as the loop has them
    value = settled(known, before, every, row, col, update=call.update.at)
    tight = (row < n) & ~differs(value, take(x, col)) & differs(before, missing[0])
    changed = differs(x, x0)
    slot, parent = forest(row, col, tight, ~changed)
    vertex, inner = jnp.arange(n, dtype=jnp.int32), parent < n
    slot, parent = jnp.where(inner, slot, 0), jnp.where(inner, parent, vertex)

    def brought(before, *leaves):
        return settled(together(leaves), before, slot, parent, vertex, inner)

    at = take(x, parent)
    _, partial = jvp_of_perturbed(functools.partial(brought, at), leaves, dots)
    _, gain = jax.jvp(lambda before: brought(before, *leaves), (at,), (jnp.ones_like(x),))
    root = dense_tangent(tangents[2])
    partial = jnp.where(inner, partial, jnp.where(changed, 0, root))
    return _sum_to_roots(partial, jnp.where(inner, gain, 0), parent)


def _sum_to_roots(values: Array, gain: Array, parent: Array) -> Array:
    """`t[v] = values[v] + gain[v] t[parent[v]]`, a root its own parent of gain 0; log2 n rounds."""
    rounds = max(values.shape[0] - 1, 1).bit_length()

    def double(state, _):
        total, factor, jump = state
        return (total + factor * total[jump], factor * factor[jump], jump[jump]), None

    return scan(double, (values, gain, parent), None, length=rounds)[0][0]
