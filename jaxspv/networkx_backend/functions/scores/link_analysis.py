"""Scores by links: PageRank."""

from __future__ import annotations

import networkx as nx
import numpy as np

from ....algorithms.pagerank.api import pagerank as pagerank_of
from ....construct.padding import unpad
from ...registry import implements
from ...results import by_node
from ...views import weighted


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
