"""Which format suits a matrix, and why: the rules for tiles and for padded rows."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from .._core.eager.arrays import is_eager, on_accelerator
from .._core.platforms import default_promotion
from . import CSR, SparseMatrix
from .base import ours
from .sell import SLICE, WINDOW
from .tiled.arrangement import grid, group_concrete
from .tiled.bit_tiled import LARGE

# What the rule was measured with: benchmarks/NOTES.md, "Tiles".
BFS_SHARE_OF_BITS = 1 / 32  # set bits of a non-empty tile from which TileBFS beats rows

# Slots an entry, and entries of the longest row, up to which padded rows beat a CSR on a GPU:
# benchmarks/NOTES.md, "Padded rows".
ELL_SLOTS, SELL_SLOTS, LONGEST = 1.15, 1.3, 64

# On a CPU ELL alone, by slots an entry: in general, and up to so many entries, whose product is
# mostly the call of its loop (`python -m benchmarks gpu_report`, results/cpu/gpu_report.md).
ELL_ON_CPU, ELL_IF_FEW, FEW = 1.75, 2.6, 1 << 13

# Up to so many diagonals, this share of them filled, `prepare(A, for_="mxv")` arranges entries by
# diagonal: benchmarks/NOTES.md, "SpMV by diagonals and in groups".
MOST_DIAGONALS, FILLED, FILLED_ON_CPU = 192, 0.6, 0.3


class FormatChoice(NamedTuple):
    """The result of `choose_format`; strings and numbers.

    Attributes:
        format: "csr", "csc", "ell", "sell" or "bittiled".
        nt: the edge of a tile that was looked at.
        tiles: non-empty tiles.
        share: of all tiles, those that are not empty.
        per_tile: entries in a non-empty tile, the mean.
        reason: a sentence.
        rows: for "mxv" the lengths of the rows, else None.
    """

    format: str
    nt: int
    tiles: int
    share: float
    per_tile: float
    reason: str
    rows: RowLengths | None = None


class RowLengths(NamedTuple):
    """How long the rows of a matrix are; numbers.

    Attributes:
        mean: entries a row.
        variance: of that, over the square of the mean: 0 where all are equally long.
        longest: entries of the longest row.
        empty: the share of rows without entries.
        ell, sell: slots an entry that these formats take.
        diagonals: how many hold entries.
    """

    mean: float
    variance: float
    longest: int
    empty: float
    ell: float
    sell: float
    diagonals: int


def choose_format(A: SparseMatrix, for_: str = "bfs") -> FormatChoice:
    """The format that a purpose runs fastest on, by the tiles that A would have; eager.

    A traversal is faster over tiles if entries are clustered: a tile costs one word a row whatever
    it holds, so the mean number of entries in a non-empty tile decides. A product with a sparse
    vector was faster over columns at every density measured (benchmarks/NOTES.md, "Tiles"); tiles
    only save memory there. A product with a dense vector reads every slot, padding too: rows of one
    length go to ELL, rows that have one length after sorting within windows to SELL, others stay
    CSR (by the mean and the normalised variance of lengths: "GraphBLAS on GPU", "Formats"). On a
    CPU rows of similar lengths go to ELL, others stay CSR.

    Args:
        A: a concrete sparse matrix.
        for_: "bfs" (structure: 64-by-64 bits, 32-by-32 up to an order of 10,000), "spmspv"
            (values: 16-by-16), or "mxv" (rows).

    Raises:
        ValueError: `for_` is unknown, or A is traced.

    >>> import jaxspv as jsp
    >>> choice = choose_format(jsp.from_edges([0, 40], [90, 2], shape=(100, 100)), "spmspv")
    >>> print(choice.format, choice.tiles, choice.reason)
    csc 2 2 of 49 tiles of 16 by 16 hold entries, 1.0 each: columns are faster at any number
    """
    A = ours(A)
    if not isinstance(A, SparseMatrix):
        raise TypeError(f"`A` must be a sparse matrix; got {type(A).__name__}.")
    if for_ not in ("bfs", "spmspv", "mxv"):
        raise ValueError(f"`for_` must be 'bfs', 'spmspv' or 'mxv'; got {for_!r}.")
    if not is_eager(A):
        raise ValueError("`choose_format` needs concrete values: call it outside of jit.")
    row, col = (A if isinstance(A, CSR) else A.asformat("csr")).rowcol()
    if for_ == "mxv":
        return _by_rows(row, col, A.shape, on_accelerator(*jax.tree.leaves(A)))
    nt = 16 if for_ == "spmspv" else 64 if max(A.shape) > LARGE else 32
    tiles = int(group_concrete(row, col, A.shape, nt).count)
    per_tile, (down, across) = int(jnp.sum(row < A.shape[0])) / max(tiles, 1), grid(A.shape, nt)
    least = BFS_SHARE_OF_BITS * nt * nt
    wins = for_ == "bfs" and per_tile >= least
    name = "bittiled" if wins else "csr" if for_ == "bfs" else "csc"
    reason = f"{tiles} of {down * across} tiles of {nt} by {nt} hold entries, {per_tile:.1f} each: "
    if for_ == "bfs":
        reason += f"{'at least' if wins else 'fewer than'} {least:g}"
    else:
        reason += "columns are faster at any number"
    return FormatChoice(name, nt, tiles, tiles / max(down * across, 1), per_tile, reason)


def _by_rows(row: Array, col: Array, shape: tuple[int, int], accelerator: bool) -> FormatChoice:
    mean, variance, longest, empty, ell, sell = (float(v) for v in _lengths(row, shape[0]))
    diagonals = int(jnp.sum(on_diagonals(row, col, shape)))
    rows = RowLengths(mean, variance, int(longest), empty, ell, sell, diagonals)
    few = mean * shape[0] <= FEW
    if accelerator:
        limit, fits = ELL_SLOTS, 0 < rows.longest <= LONGEST
        name = "sell" if fits and sell <= SELL_SLOTS else "csr"
    else:
        limit, fits, name = ELL_IF_FEW if few else ELL_ON_CPU, rows.longest > 0, "csr"
    name = "ell" if fits and ell <= limit else name
    reason = f"rows of {mean:.1f} entries (normalised variance {variance:.2g}, at most "
    reason += f"{rows.longest}) take {ell:.2f} slots an entry as ELL, {sell:.2f} as SELL: up to "
    limits = f"{limit} and {SELL_SLOTS}, {LONGEST} a row" if accelerator else f"{limit}, not SELL"
    reason += f"{limits}, faster than CSR"
    share = FILLED if accelerator else FILLED_ON_CPU
    if 0 < diagonals <= MOST_DIAGONALS and mean >= share * diagonals:
        reason += f"; {diagonals} diagonals hold all entries: `prepare` goes by them, faster still"
    return FormatChoice(name, 0, 0, 0.0, 0.0, reason, rows)


@functools.partial(jax.jit, static_argnums=2)
def on_diagonals(row: Array, col: Array, shape: tuple[int, int]) -> Array:
    """bool[m + n]: the diagonals that hold entries, by column - row + m; row m is padding."""
    m, n = shape
    place = jnp.where(row < m, col - row + m, m + n)
    return jnp.zeros(m + n, bool).at[place].set(True, mode="drop")


@functools.partial(jax.jit, static_argnums=1)
@default_promotion()
def _lengths(row: Array, m: int) -> tuple[Array, ...]:
    size = jnp.zeros(m, jnp.int32).at[row].add(1, mode="drop")
    entries, longest = jnp.sum(size.astype(jnp.float32)), jnp.max(size, initial=0)
    mean, least = entries / max(m, 1), jnp.maximum(entries, 1)
    variance = jnp.sum((size - mean) ** 2) / max(m, 1) / jnp.maximum(mean, 1 / max(m, 1)) ** 2
    rows = jnp.arange(m, dtype=jnp.int32)
    _, shorter = lax.sort((rows // WINDOW, -size), num_keys=2)
    lanes = jnp.pad(-shorter, (0, -m % SLICE)).reshape(-1, SLICE)
    slots = SLICE * jnp.sum(lanes.max(1, initial=0).astype(jnp.float32))
    empty = jnp.sum(size == 0) / max(m, 1)
    return mean, variance, longest, empty, m * longest / least, slots / least
