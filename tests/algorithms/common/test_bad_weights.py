"""Weights that an algorithm has no meaning for are refused: NaN, infinite and negative ones."""

import functools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse.csgraph

import jaxspv as jsp

pytestmark = pytest.mark.fast

KARATE = jsp.from_networkx(nx.karate_club_graph())
NAN, INFINITE, NEGATIVE = "nan", "infinite", "negative"
ALL = {NAN, INFINITE, NEGATIVE}
REFUSED = {  # algorithm -> (a call, what it refuses)
    "pagerank": (jsp.pagerank, ALL),
    "eigenvector_centrality": (jsp.eigenvector_centrality, {NAN, INFINITE}),
    "katz_centrality": (lambda A: jsp.katz_centrality(A, 0.01), {NAN, INFINITE}),
    "hits": (jsp.hits, {NAN, INFINITE}),
    "betweenness_centrality": (lambda A: jsp.betweenness_centrality(A, [0], weighted=True), ALL),
    "clustering": (lambda A: jsp.clustering(A, weighted=True), ALL),
    "average_clustering": (lambda A: jsp.average_clustering(A, weighted=True), ALL),
    "louvain": (jsp.louvain, ALL),
    "modularity": (lambda A: jsp.modularity(A, jnp.zeros(A.shape[0], int)), ALL),
    "minimum_spanning_forest": (jsp.minimum_spanning_forest, {NAN}),
    "sssp": (lambda A: jsp.sssp(A, 0, max_steps=100), {NAN}),
    "soft_sssp": (lambda A: jsp.soft_sssp(A, 0, 0.01, max_iterations=9), {NAN}),
    "k_shortest_paths": (lambda A: jsp.k_shortest_paths(A, 0, 1, 1), {NAN, NEGATIVE}),
    "astar": (lambda A: jsp.astar(A, 0, 1, jnp.zeros(A.shape[0])), {NAN, NEGATIVE}),
}
VALUES = {NAN: np.nan, INFINITE: np.inf, NEGATIVE: -1.0}


@pytest.mark.parametrize("name", REFUSED)
def test_weights(name):
    call, refused = REFUSED[name]
    for kind, value in VALUES.items():
        row, col = KARATE.rowcol()
        one_edge = ((row == 2) & (col == 7)) | ((row == 7) & (col == 2))
        A = KARATE.with_data(jnp.where(one_edge, value, KARATE.data))
        if kind in refused:
            with pytest.raises(ValueError, match=r"weight|heuristic"):
                call(A)
        else:
            call(A)


def test_new_weights_of_a_prepared_graph():
    G = jsp.prepare(KARATE, for_=("pagerank", "sssp"))
    for value in (np.nan, np.inf, -1.0):
        with pytest.raises(ValueError, match=r"weights must be finite and >= 0; slot 3"):
            jsp.pagerank(G.with_data(G.data.at[3].set(value)))
    with pytest.raises(ValueError, match=r"weights must not be NaN; the one in slot 3"):
        jsp.sssp(G.with_data(G.data.at[3].set(np.nan)), 0)
    with pytest.raises(ValueError, match="`personalization` must be finite"):
        jsp.pagerank(G, personalization=jnp.full(34, np.inf))


def test_communities_of_weights_that_differ_by_direction():
    A = KARATE.with_data(KARATE.data.at[3].set(9.0))
    with pytest.raises(ValueError, match="louvain .* weighs more in one direction"):
        jsp.louvain(A)
    assert int(jsp.louvain(A, weighted=False).count) == int(
        jsp.louvain(KARATE, weighted=False).count
    )


def with_nan(nan, edge):
    """karate with NaN at an edge, and what SciPy has of it without the edge."""
    row, col = map(np.asarray, KARATE.rowcol())
    at = np.isin(row, edge) & np.isin(col, edge)
    assert at.sum() == 2
    A = KARATE.with_data(np.where(at, np.float32(nan), np.asarray(KARATE.data)))
    left = ~at & (row < 34)  # without padding
    entries = np.asarray(KARATE.data)[left], (row[left], col[left])
    return A, scipy.sparse.csr_array(entries, shape=(34, 34))


@pytest.mark.parametrize("nan", [np.nan, -np.nan])  # 0 / 0 is -NaN on some processors
def test_traced_nan_is_no_edge_of_paths_and_forests(nan):
    A, without = with_nan(nan, (2, 7))
    far = scipy.sparse.csgraph.dijkstra(without)
    least = scipy.sparse.csgraph.minimum_spanning_tree(without).sum()
    for backend in (None, "xla"):
        found = jax.jit(functools.partial(jsp.sssp, source=2, backend=backend))(A)
        np.testing.assert_allclose(found.distances, far[2], rtol=1e-6)
        forest = jax.jit(functools.partial(jsp.minimum_spanning_forest, backend=backend))
        np.testing.assert_allclose(forest(A).total, least, rtol=1e-6)
        assert int(forest(A).count) == 33
        lonely, _ = with_nan(nan, (0, 11))  # the only edge of vertex 11
        assert np.isnan(forest(lonely).total) and int(forest(lonely).count) == 33
    paths = jax.jit(lambda A: jsp.k_shortest_paths(A, 2, 7, 1))(A)
    np.testing.assert_allclose(paths.distances[0], far[2, 7], rtol=1e-6)
    near = jax.jit(lambda A: jsp.astar(A, 2, 7, jnp.zeros(34)))(A)
    np.testing.assert_allclose(near.distance, far[2, 7], rtol=1e-6)


@pytest.mark.parametrize("nan", [np.nan, -np.nan])
def test_traced_nan_is_told_by_scores(nan):
    A, _ = with_nan(nan, (2, 7))
    for name in ("pagerank", "eigenvector_centrality", "katz_centrality", "hits"):
        assert not jax.jit(REFUSED[name][0])(A).converged, name
    for backend in (None, "xla"):
        found = jax.jit(functools.partial(jsp.louvain, backend=backend))(A)
        assert np.isnan(found.modularity)
    assert np.isnan(jax.jit(REFUSED["modularity"][0])(A))
