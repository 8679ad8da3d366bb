"""Eigenvector and Katz centrality, hubs and authorities against NetworkX; pairs of vertices."""

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest
from graph_cases import named, networkx_of, random_matrix, same

import jaxspv as jsp
from jaxspv import verify


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_scores_are_those_of_networkx(symmetric, weighted):
    A = random_matrix(30, 140, 0, symmetric=symmetric)
    g, name = networkx_of(A, symmetric=symmetric), "weight" if weighted else None
    H = jsp.pad(jsp.from_scipy(A), n=40, nse=400)
    for G in (H, jsp.prepare(H, for_="mxv")):
        found = jsp.eigenvector_centrality(G, 1e-7, 300, weighted=weighted)
        assert bool(found.converged) and (found.scores[30:] == 0).all()
        want = networkx.eigenvector_centrality(g, 500, 1e-9, weight=name)
        same(found.scores[:30], want, rtol=1e-3, atol=1e-4)
        verify.eigenvector(A, jsp.unpad(found, H), weighted=weighted)
    found = jsp.katz_centrality(H, 0.01, 1.0, weighted=weighted)
    verify.katz(A, jsp.unpad(found, H), 0.01, weighted=weighted)
    same(found.scores[:30], networkx.katz_centrality(g, 0.01, weight=name), rtol=1e-4)
    bare = jsp.katz_centrality(H, 0.01, 2.0, weighted=weighted, normalized=False)
    want = networkx.katz_centrality(g, 0.01, 2.0, normalized=False, weight=name)
    same(bare.scores[:30], want, rtol=1e-4)
    if weighted:
        hubs, authorities = networkx.hits(g, tol=1e-10)
        found = jsp.hits(H, 1e-7, 1000)
        verify.hits(A, jsp.unpad(found, H))
        with pytest.raises(AssertionError, match="authority of vertex"):
            verify.hits(A, jsp.unpad(found._replace(hubs=found.hubs[::-1]), H))
        same(found.hubs[:30], hubs, rtol=1e-3, atol=1e-4)
        same(found.authorities[:30], authorities, rtol=1e-3, atol=1e-4)


def test_no_convergence_is_told():
    A = named("karate")
    found = jsp.katz_centrality(A, 0.9, max_iterations=5)
    assert int(found.iterations) == 5 and not bool(found.converged)
    with pytest.raises(ValueError, match="converged"):
        jsp.check(found)
    with pytest.raises(ValueError, match=r"shape \(34,\)"):
        jsp.eigenvector_centrality(A, start=jnp.ones(3))
    for method in (jsp.eigenvector_centrality, jsp.hits):
        with pytest.raises(ValueError, match="zero everywhere"):
            method(A, start=jnp.zeros(34))
    with pytest.raises(ValueError, match=r"shape \(34,\)"):
        jsp.katz_centrality(A, beta=jnp.ones(3))
    many = jax.vmap(lambda b: jsp.katz_centrality(A, 0.05, b).scores)(jnp.ones((2, 34)))
    np.testing.assert_allclose(many[1], jsp.katz_centrality(A, 0.05).scores, rtol=1e-5)


@pytest.mark.parametrize("backend", ["cpu", "xla"])
def test_pairs_are_as_alike_as_networkx_says(backend):
    A = random_matrix(25, 80, 3, symmetric=True, loops=False)
    g = networkx_of(A, symmetric=True)
    u, v = np.triu_indices(25, 1)
    pairs = list(zip(u.tolist(), v.tolist(), strict=True))
    found = jsp.similarity(jsp.from_scipy(A), u, v, backend=backend)
    for name, measure in {
        "jaccard": networkx.jaccard_coefficient,
        "adamic_adar": networkx.adamic_adar_index,
        "resource_allocation": networkx.resource_allocation_index,
    }.items():
        want = [x for _, _, x in measure(g, pairs)]
        np.testing.assert_allclose(getattr(found, name), want, rtol=1e-5, err_msg=name)
    both = [len(set(g[a]) & set(g[b])) for a, b in pairs]
    assert found.common.tolist() == both
    least = [min(g.degree[a], g.degree[b]) for a, b in pairs]
    want = [c / m if m else 0 for c, m in zip(both, least, strict=True)]
    np.testing.assert_allclose(found.overlap, want, rtol=1e-6)
    one = jsp.similarity(jsp.from_scipy(A), int(u[5]), int(v[5]), backend=backend)
    assert one.common.shape == () and int(one.common) == both[5]


def test_bad_pairs():
    A = named("karate")
    with pytest.raises(ValueError, match=r"`v` must lie in \[0, 34\)"):
        jsp.similarity(A, 0, 34)
    with pytest.raises(TypeError, match="`u` must be an integer vertex"):
        jsp.similarity(A, 0.5, 3)
    with pytest.raises(ValueError, match="alike"):
        jsp.similarity(A, [1, 2], [3])


@pytest.mark.parametrize("weight", [1e20, 1e38])
@pytest.mark.parametrize("method", [jsp.eigenvector_centrality, jsp.hits])
def test_weights_whose_squares_or_sums_overflow(method, weight):
    A = jsp.from_dense(np.float32([[0, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0]]))
    found, want = method(A.with_data(weight * A.data), 1e-6, 1000), method(A, 1e-6, 1000)
    assert bool(found.converged)
    np.testing.assert_allclose(found[0], want[0], rtol=1e-3)

    def ascent(data):
        return method(A.with_data(data), 1e-7, 1000)[0][1]

    slope = jax.grad(ascent)(A.data)
    assert jnp.abs(slope).max() > 1e-3 and jnp.abs(slope @ A.data) < 1e-4  # the scale is no matter
