"""Products one after the other in one program, for the time of one inside a jitted program."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import jaxspv as jsp

from ..harness import chained, jitted


def call(product: Callable[..., Any], x: Any, operand: Any, repeats: int) -> Callable[[], Any]:
    """Runs `y = product(x, operand)`, or `repeats` of them where each x depends on the y before.

    x and y are dense or `SparseVector`s.
    """
    if repeats == 1:
        program = jitted(product)
        return lambda: jax.block_until_ready(program(x, operand))

    moves = isinstance(x, jax.Array) and x.ndim == 1  # in place: an array of sums takes its time

    def step(carry, operands):
        shift, x, _ = carry
        start, operand = operands
        # Of x in place nothing but one element is written; of both barriers all is there: of fused
        # products XLA would make the element that is looked at, and leave the rest to the last.
        x = lax.optimization_barrier(x.at[0].set(start + shift)) if moves else x
        y = lax.optimization_barrier(product(x if moves else _shifted(start, shift), operand))
        # No result is NaN, which XLA does not know: x stays what it is.
        some = sum(leaf.ravel()[0].astype(shift.dtype) for leaf in jax.tree.leaves(y))
        return jnp.where(jnp.isnan(some), 1, 0).astype(shift.dtype), x, y

    shapes = jax.eval_shape(product, x, operand)
    empty = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    program = chained(step, repeats, unroll=True)
    none = jnp.zeros((), x.dtype)
    state, start = ((none, x, empty), x[0]) if moves else ((none, none, empty), x)
    return lambda: jax.block_until_ready(program(state, (start, operand)))[2]


def _shifted(x: Any, shift: jax.Array) -> Any:
    if isinstance(x, jsp.SparseVector):
        return dataclasses.replace(x, data=x.data + shift)
    return x + shift
