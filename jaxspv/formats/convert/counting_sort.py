"""Entries compressed along one axis, compressed along the other: a counting sort, also in order.

On a CPU that is a native loop over the entries, elsewhere a sort of their places.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.batching import vmapped
from ..._core.indices import index_dtype_for
from ..._core.native_loops import each, read, write
from ..._core.operation import Operation
from ...native import bind

LARGEST = np.int32(np.iinfo(np.int32).max)
SPREAD = 16  # offsets an entry up to which a counting sort pays


class Compressed(NamedTuple):
    """Entries by row or by column: (extent + 1,) offsets, (nse,) minor indices, (nse,) values."""

    indptr: Array
    indices: Array
    data: Any


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


def _not_counted(indptr, indices, *, shape) -> str | None:
    if not indices.dtype == indptr.dtype == jnp.int32:
        return "the loop counts in int32"
    if indices.shape[0] == 0 or 0 in shape:
        return "there are no entries"
    if shape[1] > SPREAD * indices.shape[0]:
        return f"more than {SPREAD} offsets an entry: a sort is faster"
    return None


def _batched(axis_size, in_batched, indptr, indices, *, shape):
    return vmapped(functools.partial(_by_sort, shape=shape), axis_size, in_batched, indptr, indices)


def _not_native(indptr, indices, *, shape) -> str | None:
    return _not_counted(indptr, indices, shape=shape) or bind.refused()


@reordered.register("native", backend="cpu", refuse=_not_native, batched=_batched)
def _in_cpp(indptr, indices, *, shape):
    """A counting sort in C++."""
    nse = indices.shape[0]
    row = jax.ShapeDtypeStruct((nse,), jnp.int32)
    ends = jax.ShapeDtypeStruct((shape[1] + 1,), jnp.int32)
    ends, major, slots = bind.call("transpose", (ends, row, row), indptr, indices)
    minor = bind.call("expand", row, ends)
    return minor, major, slots


@reordered.register("count", backend="cpu", refuse=_not_counted, batched=_batched)
def _by_count(indptr, indices, *, shape):
    nse, minor_extent = indices.shape[0], shape[1]
    entries = Compressed(indptr, indices, jnp.arange(nse, dtype=jnp.int32))
    other = transpose(entries, minor_extent)

    def row(i, minor):
        first, last = read(other.indptr, i), read(other.indptr, i + 1)
        return each(first, last, lambda e, minor: (write(minor, e, i),), minor)

    (minor,) = each(0, minor_extent, row, jnp.full(nse, minor_extent, jnp.int32))
    slots = jnp.arange(nse, dtype=jnp.int32)  # padding stays in its place: a permutation
    return minor, other.indices, jnp.where(slots < indptr[-1], other.data, slots)


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


def transpose(A: Compressed, minor: int, major: Array | None = None) -> Compressed:
    """The same entries compressed along the other axis, of extent `minor`, by a counting sort.

    `major`: the index of each slot along the first axis, if `A.indptr` does not give it. Stable,
    O(nse + extents). Padding gets the extent of the first axis for an index. `A.data` may be None.
    """
    extent, nse = A.indptr.shape[0] - 1, A.indices.shape[0]
    if nse == 0 or minor == 0:
        return Compressed(jnp.zeros(minor + 1, jnp.int32), A.indices, A.data)
    values = () if A.data is None else (A.data,)

    def count(c):
        e, ends = c
        j = read(A.indices, e) + 2
        return e + 1, write(ends, j, read(ends, j) + 1)

    start = (A.indptr[0], jnp.zeros(minor + 2, jnp.int32))
    _, ends = lax.while_loop(lambda c: c[0] < A.indptr[-1], count, start)

    def row(c):
        i, e, *state = c
        last = read(A.indptr, i + 1)

        def entry(c):
            e, place, *arrays = c
            new = (i if major is None else read(major, e), *(read(v, e) for v in values))

            def put(c):  # one turn, so that the place is read once
                _, j, at, place, *arrays = c
                arrays = (write(a, at, v) for a, v in zip(arrays, new, strict=True))
                return jnp.bool_(False), j, at, write(place, j, at + 1), *arrays

            j = read(A.indices, e) + 1
            first = (jnp.bool_(True), j, read(place, j), place, *arrays)
            return e + 1, *lax.while_loop(lambda c: c[0], put, first)[3:]

        return i + 1, *lax.while_loop(lambda c: c[0] < last, entry, (e, *state))

    fill = jnp.full(nse, extent if major is None else LARGEST, jnp.int32)
    place = jnp.cumsum(ends, dtype=jnp.int32)
    state = (jnp.int32(0), A.indptr[0], place, fill, *map(jnp.zeros_like, values))
    _, _, place, indices, *data = lax.while_loop(lambda c: c[0] < extent, row, state)
    return Compressed(place[: minor + 1], indices, data[0] if values else A.data)
