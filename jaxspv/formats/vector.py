"""SparseVector: a counted list of entries in a fixed capacity, the frontier of a traversal."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._core.eager.arrays import (
    differ,
    fitting,
    is_eager,
    known,
    known_while_tracing,
    narrow,
    on_accelerator,
    single,
    to_device,
    unmasked,
)
from .._core.indices import (
    check_dense,
    check_range,
    checked_count,
    index_dtype_for,
    with_index_dtype,
    with_pattern,
    within,
)
from .._core.operation import Operation, typed
from .._core.pytree import is_concrete, pytree_dataclass, static
from ..algebra.monoids import as_monoid, plus
from ..native import bind
from ..shapes import Bool, Indices, Int, Number, Shaped, Values, Vector
from .invariants import check, of_list
from .stored import Stored, as_values, first_slots, in_slots


@jax.jit
def _dense(x: SparseVector, fill: Any) -> Array:
    """Eagerly one program."""
    x = x if x.unique else x.canonical()
    return jnp.full(x.shape, fill, x.dtype).at[x.indices].set(x.data, mode="drop")


def _types_of_marks(places: Array, *, extent: int, complement: bool) -> Any:
    return typed(bool, extent)


marks = Operation("marks", types=_types_of_marks, internal=True)
"""`marks(places, extent=, complement=)`: (extent,) bool, true where listed, or everywhere else."""


@marks.register("native", backend="cpu", refuse=bind.refused_but_int32)
def _marked_in_cpp(places: Array, *, extent: int, complement: bool) -> Array:
    return bind.call("marks", typed(bool, extent), places, complement=complement)


@marks.register("scatter")
def _scattered(places: Array, *, extent: int, complement: bool) -> Array:
    return jnp.full(extent, complement).at[places].set(not complement, mode="drop")


@pytree_dataclass
class SparseVector(Stored):
    """Entries `(indices[k], data[k])` for k < count, of a vector of length n.

    A stored entry is an entry whatever its value. Slots from `count` on are padding: index n, data
    arbitrary.

    Attributes:
        data: (nse,) values.
        indices: (nse,) int32 or int64, ascending where `sorted`.
        count: scalar of that dtype, the entries stored.
        overflow: bool scalar; some operation dropped entries for want of capacity.
        shape: (n,), static.
        sorted, unique: static.

    >>> x = vector_from_entries([3, 1], [4.0, 2.0], 5)
    >>> x, x.indices.tolist(), int(x.count), x.todense().tolist()
    (SparseVector(float32[2], shape=(5,)), [1, 3], 2, [0.0, 2.0, 0.0, 4.0, 0.0])
    """

    index_fields: ClassVar[tuple[str, ...]] = ("indices", "count")
    data: Shaped[Array, " nse"]
    indices: Int[Array, " nse"]
    count: Int[Array, ""]
    overflow: Bool[Array, ""]
    shape: tuple[int] = static()
    sorted: bool = static(default=True)
    unique: bool = static(default=True)

    def valid(self) -> Bool[Array, " nse"]:
        """(nse,) bool: which slots hold an entry."""
        return jnp.arange(self.nse, dtype=self.index_dtype) < with_pattern(self).count

    def todense(self, fill: Number = 0) -> Shaped[Array, " n"]:
        """A dense (n,) array; missing entries become `fill`, which the dtype must hold."""
        check_dense((*self.shape, *self.entry_shape), self.dtype)
        return _dense(with_pattern(self), fitting("fill", fill, self.dtype))

    def structure(self, *, complement: bool = False) -> Bool[Array, " n"]:
        """(n,) bool: which entries are stored; with `complement`, which are not."""
        return marks(with_pattern(self).indices, extent=self.shape[0], complement=complement)

    def check_invariants(self) -> SparseVector:
        return check(self, ("indices", "count"), of_list)

    def canonical(self, dup: Any = None) -> SparseVector:
        """The same entries ascending, each place once: what is sorted and unique stays as it is.

        Args:
            dup: the monoid that combines the values of equal places; plus by default.
        """
        if with_pattern(self).sorted and self.unique:
            return self
        (n,), k, dtype = self.shape, self.nse, self.index_dtype
        if k == 0:
            return dataclasses.replace(self, sorted=True, unique=True)
        slots = jnp.arange(k, dtype=dtype)
        places = jnp.where(self.valid(), self.indices, n)
        keys, order = lax.sort((places, slots), num_keys=1, is_stable=True)
        values = jnp.asarray(self.data)  # NumPy's cannot be indexed by traced arrays
        if self.unique:
            return dataclasses.replace(self, data=values[order], indices=keys, sorted=True)
        starts = jnp.append(True, keys[1:] != keys[:-1]) & (keys < n)
        group = jnp.where(keys < n, jnp.cumsum(starts, dtype=dtype) - 1, k)
        data = (dup or plus).segment_reduce(values[order], group, k, sorted=True)
        places = jnp.full(k, n, dtype).at[group].set(keys, mode="drop")
        count = jnp.sum(starts, dtype=dtype)
        return SparseVector(data, places, count, self.overflow, self.shape)

    def in_capacity(self, nse: int) -> Self:
        data, indices = first_slots((self.data, self.indices), nse)
        return dataclasses.replace(self, data=data, indices=indices)

    def resized(self, nse: int) -> SparseVector:
        """The same vector in another capacity; entries that do not fit set `overflow`.

        Raises:
            ValueError: values are concrete and `nse` is too small.
        """
        _check_capacity(self.count, nse)
        indices, data = in_slots(self.indices, nse, self.shape[0]), in_slots(self.data, nse, 0)
        overflow = self.overflow | (self.count > nse)
        count = jnp.minimum(self.count, nse)
        return dataclasses.replace(self, data=data, indices=indices, count=count, overflow=overflow)


def compact(present: Array, nse: int, dtype: Any = None) -> tuple[Array, Array]:
    """The positions of True, ascending, in `nse` slots (n where there are fewer), and their count.

    Stream compaction: a scan of the flags gives each its place. dtype: of the positions; None: the
    index dtype for these sizes.
    """
    n = present.shape[0]
    dtype = index_dtype_for(sizes=(n, nse)) if dtype is None else dtype
    count = jnp.sum(present, dtype=dtype)
    place = jnp.cumsum(present, dtype=dtype) - 1
    target = jnp.where(present, place, nse)
    positions = jnp.full(nse, n, dtype)
    positions = positions.at[target].set(jnp.arange(n, dtype=dtype), mode="drop")
    return positions, count


def from_present(values: Array, present: Array, nse: int | None = None) -> SparseVector:
    """The entries of the dense `values` (n,) where `present` (n,) bool; capacity `nse` or n. Raises
    ValueError: values are concrete and `nse` is too small; says the size needed."""
    n = values.shape[0]
    capacity = n if nse is None else nse
    indices, count = compact(present, capacity)
    _check_capacity(count, capacity)
    data = jnp.zeros(capacity, values.dtype)
    if n:  # a gather from nothing is refused by XLA
        data = values.at[indices].get(mode="fill", fill_value=0)
    return SparseVector(data, indices, jnp.minimum(count, capacity), count > capacity, (n,))


def vector_from_dense(
    x: Vector, *, nse: int | None = None, fill: Number = 0, index_dtype: Any = None
) -> SparseVector:
    """The entries of a dense vector that differ from `fill`.

    Args:
        x: array (n,).
        nse: capacity; by default the number of entries where `x` is concrete. It must be given
            under jit, where that number is unknown.
        fill: the value of what is left out; NaN leaves out NaN.
        index_dtype: int32 or int64 (under x64); None: int32.

    Raises:
        ValueError: `x` is not one-dimensional, `nse` is too small, or missing under jit.

    >>> vector_from_dense([0.0, 2.0, 0.0])
    SparseVector(float32[1], shape=(3,))
    """
    if nse is None and not is_concrete(x):
        raise ValueError("`nse` must be given under jit: the number of entries is unknown.")
    nse = checked_count("nse", nse, 0)
    single("fill", fill)
    array = as_values(x, "x")  # inside a trace a tracer, of a NumPy array too
    if is_eager(array) and array.ndim == 1 and not on_accelerator(array):
        return _from_host(array, nse, fill, index_dtype)
    if nse is None:
        with known_while_tracing():
            nse = int(jnp.sum(differ(jnp.asarray(x), fill)))
    if array.ndim != 1:
        raise ValueError(f"`x` must be one-dimensional; got shape {array.shape}.")
    dtype = index_dtype_for(sizes=(*array.shape, nse), asked=index_dtype)
    return with_index_dtype(from_present(array, differ(array, fill), nse), dtype)


def _from_host(x: Array, nse: int | None, fill: Any, asked: Any) -> SparseVector:
    """`vector_from_dense` by NumPy: JAX compiles some 20 programs for a shape."""
    values = np.asarray(x)
    at = np.flatnonzero(differ(values, fill))
    capacity = at.size if nse is None else nse
    _check_capacity(at.size, capacity)
    dtype = index_dtype_for(sizes=(*x.shape, capacity), asked=asked)
    data, indices = in_slots(values[at], capacity, 0), in_slots(at, capacity, x.shape[0], dtype)
    count: Any = np.asarray(at.size, dtype)
    overflow: Any = np.asarray(False)
    return to_device(SparseVector(data, indices, count, overflow, (x.shape[0],)), x)


def vector_from_entries(
    indices: Indices,
    values: Values | Number,
    n: int,
    *,
    nse: int | None = None,
    dup: Any = None,
    index_dtype: Any = None,
) -> SparseVector:
    """A vector of length n from a list of indices and values, in any order.

    Args:
        indices: int (k,); equal indices are joined by `dup`.
        values: (k,), or a scalar for all.
        n: the length.
        nse: capacity, k by default.
        dup: a monoid; plus by default.
        index_dtype: int32 or int64 (under x64); None: int32, unless n or k needs int64.

    Raises:
        ValueError: shapes differ, a concrete index is out of [0, n), int64 without x64.
        TypeError: indices are no integers, or n is none.

    >>> vector_from_entries([3, 1, 3], [1.0, 2.0, 4.0], 5).todense().tolist()
    [0.0, 2.0, 0.0, 5.0, 0.0]
    """
    if not isinstance(n, (int, np.integer)) or n < 0:
        raise TypeError(f"`n` must be a non-negative integer; got {n!r}.")
    indices, values = known(unmasked("indices", indices)), unmasked("values", values)
    if not isinstance(indices, jax.Array):
        indices = np.asarray(indices)  # 64-bit indices are checked before they are narrowed
    if not jnp.issubdtype(indices.dtype, jnp.integer) and indices.size:
        raise TypeError(f"`indices` must be integers; got {indices.dtype}.")
    if indices.ndim > 1:
        raise ValueError(f"`indices` must be one-dimensional; got shape {indices.shape}.")
    if is_concrete(indices):
        check_range("indices", indices, n)
    dup = plus if dup is None else as_monoid(dup, "dup")
    nse = checked_count("nse", nse, 0)
    dtype = index_dtype_for(sizes=(n, indices.size, nse or 0), asked=index_dtype)
    if isinstance(indices, np.ndarray) and is_concrete(values) and dup is plus:
        distinct = _distinct_entries(np.atleast_1d(indices).astype(dtype), values, n)
        if distinct is not None:
            return distinct if nse is None else distinct.resized(nse)
    indices, values = jnp.atleast_1d(within(indices, n, dtype)), as_values(values)
    if values.ndim and values.shape != indices.shape:
        raise ValueError(f"`values` must have shape {indices.shape}; got {values.shape}.")
    values = jnp.broadcast_to(values, indices.shape)
    count, overflow = jnp.asarray(indices.shape[0], dtype), jnp.asarray(False)
    entries = SparseVector(values, indices, count, overflow, (n,), sorted=False, unique=False)
    vector = entries.canonical(dup)
    return vector if nse is None else vector.resized(nse)


def _distinct_entries(indices: np.ndarray, values: Any, n: int) -> SparseVector | None:
    """The vector of entries on the host, sorted by NumPy without any program. None: a place comes
    twice, or the values are not there."""
    order = np.argsort(indices, kind="stable")
    keys = indices[order]
    devices = values.devices() if isinstance(values, jax.Array) else ()
    if (keys[1:] == keys[:-1]).any() or any(d.platform != "cpu" for d in devices):
        return None
    given, values = values, narrow(np.asarray(values))
    if values.ndim and values.shape != indices.shape:
        raise ValueError(f"`values` must have shape {indices.shape}; got {values.shape}.")
    data = np.broadcast_to(values, indices.shape)[order]
    count = np.asarray(keys.size, keys.dtype)
    data, keys, count, overflow = to_device((data, keys, count, np.asarray(False)), given)
    return SparseVector(data, keys, count, overflow, (n,))


def _check_capacity(count: Any, nse: int) -> None:
    if is_concrete(count) and int(count) > nse:
        raise ValueError(f"`nse` must be at least {int(count)} to hold the result; got {nse}.")
