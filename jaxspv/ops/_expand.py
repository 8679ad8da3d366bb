"""Expansion: the list of entries in the rows that a sparse vector selects, in chunks or whole."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array


class Rows(NamedTuple):
    """The selected rows of a compressed matrix, in the order of the vector's entries.

    Attributes:
        start: (k,) first slot of each selected row.
        ends: (k,) inclusive prefix sum of the lengths: row r covers edges ends[r-1] <= e < ends[r].
        total: number of edges, `ends[-1]`.
    """

    start: Array
    ends: Array
    total: Array


def select_rows(indptr: Array, indices: Array, count: Array) -> Rows:
    """The rows named by the first `count` of `indices`; the others count as empty."""
    k = indices.shape[0]
    if k == 0:
        empty = jnp.zeros(0, jnp.int32)
        return Rows(empty, empty, jnp.int32(0))
    valid = jnp.arange(k, dtype=jnp.int32) < count
    last = indptr.shape[0] - 2
    row = jnp.clip(indices, 0, max(last, 0))
    start = jnp.where(valid, indptr[row], 0)
    length = jnp.where(valid, indptr[row + 1] - start, 0) if last >= 0 else jnp.zeros_like(start)
    ends = jnp.cumsum(length, dtype=jnp.int32)
    return Rows(start, ends, ends[-1])


def edge_slots(rows: Rows, edges: Array) -> tuple[Array, Array, Array]:
    """For edge numbers: (slot in the matrix, owner's place in the vector, valid).

    The owner is found by binary search in `ends`: O(log k) gathers an edge.
    """
    owner = jnp.searchsorted(rows.ends, edges, side="right", method="scan").astype(jnp.int32)
    owner = jnp.minimum(owner, rows.ends.shape[0] - 1)
    before = jnp.where(owner > 0, rows.ends[jnp.maximum(owner - 1, 0)], 0)
    slot = rows.start[owner] + edges - before
    return slot, owner, edges < rows.total


def capacities(limit: int) -> tuple[int, ...]:
    """Ascending static capacities for a switch: 2^10, 2^13, ..., then `limit` itself."""
    sizes, size = [], 1024
    while size < limit:
        sizes.append(size)
        size *= 8
    return (*sizes, max(limit, 1))
