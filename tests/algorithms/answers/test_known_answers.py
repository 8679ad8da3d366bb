"""Answers that others have published, on graphs of the data folder.

LAGraph's own tests hold these: src/test/test_TriangleCount.c and test_Betweenness.c, the latter by
the GAP benchmark's program, for sums over four sources.
"""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from graph_cases import BACKENDS, named

import jaxspv as jsp

TRIANGLES = {"karate": 45, "jagmesh7": 2016, "bcsstk13": 342_300}
BETWEENNESS = {  # directed, sources, scores of the vertices from 0 on
    "karate": (
        False,
        [6, 29, 0, 9],
        "43.7778 2.83333 26.9143 .722222 .333333 1.83333 1.5 0 9.09524 0 0 0 0 5.19206 0 0 0 0 0 "
        "4.58095 0 0 0 2.4 0 .422222 0 1.28889 0 0 .733333 14.5508 17.1873 40.6349",
    ),
    "west0067": (
        True,
        [13, 58, 1, 18],
        "7.37262 5.3892 4.53788 3.25952 11.9139 5.73571 5.65336 1.5 19.2719 .343137 .0833333 "
        ".666667 1.80882 12.4246 1.92647 22.0458 4.7381 34.8611 .1 29.8358 9.52807 9.71836 17.3334 "
        "54.654 23.3118 7.31765 2.52381 6.96905 19.2291 6.97003 33.0464 7.20128 3.78571 7.87698 "
        "15.3556 7.43333 7.19091 9.20411 1.10325 6.38095 17.808 5.18172 25.8441 7.91581 1.13501 0 "
        "2.53004 2.48168 8.84857 3.80708 1.16978 .0714286 1.76786 3.06661 12.0742 1.6 4.73908 "
        "2.3701 3.75 1.08571 1.69697 0 .571429 0 0 2.22381 .659341",
    ),
}


def graph(name):
    A = named(name)
    return A


@pytest.mark.parametrize("name", TRIANGLES)
def test_triangles_of_lagraph(name):
    S = sp.coo_array(graph(name).to_scipy())
    off = S.row != S.col
    A = jsp.from_edges(S.row[off], S.col[off], shape=S.shape)
    for backend in BACKENDS:
        assert int(jsp.triangle_count(A, backend=backend).count) == TRIANGLES[name]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", BETWEENNESS)
def test_betweenness_of_lagraph(name, backend):
    directed, sources, text = BETWEENNESS[name]
    A, want = graph(name), np.array(text.split(), float)
    G = jsp.prepare(A, for_=(), symmetric=None if directed else True)
    how = {"normalized": False, "directed": True, "backend": backend}
    scores = jsp.betweenness_centrality(G, jnp.asarray(sources), **how).scores
    n, k = len(want), len(sources)  # of sums over some sources NetworkX's estimate is made
    factor = np.full(n, (n - 1) / k)
    factor[sources] = (n - 1) / (k - 1)
    np.testing.assert_allclose(scores / factor, want, atol=1e-4)
