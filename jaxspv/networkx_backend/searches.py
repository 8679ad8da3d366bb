"""Searches that the functions share: levels and distances from one source, from all in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import networkx as nx
import numpy as np

from ..algorithms.bfs.api import bfs
from ..algorithms.common.status import NegativeCycleError
from ..algorithms.sssp.api import sssp
from ..checking import check
from ..graph import Graph
from ..until import reached
from .graph import ConvertedGraph
from .registry import double_precision
from .views import pattern, weighted

SOURCES_OF_BFS, SOURCES_OF_SSSP = 64, 16  # in one call


def levels(G: ConvertedGraph, source: int) -> np.ndarray:
    """(n,) hops; -1: unreached."""
    found = check(bfs(pattern(G), source, parents=False))
    return G.own(found.levels)


def bfs_tree(G: ConvertedGraph, source: int, target: int) -> tuple[np.ndarray, np.ndarray]:
    """(n,) hops and parents of a search that ends at the target."""
    found = check(bfs(pattern(G), source, until=reached(target)))
    return G.own(found.levels), G.own(found.parents)


def queue(
    G: ConvertedGraph, hops: np.ndarray, first: Sequence[int] = ()
) -> tuple[list[np.ndarray], np.ndarray]:
    """What a search meets in the order in which NetworkX's queue does, layer by layer, by hops.

    Args:
        hops: (n,) of every vertex, -1 where unreached.
        first: the vertices of the first layer; by default those of 0 hops.

    Returns:
        The layers, and (n,) the vertex that each is met from: of its neighbors one layer up the
        first, itself in the first layer, -1 where unreached.
    """
    indptr, heads = np.append(0, np.cumsum(np.bincount(G.row, minlength=len(G)))), G.col
    layer = np.asarray(first if len(first) else np.flatnonzero(hops == 0), np.int64)
    above = np.full(len(G), -1, np.int64)
    above[layer] = layer
    layers, place = [], np.empty(len(G), np.int64)
    while len(layer):
        layers.append(layer)
        counts = indptr[layer + 1] - indptr[layer]
        before = np.repeat(indptr[layer] - counts.cumsum() + counts, counts)
        edges = np.arange(counts.sum()) + before
        tails, met = np.repeat(layer, counts), heads[edges]
        new = hops[met] == len(layers)
        tails, met = tails[new], met[new]
        order = np.arange(len(met))
        place[met[::-1]] = order[::-1]
        fresh = place[met] == order
        layer = met[fresh]
        above[layer] = tails[fresh]
    return layers, above


def distances(
    G: ConvertedGraph,
    attribute: str | None,
    source: int,
    target: int | None = None,
    *,
    negative: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """(n,) lengths of shortest paths, inf where there is none, and parents."""
    graph = lengths(G, attribute, negative=negative)
    try:
        found = sssp(graph, source, until=None if target is None else reached(target))
    except NegativeCycleError:
        raise nx.NetworkXUnbounded("Negative cycle detected.") from None
    if not bool(found.converged):  # on a GPU the call itself does not raise
        raise nx.NetworkXUnbounded("Negative cycle detected.")
    check(found)
    far, parents = (G.own(x) for x in (found.distances, found.parents))
    return far, parents


def lengths(G: ConvertedGraph, attribute: str | None, *, negative: bool = False) -> Graph:
    """The graph of the shortest of parallel edges. Refuses lengths that are NaN or infinite, or
    negative where none may be: what NetworkX gives then depends on the order of its steps."""
    values = G.weights(attribute)
    if len(values) and not np.isfinite(values).all():
        raise NotImplementedError(f"a length under {attribute!r} is not finite")
    if not negative and len(values) and values.min() < 0:
        raise NotImplementedError(f"a length under {attribute!r} is negative")
    return weighted(G, attribute, parallel=np.minimum, purpose=("sssp",))


def all_levels(
    G: ConvertedGraph, sources: Sequence[int] | np.ndarray
) -> Iterator[tuple[int, np.ndarray]]:
    """(source, its levels) for every source, 64 in one traversal."""
    return _in_batches(_levels_from, pattern(G), sources, SOURCES_OF_BFS, G)


def all_distances(
    G: ConvertedGraph, attribute: str | None, sources: Sequence[int] | np.ndarray
) -> Iterator[tuple[int, np.ndarray]]:
    """(source, its distances) for every source."""
    return _in_batches(_lengths_from, lengths(G, attribute), sources, SOURCES_OF_SSSP, G)


_levels_from = jax.jit(lambda graph, sources: bfs(graph, sources, parents=False).levels)
_lengths_from = jax.jit(lambda graph, sources: sssp(graph, sources, parents=False).distances)


def _in_batches(
    search: Callable[[Graph, Any], Any],
    graph: Graph,
    sources: Sequence[int] | np.ndarray,
    size: int,
    G: ConvertedGraph,
) -> Iterator[tuple[int, np.ndarray]]:
    """The last batch is filled with a source out of range, which reaches nothing."""
    for start in range(0, len(sources), size):
        batch = np.full(size, graph.n, np.int32)
        part = sources[start : start + size]
        batch[: len(part)] = part
        with double_precision():  # not while the caller has the rows
            rows = np.asarray(search(graph, batch))
        for k, source in enumerate(part):
            yield int(source), rows[k, : len(G)]
