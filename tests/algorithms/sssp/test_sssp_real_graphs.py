"""search on the real graphs against SciPy's Dijkstra."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from graph_files import graph_files
from scipy.sparse.csgraph import dijkstra

from jaxspv.algorithms.sssp.api import SSSP
from jaxspv.algorithms.sssp.layout import delta_of
from jaxspv.algorithms.sssp.tree import shortest_path_tree
from jaxspv.algorithms.sssp.xla import OutEdges, search


@jax.jit
def solve(indptr, indices, weights, source, delta):
    graph = OutEdges(indptr, indices, weights)
    result = SSSP(*search(graph, source, delta=delta), jnp.int32(0))
    return result, shortest_path_tree(graph, result.distances, source)


def rows_of(indptr):
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def weighted(path):
    """The square graph of a file with its integers, or w(i, j) in 1..64, as weights; or None."""
    field = scipy.io.mminfo(path)[4]
    matrix = sp.csr_matrix(scipy.io.mmread(path, spmatrix=False))
    if matrix.shape[0] != matrix.shape[1]:
        return None
    matrix.sum_duplicates()
    if field != "integer":
        row = rows_of(matrix.indptr)
        low, high = np.minimum(row, matrix.indices), np.maximum(row, matrix.indices)
        matrix.data = (low.astype(np.int64) * 2654435761 + high.astype(np.int64) * 40503) % 64 + 1
    return matrix.indptr, matrix.indices, matrix.data.astype(np.int32)


def minutes(path):
    """Whether XLA's search takes minutes, as on Moscow's long roads."""
    return [pytest.mark.slow] if path.name.startswith("moscow") else []


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.name, marks=minutes(path)) for path in graph_files()]
)
def test_real_graph(path):
    arrays = weighted(path)
    if arrays is None:
        pytest.skip("not square")
    indptr, indices, weights = arrays
    source = int(np.argmax(np.diff(indptr)))
    n = len(indptr) - 1
    delta = delta_of(weights.mean() if len(weights) else 0.0, n, len(indices), weights.dtype)
    matrix = sp.csr_matrix((weights.astype(np.float64), indices, indptr), (n, n))
    expected = dijkstra(matrix, indices=source)
    result, tree = map(
        lambda x: jax.tree.map(np.asarray, x),
        solve(*map(jnp.asarray, arrays), jnp.int32(source), jnp.int32(delta)),
    )
    top = np.iinfo(np.int32).max
    np.testing.assert_array_equal(result.distances, np.where(expected < np.inf, expected, top))
    row = rows_of(indptr)
    tight = (result.distances[indices] < top) & (
        result.distances[row].astype(np.int64) + weights == result.distances[indices]
    )
    edges = np.sort(row[tight].astype(np.int64) * n + indices[tight])
    for parents in (tree, result.parents):
        child = np.flatnonzero((parents >= 0) & (np.arange(n) != source))
        pair = parents[child].astype(np.int64) * n + child
        assert (edges[np.searchsorted(edges, pair) % len(edges)] == pair).all()
        jump = np.where(parents >= 0, parents, np.arange(n))
        for _ in range(n.bit_length()):
            jump = jump[jump]
        np.testing.assert_array_equal(jump == source, expected < np.inf)
