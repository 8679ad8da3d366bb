"""The derivative of a closure by levels: sums over paths too, of the graph and of its transpose."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core.derivatives import dense_tangent, is_zero, jvp_of_perturbed
from ..._core.loops import linear_solve
from ..._core.reductions import gather, segment_sums
from ..._core.tuples import Each, ones_unless, take
from ...algebra.semirings import plus_times
from ...formats.tuples import Tuples
from ..common.derivatives import with_tangent
from . import levels
from .pieces import entries, plan


def serves(semiring: Any, values: Any, x0: Any) -> bool:
    """Whether `solution` has the derivative: of real or complex numbers, added in some way."""
    leaves = jax.tree.leaves((values, x0))
    numbers = not semiring.add.of_tuples and [v.ndim for v in leaves] == [1, 1]
    return numbers and semiring.add.sums_tangents and jnp.issubdtype(x0.dtype, jnp.inexact)


def solution(graph: Callable[[], Any], params: Any, x: Any) -> Any:
    """x, with the derivative of the solution of `x = x0 + x A`; params: semiring, values of A, x0.

    A tangent solves `x' = b + x' S`, where S has the share of each edge in what it leads to, all
    computed from x before the loop. JAX's own derivative of the loop copies x in each step.
    """
    return with_tangent(functools.partial(_tangent, graph), params, x)


def _tangent(graph, params, x, tangents):
    (semiring, values, x0), (*dots, dot) = params, tangents
    add, n = semiring.add, x.shape[0]
    places, pieces = graph()
    T = Tuples(places, None)
    source, target, slot = entries(T)
    ends = np.full((2, values.shape[0]), n, np.int32)
    ends[:, slot] = source, target
    source, target = lax.optimization_barrier(tuple(map(jnp.asarray, ends)))
    nothing = add.identity_of(x.dtype)
    valid, held = target < n, take(x, source)
    if np.isinf(nothing):  # no path: times a cotangent of 0 the derivative were a NaN
        valid &= held != nothing
        target, held = jnp.where(valid, target, n), jnp.where(valid, held, 1)

    def term(semiring, values, held):
        return Each(semiring.mul)(held, ones_unless(valid, values)).astype(x.dtype)

    primal = semiring, values
    terms, dots = jvp_of_perturbed(lambda s, v: term(s, v, held), primal, tuple(dots))
    by_held = jax.jvp(lambda v: term(*primal, v), (held,), (jnp.ones_like(held),))[1]
    totals = jnp.where(valid, take(x, target), terms)
    shares = jnp.where(valid, add.weighted(by_held, terms, totals), 0)

    def summed(v):
        return segment_sums(v, target, count=n, sorted=False)

    def by_levels(pieces):
        return lambda _, b: levels.evaluate(plus_times, shares, b, pieces)

    b = summed(add.weighted(dots, terms, totals))
    b = b if is_zero(dot) else b + add.weighted(dense_tangent(dot), x0, x)
    if add.sums_exponentials:  # weights have the sum 1; x is rounded, which many levels multiply
        mass = summed(add.weighted(jnp.ones_like(terms), terms, totals))
        mass = lax.stop_gradient(mass + add.weighted(jnp.ones_like(x), x0, x))
        mass = jnp.where(mass > 0, mass, 1)
        shares, b = shares / take(mass, target), b / mass
    back = plan(T.T)
    assert back is not None, "the transpose of an acyclic graph has cycles"
    rest = lambda v: v - summed(shares * gather(v, source))  # noqa: E731
    return linear_solve(rest, b, by_levels(pieces), by_levels(back[0]))
