"""Modularity: how many more edges lie inside of communities than chance would put there."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from ..._core.eager.arrays import single_numbers
from ..._core.operation import Operation, typed
from ..._core.pytree import is_concrete
from ..._core.reductions import sum_in_double
from ...graph import Graph, as_graph
from ...native import bind
from ...ops.products.mxv.api import mxv, vxm
from ...shapes import Float, Matrix, Real, Vector
from ..common.edges import endpoints_of, is_undirected
from ..common.sources import vertex_labels
from ..common.weights import check_weights, with_real_weights


def modularity(
    G: Matrix,
    labels: Vector,
    *,
    resolution: Real = 1.0,
    weighted: bool = True,
    directed: bool | None = None,
) -> Float[Array, ""]:
    """`Q = sum over communities c of in(c) / m - resolution * out(c) * into(c) / m^2`.

    in(c) is the weight of the edges inside of c, out(c) and into(c) that of the edges that start
    and that end in c, m the weight of all edges. An undirected graph has both directions of every
    edge, and a self loop counts twice, as in NetworkX.

    Args:
        G: a `Graph` or a square sparse matrix of weights >= 0.
        labels: (n,) integers in [0, n), the community of each vertex; others belong to none.
        resolution: larger ones favour smaller communities.
        weighted: whether values are weights; otherwise each entry counts 1.
        directed: whether edges have a direction; None: yes, unless the pattern is symmetric (this
            is not known of a traced matrix, which counts as directed).

    Returns:
        A scalar, float32 or the wider dtype of the weights. Differentiable in them and in
        resolution.

    Raises:
        TypeError: G is no graph, or `labels` are no integers.
        ValueError: it is not square, a concrete weight is negative, infinite or NaN (traced: NaN is
            the result), or `labels` has a wrong shape.

    Cost: a pass over the edges.

    Source: Newman, Girvan, "Finding and evaluating community structure in networks", Physical
    Review E 69, 2004; Leicht, Newman, "Community structure in directed networks", Physical Review
    Letters 100, 2008.

    >>> import jax.numpy as jnp, jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 2, 3], [1, 0, 3, 2], shape=(4, 4))
    >>> float(jsp.modularity(A, jnp.asarray([0, 0, 2, 2])))
    0.5
    """
    graph = as_graph(G, "modularity", ())
    labels = vertex_labels(labels, graph.n)
    single_numbers(resolution=resolution)
    if weighted:
        check_weights(with_real_weights(graph, "modularity"))
        if not is_concrete(graph.data, graph.out.indptr):
            graph = graph.with_data(jnp.where(graph.data < 0, jnp.nan, graph.data))
    if directed is None:
        directed = not is_undirected(graph)
    return op(graph, labels, resolution, weighted=weighted, directed=directed)


def _types(graph, labels, resolution, *, weighted, directed):
    return typed(_dtype(graph, weighted))


op = Operation("modularity", "definition", types=_types)


def _not_native(graph, labels, resolution, *, weighted, directed) -> str | None:
    if _dtype(graph, weighted) not in (jnp.float32, jnp.float64):
        return "it takes weights of at most 64 bits"
    return bind.refused()


@op.register("native", backend="cpu", refuse=_not_native)
def _native(graph: Graph, labels: Array, resolution: Array, *, weighted, directed) -> Array:
    """One pass over the entries, in C++."""
    dtype = _dtype(graph, weighted)
    weights = graph.data.astype(dtype) if weighted else jnp.ones(graph.nse, dtype)
    if dtype == jnp.float64:  # their sums are in float64, too
        weights = edge_weights(graph, weighted=weighted, directed=True)
    ends = graph.out.indptr, graph.out.indices
    operands = *ends, weights, labels, resolution.astype(dtype)
    return bind.call("modularity", typed(dtype), *operands, directed=directed)


@op.register("sums")
def _modularity(graph: Graph, labels: Array, resolution: Array, *, weighted, directed) -> Array:
    n = graph.n
    weights = edge_weights(graph, weighted=weighted, directed=directed)
    tail, head = endpoints_of(graph)
    start, end = (labels.at[v].get(mode="fill", fill_value=n) for v in (tail, head))
    inside_weight = jnp.where((start == end) & (start < n), weights, 0)
    of_vertices = [mxv(graph.out.with_data(weights), jnp.ones(n, weights.dtype))]
    if directed:
        of_vertices.append(vxm(jnp.ones(n, weights.dtype), graph.out.with_data(weights)))
    sums = [sum_in_double(k, labels, n) for k in of_vertices]
    total = jnp.sum(weights)
    per = jnp.where(total > 0, 1 / jnp.where(total > 0, total, 1), 0)
    expected = jnp.sum((sums[0] * per) * (sums[-1] * per))
    return jnp.sum(inside_weight) * per - resolution.astype(weights.dtype) * expected


def _dtype(graph: Graph, weighted: bool) -> Any:
    return jnp.promote_types(graph.dtype, jnp.float32) if weighted else jnp.float32


def edge_weights(graph: Graph, *, weighted: bool, directed: bool) -> Array:
    """(nse,) float32 or the dtype of the weights, 0 in the padding; undirected loops doubled.

    Scaled by a power of two, so that sums are finite; modularity is the same for any scale.
    """
    tail, head = endpoints_of(graph)
    dtype = _dtype(graph, weighted)
    weights = graph.data.astype(dtype) if weighted else jnp.ones(graph.nse, dtype)
    weights = jnp.where(tail < graph.n, weights, 0)
    exponent = jnp.frexp(lax.stop_gradient(jnp.max(weights, initial=0)))[1]
    weights *= jnp.ldexp(jnp.ones((), dtype), 2 - exponent)
    return weights if directed else jnp.where(tail == head, 2, 1) * weights
