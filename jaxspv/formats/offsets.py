"""Offsets of a compressed axis: from and to the index of each slot, and along the other axis."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._core.eager.arrays import by_numpy, is_eager, on_gpu, to_device
from .._core.indices import LIMIT, index_dtype_for
from .._core.operation import Operation, typed
from ..native import bind

SPREAD = 16  # offsets an entry up to which a counting sort pays


@functools.partial(jax.jit, static_argnums=1)
def search_rows(indptr: Array, nse: int) -> Array:
    """The row of each slot of a compressed matrix; the number of rows for padding slots.

    `row[k] = #{i >= 1 : indptr[i] <= k}`, by counting the row ends before each slot, on a CPU by
    writing row after row: O(nse + m). int32, or the dtype of `indptr` where nse needs it. Jitted:
    eager conversions would compile the choice each time.
    """
    m = indptr.shape[0] - 1
    if nse == 0 or m == 0:
        return jnp.full(nse, m, jnp.int32)
    if nse >= LIMIT:
        return _counted_rows(indptr, nse=nse)
    return row_search(indptr.astype(jnp.int32), nse=nse)


row_search = Operation("row search", internal=True)
row_search.types = lambda indptr, *, nse: typed(indptr.dtype, nse)


@row_search.register("count")
def _counted_rows(indptr: Array, *, nse: int) -> Array:
    ends = jnp.zeros(nse, indptr.dtype).at[indptr[1:]].add(1, mode="drop")
    return jnp.minimum(jnp.cumsum(ends, dtype=indptr.dtype), indptr.shape[0] - 1)


row_search.register("native", backend="cpu", refuse=bind.refused)(
    lambda indptr, *, nse: bind.call("expand", typed(jnp.int32, nse), indptr)
)


def compress(major: Array, extent: int) -> Array:
    """(extent + 1,) offsets of a sorted major index: `indptr[i] = #{k : major[k] < i}`. Raises
    ValueError: an array of so many offsets is nothing to make unasked."""
    if extent >= LIMIT:
        raise ValueError(
            f"a compressed axis of {extent} would take as many offsets; it must stay below "
            "2^31 - 1: use format='coo'."
        )
    if is_eager(major) and on_gpu(major) and by_numpy(major):
        found = np.searchsorted(np.asarray(major), np.arange(extent + 1, dtype=major.dtype))
        return to_device(found.astype(major.dtype), major)
    return offsets(major, extent=extent)


offsets = Operation("row offsets", internal=True)
offsets.types = lambda major, *, extent: typed(major.dtype, extent + 1)


def _not_native(major, *, extent) -> str | None:
    return "it takes indices of 32 bits" if major.dtype != jnp.int32 else bind.refused()


@offsets.register("native", backend="cpu", refuse=_not_native)
def _counted(major, *, extent):
    """A pass over the entries, in C++."""
    return bind.call("compress", typed(major.dtype, extent + 1), major)


@offsets.register("search")
def _searched(major: Array, *, extent: int) -> Array:
    bounds = jnp.arange(extent + 1, dtype=major.dtype)
    return jnp.searchsorted(major, bounds, side="left").astype(major.dtype)


def _transposed_types(indptr, indices, *, shape):
    nse = indices.shape[0]
    slots = typed(index_dtype_for(sizes=(nse,)), nse)
    return typed(indices.dtype, shape[1] + 1), typed(indices.dtype, nse), slots


compressed_by_minor = Operation("transposition", types=_transposed_types, internal=True)
"""`compressed_by_minor(indptr, indices, shape=)`: entries listed by the first axis, compressed by
the second, as (offsets, major, slots).

indptr: (shape[0] + 1,). indices: (nse,) places along the second axis. offsets: (shape[1] + 1,).
major: (nse,) places along the first axis, at its extent behind the entries. slots: (nse,) where
each entry was, padding included; stable."""


def _not_counted(indptr, indices, *, shape) -> str | None:
    if not indices.dtype == indptr.dtype == jnp.int32:
        return "it counts in int32"
    if indices.shape[0] == 0 or 0 in shape:
        return "there are no entries"
    if shape[1] > SPREAD * indices.shape[0]:
        return f"more than {SPREAD} offsets an entry: a sort is faster"
    return bind.refused()


@compressed_by_minor.register("native", backend="cpu", refuse=_not_counted)
def _in_cpp(indptr, indices, *, shape):
    """A counting sort in C++."""
    types = _transposed_types(indptr, indices, shape=shape)
    return tuple(bind.call("transpose", types, indptr, indices))


@compressed_by_minor.register("sort")
def _by_sort(indptr, indices, *, shape):
    """Sorts the entries, then finds where each row or column ends."""
    nse = indices.shape[0]
    major = search_rows(indptr, nse).astype(indices.dtype)
    minor = jnp.where(major < shape[0], indices, shape[1])
    slots = jnp.arange(nse, dtype=index_dtype_for(sizes=(nse,)))
    # stable, so `major` stays in order; for one key and one value GPUs have a radix sort
    minor, slots = lax.sort((minor, slots), num_keys=1, is_stable=True)
    places = jnp.arange(shape[1] + 1, dtype=minor.dtype)
    return jnp.searchsorted(minor, places).astype(minor.dtype), major[slots], slots
