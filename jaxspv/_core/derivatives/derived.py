"""Arrays that copy the values of another array: only the original has a gradient.

A prepared graph holds its values several times. If every copy had a gradient of its own, an
optimiser that updates all leaves would make the copies differ from each other.
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
    """The identity on `values`; differentiating with respect to `derived`, its copies, is an error.

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
    """The identity on `values`, known to be `source[slots]`: tangents are gathered, values are not.

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
