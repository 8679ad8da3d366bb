"""Weights that an algorithm has no meaning for are refused: NaN, infinite and negative ones."""

import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

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
