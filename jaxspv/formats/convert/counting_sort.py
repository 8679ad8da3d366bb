"""Entries compressed along one axis, compressed along the other: a counting sort.

On a CPU in C++, elsewhere a sort of their places.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from ..._core.indices import index_dtype_for
from ..._core.operation import Operation, typed
from ...native import bind
from .offsets import search_rows

SPREAD = 16  # offsets an entry up to which a counting sort pays


def transposed(indptr: Array, indices: Array, shape: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Entries listed by the first axis, by the second, then the first: (minor, major, slots).

    As `compressed_by_minor`, with the place of each entry along the second axis, at its extent
    behind them.
    """
    ends, major, slots = compressed_by_minor(indptr, indices, shape=shape)
    return search_rows(ends, slots.shape[0]).astype(major.dtype), major, slots


def _types(indptr, indices, *, shape):
    nse = indices.shape[0]
    slots = typed(index_dtype_for(sizes=(nse,)), nse)
    return typed(indices.dtype, shape[1] + 1), typed(indices.dtype, nse), slots


compressed_by_minor = Operation("transposition", types=_types, internal=True)
"""`compressed_by_minor(indptr, indices, shape=)`: entries listed by the first axis, compressed by
the second, as (offsets, major, slots).

indptr: (shape[0] + 1,). indices: (nse,) places along the second axis. offsets: (shape[1] + 1,).
major: (nse,) places along the first axis, at its extent behind the entries. slots: (nse,) where
each entry was, padding included; stable."""


def _not_native(indptr, indices, *, shape) -> str | None:
    if not indices.dtype == indptr.dtype == jnp.int32:
        return "it counts in int32"
    if indices.shape[0] == 0 or 0 in shape:
        return "there are no entries"
    if shape[1] > SPREAD * indices.shape[0]:
        return f"more than {SPREAD} offsets an entry: a sort is faster"
    return bind.refused()


@compressed_by_minor.register("native", backend="cpu", refuse=_not_native)
def _in_cpp(indptr, indices, *, shape):
    """A counting sort in C++."""
    return tuple(bind.call("transpose", _types(indptr, indices, shape=shape), indptr, indices))


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
