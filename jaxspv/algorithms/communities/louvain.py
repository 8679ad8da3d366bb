"""Louvain: communities of large modularity, by moves of vertices and then of communities."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ..._core.eager.arrays import single_numbers
from ..._core.eager.programs import one_program
from ..._core.operation import Operation, typed
from ..._core.platforms import Backend, reaching
from ..._core.pytree import result_tuple
from ...graph import Graph, as_graph
from ...native import bind
from ...shapes import Float, Int, Matrix, Real
from ..common.derivatives import constant
from ..common.edges import undirected, without_ghosts
from ..common.status import finished
from ..common.weights import check_weights, with_real_weights
from .louvain_levels import MOST, in_kernels, vectorised
from .modularity import edge_weights, modularity


@result_tuple
class Communities(NamedTuple):
    """The result of `louvain`.

    Attributes:
        labels: (n,) int32, the smallest vertex of the community of each; -1 for ghosts of `pad`.
        count: int32, the number of communities.
        modularity: of the labels.
        levels: int32, how often communities were joined.
        status: int32, 0 unless a kernel gave up; see `jaxspv.check`.
    """

    labels: Int[Array, " n"]
    count: Int[Array, ""]
    modularity: Float[Array, ""]
    levels: Int[Array, ""]
    status: Int[Array, ""]


@reaching
def louvain(
    G: Matrix,
    *,
    resolution: Real = 1.0,
    weighted: bool = True,
    backend: Backend | None = None,
    method: str | None = None,
) -> Communities:
    """Communities of an undirected graph, of large modularity.

    A vertex moves to the community of a neighbour where `w(v, c) - resolution k(v) k(c) / 2m` is
    largest, k the sums of weights, until none moves. Then each community becomes one vertex, edges
    between two communities are summed, and the moves start again, until no communities are joined.
    On a CPU vertices move one after the other. Elsewhere many move in the same step, so that the
    communities may differ; their modularity is similar.

    Args:
        G: a `Graph` or a symmetric sparse matrix of weights >= 0.
        resolution: larger ones favour smaller communities.
        weighted: whether values are weights; otherwise each entry counts 1.
        backend: "pallas", "cpu", "xla" or None.
        method: "native" (C++, on a CPU), "in_kernels" (a launch a level on a GPU),
            "vectorised" (elsewhere), or None to choose so.

    Returns:
        `Communities(labels, count, modularity, levels, status)`.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or where it is concrete its pattern or its weights are not
            symmetric, or a weight is negative, infinite or NaN (traced: `modularity` is NaN).
        NotImplementedError: the form asked for cannot run; says why.

    Cost: a pass over the edges for each sweep, at most 64 sweeps a level and 32 levels;
    "vectorised" sorts the edges in each sweep.

    Source: Blondel, Guillaume, Lambiotte, Lefebvre, "Fast unfolding of communities in large
    networks", Journal of Statistical Mechanics, 2008; parallel: Lu, Halappanavar, Kalyanaraman,
    "Parallel heuristics for scalable community detection", Parallel Computing 47, 2015.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 2, 3], [1, 0, 3, 2], shape=(4, 4))
    >>> jsp.louvain(A).labels.tolist()
    [0, 0, 2, 2]
    """
    graph = as_graph(G, "louvain", ())
    if weighted:
        check_weights(with_real_weights(graph, "louvain"))
    elif jnp.issubdtype(graph.dtype, jnp.complexfloating):
        graph = graph.with_data(jnp.ones(graph.nse, jnp.float32))
    undirected(graph, "louvain", values=weighted)
    single_numbers(resolution=resolution)
    how = {"weighted": weighted, "backend": backend, "method": method}
    found = one_program(_louvain, graph, jnp.asarray(resolution, jnp.float32), **how)
    return finished(found, "louvain")


def _louvain(graph: Graph, resolution: Array, *, weighted, backend, method) -> Communities:
    how = {"weighted": weighted, "backend": backend, "method": method}
    labels, count, levels, status = op(graph, resolution, **how)
    quality = modularity(graph, labels, resolution=resolution, weighted=weighted, directed=False)
    return Communities(labels, count, quality, levels, status)


def _types(graph, resolution, *, weighted):
    return typed(jnp.int32, graph.n), typed(jnp.int32), typed(jnp.int32), typed(jnp.int32)


op = Operation("louvain", constant, types=_types)


def _named(moved):
    """Communities by their least vertices, of weights in float32; -1 for ghosts of `pad`."""

    def run(graph, resolution, *, weighted):
        vertex = jnp.arange(graph.n, dtype=jnp.int32)
        labels, levels, status = vertex, jnp.int32(0), jnp.int32(0)
        if graph.n and graph.nse:
            weights = edge_weights(graph, weighted=weighted, directed=False).astype(jnp.float32)
            found, levels, status = moved(graph, weights, resolution)
            labels = jnp.full(graph.n, graph.n, jnp.int32).at[found].min(vertex)[found]
        labels = without_ghosts(graph, labels, -1)
        return labels, jnp.sum(labels == vertex, dtype=jnp.int32), levels, status

    return run


def _not_in_kernels(graph, resolution, *, weighted) -> str | None:
    if graph.n == 0 or graph.nse == 0:
        return "there are no edges"
    if graph.nse > MOST:
        return f"{graph.nse} entries exceed the {MOST} that its sums of int32 allow"
    return None


@op.register("native", backend="cpu", refuse=bind.refused)
def _native(graph, resolution, *, weighted):
    """One vertex after the other, in C++."""
    out, results = graph.out, _types(graph, resolution, weighted=weighted)[:3]
    weights = edge_weights(graph, weighted=weighted, directed=True)  # loops double in C++
    operands = out.indptr, out.indices, weights.astype(jnp.float32), resolution
    labels, levels, count = bind.call("louvain", results, *operands)
    if graph.exists is not None:
        labels = jnp.where(graph.exists, labels, -1)
        count = jnp.sum(labels == jnp.arange(graph.n), dtype=jnp.int32)
    return labels, count, levels, jnp.int32(0)


op.register("in_kernels", backend="pallas", refuse=_not_in_kernels)(_named(in_kernels))
op.register("vectorised")(_named(vectorised))
