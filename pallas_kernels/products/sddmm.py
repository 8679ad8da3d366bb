"""Products of rows of two dense matrices at the entries of a sparse one, in one launch.

    s[e, h] = combine over c of mul(x[row[e], h, c], y[col[e], h, c])

A group of lanes takes one pair (entry, head): each lane has 16 bytes of its columns, and shuffles
combine the lanes. `unroll` consecutive pairs of a group are in flight together. The time does not
depend on the lengths of rows. If entries are sorted by rows, the row of x is in the L1 cache.

Bytes, for nse entries of k columns (all heads) of b bytes: nse k b of y out of the L2 cache, where
it fits, else from memory; nse (8 + 4 heads) of places and results; x once.
"""

import dataclasses
import math

import jax

from ..rows.columns import NARROW, Tile, as_words, lanes_for
from ..simt.device import DEFAULT_GRID, Grid, most_ctas
from ..simt.launch import launch
from ..simt.scalar_jaxpr import ScalarSemiring, evaluate

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
    grid: Grid = DEFAULT_GRID,
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
    threads = grid.threads or 256
    wanted = -(-pairs // (per_warp * (threads // 32)))
    ctas = grid.ctas or most_ctas(wanted, threads, tile.waves)
    job = _Job(m, n, heads, pairs, k, valid, tile, semiring, narrow)
    s = launch(
        lambda k, g: _Dots(k, g, job).run(),
        {"row": row, "col": col, "x": x.reshape(-1), "y": y.reshape(-1)},
        {"s": (pairs, term)},
        ctas=ctas,
        threads=threads,
        name="sddmm",
        interpret=grid.interpret,
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
        pairs = [base + u * groups + self.group for u in range(job.tile.unroll)]
        inside = [p < job.pairs for p in pairs]
        entries = [p // job.heads if job.heads > 1 else p for p in pairs]
        rows = k.loads(g.row, entries, inside, other=-1, cache="nc")
        cols = k.loads(g.col, entries, inside, other=-1, cache="nc")
        is_valid = [k.below(r, job.m) & k.below(c, job.n) for r, c in zip(rows, cols, strict=True)]
        if job.heads > 1:
            head = [p - e * job.heads for p, e in zip(pairs, entries, strict=True)]
            rows = [r * job.heads + h for r, h in zip(rows, head, strict=True)]
            cols = [c * job.heads + h for c, h in zip(cols, head, strict=True)]
        sums = [self.identity] * len(pairs)
        for start in range(0, job.width, job.tile.lanes * job.tile.words):
            column = start + self.member * job.tile.words
            masks = [t & (column < job.width) for t in is_valid]
            xs = [self._load(g.x, r, column, t) for r, t in zip(rows, masks, strict=True)]
            ys = [self._load(g.y, c, column, t) for c, t in zip(cols, masks, strict=True)]
            for u, (a, b, t) in enumerate(zip(xs, ys, masks, strict=True)):
                sums[u] = self._combined(sums[u], a, b, column, t)
        d = job.tile.lanes // 2
        while d:
            sums = [evaluate(k, job.semiring.combine, s, k.shfl_xor(s, d)) for s in sums]
            d //= 2
        for p, s, i in zip(pairs, sums, inside, strict=True):
            k.store(g.s, p, s, mask=i & (self.member == 0))

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
            total = evaluate(k, job.semiring.combine, total, k.where(known, term, self.identity))
        return total
