"""Products of matrix entries with a vector's, and the tangent of joining them by a monoid."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..dispatch import dense_tangent, is_zero
from ..monoids import Monoid, plus
from ..semirings import Semiring


def product(
    semiring: Semiring, data: Array, out: Array, inner: Array, x: Array, *, flip: bool
) -> Array:
    """`mul(data, x)` of entries at (out, inner) with the vector's value at `inner`.

    `flip`: the vector is the first operand (vxm), the matrix the second.
    """
    if flip:
        return semiring.mul.at(x, data, 0, inner, out)
    return semiring.mul.at(data, x, out, inner, 0)


def positions_as(semiring: Any, dtype: Any) -> Any:
    """The semiring whose positional operator gives indices of `dtype`."""
    mul = getattr(semiring, "mul", None)
    if mul is None or mul.position is None or mul.index_dtype == dtype:
        return semiring
    return dataclasses.replace(semiring, mul=dataclasses.replace(mul, index_dtype=str(dtype)))


def take(x: Array, index: Array) -> Array:
    """`x[index]`; an index past the end reads the last element (the caller masks it)."""
    if x.shape[0] == 0:
        return jnp.zeros(index.shape, x.dtype)
    return jnp.take(x, index, axis=0, mode="clip")


def safe(data: Array, valid: Array, fill: int = 0) -> Array:
    """`data` with `fill` in padding: nothing stored there reaches a product or its derivative.

    1 where derivatives follow: x / 0 has none, and masking one that is infinite leaves a NaN.
    """
    return jnp.where(valid, data, jnp.asarray(fill, data.dtype))


def product_tangent(semiring, semiring_dot, data, data_dot, out, inner, x, x_dot, *, flip):
    """(terms, tangent of terms), element-wise; a tangent that is known to be zero costs nothing."""
    live = [not is_zero(t) for t in (semiring_dot, data_dot, x_dot)]
    primals = [v for v, on in zip((semiring, data, x), live, strict=True) if on]
    tangents = [
        dense_tangent(t) for t, on in zip((semiring_dot, data_dot, x_dot), live, strict=True) if on
    ]

    def terms(*moving):
        parts = iter(moving)
        s, d, v = (
            next(parts) if on else still
            for on, still in zip(live, (semiring, data, x), strict=True)
        )
        return product(s, d, out, inner, v, flip=flip)

    if not primals:
        t = terms()
        return t, jnp.zeros_like(t)
    return jax.jvp(terms, tuple(primals), tuple(tangents))


def reduce_tangent(
    add: Monoid, add_dot: Any, terms: Array, terms_dot: Array, segments: Array, y: Array
) -> Array:
    """The tangent of `y = add.segment_reduce(terms, segments, len(y))`.

    (+): the sum of tangents. min, max, any: the tangent of the winning term, the first slot at
    ties. logaddexp: softmax weights. Any other monoid: through the derivative of its own operator
    along a segmented scan, exact where a product has zeros. All of it transposes.
    """
    count = y.shape[0]
    inside = (segments >= 0) & (segments < count)
    if add.kind == "add":
        return add.segment_reduce(terms_dot, segments, count)
    if add.kind in ("min", "max", "any"):
        return take_or_zero(terms_dot, winners(add, terms, segments, y))
    if add.kind == "logaddexp":
        peak = take(y, segments)
        level = jnp.where(terms == peak, 0, terms - peak)
        weight = jnp.exp(jnp.where(inside & (terms > -jnp.inf), level, -jnp.inf))
        return plus.segment_reduce(weight * terms_dot, segments, count)

    def scan(monoid, values):
        return monoid.segment_scan(values, segments, count)

    if is_zero(add_dot):
        return jax.jvp(lambda values: scan(add, values), (terms,), (terms_dot,))[1]
    return jax.jvp(scan, (add, terms), (dense_tangent(add_dot), terms_dot))[1]


def winners(add: Monoid, terms: Array, segments: Array, y: Array) -> Array:
    """The first slot whose term is the result of its segment; `len(terms)` where there is none."""
    count, nse = y.shape[0], terms.shape[0]
    slot = jnp.arange(nse, dtype=jnp.int32)
    hit = (segments >= 0) & (segments < count)
    if add.kind != "any":
        hit &= terms == take(y, segments)
    first = jnp.full(count, nse, jnp.int32)
    return first.at[jnp.where(hit, segments, count)].min(slot, mode="drop")


def take_or_zero(values: Array, index: Array) -> Array:
    """`values[index]`, 0 where the index is past the end; its transpose is a scatter-add."""
    return values.at[index].get(mode="fill", fill_value=0)
