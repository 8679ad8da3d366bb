"""Names of vertices: tables and NetworkX graphs in, results and NetworkX graphs out."""

import sys
from typing import Any

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

import jaxspv as jsp

pytestmark = pytest.mark.fast
TABLE = {
    "source": np.array(["Rome", "Pisa", "Rome", "Bari"]),
    "target": np.array(["Pisa", "Lucca", "Pisa", "Bari"]),
    "km": [3, 2, 5, 7],
}
NAMES = ["Rome", "Pisa", "Lucca", "Bari"]


def test_a_table_row_by_row():
    A, labels = jsp.io.from_table(TABLE, weight="km")
    assert labels.names == NAMES and A.dtype == np.float32
    want = nx.DiGraph()
    want.add_nodes_from(NAMES)
    want.add_weighted_edges_from([("Rome", "Pisa", 8), ("Pisa", "Lucca", 2), ("Bari", "Bari", 7)])
    np.testing.assert_array_equal(A.todense(), nx.to_numpy_array(want))


def test_both_directions_and_another_way_to_join():
    A, _ = jsp.io.from_table(
        TABLE, weight="km", directed=False, dup=jsp.monoids.min_, dtype="int32"
    )
    want = [[0, 3, 0, 0], [3, 0, 2, 0], [0, 2, 0, 0], [0, 0, 0, 7]]
    assert A.dtype == np.int32 and A.todense().tolist() == want


def test_a_data_frame_is_such_a_table():
    pandas = pytest.importorskip("pandas")
    A, labels = jsp.io.from_table(pandas.DataFrame(TABLE), weight="km")
    B, others = jsp.io.from_table(TABLE, weight="km")
    assert labels.names == others.names and np.array_equal(A.todense(), B.todense())
    assert all(type(name) is str for name in labels.names)


def test_names_that_are_tuples(tmp_path):
    grid = nx.grid_2d_graph(2, 3)
    tails, heads = map(list, zip(*grid.edges, strict=True))
    table = {"source": tails, "target": heads}
    A, labels = jsp.io.from_table(table, directed=False)
    want = nx.to_numpy_array(grid, nodelist=labels.names)
    np.testing.assert_array_equal(A.todense(), want)
    B, others = jsp.io.from_table({"source": [(0, 1), "end"], "target": ["end", (0, 1, 2)]})
    assert others.names == [(0, 1), "end", (0, 1, 2)] and int(B.count) == 2
    pytest.importorskip("pyarrow")
    jsp.write_edgelist(tmp_path / "grid.parquet", A, labels)
    back, names = jsp.read_edgelist(tmp_path / "grid.parquet", labels=True)
    want = nx.to_numpy_array(grid, nodelist=names.names)
    np.testing.assert_array_equal(back.todense(), want)


def test_a_table_without_rows():
    assert jsp.io.from_table({"source": [], "target": []}, labels=False).shape == (0, 0)


def test_results_by_name():
    A, labels = jsp.io.from_table(TABLE, weight="km")
    found = labels.named(jsp.sssp(A, labels.vertex("Rome")))
    assert found.distances == {"Rome": 0.0, "Pisa": 8.0, "Lucca": 10.0, "Bari": np.inf}
    assert found.parents == {"Rome": "Rome", "Pisa": "Rome", "Lucca": "Pisa", "Bari": None}
    assert found.converged is True and isinstance(found.steps, int)
    several = labels.named(jsp.bfs(A, labels.vertices(["Pisa", "Bari"])))
    assert [levels["Lucca"] for levels in several.levels] == [1, -1]
    components = labels.named(jsp.connected_components(A))
    assert components.labels == {"Rome": "Rome", "Pisa": "Rome", "Lucca": "Rome", "Bari": "Bari"}
    assert components.count == 2
    paths = [3.0] * 4, [[0, 2, 4, 4]], [1] * 4, 4, False
    paths = labels.named(jsp.results.ShortestPaths(*map(jnp.asarray, paths)))
    assert paths.distances == [3.0] * 4 and paths.vertices == [["Rome", "Lucca", None, None]]
    orders = [3, 1, 0, 2], [0, 0, 1, 2], True
    orders = labels.named(jsp.results.TopologicalOrder(*map(jnp.asarray, orders)))
    assert orders.order == ["Bari", "Pisa", "Rome", "Lucca"] and orders.generations["Lucca"] == 1
    padded = jsp.pad(A, n=9)
    assert labels.named(jsp.pagerank(padded).scores).keys() == set(NAMES)


def test_names_of_a_networkx_graph():
    G = nx.Graph([("b", "a", {"w": 2.5}), ("a", (1, 2))])
    A, labels = jsp.from_networkx(G, weight="w", labels=True)
    assert labels.names == ["b", "a", (1, 2)] and len(labels) == 3
    assert (1, 2) in labels and "c" not in labels
    np.testing.assert_array_equal(A.todense(), nx.to_numpy_array(G, weight="w"))
    some, labels = jsp.from_networkx(G, weight="w", nodelist=[(1, 2), "a"], labels=True)
    assert labels.names == [(1, 2), "a"] and some.todense().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("directed", [True, False])
def test_to_networkx_and_back(directed):
    G = nx.gnp_random_graph(12, 0.3, seed=3, directed=directed)
    G.add_edge(4, 4)
    for k, (_, _, data) in enumerate(G.edges(data=True)):
        data["w"] = float(k % 5)  # 0 among them
    A, labels = jsp.from_networkx(G, weight="w", labels=True)
    back = jsp.to_networkx(A, labels, weight="w", directed=directed)
    assert type(back) is type(G) and back.nodes == G.nodes and back.adj == G.adj
    bare = jsp.to_networkx(jsp.pad(A), weight=None, directed=directed)
    assert list(bare) == list(range(12)) and {frozenset(e) for e in bare.edges} == {
        frozenset(e) for e in G.edges
    }


@pytest.mark.long
@pytest.mark.parametrize("directed", [True, False])
def test_igraph_and_back(directed):
    igraph = pytest.importorskip("igraph")
    G = igraph.Graph.Erdos_Renyi(12, m=30, directed=directed, loops=True)
    G.vs["name"] = names = [f"v{k}" for k in range(12)]
    G.es["weight"] = [float(k % 5) for k in range(30)]  # 0 among them
    A, labels = jsp.io.from_igraph(G, labels=True)
    assert labels.names == names
    want = np.asarray(G.distances(source=0, weights="weight", mode="out"))[0]
    np.testing.assert_array_equal(jsp.sssp(A, 0).distances, want)
    np.testing.assert_array_equal(jsp.bfs(G, 0).levels == -1, np.isinf(want))
    back = jsp.io.to_igraph(A, labels, directed=directed)
    assert sorted(back.get_edgelist()) == sorted(
        e if directed else tuple(sorted(e)) for e in G.get_edgelist()
    )
    assert back.vs["name"] == names and sum(back.es["weight"]) == sum(G.es["weight"])
    bare = jsp.io.to_igraph(jsp.pad(A, n=20), weight=None, directed=directed)
    assert bare.vcount() == 12 and bare.es.attributes() == []


A = jsp.from_edges([0], [1], shape=(2, 2))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: jsp.Labels("aba"), ValueError, "twice"),
        (lambda: jsp.Labels("ab").vertex("c"), ValueError, "`name`.*'c'"),
        (lambda: jsp.Labels("ab").vertices(["a", ["b"]]), ValueError, r"\['b'\]"),
        (lambda: jsp.Labels("abc").named(np.zeros(2)), ValueError, "3 places.*(2,)"),
        (lambda: jax.jit(jsp.Labels("ab").named)(np.zeros(2)), ValueError, "outside of jit"),
        (lambda: jsp.io.from_table({"a": [1]}, "a", "b"), ValueError, "column 'b'"),
        (lambda: jsp.io.from_table({"a": [1], "b": []}, "a", "b"), ValueError, "length"),
        (
            lambda: jsp.io.from_table({"a": np.eye(2), "b": [1, 2]}, "a", "b"),
            ValueError,
            "one axis",
        ),
        (lambda: jsp.to_networkx(A, jsp.Labels("abc")), ValueError, "`labels` must be 2.*3"),
        (lambda: jsp.to_networkx(A, directed=False), ValueError, "transpose"),
        (lambda: jsp.to_networkx(jsp.from_edges([0], [1], shape=(2, 3))), ValueError, "square"),
        (lambda: jsp.to_networkx("x"), TypeError, "`A`"),
        (lambda: jsp.from_networkx(nx.Graph([(0, 1, {"weight": None})])), ValueError, "holds None"),
        (lambda: jsp.io.from_igraph("x"), TypeError, "`graph` must be an igraph graph"),
        (lambda: jax.jit(jsp.to_networkx)(A), ValueError, "outside of jit"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_without_networkx_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"jaxspv\[networkx\]"):
        jsp.to_networkx(jsp.from_edges([0], [1]))


@pytest.mark.parametrize("kind", [int, np.uint64])
@pytest.mark.parametrize("known", [False, True])
def test_integers_in_a_list_that_floats_do_not_hold(known, kind):
    """NumPy makes floats of a list with integers on both sides of 2^63, and would join these."""
    big = [kind(2**63 + k) for k in (1, 2, 3)]
    table = {"source": [1, *big], "target": [*big[::-1], 1]}
    names = list(dict.fromkeys(v for pair in zip(*table.values(), strict=True) for v in pair))
    labels: Any = jsp.Labels(names) if known else True
    A, found = jsp.io.from_table(table, labels=labels)
    assert found.names == names
    want = nx.to_numpy_array(nx.DiGraph(zip(*table.values(), strict=True)), names)
    np.testing.assert_array_equal(A.todense(), want)
    again = jsp.io.from_table(jsp.io.to_table(A, found), weight="weight", labels=found)[0]
    np.testing.assert_array_equal(again.todense(), want)
    B = jsp.io.from_table(table | {"w": [0.5, 2**60, 1, 2]}, weight="w")[0]
    assert sorted(B.data.tolist()) == [0.5, 1.0, 2.0, 2.0**60]


def test_weights_that_are_no_numbers_are_named():
    with pytest.raises(ValueError, match="'weight' holds what is no number; .*'far'"):
        jsp.from_networkx(nx.Graph([(0, 1, {"weight": "far"})]))


def test_nan_equals_nan_in_an_undirected_graph():
    A = jsp.from_edges([0, 1, 1], [1, 0, 1], [np.nan, np.nan, 2.0])
    G = jsp.to_networkx(A, directed=False)
    assert sorted(map(str, G.edges(data="weight"))) == ["(0, 1, nan)", "(1, 1, 2.0)"]
    with pytest.raises(ValueError, match="must equal its transpose"):
        jsp.to_networkx(jsp.from_edges([0, 1], [1, 0], [np.nan, 2.0]), directed=False)
