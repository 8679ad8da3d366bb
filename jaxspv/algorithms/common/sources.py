"""Sources of traversals: checks, and one call for a vertex or for an array of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.indices import within
from ..._core.pytree import is_concrete
from .names import refuse_names


def check_source(source: Any, n: int) -> Any:
    """`source` as int32, out-of-range values mapped to n (nothing is reached from there).

    Raises:
        TypeError: it is not an integer or an array of them.
        ValueError: a concrete value is out of [0, n), or the array has more than one axis.
    """
    if type(source) is int and 0 <= source < n:  # most eager calls
        return np.asarray(source, np.int32)
    refuse_names("source", source)
    concrete = is_concrete(source)
    array = np.asarray(source) if concrete else jnp.asarray(source)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(f"`source` must be an integer vertex; got dtype {array.dtype}.")
    if array.ndim > 1:
        raise ValueError(f"`source` must be a vertex or a 1-D array of them; got {array.shape}.")
    if concrete:
        wrong = array[(array < 0) | (array >= n)]
        if wrong.size:
            raise ValueError(f"`source` must lie in [0, {n}); got {wrong.ravel()[0]}.")
        return array.astype(np.int32)
    return within(array, n)


def over(source: Any, one: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`one`, a function of a vertex, mapped over the leading axis of `source` if it has one."""
    return one if source.ndim == 0 else jax.vmap(one)
