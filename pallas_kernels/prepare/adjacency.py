"""What the BFS kernels want computed once per graph, on the host with NumPy."""

from typing import NamedTuple

import jax
import numpy as np

LOW_MEAN, LOW_MAX = 8, 64  # degrees up to which a fixed-width adjacency is made


class Adjacency(NamedTuple):
    """Edges v -> indices[indptr[v] : indptr[v + 1]] of a graph, and those of the reversed one."""

    indptr: jax.Array
    indices: jax.Array
    in_indptr: jax.Array | None = None
    in_indices: jax.Array | None = None


def prepare_bfs(
    indptr, indices, in_indptr=None, in_indices=None, *, renumber=False
) -> dict[str, np.ndarray]:
    """Arrays for `bfs(..., prepared=)`.

    Small degrees (mean <= 8, largest <= 64): adjacency (see `fixed_width`); with renumber=True its
    vertices are in breadth-first order (neighbours share cache lines) and order (new -> old) and
    rank (old -> new) come along; the result of `bfs` is in the caller's numbering. Otherwise
    (in_indptr, in_indices: the reversed graph, default the graph itself): in_indices with every row
    by descending degree (the likely parents first), first int32[n, 4] (the first four of each row,
    padded with n) and isolated (bits of the vertices without incoming edge).
    """
    indptr, indices = np.asarray(indptr), np.asarray(indices)
    n, degree = len(indptr) - 1, np.diff(indptr)
    if n and degree.max() <= LOW_MAX and degree.mean() <= LOW_MEAN:
        if not renumber:
            return {"adjacency": fixed_width(indptr, indices)}
        order = breadth_first_order(indptr, indices)
        rank = np.empty(n, np.int32)
        rank[order] = np.arange(n, dtype=np.int32)
        counts = degree[order]
        start = np.concatenate([[0], np.cumsum(counts)])
        at = np.repeat(indptr[order] - start[:-1], counts) + np.arange(start[-1])
        return {"adjacency": fixed_width(start, rank[indices[at]]), "order": order, "rank": rank}
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
