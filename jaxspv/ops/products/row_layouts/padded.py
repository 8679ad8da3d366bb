"""SpMV over padded rows, ELL and SELL: a gather and a dense reduction along the positions.

    y[i] = add_p mul(data[p, i], x[indices[p, i]])        (padding: the identity of add)

Every slot is read once, nothing says where a row begins, and neighbouring rows are neighbouring
lanes. Cost: nse slots, of which nse - count are padding.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ...._core.reductions import fold
from ..common.product import take

UNROLL = 64  # positions up to so many are folded by an unrolled chain


def ell_spmv(
    indices: Array,
    data: Array,
    x: Array,
    rows: int,
    *,
    mul: Callable[[Any, Any], Any],
    combine: Callable[[Any, Any], Any],
    identity: Any,
) -> Array:
    """indices, data: (width * rows,), position by position; x: (n,) or (n, B) -> (rows, ...)."""
    terms = _terms(indices.reshape(-1, rows), data, x, mul, identity)
    if terms.shape[0] > UNROLL:
        return fold(combine, terms, (0,), identity)
    return functools.reduce(combine, terms)  # a reduction over the first axis is slow on a CPU


def sell_spmv(
    indices: Array,
    data: Array,
    slices: tuple[Array, Array],
    x: Array,
    rows: int,
    *,
    mul: Callable[[Any, Any], Any],
    combine: Callable[[Array, Array, int], Array],
    identity: Any,
) -> Array:
    """As `ell_spmv` for slices: the slice (groups,) of each group of C slots, order (slices * C,).

    combine(terms (groups,), slice of each, slices): the addition by segments, for one lane.
    """
    slice_of, order = slices
    slots, groups = indices.shape[0], slice_of.shape[0]
    terms = _terms(indices.reshape(groups, slots // groups), data, x, mul, identity)
    lanes = terms.reshape(groups, -1)
    count = order.shape[0] * groups // slots
    combined = jax.vmap(lambda lane: combine(lane, slice_of, count), 1, 1)(lanes)
    y = jnp.full((rows, *x.shape[1:]), jnp.asarray(identity, terms.dtype))
    return y.at[order].set(combined.reshape(-1, *x.shape[1:]), mode="drop")


def _terms(index: Array, data: Array, x: Array, mul: Callable, identity: Any) -> Array:
    """(*index.shape, *batch): the product of every slot, the identity in padding."""
    n, ones = x.shape[0], (1,) * (x.ndim - 1)
    read = take(x, jnp.minimum(index, n - 1))
    value = jnp.broadcast_to(data.reshape(*index.shape, *ones), read.shape)
    term = mul(value, read)
    valid = (index < n).reshape(*index.shape, *ones)
    return jnp.where(valid, term, jnp.asarray(identity, term.dtype))
