"""Searching, merging and compacting entries on a CPU: native loops, see `native_loops`.

Their time is proportional to the number of entries; that of the forms in `entries` is
proportional to the capacity, in many small operations.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from ..._core.native_loops import read, write

Keys = tuple[Array, ...]


def _less(keys: Keys, at: Array, wanted: tuple[Array, ...]) -> Array:
    """Whether the key in slot `at` comes before the wanted one."""
    smaller, tied = jnp.asarray(False), jnp.asarray(True)
    for key, want in zip(keys, wanted, strict=True):
        here = read(key, at)
        smaller, tied = smaller | (tied & (here < want)), tied & (here == want)
    return smaller


def lower_bound(keys: Keys, wanted: Keys) -> Array:
    """How many of the ascending `keys` are smaller than each wanted one.

    A search starts where the last one ended if that is not beyond it, in steps that double: where
    the wanted keys ascend it takes few steps.
    """
    size, dtype = keys[0].shape[0], keys[0].dtype
    zero = jnp.zeros((), dtype)

    def search(c):
        k, last, found = c
        want = tuple(read(w, k) for w in wanted)
        start = jnp.where(_less(keys, last - 1, want), last, zero)  # slot -1 reads the first

        def further(c):
            low, step = c
            return (low + step <= size) & _less(keys, low + step - 1, want)

        low, step = lax.while_loop(
            further, lambda c: (c[0] + c[1], c[1] * 2), (start, jnp.ones((), dtype))
        )

        def halve(c):
            low, high = c
            middle = (low + high) // 2
            up = _less(keys, middle, want)
            return jnp.where(up, middle + 1, low), jnp.where(up, high, middle)

        high = jnp.minimum(low + step - 1, size)
        low, _ = lax.while_loop(lambda c: c[0] < c[1], halve, (low, high))
        return k + 1, low, write(found, k, low)

    count = wanted[0].shape[0]
    state = (jnp.int32(0), zero, jnp.zeros(count, dtype))
    return lax.while_loop(lambda c: c[0] < count, search, state)[2]


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


def places_of(chosen: Array, capacity: int, dtype: Any) -> tuple[Array, Array]:
    """(slots, count): where `chosen` holds, ascending, its size in the rest; how many there are."""
    size = chosen.shape[0]
    marks = chosen.astype(jnp.int32)

    def step(c):
        k, count, slots = c
        here = read(marks, k).astype(dtype)
        at = jnp.minimum(count, capacity)  # the slot behind the last takes what does not fit
        slots = write(slots, at, jnp.where(here > 0, k, size))
        return k + 1, count + here, slots

    zero = jnp.zeros((), dtype)
    state = (zero, zero, jnp.full(capacity + 1, size, dtype))
    _, count, slots = lax.while_loop(lambda c: c[0] < size, step, state)
    return slots[:capacity], count
