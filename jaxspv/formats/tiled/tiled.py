"""Tiled: non-empty square tiles compressed by rows of tiles, with byte-sized local indices."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..._core.indices import narrowed, with_pattern
from ..._core.pytree import describe, is_concrete, pytree_dataclass, static, transient
from ...shapes import Bool, Int, Shaped, UInt
from ..base import SparseMatrix, register
from ..coo import COO, sort_coo
from ..invariants import check, check_places, of_tiles
from ..offsets import search_rows
from ..stored import Edges
from .arrangement import (
    Groups,
    check_size,
    grid,
    group_concrete,
    group_traced,
    needs,
    of_entries,
    offsets,
    sizes,
)

SPARSE_TILE = 2  # a tile of at most so many entries moves to the remainder
SMALL = 1 << 14  # a matrix of fewer entries keeps its tiles: what it could save is nothing


@register
@pytree_dataclass
class Tiled(SparseMatrix):
    """nt-by-nt tiles that hold entries, in CSR order of tiles, and a COO remainder.

    Tile t of row `i` of tiles (`tile_ptr[i] <= t < tile_ptr[i + 1]`) covers the columns from
    `nt * tile_col[t]` on and holds slots `slot_ptr[t] <= k < slot_ptr[t + 1]`, sorted by row, then
    column: entry `(nt * i + local[k] // nt, nt * tile_col[t] + local[k] % nt, data[k])`. At nt = 16
    both local indices share one byte. Slots from `nse - r` on belong to the remainder:
    `(rest_row[k], rest_col[k])`, where tiles of very few entries went, which cost more as tiles.

    Padding is at the end of both parts: `packed` arbitrary, `rest_row` at the extent.

    Attributes:
        data: (nse,) values, of the tiles, then of the remainder.
        packed: uint32 words of four 8-bit (nt = 16) or two 16-bit local indices
            `nt * (row % nt) + col % nt`, the first in the lowest bits.
        tile_ptr: (ceil(m / nt) + 1,) int32.
        tile_col: (t,) int32; the number of columns of tiles in padding.
        slot_ptr: (t + 1,) int32.
        rest_row, rest_col: (r,) int32.
        overflow: bool scalar; some operation dropped entries for want of capacity.
        shape: (m, n), static.
        nt: 16, 32 or 64, static.
        transposed: the arrays describe the transpose, static.
        unique: no index pair twice, static.
        edges: what it was made of, for `with_edge_data(values)`; not part of the pytree.

    Source: Ji, Song, Lu, Jin, Tan, Liu, "TileSpMSpV: a tiled algorithm for sparse matrix-sparse
    vector multiplication on GPUs", ICPP 2022, section 3.2.1.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 40], [1, 0, 70], shape=(50, 80)).asformat("tiled")
    >>> A
    Tiled(float32[3], shape=(50, 80), nt=16)
    >>> A.tile_ptr.tolist(), A.tile_col.tolist(), A.local.tolist()
    ([0, 1, 1, 2, 2], [0, 4], [1, 16, 134])
    """

    format: ClassVar[str] = "tiled"
    data: Shaped[Array, " nse"]
    packed: UInt[Array, " words"]
    tile_ptr: Int[Array, " line_offsets"]
    tile_col: Int[Array, " tiles"]
    slot_ptr: Int[Array, " tiles+1"]
    rest_row: Int[Array, " rest"]
    rest_col: Int[Array, " rest"]
    overflow: Bool[Array, ""]
    shape: tuple[int, int] = static()
    nt: int = static(default=16)
    transposed: bool = static(default=False)
    unique: bool = static(default=True)
    edges: Edges | None = transient(default=None)

    @property
    def count(self) -> Int[Array, ""]:
        rest = jnp.sum(with_pattern(self).rest_row < self._stored_shape[0], dtype=jnp.int32)
        return self.slot_ptr[-1] + rest

    @property
    def local(self) -> Int[Array, " slots"]:
        """(nse - r,) int32 local indices `nt * (row % nt) + col % nt`, unpacked."""
        each = 4 if self.nt == 16 else 2
        shift = jnp.arange(each, dtype=jnp.uint32) * (32 // each)
        parts = (self.packed[:, None] >> shift[None]) & jnp.uint32(2 ** (32 // each) - 1)
        return parts.reshape(-1)[: self.nse - self.rest_row.shape[0]].astype(jnp.int32)

    @property
    def num_tiles(self) -> Int[Array, ""]:
        """Non-empty tiles, those of the remainder left out; int32."""
        return self.tile_ptr[-1]

    @property
    def _stored_shape(self) -> tuple[int, int]:
        m, n = self.shape
        return (n, m) if self.transposed else (m, n)

    @property
    def T(self) -> Tiled:
        m, n = self.shape
        return dataclasses.replace(self, shape=(n, m), transposed=not self.transposed, edges=None)

    def check_invariants(self) -> Tiled:
        pointers = ("tile_ptr", "tile_col", "slot_ptr", "rest_row")
        return check_places(check(self, pointers, of_tiles))

    def rowcol(self) -> tuple[Int[Array, " nse"], Int[Array, " nse"]]:
        m, n = self._stored_shape
        tiles = with_pattern(self).tile_col.shape[0]
        inner = self.local
        tile = search_rows(self.slot_ptr, inner.shape[0])  # `tiles` in padding
        down = search_rows(self.tile_ptr, tiles)
        valid = tile < tiles
        at = jnp.minimum(tile, tiles - 1)
        row = jnp.where(valid, self.nt * down[at] + inner // self.nt, m)
        col = jnp.where(valid, self.nt * jnp.asarray(self.tile_col)[at] + inner % self.nt, n)
        row = jnp.concatenate([row, self.rest_row])
        col = jnp.concatenate([col, self.rest_col])
        return (col, row) if self.transposed else (row, col)

    def in_capacity(self, nse: int) -> Tiled:
        return type(self).from_coo(self.to_coo().in_capacity(nse), nt=self.nt)

    def to_coo(self) -> COO:
        row, col = self.rowcol()
        coo = COO(self.data, row, col, self.overflow, self.shape, False, self.unique)
        return sort_coo(coo)[0]

    @classmethod
    def from_coo(
        cls,
        coo: COO,
        *,
        nt: int | None = None,
        sparse_tile: int | None = None,
        capacity: Capacity | None = None,
    ) -> Tiled:
        """The tiles of a sorted COO.

        Args:
            nt: 16, 32 or 64; None: the one of fewest bytes where indices are concrete, else 16.
            sparse_tile: tiles of at most so many entries go to the remainder; None: 2, but 0 for
                fewer than 16,384 entries; 0: none.
            capacity: `Capacity(tiles, remainder)`; None: exactly what is needed where indices are
                concrete; under jit a tile an entry, and no remainder.

        Returns:
            The same entries. What does not fit into a given capacity sets `overflow`.
        """
        (coo,) = narrowed("a format of tiles", coo)
        usual = SPARSE_TILE if coo.nse >= SMALL else 0
        limit = usual if sparse_tile is None else max(sparse_tile, 0)
        if not is_concrete(coo.row, coo.col):
            nt = 16 if nt is None else check_size(nt)
            groups = group_traced(coo.row, coo.col, coo.shape, nt)
            if capacity is None:
                down, across = grid(coo.shape, nt)
                capacity, limit = Capacity(min(coo.nse, down * across), 0), 0
            return _assemble(groups, coo, nt, limit, capacity)
        groups, nt = _choose(coo, nt)
        if capacity is None:
            counted = jax.block_until_ready(needs(groups, limit=limit))
            capacity = Capacity(*(int(v) for v in counted))
        return _assemble_jit(groups, coo, nt=nt, limit=limit, capacity=capacity)

    def __repr__(self) -> str:
        return f"Tiled({describe(self.data)}, shape={self.shape}, nt={self.nt})"


class Capacity(NamedTuple):
    """Static capacity of a `Tiled`: tiles, and slots of the remainder."""

    tiles: int
    remainder: int


def _choose(coo: COO, nt: int | None) -> tuple[Groups, int]:
    """Groups for the nt that takes fewest bytes: 8 a tile, and 1 (nt = 16) or 2 an entry."""
    if nt is not None:
        return group_concrete(coo.row, coo.col, coo.shape, check_size(nt)), nt
    groups = group_concrete(coo.row, coo.col, coo.shape, 16)
    tiles = int(groups.count)
    # 16 tiles of edge 16 make one of edge 64 at best: 8 * 15 / 16 bytes a tile are what is to gain.
    if 8 * tiles * 15 / 16 <= coo.nse:
        return groups, 16
    best, fewest = (groups, 16), 8 * tiles + coo.nse
    for size in (32, 64):
        groups = group_concrete(coo.row, coo.col, coo.shape, size)
        total = 8 * int(groups.count) + 2 * coo.nse
        if total < fewest:
            best, fewest = (groups, size), total
    return best


def _assemble(groups: Groups, coo: COO, nt: int, limit: int, capacity: Capacity) -> Tiled:
    """The arrays of a `Tiled` from its groups. Traceable."""
    (m, n), nse = coo.shape, coo.nse
    tiles, rest = max(capacity.tiles, 1), min(capacity.remainder, nse)
    slots = nse - rest  # slots of the tiles
    size = sizes(groups)
    kept = size > limit
    name = jnp.where(kept, jnp.cumsum(kept, dtype=jnp.int32) - 1, nse + tiles)  # after moving
    ends = jnp.cumsum(jnp.where(kept, size, 0), dtype=jnp.int32)
    behind = jnp.cumsum(jnp.where(kept, 0, size), dtype=jnp.int32)
    begin = jnp.where(kept, ends, slots + behind) - size
    # where an entry goes: the same shift for all entries of a run, and the end of its part
    tile = jnp.minimum(groups.tile, size.shape[0] - 1)
    shift = groups.shift + (begin - groups.first[:-1])[tile]
    stop = jnp.where(kept & (name < tiles), slots, jnp.where(kept, 0, nse))[tile]
    valid = coo.row < m
    target = jnp.arange(nse, dtype=jnp.int32) + of_entries(shift, groups, valid, nse)
    target = jnp.where(target < of_entries(stop, groups, valid, 0), target, nse)
    data = jnp.zeros(nse, coo.dtype).at[target].set(coo.data, mode="drop", unique_indices=True)
    behind = jnp.where(target >= slots, target - slots, rest)
    rest_row = jnp.full(rest, m, jnp.int32).at[behind].set(coo.row, mode="drop")
    rest_col = jnp.full(rest, n, jnp.int32).at[behind].set(coo.col, mode="drop")
    last = ends[-1] if size.shape[0] else 0
    slot_ptr = jnp.full(tiles + 1, last, jnp.int32).at[name].set(ends - size, mode="drop")
    tile_col = jnp.full(tiles, grid(coo.shape, nt)[1], jnp.int32)
    tile_col = tile_col.at[name].set(groups.across, mode="drop")
    tile_ptr = offsets(groups.down, kept & (name < tiles), grid(coo.shape, nt)[0])
    lost = (jnp.sum(kept) > tiles) | (jnp.sum(target < nse) < jnp.sum(valid))
    packed, slot_ptr = _pack(coo.row, coo.col, target, slots, nt), jnp.minimum(slot_ptr, slots)
    arrays = data, packed, tile_ptr, tile_col, slot_ptr, rest_row, rest_col
    return Tiled(*arrays, coo.overflow | lost, coo.shape, nt, False, coo.unique)


_assemble_jit = jax.jit(_assemble, static_argnames=("nt", "limit", "capacity"))


def _pack(row: Array, col: Array, slot: Array, slots: int, nt: int) -> Array:
    """Words of the local indices of entries at `slot`; those at `slots` or later are left out."""
    bits = 8 if nt == 16 else 16
    each = 32 // bits
    local = (row % nt * nt + col % nt).astype(jnp.uint32) << (slot % each * bits).astype(jnp.uint32)
    words = -(-slots // each)
    place = jnp.where(slot < slots, slot // each, words)
    return jnp.zeros(words, jnp.uint32).at[place].add(local, mode="drop")  # distinct bits
