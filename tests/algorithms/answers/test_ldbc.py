"""Answers that the LDBC Graphalytics benchmark publishes for its two example graphs.

`example-directed` and `example-undirected` of graphalytics-validation, by its rules: PageRank and
label propagation (CDLP) of two steps, clustering coefficients over neighbours in either direction.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

INF = np.inf
# directed: tails, heads, lengths; source; vertices from 1 on
DIRECTED = {
    "edges": (
        [1, 1, 2, 2, 2, 3, 3, 3, 3, 5, 5, 5, 6, 6, 7, 8, 9],
        [3, 5, 4, 5, 10, 1, 5, 8, 10, 3, 4, 8, 3, 4, 4, 1, 4],
        [0.5, 0.3, 0.1, 0.3, 0.12, 0.53, 0.62, 0.21, 0.52, 0.69, 0.53, 0.1, 0.23, 0.39, 0.83]
        + [0.39, 0.69],
    ),
    "first": 1,
    "levels": [0, -1, 1, 2, 1, -1, -1, 2, -1, 2],
    "distances": [0, INF, 0.5, 0.83, 0.3, INF, INF, 0.4, INF, 1.02],
    "scores": [0.1477629166666667, 0.04753375, 0.1550469444444444, 0.1597573611111111, 0.14624]
    + [0.04753375, 0.04753375, 0.1135740277777778, 0.04753375, 0.08748375],
    "weak": [1] * 10,
    "labels": [1, 2, 3, 4, 1, 1, 2, 3, 2, 1],
    "clustering": [2 / 3, 1 / 6, 0.15, 0.05, 0.25, 0, 0, 5 / 6, 0, 0],
}
# undirected: each edge once; vertices from 2 on
UNDIRECTED = {
    "edges": (
        [2, 2, 3, 3, 3, 5, 5, 6, 6, 6, 6, 7],
        [3, 4, 4, 5, 8, 6, 8, 7, 8, 9, 10, 9],
        [0.9, 0.69, 0.13, 0.5, 0.32, 0.63, 0.12, 0.53, 0.64, 0.23, 0.63, 0.36],
    ),
    "first": 2,
    "levels": [0, 1, 1, 2, 3, 4, 2, 4, 4],
    "distances": [0, 0.82, 0.69, 1.26, 1.78, 2.31, 1.14, 2.01, 2.41],
    "scores": [0.09084490740740739, 0.1424089506172839, 0.09084490740740739, 0.1249891975308642]
    + [0.1686172839506173, 0.09749537037037037, 0.1249891975308642, 0.09749537037037037]
    + [0.06231481481481481],
    "weak": [2] * 9,
    "labels": [2, 3, 2, 2, 6, 5, 2, 5, 5],
    "clustering": [1, 1 / 3, 1, 2 / 3, 0.2, 1, 2 / 3, 1, 0],
}


@pytest.fixture(params=["directed", "undirected"], scope="module")
def example(request):
    sent = {"directed": DIRECTED, "undirected": UNDIRECTED}[request.param]
    tail, head, length = map(np.array, sent["edges"])
    if request.param == "undirected":
        tail, head, length = np.append(tail, head), np.append(head, tail), np.tile(length, 2)
    n = len(sent["levels"])
    ends = tail - sent["first"], head - sent["first"]
    return sent, jsp.from_edges(*ends, length.astype(np.float32), shape=(n, n))


def test_searches(example):
    """BFS and SSSP."""
    sent, A = example
    np.testing.assert_array_equal(jsp.bfs(A, 0).levels, sent["levels"])
    np.testing.assert_allclose(jsp.sssp(A, 0).distances, sent["distances"], rtol=1e-6)


def test_pagerank(example):
    sent, A = example
    P = A.with_data(jnp.ones_like(A.data))
    found = jsp.pagerank(P, damping=0.85, tol=0.0, max_iterations=2).scores
    np.testing.assert_allclose(found, sent["scores"], rtol=1e-5)


def test_components_and_communities(example):
    """WCC and CDLP."""
    sent, A = example
    first = sent["first"]
    np.testing.assert_array_equal(jsp.connected_components(A).labels + first, sent["weak"])
    for backend in ("cpu", "xla"):
        found = jsp.label_propagation(A, 2, backend=backend).labels
        np.testing.assert_array_equal(found + first, sent["labels"])


def test_clustering(example):
    """LCC: edges between the neighbours of a vertex, of d (d - 1) that there may be."""
    sent, A = example
    ones = A.with_data(jnp.ones_like(A.data))
    N = jsp.ewise_add(ones, ones.T, jnp.maximum)
    between = jsp.mxm(N, ones, mask=N)  # walks v ~ u -> w with v ~ w
    d = np.asarray(N.sum(axis=1))
    share = np.asarray(between.sum(axis=1)) / np.maximum(d * (d - 1), 1)
    np.testing.assert_allclose(share, sent["clustering"], rtol=1e-6)
    if sent is UNDIRECTED:
        np.testing.assert_allclose(jsp.clustering(A), sent["clustering"], rtol=1e-6)
