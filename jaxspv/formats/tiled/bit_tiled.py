"""BitTiled: the structure of a matrix as bitmask words of non-empty tiles, by row and by column."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.indices import narrowed
from ..._core.pytree import is_concrete, pytree_dataclass, static
from ...shapes import Bool, Int, UInt
from ..base import STRUCTURES, SparseMatrix
from ..coo import COO, sort_coo
from ..csr import CSR
from ..invariants import check, check_places, of_words
from ..offsets import search_rows
from .arrangement import (
    check_size,
    grid,
    group_concrete,
    group_traced,
    needs,
    of_entries,
    offsets,
    row_words,
    served,
    sizes,
)

LARGE = 10_000  # the paper's rule: tiles of 64 for matrices of a larger order, else of 32
SPARSE_TILE = 2  # a tile of at most so many entries moves to the remainder


@pytree_dataclass
class Words:
    """One compressed axis of a `BitTiled`: tiles in order of the major axis, a word set a line.

    Attributes:
        tile_ptr: (major tiles + 1,) int32.
        tile_minor: (t,) int32 place of each tile along the minor axis; its extent in padding.
        words: (t, nt, nt / 32) uint32: bit b of word w of line i is entry (i, 32 w + b) of the
            tile; 0 in padding.
        rest_ptr: (major + 1,) int32 compressed lines of the remainder.
        rest_minor: (r,) int32; the minor extent in padding.
    """

    tile_ptr: Int[Array, " line_offsets"]
    tile_minor: Int[Array, " tiles"]
    words: UInt[Array, "tiles nt words"]
    rest_ptr: Int[Array, " offsets"]
    rest_minor: Int[Array, " rest"]

    def checked(self, A: BitTiled, shape: tuple[int, int]) -> None:
        """Raises ValueError where the pointers or places of these words are out of range."""
        fields = ("tile_ptr", "tile_minor", "words", "rest_ptr", "rest_minor")
        check(A, fields, of_words, owner=self, shape=shape)


@pytree_dataclass
class BitTiled(SparseMatrix):
    """Which entries are stored, and no values: nt-by-nt tiles of bits, and a sparse remainder.

    `by_row` lists the tiles row of tiles by row of tiles (CSR) with a bitmask for each row of a
    tile; `by_column` column by column (CSC) with a bitmask for each column. A symmetric matrix has
    one copy. Where values are asked for (`data`, `todense`) a stored entry is True.

    Attributes:
        by_row: `Words`; line i of a tile is its row i.
        other: `Words` of the columns, or None where the matrix is symmetric.
        overflow: bool scalar; some operation dropped entries for want of capacity.
        shape: (m, n), static.
        capacity: `nse`, static: the bits say no more than how many entries there are.
        nt: 32 or 64 (16 is allowed), static.
        symmetric: checked or declared, static.

    Source: Ji et al., "TileSpMSpV", ICPP 2022, section 3.2.3.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 0, 2], [1, 2, 0], shape=(3, 3)).asformat("bittiled")
    >>> A.by_row.words[0, :3, 0].tolist(), A.by_column.words[0, :3, 0].tolist()
    ([6, 0, 1], [4, 1, 1])
    """

    format: ClassVar[str] = "bittiled"
    by_row: Words
    other: Words | None
    overflow: Bool[Array, ""]
    shape: tuple[int, int] = static()
    capacity: int = static()
    nt: int = static(default=64)
    symmetric: bool = static(default=False)

    unique: ClassVar[bool] = True

    @property
    def by_column(self) -> Words:
        """`Words` of the columns; those of the rows where the matrix is symmetric."""
        return self.by_row if self.other is None else self.other

    @property
    def nse(self) -> int:
        return self.capacity

    def in_capacity(self, nse: int) -> BitTiled:
        return dataclasses.replace(self, capacity=nse)

    @property
    def data(self) -> Bool[Array, " nse"]:
        """(nse,) of True."""
        return jnp.ones(self.nse, bool)

    @property
    def dtype(self):
        """bool."""
        return jnp.dtype(bool)

    @property
    def count(self) -> Int[Array, ""]:
        bits = jnp.sum(lax.population_count(self.by_row.words), dtype=jnp.uint32)
        return bits.astype(jnp.int32) + self.by_row.rest_ptr[-1]

    @property
    def num_tiles(self) -> Int[Array, ""]:
        """Non-empty tiles, those of the remainder left out; int32."""
        return self.by_row.tile_ptr[-1]

    @property
    def T(self) -> BitTiled:
        m, n = self.shape
        rows, other = (self.by_row, None) if self.other is None else (self.other, self.by_row)
        return BitTiled(rows, other, self.overflow, (n, m), self.nse, self.nt, self.symmetric)

    def with_data(self, data) -> SparseMatrix:
        """A `COO` of this pattern with the given values in slot order.

        Raises:
            ValueError: `data` has another shape than (nse,).
        """
        row, col = self.rowcol()
        pattern = COO(self.data, row, col, self.overflow, self.shape, False, True)
        return pattern.with_data(data)

    _with_slots = with_data  # pyright: ignore[reportAssignmentType]

    def astype(self, dtype: Any) -> Any:
        """This matrix for booleans; else a COO with ones of `dtype` at its entries."""
        return self if np.dtype(dtype) == bool else self.with_data(self.data.astype(dtype))

    def check_invariants(self) -> BitTiled:
        self.by_row.checked(self, self.shape)
        self.by_column.checked(self, (self.shape[1], self.shape[0]))
        return check_places(self)

    def rowcol(self) -> tuple[Int[Array, " nse"], Int[Array, " nse"]]:
        m, n = self.shape
        side = jax.tree.map(jnp.asarray, self.by_row)
        words = side.words.reshape(-1)
        ends = jnp.cumsum(lax.population_count(words).astype(jnp.int32), dtype=jnp.int32)
        at = search_rows(jnp.concatenate([jnp.zeros(1, jnp.int32), ends]), self.nse)
        word = jnp.minimum(at, words.shape[0] - 1)
        slot = jnp.arange(self.nse, dtype=jnp.int32)
        rank = slot - jnp.where(word > 0, ends[word - 1], 0)
        bit = _select(words[word], rank)
        each = max(self.nt // 32, 1)  # words of a line of a tile
        tile, inside = word // (self.nt * each), word % (self.nt * each)
        down = search_rows(side.tile_ptr, side.tile_minor.shape[0])[tile]
        inner, line = inside % each * 32 + bit, inside // each
        valid = at < words.shape[0]
        row = jnp.where(valid, self.nt * down + line, m)
        col = jnp.where(valid, self.nt * side.tile_minor[tile] + inner, n)
        # behind the bits come the entries of the remainder
        behind = slot - ends[-1]
        rest = (behind >= 0) & (behind < side.rest_ptr[-1])
        far = search_rows(side.rest_ptr, side.rest_minor.shape[0])
        if side.rest_minor.shape[0]:
            k = jnp.clip(behind, 0, side.rest_minor.shape[0] - 1)
            row, col = jnp.where(rest, far[k], row), jnp.where(rest, side.rest_minor[k], col)
        return row, col

    def to_coo(self) -> COO:
        row, col = self.rowcol()
        return sort_coo(COO(self.data, row, col, self.overflow, self.shape, False, True))[0]

    @classmethod
    def from_coo(
        cls,
        coo: COO,
        *,
        nt: int | None = None,
        sparse_tile: int | None = None,
        symmetric: bool | None = None,
    ) -> BitTiled:
        """The pattern of a sorted COO; repeated places become one entry.

        Args:
            nt: 16, 32 or 64; None: 64 for an order above 10,000, else 32 (the paper's rule).
            sparse_tile: tiles of at most so many entries go to the remainder; None: 2, but 0 under
                jit and for an order up to 10,000.
            symmetric: declares that the pattern equals its transpose (one copy is kept); None:
                checked where indices are concrete, False under jit.

        Under jit the capacity is one tile for each entry: convert large matrices outside of it.

        Raises:
            ValueError: the words are too many for int32, or `nt` is none of 16, 32, 64.
        """
        (coo,) = narrowed("a format of tiles", coo)
        known = is_concrete(coo.row, coo.col)
        nt, limit = _rule(coo.shape, nt, sparse_tile, known)
        lines = _lines if known else _traced_lines
        by_row = lines(coo.row, coo.col, coo.shape, nt, limit)
        flipped = sort_coo(coo.T)[0] if symmetric is not True else None
        if flipped is not None and symmetric is None and known and coo.shape[0] == coo.shape[1]:
            symmetric = bool(jnp.all((flipped.row == coo.row) & (flipped.col == coo.col)))
        other = None
        if not symmetric:
            assert flipped is not None
            other = lines(flipped.row, flipped.col, flipped.shape, nt, limit)
        return cls(by_row, other, coo.overflow, coo.shape, coo.nse, nt, bool(symmetric))

    @classmethod
    def from_matrix(cls, A: SparseMatrix) -> BitTiled:
        return cls.from_csr(A) if isinstance(A, CSR) else cls.from_coo(A.to_coo())

    @classmethod
    def from_csr(
        cls,
        A: CSR,
        *,
        nt: int | None = None,
        sparse_tile: int | None = None,
        symmetric: bool | None = None,
    ) -> BitTiled:
        """`from_coo(A.to_coo(), ...)`; on a GPU by two kernels that read the rows as they are.

        The arguments and errors are those of `from_coo`. The kernels serve concrete matrices whose
        rows are sorted and hold no place twice.

        >>> import jaxspv as jsp
        >>> A = jsp.from_edges([0, 1], [1, 0], shape=(2, 2))
        >>> jsp.BitTiled.from_csr(A).by_row.words[0, :2, 0].tolist()
        [2, 1]
        """
        if served(A):
            made = _from_rows(cls, A, *_rule(A.shape, nt, sparse_tile, True), symmetric)
            if made is not None:
                return made
        return cls.from_coo(A.to_coo(), nt=nt, sparse_tile=sparse_tile, symmetric=symmetric)

    def __repr__(self) -> str:
        return f"BitTiled(shape={self.shape}, nse={self.nse}, nt={self.nt})"


STRUCTURES[BitTiled.format] = BitTiled


def _rule(shape, nt, sparse_tile, known):
    """(nt, entries up to which a tile goes to the remainder); defaults depend on the order."""
    large = max(shape) > LARGE
    size = (64 if large else 32) if nt is None else check_size(nt)
    default = SPARSE_TILE if known and large else 0
    return size, default if sparse_tile is None else max(sparse_tile, 0)


def _from_rows(cls, A, nt, limit, symmetric, interpret=False):
    """`BitTiled.from_csr` by kernels; None where they cannot serve."""
    sides = [A]
    if not symmetric:
        columns = A.T.asformat("csr")
        if symmetric is None and A.shape[0] == A.shape[1]:
            same = jnp.all(columns.indptr == A.indptr) & jnp.all(columns.indices == A.indices)
            symmetric = bool(same)
        sides += [] if symmetric else [columns]
    words = []
    for side in sides:
        fields = row_words(side, nt, limit, interpret)
        if fields is None:
            return None
        words.append(Words(*fields))
    other = None if symmetric else words[1]
    return cls(words[0], other, A.overflow, A.shape, A.nse, nt, bool(symmetric))


def _select(word: Array, rank: Array) -> Array:
    """The place of the set bit of a word that has `rank` set bits below it, by halving."""
    place = jnp.zeros_like(rank)
    for width in (16, 8, 4, 2, 1):
        low = (word >> place.astype(jnp.uint32)) & jnp.uint32((1 << width) - 1)
        below = lax.population_count(low).astype(jnp.int32)
        goes = rank >= below
        rank, place = jnp.where(goes, rank - below, rank), jnp.where(goes, place + width, place)
    return place


def _lines(row: Array, col: Array, shape: tuple[int, int], nt: int, limit: int) -> Words:
    """`Words` of exactly the capacity that concrete indices need."""
    groups = group_concrete(row, col, shape, nt)
    tiles, rest = (int(v) for v in jax.block_until_ready(needs(groups, limit=limit)))
    return _assemble_jit(groups, row, col, shape, nt, limit, tiles, rest)


def _traced_lines(row, col, shape, nt, limit):
    """`Words` of static capacity: a tile for each entry, and as much remainder if `limit`."""
    down, across = grid(shape, nt)
    tiles = min(row.shape[0], down * across)
    rest = row.shape[0] if limit else 0
    groups = group_traced(row, col, shape, nt)
    return _assemble(groups, row, col, shape, nt, limit, tiles, rest)


def _assemble(groups, row, col, shape, nt, limit, tiles, rest):
    m, n = shape
    down, across = grid(shape, nt)
    tiles, each = max(tiles, 1), max(nt // 32, 1)
    if tiles * nt * each >= 2**31:
        raise ValueError(
            f"{tiles} tiles of {nt} by {nt} bits take 2^31 words or more, too many for int32; a "
            "larger `sparse_tile` leaves more to the remainder (convert outside of jit)."
        )
    size = sizes(groups)
    kept = size > limit
    name = jnp.where(kept, jnp.cumsum(kept, dtype=jnp.int32) - 1, tiles)
    tile_minor = jnp.full(tiles, across, jnp.int32).at[name].set(groups.across, mode="drop")
    tile_ptr = offsets(groups.down, kept, down)
    valid = row < m
    again = jnp.append(False, (row[1:] == row[:-1]) & (col[1:] == col[:-1]))[: row.shape[0]]
    own = name[jnp.minimum(groups.tile, size.shape[0] - 1)]
    tile = of_entries(own, groups, valid & ~again, tiles)
    # distinct bits, so that adding them is OR-ing them
    word = (tile * nt + row % nt) * each + col % nt // 32
    bit = jnp.uint32(1) << (col % min(nt, 32)).astype(jnp.uint32)
    words = jnp.zeros(tiles * nt * each, jnp.uint32)
    words = words.at[jnp.where(tile < tiles, word, tiles * nt * each)].add(bit, mode="drop")
    moved = valid & ~again & (tile == tiles)
    rest_ptr = offsets(row, moved, m)
    place = jnp.where(moved, jnp.cumsum(moved, dtype=jnp.int32) - 1, rest)
    rest_minor = jnp.full(rest, n, jnp.int32).at[place].set(col, mode="drop")
    return Words(tile_ptr, tile_minor, words.reshape(tiles, nt, each), rest_ptr, rest_minor)


_assemble_jit = jax.jit(_assemble, static_argnums=(3, 4, 5, 6, 7))
