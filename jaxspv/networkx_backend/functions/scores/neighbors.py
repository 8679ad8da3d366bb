"""Degrees of neighbors and how they go together: assortativity, reciprocity, rich clubs."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np

from ...graph import ConvertedGraph
from ...products import apply_matrix, degrees, mutual
from ...registry import implements
from ...results import nbunch
from ...views import Direction, pattern, weighted

SIDES = ("in", "out", "in+out")


def _simple(**arguments: Any) -> str | None:
    """Refuses weights of parallel edges, which NetworkX reads from the wrong dictionary."""
    if arguments["G"].is_multigraph() and arguments["weight"] is not None:
        return "weights of parallel edges"
    if arguments["nodes"] is not None and arguments["nodes"] in arguments["G"]:
        return "`nodes` is one node"
    return None


def _check_sides(G: ConvertedGraph, source: str, target: str, undirected: str) -> None:
    if not G.is_directed() and (source, target) != (undirected, undirected):
        text = "source and target arguments are only supported for directed graphs"
        raise nx.NetworkXError(text)
    for name, side in (("source", source), ("target", target)):
        if G.is_directed() and side not in SIDES:
            raise nx.NetworkXError(f"{name} argument {side} must be 'in', 'out' or 'in+out'")


def _sum_over(G: ConvertedGraph, weight: str | None, direction: Direction, x: np.ndarray):
    """(n,) the sum of x over the neighbors, each once."""
    if weight is None:
        return apply_matrix(pattern(G, direction), x)
    return apply_matrix(weighted(G, weight, parallel=np.add, direction=direction), x)


@implements(cost="linear", refuse=_simple)
def average_neighbor_degree(G, source="out", target="out", nodes=None, weight=None):
    """The mean degree of the neighbors of each node."""
    _check_sides(G, source, target, "out")
    target_side, source_side = (target, source) if G.is_directed() else ("in+out", "in+out")
    far = degrees(G, None, target_side)
    total = np.zeros(len(G))
    for direction in ("in", "out"):
        if direction in source:
            total += _sum_over(G, weight, direction, far)
    near = degrees(G, weight, source_side)
    mean = np.divide(total, near, out=np.zeros(len(G)), where=near != 0).tolist()
    return {node: mean[G.index[node]] for node in nbunch(G, nodes)}


@implements(cost="linear", refuse=_simple)
def average_degree_connectivity(G, source="in+out", target="in+out", nodes=None, weight=None):
    """The mean degree of the neighbors of the nodes of each degree."""
    _check_sides(G, source, target, "in+out")
    far = _sum_over(G, weight, "in" if source == "in" else "out", degrees(G, None, target))
    wanted = [G.index[node] for node in nbunch(G, nodes)]
    kinds, place = np.unique(degrees(G, None, source)[wanted], return_inverse=True)
    above = np.bincount(place, far[wanted], minlength=len(kinds))
    below = np.bincount(place, degrees(G, weight, source)[wanted], minlength=len(kinds))
    mean = np.divide(above, below, out=above.astype(float), where=below != 0)
    return dict(zip(kinds.tolist(), mean.tolist(), strict=True))


def _all_nodes(**arguments: Any) -> str | None:
    return None if arguments["nodes"] is None else "`nodes` are given: edges among some alone"


def _correlation(G: ConvertedGraph, x: str, y: str, weight: str | None) -> float:
    """Pearson's coefficient of the degrees at both ends, over all entries."""
    if G.is_directed() and not {x, y} <= {"in", "out"}:
        raise KeyError(x if x not in ("in", "out") else y)
    sides = (x, y) if G.is_directed() else ("in+out", "in+out")
    tail, head = (degrees(G, weight, side).astype(float) for side in sides)
    out, into, count = degrees_of_entries(G, "out"), degrees_of_entries(G, "in"), len(G.row)
    means = tail @ out / count, head @ into / count
    together = tail @ apply_matrix(weighted(G, None, parallel=np.add), head) / count
    spread = tail**2 @ out / count - means[0] ** 2, head**2 @ into / count - means[1] ** 2
    scale = math.sqrt(max(spread[0], 0) * max(spread[1], 0))
    if not scale:
        raise NotImplementedError("all degrees are equal: releases of NetworkX answer differently")
    return float((together - means[0] * means[1]) / scale)


def degrees_of_entries(G: ConvertedGraph, direction: Direction) -> np.ndarray:
    """(n,) entries of each vertex: a self loop once."""
    return np.bincount(G.row if direction == "out" else G.col, minlength=len(G))


def _some_edges(**arguments: Any) -> str | None:
    few = arguments["G"].number_of_edges() < 2
    return "fewer than two edges" if few else _all_nodes(**arguments)


@implements(cost="linear", refuse=_some_edges)
def degree_assortativity_coefficient(G, x="out", y="in", weight=None, nodes=None):
    """How degrees at both ends of the edges correlate."""
    return _correlation(G, x, y, weight)


@implements(cost="linear", refuse=_some_edges)
def degree_pearson_correlation_coefficient(G, x="out", y="in", weight=None, nodes=None):
    """How degrees at both ends of the edges correlate."""
    return _correlation(G, x, y, weight)


def _overall(G: ConvertedGraph) -> float:
    if G.is_multigraph():
        raise nx.NetworkXNotImplemented("not implemented for multigraph type")
    if not len(G.row):
        raise nx.NetworkXError("Not defined for empty graphs")
    return (int(mutual(G).sum()) - G.loops) / len(G.row)


def _directed(**arguments: Any) -> str | None:
    if arguments["G"].is_multigraph():
        return "parallel edges"
    return None if arguments["G"].is_directed() else "an undirected graph"


@implements(cost="linear", refuse=_directed)
def overall_reciprocity(G):
    """The share of the edges that are there in both directions."""
    return _overall(G)


@implements(cost="linear", refuse=_directed)
def reciprocity(G, nodes=None):
    """The share of the edges that are there in both directions, of the graph or of nodes."""
    if nodes is None:
        return _overall(G)
    if G.is_multigraph():
        raise nx.NetworkXNotImplemented("not implemented for multigraph type")
    both, either = mutual(G).tolist(), degrees(G).tolist()
    found = {
        node: 2 * both[i] / either[i] if either[i] else None
        for node, i in ((node, G.index[node]) for node in nbunch(G, nodes))
    }
    if nodes not in G:
        return found
    if found[nodes] is None:
        raise nx.NetworkXError("Not defined for isolated nodes.")
    return found[nodes]


@implements(cost="linear")
def is_tournament(G):
    """Whether every two nodes are joined by one edge."""
    n = len(G)
    if G.loops or len(G.row) != n * (n - 1) // 2:
        return False
    return not mutual(G).any()


def _normalized(**arguments: Any) -> str | None:
    if arguments["normalized"]:
        return "`normalized` compares with graphs that NetworkX draws at random"
    return None


@implements(cost="linear", refuse=_normalized)
def rich_club_coefficient(G, normalized=True, Q=100, seed=None, *, n_samples=1):
    """The density among the nodes of degree above k, for each k."""
    if G.loops:
        raise NotImplementedError("a self loop")
    if not len(G.row):
        return {}
    degree = degrees(G)
    above = len(G) - np.cumsum(np.bincount(degree))
    lower = np.minimum(degree[G.row], degree[G.col])
    edges = (len(lower) - np.cumsum(np.bincount(lower, minlength=len(above)))) // 2
    clubs = range(np.count_nonzero(above > 1))  # `above` falls
    return {k: 2 * int(edges[k]) / int(above[k] * (above[k] - 1)) for k in clubs}
