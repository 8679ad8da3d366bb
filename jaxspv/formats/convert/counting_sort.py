"""Entries compressed along one axis, compressed along the other: a counting sort, also in order.

On a CPU in C++, elsewhere a sort of their places.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import Array, lax

from ..._core.batching import vmapped
from ..._core.indices import index_dtype_for
from ..._core.operation import Operation
from ...native import bind

SPREAD = 16  # offsets an entry up to which a counting sort pays


def transposed(indptr: Array, indices: Array, shape: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Entries listed by the first axis, by the second, then the first: (minor, major, slots).

    indptr: (shape[0] + 1,). indices: (nse,) places along the second axis. slots: (nse,) where each
    entry was, padding included; stable. Behind the entries both places are at their extents.
    """
    return reordered(indptr, indices, shape=shape)


def _types(indptr, indices, *, shape):
    nse = indices.shape[0]
    index = jax.ShapeDtypeStruct((nse,), indices.dtype)
    return index, index, jax.ShapeDtypeStruct((nse,), index_dtype_for(sizes=(nse,)))


reordered = Operation("reordering entries", types=_types, internal=True)


@reordered.register("sort")
def _by_sort(indptr, indices, *, shape):
    (major_extent, minor_extent), nse = shape, indices.shape[0]
    ends = jnp.zeros(nse, indptr.dtype).at[indptr[1:]].add(1, mode="drop")
    major = jnp.cumsum(ends, dtype=indices.dtype)
    valid = jnp.arange(nse, dtype=indptr.dtype) < indptr[-1]
    major = jnp.where(valid, major, major_extent)
    minor = jnp.where(valid, indices, minor_extent)
    slots = jnp.arange(nse, dtype=index_dtype_for(sizes=(nse,)))
    # stable, so `major` stays in order; for one key and one value GPUs have a radix sort
    minor, slots = lax.sort((minor, slots), num_keys=1, is_stable=True)
    return minor, major[slots], slots


def _not_native(indptr, indices, *, shape) -> str | None:
    if not indices.dtype == indptr.dtype == jnp.int32:
        return "it counts in int32"
    if indices.shape[0] == 0 or 0 in shape:
        return "there are no entries"
    if shape[1] > SPREAD * indices.shape[0]:
        return f"more than {SPREAD} offsets an entry: a sort is faster"
    return bind.refused()


_batched = functools.partial(vmapped, _by_sort)


@reordered.register("native", backend="cpu", refuse=_not_native, batched=_batched)
def _in_cpp(indptr, indices, *, shape):
    """A counting sort in C++."""
    nse = indices.shape[0]
    row = jax.ShapeDtypeStruct((nse,), jnp.int32)
    ends = jax.ShapeDtypeStruct((shape[1] + 1,), jnp.int32)
    ends, major, slots = bind.call("transpose", (ends, row, row), indptr, indices)
    minor = bind.call("expand", row, ends)
    return minor, major, slots


def compressed_by_minor(
    indptr: Array, indices: Array, shape: tuple[int, int]
) -> tuple[Array, Array, Array]:
    """Entries listed by the first axis, compressed by the second: (offsets, major, slots).

    As `transposed`, with offsets (shape[1] + 1,) for the places along the second axis.
    """
    return transposition(indptr, indices, shape=shape)


def _types_of_transposition(indptr, indices, *, shape):
    minor, major, slots = _types(indptr, indices, shape=shape)
    return jax.ShapeDtypeStruct((shape[1] + 1,), minor.dtype), major, slots


transposition = Operation("transposition", types=_types_of_transposition, internal=True)


@transposition.register("native", backend="cpu", refuse=_not_native)
def _transposed_in_cpp(indptr, indices, *, shape):
    """A counting sort in C++."""
    results = _types_of_transposition(indptr, indices, shape=shape)
    return tuple(bind.call("transpose", results, indptr, indices))


@transposition.register("order")
def _transposed_by_order(indptr, indices, *, shape):
    """Sorts the entries, then finds where each row or column ends."""
    minor, major, slots = transposed(indptr, indices, shape)
    places = jnp.arange(shape[1] + 1, dtype=minor.dtype)
    return jnp.searchsorted(minor, places).astype(minor.dtype), major, slots
