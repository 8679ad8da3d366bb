"""The k shortest paths between two vertices."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..._core.eager.programs import one_program
from ..._core.operation import Operation, typed
from ..._core.platforms import Backend
from ..._core.pytree import is_concrete, result_tuple
from ...formats import CSR
from ...formats.csr import sorted_csr
from ...graph import as_graph
from ...native import bind
from ...shapes import Bool, Count, Int, Matrix, Num
from ..common.sources import check_vertex
from ..common.weights import check_weights, with_real_weights
from ..sssp.layout import with_lengths
from ..sssp.tree import refuse_tree
from ..sssp.xla import infinity
from .several_xla import clamped_sum, searches, total


@result_tuple
class ShortestPaths(NamedTuple):
    """The result of `k_shortest_paths`.

    Attributes:
        distances: (paths,) sums of the weights, ascending; where there are no more inf, or the
            largest integer.
        vertices: (paths, n) int32, those of each path, the source first; n behind the target.
        hops: (paths,) int32, the edges of each path; -1 where there are no more.
        count: int32, the paths found.
        overflow: bool; fewer than k were found, and lengths of others may reach the largest
            integer: the greatest weights out of each vertex together do.
    """

    distances: Num[Array, " paths"]
    vertices: Int[Array, "paths n"]
    hops: Int[Array, " paths"]
    count: Int[Array, ""]
    overflow: Bool[Array, ""]

    def path(self, number: int) -> Int[np.ndarray, " hops"]:
        """Vertices of path `number`, from 0 on, both ends included; empty: there is none.

        Raises:
            ValueError: the result is traced, or `number` is out of range.
        """
        if not is_concrete(self.vertices):
            raise ValueError("`path` needs concrete values: call it outside of jit.")
        k = self.hops.shape[0]
        if not 0 <= number < k:
            raise ValueError(f"`number` must lie in [0, {k}); got {number}.")
        return np.asarray(self.vertices)[number, : int(self.hops[number]) + 1]


def k_shortest_paths(
    G: Matrix,
    source: Count,
    target: Count,
    k: int,
    *,
    weighted: bool = True,
    backend: Backend | None = None,
    method: str | None = None,
) -> ShortestPaths:
    """The k shortest paths without a vertex twice, shortest first.

    Yen's algorithm: the next path leaves a known path at a spur vertex. A search from there avoids
    the vertices before it and the next edges of known paths with the same beginning. The searches
    use reduced weights `w(u, v) + h(v) - h(u)`, which are 0 along shortest paths; one search
    against the edges gives the distances h to the target. A path found this way is left
    only at the vertex where it left the path before it, or later: so none is found twice.

    Args:
        G: a `Graph` or a square sparse matrix of weights >= 0, A[i, j] the edge i -> j.
        source, target: vertices.
        k: how many, 1 or more.
        weighted: whether lengths are sums of weights, else numbers of edges.
        backend: "cpu", "xla" or None.
        method: "native" (C++, on a CPU), "searches" (elsewhere), or None for these.

    Returns:
        `ShortestPaths(distances, vertices, hops, count, overflow)`, in the dtype of the weights
        (booleans count as int32 ones, float16 and bfloat16 as float32). Ties are broken
        deterministically, in an unspecified order.

    Raises:
        TypeError: G is no graph, a vertex no integer.
        ValueError: G is not square, a concrete vertex is out of range, a concrete weight is
            negative or NaN (traced: no path takes it), or k is no positive integer.
        NotImplementedError: the form asked for cannot run; says why.

    Differentiable in the weights, both modes: 1 for each edge of a path.

    Cost: a search for each vertex of the paths found that has another way on, at most k n of them,
    mostly of few vertices, but in "searches" with a pass over the edges each. Memory: 2 k n
    numbers.

    Source: Yen, "Finding the k shortest loopless paths in a network", Management Science 17, 1971;
    Lawler, "A procedure for computing the k best solutions to discrete optimization problems",
    Management Science 18, 1972; "native" ends a search where the shortest way on is free: Feng,
    "Finding k shortest simple paths in directed graphs", Networks 64, 2014.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 0, 1, 2], [1, 2, 3, 3], [1.0, 2.0, 1.0, 1.0], shape=(4, 4))
    >>> found = jsp.k_shortest_paths(A, 0, 3, 3)
    >>> found.distances.tolist(), found.path(0).tolist(), found.path(1).tolist(), int(found.count)
    ([2.0, 3.0, inf], [0, 1, 3], [0, 2, 3], 2)
    """
    graph = as_graph(G, "k_shortest_paths", ())
    if weighted:
        graph = with_real_weights(graph, "k_shortest_paths")
    if not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"`k` must be a positive integer; got {k!r}.")
    source = jnp.asarray(check_vertex(source, graph.n, "source"))
    target = jnp.asarray(check_vertex(target, graph.n, "target"))
    if weighted:
        check_weights(graph, infinite=True)
    A = sorted_csr(with_lengths(graph).out)
    if weighted and not is_concrete(A.data, A.indptr):
        A = A.with_data(jnp.where(A.data < 0, infinity(A.dtype), A.data))
    if not weighted:
        A = dataclasses.replace(A, data=jnp.ones(A.nse, A.dtype))
    found = op(A, source, target, k=int(k), backend=backend, method=method)[:4]
    if jnp.issubdtype(A.dtype, jnp.floating):
        return ShortestPaths._make((*found, jnp.bool_(False)))
    return ShortestPaths._make((*found, one_program(_left_out, A, found[3], k=int(k))))


def _left_out(A: CSR, count: Array, *, k: int) -> Array:
    """The field `overflow` for integers: a path has one edge out of a vertex at most."""
    most = jnp.zeros(A.shape[0], A.dtype).at[A.rowcol()[0]].max(A.data, mode="drop")
    return (count < k) & (clamped_sum(most) == infinity(most.dtype))


def _types(A, source, target, *, k):
    each, number = typed(jnp.int32, k, A.shape[0]), typed(jnp.int32)
    return typed(A.dtype, k), each, typed(jnp.int32, k), number, each


def _tangent(primals, tangents, result, *, k):
    """The lengths follow the weights of the edges, which are in the slots of the result."""
    return total(tangents[0].data, result[4]), *[None] * 4


# The fields of the result but for `overflow`, and (k, n) the slots of the edges of the paths.
op = Operation("k_shortest_paths", _tangent, types=_types)


@op.register("native", backend="cpu", refuse=lambda A, s, t, **_: refuse_tree(A, A.data, s))
def _native(A: CSR, source: Array, target: Array, *, k: int) -> tuple[Array, ...]:
    """A search visits few vertices, in C++."""
    operands = A.indptr, A.indices, A.data, source, target
    return bind.call("k_shortest_paths", _types(A, source, target, k=k), *operands)


op.register("searches")(searches)
