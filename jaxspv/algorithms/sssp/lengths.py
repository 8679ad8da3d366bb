"""Path lengths of floats and integers: infinity, saturating addition, detection of saturation."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from ...algebra.operators import min_extend


def infinity(dtype: Any) -> Array:
    """The length of an unreached vertex: inf, or the largest integer."""
    if jnp.issubdtype(dtype, jnp.floating):
        return jnp.asarray(jnp.inf, dtype)
    return jnp.asarray(jnp.iinfo(dtype).max, dtype)


extend = min_extend.fn  # `length + weight`; integers: infinity absorbs, other sums are clamped


def wraps(length: Array, weight: Array) -> Array:
    """Whether the sum of two finite integers is no finite length: clamped, or infinity itself."""
    assert min_extend.overflow is not None
    return min_extend.overflow(length, weight)


def after(length: Array) -> Array:
    """The next larger length: every length <= `length` is below it; infinity stays."""
    top = infinity(length.dtype)
    if jnp.issubdtype(length.dtype, jnp.floating):
        return jnp.nextafter(length, top)
    return jnp.where(length == top, top, length + jnp.ones((), length.dtype))
