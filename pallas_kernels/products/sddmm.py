"""Products of rows of two dense matrices at the entries of a sparse one, in one launch.

    s[e, h] = combine over c of mul(x[row[e], h, c], y[col[e], h, c])

A group of lanes takes one pair (entry, head): each lane has 16 bytes of its columns, and shuffles
combine the lanes. `unroll` consecutive pairs of a group are in flight together. The time does not
depend on the lengths of rows. If entries are sorted by rows, the row of x is in the L1 cache.

Bytes, for nse entries of k columns (all heads) of b bytes: nse k b of y out of the L2 cache, where
it fits, else from memory; nse (8 + 4 heads) of places and results; x once. Measured (H200), 128
columns of float32: coAuthorsDBLP 0.19 ms, rmat18 1.37, that is 5.3 and 7.3 TB/s of y (L2 gives 4.8;
hubs stay in L1).
"""

import dataclasses
import math

import jax

from ..rows.columns import NARROW, Tile, as_words, lanes_for
from ..simt.device import extent, most_ctas
from ..simt.launch import launch
from ..simt.scalar_jaxpr import ScalarSemiring, evaluate
from ..simt.typed import Several

LIMIT = 2**31 - 2**22  # pairs, and words of an operand, that int32 can count


def tile_for(width: int) -> Tile:
    """The tile for pairs of `width` words: a group of lanes takes a pair."""
    words = math.gcd(width, 4)
    lanes = lanes_for(width, words)
    return Tile(lanes, words, 4 if lanes * words * 2 > width else 2)


def sddmm(
    row: jax.Array,
    col: jax.Array,
    x: jax.Array,
    y: jax.Array,
    *,
    semiring: ScalarSemiring,
    tile: Tile | None = None,
) -> jax.Array:
    """s[nse, heads] of x[m, heads, k], y[n, heads, k]; none of the sizes is 0.

    row, col int32[nse]: places; s holds the identity where one is out of range. x and y have one
    dtype: float32, int32, bfloat16 or float16, the last two widened to float32; s has that of
    terms. nse heads and the words of x and of y stay below LIMIT.
    """
    (m, heads, k), n, nse = x.shape, y.shape[0], row.shape[0]
    narrow, term = NARROW.get(x.dtype.name), semiring.dtype
    valid = k
    if narrow:
        x, y = (as_words(v) for v in (x, y))
        k = x.shape[2]
    tile = tile or tile_for(k)
    pairs = nse * heads
    per_warp = 32 // tile.lanes * tile.unroll
    threads = extent(threads=256)["threads"]
    wanted = -(-pairs // (per_warp * (threads // 32)))
    job = _Job(m, n, heads, pairs, k, valid, tile, semiring, narrow)
    s = launch(
        lambda k, g: _Dots(k, g, job).run(),
        {"row": row, "col": col, "x": x.reshape(-1), "y": y.reshape(-1)},
        {"s": (pairs, term)},
        **extent(most_ctas(wanted, threads, tile.waves), threads),
        name="sddmm",
    )["s"]
    return s.reshape(nse, heads)


@dataclasses.dataclass(frozen=True)
class _Job:
    """The static parameters: sizes, width in words and in columns of a pair, the semiring."""

    m: int
    n: int
    heads: int
    pairs: int
    width: int
    columns: int
    tile: Tile
    semiring: ScalarSemiring
    narrow: str | None


class _Dots:
    """The body of the kernel."""

    def __init__(self, k, g, job):
        self.k, self.g, self.job = k, g, job
        self.identity = job.semiring.neutral(k)
        self.member, self.group = k.lane & (job.tile.lanes - 1), k.lane // job.tile.lanes

    def run(self):
        k, tile = self.k, self.job.tile
        warps = k.threads // 32
        step = 32 // tile.lanes * tile.unroll
        first = (k.cta * warps + k.warp) * step
        k.for_(first, self.job.pairs, k.ctas * warps * step, self._block)

    def _block(self, base):
        """The pairs base + u groups + group of this warp; all its lanes take part."""
        k, g, job = self.k, self.g, self.job
        groups = 32 // job.tile.lanes
        pairs = Several(base + u * groups + self.group for u in range(job.tile.unroll))
        inside = pairs < job.pairs
        entries = pairs // job.heads if job.heads > 1 else pairs
        row = k.load(g.row, entries, mask=inside, other=-1, cache="nc")
        col = k.load(g.col, entries, mask=inside, other=-1, cache="nc")
        is_valid = k.below(row, job.m) & k.below(col, job.n)
        if job.heads > 1:
            head = pairs - entries * job.heads
            row, col = row * job.heads + head, col * job.heads + head
        total = self.identity
        for start in range(0, job.width, job.tile.lanes * job.tile.words):
            column = start + self.member * job.tile.words
            mask = is_valid & (column < job.width)
            x, y = self._load(g.x, row, column, mask), self._load(g.y, col, column, mask)
            total = self._combined(total, x, y, column, mask)
        total = k.warp_fold(self._joined, total, job.tile.lanes)
        k.store(g.s, pairs, total, mask=inside & (self.member == 0))

    def _load(self, a, place, column, mask):
        k, job = self.k, self.job
        at = place * job.width + column
        words = k.load_vec(a, at, job.tile.words, mask=mask, cache="nc")
        if not job.narrow:
            return words
        return [v for w in words for v in k.unpack(w, job.narrow)]

    def _combined(self, total, a, b, column, mask):
        k, job = self.k, self.job
        odd = job.narrow and job.columns % 2
        for j, (x, y) in enumerate(zip(a, b, strict=True)):
            term = evaluate(k, job.semiring.mul, x, y)
            known = mask & (column * 2 + j < job.columns) if odd else mask
            total = self._joined(total, k.where(known, term, self.identity))
        return total

    def _joined(self, a, b):
        return evaluate(self.k, self.job.semiring.combine, a, b)
