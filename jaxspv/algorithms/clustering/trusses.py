"""Trusses: subgraphs whose edges all lie in many triangles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import lax

from ..._core.compilation import one_program
from ...formats import CSR
from ...graph import Graph
from ...masks import structure
from ...operators import identity
from ...ops.apply import apply
from ...ops.mxm.api import mxm
from ...semirings import plus_pair
from ..common.edges import ends_of, kept
from ..common.undirected import undirected

if TYPE_CHECKING:
    from ...shapes import Count, Matrix


def k_truss(G: Matrix, k: Count) -> CSR:
    """The largest subgraph whose edges each lie in k - 2 triangles of it or more.

    `C<A> = A plus_pair A` counts the triangles of every edge; those of fewer than k - 2 go, until
    none does. Self loops are ignored.

    Args:
        G: a `Graph` or a square sparse matrix with a symmetric pattern.
        k: 2 or more, maybe traced; the 2-truss is all edges.

    Returns:
        A CSR of the entries of G that are left, in its capacity.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or its pattern, where it is concrete, is not symmetric.

    Cost: a masked product of the adjacency with itself a round; rounds as long as edges go.

    Source: Cohen, "Trusses: cohesive subgraphs for social network analysis", 2008; Davis, "Graph
    algorithms via SuiteSparse:GraphBLAS: triangle counting and k-truss", HPEC 2018.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2], shape=(4, 4))
    >>> int(jsp.k_truss(A, 3).count)
    6
    """
    return one_program(_k_truss, undirected(G, "k_truss"), jnp.asarray(k, jnp.int32))


def _k_truss(graph: Graph, k: Any) -> CSR:
    tail, head = ends_of(graph)
    whole = kept(graph.out, (tail < graph.n) & (tail != head))
    if graph.nse == 0:
        return whole
    start = whole.with_data(jnp.zeros(graph.nse, jnp.int32))

    def round_(state):
        A, _, _ = state
        C = mxm(A, A, plus_pair, mask=structure(A), nse=A.nse)
        there = jnp.arange(C.nse) < C.count
        C = kept(C, there & (C.data >= k - 2))
        return C, A.count, C.overflow

    first = (start, jnp.int32(-1), start.overflow)
    found = lax.while_loop(lambda s: (s[0].count != s[1]) & (k > 2), round_, first)[0]
    return apply(whole, identity, mask=structure(found), nse=graph.nse)
