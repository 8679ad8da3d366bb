"""Centralities by shortest paths and by iteration: betweenness, PageRank, Katz, hubs."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from ....algorithms.centrality.betweenness import betweenness_centrality as betweenness_of
from ....algorithms.centrality.spectral import eigenvector_centrality as eigenvector_of
from ....algorithms.centrality.spectral import hits as hits_of
from ....algorithms.centrality.spectral import katz_centrality as katz_of
from ....algorithms.pagerank.api import pagerank as pagerank_of
from ....checking import check
from ....graph import Graph
from ...graph import ConvertedGraph
from ...registry import implements
from ...results import by_node
from ...views import pattern, weighted

MORE_STEPS = 20  # than ARPACK takes, before hubs and authorities are left to NetworkX


@implements
def betweenness_centrality(G, k=None, normalized=True, weight=None, endpoints=False, seed=None):
    """The share of shortest paths that pass each node; samples as NetworkX draws them."""
    n, sources = len(G), None
    if k is not None and k != n:
        if k < 1:
            raise NotImplementedError("no sources")
        drawn = nx.utils.create_py_random_state(seed).sample(list(G.nodes), k)
        sources = np.array([G.index[node] for node in drawn], np.int32)
    if weight is None:
        graph = pattern(G)
    else:
        values = G.weights(weight)
        if len(values) and not (np.isfinite(values).all() and values.min() > 0):
            raise NotImplementedError(f"a length under {weight!r} is not positive and finite")
        graph = weighted(G, weight, parallel=np.minimum, purpose=("sssp",))
    found = betweenness_of(
        graph,
        sources,
        normalized=normalized,
        endpoints=endpoints,
        weighted=weight is not None,
        directed=G.is_directed(),
    )
    return by_node(G, np.asarray(check(found).scores, np.float64)[:n])


def _summed(G: ConvertedGraph, weight: str | None) -> Graph:
    """The graph with the sums of parallel edges; refused where one is negative or not finite."""
    values = G.weights(weight)
    if not ((values >= 0) & (values < np.inf)).all():
        raise NotImplementedError(f"a weight under {weight!r} is negative, infinite or NaN")
    return weighted(G, weight, parallel=np.add, purpose=("pagerank",))


def _scores(G: ConvertedGraph, found: Any, max_iter: int) -> dict:
    """label -> score of what converged on a padded graph."""
    if not bool(found.converged):
        raise nx.PowerIterationFailedConvergence(max_iter)
    return by_node(G, np.asarray(found.scores, np.float64)[: len(G)])


@implements
def eigenvector_centrality(G, max_iter=100, tol=1.0e-6, nstart=None, weight=None):
    """The eigenvector of the largest eigenvalue, by iterating I + A^T."""
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("cannot compute centrality for the null graph")
    return _scores(G, eigenvector_of(_summed(G, weight), tol, max(max_iter, 0)), max_iter)


@implements
def katz_centrality(
    G, alpha=0.1, beta=1.0, max_iter=1000, tol=1.0e-6, nstart=None, normalized=True, weight=None
):
    """Walks to each node, those of k edges times alpha^k."""
    if len(G) == 0:
        return {}
    graph = _summed(G, weight)
    b = np.zeros(graph.n)
    try:
        b[: len(G)] = float(beta)
    except (TypeError, ValueError):
        if not isinstance(beta, dict):
            raise NotImplementedError("`beta` is neither a number nor a dictionary") from None
        if set(beta) != set(G.nodes):
            text = "beta dictionary must have a value for every node"
            raise nx.NetworkXError(text) from None
        b[: len(G)] = [beta[node] for node in G.nodes]
    found = katz_of(graph, alpha, b, tol, max(max_iter, 0), normalized=normalized)
    return _scores(G, found, max_iter)


@implements
def hits(G, max_iter=100, tol=1.0e-8, nstart=None, normalized=True, *, method=None):
    """Hubs and authorities: nodes with edges to authorities, and nodes with edges from hubs.

    Releases of NetworkX without `method`, and "svd", have the vectors from ARPACK in few steps;
    here they take more than `max_iter`.
    """
    if method not in (None, "power_iteration", "svd"):
        raise ValueError(f"method not supported: {method}")
    if len(G) < 3 or not G.weights("weight").any():
        raise NotImplementedError("there are no edges, or fewer than three nodes")
    if max_iter <= 0:
        raise nx.PowerIterationFailedConvergence(max_iter)
    steps, limit = max(max_iter, 100) * MORE_STEPS, max(1e-4 * tol, 1e-15 * len(G))
    found = hits_of(_summed(G, "weight"), limit, steps)  # as near as ARPACK comes
    if not bool(found.converged) or method == "power_iteration" and found.iterations > max_iter:
        raise NotImplementedError("NetworkX's own iteration may converge within `max_iter` or not")
    h, a = (np.asarray(v, np.float64)[: len(G)] for v in (found.hubs, found.authorities))
    h, a = (v if normalized else v / v.max() for v in (h, a))
    return by_node(G, h), by_node(G, a)


@implements
def pagerank(
    G,
    alpha=0.85,
    personalization=None,
    max_iter=100,
    tol=1.0e-6,
    nstart=None,
    weight="weight",
    dangling=None,
):
    """Scores; the iteration stops at an L1 change of `len(G) * tol`."""
    n, p = len(G), None
    if n == 0:
        return {}
    graph = _summed(G, weight)
    if not 0 <= alpha <= 1:
        raise NotImplementedError(f"`alpha` is out of [0, 1]: {alpha}")
    if personalization is not None:
        p = np.zeros(graph.n)
        p[:n] = [personalization.get(node, 0) for node in G.nodes]
        if p.sum() == 0:
            raise ZeroDivisionError
        if (p < 0).any():
            raise NotImplementedError("`personalization` holds a negative value")
    limit, steps = n * tol, max(max_iter, 0)
    if p is not None:  # from another start than NetworkX's to the same scores
        limit, steps = limit * 1e-4, steps + 60
    found = pagerank_of(graph, alpha, limit, steps, p)
    if p is not None and int(found.iterations) > max_iter:
        raise NotImplementedError("it takes about `max_iter` steps: NetworkX may stop or not")
    return _scores(G, found, max_iter)
