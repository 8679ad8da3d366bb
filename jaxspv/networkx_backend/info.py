"""What NetworkX asks of the backend before a call, answered without importing JAX.

`_nx_jaxspv` loads this file by its path, since `import jaxspv` imports JAX. `can_run` refuses what
is not supported. `should_run` compares what NetworkX's own function would take with what a call
takes here: importing JAX, the first call of a function at a size, and the conversion of the graph.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import random
import sys
import types
from collections.abc import Callable
from typing import Any

DEFAULTS: dict[str, Any] = {
    "double_precision": True,
    "compilation_cache": True,
    "only_where_faster": True,
}

MICROSECONDS = {  # of NetworkX's own function, for each node and entry of the graph
    0.1: """
ancestors attracting_components bfs_edges bfs_layers bfs_successors bidirectional_shortest_path
color connected_components descendants descendants_at_distance efficiency has_path is_arborescence
is_attracting_component is_bipartite is_branching is_connected is_forest is_strongly_connected
is_tree is_weakly_connected node_connected_component number_attracting_components
number_connected_components number_strongly_connected_components
number_weakly_connected_components sets
single_source_shortest_path single_source_shortest_path_length single_target_shortest_path
single_target_shortest_path_length strongly_connected_components tournament_is_strongly_connected
weakly_connected_components""",
    0.3: """
astar_path astar_path_length bellman_ford_path bellman_ford_path_length bidirectional_dijkstra
dijkstra_path dijkstra_path_length flow_hierarchy is_directed_acyclic_graph shortest_path
shortest_path_length""",
    0.6: """
core_number dijkstra_predecessor_and_distance multi_source_dijkstra multi_source_dijkstra_path
multi_source_dijkstra_path_length onion_layers single_source_bellman_ford
single_source_bellman_ford_path single_source_bellman_ford_path_length single_source_dijkstra
single_source_dijkstra_path single_source_dijkstra_path_length triangles""",
    1.5: """
adamic_adar_index greedy_color hits jaccard_coefficient k_core k_corona k_crust k_shell
maximal_independent_set maximum_spanning_edges maximum_spanning_tree minimum_spanning_edges
minimum_spanning_tree pagerank resource_allocation_index""",
    4.0: """
asyn_lpa_communities average_clustering clustering eigenvector_centrality
fast_label_propagation_communities generalized_degree k_truss katz_centrality
label_propagation_communities louvain_communities transitivity""",
}
MICROSECONDS_OF_A_SEARCH = {  # the same, for each of many searches without weights
    0.05: """
all_pairs_bellman_ford_path all_pairs_bellman_ford_path_length all_pairs_dijkstra
all_pairs_dijkstra_path all_pairs_dijkstra_path_length all_pairs_shortest_path
all_pairs_shortest_path_length average_shortest_path_length center closeness_centrality diameter
eccentricity floyd_warshall floyd_warshall_numpy global_efficiency gutman_index harmonic_centrality
harmonic_diameter hyper_wiener_index periphery radius schultz_index wiener_index""",
    0.25: "betweenness_centrality",
}
PAIRS = "jaccard_coefficient adamic_adar_index resource_allocation_index"
PAIR_S = 3e-6  # of NetworkX's own function, for each pair of these
BY_WEIGHT = 8.0  # how much longer a search by weights takes
OF_CALL = {name: 1e-6 * t for t, names in MICROSECONDS.items() for name in names.split()}
OF_SEARCH = {n: 1e-6 * t for t, names in MICROSECONDS_OF_A_SEARCH.items() for n in names.split()}
FUNCTIONS = sorted([*OF_CALL, *OF_SEARCH])

START_S = 1.2  # importing JAX and jaxspv, making the first program
FIRST_S = 0.12  # the first call of a function at a size
EVERY_S = 2e-3  # each call
CONVERSION_S = 4e-7  # for each node and entry
CHEAP = {name for name, seconds in OF_CALL.items() if seconds <= CONVERSION_S}
CHEAP -= {"shortest_path", "shortest_path_length"}  # between all pairs, too
SHARE = 0.2  # of the time spent in NetworkX's own functions, which may pay for START_S and FIRST_S


def get_info() -> dict[str, Any]:
    """What the entry point `networkx.backend_info` gives."""
    return {
        "backend_name": "jaxspv",
        "project": "jaxspv",
        "package": "jaxspv",
        "short_summary": "Graph algorithms compiled by JAX, on CPU and GPU.",
        "functions": {name: {} for name in FUNCTIONS},
        "default_config": DEFAULTS,
    }


def setting(name: str) -> Any:
    """That of `nx.config.backends.jaxspv`, or the default where the backend is not installed."""
    import networkx as nx

    return nx.config.backends.get("jaxspv", DEFAULTS).get(name, DEFAULTS[name])


def arguments_of(name: str, args: tuple, kwargs: dict) -> dict[str, Any]:
    """The arguments of a call by their names in NetworkX, defaults filled in."""
    positional, defaults, needed = _parameters(name)
    given = dict(zip(positional, args, strict=False))
    wrong = (kwargs.keys() & given.keys()) | (kwargs.keys() - defaults.keys() - {*positional})
    found = {**defaults, **given, **kwargs}
    if len(args) > len(positional) or wrong or not needed <= found.keys():
        raise TypeError(f"{name}() has other arguments: {sorted(wrong or needed)}")
    return found


@functools.cache
def _parameters(name: str) -> tuple[list[str], dict[str, Any], set[str]]:
    """Names of positional parameters, defaults, and names of those without a default."""
    from networkx.utils import backends

    registered: Any = vars(backends)["_registered_algorithms"]
    function = registered[name].orig_func
    parameters = inspect.signature(function).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    return positional, defaults, {p.name for p in parameters} - defaults.keys()


def can_run(name: str, args: tuple, kwargs: dict) -> bool | str:
    """True, or the reason why a call is not supported."""
    if _always_runs(name):  # NetworkX's own functions ask often: one search for each node
        return True
    try:
        arguments = arguments_of(name, args, kwargs)
    except TypeError as error:
        return f"the arguments are not those of NetworkX's function: {error}"
    found = (refuse(arguments) for refuse in REFUSALS.get(name, ()))
    reason = next((reason for reason in found if reason), None)
    return reason or _no_attribute({k: arguments.get(k) for k in _attributes(name)}) or True


@functools.cache
def _always_runs(name: str) -> bool:
    return name not in REFUSALS and not _attributes(name)


def _attributes(name: str) -> set[str]:
    """Arguments that name an attribute of edges; a distance without a default is a number."""
    return {"weight", "distance"} & _parameters(name)[1].keys()


# What this process has seen: seconds in NetworkX's functions, calls that ran here.
spent: Any = types.SimpleNamespace(seconds=0.0, calls=set())


def should_run(name: str, args: tuple, kwargs: dict) -> bool | str:
    """True, or the reason why NetworkX's own function is expected to be faster.

    What is paid once, importing JAX and a first call, may take `SHARE` of the time that calls
    spent in NetworkX until now, even if this call alone does not gain as much. So programs of many
    calls come here soon, and one of few calls loses a fifth of its time at most.
    """
    G = args[0] if args else kwargs["G"]
    if getattr(G, "__networkx_backend__", "") == "jaxspv" or not setting("only_where_faster"):
        return True
    cache = getattr(G, "__networkx_cache__", None) or {}
    converted = bool(cache.get("backends", {}).get("jaxspv"))
    if name in CHEAP and not converted:
        return "NetworkX's own function takes no longer than the conversion of the graph"
    arguments = arguments_of(name, args, kwargs)
    each = _seconds(name, arguments)
    gain = each - (0.0 if converted else CONVERSION_S)
    if gain <= 0:
        return f"it takes {each:.1g} s for each node and entry, its conversion as much"
    start = 0.0 if _is_imported() else START_S
    most = start + FIRST_S + EVERY_S
    size = _size(G, math.ceil(2 * most / gain))
    key = (name, len(G).bit_length(), size.bit_length())
    once = start + (0.0 if key in spent.calls else FIRST_S)
    allowance = SHARE * spent.seconds
    if gain * size < EVERY_S + max(once - allowance, 0.0):
        spent.seconds += each * size
        return f"it takes {each * size:.1g} s in NetworkX; a first call here {once:.2g} s more"
    spent.seconds -= min(allowance, once) / SHARE
    spent.calls.add(key)
    return True


def _is_imported() -> bool:
    return "jaxspv.networkx_backend" in sys.modules


def _size(G: Any, enough: int) -> int:
    """Nodes and entries of the graph; counting ends where they are enough."""
    size = len(G)
    for neighbors in itertools.islice(G._adj.values(), enough):
        if size >= enough:
            break
        size += len(neighbors)
    return size


def _seconds(name: str, arguments: dict[str, Any]) -> float:
    """What NetworkX's own function takes for each node and entry."""
    G, given = arguments["G"], arguments.get
    weighted = "dijkstra" in name or "ford" in name or "floyd" in name
    weighted |= given("weight", given("distance")) is not None
    factor = BY_WEIGHT if weighted else 1.0
    if name in OF_SEARCH:
        sources = SOURCES.get(name, lambda G, **_: len(G))(**arguments)
        return OF_SEARCH[name] * factor * sources
    if name in ("shortest_path", "shortest_path_length"):
        open_ends = (given("source") is None) + (given("target") is None)
        pair = OF_CALL[name] / BY_WEIGHT * factor
        return (0.1 * pair, pair, pair * len(G))[open_ends]
    if name in PAIRS.split() and hasattr(pairs := arguments["ebunch"], "__len__"):
        return PAIR_S * len(pairs) / max(_size(G, 8 * len(pairs)), 1)  # of 8 or more: no gain
    return OF_CALL[name]


def _number_of(G: Any, nodes: Any) -> int:
    """How many nodes `G.nbunch_iter(nodes)` has, at most; an iterator is not used up."""
    if nodes is None or not (nodes in G or hasattr(nodes, "__len__")):
        return len(G)
    return 1 if nodes in G else len(nodes)


SOURCES: dict[str, Callable[..., int]] = {  # of searches; all nodes where there is no entry
    "betweenness_centrality": lambda G, k, **_: len(G) if k is None else k,
    "closeness_centrality": lambda G, u, **_: _number_of(G, u),
    "eccentricity": lambda G, v, **_: _number_of(G, v),
    "harmonic_centrality": lambda G, nbunch, sources, **_: min(
        _number_of(G, nbunch), _number_of(G, sources)
    ),
}


Refusal = Callable[[dict[str, Any]], str | None]


def _no_attribute(arguments: dict[str, Any]) -> str | None:
    """Refuses a weight that is no name of an attribute."""
    for name, value in arguments.items():
        if callable(value):
            return f"`{name}` is a function: it would be called edge by edge"
        if value is not None and not isinstance(value, str):
            return f"`{name}` is no string"
    return None


def _other(name: str, default: Any, why: str) -> Refusal:
    """Refuses another value of an argument than the default."""
    return lambda arguments: None if arguments.get(name, default) == default else why


def _given(*names: str, why: str) -> Refusal:
    """Refuses arguments that are not None."""

    def refuse(arguments: dict[str, Any]) -> str | None:
        found = [name for name in names if arguments.get(name) is not None]
        return f"`{found[0]}` is given: {why}" if found else None

    return refuse


def _null_graph(arguments: dict[str, Any]) -> str | None:
    """Refuses the graph without nodes: releases of NetworkX raise different errors for it."""
    return "the graph has no nodes" if len(arguments["G"]) == 0 else None


def _parallel_edges(arguments: dict[str, Any]) -> str | None:
    return "parallel edges" if arguments["G"].is_multigraph() else None


def _directed(arguments: dict[str, Any]) -> str | None:
    return "a directed graph" if arguments["G"].is_directed() else None


def _hits(arguments: dict[str, Any]) -> str | None:
    if arguments.get("method", "svd") != "svd":
        return None
    if not arguments["normalized"]:
        return "`normalized` is false: the sign of singular vectors is open"
    few = "`max_iter` is below 100: it counts steps of ARPACK, which may not converge then"
    return few if arguments["max_iter"] < 100 else None


def _seed(arguments: dict[str, Any]) -> str | None:
    """Refuses a seed; NetworkX passes the global generator where none is given."""
    free = arguments["seed"] in (None, random, random._inst)  # pyright: ignore
    return None if free else "`seed` is given: the result must be NetworkX's own"


NO_ORDER = (_given("sort_neighbors", why="it would be called node by node"),)
NO_LABELS = (_directed, _null_graph, _given("weight", why="labels are counted, not weighed"))
NO_START = _given("nstart", why="the iteration starts from equal scores")
REFUSED: dict[str, tuple[Refusal, ...]] = {
    "triangles generalized_degree clustering average_clustering": (_parallel_edges,),
    "transitivity": (_directed, _parallel_edges),
    "core_number k_core k_shell k_crust k_corona": (_directed,),
    "k_truss": (lambda a: None if isinstance(a["k"], int) else "`k` is no integer",),
    "eccentricity diameter radius center periphery harmonic_diameter closeness_centrality": (
        _given("e", "sp", why="there is nothing left to search"),
        _null_graph,
    ),
    PAIRS: (
        lambda a: (
            "`ebunch` is None: all pairs that are not joined" if a["ebunch"] is None else None
        ),
    ),
    "minimum_spanning_edges maximum_spanning_edges minimum_spanning_tree maximum_spanning_tree": (
        _other("algorithm", "kruskal", "other trees than Kruskal's where weights are equal"),
        _parallel_edges,
    ),
    "bfs_edges": (
        *NO_ORDER,
        lambda a: "the order of predecessors is not converted" if a.get("reverse") else None,
    ),
    "bfs_successors": NO_ORDER,
    "pagerank": (NO_START, _given("dangling", why="dangling nodes follow the personalization")),
    "hits": (NO_START, _null_graph, _hits),
    "astar_path astar_path_length": (
        _given("heuristic", "cutoff", why="where it is not admissible, paths depend on it"),
    ),
    "label_propagation_communities": NO_LABELS,
    "asyn_lpa_communities fast_label_propagation_communities": (*NO_LABELS, _seed),
    "louvain_communities": (
        _directed,
        _null_graph,
        _seed,
        _given("max_level", why="all levels are joined"),
        _other("threshold", 1e-07, "`threshold` is not 1e-7: levels are joined until none gains"),
    ),
    "greedy_color": (
        _directed,
        _other("strategy", "largest_first", "`strategy` is not 'largest_first'"),
        _other("interchange", False, "`interchange` is true"),
    ),
    "maximal_independent_set": (
        _null_graph,
        _seed,
        _given("nodes", why="the set is drawn as a whole"),
    ),
}
REFUSALS = {name: refusals for names, refusals in REFUSED.items() for name in names.split()}
