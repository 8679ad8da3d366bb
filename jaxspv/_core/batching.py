"""Batching: mesh axes along which arrays vary, and the batch rules of forms."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.core import Tracer


def axes_of(leaves: Sequence[Any]) -> frozenset[Any]:
    """The mesh axes along which some array varies, inside of a `shard_map`."""
    found = [jax.typeof(x).manual_axis_type.varying for x in leaves if isinstance(x, Tracer)]
    return frozenset().union(*found)


def along(axes: frozenset[Any], leaves: Sequence[Any]) -> list[Any]:
    """The arrays, each varying along all of these axes."""

    def varying(x):
        more = axes - axes_of([x])
        return lax.pcast(x, tuple(sorted(more)), to="varying") if more else x

    return [varying(x) for x in leaves] if axes else list(leaves)


def alike(leaves: Sequence[Any]) -> list[Any]:
    """The arrays, inside of a `shard_map` all varying along the union of their mesh axes."""
    return along(axes_of(leaves), leaves)


def one_by_one(fn: Callable, axis_size: int, in_batched: Any, *operands: Any, **static: Any) -> Any:
    """`fn(*operands, **static)`, as a batch rule of a form: `lax.map`, a loop on the device."""
    leaves, tree = jax.tree.flatten(operands)
    marks = jax.tree.leaves(in_batched)
    lanes = [leaf if mark else None for leaf, mark in zip(leaves, marks, strict=True)]

    def one(lane):
        full = [x if own is None else own for x, own in zip(leaves, lane, strict=True)]
        return fn(*tree.unflatten(full), **static)

    return lax.map(one, lanes)


def lanes_second(axis_size: int, values: Any, marks: Any) -> list[Array]:
    """Arrays that a batch rule gets with their lanes in axis 1, repeated where not batched."""
    each = zip(values, marks, strict=True)
    lanes = [v if mark else jnp.broadcast_to(v, (axis_size, *v.shape)) for v, mark in each]
    return [jnp.moveaxis(v, 0, 1) for v in lanes]


def over_trailing(fn: Callable[[Array], Array], x: Array) -> Array:
    """`fn(x[:, k])` for every place k of the trailing axes of x: (r, ...) of (r,) results."""
    return fn(x) if x.ndim == 1 else jax.vmap(functools.partial(over_trailing, fn), 1, 1)(x)


def vmapped(fn: Callable, axis_size: int, in_batched: Any, *operands: Any, **static: Any) -> Any:
    """`fn(*operands, **static)` under JAX's own batching, as a batch rule of a form."""
    axes = jax.tree.map(lambda b: 0 if b else None, tuple(in_batched))
    return jax.vmap(functools.partial(fn, **static), axes, axis_size=axis_size)(*operands)
