"""Grouping of a matrix's entries into square tiles: what the tiled formats share."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

SIZES = (16, 32, 64)  # edges of a tile that the formats know


class Groups(NamedTuple):
    """The entries of a matrix in order of their tiles.

    Attributes:
        order: (nse,) which slot of the source comes here; padding last.
        row, col: (nse,) in the new order.
        tile: (nse,) number of the tile of each entry, nse in padding.
        first: (nse + 1,) first entry of each tile; the number of entries from the last tile on.
        count: tiles in use.
    """

    order: Array
    row: Array
    col: Array
    tile: Array
    first: Array
    count: Array


def check_size(nt: int) -> int:
    """`nt`, if it is one of `SIZES`.

    Raises:
        ValueError: it is none.
    """
    if nt not in SIZES:
        raise ValueError(f"`nt` must be one of {SIZES}; got {nt!r}.")
    return nt


def grid(shape: tuple[int, int], nt: int) -> tuple[int, int]:
    """How many tiles a matrix is high and wide."""
    return -(-shape[0] // nt), -(-shape[1] // nt)


def group(row: Array, col: Array, shape: tuple[int, int], nt: int) -> Groups:
    """Sorts entries by tile row, then tile column, stably; `row` is m in padding. Traceable.

    One sort of 32-bit keys where the tiles can be numbered so, else two.
    """
    m, nse = shape[0], row.shape[0]
    order = _tile_order(row, col, shape, nt)
    row, col = row[order], col[order]
    valid, down, across = row < m, row // nt, col // nt
    fresh = jnp.append(True, (down[1:] != down[:-1]) | (across[1:] != across[:-1]))
    starts = valid & fresh[:nse]
    tile = jnp.where(valid, jnp.cumsum(starts, dtype=jnp.int32) - 1, nse)
    entries = jnp.sum(valid, dtype=jnp.int32)
    first = jnp.full(nse + 1, entries, jnp.int32)
    first = first.at[jnp.where(starts, tile, nse + 1)].set(
        jnp.arange(nse, dtype=jnp.int32), mode="drop"
    )
    return Groups(order, row, col, tile, first, jnp.sum(starts, dtype=jnp.int32))


def _tile_order(row: Array, col: Array, shape: tuple[int, int], nt: int) -> Array:
    down, across = grid(shape, nt)
    slots, valid = jnp.arange(row.shape[0], dtype=jnp.int32), row < shape[0]
    if down * across < 2**32 - 1:
        key = (row // nt).astype(jnp.uint32) * jnp.uint32(across) + (col // nt).astype(jnp.uint32)
        key = jnp.where(valid, key, jnp.uint32(2**32 - 1))
        return lax.sort((key, slots), num_keys=1, is_stable=True)[1]
    order = lax.sort((col // nt, slots), num_keys=1, is_stable=True)[1]
    key = jnp.where(valid, row // nt, down)[order]
    return lax.sort((key, order), num_keys=1, is_stable=True)[1]


def sizes(groups: Groups) -> Array:
    """(nse,) entries of each tile; 0 past the last one."""
    return jnp.diff(groups.first)


def offsets(major: Array, used: Array, extent: int) -> Array:
    """(extent + 1,) running count of `major` where `used`: the pointer of a compressed axis."""
    ends = jnp.zeros(extent + 1, jnp.int32)
    ends = ends.at[jnp.where(used, major + 1, extent + 1)].add(1, mode="drop")
    return jnp.cumsum(ends, dtype=jnp.int32)
