"""How row bins are made: rows cut into segments, segments of like length put into dense blocks.

The widths of the blocks are chosen on the host, by dynamic programming over the histogram of
lengths, exact for the cost model `blocks * launch + slots`. One program computes histograms,
another fills the arrays, by sorts and prefix sums. Arrays of NumPy stay with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from pallas_kernels.layouts.ragged import (
    argsort,
    by_falling,
    count_of,
    inverse,
    module_of,
    owners,
    placed,
    program,
    starts_of,
    take,
    write,
)

from ...._core.indices import bucketed

I32 = jnp.int32
# Widths a bin may have: every width up to 8 and about four in each octave above.
WIDTHS = (*range(1, 9), *(step << k for k in range(1, 6) for step in (5, 6, 7, 8)))


class Bin(NamedTuple):
    """One block of segments of equal padded width.

    `by_column` blocks lie slot-major in memory, (width, count), and are folded by an unrolled
    chain; the others lie row-major, (count, width), and are folded by reducing the minor axis.
    """

    width: int
    count: int
    least: int  # every segment has so many entries, spare ones too: their slots need no mask
    by_column: bool


class Tuning(NamedTuple):
    """The parameters of a plan other than the lengths of the rows.

    `launch` is the cost of one more bin in slots; widths up to `unroll` are folded by an unrolled
    chain; longer rows than `segment` are cut.
    """

    unroll: int
    segment: int
    launch: int


GPU = Tuning(8, 256, 300_000)


class Plan(NamedTuple):
    """How the rows of one level are cut into segments and the segments put into bins.

    starts, lengths: (slots of segments,) in the order of the bins, spare segments at the end of
    each. position: (segments,) numbered along the rows -> place in the order of the bins. first,
    pieces: (rows,) the first segment of each row, numbered along the rows, and how many it has.
    """

    starts: Any
    lengths: Any
    position: Any
    first: Any
    pieces: Any


def bins_of(counts: np.ndarray, rows: int | None, tuning: Tuning) -> tuple[tuple[Bin, ...], bool]:
    """The bins of segments, counts[k] of k entries, and whether one of all rows is better.

    One bin of all rows in their own order, empty ones included, is taken if it costs no more than
    the best bins and one gather to bring their results back: meshes and stencils. rows: how many,
    none of which was cut, or None where some were. Otherwise a bin holds a rounded number of
    segments, so that few shapes occur.
    """
    widths, cost = _choose_widths(counts, tuning)
    widest = int(np.flatnonzero(counts)[-1]) if counts.any() else 0
    if rows is not None and widest and rows * (widest - 1) <= cost - tuning.launch:
        full = counts[widest] == rows  # of a stencil; few numbers, so that graphs share programs
        least = widest if full else 0
        return (Bin(widest, rows, least, widest <= tuning.unroll),), True
    bins, below = [], 0
    for width in widths:
        count = int(counts[below + 1 : width + 1].sum())
        wider = min(1 << (width - 1).bit_length(), tuning.segment)  # up to a launch of spare slots
        if width == widths[-1] and count * (wider - width) <= tuning.launch:
            width = wider
        few = 1 << max(tuning.launch // width, 1).bit_length() - 1
        count = bucketed(max(count, few))
        bins.append(Bin(width, count, below + 1, width <= tuning.unroll))
        below = width
    return tuple(bins), False


def _choose_widths(counts: np.ndarray, tuning: Tuning) -> tuple[list[int], float]:
    """The widths that minimise `bins * launch + slots` by dynamic programming, and that cost."""
    candidates = [w for w in WIDTHS if w < tuning.segment] + [tuning.segment]
    up_to = np.cumsum(counts)
    below = [0, *up_to[candidates].tolist()]
    cost, previous = [0.0], [0]
    for j, width in enumerate(candidates, start=1):
        options = [
            cost[i] + (tuning.launch + (below[j] - below[i]) * width if below[j] > below[i] else 0)
            for i in range(j)
        ]
        previous.append(int(np.argmin(options)))
        cost.append(options[previous[-1]])
    widths, j = [], len(candidates)
    while j > 0:
        if below[j] > below[previous[j]]:
            widths.append(candidates[j - 1])
        j = previous[j]
    return widths[::-1], cost[-1]


def blocks_of(segments: Any, bins: tuple[Bin, ...], of_block: Callable) -> Any:
    """Concatenate over the bins of_block(segments of the bin, slot numbers), in memory order."""
    xp, parts, begin = module_of(segments), [], 0
    for bin_ in bins:
        own = segments[begin : begin + bin_.count]
        begin += bin_.count
        slot = xp.arange(bin_.width, dtype=own.dtype)
        pair = (own[None, :], slot[:, None]) if bin_.by_column else (own[:, None], slot[None, :])
        parts.append(of_block(*pair).reshape(-1))
    return xp.concatenate(parts) if parts else xp.zeros(0, segments.dtype)


def slots_of(starts: Any, bins: tuple[Bin, ...]) -> Any:
    """(slots,) entry that each slot reads; in padding slots whatever follows the segment."""
    return blocks_of(starts, bins, lambda start, slot: start + slot)


def filled(lengths: Any, bins: tuple[Bin, ...]) -> Any:
    """(slots,) whether a slot holds an entry."""
    return blocks_of(lengths, bins, lambda length, slot: slot < length)


def columns_of(
    indices: Any, starts: Any, lengths: Any, number: Any, bins: tuple[Bin, ...], n_cols: int
) -> Any:
    """(slots,) int32, number[column] of each slot, or the column; n_cols in padding."""
    xp = module_of(indices)
    if not bins or indices.shape[0] == 0:
        return xp.full(sum(b.width * b.count for b in bins), n_cols, np.int32)
    entries = xp.minimum(slots_of(starts, bins), indices.shape[0] - 1)
    columns = indices[entries]
    if number is not None:
        columns = number[xp.clip(columns, 0, n_cols - 1)]
    return xp.where(filled(lengths, bins), columns, n_cols).astype(np.int32)


def levels_for(entries: int, segment: int) -> int:
    """Levels after which a row of so many entries is one value, at least 2."""
    levels = 1
    while segment**levels < entries:
        levels += 1
    return max(levels, 2)


@program(static=("segment", "levels", "n_cols", "skew"))
def sizes(indptr: Array, indices: Array, *, segment: int, levels: int, n_cols: int, skew: bool):
    """int32[levels, segment + 1], segments by length of each level; int32[2], the entries of the
    sixteenth of the columns that holds most, and of all (with `skew`, else zeros)."""
    xp, rows = module_of(indptr), []
    length = xp.diff(indptr)
    for _ in range(levels):
        rest = length % segment
        counts = count_of(xp.where(rest > 0, rest, segment + 1), segment + 1)
        whole = xp.arange(segment + 1) == segment
        rows.append(counts + whole * xp.sum(length // segment, dtype=I32))
        length = xp.where(length > segment, -(-length // segment), 0)
    top = xp.zeros(2, I32)
    if skew:
        degree = xp.sort(_degrees(indptr, indices, n_cols))
        top = xp.stack([xp.sum(degree[-max(n_cols // 16, 1) :]), indptr[-1]])
    return xp.stack(rows), top


@program(static=("n_cols",))
def column_order(indptr: Array, indices: Array, *, n_cols: int) -> Array:
    """int32[n_cols]: columns by falling number of entries."""
    return by_falling(_degrees(indptr, indices, n_cols))


def _degrees(indptr, indices, n_cols):
    xp = module_of(indptr)
    valid = xp.arange(indices.shape[0], dtype=I32) < indptr[-1]
    return count_of(xp.where(valid, indices, n_cols), n_cols)


@program(static=("blocks", "own", "segment", "n_cols"))
def arranged(
    indptr: Array,
    indices: Array,
    order: Array | None,
    *,
    blocks: tuple[tuple[Bin, ...], ...],
    own: bool,
    segment: int,
    n_cols: int,
) -> tuple[Any, ...]:
    """(columns, starts, folds, place) of `RowBins`; blocks: the bins of each level; own: one bin
    has all rows, in their order."""
    xp, number = module_of(indptr), None if order is None else inverse(order)
    starts, lengths = indptr[:-1], xp.diff(indptr)
    if own:
        return columns_of(indices, starts, lengths, number, blocks[0], n_cols), starts, (), None
    plan = bottom = _cut(starts, lengths, blocks[0], segment)
    columns = columns_of(indices, bottom.starts, bottom.lengths, number, blocks[0], n_cols)
    place, results, folds = _placed(plan, 0, None), plan.starts.shape[0], []
    for bins in blocks[1:]:
        below = plan
        longer = xp.where(below.pieces > 1, below.pieces, 0)
        plan = _cut(below.first, longer, bins, segment)
        inputs = take(below.position, slots_of(plan.starts, bins))
        present = filled(plan.lengths, bins)
        folds.append(xp.where(present, inputs, below.starts.shape[0]))
        place, results = _placed(plan, results, place), results + plan.starts.shape[0]
    return columns, bottom.starts, tuple(folds), xp.where(place < 0, results, place)


def _placed(plan: Plan, results: int, place: Array | None) -> Array:
    """The place of each row in all results: those that end at this level are new."""
    here = results + take(plan.position, plan.first)
    return module_of(here).where(plan.pieces == 1, here, -1 if place is None else place)


def _cut(start: Array, length: Array, bins: tuple[Bin, ...], segment: int) -> Plan:
    """The rows (start, length) cut into segments, and these distributed over bins."""
    xp = module_of(length)
    size = sum(b.count for b in bins)
    pieces = -(-length // segment)
    first = starts_of(pieces)
    row = owners(first[1:], size)
    offset = (xp.arange(size, dtype=I32) - take(first, row)) * segment
    starts, lengths = take(start, row) + offset, xp.minimum(take(length, row) - offset, segment)
    valid = row < length.shape[0]
    in_bin = xp.full(size, len(bins), xp.uint32)
    for k in reversed(range(len(bins))):
        in_bin = xp.where(valid & (lengths <= bins[k].width), xp.uint32(k), in_bin)
    order = argsort(in_bin)
    begin, before, shift = 0, xp.int32(0), []
    for k, bin_ in enumerate(bins):
        shift.append(begin - before)
        begin, before = begin + bin_.count, before + xp.sum(in_bin == k, dtype=I32)
    shift = xp.stack([*shift, xp.int32(size)])  # what stands for no segment is dropped
    target = xp.arange(size, dtype=I32) + take(shift, take(in_bin, order))
    position = placed(size, 0, order, target)
    least = [xp.full(b.count, b.least, I32) for b in bins]
    spaced = placed(size, 0, target, take(starts, order))
    least = xp.concatenate([*least, xp.zeros(0, I32)])
    lengths = write(least, target, take(lengths, order))
    return Plan(spaced, lengths, position, first[:-1], pieces)
