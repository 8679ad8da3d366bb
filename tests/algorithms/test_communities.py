"""Label propagation, modularity, Louvain and spanning forests against NetworkX and SciPy."""

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest
from graph_cases import named, networkx_of, random_matrix
from jax.test_util import check_grads

import jaxspv as jsp
from jaxspv import verify
from jaxspv.algorithms.communities import louvain_levels
from jaxspv.algorithms.communities.modularity import op as modularity
from jaxspv.native import bind

BACKENDS = ("cpu", "xla")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("symmetric", [False, True])
def test_labels_by_the_rule(symmetric, backend):
    A = random_matrix(40, 60, 0, symmetric=symmetric)
    H = jsp.pad(jsp.from_scipy(A), n=48, nse=200)
    for steps in (0, 1, 4, 30):
        found = jsp.label_propagation(H, steps, backend=backend)
        assert (found.labels[40:] == -1).all() and int(found.iterations) <= steps
        verify.label_propagation(A, jsp.unpad(found, H))
    start = np.arange(48)[::-1].copy()
    G = jsp.prepare(jsp.from_scipy(A), for_=())
    found = jsp.label_propagation(G, 3, start[8:] - 0, backend=backend)
    verify.label_propagation(A, found, start[8:])


@pytest.mark.parametrize("backend", BACKENDS)
def test_labels_that_are_none(backend):
    """They count for nothing, whatever their dtype; what is no integer is refused."""
    A, rng = random_matrix(40, 60, 0), np.random.default_rng(3)
    G = jsp.from_scipy(A)
    for none in (-1, 40, 2**32 + 1, -(2**63)):
        start = np.where(rng.random(40) < 0.7, none, rng.integers(0, 6, 40))
        for steps in (0, 1, 3):
            found = jsp.label_propagation(G, steps, start, backend=backend)
            verify.label_propagation(A, found, start)
        assert (np.asarray(found.labels) == -1).any()
        inside = np.where(start == none, -1, start)
        want = networkx.DiGraph(networkx_of(A, symmetric=False))
        groups = [{v} for v in np.flatnonzero(inside < 0).tolist()]
        groups += [set(np.flatnonzero(inside == c).tolist()) for c in range(6)]
        wanted = networkx.community.modularity(want, groups)
        alone = want.subgraph(np.flatnonzero(inside < 0).tolist())
        total = sum(d["weight"] for *_, d in want.edges(data=True))
        for v in alone:  # those of no community add nothing
            out, into = (d(v, "weight") for d in (want.out_degree, want.in_degree))
            loop = want.get_edge_data(v, v, {"weight": 0})["weight"]
            wanted -= loop / total - out * into / total**2
        np.testing.assert_allclose(jsp.modularity(G, start), wanted, rtol=1e-4, atol=1e-6)
    for wrong in (np.arange(40.0), np.ones(40, bool), [0.5] * 40):
        for call in (jsp.label_propagation, jsp.modularity):
            with pytest.raises(TypeError, match="`labels` must be integers; got"):
                call(G, labels=wrong)


def test_a_pair_alternates_for_ever():
    A = jsp.from_edges([0, 1], [1, 0], shape=(2, 2))
    for backend in BACKENDS:
        found = jsp.label_propagation(A, 7, backend=backend)
        assert found.labels.tolist() == [1, 0] and not bool(found.converged)
        with pytest.raises(ValueError, match="converged"):
            jsp.check(found)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_modularity_is_that_of_networkx(symmetric, weighted):
    A = random_matrix(30, 80, 1, symmetric=symmetric)
    labels = np.random.default_rng(0).integers(0, 5, 30)
    groups = [set(np.flatnonzero(labels == c).tolist()) for c in range(5)]
    g, how = networkx_of(A, symmetric=symmetric), {"weight": "weight" if weighted else None}
    H = jsp.pad(jsp.from_scipy(A), n=40, nse=200)
    padded = np.append(labels, np.full(10, -1))
    for gamma in (1.0, 0.6):
        want = networkx.community.modularity(g, groups, resolution=gamma, **how)
        found = jsp.modularity(H, padded, resolution=gamma, weighted=weighted)
        np.testing.assert_allclose(found, want, rtol=1e-5)
    if symmetric:
        want = verify.modularity_of(A, labels, weighted=weighted)
        G = jsp.from_scipy(A)
        np.testing.assert_allclose(jsp.modularity(G, labels, weighted=weighted), want, rtol=1e-5)


def test_modularity_of_the_largest_weights():
    """Two pairs, a loop at one: NetworkX's value of weights of 1."""
    A = jsp.from_edges([0, 0, 1, 2, 3], [0, 1, 0, 3, 2], np.full(5, 3e38, np.float32))
    given = jsp.prepare(A, for_=()), jnp.int32([0, 0, 2, 2]), jnp.float32(1)
    for backend in (None, "xla"):
        found = modularity(*given, weighted=True, directed=False, backend=backend)
        np.testing.assert_allclose(found, 4 / 9, rtol=1e-6)


def test_slopes_of_modularity():
    with jax.enable_x64():
        A = jsp.from_scipy(random_matrix(9, 30, 2, symmetric=True).astype(np.float64))
        labels = jnp.arange(9) % 3
        weights = jnp.linspace(1, 2, A.nse)

        def quality(w, gamma):
            return jsp.modularity(A.with_data(w), labels, resolution=gamma, directed=False)

        check_grads(quality, (weights, jnp.float64(0.9)), 2)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_louvain_is_as_good_as_that_of_networkx(backend, weighted):
    sizes, chances = [12] * 5, np.full((5, 5), 0.03) + 0.5 * np.eye(5)
    g = networkx.stochastic_block_model(sizes, chances.tolist(), seed=3)
    A = networkx.to_scipy_sparse_array(g, dtype=np.float32)
    A.data[:] = 2
    H = jsp.pad(jsp.from_scipy(A), n=80, nse=2000)
    found = jsp.louvain(H, weighted=weighted, backend=backend)
    assert (found.labels[60:] == -1).all()
    verify.communities(A, jsp.unpad(found, H), weighted=weighted)
    best = networkx.community.louvain_communities(g, seed=1)
    assert float(found.modularity) > 0.97 * networkx.community.modularity(g, best)


def test_levels_of_louvain_in_less_room(monkeypatch):
    """Joined edges in arrays of their number give what all of them give."""
    A = jsp.prepare(jsp.from_scipy(random_matrix(60, 200, 4, symmetric=True)), for_=())
    weights, found = jnp.ones(A.nse, jnp.float32), []
    for least in (A.nse + 1, 1):
        monkeypatch.setattr(louvain_levels, "MIN_CAPACITY", least)
        monkeypatch.setattr(louvain_levels, "SHARES", (2,))
        run = jax.jit(lambda A, w, least=least: louvain_levels.vectorised(A, w, jnp.float32(1)))
        found.append(run(A, weights))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert int(found[0][1]) == int(found[1][1]) > 1


@pytest.mark.parametrize("name", ["karate", "jazz", "minnesota", "wiki-Vote"])
def test_communities_of_real_graphs(name):
    A = named(name, symmetric=True)
    least = {"karate": 0.38, "jazz": 0.42, "minnesota": 0.9, "wiki-Vote": 0.40}[name]
    for backend in BACKENDS[: 1 if name == "wiki-Vote" else 2]:
        found = jsp.louvain(A, weighted=False, backend=backend)
        verify.communities(A, found, weighted=False)
        assert float(found.modularity) > least


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("entries", [0, 30, 200])
def test_forests_of_random_graphs(entries, symmetric, backend):
    A = random_matrix(30, entries, entries, symmetric=symmetric)
    if not symmetric:  # one direction of each edge, some weights negative
        A = random_matrix(30, entries, entries, symmetric=True)
        A = type(A)(np.triu(A.toarray() - 2.5 * (A.toarray() > 0)).astype(np.float32))
    G = jsp.from_scipy(A)
    H = jsp.pad(G, n=40, nse=500)
    for graph in (G, H) + ((jsp.prepare(G, for_=()),) if symmetric else ()):
        verify.forest(A, jsp.minimum_spanning_forest(graph, backend=backend))


@pytest.mark.parametrize("name", ["minnesota", "luxembourg_osm"])
def test_forests_of_real_graphs(name):
    A = named(name, symmetric=True)
    weights = np.random.default_rng(0).permutation(A.nse).astype(np.float32) + 1
    matrix = A.with_data(weights).to_scipy()
    A = jsp.from_scipy(type(matrix)(matrix.maximum(matrix.T)))
    verify.forest(A, jsp.minimum_spanning_forest(A))


def test_a_loop_alone_is_in_no_forest():
    loop = jsp.prepare(jsp.from_edges([0], [0], [2.0], shape=(2, 2)), for_=())
    assert loop.symmetric
    found = jsp.minimum_spanning_forest(loop, backend="xla")
    assert (int(found.count), found.tails.tolist(), float(found.total)) == (0, [2], 0)


def test_slopes_and_batches_of_forests():
    A = jsp.from_edges([0, 0, 1, 2], [1, 2, 2, 3], [1.0, 4.0, 2.0, 1.0], shape=(4, 4))

    def total(w):
        return jsp.minimum_spanning_forest(A.with_data(w)).total

    assert jax.grad(total)(A.data).tolist() == [1.0, 0.0, 1.0, 1.0]
    assert jax.jit(jax.vmap(total))(jnp.stack([A.data, 2 * A.data])).tolist() == [4.0, 8.0]
    whole = jsp.minimum_spanning_forest(A.with_data(jnp.arange(4)))
    assert whole.weights.dtype == jnp.arange(4).dtype and float(whole.total) == 4


def test_errors_and_wrong_results():
    A = named("karate")
    with pytest.raises(ValueError, match=r"shape \(34,\)"):
        jsp.label_propagation(A, 3, jnp.arange(3))
    with pytest.raises(ValueError, match=r"shape \(34,\)"):
        jsp.modularity(A, jnp.arange(3))
    with pytest.raises(ValueError, match="slot 2 holds"):
        jsp.minimum_spanning_forest(A.with_data(jnp.ones(A.nse).at[2].set(jnp.nan)))
    found = jsp.louvain(A)
    with pytest.raises(AssertionError, match="modularity is"):
        verify.communities(A, found._replace(modularity=found.modularity + 0.1))
    tree = jsp.minimum_spanning_forest(A)
    with pytest.raises(AssertionError, match="the forest has 2"):
        verify.forest(A, tree._replace(count=tree.count - 1))
    labels = jsp.label_propagation(A, 2)
    with pytest.raises(AssertionError, match="label of vertex 7"):
        verify.label_propagation(A, labels._replace(labels=labels.labels.at[7].set(33)))


def test_moves_of_many_vertices_do_not_depend_on_x64():
    A = named("karate")
    with jax.enable_x64(True):
        found = jsp.louvain(A, backend="xla")
    assert float(found.modularity) > 0.38


@pytest.mark.parametrize("backend", BACKENDS)
def test_communities_do_not_depend_on_the_unit_of_weights(backend):
    """Two triangles joined by an edge, in weights that float32 does not hold."""
    g = networkx.Graph([(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)])
    want = networkx.community.modularity(g, [{0, 1, 2}, {3, 4, 5}])
    pattern = networkx.to_scipy_sparse_array(g)
    with jax.enable_x64(True):
        for unit in (1e-300, 1e-60, 1e39, 1.7e308):
            A = jsp.from_scipy(pattern.astype(float) * unit)
            assert A.dtype == np.float64
            found = jsp.louvain(A, backend=backend)
            assert found.labels.tolist() == [0, 0, 0, 3, 3, 3]
            np.testing.assert_allclose(found.modularity, want, rtol=1e-6)
            np.testing.assert_allclose(jsp.modularity(A, found.labels), want, rtol=1e-12)


@pytest.mark.parametrize("backend", ["xla", None])
def test_small_complete_graphs_are_one_community(backend):
    """No level ends because chance left out all that would move."""
    for n in range(2, 7):
        row, col = np.nonzero(1 - np.eye(n))
        A = jsp.from_edges(row, col, shape=(8, 8), nse=64)
        found = jsp.louvain(A, backend=backend)
        assert found.labels.tolist() == [0] * n + list(range(n, 8))


@pytest.mark.skipif(bind.refused() is not None, reason="without the C++ kernels")
def test_louvain_moves_for_gains_that_are_small_beside_all_weights():
    """A move had to gain 1e-7 of all weights: single edges counted for nothing in large graphs."""
    pairs = jsp.from_edges(
        [0, 1, 2, 3], [1, 0, 3, 2], np.array([1, 1, 1e8, 1e8], np.float32), shape=(4, 4)
    )
    graph = networkx.Graph([(0, 1, {"weight": 1.0}), (2, 3, {"weight": 1e8})])
    assert networkx.community.louvain_communities(graph, seed=0) == [{0, 1}, {2, 3}]
    assert jsp.louvain(pairs, method="native").labels.tolist() == [0, 0, 2, 2]
    complete = jsp.from_dense(1 - np.eye(300, dtype=np.float32))
    assert int(jsp.louvain(complete, method="native").count) == 1
