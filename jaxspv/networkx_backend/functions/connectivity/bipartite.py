"""Two-colorings: by the parity of the levels of one search from a root in every component."""

from __future__ import annotations

import networkx as nx
import numpy as np

from ....algorithms.bfs.api import bfs
from ....checking import check
from ...graph import ConvertedGraph
from ...registry import implements
from ...results import by_node, labels
from ...views import joined, on_device
from .components import membership


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
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    if membership(G).any():
        raise nx.AmbiguousSolution("Disconnected graph: Ambiguous solution for bipartite sets.")
    found = _color(G)
    return set(labels(G, np.flatnonzero(found))), set(labels(G, np.flatnonzero(found == 0)))
