"""The derivative of PageRank, by the implicit function theorem."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array

from ..._core.derivatives import is_zero, jvp_of_perturbed
from ..._core.loops import linear_solve
from ..common.derivatives import richardson


def implicit_tangent(
    scores: Array,
    primals: tuple[Array, Array, Array],
    tangents: tuple[Any, Any, Any],
    *,
    strength: Callable[[Array], Array],
    flow: Callable[[Array, Array], Array],
    tol: Array,
) -> Array:
    """`x' = dF/dx x' + dF/d(data, p, d) (data', p', d')` for x = F(x), one step of the iteration.

    `strength(data)` are the row sums of A, `flow(data, v)` is v A; both transpose.
    """
    data, p, damping = primals
    x = scores
    if is_zero(tangents):
        return jnp.zeros_like(x)

    def step(data, p, damping):
        total = strength(data)
        share = jnp.where(total > 0, x / jnp.where(total > 0, total, 1), 0)
        dangling = jnp.sum(jnp.where(total > 0, 0, x))
        return damping * (flow(data, share) + dangling * p) + (1 - damping) * p

    _, source = jvp_of_perturbed(step, primals, tangents)

    total = strength(data)
    spread = total > 0
    inverse = jnp.where(spread, 1 / jnp.where(spread, total, 1), 0)

    def matvec(v):  # (I - dF/dx) v; F is affine in x
        return v - damping * (flow(data, inverse * v) + jnp.sum(jnp.where(spread, 0, v)) * p)

    # I - matvec contracts with factor d, on vectors of sum 0 mostly much faster. The scores sum to
    # 1 whatever is perturbed, so `source` sums to 0, and the solution of the transposed system
    # matters up to a constant: its slowest mode, which decays with d alone, is left out.
    solve = functools.partial(richardson, tolerance=tol, steps=1000)
    transposed = functools.partial(solve, project=lambda v: v - jnp.mean(v))
    return linear_solve(matvec, source, solve, transposed)
