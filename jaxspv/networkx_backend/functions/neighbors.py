"""What nodes have in common: triangles, clustering coefficients, scores of pairs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np

from ...algebra.masks import structure
from ...algebra.operators import times
from ...algebra.semirings import plus_times
from ...algorithms.triangles import of_vertices
from ...formats import CSR
from ...graph import Graph
from ...ops.ewise import ewise_mult
from ...ops.products.mxm.api import mxm
from ...ops.products.mxv.api import mxv
from ..graph import ConvertedGraph
from ..registry import implements
from ..results import by_node, chosen
from ..views import joined, on_device, pattern, simple_pattern


def _common_neighbors(G: ConvertedGraph, u: np.ndarray, v: np.ndarray, share: np.ndarray):
    """For each pair (u, v) the sum of `share` over the vertices that both are joined to."""
    if not len(u):
        return np.zeros(0)
    graph, n = simple_pattern(G), len(G)
    row, col, _ = joined(n, u, v, np.ones(len(u), np.int64), np.maximum)
    pairs = on_device(n, row, col, np.ones(len(row), graph.dtype))
    padded = np.zeros(graph.n)
    padded[:n] = share
    found = _common(graph.out, padded.astype(graph.dtype), pairs.out)
    return found.to_scipy().tocsr()[u, v]


@jax.jit
def _common(A: CSR, share: jax.Array, pairs: CSR) -> CSR:
    columns = jnp.take(share, A.indices, mode="fill", fill_value=0)
    return mxm(A.with_data(columns), A, plus_times, mask=structure(pairs), nse=pairs.nse)


def _triangles(G: ConvertedGraph) -> np.ndarray:
    """(n,) triangles of each vertex, without regard to self loops and directions."""
    return G.once("triangles", lambda: G.own(of_vertices(simple_pattern(G))).astype(np.int64))


@jax.jit
def _mutual(A: CSR, T: CSR) -> jax.Array:
    """(n,) how many out-edges of each vertex have one in the other direction."""
    both = ewise_mult(A, T, times)
    return mxv(both, jnp.ones(A.shape[1], both.dtype))


@jax.jit
def _closed_walks(graph: Graph) -> jax.Array:
    """(n,) the diagonal of A^3 for a symmetric A: two for every triangle, weighed by its edges."""
    A = graph.out
    paths = mxm(A, A, plus_times, mask=structure(A), nse=A.nse)
    closed = ewise_mult(paths, A, times)
    return mxv(closed, jnp.ones(graph.n, closed.dtype))


def _neighbors(G: ConvertedGraph) -> np.ndarray:
    """(n,) neighbors other than the vertex itself."""
    return G.own(simple_pattern(G).out_degrees).astype(np.int64)


@implements
def triangles(G, nodes=None):
    """How many each node is in."""
    return chosen(G, nodes, by_node(G, _triangles(G)))


@implements
def generalized_degree(G, nodes=None):
    """Of each node, how many of its edges are in how many triangles."""
    graph = simple_pattern(G)
    row, col = (np.asarray(x)[: int(graph.out.indptr[-1])] for x in graph.out.rowcol())
    count = _common_neighbors(G, row, col, np.ones(len(G)))
    ends = np.searchsorted(row, np.arange(1, len(G)))
    parts = np.split(np.rint(count).astype(np.int64), ends)
    found = {node: Counter(part.tolist()) for node, part in zip(G.nodes, parts, strict=len(G) > 0)}
    return chosen(G, nodes, found)


@implements
def transitivity(G):
    """The share of the paths of two edges that a third closes."""
    degree = _neighbors(G)
    closed, paths = int(2 * _triangles(G).sum()), int((degree * (degree - 1)).sum())
    return closed / paths if closed else 0


def _coefficients(G: ConvertedGraph, weight: str | None) -> dict:
    """Walks i -> j -> k -> i over those that there could be; NaN weights stay NaN."""
    if weight is None and not G.is_directed():
        walks = 2.0 * _triangles(G)
    else:
        walks = G.own(_closed_walks(_symmetric(G, weight)))
    if G.is_directed():
        loops = np.bincount(G.row[G.row == G.col], minlength=len(G))
        total = np.bincount(G.row, minlength=len(G)) + np.bincount(G.col, minlength=len(G))
        total = total - 2 * loops
        graph = pattern(G)
        mutual = G.once("mutual", lambda: G.own(_mutual(graph.out, graph.inn)).astype(np.int64))
        possible = 2 * (total * (total - 1) - 2 * (mutual - loops))
    else:
        degree = _neighbors(G)
        possible = degree * (degree - 1)
    value = np.divide(walks, possible, out=np.zeros(len(G)), where=(walks != 0) & (possible != 0))
    return by_node(G, value)


def _symmetric(G: ConvertedGraph, weight: str | None):
    """Cube roots of the weights over the largest, both directions of directed edges added up."""
    values = G.weights(weight).astype(float)
    proper = G.row != G.col
    if weight is not None and len(values):
        if not (np.isfinite(values).all() and values.max() > 0):
            raise NotImplementedError(
                f"the weights under {weight!r} are not finite, or none is > 0"
            )
        values = np.cbrt(values / values.max())
    row, col, values = G.row[proper], G.col[proper], values[proper]
    if G.is_directed():
        row, col = np.concatenate([row, col]), np.concatenate([col, row])
        values = np.concatenate([values, values])
    row, col, values = joined(len(G), row, col, values, np.add)
    return on_device(len(G), row, col, values)


@implements
def clustering(G, nodes=None, weight=None):
    """The share of the pairs of neighbors of each node that are joined."""
    return chosen(G, nodes, _coefficients(G, weight))


def _scores(G: ConvertedGraph, ebunch: Any, share: np.ndarray) -> tuple[list, np.ndarray, Any, Any]:
    """The pairs, for each the sum of `share` over common neighbors, and its vertices."""
    pairs = [(u, v) for u, v in ebunch]
    for pair in pairs:
        for node in pair:
            if node not in G:
                raise nx.NodeNotFound(f"Node {node} not in G.")
    ends = np.array([(G.index[u], G.index[v]) for u, v in pairs], np.int32).reshape(-1, 2)
    u, v = ends.T
    if (u == v).any() or G.loops:
        raise NotImplementedError("a pair of a node with itself, or a self loop")
    return pairs, _common_neighbors(G, u, v, share), u, v


def _triples(pairs: list, values: np.ndarray):
    return ((u, v, p) for (u, v), p in zip(pairs, values.tolist(), strict=True))


@implements
def jaccard_coefficient(G, ebunch=None):
    """Common neighbors over all neighbors of either."""
    pairs, common, u, v = _scores(G, ebunch, np.ones(len(G)))
    degree = G.degrees
    either = degree[u] + degree[v] - common
    return _triples(pairs, np.divide(common, either, out=np.zeros(len(u)), where=either > 0))


@implements
def adamic_adar_index(G, ebunch=None):
    """The sum of 1 / log degree over common neighbors."""
    degree = np.maximum(G.degrees, 2)  # who is shared has two neighbors
    pairs, found, _, _ = _scores(G, ebunch, 1 / np.log(degree))
    return _triples(pairs, found)


@implements
def resource_allocation_index(G, ebunch=None):
    """The sum of 1 / degree over common neighbors."""
    pairs, found, _, _ = _scores(G, ebunch, 1 / np.maximum(G.degrees, 1))
    return _triples(pairs, found)
