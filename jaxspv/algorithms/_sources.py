"""Sources of traversals: checks, and one call for a vertex or for an array of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from .._pytree import is_concrete


def check_source(source: Any, n: int) -> Array:
    """`source` as int32, out-of-range values mapped to n (nothing is reached from there).

    Raises:
        TypeError: it is not an integer or an array of them.
        ValueError: a concrete value is out of [0, n), or the array has more than one axis.
    """
    array = jnp.asarray(source)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(f"`source` must be an integer vertex; got dtype {array.dtype}.")
    if array.ndim > 1:
        raise ValueError(f"`source` must be a vertex or a 1-D array of them; got {array.shape}.")
    if is_concrete(array) and array.size:
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= n:
            raise ValueError(f"`source` must lie in [0, {n}); got {low if low < 0 else high}.")
    return jnp.where((array >= 0) & (array < n), array, n).astype(jnp.int32)


def over_sources(one: Callable[[Array], Any], source: Array) -> Any:
    """`one(source)`, mapped over a leading axis where there is one."""
    return one(source) if source.ndim == 0 else jax.vmap(one)(source)
