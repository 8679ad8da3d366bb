"""Slots of sorted keys: those that are chosen, those of given keys, those of a union.

Keys are one array an axis, the first one slowest. Each operation is one pass in C++ on a CPU, and a
few searches and prefix sums elsewhere.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from ..._core.indices import Keys, lower_bound
from ..._core.operation import Operation, typed
from ..._core.tuples import take
from ...formats.vector import compact
from ...native import bind
from ...native.codes import DTYPES


def _types_of_chosen(chosen: Array, *, capacity: int, dtype: Any) -> tuple[Any, Any]:
    return typed(dtype, capacity), typed(dtype)


chosen_slots = Operation("chosen slots", types=_types_of_chosen, internal=True)
"""`chosen_slots(chosen, capacity=, dtype=)`: the slots where the (k,) flags hold, ascending, k
behind them; and their number, of which `capacity` are kept."""


@chosen_slots.register("native", backend="cpu", refuse=bind.refused_but_int32)
def _chosen_in_cpp(chosen: Array, **static: Any) -> tuple[Array, Array]:
    return bind.call("chosen_slots", _types_of_chosen(chosen, **static), chosen)


chosen_slots.register("scatter")(lambda chosen, capacity, dtype: compact(chosen, capacity, dtype))


def _types_kept(chosen, keys, data, overflow, *, capacity, shape) -> Any:
    kept = tuple(typed(key.dtype, capacity) for key in keys)
    return kept, typed(data.dtype, capacity, *data.shape[1:]), typed(keys[0].dtype), typed(bool)


kept = Operation("kept entries", tangent="definition", types=_types_kept, internal=True)
"""`kept(chosen, keys, data, overflow, capacity=, shape=)`: the entries whose flag holds, as (keys,
data, count, overflow); keys are at the extents of `shape` behind them."""


def _not_kept_in_cpp(chosen, keys, data, overflow, *, capacity, shape) -> str | None:
    if data.ndim != 1 or data.dtype.name not in DTYPES:
        return f"its kernel needs values of {', '.join(DTYPES)}"
    return bind.refused_but_int32(chosen, keys)


@kept.register("native", backend="cpu", refuse=_not_kept_in_cpp)
def _kept_in_cpp(chosen, keys, data, overflow, *, capacity, shape) -> Any:
    types = _types_kept(chosen, keys, data, overflow, capacity=capacity, shape=shape)
    extents = {"axes": len(keys), "rows": shape[0], "columns": shape[-1]}
    flat = bind.call("keep", (*types[0], *types[1:]), chosen, *keys, data, overflow, **extents)
    return (tuple(flat[: len(keys)]), *flat[len(keys) :])


@kept.register("slots")
def _kept_by_slots(chosen, keys, data, overflow, *, capacity, shape) -> Any:
    slots, count = chosen_slots(chosen, capacity=capacity, dtype=jnp.dtype(keys[0].dtype))
    is_valid = slots < chosen.shape[0]
    moved = tuple(
        jnp.where(is_valid, take(k, slots), extent).astype(k.dtype)
        for k, extent in zip(keys, shape, strict=True)
    )
    count, fits = jnp.minimum(count, capacity), count <= capacity
    return moved, take(data, slots), count, overflow | ~fits


# `search(keys, wanted)`: the first slot of each wanted key that is not before it.
search = Operation("search of keys", internal=True)
search.types = lambda keys, wanted: typed(keys[0].dtype, *wanted[0].shape)


def _not_searched_in_cpp(keys: Keys, wanted: Keys) -> str | None:
    if wanted[0].ndim != 1:
        return "its kernel needs wanted keys of one axis"
    return bind.refused_but_int32(keys, wanted)


@search.register("native", backend="cpu", refuse=_not_searched_in_cpp)
def _searched_in_cpp(keys: Keys, wanted: Keys) -> Array:
    types = typed(keys[0].dtype, *wanted[0].shape)
    return bind.call("lower_bounds", types, *keys, *wanted, axes=len(keys))


search.register("bisection")(lower_bound)


def matches(keys: Keys, count: Any, wanted: Keys) -> tuple[Array, Array]:
    """(slot, found): where each wanted key is among the first `count` of the keys."""
    slot = search(keys, wanted)
    found = slot < count
    for key, want in zip(keys, wanted, strict=True):
        found &= jnp.take(key, slot, mode="clip") == want if key.shape[0] else False
    return slot, found


def _types_of_union(keys_a, count_a, keys_b, count_b, *, capacity):
    dtype = keys_a[0].dtype
    return typed(dtype, capacity), typed(dtype, capacity), typed(dtype)


unite = Operation("union", types=_types_of_union, internal=True)
"""`unite(keys_a, count_a, keys_b, count_b, capacity=)`: of each place of the union the slot in the
one and in the other, the length of one that lacks it; and the number of places."""


@unite.register("native", backend="cpu", refuse=bind.refused_but_int32)
def _united_in_cpp(keys_a: Keys, count_a: Array, keys_b: Keys, count_b: Array, *, capacity: int):
    types = _types_of_union(keys_a, count_a, keys_b, count_b, capacity=capacity)
    return bind.call("unite", types, *keys_a, count_a, *keys_b, count_b, axes=len(keys_a))


@unite.register("ranks")
def _by_ranks(keys_a: Keys, count_a: Array, keys_b: Keys, count_b: Array, *, capacity: int):
    """A place's number is its own slot plus its rank in the other, less doubles."""
    dtype, sizes = keys_a[0].dtype, (keys_a[0].shape[0], keys_b[0].shape[0])
    own_a, own_b = (jnp.arange(size, dtype=dtype) for size in sizes)
    slot_a, hit_a = matches(keys_b, count_b, keys_a)
    slot_b, hit_b = matches(keys_a, count_a, keys_b)
    to_a = own_a + slot_a - (jnp.cumsum(hit_a, dtype=dtype) - hit_a)
    to_b = own_b + slot_b - (jnp.cumsum(hit_b, dtype=dtype) - hit_b)
    if sizes[0]:
        to_b = jnp.where(hit_b, jnp.take(to_a, slot_b, mode="clip"), to_b)

    def placed(own, count, to, size):
        at = jnp.where(own < count, to, capacity)
        return jnp.full(capacity, size, dtype).at[at].set(own, mode="drop")

    left, right = placed(own_a, count_a, to_a, sizes[0]), placed(own_b, count_b, to_b, sizes[1])
    return left, right, count_a + count_b - jnp.sum(hit_a, dtype=dtype)
