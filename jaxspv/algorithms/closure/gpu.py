"""Sums by levels on NVIDIA GPUs: when the kernel serves, and how it is called."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pallas_kernels.levels import LIMIT, Plan, sums_by_levels
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring, refuse, trace

from ..._core.loops import lanes_second, one_by_one
from .levels import Known, sums
from .pieces import Pieces

MOST_EDGES = 1 << 12  # of a vertex: some lanes of a warp take them


def _refuse(semiring: Any, values: Any, x0: Any, pieces: Pieces, where: Any, *, known: Known):
    if jax.tree.leaves(semiring):
        return "the semiring has parameters"
    arrays = jax.tree.leaves((values, x0))
    if semiring.add.of_tuples or [v.ndim for v in arrays] != [1, 1]:
        return "its values are no numbers"
    if any(v.dtype != np.float32 for v in arrays):
        return "it takes float32"
    if pieces.segment is not None or not pieces.slot.size:
        return "the edges of a vertex are in no rows"
    if pieces.slot.size >= LIMIT or max(v.size for v in arrays) >= LIMIT:
        return "it counts places in int32"
    if sum(count for count, _ in _rows(pieces, known)) > MOST_EDGES:
        return f"a vertex has more than {MOST_EDGES} edges"
    if semiring.add.takes_first:
        return "it meets terms in any order"
    functions = {"mul": _mul(semiring)}
    functions |= {} if semiring.add.sums_exponentials else {"add": semiring.add.op}
    for name, fn in functions.items():
        if reason := refuse(fn, "float32", "float32"):
            return f"`{name}`: {reason}"
    return None


def _mul(semiring):
    return lambda x, a: jnp.asarray(semiring.mul(x, a), jnp.float32)


def _rows(pieces, known):
    """Groups of (rows, places of each) of a piece."""
    return known.rows or ((pieces.slot.shape[1], known.width),)


def launched(semiring: Any, values: Array, x0: Array, pieces: Pieces, *, known: Known) -> Array:
    """The sums of several batches, values (slots, batches) and x0 (n, batches), in one launch."""
    add, width = semiring.add, known.width
    zero = float(add.identity_of(x0.dtype)[()])
    vertex = pieces.vertex.reshape(-1)
    x = x0.at[vertex].get(mode="fill", fill_value=zero)  # n stands for no vertex
    count = pieces.slot.shape[0]
    if pieces.first is None:
        before = jnp.arange(count, dtype=jnp.int32) * width
        first = before + width
    else:
        before, first = None, pieces.first
    slot = pieces.slot.reshape(-1) if known.run is None else known.run
    plan = Plan(slot, pieces.source, first, before, _rows(pieces, known))
    f32 = jnp.float32
    scalars = ScalarSemiring(trace(_mul(semiring), f32, f32), trace(add.op, f32, f32), zero)
    x, status = sums_by_levels(x, values, plan, semiring=scalars, log_sum=add.sums_exponentials)
    return jnp.where(status == 0, x.at[pieces.place].get(mode="clip"), jnp.nan)


def _in_lanes(size, in_batched, semiring, values, x0, pieces, where, *, known):
    if size * max(pieces.vertex.size, pieces.slot[0].size, values.shape[-1]) >= LIMIT:
        operands = semiring, values, x0, pieces, where
        return one_by_one(_one, size, in_batched, *operands, known=known)
    marks = in_batched[1], in_batched[2]
    values, x0 = lanes_second(size, (values, x0), marks)
    return launched(semiring, values, x0, pieces, known=known).T


@sums.register("one launch", backend="pallas", refuse=_refuse, batched=_in_lanes)
def _one(semiring, values, x0, pieces, where, *, known):
    del where
    return launched(semiring, values[:, None], x0[:, None], pieces, known=known)[:, 0]
