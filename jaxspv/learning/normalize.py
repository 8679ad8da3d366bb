"""Preparing an adjacency matrix for a graph network: `normalize` and `add_self_loops`."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import jax.numpy as jnp
from jax import Array, lax

from .._core.eager.arrays import fitting
from .._core.eager.programs import one_program
from .._core.indices import with_pattern
from .._core.reductions import in_float32
from ..algebra.operators import first
from ..ops.aggregate import aggregate
from ..ops.ewise import ewise_add
from ..ops.reduce import broadcast_rows
from ..ops.structure import diag
from ..ops.write_rule.call import matrix
from ..ops.write_rule.entries import take

MODES = ("sym", "gcn", "row", "col")


def normalize(A: Any, mode: Literal["sym", "gcn", "row", "col"] = "sym") -> Any:
    """`A[i, j] / sqrt(r[i] c[j])`, r and c the sums of rows and columns; or `/ r[i]`, `/ c[j]`.

    "sym" is `D^-1/2 A D^-1/2` of a symmetric matrix, "row" the transition matrix of a random walk.
    "gcn" is `A[i, j] / sqrt(r[i] r[j])`, what graph convolutions take on directed edges too: row i
    lists what vertex i receives, and r[i] is its in-degree. Of a symmetric matrix it is "sym".

    Args:
        A: (m, n) matrix or `Graph`, values not negative; an entry may be an array. Square for
            "gcn".
        mode: "sym", "gcn", "row" or "col".

    Returns:
        A matrix of the pattern and format of A (COO for a BitTiled), of floats; 0 where a sum is 0,
        and NaN where the product of both sums is negative. Finite entries may have sums that floats
        do not hold (with one above 1e29, those below 1e-28 may count as 0 in float32); an
        infinite entry becomes NaN, and others in its sums 0 ("row", "col") or NaN. float16 and
        bfloat16 are computed in float32.

    Raises:
        ValueError: `mode` is none of these; "gcn" of a matrix that is not square.
        TypeError: A is no matrix.

    Differentiable in both modes. O(nse). Source: Kipf, Welling, "Semi-supervised classification
    with graph convolutional networks", ICLR 2017.

    >>> import jaxspv as jsp
    >>> normalize(jsp.from_dense([[1.0, 3.0], [0.0, 2.0]]), "row").data.tolist()
    [0.25, 0.75, 1.0]
    """
    if mode not in MODES:
        raise ValueError(f"`mode` must be one of {MODES}; got {mode!r}.")
    A = with_pattern(matrix("A", A))
    if mode == "gcn" and A.shape[0] != A.shape[1]:
        raise ValueError(f"`A` must be square for `mode='gcn'`; got shape {A.shape}.")
    A = A if jnp.issubdtype(A.dtype, jnp.inexact) else A.astype(jnp.result_type(float))
    return one_program(_normalized, A, mode=mode)


def _normalized(A: Any, mode: str) -> Any:
    dtype, (row, col) = A.dtype, A.rowcol()
    A = A.with_data(_with_finite_sums(in_float32(A.data), row < A.shape[0]))
    wide = jnp.promote_types(A.dtype, jnp.float32)  # sums multiplied in half precision overflow
    one = jnp.ones((), wide)
    left = one if mode == "col" else take(aggregate(A, axis=1), row).astype(wide)
    right = one if mode == "row" else take(aggregate(A, axis=int(mode == "gcn")), col).astype(wide)
    valid = broadcast_rows(row < A.shape[0], A.data) & (left != 0) & (right != 0)
    left, right = jnp.where(valid, left, 1), jnp.where(valid, right, 1)
    below = _geometric_mean(left, right) if mode in ("sym", "gcn") else left * right
    data = jnp.where(valid, A.data / below, 0).astype(dtype)
    return dataclasses.replace(A, data=data)


def _with_finite_sums(data: Array, valid: Array) -> Array:
    """The entries over a number that leaves them as they are or, if large, with finite sums."""
    size = jnp.abs(data)
    size = jnp.where(broadcast_rows(valid, data) & jnp.isfinite(size), size, 0)
    limit = jnp.finfo(data.dtype).max / 2**31  # a sum has fewer terms
    return data / lax.stop_gradient(jnp.maximum(jnp.max(size, initial=0) / limit, 1))


def _geometric_mean(a: Array, b: Array) -> Array:
    """`sqrt(a b)` where a b would overflow, or underflow to 0."""
    swap = jnp.abs(a) < jnp.abs(b)
    most, least = jnp.where(swap, b, a), jnp.where(swap, a, b)
    return jnp.abs(most) * jnp.sqrt(least / most)


def add_self_loops(A: Any, value: Any = 1) -> Any:
    """A with an entry at every diagonal place: `value` where there was none.

    Args:
        A: square matrix or `Graph`.
        value: a number, or an (n,) array.

    Returns:
        A matrix in the dtype of A, its format and capacity as of `ewise_add`.

    Raises:
        ValueError: A is not square, `value` has another shape, or the dtype of A does not hold it
            (0.5 where entries are integers).
        TypeError: A is no matrix, `value` no number.

    Differentiable in the values of A and in `value`.

    >>> import jaxspv as jsp
    >>> add_self_loops(jsp.from_dense([[5.0, 0.0], [2.0, 0.0]])).todense().tolist()
    [[5.0, 0.0], [2.0, 1.0]]
    """
    A = with_pattern(matrix("A", A))
    m, n = A.shape
    if m != n:
        raise ValueError(f"`A` must be square; got shape {A.shape}.")
    value = fitting("value", value, A.dtype)
    if value.shape not in ((), (n,)):
        raise ValueError(f"`value` must be a number or have shape ({n},); got {value.shape}.")
    return ewise_add(A, diag(jnp.broadcast_to(value, (n,))), first)
