"""The layout of the SSSP kernels, computed once per graph on its device; widths of buckets, and how
many rounds a search may take."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .adjacency import LOW_MAX, LOW_MEAN, degree_sizes, is_low_degree, low_degree_arrays
from .ragged import I32, module_of, of_numbers, owners, program, sort_pairs, starts_of, take, write

BOUNDS = (1 / 32, 1 / 16, 1 / 8, 3 / 16, 1 / 4, 3 / 8, 1 / 2)  # of classes of weight, as quantiles
CLASSES = len(BOUNDS) + 1  # of weight, in a row
ORDERED_MEAN, ORDERED_LEAST = 16, 1 << 23  # edges a vertex, and edges, from which rows are ordered
SAMPLE = 1 << 14  # weights from which the quantiles are taken


def prepare_sssp(
    indptr,
    indices,
    weights,
    *,
    renumber=False,
    symmetric=False,
    rounded: Callable[[int], int] = int,
    sizes: np.ndarray | None = None,
) -> dict[str, jax.Array]:
    """Arrays for `sssp(..., prepared=)`; eager, on the device of the graph.

    Small degrees (mean <= 8, largest <= 64): adjacency int32[rows, 4 q] (as for `prepare_bfs`),
    slots of the same shape (the index into `indices` of every place, 0 for padding) and lengths
    (the weights at these places); with renumber=True vertices are in breadth-first order
    (neighbours share cache lines) and there are order (new -> old) and rank (old -> new); results
    are in the caller's numbering. symmetric: an edge of the same weight leads back; then the rows
    of other graphs with many edges a vertex are ordered by class of weight (`by_weight`). The rest
    needs no preparation. New weights for the same graph: `revalue`. rounded, sizes: as for
    `prepare_bfs`.
    """
    indptr, indices = of_numbers(indptr), of_numbers(indices)
    sizes = np.asarray(degree_sizes(indptr)) if sizes is None else sizes
    n, weights = indptr.shape[0] - 1, module_of(weights).asarray(weights)
    if not is_low_degree(n, *sizes[:2]):
        many = sizes[1] >= max(ORDERED_MEAN * n, ORDERED_LEAST)
        ordered = symmetric and many and n * CLASSES < 2**31
        return by_weight(indptr, indices, weights) if ordered else {}
    return low_degree_arrays(indptr, indices, sizes, weights, renumber=renumber, rounded=rounded)


def revalue(prepared: dict, weights: jax.Array) -> dict:
    """The prepared arrays of the same graph with other weights (traced ones too): one gather."""
    if "slots" not in prepared or not weights.shape[0]:
        return prepared
    if "parts" in prepared:
        ordered = jnp.asarray(weights)[prepared["slots"]]
        return prepared | {"weights": ordered, "least": jnp.zeros(CLASSES, ordered.dtype)}
    return prepared | {"lengths": jnp.asarray(weights)[prepared["slots"]]}


@program
def by_weight(indptr, indices, weights) -> dict[str, jax.Array]:
    """The entries of each row in the order of CLASSES classes of weight, bounded by quantiles.

    least[CLASSES]: the bounds, from 0; class j has the weights from least[j] up to least[j + 1].
    parts int32[n CLASSES + 1]: where class j of row v begins, at v CLASSES + j. indices, weights,
    slots (their places in the given arrays): in this order. least[-1] = 0: weights are not in it
    (`revalue`). 12 bytes an entry and 32 a vertex.
    """
    xp, n, size = module_of(indices), indptr.shape[0] - 1, indices.shape[0]
    sample = take(weights, (xp.arange(SAMPLE) * (indptr[-1] / SAMPLE)).astype(I32))
    at = xp.asarray([int(SAMPLE * q) for q in BOUNDS], I32)
    least = xp.concatenate([xp.zeros(1, weights.dtype), xp.sort(sample)[at]])
    classes = sum((weights >= bound).astype(I32) for bound in least[1:])
    keys = xp.minimum(owners(indptr[1:], size) * CLASSES + classes, n * CLASSES)
    counts = write(xp.zeros(n * CLASSES, I32), keys, 1, "add")
    _, slots = sort_pairs(keys, xp.arange(size, dtype=I32))
    ordered = {"indices": take(indices, slots), "weights": take(weights, slots), "slots": slots}
    return ordered | {"least": least, "parts": starts_of(counts)}


def width_over_mean(n, largest, entries, xp):
    """f / mean degree, the factor of `delta_of`; `xp` is numpy or jax.numpy.

    f is 16384 for graphs of small degree whose mean is at most 4 (roads, grids: nearly a single
    bucket), 64 for the others of small degree (triangulations). For graphs of any degree it is 4,
    but the width is 0.2 to 3 times the mean weight: the kernel doubles it where rounds have few
    edges, and for good (`later`) in long searches.
    """
    degree = xp.maximum(entries, 1) / n
    low = (largest <= LOW_MAX) & (entries <= LOW_MEAN * n)
    return xp.where(low, xp.where(degree <= 4, 16384, 64) / degree, xp.clip(4 / degree, 0.2, 3))


def delta_of(mean, n, largest, entries, dtype):
    """The mean weight times `width_over_mean`, in its dtype; 1 where no weight is finite.

    n, largest, entries: vertices, the largest degree, the sum of all.
    """
    dtype = np.dtype(dtype)
    if mean is None:
        return dtype.type(1)
    width = float(width_over_mean(n, largest, entries, np)) * mean
    if not np.issubdtype(dtype, np.integer):
        return dtype.type(width or 1.0)
    return dtype.type(min(int(max(width, 1)), np.iinfo(dtype).max))


def later(n: int, entries: int) -> int:
    """How often the width of `delta_of` is doubled in long searches: to 16 * mean weight / mean
    degree, at most twice."""
    over = 16 * n / max(entries, 1) / 0.2
    return min(max(math.floor(math.log2(over)), 0), 2)


def most_rounds(n: int) -> int:
    """Rounds after which a search that extends labels by a user's function ends: some cycle
    improves them for ever, or until rounding or clamping holds them."""
    return max(1 << 17, 8 * n)
