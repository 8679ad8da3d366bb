"""From a CSR to tiles of bits: two launches that read the indices, one to count, one to write.

A CTA takes a row of tiles: nt rows, whose entries are contiguous. It has a counter in shared memory
for each column of tiles of a window, and moves the window from the first to the last column of
these rows: one step on most matrices. A warp reads 32 entries. Entries of one tile are consecutive
in a sorted row, so a run of them takes one atomic on the counter, and the bits of one word are
combined over the warp before one atomic on the word. Traffic: 4 bytes an entry, launch and step
(from a cache where a row of tiles is read again), the words once. Measured (H200): 48.6M entries
0.68 ms, 0.57 TB/s where a copy runs at 4.2; worse where hubs crowd into few rows of tiles, each of
which belongs to one CTA (cnr-2000).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..rows.flatten import warps_before
from ..simt.device import target
from ..simt.launch import launch

THREADS = (256, 512, 1024)  # of a CTA: the fewest that fill a multiprocessor
WINDOWS = 4096, 16384  # counters: if a row of tiles has at most SMALL entries in the mean, and else
SMALL = 1024
UNROLL = 4  # strides of a warp whose loads are in flight together
RESIDENT = 2048  # threads of a multiprocessor
MARGIN = 8192  # bytes of shared memory that are left free
# places in shared memory: first and last column of tiles, numbers of tiles and of remaining
# entries, sums of warps, offsets of the rows, remaining entries of each row, counters of a window
LOW, HIGH, SUM, REST, SUMS, PTR, ROWS, COUNTERS = 0, 1, 2, 3, 8, 40, 112, 176


class Tiling(NamedTuple):
    """Tiles of nt x nt, nt 16, 32 or 64, of a matrix with so many columns; tiles of at most `limit`
    entries are not kept. interpret: on the host."""

    nt: int
    columns: int
    limit: int
    interpret: bool = False


def count_tiles(
    indptr: jax.Array, indices: jax.Array, *, tiling: Tiling
) -> tuple[jax.Array, jax.Array]:
    """(int32[ceil(m / nt)]: tiles of more than `limit` entries in each row of tiles; int32[m]:
    entries of each row in the other tiles, the remainder).

    indptr int32[m + 1], indices int32[e]: a CSR with rows sorted and no place twice.
    """
    c = _fixed(indptr, indices, tiling)

    def kernel(k, m):
        indptr, indices = m.indptr, m.indices
        shared = k.shared(c.words)

        def row_of_tiles(b):
            _, last = _bounds(k, c, shared, indptr, indices, b)

            def window(low, high):
                _count(k, c, shared, indices, low, high)

                def count(i, tiles, rest):
                    size = k.load(shared, COUNTERS + i)
                    sparse = size <= c.limit
                    return tiles + k.cast(~sparse, "i32"), rest + k.where(sparse, size, 0)

                tiles, rest = k.for_(k.thread, high - low + 1, k.threads, count, 0, 0)
                k.add_sum(shared, SUM, tiles, rest)
                k.sync()

                def count_rest():
                    def entry(e, j, tile, valid):
                        sparse = valid & (k.load(shared, COUNTERS + tile, mask=valid) <= c.limit)
                        k.atomic("add", shared, ROWS + _row(k, c, shared, e), 1, mask=sparse)

                    _entries(k, c, shared, indices, low, high, entry)

                k.if_(k.load(shared, REST) > 0, count_rest)
                k.sync()

            _windows(k, c, shared, last, window)
            k.store(m.tiles, b, k.load(shared, SUM), mask=k.thread == 0)
            row = b * c.nt + k.thread
            mine = (k.thread < c.nt) & (row < c.m)
            k.store(m.moved, row, k.load(shared, ROWS + k.thread, mask=mine), mask=mine)

        k.for_(k.cta, c.down, k.ctas, row_of_tiles)

    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices},
        {"tiles": c.down, "moved": c.m},
        **_form(c, tiling),
        shared_words=c.words,
        name="tile_count",
    )
    return out["tiles"], out["moved"]


def fill_tiles(
    indptr: jax.Array,
    indices: jax.Array,
    tile_ptr: jax.Array,
    rest_ptr: jax.Array,
    *,
    tiling: Tiling,
    tiles: int,
    rest: int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(tile_minor int32[tiles], words uint32[tiles * nt * ceil(nt / 32)], rest_minor int32[rest]).

    The arguments of `count_tiles`, and the running sums of what it counted: tile_ptr, which ends at
    tiles > 0, and rest_ptr, which ends at rest. tile_minor ascends in a row of tiles, rest_minor
    in a row; bit b of word w of line i of a tile is the entry of row i, column 32 w + b.
    """
    c = _fixed(indptr, indices, tiling)

    def kernel(k, g):
        shared = k.shared(c.words)

        def row_of_tiles(b):
            _, last = _bounds(k, c, shared, g.indptr, g.indices, b)
            base, end = k.load(g.tile_ptr, b, cache="nc"), k.load(g.tile_ptr, b + 1, cache="nc")
            per = c.nt * c.each

            def clear(i):
                k.store(g.words, i, 0)

            k.for_(base * per + k.thread, end * per, k.threads, clear)
            after = k.minimum((b + 1) * c.nt, c.m)
            some = k.load(g.rest_ptr, after, cache="nc") > k.load(g.rest_ptr, b * c.nt, cache="nc")

            def window(low, high, base):
                _count(k, c, shared, g.indices, low, high)
                dense = _number(k, c, shared, g, base, low, high)
                _write_bits(k, c, shared, g, base, low, high)
                k.if_(some, lambda: _write_rest(k, c, shared, g, b, low, high))
                k.sync()
                return base + dense

            _windows(k, c, shared, last, window, base)

        k.for_(k.cta, c.down, k.ctas, row_of_tiles)

    operands = {"indptr": indptr, "indices": indices, "tile_ptr": tile_ptr, "rest_ptr": rest_ptr}
    out = launch(
        kernel,
        operands,
        {
            "tile_minor": tiles,
            "words": (tiles * c.nt * c.each, jnp.uint32),
            "rest_minor": max(rest, 1),
        },
        **_form(c, tiling),
        shared_words=c.words,
        name="tile_fill",
    )
    return out["tile_minor"], out["words"], out["rest_minor"][:rest]


class _Job(NamedTuple):
    """The static parameters of a launch.

    down, across: rows and columns of tiles. window: counters of a CTA. unroll: strides of a warp in
    flight together. each: words of a line of a tile. shift: log2 nt. words: of shared memory.
    """

    nt: int
    m: int
    limit: int
    down: int
    across: int
    window: int
    unroll: int

    @property
    def each(self):
        return max(self.nt // 32, 1)

    @property
    def shift(self):
        return self.nt.bit_length() - 1

    @property
    def words(self):
        return COUNTERS + self.window


def _fixed(indptr, indices, tiling):
    nt, m = tiling.nt, indptr.shape[0] - 1
    down, across = -(-m // nt), -(-tiling.columns // nt)
    many = indices.shape[0] > SMALL * down
    window = min(across, WINDOWS[many])
    return _Job(nt, m, tiling.limit, down, across, window, UNROLL if many else 1)


def _form(c, tiling):
    """Arguments of `launch`: as few threads a CTA as still fill a multiprocessor."""
    device = target()
    fitting = max(1, (device.shared_bytes - MARGIN) // (4 * c.words + 1024))
    threads = next((t for t in THREADS if t * fitting >= RESIDENT // 2), THREADS[-1])
    ctas = min(device.cores * max(1, min(fitting, RESIDENT // threads)), c.down)
    return {"ctas": ctas, "threads": threads, "interpret": tiling.interpret}


def _bounds(k, c, shared, indptr, indices, b):
    """The first and the last column of tiles of a row of tiles; fills PTR, clears the counts."""
    k.sync()
    at = k.minimum(b * c.nt + k.thread, c.m)
    k.store(shared, PTR + k.thread, k.load(indptr, at, cache="nc"), mask=k.thread <= c.nt)
    k.store(shared, ROWS + k.thread, 0, mask=k.thread < c.nt)
    for word, value in ((LOW, c.across), (HIGH, -1), (SUM, 0), (REST, 0)):
        k.store(shared, word, value, mask=k.thread == 0)
    k.sync()
    row = k.thread < c.nt
    start = k.load(shared, PTR + k.thread, mask=row)
    end = k.load(shared, PTR + k.thread + 1, mask=row)
    row = row & (start < end)
    for op, word, at in (("min", LOW, start), ("max", HIGH, end - 1)):
        tile = k.shr(k.load(indices, at, mask=row, cache="nc"), c.shift)
        k.atomic(op, shared, word, tile, mask=row)
    k.sync()
    return k.load(shared, LOW), k.load(shared, HIGH)


def _windows(k, c, shared, last, f, *carry):
    """carry = f(low, high, *carry) for the windows of a row of tiles."""

    def window(low, *carry):
        return f(low, k.minimum(low + (c.window - 1), last), *carry)

    return k.for_(k.load(shared, LOW), last + 1, c.window, window, *carry)


def _count(k, c, shared, indices, low, high):
    """The counters of a window: entries of the columns of tiles low .. high."""
    k.for_(k.thread, high - low + 1, k.threads, lambda i: k.store(shared, COUNTERS + i, 0))
    k.sync()

    def run(e, j, tile, valid):
        tile = k.where(valid, tile, -1)
        heads = k.ballot((k.lane == 0) | (k.shfl_up(tile, 1) != tile))
        head = valid & (k.shr(heads, k.lane) & 1 != 0)
        after = k.shr(k.shr(heads, k.lane), 1)
        end = k.where(after == 0, 32, k.lane + 1 + k.ctz(k.where(after == 0, 1, after)))
        k.atomic("add", shared, COUNTERS + tile, end - k.lane, mask=head)

    _entries(k, c, shared, indices, low, high, run, c.unroll)
    k.sync()


def _entries(k, c, shared, indices, low, high, f, unroll=1):
    """f(place, column, column of tiles - low, valid) for the entries of a row of tiles, 32 at a
    time for each warp; valid: those of the window."""
    end = k.load(shared, PTR + c.nt)

    def some(e0):
        first = [e0 + u * k.threads for u in range(unroll)]
        columns = [k.load(indices, e + k.lane, mask=e + k.lane < end, cache="nc") for e in first]

        def stride(e, j):
            tile = k.shr(j, c.shift) - low
            f(e + k.lane, j, tile, (e + k.lane < end) & k.below(tile, high - low + 1))

        for e, j in zip(first, columns, strict=True):
            k.if_(e < end, lambda e=e, j=j: stride(e, j))

    k.for_(k.load(shared, PTR) + 32 * k.warp, end, unroll * k.threads, some)


def _row(k, c, shared, e):
    """The row, 0 .. nt - 1, whose entries hold place e, by bisection."""
    row, step = k.const(0), c.nt // 2
    while step:
        row = k.where(k.load(shared, PTR + row + step) <= e, row + step, row)
        step //= 2
    return row


def _number(k, c, shared, g, base, low, high):
    """Replaces the counters by numbers of tiles, from 0 on, or -1 for entries that move to the
    remainder; returns the number of tiles."""

    def some(i0, running):
        i = i0 + k.thread
        valid = i <= high - low
        dense = valid & (k.load(shared, COUNTERS + i, mask=valid) > c.limit)
        votes = k.ballot(dense)
        k.sync()
        before, total = warps_before(k, shared, k.popc(votes), SUMS)
        number = running + before + k.lanes_below(votes)
        k.store(shared, COUNTERS + i, k.where(dense, number, -1), mask=valid)
        k.store(g.tile_minor, base + number, low + i, mask=dense)
        return running + total

    (dense,) = k.for_(0, high - low + 1, k.threads, some, 0)
    k.sync()
    return dense


def _write_bits(k, c, shared, g, base, low, high):
    def entry(e, j, tile, valid):
        number = k.load(shared, COUNTERS + tile, mask=valid, other=-1)
        valid = valid & (number >= 0)
        word = ((base + number) * c.nt + _row(k, c, shared, e)) * c.each
        word = k.where(valid, word + k.shr(j & (c.nt - 1), 5), -1)
        bits = k.bit(j & (min(c.nt, 32) - 1))
        for d in (1, 2, 4, 8, 16):
            same = (k.lane >= d) & (k.shfl_up(word, d) == word)
            bits = bits | k.where(same, k.shfl_up(bits, d), 0)
        last = valid & ((k.lane == 31) | (k.shfl(word, (k.lane + 1) & 31) != word))
        k.reduce("or", g.words, word, bits, mask=last)

    _entries(k, c, shared, g.indices, low, high, entry)


def _write_rest(k, c, shared, g, b, low, high):
    """Writes the remainder: entries of the window outside of tiles, in order, a warp a row."""

    def row(r):
        start, end = k.load(shared, PTR + r), k.load(shared, PTR + r + 1)
        first = k.load(g.rest_ptr, k.minimum(b * c.nt + r, c.m), cache="nc")

        def some(e0, place):
            at = [e0 + 32 * u + k.lane for u in range(UNROLL)]
            columns = [k.load(g.indices, e, mask=e < end, cache="nc") for e in at]
            for e, j in zip(at, columns, strict=True):
                tile = k.shr(j, c.shift) - low
                valid = (e < end) & k.below(tile, high - low + 1)
                mine = valid & (k.load(shared, COUNTERS + tile, mask=valid) < 0)
                votes = k.ballot(mine)
                k.store(g.rest_minor, place + k.lanes_below(votes), j, mask=mine)
                place = place + k.popc(votes)
            return place

        (place,) = k.for_(start, end, 32 * UNROLL, some, first + k.load(shared, ROWS + r))
        k.store(shared, ROWS + r, place - first, mask=k.lane == 0)

    k.for_(k.warp, c.nt, k.threads // 32, row)
