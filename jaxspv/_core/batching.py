"""Loops and batching: conditions that compute, reduced predicates, `lax.map`, JAX's own vmap."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import custom_vmap


def _joined(join: Callable[..., Array]) -> Callable[[Array], Array]:
    """The identity; under vmap its result is `join` of all lanes, unbatched."""
    identity = custom_vmap(lambda value: value)
    identity.def_vmap(lambda size, in_batched, value: (identity(join(value, axis=0)), False))
    return identity


# A `while_loop` on `batch_any` of a flag runs until every lane is done, without a select of its
# whole state: the body must leave a finished lane as it is.
batch_any = _joined(jnp.any)

# A `switch` on `batch_max` of an index picks one capacity that serves every lane, where a batched
# index would turn into running all of its branches.
batch_max = _joined(jnp.max)


def while_going(
    body: Callable[[Any], Any], state: tuple[Any, ...], *, together: bool = False
) -> tuple[Any, ...]:
    """`lax.while_loop` of `body` for as long as the last element of the state, a bool, is True.

    In the loop it is an integer that the condition compares. A condition that computes nothing,
    `lambda s: s[1]`, is a trap on NVIDIA GPUs: in a command buffer XLA (read up to version 0.11.2
    of jaxlib) orders a loop after the kernels of its condition only, so that one without any
    starts before the state is written, and its results are wrong.

    Args:
        together: under vmap until every lane is done, as `batch_any` says.
    """

    def going(c):
        return batch_any(c[-1] > 0) if together else c[-1] > 0

    def counted(state):
        *rest, flag = state
        return (*rest, flag.astype(jnp.int32))

    end = lax.while_loop(going, lambda c: counted(body((*c[:-1], c[-1] > 0))), counted(state))
    return (*end[:-1], end[-1] > 0)


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
