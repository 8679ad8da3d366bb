"""Weights that an algorithm has no meaning for are refused: NaN, infinite and negative ones."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse.csgraph

import jaxspv as jsp
from jaxspv.algorithms.pagerank import api as jsp_pagerank

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


def one_edge(value):
    row, col = KARATE.rowcol()
    at = ((row == 2) & (col == 7)) | ((row == 7) & (col == 2))
    return KARATE.with_data(jnp.where(at, value, KARATE.data))


def is_nan(found):
    """Whether every float of a result that is not empty holds some NaN."""
    floats = [x for x in jax.tree.leaves(found) if jnp.issubdtype(x.dtype, jnp.floating)]
    assert floats
    return all(np.isnan(x).any() for x in floats) and not getattr(found, "converged", False)


@pytest.mark.parametrize("backend", [None, "xla"])
def test_traced_weights_that_are_refused_give_nan(backend):
    calls = {
        "pagerank": jsp.pagerank,
        "prepared": lambda A, **how: jsp.pagerank(jsp.prepare(KARATE).with_data(A.data), **how),
        "betweenness": lambda A, **how: jsp.betweenness_centrality(A, weighted=True, **how),
        "clustering": lambda A, **how: jsp.clustering(A, weighted=True, **how),
        "average": lambda A, **how: jsp.average_clustering(A, weighted=True, **how),
        "louvain": lambda A, **how: jsp.louvain(A, **how).modularity,
        "modularity": lambda A, **how: jsp.modularity(A, jnp.zeros(34, int)),
    }
    for name, call in calls.items():
        run = jax.jit(functools.partial(call, backend=backend))
        assert not any(np.isnan(x).any() for x in jax.tree.leaves(run(KARATE))), name
        for value in VALUES.values():
            assert is_nan(run(one_edge(value))), (name, value)
        assert is_nan(run(KARATE.with_data(-KARATE.data))), name


def test_new_weights_of_a_graph_on_a_gpu_are_looked_at_there(monkeypatch):
    G = jsp.prepare(KARATE, for_="pagerank")
    monkeypatch.setattr(jsp_pagerank, "on_gpu", lambda _: True)  # where no call waits for a look
    for value in VALUES.values():
        assert is_nan(jsp.pagerank(G.with_data(one_edge(value).data)))
    want = nx.pagerank(nx.karate_club_graph())
    found = jsp.pagerank(G.with_data(2 * KARATE.data)).scores
    np.testing.assert_allclose(found, [want[v] for v in range(34)], atol=1e-5)


def test_traced_weights_that_are_refused_give_nan_in_triangles_alone():
    triangles = nx.triangles(nx.karate_club_graph())
    for value in VALUES.values():
        found = jax.jit(REFUSED["clustering"][0])(one_edge(value))
        np.testing.assert_array_equal(np.isnan(found), [triangles[v] > 0 for v in range(34)])


def test_traced_negative_edge_is_in_none_of_the_shortest_paths():
    for dtype in (np.float32, np.int32):
        A, without = with_nan(np.nan, (2, 7))
        A = A.with_data(jnp.where(jnp.isnan(A.data), -1, A.data).astype(dtype))
        for backend in (None, "xla"):
            find = functools.partial(jsp.k_shortest_paths, source=2, target=7, k=1, backend=backend)
            far = scipy.sparse.csgraph.dijkstra(without, indices=2)[7]
            assert float(jax.jit(find)(A).distances[0]) == far


def test_traced_numbers_that_are_refused_give_nan():
    far = scipy.sparse.csgraph.dijkstra(KARATE.to_scipy())[:, 7]  # a consistent heuristic
    cases = {
        "damping": (lambda d: jsp.pagerank(KARATE, d), 0.5, (-1.0, 1.5, np.nan)),
        "personalization": (
            lambda p: jsp.pagerank(KARATE, personalization=p),
            np.ones(34),
            (np.r_[-1.0, np.ones(33)], np.r_[np.inf, np.ones(33)], np.zeros(34)),
        ),
        "temperature": (lambda t: jsp.soft_sssp(KARATE, 0, t), 0.01, (0.0, -1.0, np.nan)),
        "start": (
            lambda x: jsp.eigenvector_centrality(KARATE, start=x),
            np.ones(34),
            (np.zeros(34),),
        ),
        "heuristic": (
            lambda h: jsp.astar(KARATE, 2, 7, h).distance,
            far,
            (far + 9 * (np.arange(34) == 2), 2 * far),
        ),
    }
    for name, (call, good, bad) in cases.items():
        run = jax.jit(call)
        found = run(jnp.asarray(good, jnp.float32))
        assert not any(np.isnan(x).any() for x in jax.tree.leaves(found)), name
        for value in bad:
            assert is_nan(run(jnp.asarray(value, jnp.float32))), (name, value)
            with pytest.raises(ValueError, match=rf"`{name}`"):
                call(jnp.asarray(value, jnp.float32))


@pytest.mark.parametrize("name", REFUSED)
def test_known_weights_under_traced_offsets(name):
    """vmap over the offsets alone: which weights are padding is not known."""
    call, A = REFUSED[name][0], KARATE
    found = jax.vmap(lambda ends: call(dataclasses.replace(A, indptr=ends)))(A.indptr[None])
    for x, want in zip(jax.tree.leaves(found), jax.tree.leaves(call(A)), strict=True):
        if jnp.issubdtype(want.dtype, jnp.floating):
            np.testing.assert_allclose(x[0], want, rtol=1e-3, atol=1e-5)


def test_graphs_that_differ_in_their_offsets_alone():
    A = jsp.from_edges([0, 0, 1, 2], [1, 3, 2, 3], [2.0, 9.0, 3.0, 1.0], shape=(4, 4))
    offsets = np.array([[0, 2, 3, 4, 4], [0, 1, 3, 4, 4], [0, 0, 2, 3, 4], [0, 1, 1, 1, 1]])
    graphs = [
        scipy.sparse.csr_array((A.data[: p[-1]], A.indices[: p[-1]], p), shape=(4, 4))
        for p in offsets
    ]
    want = [scipy.sparse.csgraph.dijkstra(S, indices=0) for S in graphs]
    run = jax.vmap(lambda p: jsp.sssp(dataclasses.replace(A, indptr=p), 0).distances)
    np.testing.assert_array_equal(run(jnp.asarray(offsets, jnp.int32)), want)
    B = one_edge(-1.0)
    run = jax.vmap(lambda p: jsp.pagerank(dataclasses.replace(B, indptr=p)))
    assert is_nan(run(B.indptr[None]))
