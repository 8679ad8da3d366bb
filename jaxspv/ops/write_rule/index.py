"""Indices of extract and assign, mapping places both ways; matrices in the memory of a host."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.eager.arrays import is_eager, on_accelerator, to_device, unmasked
from ..._core.indices import LIMIT, eager_capacity, index_dtype_for, within
from ..._core.pytree import is_concrete, pytree_dataclass, static
from ...formats import CSR
from ...formats.stored import Stored, in_slots
from .entries import take


@pytree_dataclass
class Index:
    """The places `start + k * step` (a slice), or `values[k]`, for 0 <= k < size.

    Attributes:
        values: (size,) integers, the extent where an entry selects nothing; None for a slice.
        start, step: of a slice.
        size: how many.
        extent: of the axis.
        point: an integer was given: the axis vanishes.
    """

    values: Any
    start: int = static(default=0)
    step: int = static(default=1)
    size: int = static(default=0)
    extent: int = static(default=0)
    point: bool = static(default=False)

    @property
    def ascending(self) -> bool:
        """Whether the places are known to ascend."""
        return (self.values is None and self.step > 0) or self.size <= 1

    @property
    def whole(self) -> bool:
        """Whether it is the whole axis in its order."""
        return self.values is None and self.size == self.extent and self.step == 1

    def place(self, k: Array) -> Array:
        """Place k of the axis; the extent for k = size and where nothing is selected."""
        if self.values is None:
            place = self.start + k * self.step
        else:
            place = take(self.values, k)
        return jnp.where((k >= 0) & (k < self.size), place, self.extent).astype(k.dtype)

    def back(self, place: Array) -> Array:
        """The inverse of `place`: k, `size` where it is not selected; for places selected once."""
        if self.whole:
            return place
        if self.values is None:
            k, rest = jnp.divmod(place - self.start, self.step)
            inside = (rest == 0) & (k >= 0) & (k < self.size) & (place < self.extent)
            return jnp.where(inside, k, self.size).astype(place.dtype)
        own = jnp.arange(self.size, dtype=self.values.dtype)
        if self.extent >= LIMIT:  # no table of an extent like that
            ordered, own = lax.sort((self.values, own), num_keys=1)
            slot = jnp.searchsorted(ordered, place)
            found = (take(ordered, slot) == place) & (place < self.extent) & (self.size > 0)
            return jnp.where(found, take(own, slot), self.size)
        number = jnp.full(self.extent + 1, self.size, own.dtype)
        number = number.at[self.values].set(own, mode="drop")
        return take(number.at[self.extent].set(self.size), place)

    def times(self, place: Array) -> Array:
        """How often each place is selected; no meaning for the extent."""
        if self.values is None:
            return (self.back(place) < self.size).astype(place.dtype)
        if self.extent >= LIMIT:
            ordered = jnp.sort(self.values)
            above, below = (jnp.searchsorted(ordered, place, side=s) for s in ("right", "left"))
            return (above - below).astype(place.dtype)
        table = jnp.zeros(self.extent, self.values.dtype).at[self.values].add(1, mode="drop")
        return take(table, place)


def as_index(name: str, index: Any, extent: int) -> Index:
    """`index` as an `Index` into an axis, of NumPy where it is known: `to_device` is the caller's.

    Args:
        name: of the argument, for messages.
        index: None or a slice; an integer (negative ones count from the end, as in NumPy); a 1-D
            array of integers; a concrete 1-D boolean array.
        extent: of the axis.

    Raises:
        IndexError: a concrete index is out of range.
        TypeError: it is something else.
    """
    dtype = index_dtype_for(sizes=(extent,))
    if index is None:
        index = slice(None)
    if isinstance(index, slice):
        places = range(extent)[index]
        step = places.step if len(places) > 1 else 1  # a step beyond the extent is of no use
        return Index(None, places.start, step, len(places), extent)
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        if not -extent <= index < extent:
            raise IndexError(f"`{name}` must lie in [{-extent}, {extent}); got {index}.")
        place = int(index) % extent
        return Index(np.full(1, place, dtype), size=1, extent=extent, point=True)
    unmasked(name, index)
    array = index if isinstance(index, (jax.Array, np.ndarray)) else np.asarray(index)
    if array.dtype == bool and array.shape == (extent,) and is_concrete(array):
        array = np.flatnonzero(np.asarray(array))
    elif array.dtype == bool and array.size:
        raise TypeError(
            f"`{name}` as booleans must be concrete and have shape ({extent},); got shape "
            f"{array.shape}. The values under a mask of a matrix are `A.todense()[mask]`."
        )
    if array.size == 0:
        array = np.zeros(array.shape, np.int32)
    if array.ndim > 1 or not jnp.issubdtype(array.dtype, jnp.integer):
        hint = " Values at pairs of places: `A[i.ravel(), j.ravel()]`." if array.ndim > 1 else ""
        right = "an integer, a slice, or a 1-D array of integers"
        raise TypeError(f"`{name}` must be {right}; got {index!r}.{hint}")
    point = array.ndim == 0
    if is_concrete(array):  # by NumPy: no programs
        array = np.atleast_1d(np.asarray(array))
        if array.dtype == np.uint64:
            array = np.minimum(array, np.uint64(2**63 - 1))  # out of range of every axis
        array = array.astype(np.int64)
        if array.size and not -extent <= array.min() <= array.max() < extent:
            wrong = array.min() if array.min() < -extent else array.max()
            raise IndexError(f"`{name}` must lie in [{-extent}, {extent}); got {wrong}.")
        values = np.where(array < 0, array + extent, array).astype(dtype)
    else:
        values = within(jnp.atleast_1d(array), extent, dtype, from_end=True)
    return Index(values, size=values.shape[0], extent=extent, point=point)


def as_indices(A: Any, i: Any, j: Any) -> tuple[Index, ...]:
    """`as_index` of i for a vector, of i and j for a matrix. Raises IndexError, TypeError: as
    `as_index`; a vector gets two indices."""
    if A.ndim == 1 and j is not None:
        raise TypeError("a vector has one index; got `j` too.")
    return tuple(
        as_index(name, index, extent)
        for name, index, extent in zip("ij", (i, j), A.shape, strict=False)
    )


def check_distinct(name: str, index: Index) -> None:
    """Assignment to a place twice is undefined in GraphBLAS. Raises ValueError: concrete indices
    hold a place twice."""
    if index.values is not None and is_concrete(index.values):
        values = np.asarray(index.values)
        if np.unique(values).size != values.size:
            raise ValueError(f"`{name}` must not hold an index twice; got {values.tolist()}.")


def is_listed(A: Any) -> bool:
    """Whether `entries_on_host` lists the entries of a matrix, each once."""
    return A.format in ("coo", "csr", "csc") and A.unique and not A.entry_shape


def is_on_host(A: Any, *operands: Any) -> bool:
    """Whether A has compressed rows or columns there, in order, and all operands are eager."""
    if A.format == "coo" or not (is_listed(A) and A.sorted):
        return False
    return is_eager(A, *operands) and not on_accelerator(*jax.tree.leaves((A, operands)))


def is_vector_on_host(v: Any, *operands: Any) -> bool:
    """Whether v, with one axis, is a sparse vector there, and all operands are eager."""
    if not isinstance(v, Stored) or v.entry_shape or not is_eager(v, *operands):
        return False
    return not on_accelerator(*jax.tree.leaves((v, operands)))


def listed(index: Index) -> Any:
    """The places of an index as NumPy takes them: an array, or a slice."""
    if index.values is not None:
        return np.asarray(index.values)
    end = index.start + index.size * index.step
    return slice(index.start, end if end >= 0 else None, index.step)


def csr_like(A: Any, arrays: tuple[Any, ...], shape: tuple[int, int], overflow: Any) -> CSR:
    """A CSR of (data, indices, indptr), in the capacity of eager results, with dtypes of A."""
    data, indices, indptr = arrays
    capacity = eager_capacity(data.size, shape[0] * shape[1])
    data = in_slots(data, capacity, 0, A.dtype)
    indices = in_slots(indices, capacity, shape[1], A.index_dtype)
    indptr = in_slots(indptr, shape[0] + 1, 0, A.index_dtype)
    return to_device(CSR(data, indices, indptr, overflow, shape), A.data)
