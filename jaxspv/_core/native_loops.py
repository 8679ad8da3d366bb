"""Scalar loops: how XLA compiles a `lax.while_loop` over single entries to native code on CPU.

XLA's CPU compiler turns a while loop whose body touches few bytes (a kilobyte in one iteration,
by its own cost model) into ONE function instead of a list of dispatched operations; the compiled
text then shows `xla_cpu_small_call`. An iteration costs a few nanoseconds, where a dispatched
operation costs hundreds. Such a body must consist of scalars, of reads and in-place writes of
single entries, and of further loops of the same kind; an "if" around a write is a redirected
write or a loop of at most one turn.

An array stays in place, without a copy of it in every iteration, if each of its reads must come
before or after each of its writes by a dependency of data. Two ways to ensure it:
- read early and carry the value to the next iteration: what a loop carries is computed once;
- pass the value through `is_negative`, which the compiler does not repeat beside its users.
"""

from __future__ import annotations

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


def is_negative(value: Array) -> Array:
    """1 where an int32 >= -2^30 is negative, else 0; computed once, however many use it.

    XLA copies cheap operations into each of their users, and a read copied behind a write forces
    a copy of the whole array. It does not copy a division; the one here, unsigned by 3 * 2^30,
    is a comparison to the machine.
    """
    bits = lax.bitcast_convert_type(value, jnp.uint32)
    return lax.convert_element_type(lax.div(bits, np.uint32(3 << 30)), jnp.int32)
