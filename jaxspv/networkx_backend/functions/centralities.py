"""Centralities by shortest paths and by iteration: betweenness, PageRank, Katz, hubs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
from jax import lax

from ...algorithms.centrality.betweenness import betweenness_centrality as betweenness_of
from ...algorithms.pagerank.api import pagerank as pagerank_of
from ...construct.padding import unpad
from ...graph import Graph
from ...ops.products.mxv.api import mxv
from ..graph import ConvertedGraph
from ..registry import implements
from ..results import by_node
from ..views import pattern, weighted

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
    if found.overflow:
        raise NotImplementedError("counts of paths, or lengths, are beyond float64")
    return by_node(G, np.asarray(found.scores, np.float64)[:n])


def _start(G: ConvertedGraph, size: int, nstart: dict | None, default: float) -> np.ndarray:
    """(size,) the given or the usual start, 0 for ghosts."""
    if nstart is not None and set(nstart) != set(G.nodes):
        raise NotImplementedError("a start is not given for just the nodes of the graph")
    x = np.zeros(size)
    x[: len(G)] = default if nstart is None else [nstart[node] for node in G.nodes]
    return x


def _converged(G: ConvertedGraph, found: Any, limit: float, max_iter: int) -> np.ndarray:
    x, change, _ = found
    if not float(change) < limit:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return np.asarray(x, np.float64)[: len(G)]


def _iterate(step: Any, x: jax.Array, limit: Any, steps: Any) -> tuple[jax.Array, ...]:
    """`x = step(x)` until it changes by less than `limit` in the L1 norm: x, change, x before."""

    def turn(state):
        x, _, _, k = state
        new = step(x)
        return new, jnp.sum(jnp.abs(new - x)), x, k + 1

    start = (x, jnp.asarray(jnp.inf, x.dtype), x, jnp.int32(0))
    return lax.while_loop(lambda s: (s[3] < steps) & ~(s[1] < limit), turn, start)[:3]


@implements
def eigenvector_centrality(G, max_iter=100, tol=1.0e-6, nstart=None, weight=None):
    """The eigenvector of the largest eigenvalue, by iterating I + A^T."""
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("cannot compute centrality for the null graph")
    graph = weighted(G.reverse(), weight, parallel=np.add)
    x = _start(G, graph.n, nstart, 1)
    if not x.any():
        raise nx.NetworkXError("initial vector cannot have all zero values")
    limit = len(G) * tol
    found = _eigenvector(graph, x / x.sum(), limit, max_iter)
    return by_node(G, _converged(G, found, limit, max_iter))


@jax.jit
def _eigenvector(graph: Graph, x: jax.Array, limit: Any, steps: Any):
    def step(x):
        x = x + mxv(graph.out, x)
        norm = jnp.sqrt(jnp.sum(x * x))
        return x / jnp.where(norm == 0, 1, norm)

    return _iterate(step, x.astype(graph.dtype), limit, steps)


@implements
def katz_centrality(
    G, alpha=0.1, beta=1.0, max_iter=1000, tol=1.0e-6, nstart=None, normalized=True, weight=None
):
    """Walks to each node, those of k edges times alpha^k."""
    if len(G) == 0:
        return {}
    if isinstance(beta, dict) and set(beta) != set(G.nodes):
        raise nx.NetworkXError("beta dictionary must have a value for every node")
    graph = weighted(G.reverse(), weight, parallel=np.add)
    try:
        ends = {"nstart": None, "default": float(beta)}
    except (TypeError, ValueError):
        ends = {"nstart": beta, "default": 0.0}
        if not isinstance(beta, dict):
            raise NotImplementedError("`beta` is neither a number nor a dictionary") from None
    b, limit = _start(G, graph.n, **ends), len(G) * tol
    x = _start(G, graph.n, nstart, 0)
    found = _katz(graph, x, b, alpha, limit, max_iter)
    scores = _converged(G, found, limit, max_iter)
    norm = np.linalg.norm(scores) if normalized else 1
    return by_node(G, scores / norm if norm else scores)


@jax.jit
def _katz(graph: Graph, x: jax.Array, b: jax.Array, alpha: Any, limit: Any, steps: Any):
    b = b.astype(graph.dtype)
    return _iterate(lambda x: alpha * mxv(graph.out, x) + b, x.astype(graph.dtype), limit, steps)


@implements
def hits(G, max_iter=100, tol=1.0e-8, nstart=None, normalized=True, *, method=None):
    """Hubs and authorities: nodes with edges to authorities, and nodes with edges from hubs.

    Releases of NetworkX without `method`, and "svd", have the vectors from ARPACK in few steps;
    here they take more than `max_iter`.
    """
    if method not in (None, "power_iteration", "svd"):
        raise ValueError(f"method not supported: {method}")
    values = G.weights("weight")
    if len(G) < 3 or not values.any():
        raise NotImplementedError("there are no edges, or fewer than three nodes")
    if max_iter <= 0:
        raise nx.PowerIterationFailedConvergence(max_iter)
    iterated = method == "power_iteration"
    if not iterated and not (np.isfinite(values).all() and values.min() >= 0):
        raise NotImplementedError("a weight is negative, infinite or NaN")
    out = weighted(G, "weight", parallel=np.add)
    inn = weighted(G.reverse(), "weight", parallel=np.add)
    x = _start(G, out.n, None, 1 / len(G))
    steps = max_iter if iterated else max(max_iter, 100) * MORE_STEPS
    limit = tol if iterated else max(1e-4 * tol, 1e-15 * len(G))  # as near as ARPACK comes
    found = _hits(out, inn, x, limit, steps)
    if not iterated and not float(found[1]) < limit:
        raise NotImplementedError(f"the iteration has not converged after {steps} steps")
    h = _converged(G, found, limit, max_iter)
    a = np.asarray(found[2], np.float64)[: len(G)]
    h, a = (v / (v.sum() if normalized else v.max()) for v in (h, a))
    return by_node(G, h), by_node(G, a)


@jax.jit
def _hits(out: Graph, inn: Graph, x: jax.Array, limit: Any, steps: Any):
    def step(h):
        h = mxv(out.out, mxv(inn.out, h))
        return h / jnp.max(h)

    hubs, change, before = _iterate(step, x.astype(out.dtype), limit, steps)
    return hubs, change, mxv(inn.out, before)  # the authorities


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
    values = G.weights(weight)
    if not ((values >= 0) & (values < np.inf)).all():
        raise NotImplementedError(f"a weight under {weight!r} is negative, infinite or NaN")
    graph = weighted(G, weight, parallel=np.add, purpose=("pagerank",))
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
    found = unpad(pagerank_of(graph, alpha, limit, steps, p), graph)
    if p is not None and int(found.iterations) > max_iter:
        raise NotImplementedError("it takes about `max_iter` steps: NetworkX may stop or not")
    if not bool(found.converged):
        raise nx.PowerIterationFailedConvergence(max_iter)
    return by_node(G, np.asarray(found.scores, np.float64))
