"""Eccentricities, diameters, topological order against NetworkX."""

import jax
import networkx
import numpy as np
import pytest
from graph_cases import named, networkx_of, random_matrix

import jaxspv as jsp
from jaxspv import verify
from jaxspv._core.platforms import using


@pytest.mark.parametrize("name", ["karate", "jazz", "minnesota"])
def test_eccentricities_of_real_graphs(name):
    A = named(name, symmetric=True)
    g = networkx_of(A.to_scipy(), symmetric=True)
    g = g.subgraph(max(networkx.connected_components(g), key=len))
    some = np.asarray(sorted(g.nodes))[:40]
    found = jsp.eccentricity(A, some)
    want = networkx.eccentricity(g, some.tolist())
    assert found.values.tolist() == [want[v] for v in some.tolist()]
    wide = jsp.diameter(A, int(some[0]))
    assert int(wide.diameter) == {"karate": 5, "jazz": 6, "minnesota": 99}[name]
    assert int(wide.searches) < 60


def test_all_of_them_with_ghosts():
    g = networkx.connected_watts_strogatz_graph(45, 4, 0.1, seed=1)
    A = jsp.from_networkx(g)
    H = jsp.pad(A, n=50, nse=300)
    found = jsp.eccentricity(H)
    want = networkx.eccentricity(g)
    assert found.values.tolist() == [want[v] for v in range(45)] + 5 * [-1]
    assert int(found.radius) == networkx.radius(g) and bool(found.connected)
    assert int(found.diameter) == networkx.diameter(g) == int(jsp.diameter(H).diameter)
    assert bool(jsp.diameter(H).connected)
    center = np.flatnonzero(found.values == found.radius)
    assert sorted(center.tolist()) == sorted(networkx.center(g))
    assert int(jax.jit(jsp.diameter)(H).diameter) == networkx.diameter(g)


@pytest.mark.parametrize("backend", ["cpu", "xla"])
def test_diameters_of_random_graphs(backend):
    rng = np.random.default_rng(3)
    for n, p in [(30, 0.06), (30, 0.15), (40, 0.04), (40, 0.2)] * 4:
        g = networkx.gnp_random_graph(n, p, seed=int(rng.integers(1 << 30)))
        part = g.subgraph(networkx.node_connected_component(g, 0))
        with using(backend):
            A = jsp.pad(jsp.from_networkx(g), n=41, nse=500)
            assert int(jsp.diameter(A, 0).diameter) == networkx.diameter(part)


@pytest.mark.parametrize("backend", ["cpu", "xla"])
def test_leaves_of_two_hubs_need_no_search_each(backend):
    hubs, leaves = np.repeat([0, 1], 298), np.tile(np.arange(2, 300), 2)
    A = jsp.from_edges(np.r_[hubs, leaves], np.r_[leaves, hubs])
    with using(backend):
        wide = jsp.diameter(A)
    assert (int(wide.diameter), int(wide.searches)) == (2, 2)


def test_parts_that_do_not_reach_each_other():
    A = jsp.from_edges([0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3], shape=(5, 5))
    found = jsp.eccentricity(A)
    assert found.values.tolist() == [2, 1, 2, 1, 1] and not bool(found.connected)
    wide = jsp.diameter(A, 3)
    assert int(wide.diameter) == 1 and not bool(wide.connected)
    with pytest.raises(ValueError, match="diameter is of undirected graphs"):
        jsp.diameter(jsp.from_edges([0], [1], shape=(2, 2)))
    with pytest.raises(ValueError, match=r"\[0, 5\)"):
        jsp.eccentricity(A, [5])


@pytest.mark.parametrize("backend", ["cpu", "xla"])
@pytest.mark.parametrize("entries", [0, 20, 80])
def test_generations_are_those_of_networkx(entries, backend):
    A = random_matrix(30, entries, entries, loops=False)
    order = np.random.default_rng(0).permutation(30)
    A = type(A)(np.triu(A.toarray())[order][:, order])
    g = networkx_of(A, symmetric=False)
    H = jsp.pad(jsp.from_scipy(A), n=36, nse=100)
    found = jsp.topological_sort(H, backend=backend)
    assert bool(found.acyclic) and (found.order[30:] == 36).all()
    verify.topological_order(A, jsp.unpad(found, H))
    for k, generation in enumerate(networkx.topological_generations(g)):
        assert all(int(found.generations[v]) == k for v in generation)
    place = np.argsort(np.asarray(found.order)[:30])
    assert all(place[u] < place[v] for u, v in g.edges)


@pytest.mark.parametrize("backend", ["cpu", "xla"])
def test_cycles_are_found(backend):
    A = jsp.from_edges([0, 1, 2, 3], [1, 2, 1, 0], shape=(5, 5))
    found = jsp.topological_sort(A, backend=backend)
    assert found.order.tolist() == [3, 4, 0, 5, 5] and not bool(found.acyclic)
    assert found.generations.tolist() == [1, -1, -1, 0, 0]
    loop = jsp.from_edges([0, 1], [1, 1], shape=(2, 2))
    assert not bool(jsp.is_directed_acyclic_graph(loop, backend=backend))
    batch = jax.vmap(lambda d: jsp.topological_sort(A.with_data(d), backend=backend).order)
    assert batch(np.ones((2, 4), np.float32)).tolist() == [found.order.tolist()] * 2


def test_paths_to_a_target():
    A = named("karate")
    far = networkx.single_source_shortest_path_length(networkx_of(A.to_scipy(), symmetric=True), 16)
    hops, lengths = jsp.bfs(A, 16), jsp.sssp(A, 16)
    stored = A.to_scipy().toarray() != 0
    for found in (hops, lengths):
        for target in range(34):
            path = found.path_to(target)
            assert path[0] == 16 and path[-1] == target and len(path) == far[target] + 1
            assert stored[path[:-1], path[1:]].all()
    alone = jsp.bfs(jsp.from_edges([0], [1], shape=(3, 3)), 0)
    assert alone.path_to(2).size == 0 and alone.path_to(0).tolist() == [0]


def test_no_path_can_be_told():
    A = named("karate")
    with pytest.raises(ValueError, match="needs parents"):
        jsp.bfs(A, 0, parents=False).path_to(3)
    with pytest.raises(ValueError, match=r"\[0, 34\)"):
        jsp.bfs(A, 0).path_to(34)
    with pytest.raises(ValueError, match="of one source"):
        jsp.bfs(A, [0, 1]).path_to(3)
    with pytest.raises(ValueError, match="concrete"):
        jax.jit(lambda s: jsp.bfs(A, s).path_to(3))(0)
    with pytest.raises(ValueError, match="no tree"):
        jsp.bfs(A, 0)._replace(parents=np.roll(np.arange(34), 1)).path_to(3)


def test_reductions_are_those_of_networkx():
    A = random_matrix(40, 250, 1, loops=False)
    A = type(A)(np.triu(A.toarray()))
    order = np.random.default_rng(0).permutation(40)
    A = type(A)(A.toarray()[order][:, order])
    want = networkx.transitive_reduction(networkx_of(A, symmetric=False))
    for G in (jsp.from_scipy(A), jsp.pad(jsp.from_scipy(A), n=50, nse=300)):
        left = jsp.transitive_reduction(G).to_scipy().tocoo()
        found = set(zip(left.row.tolist(), left.col.tolist(), strict=True))
        assert found == set(want.edges)
    verify.transitive_reduction(A, left.tocsr()[:40, :40])
    with pytest.raises(AssertionError, match="could go"):
        verify.transitive_reduction(A, A)
    with pytest.raises(ValueError, match="must have no cycle"):
        jsp.transitive_reduction(jsp.from_edges([0, 1], [1, 0], shape=(2, 2)))


def test_all_pairs_of_a_padded_graph():
    H = jsp.pad(jsp.from_edges([0, 1], [1, 2], shape=(3, 3)), n=5)
    found = jsp.unpad(jsp.all_pairs_shortest_path_length(H), H)
    assert found.lengths.tolist() == [[0, 1, 2], [-1, 0, 1], [-1, -1, 0]]


def test_all_pairs_and_reachability():
    A = random_matrix(40, 70, 2)
    G, g = jsp.from_scipy(A), networkx_of(A, symmetric=False)
    hops = jsp.all_pairs_shortest_path_length(G).lengths
    lengths = jsp.check(jsp.all_pairs_shortest_path_length(G, weighted=True)).lengths
    for u, far in networkx.all_pairs_dijkstra_path_length(g):
        near = networkx.single_source_shortest_path_length(g, u)
        for v in range(40):
            assert int(hops[u, v]) == near.get(v, -1) and float(lengths[u, v]) == far.get(v, np.inf)
    none = jsp.from_edges([], [], shape=(0, 0))
    assert all(
        jsp.all_pairs_shortest_path_length(none, weighted=w).lengths.shape == (0, 0)
        for w in (False, True)
    )
    for u, v in ((0, 5), (3, 17), (7, 7), (11, 30)):
        assert bool(jsp.has_path(G, u, v)) == networkx.has_path(g, u, v)
    assert bool(jax.jit(jsp.has_path)(G, 7, 7))
    with pytest.raises(ValueError, match=r"\[0, 40\)"):
        jsp.has_path(G, 0, 40)


def test_a_heuristic_leads_to_the_target():
    g = networkx.grid_2d_graph(12, 12)
    nodes = list(g.nodes)
    A = jsp.from_networkx(networkx.convert_node_labels_to_integers(g))
    x = np.array(nodes)
    rng = np.random.default_rng(0)
    W = A.to_scipy().tocoo()
    weights = 1 + rng.random((144, 144)) * 0.3
    A = jsp.from_edges(W.row, W.col, weights[W.row, W.col].astype(np.float32), shape=(144, 144))
    h = np.abs(x - x[40]).sum(axis=1).astype(np.float32)
    found = jsp.astar(A, 0, 40, h)
    want = jsp.sssp(A, 0)
    np.testing.assert_allclose(found.distance, want.distances[40], rtol=1e-5)
    path = found.path_to(40)
    along = sum(weights[a, b] for a, b in zip(path[:-1], path[1:], strict=True))
    np.testing.assert_allclose(along, found.distance, rtol=1e-5)
    assert int(found.settled) < 144
    assert np.isinf(jsp.astar(jsp.from_edges([0], [1], shape=(3, 3)), 0, 2, np.zeros(3)).distance)
    with pytest.raises(ValueError, match="must not fall"):
        jsp.astar(A, 0, 40, 5 * h)
    with pytest.raises(ValueError, match=r"shape \(144,\)"):
        jsp.astar(A, 0, 40, h[:3])


def test_a_heuristic_is_infinite_where_no_way_leads_to_the_target():
    A = jsp.from_edges([0, 0, 1, 3, 4], [1, 3, 2, 4, 3], np.float32([1, 1, 2, 1, np.inf]))
    found = jsp.astar(A, 0, 2, [3, 2, 0, np.inf, np.inf])
    assert float(found.distance) == 3 and found.path_to(2).tolist() == [0, 1, 2]
    assert np.isinf(jsp.astar(A, 3, 2, [3, 2, 0, np.inf, np.inf]).distance)
    with pytest.raises(ValueError, match="must not fall"):
        jsp.astar(A, 0, 2, [9, 2, 0, np.inf, np.inf])


def test_several_paths_without_edges():
    A = jsp.from_edges([], [], np.float32([]), shape=(3, 3))
    for target, want in ((0, [0, np.inf]), (1, [np.inf] * 2)):
        found = jsp.k_shortest_paths(A, 0, target, 2, method="searches")
        assert found.distances.tolist() == want


@pytest.mark.parametrize("entries, seed", [(90, 0), (200, 1), (0, 2)])
def test_several_paths_are_those_of_scipy(entries, seed):
    A = random_matrix(30, entries, seed)
    H = jsp.pad(jsp.from_scipy(A), n=36, nse=256)
    for source, target in ((0, 5), (3, 17), (7, 7), (11, 2)):
        for weighted in (True, False):
            found = jsp.k_shortest_paths(H, source, target, 6, weighted=weighted)
            verify.shortest_paths(A, source, target, 6, found, weighted=weighted)
    some = jax.jit(lambda H, s: jsp.k_shortest_paths(H, s, 5, 6))(H, 0)
    np.testing.assert_allclose(some.distances, jsp.k_shortest_paths(H, 0, 5, 6).distances)


def test_several_paths_through_equal_and_repeated_edges():
    """Repeated entries are one edge: their sum, as in SciPy."""
    row, col = [0, 0, 0, 1, 2, 1, 2, 3], [1, 1, 2, 3, 3, 2, 1, 4]
    lengths = np.float32([3, 1, 0, 0, 1, 0, 0, 2])
    ends = np.int32(row), np.int32(col)
    A = jsp.COO(lengths, *ends, np.bool_(False), (5, 5), sorted=False, unique=False)
    found = jsp.k_shortest_paths(A, 0, 4, 5)
    assert found.distances.tolist() == [2, 3, 6, 7, np.inf] and int(found.count) == 4
    ways = {tuple(found.path(k).tolist()) for k in range(4)}
    g = networkx.DiGraph(zip(row, col, strict=True))
    assert ways == set(map(tuple, networkx.all_simple_paths(g, 0, 4)))
    assert found.path(4).size == 0
    for error, call in (
        ("`number`", lambda: found.path(5)),
        ("`k` must", lambda: jsp.k_shortest_paths(A, 0, 4, 0)),
        (r"\[0, 5\)", lambda: jsp.k_shortest_paths(A, 0, 5, 1)),
        ("one vertex", lambda: jsp.k_shortest_paths(A, [0, 1], 4, 1)),
        (
            "slot 1 holds -1.0",
            lambda: jsp.k_shortest_paths(jsp.from_dense([[0, 1], [-1.0, 0]]), 0, 1, 1),
        ),
    ):
        with pytest.raises(ValueError, match=error):
            call()


@pytest.mark.parametrize("backend", ["cpu", "xla"])
def test_several_paths_of_integers(backend):
    """Exact, and without the paths whose lengths reach the largest integer."""
    top = np.iinfo(np.int32).max
    A = jsp.from_edges([0, 0, 1, 2], [1, 2, 3, 3], np.zeros(4, np.int32), shape=(4, 4))
    for weights, distances, overflow in (
        ((2**24, 2**24, 1, 2), [2**24 + 1, 2**24 + 2, top], False),
        ((top - 4, top - 4, 3, 4), [top - 1, top, top], True),
        ((top - 4, top - 4, 3, top), [top - 1, top, top], True),
        ((1, 2, 3, top), [4, top, top], True),
    ):
        A = A.with_edge_data(np.array(weights, np.int32))
        found = jsp.k_shortest_paths(A, 0, 3, 3, backend=backend)
        assert found.distances.dtype == np.int32 and found.distances.tolist() == distances
        assert int(found.count) == np.sum(np.array(distances) < top)
        assert found.path(0).tolist() == [0, 1, 3] and bool(found.overflow) == overflow


def test_paths_of_many_vertices_without_detours_need_few_searches():
    """A path of 100,000 vertices and one detour: a search for each vertex would take hours."""
    n = 100_000
    e = np.arange(n - 1)
    tails, heads = np.concatenate([e, e + 1, [40]]), np.concatenate([e + 1, e, [42]])
    weights = np.concatenate([np.ones(2 * n - 2, np.float32), [np.float32(2.5)]])
    A = jsp.from_edges(tails, heads, weights, shape=(n, n))
    found = jsp.k_shortest_paths(A, 0, n - 1, 3)
    assert int(found.count) == 2 and found.hops.tolist() == [n - 1, n - 2, -1]
    assert found.distances[:2].tolist() == [n - 1.0, n - 0.5]
    assert found.path(1)[39:43].tolist() == [39, 40, 42, 43]


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_several_paths_of_weights_made_under_x64():
    with jax.enable_x64(True):
        A = jsp.from_edges([0, 0, 1, 2], [1, 2, 3, 3], np.int64([1, 2, 1, 1]), shape=(4, 4))
    with jax.enable_x64(False):
        found = jsp.k_shortest_paths(A, 0, 3, 3)
    assert found.distances.tolist() == [2, 3, 2**31 - 1] and not found.overflow
