"""Core numbers, triangles, strong components, betweenness of real graphs by kernels, on a GPU."""

import jax
import numpy as np
import pytest
from graph_cases import named

import jaxspv as jsp
from jaxspv import verify


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["karate", "wiki-Vote", "coAuthorsDBLP", "moscow-roads"])
def test_native(name):
    A = named(name)
    S = abs(A.to_scipy())
    S = S + S.T
    G = jsp.prepare(jsp.from_scipy(S), for_=(), symmetric=True)
    for call in (jsp.core_number, jax.jit(jsp.core_number)):
        verify.cores(S, call(G))
    for count in (jsp.triangle_count, jax.jit(jsp.triangle_count)):
        verify.triangles(S, count(G))


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["wiki-Vote", "p2p-Gnutella31", "cit-HepPh", "cnr-2000"])
def test_strong_components(name):
    A = named(name)
    for call in (jsp.strongly_connected_components, jax.jit(jsp.strongly_connected_components)):
        for G in (A, jsp.prepare(A, for_=())):
            verify.strong_components(A, call(G))


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["minnesota", "rome99", "p2p-Gnutella31", "delaunay_n13"])
def test_betweenness(name):
    """Of few edges a vertex: the same each time; another program may round the scale otherwise."""
    A = named(name)
    G, sources = jsp.prepare(A, for_=()), np.arange(0, A.shape[0], A.shape[0] // 10)
    plan = jsp.explain(jsp.betweenness_centrality, G, sources, directed=True)
    assert plan.chosen[0].backend == "pallas", str(plan)
    call = jax.jit(lambda G: jsp.betweenness_centrality(G, sources, directed=True))
    found = call(G)
    verify.betweenness(A, found, sources)
    np.testing.assert_array_equal(call(G).scores, found.scores)
    eager = jsp.betweenness_centrality(G, sources, directed=True)
    np.testing.assert_allclose(eager.scores, found.scores, rtol=1e-6)
