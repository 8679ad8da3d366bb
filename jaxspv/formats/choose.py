"""Which format suits a matrix, and why: the rule for tiles."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from .._core.compilation import is_eager
from . import CSR, SparseMatrix
from .tiles.arrangement import grid, group_concrete
from .tiles.bit_tiled import LARGE

# What the rule was measured with: benchmarks/NOTES.md, "Tiles".
BFS_SHARE_OF_BITS = 1 / 32  # set bits of a non-empty tile from which TileBFS beats rows


class FormatChoice(NamedTuple):
    """What `choose_format` found; strings and numbers.

    Attributes:
        format: "csr", "csc" or "bittiled".
        nt: the edge of a tile that was looked at.
        tiles: non-empty tiles.
        share: of all tiles, those that are not empty.
        per_tile: entries in a non-empty tile, the mean.
        reason: a sentence.
    """

    format: str
    nt: int
    tiles: int
    share: float
    per_tile: float
    reason: str


def choose_format(A: SparseMatrix, for_: str = "bfs") -> FormatChoice:
    """The format that a purpose runs fastest on, by the tiles that A would have; eager.

    A traversal is faster over tiles where entries lie together: a tile costs a word a line whatever
    it holds, so the mean number of entries in a non-empty tile decides. A product with a sparse
    vector was faster over columns at every density measured (benchmarks/NOTES.md, "Tiles"); what
    tiles save there is memory.

    Args:
        A: a concrete sparse matrix.
        for_: "bfs" (structure: 64-by-64 bits, 32-by-32 up to an order of 10,000), or "spmspv"
            (values: 16-by-16).

    Raises:
        ValueError: `for_` is unknown, or A is traced.

    >>> import jaxspv as jsp
    >>> choice = choose_format(jsp.from_edges([0, 40], [90, 2], shape=(100, 100)), "spmspv")
    >>> print(choice.format, choice.tiles, choice.reason)
    csc 2 2 of 49 tiles of 16 by 16 hold entries, 1.0 each: columns are faster at any number
    """
    if for_ not in ("bfs", "spmspv"):
        raise ValueError(f"`for_` must be 'bfs' or 'spmspv'; got {for_!r}.")
    if not is_eager(A):
        raise ValueError("`choose_format` needs concrete values: call it outside of jit.")
    nt = 16 if for_ == "spmspv" else 64 if max(A.shape) > LARGE else 32
    tiles, entries = (int(v) for v in _count(*_places(A), A.shape, nt))
    return _decide(for_, A.shape, nt, tiles, entries)


def _decide(for_: str, shape: tuple[int, int], nt: int, tiles: int, entries: int) -> FormatChoice:
    down, across = grid(shape, nt)
    per_tile = entries / max(tiles, 1)
    least = BFS_SHARE_OF_BITS * nt * nt
    wins = for_ == "bfs" and per_tile >= least
    name = "bittiled" if wins else "csr" if for_ == "bfs" else "csc"
    reason = f"{tiles} of {down * across} tiles of {nt} by {nt} hold entries, {per_tile:.1f} each: "
    if for_ == "bfs":
        reason += f"{'at least' if wins else 'fewer than'} {least:g}"
    else:
        reason += "columns are faster at any number"
    return FormatChoice(name, nt, tiles, tiles / max(down * across, 1), per_tile, reason)


def _places(A: SparseMatrix) -> tuple[Array, Array]:
    row, col = (A if isinstance(A, CSR) else A.asformat("csr")).rowcol()
    return row, col


@jax.jit
def _entries(row: Array, extent: int) -> Array:
    return jnp.sum(row < extent, dtype=jnp.int32)


def _count(row: Array, col: Array, shape: tuple[int, int], nt: int) -> tuple[Array, Array]:
    return group_concrete(row, col, shape, nt).count, _entries(row, shape[0])
