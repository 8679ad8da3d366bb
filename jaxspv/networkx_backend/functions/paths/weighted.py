"""Shortest paths by length: Dijkstra's names and Bellman and Ford's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from ....algorithms.sssp.api import sssp
from ....checking import check
from ...graph import ConvertedGraph
from ...registry import double_precision, implements
from ...results import ascending, labels, pairs, path_to, paths, vertex
from ...searches import all_distances, as_numbers, distances, lengths
from ...views import joined, on_device


def _settled(far: np.ndarray, cutoff: float | None = None, starts: Any = ()) -> np.ndarray:
    """The vertices reached within the cutoff, by length; the starts whatever the cutoff is."""
    reached = np.isfinite(far)
    if cutoff is None:
        return ascending(far, reached)
    reached &= ~(far > cutoff)
    reached[list(starts)] = True
    return ascending(far, reached)


def _roots(parents: np.ndarray) -> np.ndarray:
    """The starts of the searches that gave the parents."""
    return np.flatnonzero(parents == np.arange(len(parents)))


def _both(G, far, parents, weight, cutoff) -> tuple[dict, dict]:
    """Lengths and paths under labels."""
    order = _settled(far, cutoff, _roots(parents))
    return pairs(G, order, as_numbers(G, weight, far)), paths(G, order, parents)


def _one(G, far, parents, weight, target, cutoff, text) -> tuple[Any, list]:
    t = G.index.get(target)
    if t is None or not np.isfinite(far[t]) or (cutoff is not None and far[t] > cutoff):
        raise nx.NetworkXNoPath(text)
    return as_numbers(G, weight, far)[t].item(), path_to(G, parents, t)


def _from_several(G: ConvertedGraph, sources: list[int], weight) -> tuple[np.ndarray, np.ndarray]:
    """Distances and parents from the nearest source: from a vertex with edges of 0 to all."""
    if len(sources) == 1:
        return distances(G, weight, sources[0])
    lengths(G, weight)  # looks at the values
    n = len(G)
    row, col, values = joined(n, G.row, G.col, G.weights(weight).astype(float), np.minimum)
    row = np.append(row, np.full(len(sources), n, np.int32))
    col = np.append(col, np.asarray(sources, np.int32))
    graph = on_device(n + 1, row, col, np.append(values, np.zeros(len(sources))))
    found = check(sssp(graph, n))
    far, parents = (np.asarray(x)[:n] for x in (found.distances, found.parents))
    return far, np.where(parents == n, np.arange(n), parents)


def _sources(G: ConvertedGraph, sources: Iterable) -> list[int]:
    if not sources:
        raise ValueError("sources must not be empty")
    return [vertex(G, s, f"Node {s} not found in graph") for s in dict.fromkeys(sources)]


@implements
def multi_source_dijkstra(G, sources, target=None, cutoff=None, weight="weight"):
    """Lengths and paths from the nearest of several sources."""
    starts = _sources(G, sources)
    if target in sources:
        return 0, [target]
    far, parents = _from_several(G, starts, weight)
    if target is None:
        return _both(G, far, parents, weight, cutoff)
    return _one(G, far, parents, weight, target, cutoff, f"No path to {target}.")


@implements
def multi_source_dijkstra_path(G, sources, cutoff=None, weight="weight"):
    """Paths from the nearest of several sources."""
    far, parents = _from_several(G, _sources(G, sources), weight)
    return paths(G, _settled(far, cutoff, _roots(parents)), parents)


@implements
def multi_source_dijkstra_path_length(G, sources, cutoff=None, weight="weight"):
    """Lengths from the nearest of several sources."""
    starts = _sources(G, sources)
    far, _ = _from_several(G, starts, weight)
    return pairs(G, _settled(far, cutoff, starts), as_numbers(G, weight, far))


@implements
def single_source_dijkstra(G, source, target=None, cutoff=None, weight="weight"):
    """Lengths and paths from the source, or to one target."""
    s = vertex(G, source, f"Node {source} not found in graph")
    if target == source:
        return 0, [target]
    if target is None:
        return _both(G, *distances(G, weight, s), weight, cutoff)
    far, parents = distances(G, weight, s, target=G.index.get(target))
    return _one(G, far, parents, weight, target, cutoff, f"No path to {target}.")


@implements
def single_source_dijkstra_path(G, source, cutoff=None, weight="weight"):
    """Paths from the source."""
    far, parents = distances(G, weight, vertex(G, source, f"Node {source} not found in graph"))
    return paths(G, _settled(far, cutoff, _roots(parents)), parents)


@implements
def single_source_dijkstra_path_length(G, source, cutoff=None, weight="weight"):
    """Lengths from the source."""
    s = vertex(G, source, f"Node {source} not found in graph")
    far, _ = distances(G, weight, s)
    return pairs(G, _settled(far, cutoff, [s]), as_numbers(G, weight, far))


def _length_and_path(G, source, target, weight, text, *, negative=False) -> tuple[Any, list]:
    text_of_source = f"Node {source} not found in graph"
    if negative and source != target:
        text_of_source = f"Source {source} not in G"
    s = vertex(G, source, text_of_source)
    if source == target:
        return 0, [source]
    # a search that stops at the target does not see every negative cycle
    t = None if negative else G.index.get(target)
    far, parents = distances(G, weight, s, target=t, negative=negative)
    return _one(G, far, parents, weight, target, None, text)


@implements
def dijkstra_path(G, source, target, weight="weight"):
    """A shortest path."""
    return single_source_dijkstra(G, source, target, weight=weight)[1]


@implements
def dijkstra_path_length(G, source, target, weight="weight"):
    """The length of a shortest path."""
    text = f"Node {target} not reachable from {source}"
    return _length_and_path(G, source, target, weight, text)[0]


@implements
def bidirectional_dijkstra(G, source, target, weight="weight"):
    """Length and path, by a search from the source until the target."""
    vertex(G, source, f"Source {source} is not in G")
    vertex(G, target, f"Target {target} is not in G")
    text = f"No path between {source} and {target}."
    return _length_and_path(G, source, target, weight, text)


@implements
def astar_path(G, source, target, heuristic=None, weight="weight", *, cutoff=None):
    """A shortest path, without a heuristic."""
    vertex(G, source, f"Source {source} is not in G")
    vertex(G, target, f"Target {target} is not in G")
    return _between(G, source, target, weight)[1]


@implements
def astar_path_length(G, source, target, heuristic=None, weight="weight", *, cutoff=None):
    """The length of a shortest path; see `astar_path`."""
    if source not in G or target not in G:
        raise nx.NodeNotFound(f"Either source {source} or target {target} is not in G")
    return _between(G, source, target, weight)[0]


def _between(G, source, target, weight):
    text = f"Node {target} not reachable from {source}"
    return _length_and_path(G, source, target, weight, text)


@implements
def dijkstra_predecessor_and_distance(G, source, cutoff=None, weight="weight"):
    """All predecessors on shortest paths, and lengths."""
    s = vertex(G, source, f"Node {source} is not found in the graph")
    far, _ = distances(G, weight, s)
    order = _settled(far, cutoff, [s])
    return _predecessors(G, far, order, weight, cutoff), pairs(G, order, as_numbers(G, weight, far))


def _predecessors(G: ConvertedGraph, far, order, weight, cutoff) -> dict:
    """Of the vertices of `order` the tails of tight edges, as they are settled."""
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
    found: dict[Any, list] = {node: [] for node in labels(G, order)}
    nodes = G.nodes
    for tail, head in zip(row.tolist(), col.tolist(), strict=True):
        found[nodes[head]].append(nodes[tail])
    return found


@implements
def all_pairs_dijkstra_path_length(G, cutoff=None, weight="weight"):
    """Lengths between all pairs, 16 sources a call."""
    found = all_distances(G, weight, np.arange(len(G)))
    return (
        (G.nodes[s], pairs(G, _settled(far, cutoff, [s]), as_numbers(G, weight, far)))
        for s, far in found
    )


def _from_each(G: ConvertedGraph, weight, found_of: Callable, *, negative: bool = False):
    """Each node with `found_of(distances, parents)`; one search after the other."""
    lengths(G, weight, negative=negative)  # refuses before the first is asked for

    def each() -> Iterator[tuple[Any, Any]]:
        for s, node in enumerate(G.nodes):
            with double_precision():
                far, parents = distances(G, weight, s, negative=negative)
            yield node, found_of(far, parents)

    return each()


@implements
def all_pairs_dijkstra_path(G, cutoff=None, weight="weight"):
    """Paths between all pairs."""

    def paths_of(far, parents):
        return paths(G, _settled(far, cutoff, _roots(parents)), parents)

    return _from_each(G, weight, paths_of)


@implements
def all_pairs_dijkstra(G, cutoff=None, weight="weight"):
    """Lengths and paths between all pairs."""
    return _from_each(G, weight, lambda far, parents: _both(G, far, parents, weight, cutoff))


def _bellman_ford(G, source, weight) -> tuple[np.ndarray, np.ndarray]:
    s = vertex(G, source, f"Source {source} not in G")
    return distances(G, weight, s, negative=True)


@implements
def single_source_bellman_ford(G, source, target=None, weight="weight"):
    """Lengths and paths from the source, or to one target; lengths may be negative."""
    if target is not None:
        if source == target:
            vertex(G, source, f"Node {source} is not found in the graph")
        text = f"Target {target} cannot be reached from given sources"
        return _length_and_path(G, source, target, weight, text, negative=True)
    return _both(G, *_bellman_ford(G, source, weight), weight, None)


@implements
def single_source_bellman_ford_path(G, source, weight="weight"):
    """Paths from the source; lengths may be negative."""
    far, parents = _bellman_ford(G, source, weight)
    return paths(G, _settled(far), parents)


@implements
def single_source_bellman_ford_path_length(G, source, weight="weight"):
    """Lengths from the source; they may be negative."""
    far, _ = _bellman_ford(G, source, weight)
    return pairs(G, _settled(far), as_numbers(G, weight, far))


@implements
def bellman_ford_path(G, source, target, weight="weight"):
    """A shortest path; lengths may be negative."""
    return single_source_bellman_ford(G, source, target, weight)[1]


@implements
def bellman_ford_path_length(G, source, target, weight="weight"):
    """The length of a shortest path; lengths may be negative."""
    text = f"node {target} not reachable from {source}"
    return _length_and_path(G, source, target, weight, text, negative=True)[0]


@implements
def all_pairs_bellman_ford_path_length(G, weight="weight"):
    """Lengths between all pairs; they may be negative."""

    def lengths_of(far, _):
        return pairs(G, _settled(far), as_numbers(G, weight, far))

    return _from_each(G, weight, lengths_of, negative=True)


@implements
def all_pairs_bellman_ford_path(G, weight="weight"):
    """Paths between all pairs; lengths may be negative."""

    def paths_of(far, parents):
        return paths(G, _settled(far), parents)

    return _from_each(G, weight, paths_of, negative=True)
