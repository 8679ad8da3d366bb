"""Derivatives that several algorithms share: zero, and those of fixpoints.

A fixpoint has its derivative by the implicit function theorem, without storing the iterates.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..._core.derivatives import is_inexact, is_zero, jvp_of_perturbed
from ..._core.loops import linear_solve, while_loop


def constant(primals: Any, tangents: Any, result: Any, **static: Any) -> Any:
    """The tangent of what depends on the pattern, or on which path is shortest, alone: zero."""
    del primals, tangents, static
    return jax.tree.map(lambda v: jnp.zeros_like(v) if is_inexact(v) else None, result)


STEPS = 10_000  # the linear iteration takes at most so many steps


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def with_tangent(rule: Callable[..., Any], params: Any, x: Any) -> Any:
    """x, with the tangent `rule(params, x, tangents of params)`; a tangent may be a known zero."""
    del rule, params
    return x


@functools.partial(with_tangent.defjvp, symbolic_zeros=True)
def _(rule, primals, tangents):
    x = with_tangent(rule, *primals)
    return x, jnp.zeros_like(x) if is_zero(tangents[0]) else rule(primals[0], x, tangents[0])


def fixed_point(step: Callable[..., Array], params: tuple[Any, ...], x: Array) -> Array:
    """x, with the derivative of the solution of `x = step(x, *params)`, whose derivative contracts.

    The tangent solves `x' = dF/dx x' + dF/dparams params'`, by Richardson's iteration, as does the
    cotangent with the transpose.
    """
    return with_tangent(functools.partial(implicit, step), params, x)


def implicit(step: Callable[..., Array], params: Any, x: Array, dots: Any) -> Array:
    """The tangent of `fixed_point` by those of the parameters."""
    _, source = jvp_of_perturbed(lambda *p: step(x, *p), params, dots)
    _, along = jax.linearize(lambda x: step(x, *params), x)
    return linear_solve(lambda v: v - along(v), source, richardson, richardson)


def richardson(
    matvec: Callable[[Array], Array],
    b: Array,
    *,
    tolerance: Any = None,
    steps: int = STEPS,
    norm: Callable[[Array], Array] = jnp.sum,
    project: Callable[[Array], Array] = lambda v: v,
) -> Array:
    """Solves `matvec(v) = b` by `v <- project(b + (I - matvec) v)`.

    Args:
        tolerance: of the change of a step, in proportion to v; None: a rounding error.
        steps: at most.
        norm: of absolute values, in which change and v are compared.
    """
    tolerance = 4 * jnp.finfo(b.dtype).eps if tolerance is None else tolerance

    def go(state):
        v, change, k = state
        return (change > tolerance * norm(jnp.abs(v))) & (k < steps)

    def step(state):
        v, _, k = state
        new = project(v + (b - matvec(v)))
        return new, norm(jnp.abs(new - v)), k + 1

    return while_loop(go, step, (project(b), jnp.asarray(jnp.inf, b.dtype), jnp.int32(0)))[0]
