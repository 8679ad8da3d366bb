"""Trusses: subgraphs whose edges all lie in many triangles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

from ..._core.compilation import one_program
from ..._core.operation import Operation
from ..._core.platforms import Backend, reaching
from ...algebra.masks import structure
from ...algebra.operators import identity
from ...algebra.semirings import plus_pair
from ...formats import CSR
from ...formats.csr import sorted_csr
from ...graph import Graph
from ...native import bind
from ...ops.apply import apply
from ...ops.products.common.product import joined
from ...ops.products.mxm.api import mxm
from ..common.derivatives import constant
from ..common.edges import endpoints_of, kept
from ..common.undirected import undirected

if TYPE_CHECKING:
    from ...shapes import Count, Matrix


@reaching
def k_truss(
    G: Matrix, k: Count, *, backend: Backend | None = None, method: str | None = None
) -> CSR:
    """The largest subgraph whose edges each lie in k - 2 triangles of it or more.

    `C<A> = A plus_pair A` counts the triangles of every edge; those of fewer than k - 2 go, until
    none does. Self loops are ignored.

    Args:
        G: a `Graph` or a square sparse matrix with a symmetric pattern.
        k: 2 or more, maybe traced; the 2-truss is all edges.
        backend: "cpu", "xla" or None.
        method: "native" (edges one by one in C++, on a CPU), "rounds" (elsewhere), or None.

    Returns:
        A CSR of the entries of G that are left, in its capacity; repeated ones are added up.
        Differentiable in their values.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or its pattern, where it is concrete, is not symmetric.

    Cost: "native" O(edges^1.5 log(degree)) at most; "rounds" a masked product of the adjacency
    with itself a round, rounds as long as edges go.

    Source: Cohen, "Trusses: cohesive subgraphs for social network analysis", 2008; Davis, "Graph
    algorithms via SuiteSparse:GraphBLAS: triangle counting and k-truss", HPEC 2018; peeling: Wang,
    Cheng, "Truss decomposition in massive networks", VLDB 2012.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2], shape=(4, 4))
    >>> int(jsp.k_truss(A, 3).count)
    6
    """
    graph = undirected(G, "k_truss")
    how = {"backend": backend, "method": method}
    return one_program(_k_truss, graph, jnp.asarray(k, jnp.int32), **how)


def _k_truss(graph: Graph, k: Any, *, backend, method) -> CSR:
    tail, head = endpoints_of(graph)
    proper = kept(graph.out, (tail < graph.n) & (tail != head))
    if graph.nse == 0:
        return proper
    once: Any = joined(sorted_csr(proper), plus_pair)
    pattern = once.with_data(jnp.zeros(once.nse, jnp.int32))
    left = op(pattern, k, backend=backend, method=method)
    return apply(once, identity, mask=structure(left), nse=once.nse)  # values with a derivative


op = Operation("k_truss", constant, types=lambda A, k: A)


@op.register("native", backend="cpu", refuse=bind.refused)
def _native(A: CSR, k: Any) -> CSR:
    """Counts the triangles once, then removes edges with too few one after the other, in C++."""
    members = jax.ShapeDtypeStruct((A.nse,), jnp.bool_)
    return kept(A, bind.call("k_truss", members, A.indptr, A.indices, k))


@op.register("rounds")
def _rounds(A: CSR, k: Any) -> CSR:
    """Triangles of all edges counted anew until none has too few."""

    def round_(state):
        B, _, _ = state
        C = mxm(B, B, plus_pair, mask=structure(B), nse=B.nse)
        valid = jnp.arange(C.nse) < C.count
        C = kept(C, valid & (C.data >= k - 2))
        return C, B.count, C.overflow

    first = (A, jnp.int32(-1), A.overflow)
    found = lax.while_loop(lambda s: (s[0].count != s[1]) & (k > 2), round_, first)[0]
    return apply(A, identity, mask=structure(found), nse=A.nse)
