"""Weak and strong components, and what follows from them: trees, acyclic graphs, two colours."""

from __future__ import annotations

import functools
from collections.abc import Callable

import networkx as nx
import numpy as np

from ...algorithms.components import bipartition
from ...algorithms.components import connected_components as components_of
from ...algorithms.strong_components import strongly_connected_components as strong_of
from ...algorithms.trees.forest import minimum_spanning_forest
from ...checking import check
from ..graph import ConvertedGraph, convert_to_nx
from ..registry import enter, implements
from ..results import by_node, check_not_null, groups, labels
from ..searches import levels
from ..views import on_device, pattern


def membership(G: ConvertedGraph) -> np.ndarray:
    """(n,) the smallest vertex of the weak component of each vertex."""
    graph = pattern(G, both=True)
    return G.once("components", lambda: G.own(check(components_of(graph)).labels))


def strong_membership(G: ConvertedGraph) -> np.ndarray:
    """(n,) the smallest vertex of the strong component of each vertex."""
    return G.once("strong", lambda: G.own(strong_of(pattern(G)).labels))


def _count(G: ConvertedGraph, members: Callable = membership) -> int:
    return int(np.count_nonzero(members(G) == np.arange(len(G))))


def _is_one(G: ConvertedGraph, members: Callable = membership) -> bool:
    check_not_null(G)
    return _count(G, members) == 1


enter(
    # sets of nodes, by their first nodes; how many there are; whether there is one
    connected_components=lambda G: iter(groups(G, membership(G))),
    weakly_connected_components=lambda G: iter(groups(G, membership(G))),
    strongly_connected_components=lambda G: iter(groups(G, strong_membership(G))),
    number_connected_components=lambda G: _count(G),
    number_weakly_connected_components=lambda G: _count(G),
    number_strongly_connected_components=lambda G: _count(G, strong_membership),
    is_connected=lambda G: _is_one(G),
    is_weakly_connected=lambda G: _is_one(G),
    is_strongly_connected=lambda G: _is_one(G, strong_membership),
    # the component of a node
    node_connected_component=lambda G, n: set(
        labels(G, np.flatnonzero(levels(G, G.index[n]) >= 0))
    ),
)


def _attracting(G: ConvertedGraph) -> list[set]:
    """Strong components that no edge leaves."""
    of = strong_membership(G)
    left = np.unique(of[G.row[of[G.row] != of[G.col]]])
    parts = zip(groups(G, of), np.unique(of), strict=True)
    return [part for part, first in parts if first not in left]


def _is_strong_tournament(G: ConvertedGraph) -> bool:
    """Whether each node of a tournament reaches every other."""
    n = len(G)
    pairs = np.unique(np.sort(np.stack([G.row, G.col], 1), axis=1), axis=0)
    if G.loops or not len(pairs) == len(G.row) == n * (n - 1) // 2:
        raise NotImplementedError("it is no tournament")
    return n == 0 or _count(G, strong_membership) == 1


def _at_most_one_parent(G: ConvertedGraph) -> bool:
    return bool(np.bincount(G.col, minlength=1).max() <= 1)


def _is_forest(G: ConvertedGraph) -> bool:
    """Whether no edge closes a cycle, directions apart."""
    check_not_null(G, "G has no nodes.")
    return G.number_of_edges() == len(G) - _count(G)


def _is_tree(G: ConvertedGraph) -> bool:
    """Whether it is connected and no edge closes a cycle, directions apart."""
    check_not_null(G, "G has no nodes.")
    return len(G) - 1 == G.number_of_edges() and _count(G) == 1


enter(
    attracting_components=lambda G: iter(_attracting(G)),
    number_attracting_components=lambda G: len(_attracting(G)),
    is_directed_acyclic_graph=lambda G: (
        G.is_directed() and not G.loops and _count(G, strong_membership) == len(G)
    ),
    tournament_is_strongly_connected=_is_strong_tournament,
    is_forest=_is_forest,
    is_tree=_is_tree,
    is_arborescence=lambda G: _is_tree(G) and _at_most_one_parent(G),
    is_branching=lambda G: _is_forest(G) and _at_most_one_parent(G),
)


@implements
def flow_hierarchy(G, weight=None):
    """The share of the weight on edges that are in no cycle."""
    if not len(G.row):
        raise nx.NetworkXError("flow_hierarchy not applicable to empty graphs")
    if not G.is_directed():
        raise nx.NetworkXError("G must be a digraph in flow_hierarchy")
    of, values = strong_membership(G), G.weights(weight)
    return 1 - values[of[G.row] == of[G.col]].sum().item() / values.sum().item()


def _edges(G: ConvertedGraph, weight: str, ignore_nan: bool, *, most: bool) -> np.ndarray:
    """The entries of the forest by weight, of equal ones as in `G.edges`: by ranks that differ."""
    if G.is_directed():
        raise nx.NetworkXNotImplemented("not implemented for directed type")
    entries = np.flatnonzero(G.row < G.col)
    values = G.weights(weight).astype(float)
    if np.isnan(values).any() and not ignore_nan:
        raise NotImplementedError(f"a weight under {weight!r} is NaN")
    entries = entries[~np.isnan(values[entries])]
    values = values[entries]
    entries = entries[np.argsort(-values if most else values, kind="stable")]
    ranks = np.arange(len(entries), dtype=np.float64)
    found = minimum_spanning_forest(on_device(len(G), G.row[entries], G.col[entries], ranks))
    chosen = np.asarray(found.weights)[: int(found.count)].astype(np.int64)
    return entries[np.sort(chosen)]


def _spanning_edges(
    G, algorithm="kruskal", weight="weight", keys=True, data=True, ignore_nan=False, *, most
):
    """The edges of a spanning forest by weight."""
    entries = _edges(G, weight, ignore_nan, most=most)
    ends = [labels(G, side[entries]) for side in (G.row, G.col)]
    if not data:
        return zip(*ends, strict=True)
    if G.edge_data is None:
        raise NotImplementedError("the conversion left out the attributes of edges")
    return zip(*ends, [G.edge_data[e] for e in entries.tolist()], strict=True)


def _spanning_tree(G, weight="weight", algorithm="kruskal", ignore_nan=False, *, most):
    """A spanning forest by weight, with all nodes and attributes."""
    low, high = np.minimum(G.row, G.col), np.maximum(G.row, G.col)
    keys = low.astype(np.int64) * len(G) + high
    entries = _edges(G, weight, ignore_nan, most=most)
    both = np.isin(keys, keys[entries])  # directions of each edge
    return convert_to_nx(G.induced(np.ones(len(G), bool), both))


enter(
    minimum_spanning_edges=functools.partial(_spanning_edges, most=False),
    maximum_spanning_edges=functools.partial(_spanning_edges, most=True),
    minimum_spanning_tree=functools.partial(_spanning_tree, most=False),
    maximum_spanning_tree=functools.partial(_spanning_tree, most=True),
)


def _colors(G: ConvertedGraph) -> np.ndarray | None:
    """(n,) 0 or 1, 1 at the first node of a component that has an edge (out); None: impossible."""
    found = bipartition(pattern(G, both=True))
    if not bool(found.bipartite):
        return None
    sides, of, tails = G.own(found.sides), membership(G), np.unique(G.row)
    roots = tails[np.unique(of[tails], return_index=True)[1]]
    of_root = np.full(len(G), -1)
    of_root[of[roots]] = sides[roots]
    return (sides == of_root[of]).astype(np.int64)


@implements
def color(G):
    """0 or 1, different at both ends of every edge."""
    if (found := G.once("colors", lambda: _colors(G))) is None:
        raise nx.NetworkXError("Graph is not bipartite.")
    return by_node(G, found)
