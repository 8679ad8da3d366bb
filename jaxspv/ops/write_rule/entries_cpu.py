"""Merging entries on a CPU: a native loop, see `native_loops`.

Its time is proportional to the number of entries; that of the form in `entries` is proportional to
the capacity, in many small operations.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from ..._core.native_loops import read, write

Keys = tuple[Array, ...]


def merge(
    keys_a: Keys, count_a: Array, keys_b: Keys, count_b: Array, capacity: int
) -> tuple[Array, Array, Array]:
    """(left, right, count): the slots of each place of the union, their capacity where none is."""
    dtype = keys_a[0].dtype
    none_a, none_b = keys_a[0].shape[0], keys_b[0].shape[0]

    def step(c):
        i, j, place, left, right = c
        here = tuple(read(k, j) for k in keys_b)
        valid = tuple(read(k, i) for k in keys_a)
        first, second = _before(valid, here), _before(here, valid)
        take_a = (i < count_a) & ((j >= count_b) | ~second)
        take_b = (j < count_b) & ((i >= count_a) | ~first)
        left = write(left, place, jnp.where(take_a, i, none_a))
        right = write(right, place, jnp.where(take_b, j, none_b))
        return i + take_a.astype(dtype), j + take_b.astype(dtype), place + 1, left, right

    zero = jnp.zeros((), dtype)
    start = (zero, zero, zero, jnp.full(capacity, none_a, dtype), jnp.full(capacity, none_b, dtype))
    state = lax.while_loop(lambda c: (c[0] < count_a) | (c[1] < count_b), step, start)
    return state[3], state[4], state[2]


def _before(one: tuple[Array, ...], other: tuple[Array, ...]) -> Array:
    smaller, tied = jnp.asarray(False), jnp.asarray(True)
    for a, b in zip(one, other, strict=True):
        smaller, tied = smaller | (tied & (a < b)), tied & (a == b)
    return smaller
