"""Frontiers on a mesh: the edges of a set of rows on one device, and lists of few vertices.

A frontier with few edges is exchanged as a list of fixed capacity instead of a bitmap. A list never
overflows: the exchange that ends a level also sums the edges of the next frontier. If they are more
than the capacity of a list, a bitmap is sent instead. The work of a level with lists is
proportional to the lists, not to the vertices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from ...formats import CSR
from ...sharding.exchange import Local
from ...sharding.partition import Partition
from ..sssp.xla import extend
from .frontier import Edges, Queue, append, edges_of, for_edges, rows_of

MOST = 2**13  # places of a list, at most
LEAST = 32  # places of a list that is worth having
SHARE = 64  # places of a piece for each place of a list


def capacity_of(part: Partition, bytes_of_place: float = 1 / 8) -> int:
    """Places of a list, a power of two; 0: every frontier is a bitmap.

    A list of 4-byte numbers is at most half as long as a message of `bytes_of_place` for each place
    of a piece, the bit of a bitmap.
    """
    places = min(int(part.places * 8 * bytes_of_place) // SHARE, MOST)
    return 0 if places < LEAST else 1 << (places.bit_length() - 1)


def listed(local: Local, here: Array, capacity: int) -> Array:
    """(capacity,) the places where `here` (r,) is true, then r."""
    (places,) = jnp.nonzero(here, size=capacity, fill_value=local.part.places)
    return places.astype(jnp.int32)


def compacted(places: Array, keep: Array, capacity: int, sentinel: int) -> Array:
    """(capacity,) the places that `keep` selects, of which there are at most as many, then
    `sentinel`."""
    at = jnp.cumsum(keep, dtype=jnp.int32) - 1
    empty = jnp.full(capacity, sentinel, jnp.int32)
    return empty.at[jnp.where(keep, at, capacity)].set(places, mode="drop")


def followed(
    local: Local,
    places: Array,
    counts: Array | None = None,
    carried: Array | None = None,
    travel: Callable[[Array, Array], Array] | None = None,
) -> tuple[Array, Array | None]:
    """The heads of the edges of listed vertices, sent to the devices that hold them.

    Args:
        places: (capacity,) vertices of this device, r: none. The edges that leave the lists of all
            devices together are at most `capacity`.
        counts: (nse,) bool: which entries are edges; None: all.
        carried: (capacity,) a value of each listed vertex; None: none.
        travel: (carried value, entry) -> the value that is sent to the head.

    Returns:
        (k,) vertices of this device, r where there is none, and the value sent to each, or None.
    """
    part, block = local.part, local.block
    r, capacity = part.places, places.shape[0]
    rows = places
    if part.col_axes:
        gathered = lax.all_gather(places, part.col_axes)
        first = jnp.arange(gathered.shape[0], dtype=jnp.int32)[:, None] * r
        rows = jnp.where(gathered < r, first + gathered, part.block_shape[0]).reshape(-1)
        if carried is not None:
            carried = lax.all_gather(carried, part.col_axes, tiled=True)
    number = jnp.arange(rows.shape[0], dtype=jnp.int32)
    edges = edges_of(number, rows_of(block.indptr, rows), jnp.int32(0), capacity)
    valid = edges.valid
    if counts is not None:
        valid &= counts.at[edges.slot].get(mode="clip")
    col = block.indices.at[edges.slot].get(mode="clip")
    col, sent = jnp.where(valid, col, part.block_shape[1]), None
    if carried is not None and travel is not None:
        sent = travel(carried[edges.tail], block.data.at[edges.slot].get(mode="clip"))
    if not part.row_axes:
        return col, sent
    col = lax.all_gather(col, part.row_axes, tiled=True)
    sent = None if sent is None else lax.all_gather(sent, part.row_axes, tiled=True)
    place = col - lax.axis_index(part.row_axes).astype(jnp.int32) * r
    return jnp.where((place >= 0) & (place < r), place, r), sent


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
