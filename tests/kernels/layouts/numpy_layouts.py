"""Layouts of a graph for kernels, built with NumPy: the oracle of `pallas_kernels.layouts`."""

import numpy as np

from pallas_kernels.layouts import sliced_rows
from pallas_kernels.layouts.adjacency import LOW_MAX, LOW_MEAN
from pallas_kernels.layouts.sliced_rows import LANES, THREAD_ROWS, WINDOW
from pallas_kernels.simt import device


def prepare_bfs(indptr, indices, in_indptr=None, in_indices=None) -> dict[str, np.ndarray]:
    """Arrays for `bfs(..., prepared=)`.

    Small degrees (mean <= 8, largest <= 64): adjacency (see `fixed_width`). Otherwise (in_indptr,
    in_indices: the reversed graph, default the graph itself): in_indices with every row by
    descending degree (the likely parents first), first int32[n, 4] (the first four of each row,
    padded with n) and isolated (bits of the vertices without incoming edge).
    """
    indptr, indices = np.asarray(indptr), np.asarray(indices)
    n, degree = len(indptr) - 1, np.diff(indptr)
    if n and degree.max() <= LOW_MAX and degree.mean() <= LOW_MEAN:
        return {"adjacency": fixed_width(indptr, indices)}
    if in_indptr is None:
        in_indptr, in_indices = indptr, indices
    return likely_parents(np.asarray(in_indptr), np.asarray(in_indices), degree)


def fixed_width(indptr, indices) -> np.ndarray:
    """int32[n + links, 4 q]: row v is the neighbours of v, padded with n; ~(quad) in its last slot
    continues there.

    q is the least that holds all but one vertex in a hundred, at most 4. A continuing quad (4
    slots, counted from the start of the table) holds 3 neighbours and a link, or up to 4
    neighbours.
    """
    n, degree = len(indptr) - 1, np.diff(indptr).astype(np.int64)
    q = next((q for q in (1, 2, 3) if (degree > 4 * q).mean() <= 0.01), 4)
    rest = np.maximum(degree - (4 * q - 1), 0) * (
        degree > 4 * q
    )  # neighbours after those of the row
    more = np.where(rest > 0, 1 + -(-np.maximum(rest - 4, 0) // 3), 0)  # continuing quads
    begin = n * q + np.concatenate([[0], np.cumsum(more)])
    table = np.full(-(-int(begin[-1]) // q) * q * 4, n, np.int32)
    v = np.repeat(np.arange(n), degree)
    j = np.arange(len(indices)) - np.repeat(indptr[:-1], degree)
    r = j - (4 * q - 1)
    part = np.clip(r // 3, 0, np.maximum(more[v] - 1, 0))
    table[
        np.where((rest[v] > 0) & (r >= 0), 4 * (begin[v] + part) + r - 3 * part, v * 4 * q + j)
    ] = indices
    long = np.repeat(np.arange(n), more)
    part = np.arange(len(long)) - np.repeat(np.cumsum(more) - more, more)
    link = np.where(part == 0, long * 4 * q + 4 * q - 1, 4 * (begin[long] + part - 1) + 3)
    table[link] = ~(begin[long] + part)
    return table.reshape(-1, 4 * q)


def breadth_first_order(indptr, indices) -> np.ndarray:
    """int32[n]: vertices level by level from a vertex of smallest degree, components one after the
    other.
    """
    n, degree = len(indptr) - 1, np.diff(indptr)
    seen, order, size = np.zeros(n, bool), np.empty(n, np.int32), 0
    candidates, c = np.argsort(degree, kind="stable"), 0
    for _ in range(64):  # components beyond these keep their order
        while c < n and seen[candidates[c]]:
            c += 1
        if c == n:
            return order
        level = candidates[c : c + 1]
        while len(level):
            seen[level] = True
            order[size : size + len(level)] = level
            size += len(level)
            counts = degree[level]
            at = np.repeat(indptr[level] - np.cumsum(counts) + counts, counts) + np.arange(
                counts.sum()
            )
            near = indices[at]
            near = near[~seen[near]]
            near, where = np.unique(near, return_index=True)
            level = near[np.argsort(where, kind="stable")]
    order[size:] = np.flatnonzero(~seen)
    return order


def likely_parents(in_indptr, in_indices, degree) -> dict[str, np.ndarray]:
    """in_indices with each row by descending degree, first four of each row, bits of empty rows."""
    n, counts = len(in_indptr) - 1, np.diff(in_indptr)
    position = np.empty(n, np.int32)  # of a vertex in the order of descending degree
    position[np.argsort(-degree, kind="stable")] = np.arange(n, dtype=np.int32)
    rows = np.repeat(np.arange(n, dtype=np.int64), counts)
    key = rows << 32 | position[in_indices]
    key.sort()
    by_degree = np.argsort(-degree, kind="stable").astype(np.int32)
    ordered = by_degree[key & 0xFFFFFFFF]
    first = np.full((n, 4), n, np.int32)
    for j in range(4):
        has = counts > j
        first[has, j] = ordered[in_indptr[:-1][has] + j]
    bits = np.zeros(-(-n // 128) * 128, np.uint8)
    bits[:n] = counts == 0
    isolated = np.packbits(bits, bitorder="little").view(np.int32)
    return {"in_indices": ordered, "first": first, "isolated": isolated}


def prepare_sssp(indptr, indices, weights, *, renumber=False) -> dict[str, np.ndarray]:
    """Arrays for `sssp(..., prepared=)`.

    Small degrees (mean <= 8, largest <= 64): adjacency int32[rows, 4 q] (`fixed_width`), slots of
    the same shape (the entry of `indices` at every place, 0 where there is none) and lengths (the
    weights there); with renumber=True vertices are in breadth-first order (neighbours share cache
    lines) and order (new -> old) and rank (old -> new) come along; results are in the caller's
    numbering. Other graphs are taken as they are: nothing to prepare. New weights for the same
    graph: `revalue`.
    """
    indptr, indices = np.asarray(indptr), np.asarray(indices)
    n, degree = len(indptr) - 1, np.diff(indptr)
    if not n or not is_low_degree(degree):
        return {}
    prepared, entries = {}, np.arange(indptr[-1])
    indices = indices[: indptr[-1]]
    if renumber:
        order = breadth_first_order(indptr, indices)
        rank = np.empty(n, np.int32)
        rank[order] = np.arange(n, dtype=np.int32)
        counts = degree[order]
        start = np.concatenate([[0], np.cumsum(counts)])
        entries = np.repeat(indptr[order] - start[:-1], counts) + np.arange(start[-1])
        indptr, indices = start, rank[indices[entries]]
        prepared = {"order": order, "rank": rank}
    adjacency = fixed_width(indptr, indices)
    valid = (adjacency >= 0) & (adjacency < n)
    slots = np.where(valid, fixed_width(indptr, entries.astype(np.int32)), 0)
    prepared |= {
        "adjacency": adjacency,
        "slots": slots,
        "lengths": np.zeros(slots.shape, np.asarray(weights).dtype),
    }
    if indptr[-1]:
        prepared["lengths"] = np.asarray(weights)[slots]
    return prepared


def is_low_degree(degree) -> bool:
    """Whether all degrees are small."""
    return bool(degree.max() <= LOW_MAX and degree.mean() <= LOW_MEAN)


def prepare_pagerank(
    in_indptr, in_indices, weights=None, *, out_degree=None, order="degree", thread_row=None
) -> dict[str, np.ndarray]:
    """Arrays for `pagerank(..., prepared=)`, from the CSR of A transposed (in-edges).

    Vertices are numbered anew by `order`: "degree" (most gathered first: the shares of hubs stay in
    the L1 cache) or "breadth_first" (neighbours lie near each other). Rows stand at positions:
    first those of more than `thread_row` entries, longest first, then the others in
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
        thread_row = int(np.clip(nnz / (2 * _warps() * LANES), *THREAD_ROWS))
    if out_degree is None:
        out_degree = np.bincount(in_indices, minlength=n)
    by_number = _numbering(order, in_indptr, in_indices, np.asarray(out_degree))
    number = np.empty(n, np.int32)
    number[by_number] = np.arange(n, dtype=np.int32)

    rows, base = _positions(length[by_number], order, thread_row)
    valid = rows < n
    vertices = np.full(len(rows), n, np.int32)
    vertices[valid] = by_number[rows[valid]]
    of_position = np.where(valid, length[np.minimum(vertices, n - 1)], 0)
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
        "counts": np.array([len(items), len(starts) - 1], np.int32),
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
    raise ValueError(f"`order` must be 'degree' or 'breadth_first'; got {order!r}.")


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


def _warps():
    return 32 * device.target().cores


def _segment(nnz):
    """Entries of a long row that one warp sums: about its part of all entries."""
    least, most = sliced_rows.SEGMENTS
    return int(np.clip(1 << int(np.ceil(np.log2(max(1, nnz / _warps())))), least, most))


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
