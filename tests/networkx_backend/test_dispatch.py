"""The backend as NetworkX finds it: entry points, refusals, caching, NetworkX's own tests."""

import json
import os
import pathlib
import subprocess
import sys
import types

import networkx as nx
import networkx_suite
import pytest

from jaxspv.networkx_backend import backend, info
from jaxspv.networkx_backend.functions import measures
from jaxspv.networkx_backend.info import DEFAULTS, get_info
from jaxspv.networkx_backend.registry import FUNCTIONS

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path):
    """`run(code, ...)`: what a process prints that sees the entry points of the source tree."""
    folder = networkx_suite.lay_out(tmp_path)
    path = os.pathsep.join([str(folder), str(ROOT)])

    def call(code, *arguments):
        new = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION")}
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            env={**new, "PYTHONPATH": path},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_the_info_names_what_is_there():
    assert sorted(get_info()["functions"]) == sorted(FUNCTIONS), "see info.py"
    assert len(FUNCTIONS) >= 70


def test_networkx_finds_it_without_importing_jax(run):
    printed = run(
        "import sys, networkx as nx\n"
        "info = nx.utils.backends.backend_info['jaxspv']\n"
        "print('jax' in sys.modules, 'jaxspv' in sys.modules, len(info['functions']))\n"
        "print('jaxspv :' in nx.pagerank.__doc__, dict(nx.config.backends.jaxspv))"
    )
    assert printed == f"False False {len(FUNCTIONS)}\nTrue {DEFAULTS}\n"


STORY = """
import collections, json, logging, networkx as nx
from jaxspv.networkx_backend import backend
converted = []
convert = backend.convert_from_nx
backend.convert_from_nx = lambda *a, **k: converted.append(k["name"]) or convert(*a, **k)
ran = collections.Counter()
for name in ("pagerank", "single_source_dijkstra_path_length", "shortest_path"):
    def counted(*a, name=name, call=getattr(backend, name), **k):
        ran[name] += 1
        return call(*a, **k)
    setattr(backend, name, counted)
nx.config.warnings_to_ignore.add("cache")
G = nx.fast_gnp_random_graph(3_000, 3e-3, seed=1)
for k, (u, v, d) in enumerate(G.edges(data=True)):
    d["w"] = k % 9 + 1
wanted = nx.pagerank(G), nx.single_source_dijkstra_path_length(G, 0, weight="w")
nx.config.backend_priority = ["jaxspv"]
nx.config.backends.jaxspv.only_where_faster = False
nx.config.fallback_to_nx = True
found = nx.pagerank(G), nx.single_source_dijkstra_path_length(G, 0, weight="w")
again = nx.pagerank(G), nx.single_source_dijkstra_path_length(G, 0, weight="w")
tiny = nx.shortest_path(nx.path_graph(5), 0, 4)
nx.shortest_path(G, 0, 4, weight=lambda u, v, d: 1)
assert tiny == [0, 1, 2, 3, 4]
error = max(abs(found[0][v] - wanted[0][v]) for v in G)
print(json.dumps([error, found[1] == wanted[1], found == again, converted, ran]))
"""


def test_a_program_of_networkx_runs_on_it_unchanged(run):
    """User story: two lines of configuration, the same results, one conversion an attribute."""
    error, far, repeatable, converted, ran = json.loads(run(STORY))
    assert error < 1e-6 and far and repeatable
    assert converted == ["pagerank", "single_source_dijkstra_path_length", "shortest_path"]
    assert ran == {"pagerank": 2, "single_source_dijkstra_path_length": 2, "shortest_path": 1}


VIEWS = """
import networkx as nx
nx.config.warnings_to_ignore.add("cache")
VIEWS = {
    "subgraph": lambda G: G.subgraph([0, 1, 2, 3]),
    "edge subgraph": lambda G: G.edge_subgraph(list(G.edges)),
    "filtered": lambda G: nx.subgraph_view(G, filter_edge=lambda u, *v: u < 5),
    "restricted": lambda G: nx.restricted_view(G, [5], []),
    "reversed": lambda G: G.reverse(copy=False),
    "undirected": lambda G: G.to_undirected(as_view=True),
    "directed": lambda G: G.to_directed(as_view=True),
    "copy": lambda G: G.copy(as_view=True),
    "of a view": lambda G: G.reverse(copy=False).subgraph([0, 1, 2, 3]),
}
for kind in (nx.DiGraph, nx.MultiDiGraph):
    for name, view in VIEWS.items():
        G = kind([(0, 1), (1, 2), (2, 3), (4, 5)])
        V = view(G)
        nx.has_path(V, 0, 3, backend="jaxspv")
        G.remove_edge(1, 2)
        G.add_edge(3, 0)
        for function in (nx.has_path, nx.shortest_path_length):
            for ends in ((0, 3), (3, 0)):
                told = []
                for backend in ("jaxspv", "networkx"):
                    try:
                        told.append(function(V, *ends, backend=backend))
                    except nx.NetworkXNoPath:
                        told.append("no path")
                assert told[0] == told[1], (kind, name, function, ends, told)
G = nx.path_graph(4, create_using=nx.DiGraph)
nx.has_path(G, 0, 3, backend="jaxspv")
assert G.__networkx_cache__["backends"]["jaxspv"], "what is no view stays converted"
print("same")
"""


def test_a_view_answers_for_the_graph_as_it_is_now(run):
    assert run(VIEWS) == "same\n"


def test_refusals_say_why():
    G = nx.path_graph(4)

    def why(name, *args, **kwargs):
        return backend.can_run(name, (G, *args), kwargs)

    assert why("dijkstra_path", 0, 3) is True
    assert "function" in why("dijkstra_path", 0, 3, weight=lambda u, v, d: 1)
    assert "`nstart`" in why("pagerank", nstart={0: 1})
    assert "`sp`" in why("eccentricity", sp={})
    assert "arguments" in why("pagerank", no_such_argument=1)


@pytest.fixture
def new_process(monkeypatch):
    """As in a process that has run nothing here and has no conversions."""
    monkeypatch.setattr(info, "spent", types.SimpleNamespace(seconds=0.0, calls=set()))
    return lambda loaded: monkeypatch.setattr(info, "_is_imported", lambda: loaded)


def test_a_call_is_taken_where_its_first_call_pays(new_process):
    small, large = nx.path_graph(10), nx.path_graph(100_000)
    new_process(loaded=False)
    assert "a first call here 1.3 s more" in backend.should_run("pagerank", (large,), {})
    new_process(loaded=True)
    assert "0.12 s more" in backend.should_run("pagerank", (small,), {})
    assert backend.should_run("pagerank", (large,), {}) is True
    assert "conversion" in backend.should_run("is_bipartite", (large,), {})
    assert "conversion" in backend.should_run("shortest_path", (large, 0, 9), {})
    assert backend.should_run("shortest_path", (large,), {}) is True
    assert backend.should_run("pagerank", (backend.convert_from_nx(small),), {}) is True


def test_the_second_call_of_a_size_costs_no_compilation(new_process):
    new_process(loaded=True)
    G, H = nx.path_graph(20_000), nx.path_graph(19_000)
    assert "0.12 s more" in backend.should_run("triangles", (G,), {})
    info.spent.calls.add(("triangles", 15, 16))
    assert backend.should_run("triangles", (G,), {}) is True
    assert backend.should_run("triangles", (H,), {}) is True


def test_a_conversion_that_networkx_keeps_is_not_paid_again(new_process):
    new_process(loaded=True)
    G = nx.star_graph(120_000)
    assert "0.12 s more" in backend.should_run("triangles", (G,), {})
    G.__networkx_cache__["backends"] = {"jaxspv": {"any": 1}}
    assert backend.should_run("triangles", (G,), {}) is True


def test_what_is_paid_once_takes_a_share_of_the_time_in_networkx(new_process):
    """A program of calls that take 0.5 s each: jaxspv is imported when 6.6 s are spent."""
    new_process(loaded=False)
    G = nx.complete_graph(333)
    each = info.OF_CALL["clustering"] * 333**2
    answers = [backend.should_run("clustering", (G,), {}) for _ in range(40)]
    waited = next(k for k, answer in enumerate(answers) if answer is True)
    assert info.SHARE * waited * each <= info.START_S + info.FIRST_S
    assert info.SHARE * (waited + 3) * each >= info.START_S + info.FIRST_S - each
    assert info.spent.seconds >= 0


def test_the_setting_takes_every_call(new_process, monkeypatch):
    new_process(loaded=False)
    monkeypatch.setattr(info, "setting", lambda name: False)
    assert backend.should_run("pagerank", (nx.path_graph(2),), {}) is True


def test_a_few_searches_of_many_are_left_to_networkx(new_process):
    G = nx.path_graph(5_000)
    new_process(loaded=True)

    def why(name, *args, **kwargs):
        info.spent.seconds = 0.0
        return backend.should_run(name, (G, *args), kwargs)

    for name in ("harmonic_centrality", "closeness_centrality", "eccentricity"):
        assert why(name) is True
        assert "conversion" in why(name, 7)
    assert "conversion" in why("harmonic_centrality", [3, 4, 5])
    assert "conversion" in why("harmonic_centrality", sources=[3])
    assert why("harmonic_centrality", range(2000), sources=range(9, 1990)) is True
    assert why("harmonic_centrality", iter(range(100))) is True
    assert "conversion" in why("betweenness_centrality", k=1)
    assert why("betweenness_centrality", k=300) is True
    assert why("betweenness_centrality", k=100, weight="w") is True
    assert "conversion" in why("jaccard_coefficient", [(0, 1)])
    many = [(0, k) for k in range(1, 5_000)]
    info.spent.calls.add(("jaccard_coefficient", 13, 13))
    assert why("jaccard_coefficient", many * 100) is True


def test_a_length_that_vanishes_in_a_sum_is_left_to_networkx():
    G = nx.Graph()
    G.add_weighted_edges_from([(0, 1, 1e20), (1, 2, 1.0), (2, 3, 1.0), (3, 1, 3.0)])
    converted = backend.convert_from_nx(G, edge_attrs={"weight": None})
    with pytest.raises(NotImplementedError, match="lengths, are beyond float64"):
        backend.betweenness_centrality(converted, weight="weight")


def test_eccentricity_asks_only_for_the_nodes_that_it_is_given():
    """Those that reach every node have one in a digraph that is not strongly connected, too."""
    G = nx.DiGraph([(0, 1), (1, 0), (1, 2), (2, 3)])
    C = backend.convert_from_nx(G)
    for some in ([0, 1], [1, 1, 0, 0, 1]):
        assert backend.eccentricity(C, some) == {0: 3, 1: 2}
    for some in ([0, 3], None):
        with pytest.raises(nx.NetworkXError, match="not strongly connected"):
            backend.eccentricity(C, some)


@pytest.mark.parametrize("name", ["center", "diameter", "eccentricity", "radius"])
def test_no_component_is_searched_of_a_graph_that_is_not_connected(name, monkeypatch):
    for search in ("diameter_of", "eccentricities_of"):
        monkeypatch.setattr(measures, search, None)  # a call would be a TypeError
    G = backend.convert_from_nx(nx.Graph([(0, 1), (1, 2), (3, 4)]))
    with pytest.raises(nx.NetworkXError, match="not connected"):
        getattr(backend, name)(G)


WITHOUT_JAX = """
import sys, networkx as nx
from _nx_jaxspv import backend
G = nx.path_graph(1000)
print(backend.can_run("pagerank", (G,), {}), backend.can_run("pagerank", (G,), {"nstart": {}}))
print(backend.should_run("pagerank", (G,), {}), hasattr(backend, "pagerank"), "jax" in sys.modules)
C = backend.convert_from_nx(G, edge_attrs={"weight": 1})
print(backend.is_tree(C), "jax" in sys.modules)
"""


def test_what_networkx_asks_is_answered_without_importing_jax(run):
    """The installed module alone; jaxspv is imported by a conversion."""
    first, second, third = run(WITHOUT_JAX).splitlines()
    assert first.startswith("True `nstart` is given")
    assert "in NetworkX" in second and second.endswith("True False")
    assert third == "True True"


CACHE = """
import jax, networkx as nx, sys
from jaxspv.networkx_backend import backend, registry
G = backend.convert_from_nx(nx.path_graph(5))
for wanted in (False, sys.argv[1], True):
    nx.config.backends.jaxspv.compilation_cache = wanted
    jax.config.update("jax_compilation_cache_dir", None)
    registry._keep_programs.cache_clear()
    backend.is_branching(G)
    print(jax.config.jax_compilation_cache_dir)
"""


def test_compiled_programs_are_kept_on_disk(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAXSPV_NATIVE", "0")  # a new folder has no compiled kernels
    named = str(tmp_path / "named")
    assert run(CACHE, named).split() == ["None", named, str(tmp_path / "jaxspv")]


def suite(tmp_path, *packages):
    out = tmp_path / "counts.json"
    command = [sys.executable, "tests/networkx_suite.py", "--json", str(out), *packages]
    flags = {k: v for k, v in os.environ.items() if not k.startswith("NETWORKX")}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=flags)
    counts = json.loads(out.read_text())
    assert not counts["tests"].get("failed"), done.stdout[-5000:]
    return counts


def test_some_of_networkx_s_own_tests(tmp_path):
    counts = suite(tmp_path, "algorithms.shortest_paths.tests.test_unweighted")
    assert sum(counts["calls"].values()) > 20


PART = "shortest_paths components link_analysis centrality traversal bipartite tests.test_cluster"


@pytest.mark.long
def test_a_large_part_of_networkx_s_own_tests(tmp_path):
    """A minute of them; `python tests/networkx_suite.py` runs the whole in a quarter of an hour."""
    counts = suite(tmp_path, *(f"algorithms.{package}" for package in PART.split()))
    assert sum(counts["calls"].values()) >= networkx_suite.LEAST
