"""Clustering coefficients and trusses against NetworkX and SciPy."""

import dataclasses

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest
from graph_cases import BACKENDS, named, networkx_of, random_matrix, same
from jax.test_util import check_grads

import jaxspv as jsp
from jaxspv import verify


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_clustering_is_that_of_networkx(symmetric, weighted):
    A = random_matrix(30, 90, 0, symmetric=symmetric)
    g = networkx_of(A, symmetric=symmetric)
    g.remove_edges_from(list(networkx.selfloop_edges(g)))
    want = networkx.clustering(g, weight="weight" if weighted else None)
    G = jsp.from_scipy(A)
    if weighted:  # the largest weight must not be a loop's
        G = jsp.from_scipy(random_matrix(30, 90, 0, symmetric=symmetric, loops=False))
    for H in (G, jsp.pad(G, n=40, nse=300)):
        same(jsp.clustering(H, weighted=weighted)[:30], want)
        mean = jsp.average_clustering(H, weighted=weighted)
        np.testing.assert_allclose(mean, np.mean([*want.values()]), rtol=1e-5)
    some = jsp.average_clustering(G, weighted=weighted, count_zeros=False)
    np.testing.assert_allclose(some, np.mean([c for c in want.values() if c]), rtol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("how", [{"backend": "pallas"}, {"method": "tables"}, {"method": "x"}])
def test_forms_that_cannot_run_are_refused_of_directed_graphs_too(how, weighted):
    A = jsp.from_scipy(random_matrix(9, 20, 0, symmetric=False))
    with pytest.raises((NotImplementedError, ValueError), match="|".join(how.values())):
        jsp.clustering(A, weighted=weighted, **how)


@pytest.mark.parametrize("name", ["karate", "jazz", "wiki-Vote"])
def test_real_graphs(name):
    A = named(name, symmetric=True)
    for backend in BACKENDS[: 1 if name == "wiki-Vote" else 2]:
        verify.clustering(A, jsp.clustering(A, backend=backend))
    verify.average_clustering(A, jsp.average_clustering(A))
    if name != "wiki-Vote":
        for k in (3, 5):
            verify.truss(A, k, jsp.k_truss(A, k))


def test_forms_of_trusses():
    """By peeling in C++ and by rounds; entries that come twice are one."""
    A = random_matrix(30, 260, 3, symmetric=True)
    G = jsp.pad(jsp.from_scipy(A), n=33, nse=512)
    for k in (2, 4, 6, 20):
        for backend in BACKENDS:
            left = jsp.k_truss(G, k, backend=backend).to_scipy().tocsr()[:30, :30]
            verify.truss(A, k, left)
    twice = jsp.COO(*[np.tile(v, 2) for v in (A.data, *A.nonzero())], np.bool_(False), A.shape)
    twice = dataclasses.replace(twice, sorted=False, unique=False)
    for backend in BACKENDS:
        verify.truss(A, 4, jsp.k_truss(twice, 4, backend=backend))


def test_trusses_are_those_of_networkx():
    A = random_matrix(30, 150, 1, symmetric=True)
    g = networkx_of(A, symmetric=True)
    g.remove_edges_from(list(networkx.selfloop_edges(g)))
    G = jsp.pad(jsp.from_scipy(A), n=40, nse=400)
    for k in (2, 3, 4, 5, 6):
        found = jsp.k_truss(G, k)
        assert found.nse == 400
        want = {frozenset(e) for e in networkx.k_truss(g, k).edges}
        row, col = found.to_scipy().tocoo().coords
        assert {frozenset(e) for e in zip(row.tolist(), col.tolist(), strict=True)} == want
    assert int(jax.jit(jsp.k_truss)(G, 4).count) == int(jsp.k_truss(G, 4).count)


def test_weights_that_differ_by_direction():
    """A pattern with both directions of every edge: the answer of the directed graph, for A and
    its transpose, whatever is said of directions."""
    g = networkx.DiGraph(networkx.gnp_random_graph(20, 0.4, seed=1))
    rng = np.random.default_rng(0)
    for _, _, data in g.edges(data=True):
        data["weight"] = float(rng.uniform(0.5, 3))
    A, want = jsp.from_networkx(g), networkx.clustering(g, weight="weight")
    for directed in (None, False, True):
        for M in (A, A.T):
            for run in (lambda f: f, jax.jit):
                got = run(lambda M, d=directed: jsp.clustering(M, weighted=True, directed=d))(M)
                np.testing.assert_allclose(got, [want[v] for v in g], rtol=1e-5)


@pytest.mark.parametrize("weight", [3e-38, 1.0, 1e38, 3e38])
def test_weights_near_the_largest_float_are_over_the_largest(weight):
    A = jsp.from_dense(np.float32(weight) * (1 - np.eye(3, dtype=np.float32)))
    for directed in (False, True):
        got = jsp.clustering(A, weighted=True, directed=directed)
        np.testing.assert_allclose(got, np.ones(3), rtol=1e-5)


def test_slopes_of_weighted_clustering():
    with jax.enable_x64():
        A = random_matrix(8, 40, 2, symmetric=True, loops=False).astype(np.float64)
        G = jsp.from_scipy(A)
        weights = jnp.linspace(1, 2, G.nse)
        check_grads(
            lambda w: jsp.clustering(G.with_data(w), weighted=True, directed=False), (weights,), 1
        )


def test_undirected_alone_and_wrong_results():
    directed = jsp.from_edges([0, 1], [1, 2], shape=(3, 3))
    with pytest.raises(ValueError, match="k_truss is of undirected graphs"):
        jsp.k_truss(directed, 3)
    A = named("karate")
    with pytest.raises(AssertionError, match="clustering coefficient of vertex 3"):
        verify.clustering(A, jsp.clustering(A).at[3].add(0.5))
    with pytest.raises(AssertionError, match="degree in the truss"):
        verify.truss(A, 4, jsp.k_truss(A, 3))


@pytest.mark.parametrize("entries", [0, 40, 120])
def test_squares_are_those_of_networkx(entries):
    A = random_matrix(30, entries, entries, symmetric=True)
    g = networkx_of(A, symmetric=True)
    g.remove_edges_from(list(networkx.selfloop_edges(g)))
    H = jsp.pad(jsp.from_scipy(A), n=40, nse=400)
    want = networkx.square_clustering(g)
    for backend in BACKENDS:
        found = jsp.square_clustering(H, backend=backend)
        same(found[:30], want)
        assert (found[30:] == 0).all()


def test_every_square_of_a_complete_graph_is_closed():
    """13 million squares at a vertex, added in parts: more than float32 counts."""
    n = 300
    A = jsp.from_dense(np.ones((n, n), np.float32) - np.eye(n, dtype=np.float32))
    found = jsp.square_clustering(A)
    np.testing.assert_allclose(found, np.ones(n), rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_similarity_of_hubs(backend):
    """Each of 50,000 common neighbours has degree 2: a long sum of floats."""
    n = 50_000
    ends = np.repeat([0, 1], n), np.tile(np.arange(2, n + 2), 2)
    A = jsp.from_edges(np.concatenate(ends), np.concatenate(ends[::-1]), shape=(n + 2, n + 2))
    found = jsp.similarity(A, 0, 1, backend=backend)
    assert int(found.common) == n
    np.testing.assert_allclose(found.adamic_adar, n / np.log(2), rtol=2.4e-7)
    np.testing.assert_allclose(found.resource_allocation, n / 2, rtol=2.4e-7)


@pytest.mark.parametrize("name", ["karate", "random"])
def test_triangle_centrality_by_its_definition(name):
    A = random_matrix(30, 120, 4, symmetric=True)
    G = named("karate") if name == "karate" else jsp.from_scipy(A)
    g = networkx_of(G.to_scipy(), symmetric=True)
    g.remove_edges_from(list(networkx.selfloop_edges(g)))
    count, want = networkx.triangles(g), {}
    for v in g:
        sharing = [u for u in g[v] if set(g[u]) & set(g[v])]
        others = set(g[v]) - set(sharing)
        mine = (sum(count[u] for u in sharing) + count[v]) / 3 + sum(count[u] for u in others)
        want[v] = 3 * mine / sum(count.values())
    same(jsp.triangle_centrality(G), want)
    assert (jsp.triangle_centrality(jsp.from_edges([0, 1], [1, 0], shape=(2, 2))) == 0).all()
