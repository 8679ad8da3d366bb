"""Every function of the NetworkX backend beside NetworkX's own, on graphs of every kind."""

import contextlib
import functools
import itertools

import networkx as nx
import nx_cases
import pytest
from networkx.utils import backends
from nx_cases import (
    CUTOFF,
    DEPTH,
    NONE,
    PAIR,
    PAIRS,
    SEVERAL,
    SOURCE,
    WEIGHT,
    WEIGHTED,
    WEIGHTED_CUTOFF,
    WEIGHTED_PAIR,
    WEIGHTS,
    call,
    first,
    last,
    no_estimate,
    some,
)
from nx_valid import VALID

from jaxspv.networkx_backend import backend
from jaxspv.networkx_backend.registry import FUNCTIONS

SPANNING = [call(), call(weight="other"), call(data=False)]
CALLS = {  # name -> its calls
    "adamic_adar_index": PAIRS,
    "all_pairs_bellman_ford_path": WEIGHT,
    "all_pairs_bellman_ford_path_length": WEIGHT,
    "all_pairs_dijkstra": [*WEIGHT, call(cutoff=3), call(cutoff=-1)],
    "all_pairs_dijkstra_path": [*WEIGHT, call(cutoff=3), call(cutoff=-1)],
    "all_pairs_dijkstra_path_length": [*WEIGHT, call(cutoff=3), call(cutoff=-1)],
    "all_pairs_shortest_path": [*NONE, call(cutoff=2), call(cutoff=-1)],
    "all_pairs_shortest_path_length": [*NONE, call(cutoff=2), call(cutoff=-1)],
    "ancestors": SOURCE,
    "astar_path": [*WEIGHTED_PAIR, call(first, last, heuristic=no_estimate)],
    "astar_path_length": [*WEIGHTED_PAIR, call(first, last, heuristic=no_estimate)],
    "asyn_lpa_communities": NONE,
    "attracting_components": NONE,
    "average_clustering": [call(), call(some), call(weight="weight"), call(count_zeros=False)],
    "average_shortest_path_length": [*WEIGHT, call(method="wrong")],
    "bellman_ford_path": WEIGHTED_PAIR,
    "bellman_ford_path_length": WEIGHTED_PAIR,
    "betweenness_centrality": [
        call(),
        call(weight="weight"),
        call(normalized=False),
        call(endpoints=True),
        call(k=lambda G: (len(G) + 1) // 2, seed=3),
    ],
    "bfs_edges": [*DEPTH, call(first, reverse=True)],
    "bfs_layers": [*SOURCE, call([first])],
    "bfs_successors": DEPTH,
    "bidirectional_dijkstra": WEIGHTED_PAIR,
    "bidirectional_shortest_path": PAIR,
    "center": [call(), call(weight="weight"), call(usebounds=True)],
    "closeness_centrality": [
        *(call(), call(first), call(distance="weight"), call(wf_improved=False)),
        *(call("nowhere"), call(["nowhere"]), call("nowhere", distance="weight")),
    ],
    "clustering": [call(), call(first), call(some), call(weight="weight")],
    "color": NONE,
    "connected_components": NONE,
    "core_number": NONE,
    "descendants": SOURCE,
    "descendants_at_distance": [*(call(first, k) for k in (0, 2, 99)), call("nowhere", 1)],
    "diameter": [call(), call(weight="weight"), call(usebounds=True)],
    "dijkstra_path": WEIGHTED_PAIR,
    "dijkstra_path_length": WEIGHTED_PAIR,
    "dijkstra_predecessor_and_distance": WEIGHTED_CUTOFF,
    "eccentricity": [call(), call(weight="weight"), call(first), call(some)],
    "efficiency": PAIR[:2],
    "eigenvector_centrality": [
        call(max_iter=3000),
        call(weight="weight", max_iter=3000),
        call(max_iter=2),
        call(nstart={}),
    ],
    "flow_hierarchy": WEIGHTS,
    "fast_label_propagation_communities": NONE,
    "floyd_warshall": WEIGHT,
    "floyd_warshall_numpy": [*WEIGHT, call(nodelist=lambda G: list(G)[::-1])],
    "generalized_degree": [call(), call(first), call(some)],
    "global_efficiency": NONE,
    "gutman_index": WEIGHT,
    "harmonic_centrality": [call(), call(distance="weight"), call(some), call(sources=some)],
    "harmonic_diameter": WEIGHT,
    "greedy_color": [call(), call("smallest_last"), call(interchange=True)],
    "has_path": PAIR,
    "hits": [call(), call(max_iter=2000), call(normalized=False)],
    "hyper_wiener_index": WEIGHT,
    "is_arborescence": NONE,
    "is_attracting_component": NONE,
    "is_bipartite": NONE,
    "is_branching": NONE,
    "is_connected": NONE,
    "is_directed_acyclic_graph": NONE,
    "is_forest": NONE,
    "is_strongly_connected": NONE,
    "is_tree": NONE,
    "is_weakly_connected": NONE,
    "jaccard_coefficient": PAIRS,
    "k_core": [call(), call(2)],
    "k_corona": [call(2), call(3)],
    "k_crust": [call(), call(2)],
    "k_shell": [call(), call(2)],
    "k_truss": [call(2), call(3), call(4)],
    "katz_centrality": [
        call(),
        call(nstart={}),
        call(alpha=0.02, weight="weight"),
        call(beta=lambda G: dict.fromkeys(G, 2.0)),
    ],
    "label_propagation_communities": NONE,
    "louvain_communities": [*WEIGHT, call(resolution=1.5), call(seed=3), call(max_level=1)],
    "maximal_independent_set": [call(), call(seed=7), call(some)],
    "maximum_spanning_edges": SPANNING,
    "maximum_spanning_tree": SPANNING[:2],
    "minimum_spanning_edges": SPANNING,
    "minimum_spanning_tree": SPANNING[:2],
    "multi_source_dijkstra": [*SEVERAL, call(some, target=last)],
    "multi_source_dijkstra_path": SEVERAL,
    "multi_source_dijkstra_path_length": SEVERAL,
    "node_connected_component": [call(first)],
    "number_attracting_components": NONE,
    "number_connected_components": NONE,
    "number_strongly_connected_components": NONE,
    "number_weakly_connected_components": NONE,
    "onion_layers": NONE,
    "pagerank": [
        call(),
        call(weight=None, alpha=0.7),
        call(max_iter=2),
        call(personalization=lambda G: {first(G): 1, last(G): 2}, tol=1e-13, max_iter=400),
    ],
    "periphery": [call(), call(weight="weight"), call(usebounds=True)],
    "radius": [call(), call(weight="weight"), call(usebounds=True)],
    "resource_allocation_index": PAIRS,
    "schultz_index": WEIGHT,
    "sets": [call(), call(some)],
    "shortest_path": [call(), *WEIGHTED, call(target=first), *WEIGHTED_PAIR, call(method="wrong")],
    "shortest_path_length": [call(), *WEIGHTED, call(target=first), *WEIGHTED_PAIR],
    "single_source_bellman_ford": [*WEIGHTED, call(first, last)],
    "single_source_bellman_ford_path": WEIGHTED,
    "single_source_bellman_ford_path_length": WEIGHTED,
    "single_source_dijkstra": [*WEIGHTED_CUTOFF, call(first, last)],
    "single_source_dijkstra_path": WEIGHTED_CUTOFF,
    "single_source_dijkstra_path_length": WEIGHTED_CUTOFF,
    "single_source_shortest_path": CUTOFF,
    "single_source_shortest_path_length": CUTOFF,
    "single_target_shortest_path": CUTOFF,
    "single_target_shortest_path_length": CUTOFF,
    "strongly_connected_components": NONE,
    "tournament_is_strongly_connected": NONE,
    "transitivity": NONE,
    "triangles": [call(), call(first), call(some)],
    "weakly_connected_components": NONE,
    "wiener_index": WEIGHT,
}


# graphs of some kind
REFUSING = """
average_clustering clustering generalized_degree transitivity triangles core_number k_core k_shell
k_crust k_corona hits minimum_spanning_edges maximum_spanning_edges minimum_spanning_tree
maximum_spanning_tree astar_path astar_path_length greedy_color louvain_communities
maximal_independent_set bfs_edges
asyn_lpa_communities fast_label_propagation_communities label_propagation_communities
""".split()
HANDED_BACK = {("pagerank", kind) for kind in nx_cases.GRAPHS}  # of few steps, personalised
LOOPS = ["adamic_adar_index", "jaccard_coefficient", "resource_allocation_index"]
HANDED_BACK |= {(n, "lettered") for n in LOOPS}
NO_TOURNAMENT = ["directed", "strong", "arborescence"]
HANDED_BACK |= {("tournament_is_strongly_connected", kind) for kind in NO_TOURNAMENT}
HANDED_BACK.add(("hits", "single"))
LABELS = [name for name in VALID if "communities" in name]
HANDED_BACK |= {(n, kind) for n in LABELS for kind in ("lettered", "multigraph")}  # self loops
HANDED_BACK |= {(n, kind) for n in LABELS for kind in ("tree", "grid")}  # labels that alternate
HANDED_BACK |= {("maximal_independent_set", kind) for kind in ("lettered", "multigraph")}


def test_every_function_is_called_here():
    assert sorted(CALLS) == sorted(FUNCTIONS)


def original(name):
    """NetworkX's function, which refuses kinds of graphs before it dispatches."""
    if name == "tournament_is_strongly_connected":
        return nx.tournament.is_strongly_connected
    capacities = (nx, nx.community, nx.bipartite, nx.tournament)
    return next(f for capacity in capacities if (f := getattr(capacity, name, None)) is not None)


def outcome(function, G, arguments, compared):
    """What a call gives, its paths as lengths, or the type of its error."""
    positional, named = arguments
    try:
        with contextlib.suppress(NotImplementedError):  # the backend hands the call back
            return compared(nx_cases.plain(function(G, *positional, **named)))
        return NotImplementedError
    except Exception as error:
        return type(error)


def converted(name, G):
    everything = dict.fromkeys(["preserve_edge_attrs", "preserve_node_attrs"], True)
    whole = name.startswith("k_") or "spanning" in name
    kept = everything if whole else {"edge_attrs": {"weight": 1}}
    return backend.convert_from_nx(G, preserve_graph_attrs=True, **kept)


def unordered(name, G, named, value):
    """A result without what is free: the order of sets, which of equal paths."""
    weight = named.get("weight", None if "shortest" in name else "weight")
    if name == "louvain_communities":
        return VALID[name](
            G, value, **{k: named[k] for k in ("weight", "resolution") if k in named}
        )
    if name in VALID:  # of several right answers NetworkX may take another
        return VALID[name](G, value)
    if name == "dijkstra_predecessor_and_distance":
        return {v: set(tails) for v, tails in value[0].items()}, value[1]
    if name in ("strongly_connected_components", "attracting_components"):
        return {frozenset(part) for part in value}
    if name == "floyd_warshall":  # a direct edge's weight as it is, which may be True
        return {u: {v: d + 0 for v, d in far.items()} for u, far in value.items()}
    found = nx_cases.costs(G, value, weight) if name in PATHS else value
    if name == "multi_source_dijkstra":  # any of the sources that are as near, here and below
        found = found[0], {v: (end, length) for v, (_, end, length) in found[1].items()}
    if name == "multi_source_dijkstra_path":
        found = {v: (end, length) for v, (_, end, length) in found.items()}
    return found


def compare(name, G, C, arguments):
    """Asserts that a call gives what NetworkX's own gives, or tells why it is not compared."""
    positional, named = arguments
    compared = functools.partial(unordered, name, G, named)
    if backend.can_run(name, (G, *positional), named) is not True:
        return "refused"
    function = original(name)
    unchecked = name in VALID  # NetworkX's own draw is not on trial
    wanted = outcome(function, G, arguments, (lambda value: None) if unchecked else compared)
    if wanted is nx.NetworkXNotImplemented and hasattr(function, "__argmap__"):
        return "refused by a decorator, before backends are asked"
    found = outcome(getattr(backend, name), C, arguments, compared)
    if found is NotImplementedError:
        return "handed back"
    if isinstance(wanted, type) or isinstance(found, type):
        assert found is wanted, arguments
    else:
        nx_cases.same(found, wanted, f"{name}{arguments}")
    return None


@pytest.mark.filterwarnings("ignore")  # NetworkX's own
@pytest.mark.parametrize("kind", nx_cases.GRAPHS)
@pytest.mark.parametrize("name", sorted(CALLS))
def test_as_networkx(name, kind):
    if name not in vars(backends)["_registered_algorithms"]:
        pytest.skip(f"NetworkX {nx.__version__} has no {name}")
    G = nx_cases.GRAPHS[kind]()
    C = converted(name, G)
    for arguments in CALLS[name]:
        asked = arguments(G)
        left = compare(name, G, C, asked)
        if left == "refused":  # tested elsewhere, or rests on the graph
            assert name in REFUSING or kind == "null", (name, asked)
        elif left == "handed back":
            assert "nstart" in asked[1] or (name, kind) in HANDED_BACK, asked


ODD = [
    (1, 2),
    frozenset([1]),
    "a",
    0.5,
    True,
    Ellipsis,
    object(),
    b"x",
    (),
    1j,
    "",
    -1,
    type,
    2**70,
]


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_odd_labels(kind):
    """Any hashable is a label; None is none, as NetworkX refuses it."""
    G = nx_cases.weighted(nx.relabel_nodes(nx.path_graph(14, kind), ODD.__getitem__))
    G.add_edges_from([(ODD[0], ODD[5]), (ODD[9], ODD[2]), (ODD[12], ODD[7])])
    for name in (
        "bfs_edges shortest_path dijkstra_path_length astar_path bfs_successors descendants"
        " pagerank core_number clustering betweenness_centrality minimum_spanning_tree has_path"
    ).split():
        C = converted(name, G)
        for arguments in CALLS[name]:
            compare(name, G, C, arguments(G))
        assert None not in C


@pytest.mark.filterwarnings("ignore")  # NetworkX's own
@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiDiGraph])
@pytest.mark.parametrize("values", nx_cases.WEIGHTS_OF)
def test_special_weights(values, kind):
    """The answer is NetworkX's own, or the call is handed back."""
    G = nx_cases.drawn(kind, nx_cases.WEIGHTS_OF[values])
    answers = 0
    for name in READING_WEIGHTS:
        try:
            C = converted(name, G)
        except NotImplementedError:
            continue
        answers += sum(compare(name, G, C, arguments(G)) is None for arguments in CALLS[name])
    assert answers or values in ("subnormal", "huge", "huge integers", "least integer")


READING_WEIGHTS = """
all_pairs_dijkstra_path_length average_clustering betweenness_centrality closeness_centrality
dijkstra_predecessor_and_distance eigenvector_centrality floyd_warshall hits katz_centrality
maximum_spanning_edges minimum_spanning_edges pagerank single_source_bellman_ford
single_source_dijkstra
""".split()


PATHS = {n for n in CALLS if n.endswith("_path") and n != "has_path"}
PATHS |= {"all_pairs_dijkstra", "single_source_dijkstra", "single_source_bellman_ford"}
PATHS |= {"multi_source_dijkstra", "bidirectional_dijkstra"}


WRONG = {  # arguments by functions; 9 is no node, 3 is not reached from 0
    "astar_path astar_path_length bellman_ford_path bellman_ford_path_length bidirectional_dijkstra"
    " dijkstra_path dijkstra_path_length has_path shortest_path shortest_path_length"
    " single_source_bellman_ford single_source_dijkstra": [(0, 3), (0, 9), (9, 0), (9, 9)],
    "shortest_path shortest_path_length": [(9,), (None, 9)],
    "ancestors bfs_edges bfs_successors descendants single_source_shortest_path": [(9,)],
    "average_clustering clustering eccentricity": [(9,)],
}


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_errors_say_what_those_of_networkx_say(kind):
    pytest.importorskip("networkx", "3.6")  # other words before
    G = kind([(0, 1), (1, 2), (3, 4)])

    def said(function, G, *args, **named):
        try:
            value = function(G, *args, **named)
            return list(value) if hasattr(value, "__next__") else value
        except nx.NetworkXException as error:
            return type(error), str(error)

    for names, calls in WRONG.items():
        for name, args in itertools.product(names.split(), calls):
            C, methods = converted(name, G), [{}]
            if name.startswith("shortest"):
                methods += [{"weight": "weight", "method": m} for m in ("dijkstra", "bellman-ford")]
            for how in methods:
                found = said(getattr(backend, name), C, *args, **how)
                assert found == said(original(name), G, *args, **how), (name, args, how)
    with pytest.raises(ValueError, match=r"^max\(\)"):
        backend.k_core(converted("k_core", kind()))


def test_label_propagation_gives_a_view_as_networkx_does():
    G = nx.disjoint_union(nx.complete_graph(3), nx.complete_graph(4))
    found = backend.label_propagation_communities(converted("", G))
    wanted = nx.community.label_propagation_communities(G)
    assert type(found) is type(wanted) and list(found) == list(wanted)


def test_hits_refuses_a_method_that_networkx_does_not_know():
    with pytest.raises(ValueError, match="method not supported: spam"):
        backend.hits(backend.convert_from_nx(nx.path_graph(4)), method="spam")


def test_a_search_against_the_edges_keeps_the_order_of_predecessors():
    G = nx.DiGraph([(3, 1), (0, 1), (2, 1), (4, 0)])
    arguments = {"G": G, "source": 1, "reverse": True}
    assert backend.can_run("bfs_edges", (G, 1), {"reverse": True}) is not True
    assert backend.can_run("bfs_edges", (G, 1), {"reverse": False}) is True
    assert list(nx.bfs_edges(**arguments, backend="networkx")) == [(1, 3), (1, 0), (1, 2), (0, 4)]
