"""Arguments of constructors: shapes, indices, values and capacities, checked."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core.eager.arrays import array_of, in_dtype, known, unmasked
from .._core.indices import checked_count, index_dtype_for
from .._core.pytree import is_concrete
from ..formats.stored import narrow
from .edges import taken


def check_shape(shape: Any) -> tuple[int, int]:
    """`shape` as a pair of Python integers. Raises TypeError: it is something else. ValueError: an
    extent is negative, or needs int64 indices without x64."""
    kinds = [type(s) for s in shape] if isinstance(shape, tuple) else []
    if len(kinds) != 2 or bool in kinds or not all(issubclass(k, (int, np.integer)) for k in kinds):
        raise TypeError(f"`shape` must be a pair of Python integers (m, n); got {shape!r}.")
    m, n = int(shape[0]), int(shape[1])
    if min(m, n) < 0:
        raise ValueError(f"`shape` must not be negative; got {shape}.")
    index_dtype_for(sizes=(m, n))
    return m, n


def smallest_square(row: Any, col: Any) -> tuple[int, int]:
    """The smallest square that holds concrete indices."""
    if not is_concrete(row, col):
        raise ValueError("`shape` must be given under jit: the largest index is unknown.")
    n = max((int(index.max()) + 1 for index in (row, col) if index.size), default=0)
    return n, n


def checked_indices(name: str, values: Any) -> Any:
    """An array of integers, on the host where it was; TypeError for anything else."""
    values = unmasked(name, taken(values))
    array = known(values) if isinstance(values, (jax.Array, np.ndarray)) else np.asarray(values)
    if array.size == 0:
        return array.astype(np.int32)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        names = array.dtype.kind in "USO" and name in ("senders", "receivers")
        hint = " Names of vertices: `jsp.io.from_table` numbers them." if names else ""
        raise TypeError(f"`{name}` must be integers; got {array.dtype}.{hint}")
    native = array.dtype.newbyteorder("=")  # JAX takes no other
    return array if array.dtype == native else array.astype(native)


def check_range(name: str, index: Any, extent: int) -> None:
    """ValueError where an index lies outside of [0, extent)."""
    if index.size == 0:
        return
    low, high = int(index.min()), int(index.max())
    if low < 0 or high >= extent:
        raise ValueError(f"`{name}` must lie in [0, {extent}); got {low if low < 0 else high}.")


def checked_values(values: Any, edges: int) -> Any:
    """One value an edge, ones for None; ValueError for another shape."""
    if values is None:
        return np.ones(edges, np.float32)
    values = unmasked("values", taken(values))
    if not isinstance(values, (jax.Array, np.ndarray)):
        try:
            values = np.asarray(values)
        except ValueError as error:
            raise ValueError(f"`values` must be one number an edge: {error}") from error
    if isinstance(values, np.ndarray):
        values = narrow(values)
    if values.ndim == 0:
        return jnp.broadcast_to(array_of("values", values), (edges,))
    if values.shape != (edges,):
        raise ValueError(f"`values` must have shape ({edges},); got {values.shape}.")
    return values


def values_in(dtype: Any, values: Any, what: str) -> np.ndarray:
    """Values of another library's matrix or graph in a dtype: see `in_dtype`; as booleans whether
    they are not 0."""
    values = np.asarray(values)
    if values.dtype.kind not in "biufc":  # objects, or texts
        if values.dtype == object and None in values.tolist():
            raise ValueError(f"{what} None, which is no number.")
        values = np.asarray(values, np.float64)
    return values != 0 if np.dtype(dtype) == bool else narrow(in_dtype(what, values, dtype))


def checked_capacity(nse: int | None, count: Any, concrete: bool, limit: int) -> int:
    """`nse`, or the count where it is known, or the limit; ValueError where it is too small."""
    nse = checked_count("nse", nse, 0)
    if nse is None:
        return int(count) if concrete else limit
    if concrete and int(count) > nse:
        raise ValueError(f"`nse` must be at least {int(count)} to hold the entries; got {nse}.")
    return nse
