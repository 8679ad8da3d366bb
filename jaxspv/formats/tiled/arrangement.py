"""Entries in square tiles: by sorts for every format, by kernels for the words of a `BitTiled`."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.compat import kernels_refused
from ..._core.eager.arrays import is_eager, on_gpu
from ..csr import CSR

_WORDS = 2**31  # words that int32 cannot count


def served(A: CSR) -> bool:
    """Whether the kernels can list the tiles of A: concrete on a GPU, sorted, no place twice."""
    right = A.sorted and A.unique and 0 not in (A.nse, A.shape[0]) and A.indices.dtype == np.int32
    return is_eager(A) and on_gpu(A) and kernels_refused() is None and right


def row_words(A: CSR, nt: int, limit: int, interpret: bool = False) -> tuple[Any, ...] | None:
    """The fields of `Words` of the rows of A; None where no tile is kept, or too many for int32.

    Tiles of at most `limit` entries go to the remainder.
    """
    from pallas_kernels.layouts.tile_bitmasks import Tiling

    tiling = Tiling(nt, A.shape[1], limit, interpret)
    tile_ptr, rest_ptr, ends = _pointers(A.indptr, A.indices, tiling=tiling)
    tiles, rest = (int(v) for v in np.asarray(jax.block_until_ready(ends)))
    each = max(nt // 32, 1)
    if tiles == 0 or tiles * nt * each >= _WORDS:
        return None
    operands = (A.indptr, A.indices, tile_ptr, rest_ptr)
    minor, words, rest_minor = _fill(*operands, tiling=tiling, tiles=tiles, rest=rest)
    return tile_ptr, minor, words.reshape(tiles, nt, each), rest_ptr, rest_minor


@functools.partial(jax.jit, static_argnames="tiling")
def _pointers(indptr: Array, indices: Array, *, tiling: Any) -> tuple[Array, Array, Array]:
    from pallas_kernels.layouts.tile_bitmasks import count_tiles

    tiles, moved = count_tiles(indptr, indices, tiling=tiling)
    zero = jnp.zeros(1, jnp.int32)
    tile_ptr, rest_ptr = (
        jnp.concatenate([zero, jnp.cumsum(v, dtype=jnp.int32)]) for v in (tiles, moved)
    )
    return tile_ptr, rest_ptr, jnp.stack([tile_ptr[-1], rest_ptr[-1]])


@functools.partial(jax.jit, static_argnames=("tiling", "tiles", "rest"))
def _fill(*operands: Array, tiling: Any, tiles: int, rest: int) -> tuple[Array, Array, Array]:
    from pallas_kernels.layouts.tile_bitmasks import fill_tiles

    return fill_tiles(*operands, tiling=tiling, tiles=tiles, rest=rest)


SIZES = (16, 32, 64)  # edges of a tile that the formats know


class Groups(NamedTuple):
    """Which tile each entry of a matrix belongs to, and its place in order of tiles.

    A run is a stretch of entries of one row inside one tile; runs, not entries, are sorted. Arrays
    of r hold runs in order of the source, arrays of t tiles in their order.

    Attributes:
        run: (nse,) run of each entry; arbitrary in padding.
        shift: (r,) place in order of tiles minus slot, the same for all entries of a run.
        tile: (r,) number of the tile; t in padding.
        down, across: (t,) where each tile lies; arbitrary from `count` on.
        first: (t + 1,) places at which tiles begin; the number of entries from `count` on.
        count: tiles in use.
    """

    run: Array
    shift: Array
    tile: Array
    down: Array
    across: Array
    first: Array
    count: Array


def check_size(nt: int) -> int:
    """`nt`, if it is one of `SIZES`. Raises ValueError: it is none."""
    if nt not in SIZES:
        raise ValueError(f"`nt` must be one of {SIZES}; got {nt!r}.")
    return nt


def grid(shape: tuple[int, int], nt: int) -> tuple[int, int]:
    """How many tiles a matrix is high and wide."""
    return -(-shape[0] // nt), -(-shape[1] // nt)


def heads(row: Array, col: Array, shape: tuple[int, int], nt: int) -> tuple[Array, Array]:
    """(run of each entry, number of runs) of entries sorted by row, then column. Traceable."""
    valid, across = row < shape[0], col // nt
    fresh = jnp.append(True, (row[1:] != row[:-1]) | (across[1:] != across[:-1]))
    run = jnp.cumsum(valid & fresh[: row.shape[0]], dtype=jnp.int32) - 1
    return run, run[-1] + 1 if run.shape[0] else jnp.int32(0)


def group(
    row: Array, col: Array, shape: tuple[int, int], nt: int, run: Array, capacity: int
) -> Groups:
    """The tiles of entries sorted by row, then column; `row` is m in padding. Traceable.

    Args:
        run: from `heads`.
        capacity: static bound of the number of runs, and so of tiles.
    """
    nse = row.shape[0]
    valid, slot = row < shape[0], jnp.arange(nse, dtype=jnp.int32)
    entries = jnp.sum(valid, dtype=jnp.int32)
    fresh = valid & jnp.append(True, run[1:] != run[:-1])[:nse]
    begin = jnp.full(capacity + 1, entries, jnp.int32)
    begin = begin.at[jnp.where(fresh, run, capacity + 1)].set(slot, mode="drop")
    used = begin[:-1] < entries
    at = jnp.where(used, begin[:-1], 0)
    down, across = (v[at] // nt if nse else at for v in (row, col))
    order = _tile_order(down, across, used, grid(shape, nt))
    down, across, used = down[order], across[order], used[order]
    other = jnp.append(True, (down[1:] != down[:-1]) | (across[1:] != across[:-1]))
    starts = used & other[:capacity]
    tile = jnp.where(used, jnp.cumsum(starts, dtype=jnp.int32) - 1, capacity)
    length = jnp.diff(begin)[order]
    place = jnp.cumsum(length, dtype=jnp.int32) - length
    into = jnp.where(starts, tile, capacity + 1)

    def of_tiles(values, fill):
        return jnp.full(capacity + 1, fill, jnp.int32).at[into].set(values, mode="drop")

    def of_runs(values):
        return jnp.zeros(capacity, jnp.int32).at[order].set(values, unique_indices=True)

    shift, tile = of_runs(place) - begin[:-1], of_runs(tile)
    down, across = (of_tiles(v, 0)[:-1] for v in (down, across))
    count = jnp.sum(starts, dtype=jnp.int32)
    return Groups(run, shift, tile, down, across, of_tiles(place, entries), count)


def _tile_order(down: Array, across: Array, used: Array, tiles: tuple[int, int]) -> Array:
    """Stable order by row of tiles, then column of tiles; what is not used comes last. One sort of
    32-bit keys where the tiles can be numbered so, else two."""
    number = jnp.arange(down.shape[0], dtype=jnp.int32)
    if tiles[0] * tiles[1] < 2**32 - 1:
        key = down.astype(jnp.uint32) * jnp.uint32(tiles[1]) + across.astype(jnp.uint32)
        key = jnp.where(used, key, jnp.uint32(2**32 - 1))
        return lax.sort((key, number), num_keys=1, is_stable=True)[1]
    order = lax.sort((across, number), num_keys=1, is_stable=True)[1]
    key = jnp.where(used, down, tiles[0])[order]
    return lax.sort((key, order), num_keys=1, is_stable=True)[1]


def group_concrete(row: Array, col: Array, shape: tuple[int, int], nt: int) -> Groups:
    """`group` with the capacity of the actual runs, rounded up to a power of two; eager."""
    run, count = jax.block_until_ready(_heads(row, col, shape, nt))
    capacity = min(max(1 << max(int(count) - 1, 0).bit_length(), 64), max(row.shape[0], 1))
    return _group(row, col, shape, nt, run, capacity)


_heads = jax.jit(heads, static_argnums=(2, 3))
_group = jax.jit(group, static_argnums=(2, 3, 5))


def group_traced(row: Array, col: Array, shape: tuple[int, int], nt: int) -> Groups:
    """`group` with a run an entry. Traceable."""
    run, _ = heads(row, col, shape, nt)
    return group(row, col, shape, nt, run, max(row.shape[0], 1))


def sizes(groups: Groups) -> Array:
    """(t,) entries of each tile; 0 past the last one."""
    return jnp.diff(groups.first)


def of_entries(values: Array, groups: Groups, valid: Array, fill) -> Array:
    """A value for each entry from those of the runs; `fill` in padding."""
    return jnp.where(valid, values[jnp.clip(groups.run, 0, values.shape[0] - 1)], fill)


@functools.partial(jax.jit, static_argnames="limit")
def needs(groups: Groups, limit: int) -> tuple[Array, Array]:
    """(tiles of more than `limit` entries, entries of the others)."""
    size = sizes(groups)
    moved = jnp.sum(jnp.where(size > limit, 0, size), dtype=jnp.int32)
    return jnp.sum(size > limit, dtype=jnp.int32), moved


def offsets(major: Array, used: Array, extent: int) -> Array:
    """(extent + 1,) running count of `major` where `used`: the pointer of a compressed axis."""
    ends = jnp.zeros(extent + 1, jnp.int32)
    ends = ends.at[jnp.where(used, major + 1, extent + 1)].add(1, mode="drop")
    return jnp.cumsum(ends, dtype=jnp.int32)
