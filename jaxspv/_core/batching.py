"""Batching: mesh axes along which arrays vary, and the batch rules of forms."""

import math
from collections.abc import Callable, Iterator, Sequence
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
    if not axes:
        return list(leaves)
    more = [axes - axes_of([x]) for x in leaves]
    return [
        lax.pcast(x, tuple(sorted(new)), to="varying") if new else x
        for x, new in zip(leaves, more, strict=True)
    ]


def alike(leaves: Sequence[Any]) -> list[Any]:
    """The arrays, inside of a `shard_map` all varying along the union of their mesh axes."""
    return along(axes_of(leaves), leaves)


def one_by_one(fn: Callable[..., Any], axis_size: int, in_batched: Any, *operands: Any) -> Any:
    """Fallback batching rule: `lax.map` over the batched operands, a loop on the device.

    Args:
        axis_size, in_batched, operands: as `custom_vmap` hands them to a rule; `in_batched` may
            be longer than `operands`.
    """
    leaves, tree = jax.tree.flatten(operands)
    marks = jax.tree.leaves(tuple(in_batched)[: len(operands)])
    batched = [leaf for leaf, mark in zip(leaves, marks, strict=True) if mark]

    def one(lane):
        lane = iter(lane)
        full = [next(lane) if mark else leaf for leaf, mark in zip(leaves, marks, strict=True)]
        return fn(*jax.tree.unflatten(tree, full))

    assert batched and batched[0].shape[0] == axis_size
    return lax.map(one, batched)


def lanes_second(axis_size: int, values: Any, marks: Any) -> Iterator[Array]:
    """Arrays that a batch rule gets with their lanes in axis 1, repeated where not batched."""
    for v, batched in zip(values, marks, strict=True):
        yield (
            jnp.moveaxis(v, 0, 1)
            if batched
            else jnp.broadcast_to(v[:, None], (len(v), axis_size, *v.shape[1:]))
        )


def over_trailing(fn: Callable[[Array], Array], x: Array) -> Array:
    """`fn(x[:, k])` for every place k of the trailing axes of x: (r, ...) of (r,) results."""
    if x.ndim == 1:
        return fn(x)
    flat = x.reshape(x.shape[0], math.prod(x.shape[1:]))
    y = jax.vmap(fn, in_axes=1, out_axes=1)(flat)
    return y.reshape(y.shape[0], *x.shape[1:])


def vmapped(fn: Callable[..., Any], axis_size: int, in_batched: Any, *operands: Any) -> Any:
    """`fn` under JAX's own batching, as a batch rule; arguments as for `one_by_one`."""
    axes = jax.tree.map(lambda b: 0 if b else None, tuple(in_batched)[: len(operands)])
    return jax.vmap(fn, in_axes=axes, axis_size=axis_size)(*operands)
