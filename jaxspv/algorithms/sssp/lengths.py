"""Path lengths: infinity, addition that clamps, and where it clamped, for floats and integers."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array


def infinity(dtype: Any) -> Array:
    """The length of an unreached vertex: inf, or the largest integer."""
    if jnp.issubdtype(dtype, jnp.floating):
        return jnp.asarray(jnp.inf, dtype)
    return jnp.asarray(jnp.iinfo(dtype).max, dtype)


def extend(length: Array, weight: Array) -> Array:
    """`length + weight`; integers: infinity absorbs, other sums are clamped to the dtype."""
    total = length + weight
    if jnp.issubdtype(total.dtype, jnp.floating):
        return total
    top = infinity(total.dtype)
    low = jnp.asarray(jnp.iinfo(total.dtype).min, total.dtype)
    zero = jnp.zeros((), total.dtype)
    total = jnp.where((weight > zero) & (total < length), top, total)
    total = jnp.where((weight < zero) & (total > length), low, total)
    return jnp.where((length == top) | (weight == top), top, total)


def wraps(length: Array, weight: Array) -> Array:
    """Whether the sum of two finite integers is no finite length: clamped, or infinity itself."""
    total = length + weight
    top = infinity(total.dtype)
    zero = jnp.zeros((), total.dtype)
    wrapped = ((weight > zero) & (total < length)) | ((weight < zero) & (total > length))
    return (wrapped | (total == top)) & (length != top) & (weight != top)


def after(length: Array) -> Array:
    """The next larger length: every length <= `length` is below it; infinity stays."""
    top = infinity(length.dtype)
    if jnp.issubdtype(length.dtype, jnp.floating):
        return jnp.nextafter(length, top)
    return jnp.where(length == top, top, length + jnp.ones((), length.dtype))
