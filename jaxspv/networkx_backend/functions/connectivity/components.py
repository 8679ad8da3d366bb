"""Connected components, and what follows from them: trees and forests."""

from __future__ import annotations

import networkx as nx
import numpy as np

from ....algorithms.components.api import connected_components as components_of
from ....checking import check
from ...graph import ConvertedGraph
from ...registry import implements
from ...results import groups, labels
from ...searches import levels
from ...views import pattern


def membership(G: ConvertedGraph) -> np.ndarray:
    """(n,) the smallest vertex of the weak component of each vertex."""

    def make() -> np.ndarray:
        found = check(components_of(pattern(G, "both")))
        return np.asarray(found.labels)[: len(G)]

    return G.once("components", make)


def _count(G: ConvertedGraph) -> int:
    return int(np.count_nonzero(membership(G) == np.arange(len(G))))


def is_strong(G: ConvertedGraph) -> bool:
    """Whether the first vertex reaches all and is reached from all."""
    return all((levels(G, 0, way) >= 0).all() for way in ("out", "in"))


def _is_one(G: ConvertedGraph) -> bool:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return _count(G) == 1


@implements
def connected_components(G):
    """Sets of nodes, by their first nodes."""
    return iter(groups(G, membership(G)))


@implements
def number_connected_components(G):
    """How many there are."""
    return _count(G)


@implements
def is_connected(G):
    """Whether there is one."""
    return _is_one(G)


@implements
def node_connected_component(G, n):
    """The component of a node."""
    found = levels(G, G.index[n])
    return set(labels(G, np.flatnonzero(found >= 0)))


@implements
def weakly_connected_components(G):
    """Sets of nodes, by their first nodes."""
    return iter(groups(G, membership(G)))


@implements
def number_weakly_connected_components(G):
    """How many there are."""
    return _count(G)


@implements
def is_weakly_connected(G):
    """Whether there is one."""
    return _is_one(G)


def _is_forest(G: ConvertedGraph) -> bool:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("G has no nodes.")
    return G.number_of_edges() == len(G) - _count(G)


def _is_tree(G: ConvertedGraph) -> bool:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("G has no nodes.")
    return len(G) - 1 == G.number_of_edges() and _count(G) == 1


def _at_most_one_parent(G: ConvertedGraph) -> bool:
    return np.bincount(G.col, minlength=1).max() <= 1


@implements
def is_forest(G):
    """Whether no edge closes a cycle, directions apart."""
    return _is_forest(G)


@implements
def is_tree(G):
    """Whether it is connected and no edge closes a cycle, directions apart."""
    return _is_tree(G)


@implements
def is_arborescence(G):
    """Whether it is a tree in which no node has two parents."""
    return bool(_is_tree(G) and _at_most_one_parent(G))


@implements
def is_branching(G):
    """Whether it is a forest in which no node has two parents."""
    return bool(_is_forest(G) and _at_most_one_parent(G))
