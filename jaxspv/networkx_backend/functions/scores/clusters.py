"""Triangles: their numbers, clustering coefficients, transitivity."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ...graph import ConvertedGraph
from ...products import closed_walks, mutual, triangle_counts, triangles_of_edges
from ...registry import implements
from ...results import by_node, chosen
from ...views import joined, on_device, simple_pattern


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


def _coefficients(G: ConvertedGraph, weight: str | None) -> dict:
    """Walks i -> j -> k -> i over those that there could be; NaN weights stay NaN."""
    if weight is None and not G.is_directed():
        walks = 2.0 * triangle_counts(G)
    else:
        walks = np.asarray(closed_walks(_symmetric(G, weight)))[: len(G)]
    if G.is_directed():
        loops = np.bincount(G.row[G.row == G.col], minlength=len(G))
        total = np.bincount(G.row, minlength=len(G)) + np.bincount(G.col, minlength=len(G))
        total = total - 2 * loops
        possible = 2 * (total * (total - 1) - 2 * (mutual(G) - loops))
    else:
        degree = _neighbors(G)
        possible = degree * (degree - 1)
    value = np.divide(walks, possible, out=np.zeros(len(G)), where=(walks != 0) & (possible != 0))
    return by_node(G, value)


def _symmetric(G: ConvertedGraph, weight: str | None):
    """Cube roots of the weights over the largest, both directions of directed edges added up."""
    values = G.weights(weight).astype(float)
    proper = G.row != G.col
    if weight is not None and len(values):
        if not (np.isfinite(values).all() and values.max() > 0):
            raise NotImplementedError(
                f"the weights under {weight!r} are not finite, or none is > 0"
            )
        values = np.cbrt(values / values.max())
    row, col, values = G.row[proper], G.col[proper], values[proper]
    if G.is_directed():
        row, col = np.concatenate([row, col]), np.concatenate([col, row])
        values = np.concatenate([values, values])
    row, col, values = joined(len(G), row, col, values, np.add)
    return on_device(len(G), row, col, values)


@implements
def clustering(G, nodes=None, weight=None):
    """The share of the pairs of neighbors of each node that are joined."""
    return chosen(G, nodes, _coefficients(G, weight))
