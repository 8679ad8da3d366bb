"""The C++ kernels of algorithms on structure, against NetworkX and SciPy."""

import itertools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.csgraph as csgraph

import jaxspv as jsp
from jaxspv.native import bind

pytestmark = pytest.mark.fast
N = 40


@pytest.fixture(autouse=True, scope="module")
def compiled():
    if reason := bind.refused():
        pytest.skip(reason)


def _graph(seed, directed=False, density=0.12):
    """A random matrix, with vertices without edges; and as NetworkX's."""
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((N, N)) < density, rng.integers(1, 5, (N, N)), 0).astype(np.float32)
    dense[:, :3] = dense[:3] = 0
    if not directed:
        dense = np.triu(dense, 1)
        dense += dense.T
    kind = nx.DiGraph if directed else nx.Graph
    return jsp.from_scipy(sp.csr_array(dense)), nx.from_numpy_array(dense, create_using=kind)


def _method(fn, *args, **kwargs):
    """The result, after a look that the kernel makes it."""
    assert "cpu/native" in str(jsp.explain(fn, *args, **kwargs))
    return fn(*args, **kwargs)


@pytest.mark.parametrize("seed", range(2))
def test_triangles_cores_and_trusses_match_networkx(seed):
    A, G = _graph(seed)
    triangles = nx.triangles(G)
    found = _method(jsp.triangle_count, A)
    assert found.count.dtype == np.int64 and int(found.count) == sum(triangles.values()) // 3
    assert not found.overflow
    np.testing.assert_allclose(
        _method(jsp.clustering, A), list(nx.clustering(G).values()), rtol=1e-6
    )
    cores = nx.core_number(G)
    np.testing.assert_array_equal(_method(jsp.core_number, A).cores, [cores[v] for v in range(N)])
    for k in (2, 3, 4, 5):
        truss = _method(jsp.k_truss, A, k)
        np.testing.assert_array_equal(np.asarray(truss.todense()) > 0, _truss(G, k))


def _truss(G, k):
    mask = np.zeros((N, N), bool)
    for u, v in nx.k_truss(G, k).edges:
        mask[u, v] = mask[v, u] = True
    return mask


@pytest.mark.parametrize("seed", range(4))
def test_strong_components_are_named_by_their_smallest_vertex(seed):
    A, G = _graph(seed, directed=True, density=0.04)
    want = np.empty(N, int)
    for component in nx.strongly_connected_components(G):
        want[list(component)] = min(component)
    found = _method(jsp.strongly_connected_components, A)
    np.testing.assert_array_equal(found.labels, want)
    assert int(found.count) == len(np.unique(want))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("directed", [False, True])
def test_a_forest_is_lightest_and_the_one_of_the_form_in_xla(directed, dtype):
    for seed in range(3):
        A, G = _graph(seed, directed)
        A = jsp.prepare(A.astype(dtype), for_=())
        found = _method(jsp.minimum_spanning_forest, A)
        same = jsp.minimum_spanning_forest(A, backend="xla")
        for ours, theirs in zip(found, same, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        lightest = {}
        for u, v, data in G.edges(data=True):
            key = min(u, v), max(u, v)
            lightest[key] = min(lightest.get(key, np.inf), data["weight"])
        undirected = nx.Graph([(*key, {"weight": w}) for key, w in lightest.items()])
        want = nx.minimum_spanning_tree(undirected).size("weight")
        assert float(found.total) == want


def test_negative_and_infinite_weights_are_in_order():
    weights = np.array([-0.0, 0.0, -2.5, np.inf, -np.inf, 1e-30], np.float32)
    A = jsp.from_edges([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 5], weights, shape=(6, 6))
    found = _method(jsp.minimum_spanning_forest, A)
    dropped = set(zip([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 5], strict=True))
    dropped -= set(zip(found.tails.tolist(), found.heads.tolist(), strict=True))
    assert dropped == {(3, 4)}  # a cycle loses its largest


@pytest.mark.parametrize("seed", range(2))
def test_greedy_choices_and_orders_are_those_of_the_forms_in_xla(seed):
    A, G = _graph(seed)
    D, directed = _graph(seed, directed=True, density=0.03)
    given = np.random.default_rng(seed).permutation(N)
    for order in (None, given):
        colors = np.asarray(_method(jsp.greedy_color, A, order).colors)
        np.testing.assert_array_equal(colors, jsp.greedy_color(A, order, backend="xla").colors)
        assert all(colors[u] != colors[v] for u, v in G.edges if u != v)
    drawn = nx.greedy_color(G, strategy=lambda G, _: given.tolist())
    np.testing.assert_array_equal(jsp.greedy_color(A, given).colors, [drawn[v] for v in range(N)])
    key = jax.random.key(seed)
    chosen = _method(jsp.maximal_independent_set, key, A)
    same = jsp.maximal_independent_set(key, A, backend="xla")
    np.testing.assert_array_equal(chosen.members, same.members)
    assert int(chosen.count) == int(np.sum(chosen.members))
    order = _method(jsp.reverse_cuthill_mckee, A)
    np.testing.assert_array_equal(order, jsp.reverse_cuthill_mckee(A, backend="xla"))
    assert sorted(order.tolist()) == list(range(N))
    found = _method(jsp.topological_sort, D)
    same = jsp.topological_sort(D, backend="xla")
    jax.tree.map(np.testing.assert_array_equal, tuple(found), tuple(same))
    acyclic = nx.is_directed_acyclic_graph(directed)
    assert bool(found.acyclic) == bool(jsp.is_directed_acyclic_graph(D)) == acyclic
    forward = jsp.select(D, jsp.operators.triu, 1)
    generations = _method(jsp.topological_sort, forward).generations.tolist()
    wanted = nx.topological_generations(
        nx.from_scipy_sparse_array(forward.to_scipy(), create_using=nx.DiGraph)
    )
    assert all(generations[v] == k for k, layer in enumerate(wanted) for v in layer)


@pytest.mark.parametrize("seed", range(2))
def test_communities_in_cpp(seed):
    for A in (_graph(0)[0], _graph(1, directed=True, density=0.05)[0])[seed : seed + 1]:
        for steps in (1, 3):
            found = _method(jsp.label_propagation, A, steps)
            same = jsp.label_propagation(A, steps, backend="xla")
            jax.tree.map(np.testing.assert_array_equal, tuple(found), tuple(same))
    A, G = _graph(seed)
    for resolution in (0.5, 1.0):
        found = _method(jsp.louvain, A, resolution=resolution)
        labels = np.asarray(found.labels)
        groups = [set(np.flatnonzero(labels == c).tolist()) for c in np.unique(labels)]
        assert all(labels[min(group)] == min(group) for group in groups)
        assert len(groups) == int(found.count)
        quality = nx.community.modularity(G, groups, resolution=resolution)
        assert float(found.modularity) == pytest.approx(quality, abs=1e-5)
        known = nx.community.louvain_communities(G, resolution=resolution, seed=0)
        assert quality > nx.community.modularity(G, known, resolution=resolution) - 0.02
    D, directed = _graph(seed, directed=True)
    labels = np.random.default_rng(seed).integers(0, 5, N)
    groups = [set(np.flatnonzero(labels == c).tolist()) for c in range(5)]
    quality = _method(jsp.modularity, D, labels, directed=True)
    assert float(quality) == pytest.approx(nx.community.modularity(directed, groups), abs=1e-6)
    gradient = jax.grad(lambda w: jsp.modularity(A.with_data(w), labels, directed=False))(A.data)
    same = jax.grad(lambda w: _modularity(A, w, labels))(A.data)
    np.testing.assert_allclose(gradient, same, atol=1e-6)


def _modularity(A, w, labels):
    """By dense arrays; the graph has no loops."""
    W = jnp.zeros(A.shape).at[A.rowcol()].add(w)
    k, total, labels = W.sum(1), W.sum(), jnp.asarray(labels)
    return jnp.sum((labels[:, None] == labels) * (W - jnp.outer(k, k) / total)) / total


@pytest.mark.parametrize("seed", range(3))
def test_several_paths_match_networkx(seed):
    A, G = _graph(seed, directed=True, density=0.08)
    source, target = (int(v) for v in np.random.default_rng(seed).choice(np.arange(3, N), 2, False))
    found = _method(jsp.k_shortest_paths, A, source, target, 6)
    try:
        paths = list(itertools.islice(nx.shortest_simple_paths(G, source, target, "weight"), 6))
    except nx.NetworkXNoPath:
        paths = []
    assert int(found.count) == len(paths)
    lengths = [nx.path_weight(G, path, "weight") for path in paths]
    np.testing.assert_allclose(found.distances[: len(paths)], lengths)
    for k in range(len(paths)):
        assert nx.path_weight(G, found.path(k).tolist(), "weight") == pytest.approx(lengths[k])

    weights = A.data + np.random.default_rng(seed).random(A.nse).astype(np.float32) / 8  # no ties

    def total(w):
        return jnp.sum(jsp.k_shortest_paths(A.with_data(w), source, target, 1).distances)

    if paths:
        best = jsp.k_shortest_paths(A.with_data(weights), source, target, 1).path(0).tolist()
        row, col = (v.tolist() for v in A.rowcol())
        edges = set(itertools.pairwise(best))
        on_path = [(u, v) in edges for u, v in zip(row, col, strict=True)]
        np.testing.assert_array_equal(jax.grad(total)(weights), np.float32(on_path))


def test_graphs_without_edges_or_vertices():
    for n in (0, 3):
        A = jsp.from_edges([], [], np.zeros(0, np.float32), shape=(n, n))
        assert _method(jsp.greedy_color, A).colors.tolist() == [0] * n
        assert _method(jsp.maximal_independent_set, jax.random.key(0), A).count == n
        assert _method(jsp.reverse_cuthill_mckee, A).tolist() == list(range(n))[::-1]
        assert _method(jsp.topological_sort, A).order.tolist() == list(range(n))
        assert _method(jsp.label_propagation, A).labels.tolist() == list(range(n))
        assert _method(jsp.louvain, A).labels.tolist() == list(range(n))
        assert int(_method(jsp.triangle_count, A).count) == 0
        assert _method(jsp.core_number, A).cores.tolist() == [0] * n
        assert _method(jsp.strongly_connected_components, A).labels.tolist() == list(range(n))


def test_vmap_over_patterns_and_weights():
    first, _ = _graph(0)
    order = np.random.default_rng(0).permutation(N)
    permuted = first.to_scipy().tocsr()[order][:, order]
    permuted.sort_indices()
    second = jsp.from_scipy(permuted)
    both = jax.tree.map(lambda a, b: jnp.stack([jnp.asarray(a), jnp.asarray(b)]), first, second)
    found = jax.vmap(lambda A: jsp.core_number(A).cores)(both)
    for k, A in enumerate((first, second)):
        np.testing.assert_array_equal(found[k], jsp.core_number(A).cores)
    totals = jax.vmap(lambda w: jsp.minimum_spanning_forest(first.with_data(w)).total)
    scaled = jnp.stack([first.data, 2 * first.data])
    np.testing.assert_allclose(totals(scaled)[1], 2 * totals(scaled)[0])


def test_a_component_deeper_than_any_call_stack():
    n = 200_000
    tail = np.arange(n, dtype=np.int32)
    A = jsp.from_edges(tail, (tail + 1) % n, shape=(n, n))
    found = _method(jsp.strongly_connected_components, A)
    assert (
        int(found.count) == 1 == csgraph.connected_components(A.to_scipy(), connection="strong")[0]
    )


BROKEN = [("indices", value) for value in (-1, N, 2**31 - 1, -(2**31))]
BROKEN += [("indptr", value) for value in (-1, 2**31 - 1, -(2**31))]


@pytest.mark.parametrize(("where", "value"), BROKEN)
def test_broken_operands_are_refused_and_nothing_outside_is_read(where, value):
    A, _ = _graph(0)
    broken = jax.jit(lambda A, v: jsp.core_number(_with(A, where, v)).cores)
    with pytest.raises(Exception, match="out of range"):
        jax.block_until_ready(broken(A, jnp.int32(value)))


def _with(A, where, value):
    import dataclasses

    return dataclasses.replace(A, **{where: getattr(A, where).at[5].set(value)})
