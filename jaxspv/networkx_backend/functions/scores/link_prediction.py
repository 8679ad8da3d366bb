"""Scores of pairs of nodes by the neighbors that they share."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from ...graph import ConvertedGraph
from ...products import common_neighbors, degrees
from ...registry import implements


def _scores(G: ConvertedGraph, ebunch: Any, share: np.ndarray) -> tuple[list, np.ndarray, Any, Any]:
    """The pairs, for each the sum of `share` over common neighbors, and its vertices."""
    pairs = [(u, v) for u, v in ebunch]
    for pair in pairs:
        for node in pair:
            if node not in G:
                raise nx.NodeNotFound(f"Node {node} not in G.")
    ends = np.array([(G.index[u], G.index[v]) for u, v in pairs], np.int32).reshape(-1, 2)
    u, v = ends.T
    if (u == v).any() or G.loops:
        raise NotImplementedError("a pair of a node with itself, or a self loop")
    return pairs, common_neighbors(G, u, v, share), u, v


def _triples(pairs: list, values: np.ndarray):
    return ((u, v, p) for (u, v), p in zip(pairs, values.tolist(), strict=True))


@implements
def jaccard_coefficient(G, ebunch=None):
    """Common neighbors over all neighbors of either."""
    pairs, common, u, v = _scores(G, ebunch, np.ones(len(G)))
    degree = degrees(G)
    either = degree[u] + degree[v] - common
    return _triples(pairs, np.divide(common, either, out=np.zeros(len(u)), where=either > 0))


@implements
def adamic_adar_index(G, ebunch=None):
    """The sum of 1 / log degree over common neighbors."""
    degree = np.maximum(degrees(G), 2)  # who is shared has two neighbors
    pairs, found, _, _ = _scores(G, ebunch, 1 / np.log(degree))
    return _triples(pairs, found)


@implements
def resource_allocation_index(G, ebunch=None):
    """The sum of 1 / degree over common neighbors."""
    pairs, found, _, _ = _scores(G, ebunch, 1 / np.maximum(degrees(G), 1))
    return _triples(pairs, found)
