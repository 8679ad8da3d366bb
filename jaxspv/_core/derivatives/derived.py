"""Arrays that repeat the values of another one: derivatives are taken by that one alone.

A step of an optimiser over every leaf of a prepared graph would move the repeated values by
gradients of their own, and so apart from the values they repeat. Here they have none.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from .tangents import dense_tangent, is_zero

REMEDY = (
    "a prepared Graph repeats its values in its layouts, and is differentiated by `G.data` alone: "
    "`jax.grad(lambda d: f(G.with_data(d)))(G.data)`, or `jsp.grad(f)(G)`, whose result has a "
    "gradient of `data` and nothing else. New values are put in by `G.with_data(d)`."
)


@jax.custom_jvp
def sole(values: Array, derived: Any) -> Array:
    """`values`; differentiating by the leaves of `derived`, which were made of it, is an error.

    Raises:
        TypeError: when it is differentiated so.
    """
    return values


@functools.partial(sole.defjvp, symbolic_zeros=True)
def _sole_jvp(primals, tangents):
    values, derived = primals
    if not is_zero(tangents[1]):
        raise TypeError(REMEDY)
    return sole(values, derived), dense_tangent(tangents[0])


@jax.custom_jvp
def gathered(values: Array, source: Array, slots: Array) -> Array:
    """`values`, which are `source[slots]`: differentiated as such, without a gather of values.

    Raises:
        TypeError: when it is differentiated by `values`.
    """
    return values


@functools.partial(gathered.defjvp, symbolic_zeros=True)
def _gathered_jvp(primals, tangents):
    values, source, slots = primals
    if not is_zero(tangents[0]):
        raise TypeError(REMEDY)
    same = gathered(values, source, slots)
    if is_zero(tangents[1]):
        return same, jnp.zeros_like(values)
    return same, dense_tangent(tangents[1])[slots]
