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

    def step(carry, operands):
        shift, _ = carry
        x, operand = operands
        # Behind the barrier all of y must be there: of fused products XLA would make the element
        # that is looked at, and leave the rest to the last step.
        y = lax.optimization_barrier(product(_shifted(x, shift), operand))
        # No result is NaN, which XLA does not know: x stays what it is.
        some = sum(leaf.ravel()[0].astype(x.dtype) for leaf in jax.tree.leaves(y))
        return jnp.where(jnp.isnan(some), 1, 0).astype(x.dtype), y

    shapes = jax.eval_shape(product, x, operand)
    empty = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    program = chained(step, repeats, unroll=True)
    start = (jnp.zeros((), x.dtype), empty)
    return lambda: jax.block_until_ready(program(start, (x, operand)))[1]


def _shifted(x: Any, shift: jax.Array) -> Any:
    if isinstance(x, jsp.SparseVector):
        return dataclasses.replace(x, data=x.data + shift)
    return x + shift
