"""Sums over the edges of each vertex and other products that the functions share."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from ..graph import Graph
from ..masks import structure
from ..ops.mxm.api import mxm
from ..ops.mxv.api import mxv
from ..semirings import plus_pair
from .graph import ConvertedGraph
from .views import Direction, simple_pattern, weighted


def sums(G: ConvertedGraph, weight: str | None, direction: Direction = "out") -> np.ndarray:
    """(n,) the sum of the weights of the entries of each vertex along `direction`."""

    def make() -> np.ndarray:
        graph = weighted(G, weight, parallel=np.add, direction=direction)
        totals = np.asarray(_row_sums(graph))[: len(G)]
        return totals if G.weights(weight).dtype.kind == "f" else totals.astype(np.int64)

    return G.once(("sums", weight, direction if G.is_directed() else "out"), make)


def degrees(
    G: ConvertedGraph, weight: str | None = None, side: Literal["in", "out", "in+out"] = "in+out"
) -> np.ndarray:
    """(n,) degrees as NetworkX counts them: a self loop of an undirected graph twice."""
    if G.is_directed():
        if side == "in+out":
            return sums(G, weight, "out") + sums(G, weight, "in")
        return sums(G, weight, side)
    loops = G.row == G.col
    twice = np.bincount(G.row[loops], G.weights(weight)[loops], minlength=len(G))
    total = sums(G, weight)
    return total + twice.astype(total.dtype)


@jax.jit
def _row_sums(graph: Graph) -> jax.Array:
    return mxv(graph.out, jnp.ones(graph.n, graph.dtype))


def triangle_counts(G: ConvertedGraph) -> np.ndarray:
    """(n,) triangles of each vertex, self loops and directions apart."""

    def make() -> np.ndarray:
        return np.asarray(_triangles(simple_pattern(G)))[: len(G)].astype(np.int64) // 2

    return G.once("triangles", make)


@jax.jit
def _triangles(graph: Graph) -> jax.Array:
    A = graph.out
    common = mxm(A, A, plus_pair, mask=structure(A), nse=A.nse)
    return mxv(common, jnp.ones(graph.n, common.dtype))
