"""Clustering coefficients: how many pairs of neighbours are neighbours themselves."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax import Array

from ..._core.eager.programs import one_program
from ..._core.platforms import Backend, reaching
from ..._core.reductions import sum_in_double
from ...algebra.masks import structure
from ...algebra.monoids import plus
from ...formats import CSR
from ...graph import Graph, as_graph
from ...ops.ewise import ewise_add, ewise_mult
from ...ops.products.mxm.api import mxm
from ...shapes import Float, Matrix
from ..common.edges import degrees_without_loops, endpoints_of, is_undirected, kept, vertices_of
from ..common.weights import check_weights, with_real_weights
from ..triangles import of_vertices


@reaching
def clustering(
    G: Matrix,
    *,
    weighted: bool = False,
    directed: bool | None = None,
    backend: Backend | None = None,
    method: str | None = None,
) -> Float[Array, " n"]:
    """`c[v] = 2 T(v) / (d(v) (d(v) - 1))`: triangles of v among the pairs of its neighbours.

    With weights a triangle counts the geometric mean of its three, each over the largest of all,
    of a self loop too, as in NetworkX; of an edge that weighs more in one direction the mean of
    both cube roots counts. In a directed graph `T = diag((A + A^T)^3) / 2` counts directed
    triangles, of `d (d - 1) - 2 e` possible ones, d edges from or to v and e edges that go both
    ways. Self loops are otherwise ignored; a vertex with fewer than two neighbours, a ghost of
    `pad` too, has 0.

    Args:
        G: a `Graph` or a square sparse matrix.
        weighted: whether values are weights >= 0; otherwise they do not matter.
        directed: whether edges have a direction; None: unless the pattern is symmetric (of a
            traced matrix that is not known, and so directed).
        backend: "pallas", "cpu", "xla", or None for the fastest that accepts the call.
        method: "native" (in C++, on a CPU), "tables" (rows as tables, in two launches on a GPU),
            "products" (masked products, the only one with weights or directions) or None.

    Returns:
        (n,) float32, or the wider dtype of the weights. Differentiable in weights > 0.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or `weighted` and a concrete weight is negative, infinite or
            NaN (traced: every vertex in a triangle has NaN).
        NotImplementedError: the form asked for cannot run; says why.

    Cost: O(edges^1.5) steps without weights, else a product of the adjacency with itself, masked.

    Source: Watts, Strogatz, "Collective dynamics of small-world networks", Nature 393, 1998;
    Onnela, Saramaki, Kertesz, Kaski, "Intensity and coherence of motifs in weighted complex
    networks", Physical Review E 71, 2005; Fagiolo, "Clustering in complex directed networks",
    Physical Review E 76, 2007.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2], shape=(4, 4))
    >>> [round(float(c), 3) for c in jsp.clustering(A)]
    [1.0, 1.0, 0.333, 0.0]
    """
    graph = as_graph(G, "clustering", ())
    if weighted:
        graph = with_real_weights(graph, "clustering")
    if directed is None:
        directed = not is_undirected(graph)
    if weighted:
        check_weights(graph)
        directed = directed or not graph.symmetric  # the same, where both directions weigh the same
    if not weighted and not directed:
        return one_program(_by_triangles, graph, backend=backend, method=method)
    if method not in (None, "products"):
        raise NotImplementedError(
            f"`method={method!r}` counts triangles without weights or directions; leave it out."
        )
    return one_program(_by_products, graph, weighted=weighted, directed=directed, backend=backend)


def _by_triangles(graph: Graph, *, backend: Any, method: Any) -> Array:
    triangles = 2 * of_vertices(graph, backend=backend, method=method).astype(jnp.float32)
    degree = degrees_without_loops(graph).astype(jnp.float32)
    return _over(triangles, degree * (degree - 1))


def _by_products(graph: Graph, *, weighted: bool, directed: bool, backend: Any) -> Array:
    A = _without_loops(graph, weighted)
    ones = A.with_data(jnp.ones(A.nse, A.dtype))
    if not directed:
        degree = _row_sums(ones)
        return _over(_closed_walks(A, backend), degree * (degree - 1))
    S, linked = (ewise_add(M, M.T.asformat("csr"), plus, nse=2 * M.nse) for M in (A, ones))
    degree = _row_sums(linked)
    both = _row_sums(linked.with_data((linked.data > 1).astype(A.dtype)))
    return _over(_closed_walks(S, backend), 2 * (degree * (degree - 1) - 2 * both))


@reaching
def average_clustering(
    G: Matrix,
    *,
    count_zeros: bool = True,
    weighted: bool = False,
    directed: bool | None = None,
    backend: Backend | None = None,
    method: str | None = None,
) -> Float[Array, ""]:
    """The mean of `clustering` over the vertices, or over those where it is not 0.

    Args:
        G, weighted, directed, backend, method: as for `clustering`.
        count_zeros: whether vertices with coefficient 0 count.

    Returns:
        A scalar of the dtype of `clustering`; 0 where nothing counts.

    Raises:
        TypeError, ValueError, NotImplementedError: as `clustering`.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2], shape=(3, 3))
    >>> float(jsp.average_clustering(A))
    1.0
    """
    graph = as_graph(G, "average_clustering", ())
    found = clustering(graph, weighted=weighted, directed=directed, backend=backend, method=method)
    count = jnp.sum(found != 0) if not count_zeros else vertices_of(graph)
    return jnp.sum(found) / jnp.maximum(count, 1).astype(found.dtype)


def _without_loops(graph: Graph, weighted: bool) -> CSR:
    """Cube roots of weights over the largest of all, or ones."""
    tail, head = endpoints_of(graph)
    valid = (tail < graph.n) & (tail != head)
    if not weighted:
        data = jnp.ones(graph.nse, jnp.float32)
    else:
        floats = jnp.promote_types(graph.dtype, jnp.float32)
        data = jnp.where(tail < graph.n, graph.data, 0).astype(floats)
        data = jnp.where((data >= 0) & (data < jnp.inf), data, jnp.nan)  # traced, so not refused
        top = jnp.maximum(jnp.max(data, initial=0), jnp.finfo(floats).tiny)
        least = jnp.where(top > jnp.finfo(floats).max / 8, 1 / 16, 1).astype(floats)
        data = data * least / (top * least)  # 1 / top: no subnormal
        data = jnp.where(data != 0, jnp.cbrt(jnp.where(data != 0, data, 1)), 0)
    return kept(dataclasses.replace(graph.out, data=data), valid)


def _closed_walks(A: CSR, backend: Any) -> Array:
    """(n,) the diagonal of A^3 of a symmetric A: row sums of `A * (A A)` on the pattern of A."""
    squared = mxm(A, A, mask=structure(A), nse=A.nse, backend=backend)
    return _row_sums(ewise_mult(squared, A, nse=A.nse))


def _row_sums(A: CSR) -> Array:
    row, _ = A.rowcol()
    valid = jnp.arange(A.nse) < A.count
    return sum_in_double(jnp.where(valid, A.data, 0), row, A.shape[0])


def _over(count: Array, possible: Array) -> Array:
    return jnp.where(possible > 0, count / jnp.where(possible > 0, possible, 1), 0)
