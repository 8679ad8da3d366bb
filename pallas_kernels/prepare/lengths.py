"""What the SSSP kernels want computed once per graph, on the host with NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

from .adjacency import LOW_MAX, LOW_MEAN, breadth_first_order, fixed_width


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
    there = (adjacency >= 0) & (adjacency < n)
    slots = np.where(there, fixed_width(indptr, entries.astype(np.int32)), 0)
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


def revalue(prepared: dict, weights: jax.Array) -> dict:
    """The prepared arrays of the same graph with other weights (traced ones too): one gather."""
    if "slots" not in prepared or not weights.shape[0]:
        return prepared
    return prepared | {"lengths": jnp.asarray(weights)[prepared["slots"]]}
