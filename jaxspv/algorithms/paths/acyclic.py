"""Acyclic graphs: topological order, generations, transitive reduction."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.eager.programs import one_program
from ..._core.loops import while_going
from ..._core.operation import Operation, typed
from ..._core.platforms import Backend
from ..._core.pytree import is_concrete, result_tuple
from ...formats import CSR
from ...graph import Graph, as_graph
from ...native import bind
from ...shapes import Bool, Int, Matrix
from ..bfs.api import many as bfs_of_sources
from ..common.edges import endpoints_of, kept, without_ghosts


@result_tuple
class TopologicalOrder(NamedTuple):
    """The result of `topological_sort`.

    Attributes:
        order: (n,) int32, the vertices, each behind all that have an edge to it; n where vertices
            are missing, which are on cycles or behind them, and for ghosts of `pad`.
        generations: (n,) int32, the edges of the longest path to each; -1 for those missing.
        acyclic: bool, whether none is missing.
    """

    order: Int[Array, " n"]
    generations: Int[Array, " n"]
    acyclic: Bool[Array, ""]


def topological_sort(
    G: Matrix, *, backend: Backend | None = None, method: str | None = None
) -> TopologicalOrder:
    """An order in which every edge leads forward: by generation, then by number.

    Args:
        G: a `Graph` or a square sparse matrix, A[i, j] the edge i -> j; values do not matter.
        backend: "cpu", "xla" or None.
        method: "native" (C++, on a CPU), "generations" (elsewhere), or None for these.

    Returns:
        `TopologicalOrder(order, generations, acyclic)`.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: O(n log n + edges); "generations" a pass over the edges for each of them.

    Source: Kahn, "Topological sorting of large networks", Communications of the ACM 5, 1962.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([2, 0], [0, 1], shape=(3, 3))
    >>> jsp.topological_sort(A).order.tolist()
    [2, 0, 1]
    """
    return op(as_graph(G, "topological_sort", ()), backend=backend, method=method)


def is_directed_acyclic_graph(
    G: Matrix, *, backend: Backend | None = None, method: str | None = None
) -> Bool[Array, ""]:
    """Whether no path leads from a vertex back to it; a self loop is such a path.

    Args:
        G, backend, method: as for `topological_sort`.

    Returns:
        A bool scalar.

    Raises:
        TypeError, ValueError, NotImplementedError: as `topological_sort`.

    >>> import jaxspv as jsp
    >>> bool(jsp.is_directed_acyclic_graph(jsp.from_edges([2, 0], [0, 2], shape=(3, 3))))
    False
    """
    graph = as_graph(G, "is_directed_acyclic_graph", ())
    return op(graph, backend=backend, method=method).acyclic


def _types(graph):
    vector = typed(jnp.int32, graph.n)
    return TopologicalOrder(vector, vector, typed(jnp.bool_))


op = Operation("topological_sort", types=_types)


@op.register("native", backend="cpu", refuse=bind.refused)
def _native(graph: Graph) -> TopologicalOrder:
    """A vertex is queued when its last in-edge is removed (Kahn), in C++."""
    exists = jnp.zeros(0, bool) if graph.exists is None else graph.exists
    operands = graph.out.indptr, graph.out.indices, exists
    return TopologicalOrder(*bind.call("topological_order", tuple(_types(graph)), *operands))


@op.register("generations")
def _generations(graph: Graph) -> TopologicalOrder:
    """A round removes all vertices without in-edges."""
    n = graph.n
    tail, head = endpoints_of(graph)

    def round_(state):
        generations, missing, k, _ = state
        now = (missing == 0) & (generations < 0)
        gone = now.at[tail].get(mode="fill", fill_value=False).astype(jnp.int32)
        missing = missing.at[head].add(-gone, mode="drop")
        return jnp.where(now, k, generations), missing, k + 1, jnp.any(now)

    start = (jnp.full(n, -1, jnp.int32), graph.in_degrees, jnp.int32(0), jnp.asarray(n > 0))
    generations = while_going(round_, start)[0]
    acyclic = jnp.all(generations >= 0)
    generations = without_ghosts(graph, generations, -1)
    valid = generations >= 0
    order = jnp.argsort(jnp.where(valid, generations, n), stable=True).astype(jnp.int32)
    order = jnp.where(jnp.arange(n) < jnp.sum(valid, dtype=jnp.int32), order, n)
    return TopologicalOrder(order, generations, acyclic)


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
