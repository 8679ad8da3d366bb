"""Numbers drawn from the distances between all pairs: eccentricity, closeness, Wiener's index."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import networkx as nx
import numpy as np

from ...algorithms.paths.eccentricities import diameter as diameter_of
from ...algorithms.paths.eccentricities import eccentricity as eccentricities_of
from ..graph import ConvertedGraph
from ..registry import enter, implements
from ..results import check_not_null, labels, vertex
from ..searches import all_distances, all_levels, levels
from ..views import pattern
from .components import membership

TOGETHER = 4096  # sources of one call, which Ctrl-C does not end


def _rows(
    G: ConvertedGraph, weight: str | None, sources: Any = None
) -> Iterator[tuple[int, np.ndarray]]:
    """(source, its distances as float64 with inf where unreached)."""
    sources = np.arange(len(G)) if sources is None else sources
    if weight is not None:
        return all_distances(G, weight, sources)
    found = all_levels(G, sources)
    return ((s, np.where(hops >= 0, hops, np.inf)) for s, hops in found)


def _integral(G: ConvertedGraph, weight: str | None) -> bool:
    return G.weights(weight).dtype.kind != "f"


def _number(G: ConvertedGraph, weight: str | None, value: float) -> Any:
    return int(value) if _integral(G, weight) else float(value)


def _eccentricities(
    G: ConvertedGraph, weight: str | None, vertices: Sequence[int] | None = None
) -> dict:
    """label -> its largest distance; an error where a vertex is not reached."""
    vertices, found = range(len(G)) if vertices is None else vertices, {}
    if weight is not None:
        for v, far in _rows(G, weight, vertices):
            _check_connected(G, not math.isinf(far.max()))
            found[G.nodes[v]] = _number(G, weight, far.max())
        return found
    few = len(set(vertices)) < len(G) if G.is_directed() else len(vertices) < 2
    _check_connected(G, few or _connected(G))  # before all the searches
    for k in range(0, len(vertices), TOGETHER):
        some = list(vertices[k : k + TOGETHER])
        hops = eccentricities_of(pattern(G), some)
        _check_connected(G, hops.connected)
        found |= zip([G.nodes[v] for v in some], hops.values.tolist(), strict=True)
    return found


def _check_connected(G: ConvertedGraph, connected: Any) -> None:
    if not connected:
        kind = "digraph is not strongly" if G.is_directed() else "graph is not"
        raise nx.NetworkXError(f"Found infinite path length because the {kind} connected")


@implements
def eccentricity(G, v=None, sp=None, weight=None):
    """The largest distance from each node."""
    wanted = [G.index[node] for node in G.nbunch_iter(v)]
    found = _eccentricities(G, weight, wanted)
    return found[v] if v in G else found


def _extreme(G, e=None, usebounds=False, weight=None, *, of):
    """The largest or the smallest eccentricity."""
    if of is max and weight is None and not G.is_directed():
        _check_connected(G, _connected(G))
        return int(diameter_of(pattern(G)).diameter)
    return of(_eccentricities(G, weight).values())


def _nodes_of_extreme(G, e=None, usebounds=False, weight=None, *, of):
    """The nodes of that eccentricity."""
    found = _eccentricities(G, weight)
    extreme = of(found.values())
    return [v for v, far in found.items() if far == extreme]


enter(
    diameter=functools.partial(_extreme, of=max),
    radius=functools.partial(_extreme, of=min),
    periphery=functools.partial(_nodes_of_extreme, of=max),
    center=functools.partial(_nodes_of_extreme, of=min),
)


@implements
def harmonic_diameter(G, sp=None, *, weight=None):
    """The harmonic mean of the distances between all pairs."""
    total = sum(_inverse(far).sum() for _, far in _rows(G, weight))
    if total:
        return float(len(G) * (len(G) - 1) / total)
    return math.inf if len(G) > 1 else math.nan


def _inverse(far: np.ndarray) -> np.ndarray:
    """1 / distance, 0 for the source and where unreached."""
    return np.divide(1.0, far, out=np.zeros(len(far)), where=far > 0)


METHODS = ("unweighted", "dijkstra", "bellman-ford", "floyd-warshall", "floyd-warshall-numpy")


@implements
def average_shortest_path_length(G, weight=None, method=None):
    """The mean distance between all pairs."""
    if method is not None and method not in METHODS:
        raise ValueError(f"method not supported: {method}")
    n = len(G)
    if n == 0:
        text = "the null graph has no paths, thus there is no average shortest path length"
        raise nx.NetworkXPointlessConcept(text)
    if n == 1:
        return 0
    if not _connected(G):
        kind = "strongly connected" if G.is_directed() else "connected"
        raise nx.NetworkXError(f"Graph is not {kind}.")
    total = _total(G, None if method == "unweighted" else weight)
    return float(total / (n * (n - 1)))


def _connected(G: ConvertedGraph) -> bool:
    if not G.is_directed():
        return not membership(G).any()
    return all((levels(way, 0) >= 0).all() for way in (G, G.reverse()))  # from the first vertex


def _total(G: ConvertedGraph, weight: str | None) -> float:
    return float(sum(far.sum() for _, far in _rows(G, weight)))


@implements
def wiener_index(G, weight=None):
    """The sum of the distances of all pairs."""
    check_not_null(G)
    if not _connected(G):
        return math.inf
    total = _total(G, weight)
    return _number(G, weight, total) if G.is_directed() else total / 2


def _index(term: Callable[..., Any]) -> Callable[..., float]:
    def half_sum(G, weight=None):
        """Half the sum of `term(distances, degree, degrees)` over all vertices."""
        check_not_null(G)
        if not _connected(G):
            return math.inf
        degree = G.degrees  # as NetworkX: the weights are those of the paths alone
        return float(sum(term(far, degree[s], degree).sum() for s, far in _rows(G, weight)) / 2)

    return half_sum


enter(  # of the distances d of all pairs
    hyper_wiener_index=_index(lambda d, *_: d + d**2),
    schultz_index=_index(lambda d, own, degree: d * (own + degree)),
    gutman_index=_index(lambda d, own, degree: d * own * degree),
)


@implements
def global_efficiency(G):
    """The mean of 1 / distance over all pairs."""
    n = len(G)
    if n < 2:
        return 0
    total = sum(_inverse(far).sum() for _, far in _rows(G, None))
    return float(total / (n * (n - 1)))


@implements
def closeness_centrality(G, u=None, distance=None, wf_improved=True, *, sp=None):
    """1 / mean distance to the node, scaled by the share of nodes that reach it."""
    text = f"Node {u} not found in graph" if distance else f"Source {u} is not in G"
    wanted = np.arange(len(G)) if u is None else [vertex(G, u, text)]
    found = {}
    for s, far in _rows(G.reverse(), distance, wanted):
        reached = np.isfinite(far)
        count, total, value = int(reached.sum()), float(far[reached].sum()), 0.0
        if total > 0.0 and len(G) > 1:
            value = (count - 1.0) / total
            if wf_improved:
                value *= (count - 1.0) / (len(G) - 1)
        found[G.nodes[s]] = value
    return found if u is None else found[u]


@implements
def harmonic_centrality(G, nbunch=None, distance=None, sources=None):
    """The sum of 1 / distance from the sources to each node."""
    chosen = ({G.index[node] for node in G.nbunch_iter(nodes)} for nodes in (nbunch, sources))
    ends, starts = (np.array(sorted(vertices), np.int64) for vertices in chosen)
    total = np.zeros(len(G))
    if len(ends) < len(starts):
        for v, far in _rows(G.reverse(), distance, ends):
            total[v] = _inverse(far)[starts].sum()
    else:
        for _, far in _rows(G, distance, starts):
            total += _inverse(far)
    return dict(zip(labels(G, ends), total[ends].tolist(), strict=True))


@implements
def floyd_warshall(G, weight="weight"):
    """Distances between all pairs, infinite where there is no path."""
    integral, found = _integral(G, weight), {}
    for s, far in all_distances(G, weight, np.arange(len(G))):
        row = far.tolist()
        if integral:
            row = [int(d) if d < math.inf else d for d in row]
        found[G.nodes[s]] = dict(zip(G.nodes, row, strict=True))
    return found


@implements
def floyd_warshall_numpy(G, nodelist=None, weight="weight"):
    """The matrix of the distances between all pairs."""
    if nodelist is not None and (len(nodelist) != len(G) or set(nodelist) != set(G.nodes)):
        raise nx.NetworkXError(
            "nodelist must contain every node in G with no repeats."
            "If you wanted a subgraph of G use G.subgraph(nodelist)"
        )
    order = [G.index[v] for v in (G.nodes if nodelist is None else nodelist)]
    rows = [far[order] for _, far in all_distances(G, weight, order)]
    return np.array(rows).reshape(len(order), len(order))
