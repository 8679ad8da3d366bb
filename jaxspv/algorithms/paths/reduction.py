"""Transitive reduction: the edges of an acyclic graph that no longer path replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core.compilation import one_program
from ..._core.pytree import is_concrete
from ...formats import CSR
from ...graph import Graph, as_graph
from ..bfs.api import many as bfs_of_sources
from ..common.edges import endpoints_of, kept
from .acyclic import is_directed_acyclic_graph

if TYPE_CHECKING:
    from ...shapes import Matrix

SOURCES = 32  # of a search: the bits of a word


def transitive_reduction(G: Matrix) -> CSR:
    """The fewest edges by which the vertices of an acyclic graph reach each other as before.

    The edge s -> v is removed if there is an edge x -> v from another vertex x that s reaches.

    Args:
        G: a `Graph` from `prepare(A, for_="bfs")` or a square sparse matrix without cycles, A[i, j]
            the edge i -> j. If a traced G has cycles, the result is meaningless.

    Returns:
        A CSR of the entries of G that are left, in its capacity.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or has, where it is concrete, a cycle.

    Cost: a search and a pass over the edges for every 32 vertices.

    Source: Aho, Garey, Ullman, "The transitive reduction of a directed graph", SIAM Journal on
    Computing 1, 1972.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 0], [1, 2, 2], shape=(3, 3))
    >>> int(jsp.transitive_reduction(A).count)
    2
    """
    graph = as_graph(G, "transitive_reduction", ("bfs",))
    if is_concrete(graph.out.indices):
        acyclic = is_directed_acyclic_graph(graph)
        if is_concrete(acyclic) and not bool(acyclic):
            raise ValueError("`G` must have no cycle: a transitive reduction is of acyclic graphs.")
    return one_program(_reduction, graph)


def _reduction(graph: Graph) -> CSR:
    n = graph.n
    tail, head = endpoints_of(graph)
    if graph.nse == 0 or n == 0:
        return graph.out
    words = -(-n // SOURCES)
    sources = np.minimum(np.arange(words * SOURCES, dtype=np.int32), n).reshape(words, SOURCES)

    def some(replaced, sources):
        levels = bfs_of_sources(graph, sources, parents=False, deterministic=False).levels
        behind = (levels > 0).T  # (n, 32): what each source reaches, without itself
        start = behind.at[tail].get(mode="fill", fill_value=False)
        # (n, 32): the heads of edges from there
        longer = jnp.zeros(behind.shape, bool).at[head].max(start, mode="drop")
        column = tail - sources[0]
        mine = (column >= 0) & (column < SOURCES) & (tail < n)
        place = (jnp.where(mine, head, n), jnp.where(mine, column, SOURCES))
        return replaced | longer.at[place].get(mode="fill", fill_value=False), None

    replaced, _ = lax.scan(some, jnp.zeros(graph.nse, bool), jnp.asarray(sources))
    return kept(graph.out, (tail < n) & ~replaced)
