"""Shortest paths by number of edges, and by length: Dijkstra's names, and Bellman and Ford's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import networkx as nx
import numpy as np

from ...algorithms.sssp.api import sssp
from ...checking import check
from ..graph import ConvertedGraph
from ..registry import enter, implements
from ..results import Tree, ascending, ends, labels, pairs, path_to, paths, vertex
from ..searches import all_distances, all_levels, bfs_tree, distances, lengths, levels, queue
from ..views import joined, on_device

# ---- By number of edges ----


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


# ---- By length ----


def _starts(G: ConvertedGraph, sources: Iterable) -> list[int]:
    if not sources:
        raise ValueError("sources must not be empty")
    return [vertex(G, s, f"Node {s} not found in graph") for s in dict.fromkeys(sources)]


def _from_several(G: ConvertedGraph, sources: Iterable, weight: str | None, target=None) -> Tree:
    """From the nearest of several nodes: from a vertex with edges of length 0 to all of them."""
    starts = _starts(G, sources)
    if len(starts) == 1:
        return Tree(G, weight, *distances(G, weight, starts[0], target=G.index.get(target)))
    lengths(G, weight)  # looks at the values
    n = len(G)
    row, col, values = joined(n, G.row, G.col, G.weights(weight).astype(float), np.minimum)
    row = np.append(row, np.full(len(starts), n, np.int32))
    col = np.append(col, np.asarray(starts, np.int32))
    graph = on_device(n + 1, row, col, np.append(values, np.zeros(len(starts))))
    found = check(sssp(graph, n))
    far, parents = (np.asarray(x)[:n] for x in (found.distances, found.parents))
    return Tree(G, weight, far, np.where(parents == n, np.arange(n), parents))


@implements
def multi_source_dijkstra(G, sources, target=None, cutoff=None, weight="weight"):
    """Lengths and paths from the nearest of several sources, or to one target."""
    if sources and target in sources:
        _starts(G, sources)
        return 0, [target]
    found = _from_several(G, sources, weight, target)
    if target is None:
        return found.both(cutoff)
    return found.to(target, f"No path to {target}.", cutoff)


@implements
def multi_source_dijkstra_path_length(G, sources, cutoff=None, weight="weight"):
    """Lengths from the nearest of several sources."""
    return _from_several(G, sources, weight).lengths(cutoff)


def _between(G, source, target, weight, text, *, negative=False) -> tuple[Any, list]:
    """Length and path from one node to another; text: of the error if there is none."""
    text_of_source = f"Node {source} not found in graph"
    if negative and source != target:
        text_of_source = f"Source {source} not in G"
    s = vertex(G, source, text_of_source)
    if source == target:
        return 0, [source]
    # a search that stops at the target does not see every negative cycle
    t = None if negative else G.index.get(target)
    found = distances(G, weight, s, target=t, negative=negative)
    return Tree(G, weight, *found).to(target, text)


@implements
def dijkstra_path_length(G, source, target, weight="weight"):
    """The length of a shortest path."""
    return _between(G, source, target, weight, _unreachable(source, target))[0]


def _unreachable(source: Any, target: Any) -> str:
    return f"Node {target} not reachable from {source}"


@implements
def bidirectional_dijkstra(G, source, target, weight="weight"):
    """Length and path, by a search from the source until the target."""
    ends(G, source, target)
    return _between(G, source, target, weight, f"No path between {source} and {target}.")


@implements
def astar_path(G, source, target, heuristic=None, weight="weight", *, cutoff=None):
    """A shortest path, without a heuristic."""
    ends(G, source, target)
    return _between(G, source, target, weight, _unreachable(source, target))[1]


@implements
def astar_path_length(G, source, target, heuristic=None, weight="weight", *, cutoff=None):
    """The length of a shortest path; see `astar_path`."""
    if source not in G or target not in G:
        raise nx.NodeNotFound(f"Either source {source} or target {target} is not in G")
    return _between(G, source, target, weight, _unreachable(source, target))[0]


@implements
def dijkstra_predecessor_and_distance(G, source, cutoff=None, weight="weight"):
    """All predecessors on shortest paths, and lengths."""
    s = vertex(G, source, f"Node {source} is not found in the graph")
    found = Tree(G, weight, *distances(G, weight, s))
    return _predecessors(found, cutoff), found.lengths(cutoff)


def _predecessors(found: Tree, cutoff: float | None) -> dict:
    """Of the vertices within the cutoff the tails of tight edges, as they are settled."""
    (G, weight, far, _), order = found, found.order(cutoff)
    values = G.weights(weight).astype(float)
    row, col, values = joined(len(G), G.row, G.col, values, np.minimum)
    place = np.full(len(G), len(G))
    place[order] = np.arange(len(order))
    known = (place[row] < len(G)) & (place[col] < len(G))
    row, col, values = row[known], col[known], values[known]
    tight = far[row] + values == far[col]
    if cutoff is not None:
        tight &= ~(far[col] > cutoff)
    row, col = row[tight], col[tight]
    sequence = np.lexsort((place[row], place[col]))
    row, col = row[sequence], col[sequence]
    before: dict[Any, list] = {node: [] for node in labels(G, order)}
    nodes = G.nodes
    for tail, head in zip(row.tolist(), col.tolist(), strict=True):
        before[nodes[head]].append(nodes[tail])
    return before


@implements
def all_pairs_dijkstra_path_length(G, cutoff=None, weight="weight"):
    """Lengths between all pairs, 16 sources a call."""
    number = np.arange(len(G))
    found = all_distances(G, weight, number)
    trees = ((s, Tree(G, weight, far, np.where(number == s, s, -1))) for s, far in found)
    return ((G.nodes[s], tree.lengths(cutoff)) for s, tree in trees)


def _bellman_ford(G: ConvertedGraph, source: Any, weight: str | None) -> Tree:
    s = vertex(G, source, f"Source {source} not in G")
    return Tree(G, weight, *distances(G, weight, s, negative=True))


@implements
def single_source_bellman_ford_path_length(G, source, weight="weight"):
    """Lengths from the source; they may be negative."""
    return _bellman_ford(G, source, weight).lengths()


@implements
def single_source_bellman_ford(G, source, target=None, weight="weight"):
    """Lengths and paths from the source, or to one target; lengths may be negative."""
    if target is None:
        return _bellman_ford(G, source, weight).both()
    if source == target:
        vertex(G, source, f"Node {source} is not found in the graph")
    text = f"Target {target} cannot be reached from given sources"
    return _between(G, source, target, weight, text, negative=True)


@implements
def bellman_ford_path_length(G, source, target, weight="weight"):
    """The length of a shortest path; lengths may be negative."""
    text = f"node {target} not reachable from {source}"
    return _between(G, source, target, weight, text, negative=True)[0]
