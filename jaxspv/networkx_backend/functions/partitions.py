"""Communities, independent sets and colours."""

from __future__ import annotations

import jax
import networkx as nx
import numpy as np

from ...algorithms.communities.label_propagation import label_propagation
from ...algorithms.communities.louvain import louvain
from ...algorithms.independent.sets import greedy_color as coloring_of
from ...algorithms.independent.sets import maximal_independent_set as set_of
from ...checking import check
from ..registry import enter, implements
from ..results import groups, labels, pairs
from ..views import simple_pattern, weighted

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


@implements
def label_propagation_communities(G):
    """Sets of nodes of one label, where each has one of the most frequent among its neighbors.
    Refused where steps, which change all labels together, alternate between labels."""
    if G.loops or G.is_multigraph():
        raise NotImplementedError("self loops or parallel edges, whose labels count more than once")
    found = label_propagation(simple_pattern(G), STEPS)
    if not bool(found.converged):
        raise NotImplementedError(f"labels still change after {STEPS} steps")
    return dict(enumerate(groups(G, np.asarray(found.labels)[: len(G)]))).values()


def _asynchronous(G, weight=None, seed=None):
    """Sets of nodes of one label."""
    return iter(label_propagation_communities(G))


enter(asyn_lpa_communities=_asynchronous, fast_label_propagation_communities=_asynchronous)


@implements
def greedy_color(G, strategy="largest_first", interchange=False):
    """Colours of the nodes by descending degree, at ties in the order of the graph."""
    if len(G) == 0:
        return {}
    graph = simple_pattern(G)
    order = np.argsort(-G.degrees, kind="stable")
    padding = np.arange(len(G), graph.n)
    found = check(coloring_of(graph, np.concatenate([order, padding])))
    return pairs(G, order, np.asarray(found.colors))


@implements
def maximal_independent_set(G, nodes=None, seed=None):
    """Nodes of which no two are neighbors, to which none can be added."""
    if G.loops:
        raise NotImplementedError("NetworkX's first node may not have a self loop")
    key = jax.random.key(nx.utils.create_py_random_state(seed).getrandbits(31))
    found = check(set_of(key, simple_pattern(G)))
    return labels(G, np.flatnonzero(np.asarray(found.members)[: len(G)]))
