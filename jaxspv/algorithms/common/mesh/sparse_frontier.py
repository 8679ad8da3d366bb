"""Frontiers with few edges: devices exchange lists of fixed capacity instead of whole bitmaps.

A list never overflows: the exchange that ends a level also sums the edges of the next frontier. If
they are more than the capacity of a list, a bitmap is sent instead. The work of a level with lists
is proportional to the lists, not to the vertices.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

from ....ops.products.common.expand import SelectedRows
from ....sharding.exchange import Local
from ....sharding.partition import Partition
from ..frontier import edges_of

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
    edges = edges_of(number, _rows(block.indptr, rows), jnp.int32(0), capacity)
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


def _rows(indptr: Array, rows: Array) -> SelectedRows:
    """These rows, in any order; out of range: empty."""
    start = indptr.at[rows].get(mode="clip")
    length = jnp.where(rows < indptr.shape[0] - 1, indptr.at[rows + 1].get(mode="clip") - start, 0)
    ends = jnp.cumsum(length, dtype=jnp.int32)
    return SelectedRows(start, ends, ends[-1])
