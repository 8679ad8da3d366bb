"""Sums over the edges of each vertex and other products that the functions share."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..algebra.masks import structure
from ..algebra.semirings import plus_times
from ..algorithms.triangles.api import of_vertices
from ..formats import CSR
from ..graph import Graph
from ..ops.products.mxm.api import mxm
from ..ops.products.mxv.api import mxv
from .graph import ConvertedGraph
from .views import Direction, joined, on_device, simple_pattern, weighted


def sums(G: ConvertedGraph, weight: str | None, direction: Direction = "out") -> np.ndarray:
    """(n,) the sum of the weights of the entries of each vertex along `direction`."""

    def make() -> np.ndarray:
        graph = weighted(G, weight, parallel=np.add, direction=direction)
        totals = apply_matrix(graph, np.ones(len(G)))
        return totals if G.weights(weight).dtype.kind == "f" else totals.astype(np.int64)

    return G.once(("sums", weight, direction if G.is_directed() else "out"), make)


def degrees(G: ConvertedGraph, weight: str | None = None, side: str = "in+out") -> np.ndarray:
    """(n,) degrees as NetworkX counts them, "in", "out" or "in+out": an undirected loop twice."""
    if G.is_directed():
        if side == "in+out":
            return sums(G, weight, "out") + sums(G, weight, "in")
        return sums(G, weight, "in" if side == "in" else "out")
    loops = G.row == G.col
    twice = np.bincount(G.row[loops], G.weights(weight)[loops], minlength=len(G))
    total = sums(G, weight)
    return total + twice.astype(total.dtype)


def apply_matrix(graph: Graph, x: np.ndarray) -> np.ndarray:
    """`y[i] = sum over edges i -> j of A[i, j] x[j]`, for x over the vertices without ghosts."""
    padded = np.zeros(graph.n)
    padded[: len(x)] = x
    return np.asarray(_row_products(graph, padded))[: len(x)]


@jax.jit
def _row_products(graph: Graph, x: jax.Array) -> jax.Array:
    return mxv(graph.out, x.astype(graph.dtype))


def common_neighbors(G: ConvertedGraph, u: np.ndarray, v: np.ndarray, share: np.ndarray):
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


def triangle_counts(G: ConvertedGraph) -> np.ndarray:
    """(n,) triangles of each vertex, without regard to self loops and directions."""

    def make() -> np.ndarray:
        return np.asarray(of_vertices(simple_pattern(G)))[: len(G)].astype(np.int64)

    return G.once("triangles", make)


def triangles_of_edges(G: ConvertedGraph) -> tuple[np.ndarray, np.ndarray]:
    """Rows and triangles of the entries of the pattern without self loops."""
    graph = simple_pattern(G)
    row, col = (np.asarray(x)[: int(graph.out.indptr[-1])] for x in graph.out.rowcol())
    return row, common_neighbors(G, row, col, np.ones(len(G)))
