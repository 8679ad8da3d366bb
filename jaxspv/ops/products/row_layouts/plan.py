"""Host side of row bins: cut rows into segments, put segments of like length into dense blocks.

The widths of the blocks are chosen by dynamic programming over the histogram of lengths, exact for
the cost model `blocks * launch + slots`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pallas_kernels.layouts.ragged import module_of

from ...._core.indices import bucketed

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
    own: whether the results are those of the rows, in their order.
    """

    starts: Any
    lengths: Any
    bins: tuple[Bin, ...]
    position: Any
    first: Any
    pieces: Any
    own: bool


def bins_of(
    counts: np.ndarray, rows: int | None, tuning: Tuning, rounded: bool = True
) -> tuple[tuple[Bin, ...], bool]:
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
        if rounded:  # up to a launch of spare slots
            wider = min(1 << (width - 1).bit_length(), tuning.segment)
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
        if bin_.by_column:
            parts.append(of_block(own[None, :], slot[:, None]).reshape(-1))
        else:
            parts.append(of_block(own[:, None], slot[None, :]).reshape(-1))
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
