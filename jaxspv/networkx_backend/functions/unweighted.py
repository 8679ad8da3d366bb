"""Shortest paths by number of edges."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from ..graph import ConvertedGraph
from ..registry import enter, implements
from ..results import ascending, ends, labels, pairs, path_to, paths, vertex
from ..searches import all_levels, bfs_tree, levels, queue


def within(found: np.ndarray, cutoff: float | None) -> np.ndarray:
    """(n,) bool: which vertices a search with this cutoff reaches; found: levels, -1 for unreached.

    As in NetworkX, a vertex of level d is expanded only if `cutoff > d`.
    """
    if cutoff is None:
        return found >= 0
    return (found == 0) | ((found > 0) & (cutoff > found - 1))


def _lengths(G: ConvertedGraph, found: np.ndarray, cutoff: float | None) -> dict:
    return pairs(G, ascending(found, within(found, cutoff)), found)


def _paths(G: ConvertedGraph, source: int, cutoff: float | None) -> dict:
    found = levels(G, source)
    layers, parents = queue(G, np.where(within(found, cutoff), found, -1))
    return paths(G, np.concatenate(layers), parents)


@implements
def single_source_shortest_path_length(G, source, cutoff=None):
    """Number of edges of shortest paths from the source."""
    s = vertex(G, source, f"Source {source} is not in G")
    return _lengths(G, levels(G, s), cutoff)


@implements
def single_target_shortest_path_length(G, target, cutoff=None):
    """Number of edges of shortest paths to the target."""
    t = vertex(G, target, f"Target {target} is not in G")
    return _lengths(G, levels(G.reverse(), t), cutoff)


@implements
def single_source_shortest_path(G, source, cutoff=None):
    """Paths from the source."""
    return _paths(G, vertex(G, source, f"Source {source} not in G"), cutoff)


@implements
def single_target_shortest_path(G, target, cutoff=None):
    """Paths to the target."""
    found = _paths(G.reverse(), vertex(G, target, f"Target {target} not in G"), cutoff)
    return {node: path[::-1] for node, path in found.items()}


@implements
def all_pairs_shortest_path_length(G, cutoff=None):
    """Number of edges of shortest paths between all pairs, 64 sources a traversal."""

    searches = all_levels(G, np.arange(len(G)))
    return ((G.nodes[s], _lengths(G, found, cutoff)) for s, found in searches)


@implements
def bidirectional_shortest_path(G, source, target):
    """A path of fewest edges; if there are several, NetworkX may give another one."""
    s, t = ends(G, source, target)
    found, parents = bfs_tree(G, s, target=t)
    if found[t] < 0:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    return path_to(G, parents, t)


def _start(G: ConvertedGraph, source: Any) -> int:
    if source not in G:
        kind = "digraph" if G.is_directed() else "graph"
        raise nx.NetworkXError(f"The node {source} is not in the {kind}.")
    return G.index[source]


def _others(G: ConvertedGraph, source: Any) -> set:
    """The nodes reached from the source, without it."""
    return set(labels(G, np.flatnonzero(levels(G, _start(G, source)) > 0)))


enter(descendants=_others, ancestors=lambda G, source: _others(G.reverse(), source))


@implements
def bfs_layers(G, sources):
    """The layers of a search from one source or several."""
    starts = list({sources} if sources in G else set(sources))  # in the set's order, as NetworkX
    for source in starts:
        if source not in G:
            raise nx.NetworkXError(f"The node {source} is not in the graph.")
    first = [G.index[s] for s in starts]
    near = np.full(len(G), -1)
    for _, found in all_levels(G, first):
        near = np.where((found >= 0) & ((near < 0) | (found < near)), found, near)
    return (labels(G, layer) for layer in queue(G, near, first=first)[0])


@implements
def bfs_edges(G, source, reverse=False, depth_limit=None, sort_neighbors=None):
    """(parent, node) in the order in which a queue reaches the nodes."""
    found = levels(G, _start(G, source))
    layers, parents = queue(G, np.where(within(found, depth_limit), found, -1))
    children = np.concatenate(layers)[1:]
    return zip(labels(G, parents[children]), labels(G, children), strict=True)
