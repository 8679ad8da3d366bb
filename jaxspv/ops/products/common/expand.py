"""Expansion: listing the entries of the rows that a sparse vector selects, whole or in chunks."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

LAST = np.int32(np.iinfo(np.int32).max)  # no edge has this number


class SelectedRows(NamedTuple):
    """The selected rows of a compressed matrix, in the order of the vector's entries.

    Attributes:
        start: (k,) first slot of each selected row.
        ends: (k,) inclusive prefix sum of the lengths: row r covers edges ends[r-1] <= e < ends[r].
        total: number of edges, `ends[-1]`.
    """

    start: Array
    ends: Array
    total: Array


def select_rows(indptr: Array, indices: Array, valid: Array) -> SelectedRows:
    """The rows named by those of `indices` that are `valid`; the others count as empty."""
    start = indptr.at[indices].get(mode="clip")
    length = jnp.where(valid, indptr.at[indices + 1].get(mode="clip") - start, 0)
    ends = jnp.cumsum(length, dtype=jnp.int32)
    return SelectedRows(start, ends, ends[-1] if indices.shape[0] else jnp.int32(0))


class Runs(NamedTuple):
    """The non-empty selected rows of a compressed matrix, their edges numbered through all of them.

    Attributes:
        place: (k,) the vector's entry that selected the row; arbitrary from `count` on.
        shift: (k,) slot in the matrix minus number of the edge.
        ends: (k,) int32, strictly ascending, run r covers edges ends[r-1] <= e < ends[r]; int32's
            maximum from `count` on.
        count: number of runs.
        total: number of edges.
    """

    place: Array
    shift: Array
    ends: Array
    count: Array
    total: Array


def select_runs(indptr: Array, indices: Array, count: Array) -> Runs:
    """The runs of the rows named by the first `count` of `indices`. O(k)."""
    k = indices.shape[0]
    rows = select_rows(indptr, indices, jnp.arange(k, dtype=jnp.int32) < count)
    before = jnp.concatenate([jnp.zeros(min(k, 1), jnp.int32), rows.ends[:-1]])
    keep = rows.ends > before
    runs = jnp.cumsum(keep, dtype=jnp.int32)
    at = jnp.where(keep, runs - 1, k + jnp.arange(k, dtype=jnp.int32))

    def compact(values, fill):
        return jnp.full(k, fill, jnp.int32).at[at].set(values, mode="drop", unique_indices=True)

    return Runs(
        compact(jnp.arange(k, dtype=jnp.int32), 0),
        compact(rows.start - before, 0),
        compact(rows.ends, LAST),
        runs[-1] if k else jnp.int32(0),
        rows.total,
    )


def edge_slots(runs: Runs, first: Array, size: int) -> tuple[Array, Array, Array]:
    """For edges number `first` to `first + size`: (slot in the matrix, place in the vector, valid).

    O(size + log k).
    """
    number = first + jnp.arange(size, dtype=jnp.int32)
    run = jnp.minimum(run_of_each(runs.ends, first, size), runs.ends.shape[0] - 1)
    return number + runs.shift[run], runs.place[run], number < runs.total


def run_of_each(ends: Array, first: Array, size: int) -> Array:
    """(size,) how many of the strictly ascending `ends` are <= number, from number `first` on.

    The ends inside this window mark their place, a prefix sum counts the marks: O(size), where a
    binary search of each number takes O(log k) gathers.
    """
    before = jnp.searchsorted(ends, first, side="right", method="scan_unrolled").astype(jnp.int32)
    window = before + jnp.arange(min(ends.shape[0], size), dtype=jnp.int32)
    behind = ends.at[window].get(mode="fill", fill_value=LAST) - first
    dropped = size + jnp.arange(behind.shape[0], dtype=jnp.int32)  # distinct
    mark = jnp.where(behind < size, behind, dropped)
    marks = jnp.zeros(size, jnp.int32).at[mark].set(1, mode="drop", unique_indices=True)
    return before + jnp.cumsum(marks, dtype=jnp.int32)


def capacities(limit: int) -> tuple[int, ...]:
    """Ascending static capacities for a switch: 2^10, 2^13, ..., then `limit` itself."""
    sizes, size = [], 1024
    while size < limit:
        sizes.append(size)
        size *= 8
    return (*sizes, max(limit, 1))
