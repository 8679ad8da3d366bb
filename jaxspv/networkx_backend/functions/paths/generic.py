"""`shortest_path` and `shortest_path_length`: by hops or by length, from, to, or between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from ...graph import ConvertedGraph
from ...registry import FUNCTIONS, double_precision, implements
from ...results import ascending, ends, pairs, paths, vertex
from ...searches import as_numbers, distances, levels, queue
from . import unweighted, weighted

MISSING = {  # what NetworkX says of a source or a target that is no node, by the way
    "unweighted": "Source {} not in G",
    "dijkstra": "Node {} not found in graph",
    "bellman-ford": "Source {} not in G",
}


def _way(weight: str | None, method: str) -> str:
    if method not in ("dijkstra", "bellman-ford"):
        raise ValueError(f"method not supported: {method}")
    return "unweighted" if weight is None else method


def _tree(G: ConvertedGraph, start: int, weight, direction, negative) -> tuple[np.ndarray, ...]:
    """Order, numbers and parents of all that is reached from a vertex along `direction`."""
    if weight is None:
        found = levels(G, start, direction)
        layers, parents = queue(G, found, direction)
        return np.concatenate(layers), found, parents
    far, parents = distances(G, weight, start, direction, negative=negative)
    return ascending(far, np.isfinite(far)), as_numbers(G, weight, far), parents


@implements
def shortest_path(G, source=None, target=None, weight=None, method="dijkstra"):
    """A path, paths from or to one vertex, or between all pairs."""
    way = _way(weight, method)
    if source is not None and target is not None:
        if way == "unweighted":
            return unweighted.bidirectional_shortest_path(G, source, target)
        if way == "dijkstra":
            return weighted.bidirectional_dijkstra(G, source, target, weight)[1]
        return weighted.bellman_ford_path(G, source, target, weight)
    negative = way == "bellman-ford"
    if source is None and target is None:

        def each() -> Iterator[tuple[Any, dict]]:
            for s, node in enumerate(G.nodes):
                with double_precision():
                    order, _, parents = _tree(G, s, weight, "out", negative)
                yield node, paths(G, order, parents)

        return each()
    end = source if target is None else target
    start = vertex(G, end, MISSING[way].format(end))
    order, _, parents = _tree(G, start, weight, "out" if target is None else "in", negative)
    return paths(G, order, parents, backward=target is not None)


@implements
def shortest_path_length(G, source=None, target=None, weight=None, method="dijkstra"):
    """A length, lengths from or to one vertex, or between all pairs."""
    way = _way(weight, method)
    if source is not None and target is not None:
        if way == "unweighted":
            s, t = ends(G, source, target)
            if (hops := levels(G, s, target=t)[t]) < 0:
                raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
            return int(hops)
        if way == "dijkstra":
            return weighted.dijkstra_path_length(G, source, target, weight)
        return weighted.bellman_ford_path_length(G, source, target, weight)
    if source is None and target is None:
        if way == "unweighted":
            return unweighted.all_pairs_shortest_path_length(G)
        if way == "dijkstra":
            return weighted.all_pairs_dijkstra_path_length(G, weight=weight)
        return FUNCTIONS["all_pairs_bellman_ford_path_length"](G, weight)
    end, direction = (source, "out") if target is None else (target, "in")
    if way == "unweighted":
        start = vertex(G, end, f"Source {end} is not in G")
        found = levels(G, start, direction)
        return pairs(G, ascending(found, found >= 0), found)
    start = vertex(G, end, MISSING[way].format(end))
    order, numbers, _ = _tree(G, start, weight, direction, way == "bellman-ford")
    return pairs(G, order, numbers)
