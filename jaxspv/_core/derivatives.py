"""Tangents with symbolic zeros."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.custom_derivatives import SymbolicZero, zero_from_primal

from .loops import alike, along


def is_zero(tangent: Any) -> bool:
    """Whether every leaf of a tangent is known to be zero (or has no tangent at all)."""
    float0, leaves = jax.dtypes.float0, jax.tree.leaves(tangent)
    return all(isinstance(x, SymbolicZero) or getattr(x, "dtype", None) == float0 for x in leaves)


def dense_tangent(tangent: Any) -> Any:
    """A tangent with its symbolic zeros made into arrays of zeros."""

    def dense(leaf):
        if not isinstance(leaf, SymbolicZero):
            return leaf
        kind: Any = leaf.aval
        if kind.dtype == jax.dtypes.float0:
            return np.zeros(kind.shape, kind.dtype)
        zeros = jnp.zeros(kind.shape, kind.dtype)
        return along(kind.manual_axis_type.varying, [zeros])[0]  # inside of a `shard_map`

    return jax.tree.map(dense, tangent)


def jvp_of_perturbed(
    fn: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Any, Any]:
    """`jax.jvp(fn, primals, tangents)`, differentiated only in the primals that are perturbed.

    Args:
        fn: `fn(*primals) -> result`, a pytree of floating arrays.
        primals: pytrees.
        tangents: one for each, of which any may be symbolic zeros: those cost nothing.
    """
    dots = [None if is_zero(t) else dense_tangent(t) for t in tangents]
    live = [None if t is None else v for v, t in zip(primals, dots, strict=True)]

    def of_live(live):
        return fn(*(v if own is None else own for v, own in zip(primals, live, strict=True)))

    return jax.jvp(of_live, (live,), (dots,))


def first_valid(valid: Array) -> Array:
    """(nse,) the slot itself where it is valid, else the first that is (any, if none is).

    What a function of values and parameters is evaluated at in padding: its derivative by the
    parameters is then one that occurs. At a constant it may be infinite, and times a cotangent of 0
    a NaN.
    """
    slot = jnp.arange(valid.shape[0], dtype=jnp.int32)
    return jnp.where(valid, slot, jnp.argmax(valid).astype(slot.dtype)) if slot.size else slot


def with_zeros(primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """The tangents of arrays; symbolic zeros where they are None."""
    each = zip(primals, tangents, strict=True)
    return [zero_from_primal(x, symbolic_zeros=True) if t is None else t for x, t in each]


def is_inexact(value: Any) -> bool:
    """Whether a value has tangents."""
    return jnp.issubdtype(value.dtype, jnp.inexact)


def transpose_of_tangent(tangent: Callable[..., Any], cotangent: Any, operands: Any) -> Any:
    """Cotangents of the leaves of `operands` that are types, of a map linear in them; else None."""
    leaves, tree = jax.tree.flatten(operands)
    unknown = [isinstance(x, jax.ShapeDtypeStruct) for x in leaves]
    zeros = [jnp.zeros(x.shape, x.dtype) if u else x for x, u in zip(leaves, unknown, strict=True)]
    leaves = alike([*zeros, *jax.tree.leaves(cotangent)])[: len(zeros)]  # as they were bound
    at, result = tree.unflatten(leaves), jax.tree.map(jnp.zeros_like, cotangent)

    def of(live):
        return dense_tangent(tangent(at, tree.unflatten(with_zeros(leaves, live)), result))

    live = [x if u else None for x, u in zip(leaves, unknown, strict=True)]
    return tree.unflatten(jax.linear_transpose(of, live)(cotangent)[0])


@jax.custom_jvp
def copied(known: Array, copies: Any, values: Array, slots: Array | None) -> Array:
    """`known`, which equals `values[slots]` (None: `values`) and has its tangent. Raises TypeError:
    when it is differentiated by `copies`, other arrays made from the same values."""
    return known


@functools.partial(copied.defjvp, symbolic_zeros=True)
def _copied_jvp(primals, tangents):
    slots = primals[3]
    if not is_zero(tangents[1]):
        raise TypeError(
            "a prepared Graph repeats its values in its layouts, and is differentiated by `G.data` "
            "alone: `jax.grad(lambda d: f(G.with_data(d)))(G.data)`, or `jsp.grad(f)(G)`, whose "
            "result has a gradient of `data` and nothing else. New values are put in by "
            "`G.with_data(d)`."
        )
    dot = dense_tangent(tangents[2])
    return copied(*primals), dot if slots is None else dot[slots]
