"""Tangents with symbolic zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.custom_derivatives import SymbolicZero

from .batching import alike, along


def is_zero(tangent: Any) -> bool:
    """Whether every leaf of a tangent is known to be zero (or has no tangent at all)."""
    leaves = jax.tree.leaves(tangent, is_leaf=is_symbolic)
    return all(is_symbolic(x) or getattr(x, "dtype", None) == jax.dtypes.float0 for x in leaves)


def dense_tangent(tangent: Any) -> Any:
    """A tangent with its symbolic zeros made into arrays of zeros."""

    def dense(leaf):
        if not is_symbolic(leaf):
            return leaf
        if leaf.dtype == jax.dtypes.float0:
            return np.zeros(leaf.shape, leaf.dtype)
        zeros = jnp.zeros(leaf.shape, leaf.dtype)
        return along(leaf.aval.manual_axis_type.varying, [zeros])[0]  # inside of a `shard_map`

    return jax.tree.map(dense, tangent, is_leaf=is_symbolic)


def jvp_of_perturbed(
    fn: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Any, Any]:
    """`jax.jvp(fn, primals, tangents)`, differentiated only in the primals that are perturbed.

    Args:
        fn: `fn(*primals) -> result`, a pytree of floating arrays.
        primals: pytrees.
        tangents: one for each, of which any may be symbolic zeros: those cost nothing.
    """
    live = [not is_zero(t) for t in tangents]

    def of_live(*values):
        given = iter(values)
        return fn(*(next(given) if on else v for on, v in zip(live, primals, strict=True)))

    values = tuple(v for v, on in zip(primals, live, strict=True) if on)
    if not values:
        result = fn(*primals)
        return result, jax.tree.map(jnp.zeros_like, result)
    dots = tuple(dense_tangent(t) for t, on in zip(tangents, live, strict=True) if on)
    return jax.jvp(of_live, values, dots)


def first_valid(valid: Array) -> Array:
    """(nse,) the slot itself where it is valid, else the first that is (any, if none is).

    What a function of values and parameters is evaluated at in padding: its derivative by the
    parameters is then one that occurs. At a constant it may be infinite, and times a cotangent of 0
    a NaN.
    """
    slot = jnp.arange(valid.shape[0], dtype=jnp.int32)
    return jnp.where(valid, slot, jnp.argmax(valid).astype(slot.dtype)) if slot.size else slot


def symbolic_zero(value: Any) -> SymbolicZero:
    """The tangent of an array that is known to be zero."""
    return SymbolicZero(jax.typeof(value).to_tangent_aval())


def is_symbolic(leaf: Any) -> bool:
    """Whether a leaf of a tangent is JAX's symbolic zero."""
    return isinstance(leaf, SymbolicZero)


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
        dots = [symbolic_zero(x) if t is None else t for x, t in zip(leaves, live, strict=True)]
        return dense_tangent(tangent(at, tree.unflatten(dots), result))

    live = [x if u else None for x, u in zip(leaves, unknown, strict=True)]
    return tree.unflatten(jax.linear_transpose(of, live)(cotangent)[0])
