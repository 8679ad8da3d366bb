"""Widths of buckets, and how many rounds a search may take: numbers that need no kernel."""

import math

import numpy as np

from ..layouts.adjacency import LOW_MAX, LOW_MEAN


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
    return dtype.type(np.clip(width, 1, np.iinfo(dtype).max))


def later(n: int, entries: int) -> int:
    """How often the width of `delta_of` is doubled in long searches: to 16 * mean weight / mean
    degree, at most twice."""
    over = 16 * n / max(entries, 1) / 0.2
    return min(max(math.floor(math.log2(over)), 0), 2)


def most_rounds(n: int) -> int:
    """Rounds after which a search that extends labels by a user's function ends: some cycle
    improves them for ever, or until rounding or clamping holds them."""
    return max(1 << 17, 8 * n)
