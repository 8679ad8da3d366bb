"""Host side of row bins: cut rows into segments, put segments of like length into dense blocks.

The widths of the blocks are chosen by dynamic programming over the histogram of lengths, exact for
the cost model `blocks * launch + slots`. All of it is vectorised over rows and segments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

# Widths a bin may have: every width up to 8 and about four in each octave above.
WIDTHS = (
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    10,
    12,
    14,
    16,
    20,
    24,
    28,
    32,
    40,
    48,
    56,
    64,
    80,
    96,
    112,
    128,
    160,
    192,
    224,
    256,
)


class Bin(NamedTuple):
    """One block of segments of equal padded width.

    `by_column` blocks lie slot-major in memory, (width, count), and are folded by an unrolled
    chain; the others lie row-major, (count, width), and are folded by reducing the minor axis.
    """

    width: int
    count: int
    least: int  # every segment has so many entries: their slots need no mask
    by_column: bool


class Tuning(NamedTuple):
    """What the plan of a layout depends on besides the lengths of the rows.

    `launch` is the cost of one more bin in slots; widths up to `unroll` are folded by an unrolled
    chain; longer rows than `segment` are cut.
    """

    unroll: int
    segment: int
    launch: int


TUNING = {"cpu": Tuning(16, 256, 3_000), "gpu": Tuning(8, 256, 300_000)}


class Plan(NamedTuple):
    """How the rows of one level are cut into segments and the segments put into bins.

    starts, lengths: (segments,) in the order of the bins. position: (segments,) numbered along the
    rows -> place in the order of the bins. first, pieces: (rows,) the first segment of each row,
    numbered along the rows, and how many segments it has.
    """

    starts: np.ndarray
    lengths: np.ndarray
    bins: tuple[Bin, ...]
    position: np.ndarray
    first: np.ndarray
    pieces: np.ndarray


def plan_bins(start: np.ndarray, length: np.ndarray, tuning: Tuning) -> Plan:
    """Cut rows (start, length) into segments and distribute these over bins.

    If one bin of all rows in their own order, empty ones included, costs no more than the best bins
    and one gather to bring their results back, it is taken: meshes and stencils.
    """
    pieces = -(-length // tuning.segment)
    first = np.cumsum(pieces) - pieces
    row = np.repeat(np.arange(length.size), pieces)
    offset = (np.arange(row.size) - first[row]) * tuning.segment
    starts = start[row] + offset
    lengths = np.minimum(length[row] - offset, tuning.segment)
    widths, cost = _choose_widths(lengths, tuning)
    widest = int(length.max(initial=0))
    if 0 < widest <= tuning.segment and length.size * (widest - 1) <= cost - tuning.launch:
        own = np.arange(length.size)
        return Plan(start, length, (_bin(widest, length, tuning),), own, own, np.ones_like(own))
    if not widths:
        return Plan(starts, lengths, (), row, first, pieces)
    in_bin = np.searchsorted(widths, lengths).astype(np.uint8)
    order = np.argsort(in_bin, kind="stable")
    position = np.empty(row.size, np.int64)
    position[order] = np.arange(row.size)
    starts, lengths = starts[order], lengths[order]
    ends = np.cumsum(np.bincount(in_bin, minlength=len(widths)))[:-1]
    bins = [_bin(w, part, tuning) for w, part in zip(widths, np.split(lengths, ends), strict=True)]
    return Plan(starts, lengths, tuple(bins), position, first, pieces)


def _bin(width: int, lengths: np.ndarray, tuning: Tuning) -> Bin:
    return Bin(width, lengths.size, int(lengths.min()), width <= tuning.unroll)


def _choose_widths(lengths: np.ndarray, tuning: Tuning) -> tuple[list[int], float]:
    """The widths that minimise `bins * launch + slots` by dynamic programming, and that cost."""
    candidates = [w for w in WIDTHS if w < tuning.segment] + [tuning.segment]
    up_to = np.cumsum(np.bincount(lengths, minlength=tuning.segment + 1))
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


def blocks_of(segments: Any, bins: tuple[Bin, ...], of_block: Callable, xp: Any) -> Any:
    """Concatenate over the bins of_block(segments of the bin, slot numbers), in memory order."""
    parts, begin = [], 0
    for bin_ in bins:
        own = segments[begin : begin + bin_.count]
        begin += bin_.count
        slot = xp.arange(bin_.width, dtype=own.dtype)
        if bin_.by_column:
            parts.append(of_block(own[None, :], slot[:, None]).reshape(-1))
        else:
            parts.append(of_block(own[:, None], slot[None, :]).reshape(-1))
    return xp.concatenate(parts) if parts else xp.zeros(0, segments.dtype)


def slots_of(starts: Any, bins: tuple[Bin, ...], xp: Any) -> Any:
    """(slots,) entry that each slot reads; in padding slots whatever follows the segment."""
    return blocks_of(starts, bins, lambda start, slot: start + slot, xp)


def filled(lengths: Any, bins: tuple[Bin, ...], xp: Any) -> Any:
    """(slots,) whether a slot holds an entry."""
    return blocks_of(lengths, bins, lambda length, slot: slot < length, xp)
