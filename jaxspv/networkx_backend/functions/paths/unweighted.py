"""Shortest paths by number of edges."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from ...graph import ConvertedGraph
from ...registry import double_precision, enter, implements
from ...results import ascending, ends, labels, pairs, path_to, paths, vertex
from ...searches import all_levels, bfs_tree, levels, queue
from ...views import Direction


def within(found: np.ndarray, cutoff: float | None) -> np.ndarray:
    """(n,) bool: which vertices a search with this cutoff reaches; found: levels, -1 for unreached.

    As in NetworkX, a vertex of level d is expanded only if `cutoff > d`.
    """
    if cutoff is None:
        return found >= 0
    return (found == 0) | ((found > 0) & (cutoff > found - 1))


def _lengths(G: ConvertedGraph, found: np.ndarray, cutoff: float | None) -> dict:
    return pairs(G, ascending(found, within(found, cutoff)), found)


def _paths(G: ConvertedGraph, source: int, direction: Direction, cutoff: float | None) -> dict:
    found = levels(G, source, direction)
    layers, parents = queue(G, np.where(within(found, cutoff), found, -1), direction)
    return paths(G, np.concatenate(layers), parents, backward=direction == "in")


@implements
def single_source_shortest_path_length(G, source, cutoff=None):
    """Number of edges of shortest paths from the source."""
    s = vertex(G, source, f"Source {source} is not in G")
    return _lengths(G, levels(G, s), cutoff)


@implements
def single_target_shortest_path_length(G, target, cutoff=None):
    """Number of edges of shortest paths to the target."""
    t = vertex(G, target, f"Target {target} is not in G")
    return _lengths(G, levels(G, t, "in"), cutoff)


@implements
def single_source_shortest_path(G, source, cutoff=None):
    """Paths from the source."""
    return _paths(G, vertex(G, source, f"Source {source} not in G"), "out", cutoff)


@implements
def single_target_shortest_path(G, target, cutoff=None):
    """Paths to the target."""
    return _paths(G, vertex(G, target, f"Target {target} not in G"), "in", cutoff)


@implements
def all_pairs_shortest_path_length(G, cutoff=None):
    """Number of edges of shortest paths between all pairs, 64 sources a traversal."""

    searches = all_levels(G, np.arange(len(G)))
    return ((G.nodes[s], _lengths(G, found, cutoff)) for s, found in searches)


@implements
def all_pairs_shortest_path(G, cutoff=None):
    """Paths between all pairs."""

    def each() -> Iterator[tuple[Any, dict]]:
        for s, node in enumerate(G.nodes):
            with double_precision():
                found = _paths(G, s, "out", cutoff)
            yield node, found

    return each()


@implements
def bidirectional_shortest_path(G, source, target):
    """A path of fewest edges; if there are several, NetworkX may give another one."""
    s, t = ends(G, source, target)
    found, parents = bfs_tree(G, s, target=t)
    if found[t] < 0:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    return path_to(G, parents, t)


@implements
def has_path(G, source, target):
    """Whether the target is reached from the source."""
    s, t = ends(G, source, target)
    return bool(levels(G, s, target=t)[t] >= 0)


def _start(G: ConvertedGraph, source: Any) -> int:
    if source not in G:
        kind = "digraph" if G.is_directed() else "graph"
        raise nx.NetworkXError(f"The node {source} is not in the {kind}.")
    return G.index[source]


def _others(G: ConvertedGraph, source: Any, direction: Direction) -> set:
    """The nodes reached from the source along `direction`, without it."""
    return set(labels(G, np.flatnonzero(levels(G, _start(G, source), direction) > 0)))


enter(
    descendants=lambda G, source: _others(G, source, "out"),
    ancestors=lambda G, source: _others(G, source, "in"),
)


@implements
def descendants_at_distance(G, source, distance):
    """The vertices at a distance of exactly `distance` edges."""
    if source not in G:
        raise nx.NetworkXError(f"The node {source} is not in the graph.")
    found = levels(G, G.index[source])
    return set(labels(G, np.flatnonzero((found >= 0) & (found == distance))))


@implements
def bfs_layers(G, sources):
    """The layers of a search from one source or several."""
    starts = list(
        {sources} if sources in G else set(sources)
    )  # in the order of the set, as in NetworkX
    for source in starts:
        if source not in G:
            raise nx.NetworkXError(f"The node {source} is not in the graph.")
    first = [G.index[s] for s in starts]
    near = np.full(len(G), -1)
    for _, found in all_levels(G, first):
        near = np.where((found >= 0) & ((near < 0) | (found < near)), found, near)
    return (labels(G, layer) for layer in queue(G, near, first=first)[0])


def _tree(G: ConvertedGraph, source: Any, depth_limit: int | None) -> Iterator[tuple[Any, Any]]:
    """(parent, child) in the order in which a queue reaches the children."""
    found = levels(G, _start(G, source))
    layers, parents = queue(G, np.where(within(found, depth_limit), found, -1))
    children = np.concatenate(layers)[1:]
    return zip(labels(G, parents[children]), labels(G, children), strict=True)


@implements
def bfs_edges(G, source, reverse=False, depth_limit=None, sort_neighbors=None):
    """(parent, node) in the order of the search."""
    return _tree(G, source, depth_limit)


@implements
def bfs_successors(G, source, depth_limit=None, sort_neighbors=None):
    """(node, its children) in the order of the search."""
    tree = _tree(G, source, depth_limit)
    grouped = [(p, [c for _, c in e]) for p, e in itertools.groupby(tree, key=lambda e: e[0])]
    return iter(grouped or [(source, [])])


@implements
def predecessor(G, source, target=None, cutoff=None, return_seen=None):
    """All predecessors on paths of fewest edges."""
    s = vertex(G, source, f"Source {source} not in G")
    found = levels(G, s)
    beyond = (found > 1) & (cutoff <= found - 1) if cutoff else False
    layers, _ = queue(G, np.where(beyond, -1, found))
    order = np.concatenate(layers)
    place = np.full(len(G), -1)
    place[order] = np.arange(len(order))
    known = (place[G.row] >= 0) & (place[G.col] >= 0) & (found[G.row] + 1 == found[G.col])
    edges = np.unique(np.stack([place[G.col[known]], place[G.row[known]]], axis=1), axis=0)
    above: dict[Any, list] = {node: [] for node in labels(G, order)}
    names = list(above)
    for head, tail in edges.tolist():
        above[names[head]].append(names[tail])
    if target is None:
        return (above, pairs(G, order, found)) if return_seen else above
    if not return_seen:
        return above.get(target, [])
    return (above[target], int(found[G.index[target]])) if target in above else ([], -1)
