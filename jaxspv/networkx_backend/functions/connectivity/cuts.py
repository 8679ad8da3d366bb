"""Sets of nodes: cuts, volumes, boundaries, groups, partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import networkx as nx
import numpy as np
from networkx.algorithms.community.quality import NotAPartition

from ...graph import ConvertedGraph
from ...products import apply_matrix, degrees, neighbors_of
from ...registry import implements
from ...results import labels
from ...views import weighted


def _members(G: ConvertedGraph, nodes: Iterable) -> list[int]:
    """The vertices of those labels that the graph has, each once."""
    return [G.index[node] for node in dict.fromkeys(nodes) if node in G.index]


def _inside(G: ConvertedGraph, vertices: Any) -> np.ndarray:
    inside = np.zeros(len(G))
    inside[vertices] = 1
    return inside


def _sets(*, G: Any, S: Any, T: Any = (), **_: Any) -> str | None:
    for name, nodes in (("S", S), ("T", T)):
        if nodes is not None and not isinstance(nodes, (set, frozenset, list, tuple, dict, range)):
            return f"`{name}` is no set or sequence"
    if T is None and G.is_directed():
        return "`T` is None in a directed graph"
    if T is not None and not set(S).isdisjoint(T):
        return "`S` and `T` overlap"
    return None


def _number(value: Any, integral: bool) -> Any:
    return int(value) if integral else float(value)


def _cut(G: ConvertedGraph, S: Iterable, T: Iterable | None, weight: str | None) -> Any:
    left = _inside(G, _members(G, S)) > 0
    right = ~left if T is None else _inside(G, _members(G, T)) > 0
    between = left[G.row] & right[G.col]
    if G.is_directed():
        between |= right[G.row] & left[G.col]
    return G.weights(weight)[between].sum().item()


def _volume(G: ConvertedGraph, S: Iterable, weight: str | None) -> Any:
    side = "out" if G.is_directed() else "in+out"
    found = degrees(G, weight, side)[[G.index[v] for v in S if v in G.index]]
    return _number(found.sum(), G.weights(weight).dtype.kind != "f")


def _other(G: ConvertedGraph, S: Collection, T: Collection | None) -> Collection:
    return set(G.nodes) - set(S) if T is None else T


@implements(cost="linear", refuse=_sets)
def cut_size(G, S, T=None, weight=None):
    """The weight of the edges between two sets."""
    return _cut(G, S, T, weight)


@implements(cost="linear", refuse=_sets)
def volume(G, S, weight=None):
    """The sum of the (out-)degrees of a set."""
    return _volume(G, S, weight)


@implements(cost="linear", refuse=_sets)
def normalized_cut_size(G, S, T=None, weight=None):
    """The cut, over the volume of either side."""
    T = _other(G, S, T)
    cut = _cut(G, S, T, weight)
    return cut * (1 / _volume(G, S, weight) + 1 / _volume(G, T, weight))


@implements(cost="linear", refuse=_sets)
def conductance(G, S, T=None, weight=None):
    """The cut over the smaller volume."""
    T = _other(G, S, T)
    return _cut(G, S, T, weight) / min(_volume(G, S, weight), _volume(G, T, weight))


@implements(cost="linear", refuse=_sets)
def edge_expansion(G, S, T=None, weight=None):
    """The cut over the smaller number of nodes."""
    T = _other(G, S, T)
    return _cut(G, S, T, weight) / min(len(S), len(T))


@implements(cost="linear", refuse=_sets)
def mixing_expansion(G, S, T=None, weight=None):
    """The cut over twice the number of edges."""
    return _cut(G, S, T, weight) / (2 * G.number_of_edges())


def _boundary(G: ConvertedGraph, S: Iterable) -> np.ndarray:
    inside = _members(G, S)
    outside = neighbors_of(G, inside)
    outside[inside] = False
    return outside


@implements(cost="linear")
def node_boundary(G, nbunch1, nbunch2=None):
    """The neighbors of a set outside of it, all or those of another."""
    found = set(labels(G, np.flatnonzero(_boundary(G, nbunch1))))
    return found if nbunch2 is None else found & set(nbunch2)


@implements(cost="linear", refuse=_sets)
def boundary_expansion(G, S):
    """The size of the boundary of a set over that of the set."""
    return int(_boundary(G, S).sum()) / len(S)


@implements(cost="linear", refuse=_sets)
def node_expansion(G, S):
    """The number of neighbors of a set over its size."""
    return int(neighbors_of(G, _all_valid(G, S)).sum()) / len(S)


def _all_valid(G: ConvertedGraph, S: Iterable) -> list[int]:
    for node in S:
        if node not in G:
            kind = "digraph" if G.is_directed() else "graph"
            raise nx.NetworkXError(f"The node {node} is not in the {kind}.")
    return _members(G, S)


@implements(cost="linear")
def is_dominating_set(G, nbunch):
    """Whether every node is in the set or next to it."""
    inside = _members(G, nbunch)
    near = neighbors_of(G, inside)
    near[inside] = True
    return bool(near.all())


def _group_degree(G: ConvertedGraph, S: Collection, direction) -> float:
    inside = _all_valid(G, S)
    near = neighbors_of(G, inside, direction)
    near[inside] = False
    return int(near.sum()) / (len(G) - len(S))


@implements(cost="linear", refuse=_sets)
def group_degree_centrality(G, S):
    """The share of the nodes outside of a set that it has edges to."""
    return _group_degree(G, S, "out")


@implements(cost="linear", refuse=_sets)
def group_in_degree_centrality(G, S):
    """The share of the nodes outside of a set with edges to it."""
    return _group_degree(G, S, "in")


@implements(cost="linear", refuse=_sets)
def group_out_degree_centrality(G, S):
    """The share of the nodes outside of a set that it has edges to."""
    return _group_degree(G, S, "out")


@implements(cost="linear")
def modularity(G, communities, weight="weight", resolution=1):
    """How many more edges lie inside communities than degrees alone would put there."""
    communities = list(communities)
    of = np.full(len(G), -1)
    for k, community in enumerate(communities):
        of[[G.index[v] for v in community if v in G.index]] = k
    if (of < 0).any() or sum(map(len, communities)) != len(G):
        raise NotAPartition(G, communities)
    directed, count = G.is_directed(), len(communities)
    outs, ins = (degrees(G, weight, s if directed else "in+out") for s in ("out", "in"))
    total = outs.sum()
    if total == 0:
        raise NotImplementedError("the degrees add up to 0, for which releases of NetworkX differ")
    A = weighted(G, weight, parallel=np.add)
    inside = sum(
        x @ apply_matrix(A, x) for x in (_inside(G, np.flatnonzero(of == k)) for k in range(count))
    )
    if not directed:
        loops = G.row == G.col
        inside += G.weights(weight)[loops].sum()  # an edge counts at both of its ends
    out, into = (np.bincount(of, side, minlength=count) for side in (outs, ins))
    return float(inside / total - resolution * (out @ into) / float(total) ** 2)
