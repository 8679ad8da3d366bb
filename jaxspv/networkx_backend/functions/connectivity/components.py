"""Connected components, and what follows from them: trees, forests, two colours."""

from __future__ import annotations

import networkx as nx
import numpy as np

from ....algorithms.bfs.api import bfs
from ....algorithms.components.api import connected_components as components_of
from ....algorithms.trees.forest import minimum_spanning_forest
from ....checking import check
from ...graph import ConvertedGraph, convert_to_nx
from ...registry import also, implements
from ...results import by_node, check_not_null, groups, labels
from ...searches import levels
from ...views import joined, on_device, pattern


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


@also("weakly_connected_components")
@implements
def connected_components(G):
    """Sets of nodes, by their first nodes."""
    return iter(groups(G, membership(G)))


@also("number_weakly_connected_components")
@implements
def number_connected_components(G):
    """How many there are."""
    return _count(G)


@also("is_weakly_connected")
@implements
def is_connected(G):
    """Whether there is one."""
    check_not_null(G)
    return _count(G) == 1


@implements
def node_connected_component(G, n):
    """The component of a node."""
    found = levels(G, G.index[n])
    return set(labels(G, np.flatnonzero(found >= 0)))


def _at_most_one_parent(G: ConvertedGraph) -> bool:
    return np.bincount(G.col, minlength=1).max() <= 1


@implements
def is_forest(G):
    """Whether no edge closes a cycle, directions apart."""
    check_not_null(G, "G has no nodes.")
    return G.number_of_edges() == len(G) - _count(G)


@implements
def is_tree(G):
    """Whether it is connected and no edge closes a cycle, directions apart."""
    check_not_null(G, "G has no nodes.")
    return len(G) - 1 == G.number_of_edges() and _count(G) == 1


@implements
def is_arborescence(G):
    """Whether it is a tree in which no node has two parents."""
    return bool(is_tree(G) and _at_most_one_parent(G))


@implements
def is_branching(G):
    """Whether it is a forest in which no node has two parents."""
    return bool(is_forest(G) and _at_most_one_parent(G))


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


def _colors(G: ConvertedGraph) -> np.ndarray | None:
    """(n,) 0 or 1, 1 at the first node of a component that has an edge (out); None: impossible.

    The roots are the vertices next to one more, from which the search starts.
    """
    n = len(G)
    if n == 0 or not len(G.row):
        return np.zeros(n, np.int64)
    has_edges = np.unique(G.row)
    _, where = np.unique(membership(G)[has_edges], return_index=True)
    roots = has_edges[where].astype(np.int32)
    row = np.concatenate([G.row, G.col, np.full(len(roots), n, np.int32)])
    col = np.concatenate([G.col, G.row, roots])
    row, col, _ = joined(n + 1, row, col, np.ones(len(row), np.int64), np.maximum)
    graph = on_device(n + 1, row, col, np.ones(len(row), np.float32))
    levels = np.asarray(check(bfs(graph, n, parents=False)).levels)[:n]
    parity = np.where(levels >= 0, levels % 2, 0)
    return None if (parity[G.row] == parity[G.col]).any() else parity


def _color(G: ConvertedGraph) -> np.ndarray:
    if (found := G.once("colors", lambda: _colors(G))) is None:
        raise nx.NetworkXError("Graph is not bipartite.")
    return found


@implements
def color(G):
    """0 or 1, different at both ends of every edge."""
    return by_node(G, _color(G))


@implements
def is_bipartite(G):
    """Whether two colors do."""
    return G.once("colors", lambda: _colors(G)) is not None


@implements
def sets(G, top_nodes=None):
    """The nodes of either color."""
    if top_nodes is not None:
        top = set(top_nodes)
        return top, set(G.nodes) - top
    check_not_null(G)
    if membership(G).any():
        raise nx.AmbiguousSolution("Disconnected graph: Ambiguous solution for bipartite sets.")
    found = _color(G)
    return set(labels(G, np.flatnonzero(found))), set(labels(G, np.flatnonzero(found == 0)))
