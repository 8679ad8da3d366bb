"""Checkers of traversals, scores by iteration, components and triangles."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from .common import fail, matrix_of, partition, pattern_of, undirected_pattern


def levels_of(A: Any, source: int) -> np.ndarray:
    """(n,) int32 hops from the source, -1 where unreached, from SciPy's breadth-first order."""
    matrix = matrix_of(A)
    order, before = scipy.sparse.csgraph.breadth_first_order(pattern_of(matrix), source)
    levels = np.full(matrix.shape[0], -1, np.int32)
    levels[source] = 0
    place = np.empty(matrix.shape[0], np.int64)
    place[order] = np.arange(len(order))
    above = place[before[order[1:]]]  # ascending: the order is by level
    first, last, level = 0, 1, 0
    while last < len(order):
        first, last, level = last, 1 + int(np.searchsorted(above, last)), level + 1
        levels[order[first:last]] = level
    return levels


def _stored(matrix: scipy.sparse.csr_array, row: np.ndarray, col: np.ndarray) -> np.ndarray:
    """Whether (row, col) is stored, by binary search in the sorted rows."""
    if not matrix.has_sorted_indices:
        matrix = matrix.sorted_indices()
    low, end = matrix.indptr[row].astype(np.int64), matrix.indptr[row + 1].astype(np.int64)
    high = end.copy()
    while (low < high).any():
        middle = (low + high) // 2
        less = (low < high) & (matrix.indices[np.minimum(middle, matrix.nnz - 1)] < col)
        low, high = np.where(less, middle + 1, low), np.where(less, high, np.minimum(high, middle))
    found = low < end
    found[found] = matrix.indices[low[found]] == col[found]
    return found


def tree(A: Any, source: int, parents: Any, reached: Any) -> None:
    """Parents are edges of A, reach exactly `reached`, and lead every vertex to the source."""
    matrix, parents = matrix_of(A), np.asarray(parents)
    reached = np.asarray(reached)
    fail("presence in the tree", (parents >= 0) != reached, parents >= 0, reached)
    if not reached[source]:
        return
    fail("parent", parents[[source]] != source, parents[[source]], [source])
    child = np.flatnonzero(reached & (np.arange(len(parents)) != source))
    parent, n = parents[child], matrix.shape[0]
    missing = (parent >= n) | ~_stored(matrix, np.minimum(parent, n - 1), child)
    if missing.any():
        v = int(child[np.flatnonzero(missing)[0]])
        raise AssertionError(f"parent {parents[v]} of vertex {v} has no edge to it.")
    jump = np.where(reached, parents, np.arange(len(parents)))
    for _ in range(max(len(parents), 1).bit_length()):
        jump = jump[jump]
    astray = reached & (jump != source)
    fail("root", astray, jump, np.full(len(parents), source))


def spanning_tree(A: Any, root: int, result: Any) -> None:
    """Parents are a tree of what SciPy's breadth-first search reaches from the root."""
    tree(A, root, result.parents, levels_of(A, root) >= 0)


def bfs(A: Any, source: int, result: Any) -> None:
    """Levels equal SciPy's; parents, if given, are a tree whose edges join adjacent levels."""
    want, got = levels_of(A, source), np.asarray(result.levels)
    fail("level", got != want, got, want)
    assert int(result.num_levels) == want.max() + 1, "num_levels is not the largest level + 1."
    if result.parents is not None:
        parents = np.asarray(result.parents)
        tree(A, source, parents, want >= 0)
        child = want > 0
        above = np.where(child, got[np.maximum(parents, 0)], 0)
        fail("level of the parent", child & (above != got - 1), above, got - 1)


def sssp(A: Any, source: int, result: Any, *, rtol: float = 1e-5) -> None:
    """Distances equal SciPy's Dijkstra in float64; every parent is tight in the weights' dtype."""
    matrix = matrix_of(A)
    weights = matrix.data.astype(np.float64)
    # SciPy drops stored zeros in some routines: an epsilon far below any sum keeps them edges.
    graph = scipy.sparse.csr_array((weights, matrix.indices, matrix.indptr), shape=matrix.shape)
    paths = scipy.sparse.csgraph
    want = (paths.dijkstra if (weights >= 0).all() else paths.bellman_ford)(graph, indices=source)
    got = np.asarray(result.distances)
    integer = np.issubdtype(got.dtype, np.integer)
    infinite = got == (np.iinfo(got.dtype).max if integer else np.inf)
    fail("reachability", infinite != np.isinf(want), ~infinite, np.isfinite(want))
    finite = ~infinite
    wrong = np.zeros(len(got), bool)
    wrong[finite] = ~np.isclose(got[finite].astype(np.float64), want[finite], rtol=rtol)
    fail("distance", wrong, got, want)
    if result.parents is not None:
        tree(A, source, result.parents, finite)


def pagerank(A: Any, result: Any, *, damping: float = 0.85, atol: float = 1e-6) -> None:
    """One more power step in float64 changes the scores by at most `atol` in all; they sum to 1."""
    matrix = matrix_of(A).astype(np.float64)
    n = matrix.shape[0]
    strength = np.asarray(matrix.sum(axis=1)).ravel()
    x = np.asarray(result.scores, np.float64)
    share = np.divide(x, strength, out=np.zeros(n), where=strength != 0)
    lost = x[strength == 0].sum()
    y = damping * (matrix.T @ share + lost / n) + (1 - damping) / n
    assert abs(x.sum() - 1) <= 1e-4, f"scores sum to {x.sum()}."
    change = np.abs(y - x).sum()
    assert change <= atol, f"one more step changes the scores by {change} in all."


def components(A: Any, result: Any) -> None:
    """Labels are the smallest vertex of each weak component, as SciPy partitions them."""
    partition(A, result, "weak")


def triangles(A: Any, result: Any) -> None:
    """The count is that of SciPy: closed walks of length 3, six to a triangle."""
    pattern = undirected_pattern(A)
    walks = scipy.sparse.csr_array(pattern @ pattern).multiply(pattern).sum()
    got = int(result.count)
    assert 6 * got == int(walks), f"{got} triangles are counted, not {int(walks) // 6}."
