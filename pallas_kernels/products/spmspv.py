"""Sparse matrix times sparse vector in one launch: by columns (push), and by tiles.

Both combine products by atomics in a dense accumulator and set a bit for each row that has one;
then every CTA writes the entries of its stretch of rows in ascending order. Phases, with a grid
barrier between them: clear, and list the long ranges; multiply, and pad the result; count, exchange
the counts, write. For few products, push has another form without barriers (`spmspv_small.py`).

Push. A warp takes up to 32 entries of x and walks their columns 128 entries at a time; long columns
are cut into pieces that any warp takes. Traffic: 4 to 8 bytes and an atomic an entry of those
columns, 8 bytes a row of the accumulator, 4 a slot of the result.

Tile (Ji et al., "TileSpMSpV", ICPP 2022, Algorithm 4). x becomes a bitmap and dense values, so a
tile of x is empty if its nt bits are 0. A warp takes rows of tiles and looks at 128 tiles at a
time; those whose tile of x is not empty have their entries flattened over the lanes. Long rows of
tiles are cut like long columns. The remainder takes part in the same phase. Traffic: 4 bytes and a
gather a tile, 1 (nt = 16) or 2 bytes an entry of the tiles whose tile of x is not empty, 4 bytes
and an atomic for each product.

Measured (H200), a FEM-like matrix of 48.6M entries, x of density 0.1 / 0.01 / 0.001: push 64 / 23 /
14 us, tiles 186 / 71 / 32 (cuSPARSE's SpMV 137).
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..rows.flatten import Ranges, flatten, piece_capacity
from ..simt.device import extent
from ..simt.launch import CONTROL_WORDS, launch
from ..simt.scalar_jaxpr import KINDS, evaluate, trace
from . import spmspv_small
from .sparse_result import SparseResult, accumulator_dtype, shared_words

THREADS = 1024
PIECES = 40  # control word: pieces of long ranges
# `spmspv_small` is considered if x has at most LIKELY products, estimated from the mean column, and
# used if a CTA walks at most FEW
LIKELY, FEW = 65_536, 32_768
TILE_UNROLL = 1  # strides of 32 tiles in flight: each carries a copy of the loop over entries


class Entries(NamedTuple):
    """x: its first `count` entries, of indices int32[k] and data[k], float32 or int32."""

    indices: jax.Array
    data: jax.Array
    count: jax.Array

    def operands(self):
        x = {"x_indices": self.indices, "x_data": self.data}
        return x | {"x_count": jnp.atleast_1d(self.count)}


class Result(NamedTuple):
    """y[rows], sums of mul(a, x) with a capacity of nse entries.

    add: "add", "min" or "max". mul: a function of scalars that `scalar_jaxpr.refuse` accepts.
    allowed uint32[ceil(rows / 32)]: bits of the rows that may be written; None: all.
    """

    rows: int
    nse: int
    add: str
    mul: Callable
    allowed: jax.Array | None = None

    def operands(self):
        return {} if self.allowed is None else {"allowed": self.allowed}


class Tiles(NamedTuple):
    """A matrix in tiles of nt x nt, as jaxspv.Tiled has it.

    tile_ptr int32[ceil(rows / nt) + 1], tile_col int32[t], slot_ptr int32[t + 1]; packed uint32
    words of 8-bit (nt = 16) or 16-bit local indices nt * row + column; data: the entries of the
    tiles, then those of the remainder at (rest_row, rest_col), of which rows past the end are
    padding.
    """

    tile_ptr: jax.Array
    tile_col: jax.Array
    slot_ptr: jax.Array
    packed: jax.Array
    data: jax.Array
    rest_row: jax.Array
    rest_col: jax.Array
    nt: int
    columns: int


class _Job(NamedTuple):
    """The static parameters of one launch; capacity: of the list of pieces.

    Of a push: the entries of x up to which `spmspv_small` is considered; ascending: see
    `spmspv_push`. Of tiles: nt; n: columns; down: rows of tiles; rest: entries outside of tiles,
    from first_rest on.
    """

    m: int
    nse: int
    add: str
    mul: Any
    dtype: Any
    kind: str
    x_kind: str
    capacity: int
    entries: int = 0
    ascending: bool = False
    nt: int = 0
    n: int = 0
    down: int = 0
    rest: int = 0
    first_rest: int = 0


def spmspv_push(
    indptr: jax.Array,
    indices: jax.Array,
    data: jax.Array,
    x: Entries,
    result: Result,
    *,
    ascending: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """(indices int32[nse], data[nse], count int32, failed int32) of y = add_j mul(A[:, j], x[j]).

    indptr int32[n + 1], indices int32[e], data[e], float32 or int32: the columns of A. ascending:
    the rows of a column ascend. indices is `rows` past the count, data arbitrary. failed is 1 where
    the result does not fit into nse (the first entries are right then) or a grid barrier expired
    (nothing is).
    """
    likely = LIKELY * (indptr.shape[0] - 1) // indices.shape[0]
    entries = min(likely, spmspv_small.PARTS * extent(threads=THREADS)["threads"])
    job = _job(data, x, result, indices, entries=entries, ascending=ascending)
    operands = {"indptr": indptr, "indices": indices, "data": data}
    return _launch(_push, job, operands | x.operands() | result.operands(), {})


def _column(k, g):
    """column(i, mask): begin and end of the column of entry i of x, and the bits of its value."""

    def column(i, mask):
        j = k.load(g.x_indices, i, mask=mask, cache="nc")
        start, end = k.row(g.indptr, j, mask)
        return start, end, k.bits(k.load(g.x_data, i, mask=mask, cache="nc"), "i32")

    return column


def _term(k, c, g):
    """term(places, valid): rows of these entries of A, and a function that gives their products."""

    def term(places, valid):
        rows = k.load(g.indices, places, mask=valid, other=c.m, cache="nc")

        def values(x, mask):
            a = k.load(g.data, places, mask=mask, cache="nc")
            return evaluate(k, c.mul, a, k.bits(x, c.x_kind))

        return rows, values

    return term


def _push(k, c, g, control, y, pad):
    count, column = k.load(g.x_count, 0), _column(k, g)
    ranges = Ranges(k, count, column, g.pieces, c.capacity, control, PIECES)
    ranges.cut()
    _, pieces = k.grid_barrier(control, [(control, PIECES)], meanwhile=pad)

    def entries(places, valid, x):
        row, values = _term(k, c, g)(places, valid)
        valid = y.allowed_at(row, valid & k.below(row, c.m))
        y.combine(row, values(x, valid), valid)

    ranges.run(pieces, entries)


def spmspv_tile(
    tiles: Tiles, x: Entries, result: Result
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """The result of `spmspv_push` for a matrix in tiles."""
    rest, columns = tiles.rest_row.shape[0], tiles.columns
    sizes = {"nt": tiles.nt, "n": columns, "down": tiles.tile_ptr.shape[0] - 1}
    sizes |= {"rest": rest, "first_rest": tiles.data.shape[0] - rest}
    job = _job(tiles.data, x, result, tiles.tile_col, **sizes)
    operands = {name: a for name, a in tiles._asdict().items() if name not in ("nt", "columns")}
    padded = -(-columns // 64) * 64
    more = {"x_dense": (padded, x.data.dtype), "x_bits": padded // 32}
    return _launch(_tile, job, operands | x.operands() | result.operands(), more)


def _tile(k, c, g, control, y, pad):
    words = -(-c.n // 64) * 2
    k.spread(words, lambda i: k.store(g.x_bits, i, 0))

    def row_of_tiles(i, mask):
        return *k.row(g.tile_ptr, i, mask), i

    ranges = Ranges(k, c.down, row_of_tiles, g.pieces, c.capacity, control, PIECES, TILE_UNROLL)
    ranges.cut()
    k.grid_barrier(control, meanwhile=pad)

    def scatter(i):
        j = k.load(g.x_indices, i, cache="nc")
        k.store(g.x_dense, j, k.load(g.x_data, i, cache="nc"))
        k.reduce("or", g.x_bits, k.shr(j, 5), k.bit(j))

    k.spread(k.load(g.x_count, 0), scatter)
    _, pieces = k.grid_barrier(control, [(control, PIECES)])
    ranges.run(pieces, lambda *chunk: _tiles(k, c, g, y, *chunk))

    def rest(i):
        row, col = k.load(g.rest_row, i, cache="nc"), k.load(g.rest_col, i, cache="nc")
        valid = y.allowed_at(row, k.below(row, c.m))
        valid = valid & (k.load(g.x_bits, k.shr(col, 5), mask=valid) & k.bit(col) != 0)
        a = k.load(g.data, c.first_rest + i, mask=valid, cache="nc")
        y.combine(row, evaluate(k, c.mul, a, k.load(g.x_dense, col, mask=valid)), valid)

    k.spread(c.rest, rest)


def _tiles(k, c, g, y, place, valid, down):
    """A tile of each lane: flattens the entries of those whose tile of x is not empty."""
    col = k.load(g.tile_col, place, mask=valid, cache="nc")
    if c.nt == 16:
        half = k.load(g.x_bits, k.shr(col, 1), mask=valid)
        word = k.shr(half, (col & 1) * 16) & 0xFFFF
    elif c.nt == 32:
        word = k.load(g.x_bits, col, mask=valid)
    else:
        word = k.union(k.load_vec(g.x_bits, col * 2, 2, mask=valid))
    hit = valid & (word != 0)
    start, end = k.row(g.slot_ptr, place, hit)
    entries = functools.partial(_entries, k, c, g, y)
    flatten(k, start, k.where(hit, end - start, 0), (down * c.nt, col * c.nt), entries)


def _entries(k, c, g, y, places, valid, first_row, first_col):
    each, bits = (4, 8) if c.nt == 16 else (2, 16)
    shift = c.nt.bit_length() - 1
    packed = k.load(g.packed, k.shr(places, each.bit_length() - 1), mask=valid, cache="nc")
    local = k.shr(packed, (places & (each - 1)) * bits) & ((1 << bits) - 1)
    row, col = first_row + k.shr(local, shift), first_col + (local & (c.nt - 1))
    word = k.load(g.x_bits, k.shr(col, 5), mask=valid)
    here = y.allowed_at(row, valid & (word & k.bit(col) != 0))
    x = k.load(g.x_dense, col, mask=here)
    y.combine(row, evaluate(k, c.mul, k.load(g.data, places, mask=here, cache="nc"), x), here)


def _job(data, x, result, listed, **more):
    """The job of a launch; listed: what ranges are cut from."""
    mul = trace(result.mul, data.dtype, x.data.dtype)
    dtype = mul.out_avals[0].dtype
    kinds = KINDS[dtype.name], KINDS[jnp.dtype(x.data.dtype).name]
    capacity = piece_capacity(listed.shape[0])
    return _Job(result.rows, result.nse, result.add, mul, dtype, *kinds, capacity, **more)


def _launch(body, c, operands, more):
    form = extent(threads=THREADS)
    ctas, threads = form["ctas"], form["threads"]
    outputs = {
        "y_indices": c.nse,
        "y_data": (c.nse, c.dtype),
        "summary": 1,
        "failed": 1,
        "values": (c.m, accumulator_dtype(c.add, c.dtype)),
        "bits": -(-c.m // 32),
        "pieces": 4 * c.capacity,
        **more,
    }
    words, may_be_small = shared_words(threads), c.entries > 0 and ctas <= threads
    may_be_small = may_be_small and spmspv_small.fits(c.m, ctas, threads, words)
    if may_be_small:
        words += spmspv_small.words(c.m, ctas, threads)

    def kernel(k, g):
        shared = k.shared(shared_words(threads))
        y = SparseResult(k, c.m, c.add, c.kind, g.values, g.bits, g.allowed)

        def finish(ok, count):
            me = (k.cta == k.ctas - 1) & (k.thread == 0)
            k.store(g.summary, 0, k.minimum(count, c.nse), mask=me)
            k.store(g.failed, 0, k.cast((count > c.nse) | (ok == 0), "i32"), mask=me)

        def whole():
            y.clear()
            body(k, c, g, g.control, y, lambda: y.pad(g.y_indices, c.nse))
            (ok,) = k.grid_barrier(g.control)
            arrived, count = y.compact(
                g.control, CONTROL_WORDS, shared, g.y_indices, g.y_data, c.nse
            )
            finish(ok & arrived, count)

        if not may_be_small:
            return whole()
        own = spmspv_small.OwnRows(k, y, g.control, CONTROL_WORDS)
        count = k.load(g.x_count, 0)
        rows = g.indices if c.ascending else None
        plan = lambda: own.plan(count, _column(k, g), rows, FEW)  # noqa: E731
        (here,) = k.if_(count <= c.entries, plan, k.const(False, "i1"))
        result = (g.y_indices, g.y_data, c.nse)
        k.if_(here, lambda: finish(*own.run(_term(k, c, g), *result)))
        k.if_(~here, whole)

    out = launch(
        kernel,
        operands,
        outputs,
        **form,
        shared_words=words,
        more_control=ctas,
        name="spmspv_push" if body is _push else "spmspv_tile",
    )
    return out["y_indices"], out["y_data"], out["summary"].reshape(()), out["failed"].reshape(())
