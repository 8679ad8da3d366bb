"""A linear map with an explicit transpose, for tangents whose automatic transpose is slow."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

Parts = tuple[Array, ...]


def with_transpose(
    definition: Callable[[Parts], Array],
    forward: Callable[[Parts], Array],
    transposed: Callable[[Array], Parts],
    tangents: Parts,
    size: int,
    residuals: Parts,
) -> Array:
    """`L(tangents)`, (size,), of a linear map L whose transpose is `transposed`; in every order.

    Args:
        definition: L in operations that JAX differentiates and transposes, for further orders.
        forward: L by the best means.
        transposed: a cotangent (size,) -> those of the tangents.
        tangents: vectors of floats, of one dtype.
        residuals: vectors that the three functions hold and that may be differentiated next.

    L is written as the solution (u, y) of `u = b, y - L u = 0`, whose transpose is `L^T`; JAX
    differentiates the equation further, not its solution, so derivatives of every order are exact.
    """

    # JAX transposes a solution only where all of its b is linear in what is perturbed. Hence the
    # zeros: in the equation, and so in its transpose, they tie every part to the residuals, which
    # may move next; below they tie all of b to every tangent.
    def equation(u):
        parts, y = u
        kept = tuple(_tied(p, *residuals) for p in parts)
        return kept, _tied(y - definition(parts), *residuals)

    def solve(_, b):
        parts, y = b
        return parts, y + forward(parts)

    def solve_transposed(_, c):
        parts, w = c
        return tuple(p + s for p, s in zip(parts, transposed(w), strict=True)), w

    parts = tuple(t + _zeros(t.shape[0], tangents) for t in tangents)
    b = (parts, _zeros(size, tangents))
    parts, y = lax.custom_linear_solve(equation, b, solve, solve_transposed)
    # Every output has a cotangent then: JAX does not push forward a solve that lacks a few.
    return y + _zeros(size, parts)


def _zeros(size: int, perturbed: Parts) -> Array:
    """`size` zeros, to JAX a linear function of every array of `perturbed`."""
    zero = jnp.zeros((), perturbed[0].dtype)
    return functools.reduce(jnp.add, (lax.pad(t[:0], zero, [(size, 0, 0)]) for t in perturbed))


def _tied(v: Array, *others: Any) -> Array:
    """`v`, to JAX a bilinear function of itself and of every other array."""
    return v + _zeros(v.shape[0], tuple(v[:0] * other[:0] for other in others))
