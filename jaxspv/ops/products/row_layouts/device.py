"""Row bins in two programs: one computes histograms, another fills the arrays.

By sorts and prefix sums; the host chooses the bins in between. Arrays of NumPy stay with NumPy.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
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

from .plan import Bin, Plan, columns_of, filled, slots_of

I32 = jnp.int32


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
    """(columns, starts, folds, place) of `RowBins`; blocks: the bins of each level."""
    xp, number = module_of(indptr), None if order is None else inverse(order)
    plan = bottom = _cut(indptr[:-1], xp.diff(indptr), blocks[0], segment, own)
    columns = columns_of(indices, bottom.starts, bottom.lengths, number, blocks[0], n_cols)
    if own:
        return columns, bottom.starts, (), None
    place, results, folds = _placed(plan, 0, None), plan.starts.shape[0], []
    for bins in blocks[1:]:
        below = plan
        longer = xp.where(below.pieces > 1, below.pieces, 0)
        plan = _cut(below.first, longer, bins, segment, False)
        inputs = take(below.position, slots_of(plan.starts, bins))
        present = filled(plan.lengths, bins)
        folds.append(xp.where(present, inputs, below.starts.shape[0]))
        place, results = _placed(plan, results, place), results + plan.starts.shape[0]
    return columns, bottom.starts, tuple(folds), xp.where(place < 0, results, place)


def _placed(plan: Plan, results: int, place: Array | None) -> Array:
    """The place of each row in all results: those that end at this level are new."""
    here = results + take(plan.position, plan.first)
    return module_of(here).where(plan.pieces == 1, here, -1 if place is None else place)


def _cut(start: Array, length: Array, bins: tuple[Bin, ...], segment: int, own: bool) -> Plan:
    """The rows (start, length) cut into segments, and these distributed over bins."""
    xp = module_of(length)
    if own:
        at = xp.arange(length.shape[0], dtype=I32)
        return Plan(start, length, bins, at, at, xp.ones_like(at), True)
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
    return Plan(spaced, lengths, bins, position, first[:-1], pieces, False)
