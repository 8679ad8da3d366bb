"""Checkers of orders and paths: narrow bands, topological order and reduction, k shortest paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from .common import close, expect, fail, matrix_of, pattern_of, undirected_pattern


def cuthill_mckee(A: Any, order: Any) -> None:
    """Backwards the order is a breadth-first one, neighbours by degree and then by number.

    A root has no neighbour before it, and there is one for each of SciPy's components; every other
    vertex comes by (first neighbour, degree, number), components one after the other.
    """
    pattern, order = undirected_pattern(A), np.asarray(order)[::-1]
    n, degree = pattern.shape[0], np.diff(pattern.indptr)
    expect(np.array_equal(np.sort(order), np.arange(n)), "the order is no permutation.")
    place = np.empty(n, int)
    place[order] = np.arange(n)
    count, member = scipy.sparse.csgraph.connected_components(pattern, directed=False)
    first, (row, col) = np.full(n, n), pattern.nonzero()
    np.minimum.at(first, row, place[col])
    root = (first > place)[order]
    expect(root.sum() == count, f"there are {root.sum()} roots of {count} components.")
    expect((np.diff(member[order]) != 0).sum() == max(count - 1, 0), "components are interleaved.")
    keys = np.stack([first, degree, np.arange(n)], axis=1)[order]
    later = np.array([tuple(a) < tuple(b) for a, b in zip(keys[:-1], keys[1:], strict=True)], bool)
    wrong = np.append(False, ~later & ~root[1:] & ~root[:-1])[:n]
    fail("order behind its neighbour", wrong, order, order)


def topological_order(A: Any, result: Any) -> None:
    """Each vertex once, after all vertices with an edge to it, its generation one above theirs."""
    pattern = pattern_of(matrix_of(A)).tocoo()
    n, order = pattern.shape[0], np.asarray(result.order)
    expect(bool(result.acyclic), "`acyclic` is False.")
    expect(np.array_equal(np.sort(order), np.arange(n)), "the order is no permutation.")
    place = np.argsort(order)
    wrong = np.zeros(n, bool)
    wrong[pattern.col[place[pattern.row] >= place[pattern.col]]] = True
    fail("place", wrong, place, place)
    depth, got = np.full(n, -1), np.asarray(result.generations)
    np.maximum.at(depth, pattern.col, got[pattern.row])
    fail("generation", got != depth + 1, got, depth + 1)


def transitive_reduction(A: Any, result: Any) -> None:
    """Entries of A that keep what every vertex reaches, none of which could go. O(n^2) memory."""
    whole, left = (matrix_of(M).toarray() != 0 for M in (A, result))
    expect(not (left & ~whole).any(), "an entry is new.")
    reached = _closure(left)
    expect(np.array_equal(reached, _closure(whole)), "a vertex reaches others than before.")
    around = (left.astype(float) @ reached.astype(float)) > 0  # two steps or more
    expect(not (left & around).any(), "an entry could go.")


def _closure(adjacency: np.ndarray) -> np.ndarray:
    far = scipy.sparse.csgraph.dijkstra(scipy.sparse.csr_array(adjacency * 1.0), unweighted=True)
    closed = np.isfinite(far)
    np.fill_diagonal(closed, False)
    return closed


def shortest_paths(
    A: Any, source: int, target: int, k: int, result: Any, *, weighted: bool = True
) -> None:
    """Distances of SciPy's Yen; paths along entries, no vertex twice, none twice, as long as said.

    SciPy 1.15 and its int32 indices.
    """
    matrix = matrix_of(A).astype(np.float64)
    data = matrix.data if weighted else np.ones(matrix.nnz)
    parts = (data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
    matrix = scipy.sparse.csr_array(parts, shape=matrix.shape)
    want = np.zeros(1)
    if source != target:
        want = scipy.sparse.csgraph.yen(matrix, source, target, k)
    count = int(result.count)
    expect(count == len(want), f"{count} paths are found, not {len(want)}.")
    close("distance of path", np.asarray(result.distances)[:count], want, 1e-4, 1e-6)
    seen = set()
    for number, far in enumerate(want):
        path = result.path(number).tolist()
        expect(path[0] == source and path[-1] == target, f"path {number} has other ends.")
        expect(len(set(path)) == len(path), f"path {number} meets a vertex twice.")
        length = sum(matrix[u, v] for u, v in zip(path[:-1], path[1:], strict=True))
        expect(np.isclose(length, far, rtol=1e-4), f"path {number} is {length} long, not {far}.")
        seen.add(tuple(path))
    expect(len(seen) == count, "a path comes twice.")


def eccentricity(A: Any, result: Any, vertices: Any = None) -> None:
    """The largest distance by SciPy from each vertex asked for to what it reaches."""
    pattern = pattern_of(matrix_of(A))
    asked = np.arange(pattern.shape[0]) if vertices is None else np.ravel(vertices)
    if len(asked) == 0:
        return
    far = scipy.sparse.csgraph.dijkstra(pattern, indices=asked, unweighted=True)
    reached = np.isfinite(far)
    want = np.where(reached, far, 0).max(axis=1)
    got = np.asarray(result.values)
    fail("eccentricity of asked", got != want, got, want)
    expect(int(result.radius) == want.min(), f"radius is {int(result.radius)}, not {want.min()}.")
    expect(int(result.diameter) == want.max(), f"diameter is {int(result.diameter)}.")
    expect(bool(result.connected) == reached.all(), f"connected is {bool(result.connected)}.")


def diameter(A: Any, result: Any, start: int | None = None) -> None:
    """The largest distance by SciPy in the component of `start`, or of a largest degree."""
    pattern = pattern_of(matrix_of(A))
    n = pattern.shape[0]
    if n == 0:
        return
    start = int(np.argmax(np.diff(pattern.indptr))) if start is None else start
    _, member = scipy.sparse.csgraph.connected_components(pattern, directed=False)
    inside = np.flatnonzero(member == member[start])
    far = scipy.sparse.csgraph.dijkstra(pattern, indices=inside, unweighted=True)[:, inside]
    want = int(far.max())
    expect(int(result.diameter) == want, f"diameter is {int(result.diameter)}, not {want}.")
    whole = len(inside) == n
    expect(bool(result.connected) == whole, f"connected is {bool(result.connected)}.")
    expect(1 <= int(result.searches) <= n, f"{int(result.searches)} searches.")


def astar(A: Any, source: int, target: int, result: Any, *, rtol: float = 1e-5) -> None:
    """SciPy's distance, and a path of the parents along entries that is as long."""
    matrix = matrix_of(A).astype(np.float64)
    want = scipy.sparse.csgraph.dijkstra(matrix, indices=source)[target]
    got = float(result.distance)
    expect(np.isclose(got, want, rtol=rtol), f"the distance is {got}, not {want}.")
    path = result.path_to(target).tolist()
    if not np.isfinite(want):
        expect(not path, f"a path {path} leads to what is not reached.")
        return
    expect(path[0] == source and path[-1] == target, f"the path is {path}.")
    length = sum(matrix[u, v] for u, v in zip(path[:-1], path[1:], strict=True))
    expect(np.isclose(length, want, rtol=rtol), f"the path is {length} long, not {want}.")
