"""Graphs to arrays and back: labels, order, attributes, what is refused, what is shared."""

import networkx as nx
import numpy as np
import nx_cases
import pytest

from jaxspv.networkx_backend import backend
from jaxspv.networkx_backend.graph import ConvertedGraph
from jaxspv.networkx_backend.registry import double_precision
from jaxspv.networkx_backend.views import on_device, pattern, weighted

pytestmark = pytest.mark.fast


def converted(G, **kwargs):
    return backend.convert_from_nx(G, **{"edge_attrs": {"weight": 1}, **kwargs})


@pytest.mark.parametrize("kind", nx_cases.GRAPHS)
def test_entries_are_the_adjacency_in_its_order(kind):
    G = nx_cases.GRAPHS[kind]()
    C = converted(G)
    assert C.nodes == list(G) and (C.is_directed(), C.is_multigraph()) == (
        G.is_directed(),
        G.is_multigraph(),
    )
    found = [(C.nodes[u], C.nodes[v]) for u, v in zip(C.row, C.col, strict=True)]
    wanted = [
        (u, v)
        for u, near in G.adjacency()
        for v, data in near.items()
        for _ in (data if G.is_multigraph() else [0])
    ]
    assert found == wanted
    assert (C.number_of_edges(), len(C)) == (G.number_of_edges(), len(G))


@pytest.mark.parametrize("kind", nx_cases.GRAPHS)
def test_there_and_back(kind):
    G = nx_cases.GRAPHS[kind]()
    G.graph["name"], everything = (
        "of the test",
        dict.fromkeys(["preserve_edge_attrs", "preserve_node_attrs", "preserve_graph_attrs"], True),
    )
    for node in G:
        G.nodes[node]["color"] = str(node)
    back = backend.convert_to_nx(backend.convert_from_nx(G, **everything))
    assert type(back) is type(G) and list(back) == list(G)
    assert (back.graph, back._node, back._adj) == (G.graph, G._node, G._adj)


@pytest.mark.parametrize("kind", ["karate", "directed", "multigraph", "multidigraph"])
def test_views_of_subgraphs(kind):
    G = nx_cases.GRAPHS[kind]()
    view = G.subgraph(list(G)[1:])
    C, D = converted(view), converted(view.copy())
    assert C.nodes == D.nodes and sorted(zip(C.row, C.col, C.values["weight"], strict=True)) == (
        sorted(zip(D.row, D.col, D.values["weight"], strict=True))
    )


class Complement(nx.Graph):
    """Its edges are those that are not stored."""

    def adjacency(self):
        missing = {v: {w: {} for w in self._adj if w not in self._adj[v] and w != v} for v in self}
        return iter(missing.items())


def test_classes_with_an_adjacency_of_their_own():
    G = Complement(nx.karate_club_graph())
    found = backend.core_number(converted(G))
    assert found == nx.core_number(nx.complement(nx.Graph(nx.karate_club_graph())))


class Sets(nx.Graph):
    """As the complements within NetworkX: neighbours are sets without attributes."""

    def adjacency(self):
        return ((v, set(near)) for v, near in super().adjacency())


def test_classes_whose_neighbours_are_sets():
    G = Sets(nx.karate_club_graph())
    assert backend.core_number(converted(G)) == nx.core_number(nx.karate_club_graph())


def test_what_is_no_graph_comes_back_as_it_is():
    assert backend.convert_to_nx({"a": 1}) == {"a": 1}


def test_defaults_and_kinds_of_numbers():
    G = nx.Graph([("a", "b", {"w": 2}), ("b", "c", {})])
    C = backend.convert_from_nx(G, edge_attrs={"w": 7})
    assert C.weights("w").tolist() == [2, 2, 7, 7] and C.weights("w").dtype == np.int64
    G["a"]["b"]["w"] = 2.5
    assert backend.convert_from_nx(G, edge_attrs={"w": 7}).weights("w").dtype == np.float64


@pytest.mark.parametrize("value", ["3", None, [1], 1j, 10**30, 2**60, {}])
def test_values_that_are_no_numbers_are_handed_back(value):
    G = nx.path_graph(4)
    G[0][1]["weight"] = value
    with pytest.raises(NotImplementedError, match="'weight'"):
        converted(G)


@pytest.mark.parametrize("other", [0.5, 3, -1])
@pytest.mark.parametrize("value", [2**53 + 1, 2**63 + 1, -(2**60), np.int64(2**60)])
def test_integers_that_the_array_of_all_weights_rounds_are_handed_back(value, other):
    """NumPy makes floats of integers beside floats, and beside others of more than 63 bits."""
    G = nx.Graph([(0, 1, {"weight": value}), (1, 2, {"weight": other})])
    with pytest.raises(NotImplementedError, match="'weight'"):
        converted(G)
    G[0][1]["weight"] = value = float(value)  # NetworkX adds in float64, too
    assert converted(G).weights("weight").tolist() == [value, value, other, other]


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_lengths_whose_result_depends_on_the_order_of_steps_are_handed_back(value):
    G = nx.path_graph(4)
    G[0][1]["weight"] = value
    with pytest.raises(NotImplementedError, match="weight"):
        backend.single_source_dijkstra_path_length(converted(G), 0)


def test_results_are_integers_where_lengths_are():
    G = nx.path_graph(3)
    G[0][1]["weight"] = 4
    found = backend.single_source_dijkstra_path_length(converted(G), 0)
    assert found == {0: 0, 1: 4, 2: 5} and {type(d) for d in found.values()} == {int}


def test_parallel_edges_join_as_each_function_wants():
    C = converted(nx_cases.parallel(nx.MultiDiGraph))
    assert backend.dijkstra_path_length(C, "a", "b") == 1  # of 2 and 1
    with double_precision():
        total = weighted(C, "weight", parallel=np.add).out.to_scipy().toarray()
    assert total[0, 1] == 3 and total[1, 1] == 1


def test_tiny_graphs_share_one_bucket():
    shapes = set()
    for G in (nx.path_graph(3), nx.complete_graph(15), nx.empty_graph(2)):
        with double_precision():
            graph = pattern(converted(G))
        shapes.add((graph.n, graph.nse, graph.dtype))
    assert len(shapes) == 1


def test_a_bucket_holds_what_is_put_into_it():
    rng = np.random.default_rng(0)
    row, col = np.unique(rng.integers(0, 300, (2, 900)), axis=1).astype(np.int32)
    graph = on_device(300, row, col, np.arange(len(row), dtype=np.float32))
    A = graph.out.to_scipy().tocoo()
    assert graph.n > 300 and graph.nse > len(row) and int(graph.num_vertices) == 300
    assert np.array_equal(np.sort(A.data), np.arange(len(row)))


def test_membership_as_in_a_graph():
    C = converted(nx.Graph([("a", 1)]))
    assert "a" in C and 1 in C and "b" not in C and [] not in C
    assert isinstance(C, ConvertedGraph) and list(C) == ["a", 1]


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_an_undirected_view_with_two_weights_an_edge_is_handed_back(kind):
    """NetworkX reads the one or the other, by which end it comes from."""
    G = kind([(0, 1, {"weight": 1}), (1, 2, {"weight": 3})])
    view, asked = G.to_undirected(as_view=True), {"edge_attrs": {"weight": 1}}
    assert not backend.convert_from_nx(view, **asked).is_directed()
    G.add_edge(1, 0, weight=1)
    backend.convert_from_nx(view, **asked)
    G.add_edge(2, 1, weight=2)
    with pytest.raises(NotImplementedError, match="two values"):
        backend.convert_from_nx(view, **asked)
    backend.convert_from_nx(view)  # without weights it is a graph like others
