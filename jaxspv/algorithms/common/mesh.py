"""Frontiers on a mesh: the edges of a set of rows on one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from ...formats import CSR
from ..sssp.xla import extend
from .frontier import Edges, Queue, append, for_edges

VERTICES, EDGES = 2**14, 2**16  # the most of one chunk
MOST_LONGER = 16  # the most times that a chunk may be longer with `low_memory`
MANY = 8  # if more than one of so many entries is in the rows, all entries are visited in order


def reached_by(block: CSR, rows: Array, counts: Array | None = None) -> Array:
    """(columns,) bool: where an entry of the rows (bool) lies, of those that count (all)."""
    extent = block.shape[1]

    def mark(reached, edges: Edges):
        valid = edges.valid
        if counts is not None:
            valid &= counts.at[edges.slot].get(mode="clip")
        v = block.indices.at[edges.slot].get(mode="clip")
        return reached.at[jnp.where(valid, v, extent)].set(True, mode="drop")

    return over_rows(block, rows, jnp.zeros(extent, bool), mark)


def pulled_by(block: CSR, rows: Array, sought: Array) -> Array:
    """(rows,) bool: which of the rows (bool) have an entry in a column that is sought (bool)."""
    extent = block.shape[0]

    def mark(found, edges: Edges):
        v = block.indices.at[edges.slot].get(mode="clip")
        hit = edges.valid & sought.at[v].get(mode="fill", fill_value=False)
        return found.at[jnp.where(hit, edges.tail, extent)].set(True, mode="drop")

    return over_rows(block, rows, jnp.zeros(extent, bool), mark)


def relaxed(block: CSR, lengths: Array, top: Array, low_memory: bool = False) -> Array:
    """(columns,) least `lengths[row] + value` over the entries of the rows below `top`.

    low_memory: process the entries in chunks.
    """
    extent = block.shape[1]

    def relax(best, edges: Edges):
        v = block.indices.at[edges.slot].get(mode="clip")
        value = extend(lengths[edges.tail], block.data.at[edges.slot].get(mode="clip"))
        return best.at[jnp.where(edges.valid, v, extent)].min(value, mode="drop")

    return over_rows(block, lengths < top, jnp.full(extent, top), relax, low_memory)


def over_rows(
    block: CSR,
    rows: Array,
    carry: Any,
    visit: Callable[[Any, Edges], Any],
    low_memory: bool = False,
) -> Any:
    """`visit` over the entries of the rows in chunks, or vectorised over all where they are many.

    Cost: O(rows + entries of the rows), or O(nse) with some 16 bytes of memory an entry.
    low_memory: always in chunks, and longer ones.
    """
    m, nse = block.shape[0], block.nse

    def vectorised(carry):
        row, _ = block.rowcol()
        is_valid = rows.at[row].get(mode="fill", fill_value=False)
        slot = jnp.arange(nse, dtype=jnp.int32)
        return visit(carry, Edges(slot, jnp.minimum(row, m - 1), is_valid))

    if nse <= EDGES:  # nothing to save
        return vectorised(carry)
    degrees = jnp.diff(block.indptr)
    longer = max(min(nse // (32 * EDGES), MOST_LONGER), 1) if low_memory else 1
    entries = jnp.sum(jnp.where(rows, degrees, 0).astype(jnp.float32))

    def in_chunks(carry):
        empty = Queue(jnp.zeros(m, jnp.int32), jnp.int32(0), jnp.int32(0))
        queue = append(empty, jnp.arange(m, dtype=jnp.int32), rows & (degrees > 0))
        many, size = VERTICES * longer, EDGES * longer
        return for_edges(block.indptr, nse, queue, carry, visit, together=(many, size))

    if low_memory:
        return in_chunks(carry)
    return lax.cond(entries * MANY > nse, vectorised, in_chunks, carry)
