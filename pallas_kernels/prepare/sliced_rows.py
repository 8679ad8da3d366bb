"""What the PageRank kernel wants computed once per graph, on the host with NumPy."""

import numpy as np

from .adjacency import breadth_first_order

LANES = 32
THREAD_ROWS = (16, 128)  # least and most entries up to which a row is summed by one thread
WINDOW = 4096  # rows among which those of equal length are put side by side
SEGMENTS = (512, 8192)  # least and most entries of a long row that one warp sums
WARPS = 132 * 32  # among which the segments are spread


def prepare_pagerank(
    in_indptr, in_indices, weights=None, *, out_degree=None, order="degree", thread_row=None
) -> dict[str, np.ndarray]:
    """Arrays for `pagerank(..., prepared=)`, from the CSR of A transposed (in-edges).

    Vertices are numbered anew by `order`: "degree" (most gathered first: the shares of hubs stay in
    the L1 cache), "breadth_first" (neighbours lie near each other) or "given". Rows stand at
    positions: first those of more than `thread_row` entries, longest first, then the others in
    slices of 32 rows of about equal length, one a lane.

    numbers int32[positions]: number of the row there, n for padding; vertices int32[positions]: the
    vertex, n for padding; entries int32[m]: numbers of in-neighbours, n for padding, which stands
    for a share of 0; values[m], float32 or int32, where weights are given; items int32[k, 4]:
    (start, end, position, split) of a row or of a segment of one, split is the place in splits
    int32[s, 2] of (first item, number of items), or -1; starts int32[slices + 1]: entry j of the
    row of lane l of slice s is at starts[s] + 32 j + l.
    """
    in_indptr, in_indices = np.asarray(in_indptr, np.int64), np.asarray(in_indices)
    n, nnz = len(in_indptr) - 1, int(in_indptr[-1])
    in_indices, length = in_indices[:nnz], np.diff(in_indptr)
    if thread_row is None:  # so that no slice is more than half of a warp's part of all entries
        thread_row = int(np.clip(nnz / (2 * WARPS * LANES), *THREAD_ROWS))
    if out_degree is None:
        out_degree = np.bincount(in_indices, minlength=n)
    by_number = _numbering(order, in_indptr, in_indices, np.asarray(out_degree))
    number = np.empty(n, np.int32)
    number[by_number] = np.arange(n, dtype=np.int32)

    rows, base = _positions(length[by_number], order, thread_row)
    there = rows < n
    vertices = np.full(len(rows), n, np.int32)
    vertices[there] = by_number[rows[there]]
    of_position = np.where(there, length[np.minimum(vertices, n - 1)], 0)
    items, splits = _items(of_position[:base], _segment(nnz))
    long_end = int(items[-1, 1]) if len(items) else 0
    widths = of_position[base:].reshape(-1, LANES).max(1, initial=0)
    starts = long_end + np.concatenate([[0], np.cumsum(LANES * widths)])

    if starts[-1] >= 2**31:
        raise ValueError(
            f"`in_indptr` ends at {nnz}: with padding that is {starts[-1]} entries, "
            "more than int32 can count"
        )

    source, target = _moves(in_indptr, vertices, of_position, items, base, starts)
    entries = np.full(max(1, int(starts[-1])), n, np.int32)
    entries[target] = number[in_indices[source]]
    prepared = {
        "numbers": rows.astype(np.int32),
        "vertices": vertices,
        "entries": entries,
        "items": items.astype(np.int32),
        "splits": splits.astype(np.int32),
        "starts": starts.astype(np.int32),
    }
    if weights is not None:
        weights = np.asarray(weights)
        dtype = np.int32 if weights.dtype == np.int32 else np.float32
        prepared["values"] = np.zeros(len(entries), dtype)
        prepared["values"][target] = weights[source]
    return prepared


def weights_of_vertices(out_indptr, weights) -> np.ndarray | None:
    """The one weight of all out-edges of each vertex (0 of none), or None where some differ.

    Weights of 4 bytes in the order of the CSR of A; compared bit by bit.
    """
    degree = np.diff(np.asarray(out_indptr, np.int64))
    weights = np.asarray(weights)
    first = np.zeros(len(degree), weights.dtype)
    first[degree > 0] = weights[np.asarray(out_indptr)[:-1][degree > 0]]
    same = np.array_equal(np.repeat(first.view(np.int32), degree), weights.view(np.int32))
    return first if same else None


def _numbering(order, in_indptr, in_indices, out_degree):
    """Vertices in the order of their new numbers."""
    if order == "degree":
        return np.argsort(-out_degree, kind="stable").astype(np.int32)
    if order == "breadth_first":
        return breadth_first_order(in_indptr, in_indices)
    if order == "given":
        return np.arange(len(out_degree), dtype=np.int32)
    raise ValueError(f"`order` must be 'degree', 'breadth_first' or 'given'; got {order!r}.")


def _positions(length, order, thread_row):
    """(numbers of the rows by position, padded with n; number of long rows, padded to 32)."""
    n = len(length)
    long = np.flatnonzero(length > thread_row)
    long = long[np.argsort(-length[long], kind="stable")]
    short = np.flatnonzero(length <= thread_row)
    # numbers by degree lie well in any order; others lie well only next to their neighbours
    window = np.zeros(len(short), np.int64) if order == "degree" else short // WINDOW
    short = short[np.lexsort((-length[short], window))]
    pad = [np.full(-len(part) % LANES, n) for part in (long, short)]
    return np.concatenate([long, pad[0], short, pad[1]]), len(long) + len(pad[0])


def _segment(nnz):
    """Entries of a long row that one warp sums: about its part of all entries."""
    least, most = SEGMENTS
    return int(np.clip(1 << int(np.ceil(np.log2(max(1, nnz / WARPS)))), least, most))


def _items(length, segment):
    """Items and splits of the long rows, their segments one after the other."""
    parts = -(-length // segment)
    position = np.repeat(np.arange(len(length)), parts)
    part = np.arange(len(position)) - np.repeat(np.cumsum(parts) - parts, parts)
    begin = np.cumsum(length) - length
    start = begin[position] + part * segment
    end = np.minimum(start + segment, (begin + length)[position])
    split = np.where(parts > 1, np.cumsum(parts > 1) - 1, -1)
    splits = np.stack([np.cumsum(parts) - parts, parts], 1)[parts > 1]
    return np.stack([start, end, position, split[position]], 1).reshape(-1, 4), splits


def _moves(in_indptr, vertices, length, items, base, starts):
    """Where every entry comes from (in the CSR) and where it goes."""
    n = len(in_indptr) - 1
    position = np.repeat(np.arange(len(vertices)), length)
    within = np.arange(len(position)) - np.repeat(np.cumsum(length) - length, length)
    source = in_indptr[np.minimum(vertices, n - 1)][position] + within
    begin = np.concatenate([np.cumsum(length[:base]) - length[:base], np.zeros(0, np.int64)])
    lane = np.arange(len(vertices) - base)
    begin = np.concatenate([begin, np.repeat(starts[:-1], LANES) + lane % LANES])
    step = np.where(np.arange(len(vertices)) < base, 1, LANES)
    return source, begin[position] + step[position] * within
