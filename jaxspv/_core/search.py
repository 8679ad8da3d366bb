"""Vectorised binary search: each key in a sorted range of its own."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

Keys = tuple[Array, ...]


@functools.partial(jax.jit, static_argnames="unroll")
def lower_bound(
    keys: Keys, wanted: Keys, low: Any = None, high: Any = None, *, unroll: bool = False
) -> Array:
    """For each wanted key the first slot of [low, high) whose key is not smaller; high if none is.

    Args:
        keys: (k,) arrays that ascend within each range, the first one slowest.
        wanted: as many arrays of one shape.
        low, high: bounds of that shape; all slots where they are left out.
        unroll: as one fused kernel on a GPU, larger to compile.

    Jitted: an eager loop would be compiled anew at each call.
    """
    size, dtype = keys[0].shape[0], keys[0].dtype
    low = jnp.zeros(wanted[0].shape, dtype) if low is None else low
    high = jnp.full(wanted[0].shape, size, dtype) if high is None else high
    if size == 0:
        return low

    def step(_, bounds):
        low, high = bounds
        middle = (low + high) // 2
        smaller, tied = False, True
        for key, want in zip(keys, wanted, strict=True):
            at = key.at[middle].get(mode="clip")
            smaller, tied = smaller | (tied & (at < want)), tied & (at == want)
        up = (low < high) & smaller
        return jnp.where(up, middle + 1, low), jnp.where(up | (low >= high), high, middle)

    return lax.fori_loop(0, size.bit_length(), step, (low, high), unroll=unroll or None)[0]
