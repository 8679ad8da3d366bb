"""Entries: the common form of matrices and vectors, sorted unique keys with values; merging two.

A matrix has keys (row, column), a vector (index,). What follows is written once for both.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from ..._core.derivatives import first_valid
from ..._core.indices import Keys, index_dtype_for, lower_bound, with_index_dtype, with_pattern
from ..._core.pytree import pytree_dataclass, static
from ..._core.tuples import take as take
from ...algebra.monoids import plus
from ...algebra.operators import BINARY
from ...formats import COO, FORMATS
from ...formats.stored import Stored, in_slots
from ...formats.vector import SparseVector
from .slots import kept, matches, unite

KNOWN = frozenset(op.fn for op in BINARY)

PLAIN = ("coo", "csr", "csc")  # formats of results


@pytree_dataclass
class Entries:
    """`data[k]` at `keys[0][k], keys[1][k]` for k < count, ascending, no place twice.

    Attributes:
        data: (nse,) values; arbitrary in padding.
        keys: one (nse,) array an axis, each at the extent of its axis in padding; all of one dtype,
            int32 or int64, that holds the extents and the capacity.
        count: scalar of that dtype.
        overflow: bool scalar.
        shape: static.
    """

    data: Array
    keys: Keys
    count: Array
    overflow: Array
    shape: tuple[int, ...] = static()

    @property
    def nse(self) -> int:
        """The capacity."""
        return self.keys[0].shape[-1]

    @property
    def index_dtype(self) -> Any:
        """The dtype of keys, slots and the count."""
        return self.keys[0].dtype

    def slots(self) -> Array:
        """(nse,) the number of each slot."""
        return jnp.arange(self.nse, dtype=self.index_dtype)

    def valid(self) -> Array:
        """(nse,) bool: which slots hold an entry."""
        return self.slots() < self.count

    def holding(self, *sizes: int) -> Entries:
        """The same entries in an index dtype that holds these extents and capacities too."""
        return self.in_dtype(index_dtype_for(self, sizes=sizes))

    def in_dtype(self, dtype: Any) -> Entries:
        """The same entries with keys of another dtype."""
        if dtype == self.index_dtype:
            return self
        keys = tuple(k.astype(dtype) for k in self.keys)
        return dataclasses.replace(self, keys=keys, count=self.count.astype(dtype))

    def with_data(self, data: Any) -> Entries:
        """The same places with other values."""
        return dataclasses.replace(self, data=data)

    def repeated(self) -> Entries:
        """The first entry in padding too, 1 at place 0 without any: see `first_valid`."""

        def fill(v, other):
            first = jnp.where(self.count > 0, v[0], jnp.asarray(other, v.dtype))
            return jnp.where(self.valid(), v, first)

        if not self.nse:
            return self
        keys = tuple(fill(k, 0) for k in self.keys)
        return dataclasses.replace(self, data=fill(self.data, 1), keys=keys)

    def values(self, stand_in: Any = 0) -> Array:
        """The values, `stand_in` in padding: nothing stored there reaches a result."""
        return jnp.where(self.valid(), self.data, jnp.asarray(stand_in, self.data.dtype))


def entries_of(x: Any) -> Entries:
    """The entries of a sparse matrix, a sparse vector, or a dense vector (all of them stored)."""
    if isinstance(x, Entries):
        return x
    if isinstance(x, Stored):
        stored: Any = with_index_dtype(x, x.index_dtype)  # in all of its arrays
        if x.ndim == 1:
            v = stored.canonical()
            return Entries(v.data, (v.indices,), v.count, v.overflow, v.shape)
        coo = stored.to_coo()
        found = Entries(coo.data, (coo.row, coo.col), stored.count, stored.overflow, coo.shape)
        summed = functools.partial(plus.segment_reduce, sorted=True)
        return found if stored.unique else join_equal(found, summed)
    if hasattr(x, "to_sparse"):
        return entries_of(x.to_sparse())
    x = jnp.asarray(x)
    size = math.prod(x.shape)
    dtype = index_dtype_for(sizes=(size,))
    flat, n = jnp.arange(size, dtype=dtype), max(x.shape[-1], 1)
    keys = (flat,) if x.ndim == 1 else (flat // n, flat % n)
    return Entries(x.reshape(-1), keys, jnp.asarray(size, dtype), jnp.asarray(False), x.shape)


def spread(x: Any) -> tuple[Array, Array]:
    """A vector as dense values, 0 where it has no entry, and where it has one."""
    if not isinstance(x, (Stored, Entries)):
        return x, jnp.ones(x.shape, bool)
    e = entries_of(x)
    values = jnp.zeros(e.shape, e.data.dtype).at[e.keys[0]].set(e.values(), mode="drop")
    return values, jnp.zeros(e.shape, bool).at[e.keys[0]].set(True, mode="drop")


def entries_in_slots(A: Any) -> Entries:
    """`entries_of` in the order of A's own slots where it `is_plain`: a CSC's goes by columns."""
    if not (is_plain(A) and A.format == "csc"):
        return entries_of(A)
    A = with_index_dtype(A, A.index_dtype)
    return Entries(A.data, A.rowcol(), A.count, A.overflow, A.shape)


def at_places_of(A: Any, e: Entries, data: Array) -> Any:
    """New values at the places of `e`, `entries_in_slots(A)`: in A's own arrays where it can be."""
    return dataclasses.replace(A, data=data, edges=None) if is_plain(A) else e.with_data(data)


def is_plain(A: Any) -> bool:
    """Whether it is a COO, CSR or CSC in order and without repetitions."""
    return getattr(A, "format", None) in PLAIN and A.sorted and A.unique


def stored(e: Entries, format: str) -> Any:
    """The entries as a `SparseVector`, or as a matrix of the format called `format`."""
    if len(e.shape) == 1:
        return SparseVector(e.data, e.keys[0], e.count, e.overflow, (e.shape[0],))
    row, col = e.keys
    return FORMATS[format].from_coo(COO(e.data, row, col, e.overflow, (e.shape[0], e.shape[1])))


def sort_entries(e: Entries) -> Entries:
    """`e` with keys in any order, brought into order; padding goes last."""
    *keys, slots = lax.sort((*e.keys, e.slots()), num_keys=len(e.keys), is_stable=True)
    return dataclasses.replace(e, data=take(e.data, slots), keys=tuple(keys))


def join_equal(e: Entries, join: Callable[..., Array]) -> Entries:
    """Joins the runs of equal keys of sorted entries by `join(values, run of each, runs)`."""
    differs = functools.reduce(operator.or_, (k[1:] != k[:-1] for k in e.keys))
    starts = jnp.append(True, differs)[: e.nse] & e.valid()
    group = jnp.where(e.valid(), jnp.cumsum(starts, dtype=e.index_dtype) - 1, e.nse)
    return keep(e, starts).with_data(join(e.values(), group, e.nse))


def keep(e: Entries, chosen: Array, nse: int | None = None) -> Entries:
    """The slots where `chosen` (nse,), moved together; those beyond `nse` set `overflow`."""
    capacity = chosen.shape[0] if nse is None else nse
    e = e.holding(*e.shape, capacity)
    flag = jnp.asarray(e.overflow)
    keys, data, count, flag = kept(chosen, e.keys, e.data, flag, capacity=capacity, shape=e.shape)
    return Entries(data, keys, count, flag, e.shape)


def fitted(e: Entries, nse: int | None) -> Entries:
    """`e` in the capacity `nse`; entries that do not fit set `overflow`."""
    if nse is None or nse == e.nse:
        return e
    e = e.holding(nse)
    keys = tuple(in_slots(k, nse, extent) for k, extent in zip(e.keys, e.shape, strict=True))
    data = in_slots(e.data, nse, 0)
    return Entries(data, keys, jnp.minimum(e.count, nse), e.overflow | (e.count > nse), e.shape)


def find(e: Entries, wanted: Keys) -> tuple[Array, Array]:
    """(slot, found): where each wanted key is stored in `e`. Keys at an extent are not found."""
    return matches(e.keys, e.count, wanted)


@jax.jit
def elements(A: Any, places: Keys) -> tuple[Array, Array]:
    """(values, found): what is stored at each of k places, (k,) indices an axis; any value
    elsewhere.

    A CSR or CSC is searched in its rows or columns, by bisection; of others all keys are made.
    """
    axis = getattr(A, "compressed", None)
    if axis is None or not (A.sorted and A.unique):
        e = entries_of(A)
        slot, found = find(e, places)
        return take(e.data, slot), found
    A = with_index_dtype(with_pattern(A), A.index_dtype)
    major, minor = (k.astype(A.index_dtype) for k in (places[axis], places[1 - axis]))
    low, high = take(A.indptr, major), take(A.indptr, major + 1)  # of an extent: equal
    slot = lower_bound((A.indices,), (minor,), low, high)
    return take(A.data, slot), (slot < high) & (take(A.indices, slot) == minor)


def element(A: Any, place: Keys) -> tuple[Array, Array]:
    """`elements` of one place, (1,) indices, as scalars."""
    values, found = elements(A, place)
    return values[0], found[0]


@dataclasses.dataclass(frozen=True)
class Union:
    """The places of two sets of entries, ascending, and their slots in each: `nse` if it has none.

    Attributes:
        places: their keys; `data` has no meaning.
        left, right: slot of each place in the one and in the other.
        in_left, in_right: whether there is one.
    """

    places: Entries
    left: Array
    right: Array
    in_left: Array
    in_right: Array


def union(a: Entries, b: Entries) -> Union:
    """The places of both, merged without a sort; on a CPU in O(entries).

    The capacity is the sum of both, or the size of the whole shape if that is less.
    """
    capacity = min(a.nse + b.nse, math.prod(a.shape))
    dtype = index_dtype_for(a, b, sizes=(capacity,))
    a, b = a.in_dtype(dtype), b.in_dtype(dtype)
    left, right, count = unite(a.keys, a.count, b.keys, b.count, capacity=capacity)
    in_left, in_right = left < a.nse, right < b.nse

    def key(in_a, in_b, extent):
        other = jnp.where(in_right, take(in_b, right), extent)
        return jnp.where(in_left, take(in_a, left), other).astype(dtype)

    keys, overflow = tuple(map(key, a.keys, b.keys, a.shape)), jnp.asarray(a.overflow) | b.overflow
    return Union(Entries(left, keys, count, overflow, a.shape), left, right, in_left, in_right)


def both(op: Any, x: Array, y: Array, where: Array) -> Array:
    """`op(x, y)` where both have an entry; else the operands are 1, so that no derivative is NaN.

    min and max take the first of equal operands, and so does their derivative.
    """
    if op.fn not in KNOWN:  # it may capture what is differentiated
        at = first_valid(where)
        x, y, where = x[at], y[at], where[at]
    x, y = (jnp.where(where, v, jnp.ones((), v.dtype)) for v in (x, y))
    name = getattr(op, "name", None)
    if op.fn in (jnp.minimum, jnp.maximum) and name in ("min", "max", "minimum", "maximum"):
        first = x <= y if op.fn is jnp.minimum else x >= y
        return jnp.where(first | (x != x), x, y)
    return op(x, y)
