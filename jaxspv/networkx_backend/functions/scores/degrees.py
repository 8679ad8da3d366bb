"""What is told by degrees: centralities, regularity, tours, mixing."""

from __future__ import annotations

import networkx as nx
import numpy as np

from ...products import degrees
from ...registry import implements
from ...results import by_node, labels
from ..connectivity.components import is_strong, membership


def _centrality(G, side) -> dict:
    if len(G) <= 1:
        return dict.fromkeys(G.nodes, 1)
    return by_node(G, degrees(G, None, side) * (1.0 / (len(G) - 1.0)))


@implements(cost="linear")
def degree_centrality(G):
    """The share of other nodes that each is joined to."""
    return _centrality(G, "in+out")


@implements(cost="linear")
def in_degree_centrality(G):
    """The share of other nodes with an edge to each."""
    return _centrality(G, "in")


@implements(cost="linear")
def out_degree_centrality(G):
    """The share of other nodes that each has an edge to."""
    return _centrality(G, "out")


@implements(cost="linear")
def isolates(G):
    """Nodes without edges."""
    return iter(labels(G, np.flatnonzero(degrees(G) == 0)))


@implements(cost="linear")
def number_of_isolates(G):
    """How many nodes have no edges."""
    return int(np.count_nonzero(degrees(G) == 0))


@implements(cost="linear")
def is_regular(G):
    """Whether all degrees are equal, in and out each."""
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Graph has no nodes.")
    sides = ("in", "out") if G.is_directed() else ("in+out",)
    return all(bool((np.diff(degrees(G, None, side)) == 0).all()) for side in sides)


@implements(cost="linear")
def is_k_regular(G, k):
    """Whether all degrees are k."""
    return bool((degrees(G) == k).all())


@implements(cost="linear")
def score_sequence(G):
    """Sorted out-degrees."""
    return np.sort(degrees(G, None, "out")).tolist()


@implements(cost="linear")
def s_metric(G):
    """The sum over edges of the product of the degrees of their ends."""
    degree = degrees(G).astype(float)
    products = degree[G.row] * degree[G.col]
    loops = products[G.row == G.col].sum()
    return float(products.sum() if G.is_directed() else (products.sum() + loops) / 2)


def _is_eulerian(G) -> bool:
    if G.is_directed():
        balanced = (degrees(G, None, "in") == degrees(G, None, "out")).all()
        if not balanced:
            return False
        _check_not_null(G)
        return is_strong(G)
    if not (degrees(G) % 2 == 0).all():
        return False
    _check_not_null(G)
    return not membership(G).any()


def _check_not_null(G) -> None:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")


def _has_eulerian_path(G, source) -> bool:
    if _is_eulerian(G):
        return True
    if not G.is_directed():
        odd = degrees(G) % 2 == 1
        if source is not None and not odd[G.index[source]]:
            return False
        return bool(np.count_nonzero(odd) == 2 and not membership(G).any())
    surplus = degrees(G, None, "out") - degrees(G, None, "in")
    if source is not None and surplus[G.index[source]] != 1:
        return False
    if abs(surplus).max() > 1 or max((surplus == 1).sum(), (surplus == -1).sum()) > 1:
        return False
    return not membership(G).any()


@implements(cost="linear")
def is_eulerian(G):
    """Whether a closed walk takes every edge once."""
    return _is_eulerian(G)


@implements(cost="linear")
def has_eulerian_path(G, source=None):
    """Whether a walk takes every edge once."""
    return _has_eulerian_path(G, source)


@implements(cost="linear")
def is_semieulerian(G):
    """Whether a walk takes every edge once, and none of them is closed."""
    return _has_eulerian_path(G, None) and not _is_eulerian(G)
