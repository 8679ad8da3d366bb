"""Communities: Louvain's method and label propagation."""

from __future__ import annotations

import numpy as np

from ....algorithms.communities.label_propagation import label_propagation
from ....algorithms.communities.louvain import louvain
from ....checking import check
from ...graph import ConvertedGraph
from ...registry import implements
from ...results import groups
from ...views import simple_pattern, weighted

STEPS = 100  # of label propagation: it converges in few steps, or alternates for ever


@implements
def louvain_communities(
    G, weight="weight", resolution=1, threshold=1e-07, max_level=None, seed=None
):
    """Sets of nodes whose modularity no move of one node raises."""
    values = G.weights(weight)
    if G.loops or not (np.isfinite(values).all() and (values >= 0).all()):
        raise NotImplementedError("a self loop, or a weight that is negative, infinite or NaN")
    if not values.any():
        return [{node} for node in G.nodes]
    graph = weighted(G, weight, parallel=np.add)
    found = check(louvain(graph, resolution=resolution))
    return groups(G, np.asarray(found.labels)[: len(G)])


def _by_labels(G: ConvertedGraph) -> list[set]:
    """Sets of nodes of one label, where each has one of the most frequent among its neighbors.

    Raises:
        NotImplementedError: the steps, which change all labels together, alternate between labels.
    """
    if G.loops or G.is_multigraph():
        raise NotImplementedError("self loops or parallel edges, whose labels count more than once")
    found = label_propagation(simple_pattern(G), STEPS)
    if not bool(found.converged):
        raise NotImplementedError(f"labels still change after {STEPS} steps")
    return groups(G, np.asarray(found.labels)[: len(G)])


@implements
def asyn_lpa_communities(G, weight=None, seed=None):
    """Sets of nodes of one label."""
    return iter(_by_labels(G))


@implements
def fast_label_propagation_communities(G, *, weight=None, seed=None):
    """Sets of nodes of one label."""
    return iter(_by_labels(G))


@implements
def label_propagation_communities(G):
    """Sets of nodes of one label."""
    return _by_labels(G)
