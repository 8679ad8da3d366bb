"""Triangles: their numbers, clustering coefficients, transitivity."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ....algorithms.clustering.coefficients import clustering as coefficients_of
from ...graph import ConvertedGraph
from ...products import triangle_counts, triangles_of_edges
from ...registry import implements
from ...results import by_node, chosen
from ...views import simple_pattern, weighted


def _neighbors(G: ConvertedGraph) -> np.ndarray:
    """(n,) neighbors other than the vertex itself."""
    return np.asarray(simple_pattern(G).out_degrees)[: len(G)].astype(np.int64)


@implements
def triangles(G, nodes=None):
    """How many each node is in."""
    return chosen(G, nodes, by_node(G, triangle_counts(G)))


@implements
def generalized_degree(G, nodes=None):
    """Of each node, how many of its edges are in how many triangles."""
    row, count = triangles_of_edges(G)
    ends = np.searchsorted(row, np.arange(1, len(G)))
    parts = np.split(np.rint(count).astype(np.int64), ends)
    found = {node: Counter(part.tolist()) for node, part in zip(G.nodes, parts, strict=len(G) > 0)}
    return chosen(G, nodes, found)


@implements
def transitivity(G):
    """The share of the paths of two edges that a third closes."""
    degree = _neighbors(G)
    closed, paths = int(2 * triangle_counts(G).sum()), int((degree * (degree - 1)).sum())
    return closed / paths if closed else 0


def _coefficients(G: ConvertedGraph, weight: str | None) -> np.ndarray:
    if weight is None and not G.is_directed():
        degree = _neighbors(G)
        closed, possible = 2.0 * triangle_counts(G), degree * (degree - 1)
        return np.divide(closed, possible, out=np.zeros(len(G)), where=closed != 0)
    values = G.weights(weight)
    if len(values) and not (np.isfinite(values).all() and values.min() >= 0 < values.max()):
        raise NotImplementedError(f"the weights under {weight!r} are not finite, or none is > 0")
    graph = weighted(G, weight, parallel=np.add)
    return np.asarray(coefficients_of(graph, weighted=True, directed=G.is_directed()))[: len(G)]


@implements
def clustering(G, nodes=None, weight=None):
    """The share of the pairs of neighbors of each node that are joined."""
    return chosen(G, nodes, by_node(G, _coefficients(G, weight)))
