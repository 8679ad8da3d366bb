"""Reading and writing single elements, for loops that XLA's CPU backend compiles to native code.

XLA on CPU compiles a `lax.while_loop` to one native function, without a call per operation, where
one iteration touches fewer than 1024 bytes by its cost model ("small while loop"): scalars, and
slices of length 1. What such loops have to keep to:

- The cost model adds 8 bytes for every array or scalar that a loop carries or closes over, twice
  where the loop is nested: carry little.
- An array that is read and then written in one iteration is copied, all of it, unless the write
  depends on every read. So a write is put off: the element and its new value are carried, and the
  next iteration begins with the write.
- `if` is a loop that runs once or not at all; better is a write that changes nothing.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax


def load(array: Array, index: Array) -> Array:
    """`array[index]` for 0 <= index; past the end the last element."""
    start = index.astype(jnp.uint32)
    return lax.dynamic_slice(array, (start,), (1,), allow_negative_indices=False).reshape(())


def store(array: Array, index: Array, value: Array) -> Array:
    """`array` with `array[index] = value`, 0 <= index < len(array)."""
    start = index.astype(jnp.uint32)
    update = jnp.asarray(value, array.dtype).reshape(1)
    return lax.dynamic_update_slice(array, update, (start,), allow_negative_indices=False)
