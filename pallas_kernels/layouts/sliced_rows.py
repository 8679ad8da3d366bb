"""The layout of the PageRank kernel, computed once per graph on its device: one program sorts the
rows and returns the sizes of the arrays, a second one fills the arrays.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..simt.device import resident_ctas
from .adjacency import LOW_MAX, breadth_first_order, degree_sizes
from .ragged import (
    I32,
    argsort,
    by_falling,
    count_of,
    inverse,
    loop,
    module_of,
    of_numbers,
    owners,
    owners_from,
    piece_of,
    placed,
    program,
    starts_of,
    take,
    within,
    write,
)

LANES = 32
THREAD_ROWS = (16, 128)  # bounds of `thread_row`: longer rows are summed by a warp
WINDOW = 4096  # rows are sorted by length within windows of so many
SEGMENTS = (512, 8192)  # bounds of the entries of a segment of a long row, which one warp sums
ORDERS = ("degree", "breadth_first")


class Sizes(NamedTuple):
    """Of the arrays: positions before the slices, slices, items, splits, entries."""

    base: int
    slices: int
    items: int
    splits: int
    entries: int


def prepare_pagerank(
    in_indptr,
    in_indices,
    weights=None,
    *,
    out_degree=None,
    order="degree",
    thread_row=None,
    rounded: Callable[[int], int] = int,
    sizes: np.ndarray | None = None,
) -> dict[str, jax.Array]:
    """Arrays for `pagerank(..., prepared=)`, from the CSR of A transposed (in-edges); eager, on the
    device of the graph.

    Vertices are numbered anew by `order`: "degree" (most gathered first: the shares of hubs stay in
    the L1 cache) or "breadth_first" (neighbours get similar numbers). Rows are ordered by position:
    first those of more than `thread_row` entries, longest first, then the others in slices of 32
    rows of about equal length, one a lane.

    numbers int32[positions]: number of the row at each position, n for padding; vertices
    int32[positions]: the vertex, n for padding; entries int32[m]: numbers of in-neighbours, n for
    padding, which stands for a share of 0; values[m], float32 or int32, where weights are given;
    items int32[k, 4]: (start, end, position, split) of a row or of a segment of one, split is the
    place in splits int32[s, 2] of (first item, number of items), or -1; starts int32[slices + 1]:
    entry j of the row of lane l of slice s is at starts[s] + 32 j + l; counts int32[2]: numbers of
    items and of slices without padding. rounded: rounds the sizes of arrays up, so that similar
    graphs share a program; padding items are empty, at a position without a row. sizes:
    `degree_sizes(in_indptr)`, if known.
    """
    if order not in ORDERS:
        raise ValueError(f"`order` must be 'degree' or 'breadth_first'; got {order!r}.")
    in_indptr, in_indices = of_numbers(in_indptr), of_numbers(in_indices)
    if out_degree is not None:
        out_degree = of_numbers(out_degree)
    sizes = degree_sizes(in_indptr) if sizes is None else sizes
    largest, nnz = np.asarray(sizes)[:2].tolist()
    share = nnz / (32 * resident_ctas())  # of a warp of the GPU, of all entries
    if thread_row is None:  # no slice has more than half of it
        thread_row = int(np.clip(share / (2 * LANES), *THREAD_ROWS))
    segment = int(np.clip(1 << int(np.ceil(np.log2(max(1, share)))), *SEGMENTS))
    by_number = None
    if order == "breadth_first":
        widest = max(LOW_MAX, 1 << max(largest - 1, 0).bit_length())
        by_number = breadth_first_order(in_indptr, in_indices, widest)
    bounds = np.int32(thread_row), np.int32(segment)
    given = in_indptr, in_indices, out_degree, by_number
    rows, found, padded = _sorted_rows(*given, *bounds, order=order)
    found, padded = jax.device_get((found, padded))
    if padded >= 2**31 * (1 - 1e-6):
        raise ValueError(
            f"`in_indptr` ends at {nnz}: with padding that is {padded:.0f} entries, "
            "more than int32 can count"
        )
    long, items, splits, entries = (int(x) for x in found)
    n = in_indptr.shape[0] - 1
    k = rounded(items) if items else 0
    groups = -(-(long + (k > items)) // LANES)
    slices = -(-(n - long) // LANES)
    weights = None if weights is None else module_of(weights).asarray(weights)
    static = Sizes(
        base=LANES * rounded(groups) if groups else 0,
        slices=rounded(slices) if slices else 0,
        items=k,
        splits=rounded(splits) if splits else 0,
        entries=rounded(max(1, entries)),
    )
    sorted_rows = in_indptr, in_indices, weights, rows, np.int32(long), np.int32(segment)
    counts = module_of(in_indptr).array((items, -(-(n - long) // LANES)), I32)
    return {**_filled(*sorted_rows, static=static), "counts": counts}


def weights_of_vertices(out_indptr, weights) -> jax.Array | None:
    """The common weight of the out-edges of each vertex (0 if it has none), or None if some differ.

    Weights of 4 bytes in the order of the CSR of A; compared bit by bit.
    """
    weights = module_of(weights).asarray(weights)
    first, same = _first_weights(of_numbers(out_indptr), weights)
    return first if bool(same) else None


@program
def _first_weights(indptr, weights):
    xp, n = module_of(indptr), indptr.shape[0] - 1
    if weights.shape[0] == 0:
        return xp.zeros(n, weights.dtype), xp.bool_(True)
    first = take(weights, indptr[:-1])
    row = owners(indptr[1:], weights.shape[0])
    words, own = (x.view(I32) for x in (weights, first))
    same = xp.all((row >= n) | (take(own, row) == words))
    return xp.where(xp.diff(indptr) > 0, first, xp.zeros((), weights.dtype)), same


@program(static=("order",))
def _sorted_rows(indptr, indices, out_degree, by_number, thread_row, segment, *, order):
    """((by_number, rows), (long rows, items, splits, entries), entries as a float).

    by_number: vertices in the order of their new numbers. rows: numbers in the order of their
    positions, those of long rows first.
    """
    xp, n = module_of(indptr), indptr.shape[0] - 1
    if order == "degree":
        degree = count_of(indices, n) if out_degree is None else out_degree
        by_number = by_falling(degree)
    length = xp.diff(indptr)[by_number]
    rows = _positions(length, order, thread_row)
    length = length[rows]
    is_long = length > thread_row
    long = xp.sum(is_long, dtype=I32)
    parts = xp.where(is_long, -(-length // segment), 0)
    slice_of = xp.where(is_long, n, (xp.arange(n, dtype=I32) - long) // LANES)
    widths = write(xp.zeros(-(-n // LANES), I32), slice_of, length, "max")
    counts = (LANES * widths, xp.where(is_long, length, 0))
    entries = sum(xp.sum(c, dtype=I32) for c in counts)
    padded = sum(xp.sum(c.astype(xp.float32)) for c in counts)
    sizes = xp.stack([long, xp.sum(parts), xp.sum(parts > 1, dtype=I32), entries])
    return (by_number, rows), sizes, padded


def _positions(length, order, thread_row):
    """Numbers of the rows in the order of their positions."""
    if order == "degree":  # any order of rows has good locality
        return by_falling(length)
    # the other order needs similar numbers together: sort only within windows
    xp, is_long = module_of(length), length > thread_row
    window = (xp.cumsum(~is_long, dtype=I32) - 1) // WINDOW
    most = 1 << THREAD_ROWS[1].bit_length()
    short = xp.uint32(1 << 31) + (window * most + (most - 1 - length)).astype(xp.uint32)
    return argsort(xp.where(is_long, (2**31 - 1 - length).astype(xp.uint32), short))


@program(static=("static",))
def _filled(indptr, indices, weights, rows, long, segment, *, static):
    xp, (by_number, by_position) = module_of(indptr), rows
    base, slices, items, splits, entries = static
    n, positions = indptr.shape[0] - 1, base + LANES * slices
    place = xp.arange(n, dtype=I32)
    place = xp.where(place < long, place, base + place - long)
    numbers = placed(positions, n, place, by_position)
    vertices = xp.where(numbers < n, take(by_number, numbers), n)
    length = xp.where(numbers < n, take(xp.diff(indptr), vertices), 0)
    widths = xp.max(length[base:].reshape(-1, LANES), axis=1, initial=0)
    begin = starts_of(length[:base])
    starts = begin[-1] + starts_of(LANES * widths)
    item, split = _items(length[:base], begin, segment, items, splits)
    out = {"numbers": numbers, "vertices": vertices, "items": item, "splits": split}

    lane = xp.arange(LANES, dtype=I32)
    origin = xp.concatenate([begin[:-1], (starts[:-1, None] + lane).reshape(-1)])
    of_vertex = placed(n, 0, vertices, xp.arange(positions, dtype=I32))
    number, count = inverse(by_number), indptr[-1]
    out["starts"] = starts
    out["entries"] = xp.full(entries, n, I32)
    if weights is not None:
        dtype = jnp.int32 if weights.dtype == jnp.int32 else jnp.float32
        out["values"] = xp.zeros(entries, dtype)
    capacity = piece_of(indices.shape[0])

    def piece(state):
        begin, *arrays = state
        valid, slot = within(begin, count, capacity)
        row = owners_from(indptr[1:], begin, capacity)
        position = take(of_vertex, row)
        step = xp.where(position < base, 1, LANES)
        target = take(origin, position) + step * (slot - take(indptr, row))
        target = xp.where(valid, target, entries)
        found = [take(number, take(indices, slot))]
        if weights is not None:
            found.append(take(weights, slot).astype(dtype))
        filled = [write(a, target, new) for a, new in zip(arrays, found, strict=True)]
        return xp.where(count - begin > capacity, begin + capacity, count), *filled

    if indices.shape[0] > 0:
        names = [name for name in ("entries", "values") if name in out]
        start = xp.int32(0), *(out[name] for name in names)
        _, *filled = loop(lambda state: state[0] < count, piece, start)
        out |= dict(zip(names, filled, strict=True))
    return out


def _items(length, begin, segment, items, splits):
    """Items and splits of the long rows; the segments of a row are consecutive items."""
    xp, base = module_of(length), length.shape[0]
    parts = -(-length // segment)
    first = starts_of(parts)
    number = xp.arange(items, dtype=I32)
    position = owners(first[1:], items)
    valid = position < base
    start = take(begin, position) + (number - take(first, position)) * segment
    end = xp.minimum(start + segment, take(begin, position + 1))
    split_of = xp.where(parts > 1, xp.cumsum(parts > 1, dtype=I32) - 1, -1)
    columns = (
        xp.where(valid, start, 0),
        xp.where(valid, end, 0),
        xp.minimum(position, base - 1),
        xp.where(valid, take(split_of, position), -1),
    )
    pairs = xp.stack([first[:-1], parts], 1)
    where = xp.where(parts > 1, split_of, splits)
    return xp.stack(columns, 1), write(xp.zeros((splits, 2), I32), where, pairs)
