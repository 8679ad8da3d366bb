"""NetworkX's functions on graphs and views of them with special weights, against NetworkX."""

from __future__ import annotations

import functools
import itertools
import pathlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "networkx_backend"))  # as pytest does

import nx_cases  # noqa: E402
import test_functions as functions  # noqa: E402

from jaxspv.networkx_backend import backend  # noqa: E402

from ..cases import Case, Fuzzer  # noqa: E402

CALLS = 12  # of a draw: on one graph, of as many functions
KINDS = {k.__name__: k for k in (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)}
WEIGHTS = {
    "none": [],
    "integers": [1, 2, 3, 4, 5],
    "booleans": [True, False],
    **nx_cases.WEIGHTS_OF,
    "infinite below": [1.0, 2.0, -np.inf],
    "signed zeros": [0.0, -0.0, 1.0],
    "mixed": [1, 2.5, True],
}


def _half(G: nx.Graph) -> list:
    return [v for k, v in enumerate(G) if k % 3]


def _kept(u: Any, v: Any, *_: Any) -> bool:
    return (u + v) % 3 != 0


VIEWS = {
    "itself": lambda G: G,
    "subgraph": lambda G: G.subgraph(_half(G)),
    "edge subgraph": lambda G: G.edge_subgraph(list(G.edges)[::2]),
    "filtered": lambda G: nx.subgraph_view(G, filter_edge=_kept),
    "restricted": lambda G: nx.restricted_view(G, list(G)[:1], []),
    "reversed": lambda G: G.reverse(copy=False) if G.is_directed() else G,
    "undirected": lambda G: G.to_undirected(as_view=True),
    "directed": lambda G: G.to_directed(as_view=True),
    "copy": lambda G: G.copy(as_view=True),
    "of a view": lambda G: VIEWS["reversed"](G).subgraph(_half(G)),
}


def drawn(rng: np.random.Generator, kind: str, weights: list) -> nx.Graph:
    """A graph of at most 14 vertices in any order, with parallel edges and self loops."""
    n = int(rng.integers(1, 15))
    G = KINDS[kind]()
    G.add_nodes_from(rng.permutation(n).tolist())
    for u, v in rng.integers(0, n, (int(rng.integers(0, 3 * n)), 2)).tolist():
        held = weights and rng.random() < 0.9
        G.add_edge(u, v, **({"weight": weights[int(rng.integers(len(weights)))]} if held else {}))
    return G


def _changed(rng: np.random.Generator, G: nx.Graph) -> None:
    """Takes an edge away and adds one, the vertices stay."""
    edges = list(G.edges)
    if edges:
        G.remove_edge(*edges[int(rng.integers(len(edges)))][:2])
    nodes = list(G)
    u, v = (nodes[int(k)] for k in rng.integers(0, len(nodes), 2))
    G.add_edge(u, v, weight=int(rng.integers(1, 4)))


def _asked(rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Functions with the arguments of one of their calls, in random order."""
    names = sorted(functions.CALLS)
    for k in rng.permutation(len(names))[:CALLS].tolist():
        calls = functions.CALLS[names[k]]
        yield names[k], calls[int(rng.integers(len(calls)))]


def run(case: Case) -> tuple[str, ...]:
    """Raises where a function gives another answer, or another error, than NetworkX."""
    rng = np.random.default_rng(case["seed"])
    G = drawn(rng, case["kind"], WEIGHTS[case["weights"]])
    V = VIEWS[case["view"]](G)
    special = case["weights"] not in ("none", "integers", "booleans", "mixed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case["how"] == "dispatched":
            return _dispatched(rng, G, V, special)
        return tuple(itertools.chain(*(_converted(*a, V, special) for a in _asked(rng))))


def _left_out(name: str, special: bool) -> bool:
    return special and name not in functions.READING_WEIGHTS


def _converted(name: str, arguments: Any, V: nx.Graph, special: bool) -> tuple[str, ...]:
    if _left_out(name, special):
        return ()
    try:
        C = functions.converted(name, V)
    except NotImplementedError:
        return ("handed back",)
    left = functions.compare(name, V, C, arguments(V))
    return ("networkx",) if left is None else ("handed back",)


def _dispatched(rng: np.random.Generator, G: nx.Graph, V: nx.Graph, special: bool):
    """The same by NetworkX's dispatcher, before and after `G` is changed."""
    if "jaxspv" not in nx.config.backends:
        return ("not installed",)
    sent = []
    asked = [(n, a) for n, a in _asked(rng) if not _left_out(n, special)][: CALLS // 2]
    for _ in range(2):
        for name, arguments in asked:
            positional, named = arguments(V)
            sent += _both(name, V, positional, named)
        _changed(rng, G)
    return tuple(sent)


def _both(name: str, V: nx.Graph, positional: list, named: dict) -> tuple[str, ...]:
    compared = functools.partial(functions.unordered, name, V, named)
    if backend.can_run(name, (V, *positional), named) is not True:
        return ("handed back",)
    function = functions.original(name)
    found, wanted = (
        functions.outcome(function, V, (positional, named | {"backend": b}), compared)
        for b in ("jaxspv", "networkx")
    )
    if found is NotImplementedError:
        return ("handed back",)
    if isinstance(found, type) or isinstance(wanted, type):
        assert found is wanted, (name, positional, named, found, wanted)
    else:
        nx_cases.same(found, wanted, f"{name}({positional}, {named})")
    return ("networkx after a change",)


FUZZER = Fuzzer(
    {
        "view": tuple(VIEWS),
        "kind": tuple(KINDS),
        "weights": tuple(WEIGHTS),
        "how": ("converted", "dispatched"),
    },
    run,
    programs=CALLS,
)
