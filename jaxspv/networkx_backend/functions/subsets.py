"""Subsets of nodes: cores, trusses, onion layers; communities, independent sets, colours."""

from __future__ import annotations

import functools
import operator

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
from jax import lax

from ...algorithms.clustering.trusses import k_truss as truss_of
from ...algorithms.communities.label_propagation import label_propagation
from ...algorithms.communities.louvain import louvain
from ...algorithms.cores import core_number as cores_of
from ...algorithms.independent.sets import greedy_color as coloring_of
from ...algorithms.independent.sets import maximal_independent_set as set_of
from ...checking import check
from ...graph import Graph
from ...ops.products.mxv.api import mxv
from ..graph import ConvertedGraph, convert_to_nx
from ..registry import enter, implements
from ..results import by_node, groups, labels, pairs
from ..views import simple_pattern, weighted

STEPS = 100  # of label propagation: it converges in few steps, or alternates for ever
LOOPS = (
    "Input graph {} self loops which is not permitted; "
    "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
)


def _check_loops(G: ConvertedGraph, verb: str = "has") -> None:
    if G.loops:
        raise nx.NetworkXNotImplemented(LOOPS.format(verb))


def _cores(G: ConvertedGraph, given: dict | None = None) -> np.ndarray:
    """(n,) core numbers, those of the caller where they are given."""
    if given is not None:
        return np.array([given[node] for node in G.nodes])
    _check_loops(G)
    return G.own(cores_of(simple_pattern(G)).cores)


@implements
def core_number(G):
    """The largest k for which each node is in the k-core."""
    return by_node(G, _cores(G))


def _by_cores(G, k=None, core_number=None, *, chosen, below=0):
    """The subgraph of the nodes whose core numbers are chosen; below: from the largest to k."""
    cores = _cores(G, core_number)
    if k is None:
        k = (int(cores.max()) if len(cores) else max(())) - below  # which raises
    return convert_to_nx(G.induced(chosen(cores, k)))


enter(
    k_core=functools.partial(_by_cores, chosen=operator.ge),
    k_shell=functools.partial(_by_cores, chosen=operator.eq),
    k_crust=functools.partial(_by_cores, chosen=operator.le, below=1),
)


@implements
def k_corona(G, k, core_number=None):
    """The subgraph of the nodes of core number k with k neighbors of that or more."""
    cores = _cores(G, core_number)
    ends = np.unique(np.stack([G.row, G.col])[:, (cores >= k)[G.col]], axis=1)  # parallel ones once
    near = np.bincount(ends[0], minlength=len(G))
    return convert_to_nx(G.induced((cores == k) & (near == k)))


@implements
def k_truss(G, k):
    """The subgraph whose edges are in k - 2 triangles or more, without isolated nodes."""
    _check_loops(G)
    A = truss_of(simple_pattern(G), max(k, 2)).to_scipy()
    A.data[:] = 1
    kept = np.asarray(A[G.row, G.col]).ravel() > 0 if len(G.row) else np.zeros(0, bool)
    nodes = np.zeros(len(G), bool)
    nodes[G.row[kept]] = True
    return convert_to_nx(G.induced(nodes, kept))


@implements
def onion_layers(G):
    """The round in which each node is peeled off."""
    _check_loops(G, "contains")
    graph = simple_pattern(G)
    return by_node(G, G.own(_layers(graph, graph.out_degrees)))


@jax.jit
def _layers(graph: Graph, degree: jax.Array) -> jax.Array:
    """A round takes all of a degree up to the core; the core grows where none is so low."""
    n = graph.n
    left = jnp.ones(n, bool) if graph.exists is None else graph.exists
    alone = left & (degree == 0)

    def round_(state):
        layers, degree, left, core, layer = state
        core = jnp.maximum(core, jnp.min(jnp.where(left, degree, n)))
        gone = left & (degree <= core)
        lost = mxv(graph.out, gone.astype(graph.dtype)).astype(degree.dtype)
        return jnp.where(gone, layer, layers), degree - lost, left & ~gone, core, layer + 1

    first = jnp.where(jnp.any(alone), jnp.int32(2), jnp.int32(1))
    start = (alone.astype(jnp.int32), degree, left & ~alone, jnp.ones((), degree.dtype), first)
    return lax.while_loop(lambda s: jnp.any(s[2]), round_, start)[0]


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
    return groups(G, G.own(found.labels))


@implements
def label_propagation_communities(G):
    """Sets of nodes of one label, where each has one of the most frequent among its neighbors.
    Refused where steps, which change all labels together, alternate between labels."""
    if G.loops or G.is_multigraph():
        raise NotImplementedError("self loops or parallel edges, whose labels count more than once")
    found = label_propagation(simple_pattern(G), STEPS)
    if not bool(found.converged):
        raise NotImplementedError(f"labels still change after {STEPS} steps")
    return dict(enumerate(groups(G, G.own(found.labels)))).values()


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
    return labels(G, np.flatnonzero(G.own(found.members)))
