"""Orders of the vertices in which neighbours are near, to cut a graph into blocks along them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pallas_kernels.layouts.adjacency import is_low_degree

if TYPE_CHECKING:
    from ..partition import Partition

CUT = 0.1  # of the entries lead to another block, at most
UNEVEN = 1.1  # the fullest block over the mean, at most


def ordering_of(part: Partition, indptr: np.ndarray, indices: np.ndarray) -> np.ndarray | None:
    """(n,) the vertices along a line that may be cut into blocks; None: deal them otherwise.

    For whole rows of small degree. Taken is the given order where few entries lead from block to
    block, else a breadth-first one from a vertex far away from the first, on the host.
    """
    n, blocks = part.n, part.grid[0]
    degrees = np.diff(indptr)
    if part.grid[1] > 1 or not is_low_degree(n, degrees.max(initial=0), degrees.sum()):
        return None
    given = np.arange(n)
    if _fits(given, indptr, indices, blocks):
        return given
    line = _breadth_first(indptr, indices)
    return line if _fits(line, indptr, indices, blocks) else None


def _fits(line: np.ndarray, indptr: np.ndarray, indices: np.ndarray, blocks: int) -> bool:
    block = np.empty(line.size, np.int32)
    block[line] = np.arange(line.size) // max(-(-line.size // blocks), 1)
    row = np.repeat(block, np.diff(indptr))
    counts = np.bincount(row, minlength=blocks)
    crossing = np.count_nonzero(row != block[indices])
    even = counts.max() * blocks <= UNEVEN * max(row.size, blocks)
    return bool(crossing <= CUT * row.size and even)


def _breadth_first(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """All vertices in breadth-first order of the undirected graph, from a far one."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import breadth_first_order

    n = indptr.size - 1
    ones = np.ones(indices.size, np.int8)
    graph = sp.csr_array((ones, indices.astype(np.int32), indptr.astype(np.int32)), shape=(n, n))
    start = int(np.argmax(np.diff(indptr)))
    for _ in range(2):
        order = breadth_first_order(graph, start, directed=False, return_predecessors=False)
        start = int(order[-1])
    left = np.ones(n, bool)
    left[order] = False
    return np.concatenate([order, np.flatnonzero(left)])
