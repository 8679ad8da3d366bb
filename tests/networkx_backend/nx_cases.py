"""Graphs and arguments for every function of the NetworkX backend, and how results are compared."""

import itertools
import math
import types
from collections.abc import Iterator, Mapping, Set

import networkx as nx
import numpy as np
import pytest


def weighted(G, integers=True):
    """`G` with a weight on most edges, 1 where it is missing.

    Numbers that are no integers have no ties: there NetworkX's Bellman-Ford may miss nodes.
    """
    rng = np.random.default_rng(5)
    for k, data in enumerate(d for *_, d in G.edges(data=True)):
        if k % 7:
            data["weight"] = int(rng.integers(1, 9)) if integers else float(rng.uniform(0.5, 3))
    return G


def lettered():
    """Letters as labels, inserted out of order; a self loop; a node apart."""
    G = nx.Graph([("d", "b"), ("b", "a"), ("a", "c"), ("c", "d"), ("a", "d"), ("c", "c")])
    G.add_edges_from([("f", "e"), ("e", "g")])
    G.add_node("z")
    return weighted(G)


def strong():
    """A directed cycle with chords: every node reaches every other."""
    rng = np.random.default_rng(3)
    G = nx.DiGraph((i, (i + 1) % 15) for i in range(15))
    G.add_edges_from(rng.integers(0, 15, (20, 2)).tolist())
    return weighted(nx.relabel_nodes(G, lambda v: f"v{v}"), integers=False)


def parallel(kind):
    G = kind()
    G.add_nodes_from("abcde")
    G.add_edges_from(itertools.pairwise("abcdea"), weight=2)
    G.add_edges_from([("a", "b"), ("b", "b"), ("d", "b")], weight=1)
    return G


def drawn(kind, weights):
    """A graph on 8 nodes with weights of these values."""
    rng = np.random.default_rng(1)
    G = nx.empty_graph(8, kind)
    for u, v in rng.integers(0, 8, (14, 2)).tolist():
        G.add_edge(u, v, weight=weights[int(rng.integers(len(weights)))])
    return G


WEIGHTS_OF = {  # values that sums and searches treat specially
    "infinite": [1.0, 2.0, math.inf],
    "nan": [1.0, math.nan],
    "negative": [1, 2, -1],
    "zero": [0, 1, 2],
    "subnormal": [5e-324, 1e-310, 1.0],
    "huge": [1e308, 1e300, 1.0],
    "huge integers": [2**53, 2**53 - 1, 1],
    "least integer": [-(2**63), 1],
}
GRAPHS = {
    "karate": lambda: weighted(nx.karate_club_graph()),
    "lettered": lettered,
    "tree": lambda: weighted(nx.random_labeled_tree(12, seed=1), integers=False),
    "grid": lambda: nx.grid_2d_graph(4, 5),
    "null": nx.Graph,
    "single": lambda: nx.empty_graph(1),
    "directed": lambda: weighted(nx.gnp_random_graph(20, 0.1, seed=4, directed=True)),
    "strong": strong,
    "arborescence": lambda: nx.balanced_tree(2, 2, create_using=nx.DiGraph),
    "tournament": lambda: nx.tournament.random_tournament(7, seed=2),
    "multigraph": lambda: parallel(nx.MultiGraph),
    "multidigraph": lambda: parallel(nx.MultiDiGraph),
}


def first(G):
    return next(iter(G), "nowhere")


def last(G):
    return list(G)[-1] if len(G) else "nowhere"


def some(G):
    return list(G)[::3]


def no_estimate(G):
    """A heuristic of A*."""
    return lambda u, v: 0


def far_pairs(G):
    """Pairs of different nodes, joined or not."""
    return list(itertools.islice(itertools.combinations(G, 2), 40))


def call(*positional, **named):
    """Arguments of a call; functions of the graph are asked for theirs."""

    def make(G):
        asked = [a(G) if callable(a) else a for a in positional]
        return asked, {k: a(G) if callable(a) else a for k, a in named.items()}

    return make


NONE = [call()]
WEIGHTS = [call(), call(weight="weight")]
WEIGHT = [call(), call(weight="weight"), call(weight=None)]
SOURCE = [call(first), call("nowhere")]
CUTOFFS = (2, 1.5, 0, -1, math.nan)
CUTOFF = [*SOURCE, *(call(first, cutoff=c) for c in CUTOFFS)]
DEPTH = [*SOURCE, *(call(first, depth_limit=c) for c in CUTOFFS)]
PAIR = [call(first, last), call(last, first), call(first, first), call(first, "nowhere")]
WEIGHTED = [call(first), call("nowhere"), call(first, weight=None)]
WEIGHTED_CUTOFF = [*WEIGHTED, *(call(first, cutoff=c) for c in (4, *CUTOFFS))]
WEIGHTED_PAIR = [*PAIR, call(first, last, weight=None)]
SEVERAL = [call(some), call([]), call([first, "nowhere"])]
SEVERAL += [call(some, cutoff=c) for c in (4, *CUTOFFS)]
PAIRS = [call(far_pairs), call([("nowhere", 0)])]


def plain(value):
    """Iterators as lists, views as dicts."""
    if isinstance(value, (Iterator, types.GeneratorType)):
        return [plain(v) for v in value]
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    return value


def same(found, wanted, where="result"):
    """Equal up to rounding, of Python's own types at any depth."""
    assert not isinstance(found, (np.generic, np.ndarray)) or isinstance(wanted, np.ndarray), where
    if isinstance(wanted, nx.Graph):
        assert type(found) is type(wanted), where
        assert (found._node, found._adj, found.graph) == (wanted._node, wanted._adj, wanted.graph)
    elif isinstance(wanted, Mapping):
        assert found.keys() == wanted.keys(), where
        for key in wanted:
            same(found[key], wanted[key], f"{where}[{key!r}]")
    elif isinstance(wanted, (list, tuple)):
        assert type(found) is type(wanted) and len(found) == len(wanted), (where, found, wanted)
        for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
            same(a, b, f"{where}[{k}]")
    elif isinstance(wanted, np.ndarray):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    elif isinstance(wanted, bool) or isinstance(found, bool) or isinstance(wanted, (str, Set)):
        assert found == wanted and type(found) is type(wanted), where
    elif isinstance(wanted, (int, float)):
        both_nan = wanted != wanted and found != found
        assert both_nan or found == pytest.approx(wanted, rel=1e-7, abs=1e-10), where
    else:
        assert found == wanted, where


def cost(G, path, weight=None):
    """Its length, if it is a path."""
    assert all(G.has_edge(u, v) for u, v in itertools.pairwise(path)), path
    if weight is None:
        return len(path) - 1
    least = [_edges(G, u, v) for u, v in itertools.pairwise(path)]
    return math.fsum(min(d.get(weight, 1) for d in edges) for edges in least)


def _edges(G, u, v):
    """The data of the edges from u to v."""
    return list(G[u][v].values()) if G.is_multigraph() else [G[u][v]]


def costs(G, value, weight=None):
    """Paths anywhere in a result as (first, last, length): of several NetworkX may take another."""
    if isinstance(value, Mapping):
        return {k: costs(G, v, weight) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(costs(G, v, weight) for v in value)
    if isinstance(value, list) and value and all(_is_node(G, v) for v in value):
        return value[0], value[-1], cost(G, value, weight)
    if isinstance(value, list):
        return [costs(G, v, weight) for v in value]
    return value


def _is_node(G, value):
    try:
        return value in G
    except TypeError:
        return False
