"""Arrays to what NetworkX returns: Python numbers under the user's labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from .graph import ConvertedGraph


def vertex(G: ConvertedGraph, node: Any, message: str) -> int:
    """The vertex of a label, or NodeNotFound with the message."""
    if node not in G:
        raise nx.NodeNotFound(message)
    return G.index[node]


def ends(G: ConvertedGraph, source: Any, target: Any) -> tuple[int, int]:
    """The vertices of two labels."""
    s = vertex(G, source, f"Source {source} is not in G")
    return s, vertex(G, target, f"Target {target} is not in G")


def by_node(G: ConvertedGraph, values: np.ndarray) -> dict:
    """label -> number, for all vertices."""
    return dict(zip(G.nodes, values.tolist(), strict=True))


def labels(G: ConvertedGraph, vertices: np.ndarray) -> list:
    """The labels of vertices."""
    nodes = G.nodes
    return [nodes[i] for i in vertices.tolist()]


def ascending(values: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """The reached vertices by value, as a search settles them."""
    found = np.flatnonzero(reached)
    return found[np.argsort(values[found], kind="stable")]


def pairs(G: ConvertedGraph, order: np.ndarray, values: np.ndarray) -> dict:
    """label -> number for the vertices of `order`, in that order."""
    return dict(zip(labels(G, order), values[order].tolist(), strict=True))


def paths(G: ConvertedGraph, order: np.ndarray, parents: np.ndarray) -> dict:
    """label -> labels along the tree to the vertices of `order`."""
    nodes, above = G.nodes, parents.tolist()
    found: dict[int, list] = {}
    for v in order.tolist():
        chain = []
        while v not in found and above[v] != v:
            chain.append(v)
            v = above[v]
        if v not in found:
            found[v] = [nodes[v]]
        for u in reversed(chain):
            found[u] = [*found[above[u]], nodes[u]]
    return {nodes[v]: found[v] for v in order.tolist()}


def path_to(G: ConvertedGraph, parents: np.ndarray, target: int) -> list:
    """Labels along the tree from its root to the target."""
    walk = [target]
    while (above := int(parents[walk[-1]])) != walk[-1]:
        walk.append(above)
    return [G.nodes[v] for v in reversed(walk)]


def groups(G: ConvertedGraph, membership: np.ndarray) -> list[set]:
    """The sets of labels of equal membership, in the order of their first vertices."""
    if not len(membership):
        return []
    order = np.argsort(membership, kind="stable")
    ends = np.flatnonzero(np.diff(membership[order])) + 1
    parts = sorted(np.split(order, ends), key=lambda part: part[0])
    return [set(labels(G, part)) for part in parts]


def chosen(G: ConvertedGraph, nodes: Any, values: Any) -> Any:
    """All of a dict label -> value, that of one node, or those of several that are nodes.

    This is how NetworkX reads its arguments `nodes` and `nbunch`.
    """
    if nodes is None:
        return values
    if nodes in G:
        return values[nodes]
    return {node: values[node] for node in G.nbunch_iter(nodes)}


def check_not_null(
    G: ConvertedGraph, text: str = "Connectivity is undefined for the null graph."
) -> None:
    """NetworkXPointlessConcept with the text if the graph has no nodes."""
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept(text)


class Tree(NamedTuple):
    """Distances and parents that searches gave, and what NetworkX makes of them.

    Within a cutoff the starts of the searches are found, whatever it is.
    """

    G: ConvertedGraph
    weight: str | None
    far: np.ndarray
    parents: np.ndarray

    def numbers(self) -> np.ndarray:
        """The lengths, those that are finite as integers where the attribute holds integers."""
        if self.G.weights(self.weight).dtype.kind == "f":
            return self.far
        return np.where(np.isfinite(self.far), self.far, -1).astype(np.int64)

    def order(self, cutoff: float | None = None) -> np.ndarray:
        """The vertices that are reached, by length."""
        reached = np.isfinite(self.far)
        if cutoff is not None:
            reached &= ~(self.far > cutoff)
            reached |= self.parents == np.arange(len(self.parents))
        return ascending(self.far, reached)

    def lengths(self, cutoff: float | None = None) -> dict:
        """label -> length."""
        return pairs(self.G, self.order(cutoff), self.numbers())

    def paths(self, cutoff: float | None = None) -> dict:
        """label -> labels of a path."""
        return paths(self.G, self.order(cutoff), self.parents)

    def both(self, cutoff: float | None = None) -> tuple[dict, dict]:
        """Lengths and paths."""
        return self.lengths(cutoff), self.paths(cutoff)

    def to(self, target: Any, text: str, cutoff: float | None = None) -> tuple[Any, list]:
        """Length and path to one node; NetworkXNoPath with the text if there is none."""
        G, t = self.G, self.G.index.get(target)
        if t is None or not np.isfinite(self.far[t]) or cutoff is not None and self.far[t] > cutoff:
            raise nx.NetworkXNoPath(text)
        return self.numbers()[t].item(), path_to(G, self.parents, t)
