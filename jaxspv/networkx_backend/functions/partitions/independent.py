"""Sets without neighbors, and colours."""

from __future__ import annotations

import jax
import networkx as nx
import numpy as np

from ....algorithms.independent.sets import greedy_color as coloring_of
from ....algorithms.independent.sets import maximal_independent_set as set_of
from ....checking import check
from ...products import degrees
from ...registry import implements
from ...results import labels, pairs
from ...views import simple_pattern


@implements
def greedy_color(G, strategy="largest_first", interchange=False):
    """Colours of the nodes by descending degree, at ties in the order of the graph."""
    if len(G) == 0:
        return {}
    graph = simple_pattern(G)
    order = np.argsort(-degrees(G), kind="stable")
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
