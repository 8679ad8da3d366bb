"""Strongly connected components, and what follows from them: acyclic graphs, tournaments."""

from __future__ import annotations

import networkx as nx
import numpy as np

from ....algorithms.connectivity.strong import strongly_connected_components as components_of
from ...graph import ConvertedGraph
from ...products import mutual
from ...registry import implements
from ...results import check_not_null, groups
from ...views import pattern


def _membership(G: ConvertedGraph) -> np.ndarray:
    """(n,) the smallest vertex of the strong component of each vertex."""
    return G.once("strong", lambda: np.asarray(components_of(pattern(G)).labels)[: len(G)])


def _count(G: ConvertedGraph) -> int:
    return int(np.count_nonzero(_membership(G) == np.arange(len(G))))


@implements
def strongly_connected_components(G):
    """Sets of nodes, by their first nodes."""
    return iter(groups(G, _membership(G)))


@implements
def number_strongly_connected_components(G):
    """How many there are."""
    return _count(G)


@implements
def is_strongly_connected(G):
    """Whether there is one."""
    check_not_null(G)
    return _count(G) == 1


def _attracting(G: ConvertedGraph) -> list[set]:
    """Components that no edge leaves."""
    of = _membership(G)
    left = np.unique(of[G.row[of[G.row] != of[G.col]]])
    parts = zip(groups(G, of), np.unique(of), strict=True)
    return [part for part, first in parts if first not in left]


@implements
def attracting_components(G):
    """Strong components that no edge leaves."""
    return iter(_attracting(G))


@implements
def number_attracting_components(G):
    """How many strong components no edge leaves."""
    return len(_attracting(G))


@implements
def is_attracting_component(G):
    """Whether the graph is one strong component."""
    found = _attracting(G)
    return len(found) == 1 and len(found[0]) == len(G)


@implements
def is_directed_acyclic_graph(G):
    """Whether no walk comes back."""
    return G.is_directed() and not G.loops and _count(G) == len(G)


@implements
def flow_hierarchy(G, weight=None):
    """The share of the weight on edges that are in no cycle."""
    if not len(G.row):
        raise nx.NetworkXError("flow_hierarchy not applicable to empty graphs")
    if not G.is_directed():
        raise nx.NetworkXError("G must be a digraph in flow_hierarchy")
    of, values = _membership(G), G.weights(weight)
    return 1 - values[of[G.row] == of[G.col]].sum().item() / values.sum().item()


def tournament_is_strongly_connected(G: ConvertedGraph) -> bool:
    """Whether each node of a tournament reaches every other."""
    n = len(G)
    if G.loops or len(G.row) != n * (n - 1) // 2 or mutual(G).any():
        raise NotImplementedError("it is no tournament")
    return n == 0 or _count(G) == 1


implements(tournament_is_strongly_connected)
