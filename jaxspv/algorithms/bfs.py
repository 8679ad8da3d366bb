"""Breadth-first search: levels and parents from one source or several."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..dispatch import Backend, Op, Plan
from ..graph import Graph, as_graph, register_layout
from ..until import Until, check_until
from ._bfs_xla import bfs_layout, bfs_xla
from ._sources import check_source, over_sources

UNTIL = ("reached", "unchanged", "max_iterations")


class BFS(NamedTuple):
    """What `bfs` found; a leading axis for several sources.

    Attributes:
        levels: (n,) int32, hops from the source; -1 where unreached.
        parents: (n,) int32, the vertex before on a shortest path; the source is its own parent, -1
            where unreached. None if not asked for.
        num_levels: int32, levels that hold a vertex: the largest level + 1, 0 if nothing is reached.
        status: int32, 0 unless a kernel gave up; see `jaxspv.check`.
    """

    levels: Array
    parents: Array | None
    num_levels: Array
    status: Array


def bfs(
    G: Any,
    source: Any,
    *,
    until: Until | None = None,
    parents: bool = True,
    deterministic: bool = False,
    backend: Backend | None = None,
    method: str | None = None,
) -> BFS:
    """Breadth-first search along the edges i -> j stored as A[i, j], whatever their values.

    `levels[v] = min over paths source -> v of the number of edges`.

    Args:
        G: a `Graph` from `prepare(A, for_="bfs")`, or a square sparse matrix. Only a Graph whose
            in-edges are known is searched in both directions.
        source: vertex, or an array of vertices (a leading axis in the result).
        until: stop after the level in which it holds: `reached(node)`, `max_iterations(k)` (levels),
            `unchanged()`, joined by `|` and `&`; deeper vertices stay unreached. None: exhaust.
        parents: whether to compute them.
        deterministic: of several possible parents take the smallest id, on every backend.
        backend: "xla", "pallas", or None for the fastest that accepts the call.
        method: name of an implementation, see `explain`.

    Returns:
        `BFS(levels, parents, num_levels, status)`.

    Raises:
        TypeError: G is no graph, `source` no integer.
        ValueError: a concrete source is out of range (under jit: everything unreached); `until` holds
            a condition without meaning here.

    Cost: O(n + edges) work in all; each level costs in proportion to the edges of its frontier, or
    of the unvisited vertices where that is less.

    Source: Beamer, Asanovic, Patterson, "Direction-optimizing breadth-first search", SC 2012.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1], [1, 2, 3], shape=(5, 5))
    >>> bfs(A, 0).levels.tolist()
    [0, 1, 2, 2, -1]
    """
    graph = as_graph(G, "bfs")
    source = check_source(source, graph.n)
    check_until(until, UNTIL, "bfs")

    def one(s):
        return op(
            graph, s, until, parents=parents, deterministic=deterministic,
            backend=backend, method=method,
        )

    return over_sources(one, source)


def explain_bfs(
    G: Any, source: Any = 0, *, backend: Backend | None = None, method: str | None = None, **_: Any
) -> Plan:
    """The plan of `bfs` on this graph."""
    graph = as_graph(G, "bfs")
    notes = []
    if "bfs" not in graph.layouts:
        notes.append("`prepare(A, for_='bfs')` would add probe tables, and in-edges to pull from.")
    return op.plan(
        graph, jnp.int32(0), None, parents=True, deterministic=False,
        backend=backend, method=method, notes=tuple(notes),
    )


@register_layout("bfs")
def _layout(graph: Graph) -> Any:
    inn = graph.inn
    assert inn is not None
    return bfs_layout(np.asarray(inn.indptr), np.asarray(inn.indices))


op = Op("bfs")


@op.register("direction_optimising")
def _direction_optimising(graph, source, until, *, parents, deterministic):
    inn = graph.inn
    levels, tree, num_levels = bfs_xla(
        graph.out.indptr,
        graph.out.indices,
        source,
        in_indptr=None if graph.symmetric or inn is None else inn.indptr,
        in_indices=None if graph.symmetric or inn is None else inn.indices,
        symmetric=graph.symmetric,
        stop=None if until is None else _stop(until),
        parents=parents,
        deterministic=deterministic,
        layout=graph.layouts.get("bfs"),
    )
    return BFS(levels, tree, num_levels, jnp.int32(0))


def _stop(until):
    def stop(level, levels, frontier_size):
        reached = [levels[jnp.asarray(node)] >= 0 for node in until.targets()]
        return until.holds(iteration=level, reached=reached, unchanged=frontier_size == 0)

    return stop
