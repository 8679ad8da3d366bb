"""Linear maps between arrays of any shape, with a transpose of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from ..frame.transposable import with_transpose

Arrays = Sequence[Array]


def linear_map(
    definition: Callable[[Arrays], Arrays],
    forward: Callable[[Arrays], Arrays],
    transposed: Callable[[Arrays], Arrays],
    tangents: Arrays,
    results: Sequence[Any],
    residuals: Arrays,
) -> list[Array]:
    """`L(tangents)` as `frame.transposable.with_transpose` has it, of several arrays each way.

    Args:
        definition, forward, transposed: as there; of arrays in the shapes of the tangents, and
            `transposed` of arrays in the shapes of the results, in the dtype it is computed in.
        tangents: floats.
        results: shapes and dtypes of the results.
        residuals: floats that the three functions hold and that may be differentiated next.
    """
    dtype = jnp.result_type(jnp.float32, *(t.dtype for t in tangents))

    def flat(arrays: Arrays) -> Array:
        return jnp.concatenate([a.astype(dtype).ravel() for a in arrays])

    def shaped(parts: Arrays) -> list[Array]:
        return [p.reshape(t.shape).astype(t.dtype) for p, t in zip(parts, tangents, strict=True)]

    def split(y: Array) -> list[Array]:
        sizes = [math.prod(r.shape) for r in results]
        ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
        parts = jnp.split(y, ends[:-1])
        return [p.reshape(r.shape) for p, r in zip(parts, results, strict=True)]

    y = with_transpose(
        lambda parts: flat(definition(shaped(parts))),
        lambda parts: flat(forward(shaped(parts))),
        lambda w: tuple(s.astype(dtype).ravel() for s in transposed(split(w))),
        tuple(t.astype(dtype).ravel() for t in tangents),
        sum(math.prod(r.shape) for r in results),
        tuple(r.astype(dtype).ravel() for r in residuals),
    )
    return [p.astype(r.dtype) for p, r in zip(split(y), results, strict=True)]
