"""Bipartitions: whether a graph is bipartite, and the side of each vertex."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ..._core.eager.programs import one_program
from ..._core.pytree import result_tuple
from ...formats import CSR
from ...graph import Graph, as_graph
from ...shapes import Bool, Int, Matrix
from ..common.edges import without_ghosts
from ..components import connected_components


@result_tuple
class Bipartition(NamedTuple):
    """The result of `bipartition`.

    Attributes:
        bipartite: bool, whether every edge joins the two sides.
        sides: (n,) int32, 0 for the smallest vertex of each component and for all at an even
            distance, 1 for the rest; -1 in components with a cycle of odd length, and for ghosts.
    """

    bipartite: Bool[Array, ""]
    sides: Int[Array, " n"]


def bipartition(G: Matrix) -> Bipartition:
    """The two sides of each component, edges taken in either direction.

    In the graph of two copies v, v' of every vertex, with edges u - v' and u' - v for each edge
    u - v, a component with a cycle of odd length stays one; any other falls into two, one side of
    it with the copies of the other.

    Args:
        G: a `Graph` or a square sparse matrix; values do not matter.

    Returns:
        `Bipartition(bipartite, sides)`.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square.

    Cost: that of `connected_components` of a graph of twice the size.

    Source: the bipartite double cover, e.g. Brouwer, Haemers, "Spectra of graphs", 2012, section
    1.4.6.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 3], [1, 2, 3], shape=(4, 4))
    >>> jsp.bipartition(A).sides.tolist()
    [0, 1, 0, -1]
    """
    return one_program(_bipartition, as_graph(G, "bipartition", ()))


def is_bipartite(G: Matrix) -> Bool[Array, ""]:
    """Whether the vertices fall into two sides such that every edge joins both.

    Args:
        G: a `Graph` or a square sparse matrix; values do not matter.

    Returns:
        A bool scalar.

    Raises:
        TypeError, ValueError: as `bipartition`.

    >>> import jaxspv as jsp
    >>> bool(jsp.is_bipartite(jsp.from_edges([0, 1, 2], [1, 2, 0], shape=(3, 3))))
    False
    """
    return bipartition(G).bipartite


def _bipartition(graph: Graph) -> Bipartition:
    n, A = graph.n, graph.out
    labels = connected_components(_double_cover(A)).labels
    mine, copy = labels[:n], labels[n:]
    sides = jnp.where(mine == copy, -1, (copy < mine).astype(jnp.int32))
    odd = without_ghosts(graph, mine == copy, False)
    return Bipartition(~jnp.any(odd), without_ghosts(graph, sides, -1))


def _double_cover(A: CSR) -> CSR:
    """Edges u -> v + n and u + n -> v, the second half behind the first without a gap."""
    n, nse, count = A.shape[0], A.nse, A.count
    slot = jnp.arange(nse, dtype=jnp.int32)
    valid = slot < count
    indices = jnp.full(2 * nse, 2 * n, jnp.int32)
    for place, column in ((slot, A.indices + n), (slot + count, A.indices)):
        indices = indices.at[jnp.where(valid, place, 2 * nse)].set(column, mode="drop")
    indptr = jnp.concatenate([A.indptr[:-1], A.indptr + count])
    ones = jnp.ones(2 * nse, bool)
    return CSR(ones, indices, indptr, A.overflow, (2 * n, 2 * n), A.sorted, A.unique)
