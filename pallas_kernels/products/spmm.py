"""Sparse matrix times dense matrix straight from a CSR, in one launch: everything may be traced.

    y[i, c] = combine over the entries j of row i of mul(A[i, j], x[j, c])

Rows and entries are shared evenly by merge path (`rows/merge_path.py`), not by warps but by groups
of lanes; the lanes of a group have the columns of one entry, up to 16 bytes a lane. A group streams
its entries independently of the rows: indices one block ahead, the rows of x of `unroll` entries in
flight together; row offsets say where rows end. If a row is cut between groups, the last of them to
arrive combines the parts, in the order of the pieces: no group waits for another, no float is added
by atomics, and results do not change from run to run. Columns are divided into tiles, one tile
after the other, so that the part of x that is read at one time is small.

Bytes, for nse entries, k columns of b bytes in tiles of t: nse k b out of the L2 cache (less what
the L1 keeps of the rows of x that many entries have), nse (4 + b) and 4 n a tile from memory, x
once where a tile of it (n_cols t b) stays in the L2 cache, n k b written. Few bytes an entry: the
L2 cache binds where x fits it, else the memory. Atomics: two words for each cut row and group.

Predicted for an H200 by 4.8 TB/s of each, float32 at 128 columns: rmat18 9.9 GB out of the L2,
2.1 ms; delaunay20 3.2 GB, 0.67 ms, and 1.1 GB of memory, 0.23. Measured about 1.2 (the L1 has rows
of x that many entries share) and 1.0 ms: 90 percent of the sum. `benchmarks/NOTES.md` says how.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..rows.columns import NARROW, Halves, Job, Product, Tile, as_words, lanes_for
from ..simt.device import extent, grid_now, most_ctas, resident_ctas
from ..simt.launch import launch
from ..simt.scalar_jaxpr import ScalarSemiring, evaluate
from ..simt.typed import Several
from ..tuning import constants

THREADS = 256
LEAST, LONG = 64, 256  # a group takes at least so many rows and entries: see `ctas_for`


class Config(NamedTuple):
    """How `csr_spmm` computes.

    dtype: of y; None: that of terms. log_sum: terms, float32, are combined to the logarithm of the
    sum of their exponentials, whatever the semiring combines by. mixed: rows are sorted by length,
    see `Job`. tile: its words divide those of a row of x; None: by `tile_for`.
    """

    dtype: Any = None
    log_sum: bool = False
    mixed: bool = False
    tile: Tile | None = None


DEFAULT_CONFIG = Config()


def tile_for(width: int) -> Tile:
    """The tile for rows of x of `width` words: of 8 words or fewer two lanes more pay than one."""
    words = math.gcd(width, 4 if width > 8 else 2)
    return Tile(lanes_for(width, words), words, waves=constants().spmm_waves)


def csr_spmm(
    indptr: jax.Array,
    indices: jax.Array,
    data: jax.Array,
    x: jax.Array,
    names: jax.Array | None = None,
    *,
    semiring: ScalarSemiring,
    config: Config = DEFAULT_CONFIG,
) -> jax.Array:
    """y[n, k] of a matrix with n > 0 rows, at least one slot and one column, and k > 0.

    indptr int32[n + 1], indices int32[nse], data[nse]: a CSR; slots from indptr[n] on are not read.
    x[columns, k]; names int32: the row of x that each column stands for, any other number: none;
    None: the column itself. data and x are float32, int32, bfloat16 or float16, the last two
    widened to float32. y has one of the narrow dtypes only where x has it. n + nse <
    `merge_path.LIMIT`, x and y less than 2^31 words. Any number of CTAs is right; `launching`
    gives that for one tile of columns.
    """
    n, (columns, k) = indptr.shape[0] - 1, x.shape
    term, narrow = semiring.dtype, NARROW.get(x.dtype.name)
    thin = narrow if config.dtype is not None and jnp.dtype(config.dtype) == x.dtype else None
    dense = as_words(x) if narrow else x
    width = dense.shape[1]
    grid = grid_now()
    tile, threads = config.tile or tile_for(width), grid.threads or THREADS
    tiles = -(-width // (tile.lanes * tile.words))
    groups = threads // tile.lanes
    ctas = grid.ctas or ctas_for((n + indices.shape[0]) / groups, threads, tile, tiles)
    per_word = 2 if narrow else 1
    parts = tiles * ctas * groups * 2 * tile.lanes * tile.words * per_word
    packed = NARROW.get(data.dtype.name) if data.shape[0] % 2 == 0 else None
    if data.dtype.name in NARROW:
        data = as_words(data) if packed else data.astype(jnp.float32)
    parts *= 2 if config.log_sum else 1
    halves = Halves(narrow, thin, packed)
    job = Job(n, width, columns, ctas, tile, semiring, halves, config.log_sum, config.mixed)
    operands = {"indptr": indptr, "indices": indices, "data": data, "x": dense.reshape(-1)}
    y = launch(
        lambda k, m: Product(k, m, job).run(),
        operands | ({} if names is None else {"names": names}),
        {
            "y": (n * width * (1 if thin else per_word), jnp.uint32 if thin else term),
            "parts": (parts, term),
        },
        ctas=ctas * tiles,
        threads=threads,
        more_control=tiles * ctas * groups,
        name="csr_spmm",
    )["y"]
    y = jax.lax.bitcast_convert_type(y, x.dtype) if thin else y
    return y.reshape(n, width * per_word)[:, :k]


def coo_spmm(
    row: jax.Array,
    col: jax.Array,
    data: jax.Array,
    x: jax.Array,
    n: int,
    *,
    semiring: ScalarSemiring,
    tile: Tile | None = None,
) -> jax.Array:
    """y[n, k], the sums over the entries e with row[e] = i of mul(data[e], x[col[e]]), by atomics.

    row, col int32[nse], data float32[nse], x float32[columns, k]; no size is 0. An entry with a row
    or a column out of range adds nothing. `semiring` adds float32. Entries may have any order; that
    of a sum varies, and with it its last bits. nse, and the words of x and of y, stay below
    `merge_path.LIMIT`. Any number of CTAs is right.

    A group of lanes has the columns of one entry side by side; a warp loads 32 entries together,
    those of its next turn before it uses them. Bytes: 12 nse from memory, and out of the L2 cache
    4 nse k of x, less what entries side by side share in L1, and as many added, 16 bytes an atomic.
    """
    (columns, width), nse = x.shape, row.shape[0]
    tile, threads = tile or tile_for(width), extent(threads=THREADS)["threads"]
    return launch(
        lambda k, g: _Scattered(k, g, (n, columns, width, nse), tile, semiring).run(),
        {"row": row, "col": col, "data": data, "x": x.reshape(-1)},
        {},
        inout={"y": jnp.zeros(n * width, jnp.float32)},
        **extent(most_ctas(-(-nse // threads), threads, tile.waves), threads),
        name="coo_spmm",
    )["y"].reshape(n, width)


class _Scattered:
    """One launch of `coo_spmm`."""

    def __init__(self, k, g, sizes, tile, semiring):
        self.k, self.g, self.tile, self.semiring = k, g, tile, semiring
        self.n, self.columns, self.width, self.nse = sizes
        self.member, self.group = k.lane & (tile.lanes - 1), k.lane // tile.lanes
        self.step = k.ctas * k.threads

    def run(self):
        k = self.k
        first = k.cta * k.threads + k.warp * 32
        k.for_(first, self.nse, self.step, self._block, *self._fetch(first))

    def _fetch(self, base):
        """Row, column and value of one entry a lane; row -1 for none."""
        k, g = self.k, self.g
        at = base + k.lane
        valid = at < self.nse
        row, col = (k.load(a, at, mask=valid, other=-1, cache="stream") for a in (g.row, g.col))
        valid = k.below(row, self.n) & k.below(col, self.columns)
        value = k.load(g.data, at, mask=valid, cache="stream")
        return k.where(valid, row, -1), col, value

    def _block(self, base, *entries):
        """The entries that the lanes of this warp hold, `unroll` of each group together."""
        ahead = self._fetch(base + self.step)
        turns = self.tile.lanes  # of a group: the warp holds as many entries for it
        many = min(turns, self.tile.unroll)
        if turns == many:
            self._some(0, many, entries)
        else:
            self.k.for_(0, turns, many, lambda turn: self._some(turn, many, entries))
        return ahead

    def _some(self, turn, many, entries):
        k, g, tile = self.k, self.g, self.tile
        lanes = Several((turn + u) * (32 // tile.lanes) + self.group for u in range(many))
        row, col, value = (k.shfl(v, lanes) for v in entries)
        for start in range(0, self.width, tile.lanes * tile.words):
            column = start + self.member * tile.words
            mask = (row >= 0) & (column < self.width)
            x = k.load_vec(g.x, col * self.width + column, tile.words, mask=mask, cache="nc")
            terms = [evaluate(k, self.semiring.mul, value, v) for v in x]
            k.reduce_vec(g.y, row * self.width + column, terms, mask=mask)


def ctas_for(work: float, threads: int, tile: Tile, tiles: int) -> int:
    """CTAs of one tile of columns; work: rows and entries over the groups of a CTA.

    The overhead of a piece (two searches, cut rows) is as high as 60 entries. So pieces are short
    only if each multiprocessor would otherwise have fewer than two CTAs; else they are LONG.
    """
    full = 2 * resident_ctas() // tiles
    ctas = max(min(-(-work // LEAST), full), -(-work // LONG))
    return most_ctas(ctas, threads, tile.waves)
