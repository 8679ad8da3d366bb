"""Connected components, and what follows from them: trees and forests."""

from __future__ import annotations

import networkx as nx
import numpy as np

from ....algorithms.components.api import connected_components as components_of
from ....algorithms.trees.forest import minimum_spanning_forest
from ....checking import check
from ...graph import ConvertedGraph, convert_to_nx
from ...registry import implements
from ...results import groups, labels
from ...searches import levels
from ...views import on_device, pattern


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


def _edges(G: ConvertedGraph, weight: str, ignore_nan: bool, *, most: bool) -> np.ndarray:
    """The entries of the forest by weight: of equal ones that come first in `G.edges`.

    The ranks of the edges, which all differ, are the weights that the forest is taken by.
    """
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


def _listed(G: ConvertedGraph, entries: np.ndarray, data: bool):
    ends = [labels(G, side[entries]) for side in (G.row, G.col)]
    if not data:
        return zip(*ends, strict=True)
    if G.edge_data is None:
        raise NotImplementedError("the conversion left out the attributes of edges")
    return zip(*ends, [G.edge_data[e] for e in entries.tolist()], strict=True)


def _tree(G: ConvertedGraph, entries: np.ndarray):
    """The nodes of the graph with these edges in both directions."""
    n = len(G)
    low, high = np.minimum(G.row, G.col), np.maximum(G.row, G.col)
    keys = low.astype(np.int64) * n + high
    return convert_to_nx(G.induced(np.ones(n, bool), np.isin(keys, keys[entries])))


@implements
def minimum_spanning_edges(
    G, algorithm="kruskal", weight="weight", keys=True, data=True, ignore_nan=False
):
    """The edges of a minimum spanning forest by weight."""
    return _listed(G, _edges(G, weight, ignore_nan, most=False), data)


@implements
def maximum_spanning_edges(
    G, algorithm="kruskal", weight="weight", keys=True, data=True, ignore_nan=False
):
    """The edges of a maximum spanning forest by weight."""
    return _listed(G, _edges(G, weight, ignore_nan, most=True), data)


@implements
def minimum_spanning_tree(G, weight="weight", algorithm="kruskal", ignore_nan=False):
    """A minimum spanning forest with all attributes."""
    return _tree(G, _edges(G, weight, ignore_nan, most=False))


@implements
def maximum_spanning_tree(G, weight="weight", algorithm="kruskal", ignore_nan=False):
    """A maximum spanning forest with all attributes."""
    return _tree(G, _edges(G, weight, ignore_nan, most=True))
