"""Scalar loops: how XLA compiles a `lax.while_loop` over single entries to native code on CPU.

XLA's CPU compiler turns a while loop whose body touches few bytes (a kilobyte in one iteration,
by its own cost model; far more from jaxlib 0.12 on) into ONE function instead of a list of
dispatched operations; the compiled text then shows `xla_cpu_small_call`. An iteration costs a few
nanoseconds, where a dispatched operation costs hundreds. Such a body must consist of scalars, of
reads and in-place writes of single entries, and of further loops of the same kind; an "if" around a
write is a redirected write or a loop of at most one turn.

An array stays in place, without a copy of it in every iteration, if each of its reads must come
before or after each of its writes by a dependency of data. Two ways to ensure it:
- read early and carry the value to the next iteration: what a loop carries is computed once;
- pass the value through `is_negative`, which the compiler does not fuse into its users.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax


def read(array: Array, index: Array) -> Array:
    """`array[index]`, the index clamped to the array."""
    piece = lax.dynamic_slice(array, (index,), (1,), allow_negative_indices=False)
    return lax.squeeze(piece, (0,))


def read_natural(array: Array, index: Array) -> Array:
    """`array[index]` of an int32 that is never negative: one comparison less than `read`.

    A number below 0 would read the last entry.
    """
    return read(array, lax.convert_element_type(index, jnp.uint32))


def write(array: Array, index: Array, value: Array) -> Array:
    """`array` with `value` at `index` (clamped), in place inside a loop."""
    piece = lax.expand_dims(value, (0,))
    return lax.dynamic_update_slice(array, piece, (index,), allow_negative_indices=False)


def write_natural(array: Array, index: Array, value: Array) -> Array:
    """`array` with `value` at an index as `read_natural` takes it, in place inside a loop."""
    return write(array, lax.convert_element_type(index, jnp.uint32), value)


def is_negative(value: Array) -> Array:
    """1 where an int32 >= -2^30 is negative, else 0; computed once, however many use it.

    XLA copies cheap operations into each of their users, and a read copied behind a write forces
    a copy of the whole array. It does not copy a division; the one here, unsigned by 3 * 2^30,
    is a comparison to the machine.
    """
    bits = lax.bitcast_convert_type(value, jnp.uint32)
    return lax.convert_element_type(lax.div(bits, np.uint32(3 << 30)), jnp.int32)


def computed_once(values: Array) -> Array:
    """`values`, floats, computed in one place, however many use them; others as they are.

    XLA copies cheap operations into each of their users, and there a product and a sum are rounded
    once or twice: the copies differ in the last bit, and an equality of two fails. It does not copy
    a division; the one here is by 1 (NaN by 0), which it does not know. A barrier is for GPUs.
    """
    if not jnp.issubdtype(values.dtype, jnp.floating):
        return values
    one = lax.convert_element_type(values == values, values.dtype)
    return lax.optimization_barrier(lax.div(values, one))


def unfused(certain: Array, stage: Callable[[], Any]) -> Any:
    """`stage()`, on a CPU a computation of its own: the branch of a condition that always holds.

    XLA does not fuse it with what reads its results. Fused with a gather it would be computed anew
    for each reader, or every gather in it would be written to memory.

    Args:
        certain: a boolean that XLA does not know to be true.
    """

    def nothing():
        return jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(stage))

    return lax.cond(certain, stage, nothing)


def each(begin: Any, end: Any, body: Callable[..., tuple[Any, ...]], *state: Any) -> Any:
    """`state` after `state = body(i, *state)` for i in [begin, end)."""
    first = (jnp.asarray(begin, jnp.int32), *state)
    return lax.while_loop(lambda c: c[0] < end, lambda c: (c[0] + 1, *body(*c)), first)[1:]


def once(condition: Any, body: Callable[..., tuple[Any, ...]], *state: Any) -> Any:
    """`body(*state)` where the condition holds, else `state`: an "if" that stays native.

    What is handed over is computed once, so that a body may write to arrays that were read before.
    """
    first = (jnp.asarray(condition), *state)
    turn = lax.while_loop(lambda c: c[0], lambda c: (jnp.bool_(False), *body(*c[1:])), first)
    return turn[1:]
