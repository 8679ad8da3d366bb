"""Degrees, common neighbours and triangles, which several functions share."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..algebra.masks import structure
from ..algebra.operators import times
from ..algebra.semirings import plus_times
from ..algorithms.triangles.api import of_vertices
from ..formats import CSR
from ..graph import Graph
from ..ops.ewise import ewise_mult
from ..ops.products.mxm.api import mxm
from ..ops.products.mxv.api import mxv
from .graph import ConvertedGraph
from .views import joined, on_device, pattern, simple_pattern


def degrees(G: ConvertedGraph) -> np.ndarray:
    """(n,) degrees as NetworkX counts them: in and out, an undirected loop twice."""
    others = G.col if G.is_directed() else G.row[G.row == G.col]
    return np.bincount(G.row, minlength=len(G)) + np.bincount(others, minlength=len(G))


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


def mutual(G: ConvertedGraph) -> np.ndarray:
    """(n,) of each vertex the edges that are also there in the other direction."""

    def make() -> np.ndarray:
        graph = pattern(G)
        return np.asarray(_mutual(graph.out, graph.inn))[: len(G)].astype(np.int64)

    return G.once("mutual", make)


@jax.jit
def _mutual(A: CSR, T: CSR) -> jax.Array:
    both = ewise_mult(A, T, times)
    return mxv(both, jnp.ones(A.shape[1], both.dtype))


@jax.jit
def closed_walks(graph: Graph) -> jax.Array:
    """(n,) the diagonal of A^3 for a symmetric A: two for every triangle, weighed by its edges."""
    A = graph.out
    paths = mxm(A, A, plus_times, mask=structure(A), nse=A.nse)
    closed = ewise_mult(paths, A, times)
    return mxv(closed, jnp.ones(graph.n, closed.dtype))


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
