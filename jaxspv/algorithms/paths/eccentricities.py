"""Eccentricity, diameter, radius, center: how far the farthest vertex is."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.eager.arrays import single_numbers
from ..._core.eager.programs import one_program
from ..._core.operation import Operation, typed
from ..._core.platforms import Backend
from ..._core.pytree import result_tuple
from ...graph import Graph, as_graph
from ...native import bind
from ...shapes import Bool, Count, Int, Matrix, Sources
from ...until import iteration_limit
from ..bfs.api import bfs
from ..bfs.api import many as bfs_of_sources
from ..bfs.xla import in_words
from ..common.edges import undirected, vertices_of
from ..common.sources import check_source, check_vertex


@result_tuple
class Eccentricities(NamedTuple):
    """The result of `eccentricity`.

    Attributes:
        values: (k,) int32, the largest number of edges from each vertex to one it reaches.
        radius: int32, the least of them.
        diameter: int32, the largest of them.
        connected: bool, whether each vertex asked for reaches all others.
    """

    values: Int[Array, " k"]
    radius: Int[Array, ""]
    diameter: Int[Array, ""]
    connected: Bool[Array, ""]


@result_tuple
class Diameter(NamedTuple):
    """The result of `diameter`.

    Attributes:
        diameter: int32, the largest eccentricity in the component of the vertex begun with.
        searches: int32, how many it took.
        connected: bool, whether that component is all of the graph.
    """

    diameter: Int[Array, ""]
    searches: Int[Array, ""]
    connected: Bool[Array, ""]


def eccentricity(
    G: Matrix,
    vertices: Sources | None = None,
    *,
    backend: Backend | None = None,
    method: str | None = None,
) -> Eccentricities:
    """`e(v) = max over u that v reaches of d(v, u)`, by searches from 32 vertices together.

    Args:
        G: a `Graph` from `prepare(A, for_="bfs")` or a square sparse matrix, A[i, j] the edge
            i -> j.
        vertices: (k,) those asked for; None: all. Ghosts of `pad`, and traced ones out of range,
            have -1 and take no part in the rest.
        backend: "cpu", "xla" or None.
        method: "native" (in C++, on a CPU), "words" (as `bfs` of several sources, elsewhere), or
            None for these.

    Returns:
        `Eccentricities(values, radius, diameter, connected)`. Vertices with `values == radius` are
        the center, those with `values == diameter` the periphery.

    Raises:
        TypeError: G is no graph, `vertices` are no integers.
        ValueError: G is not square, a concrete vertex is out of range.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: a search for every 32 vertices.

    Source: Hage, Harary, "Eccentricity and centrality in networks", Social Networks 17, 1995.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2], [1, 0, 2, 1], shape=(3, 3))
    >>> jsp.eccentricity(A).values.tolist()
    [2, 1, 2]
    """
    graph = as_graph(G, "eccentricity", ("bfs",))
    n = graph.n
    asked = (
        np.arange(n, dtype=np.int32) if vertices is None else check_source(vertices, n, "vertices")
    )
    asked = jnp.atleast_1d(jnp.asarray(asked))
    return one_program(_eccentricity, graph, asked, backend=backend, method=method)


def _eccentricity(graph: Graph, asked: Array, **how: Any) -> Eccentricities:
    values, reached = farthest(graph, asked, **how)
    count = vertices_of(graph)
    real = asked < count
    values = jnp.where(real, values, -1)
    return Eccentricities(
        values,
        jnp.maximum(jnp.min(jnp.where(real, values, graph.n), initial=graph.n), 0),
        jnp.max(values, initial=0),
        jnp.all(~real | (reached == count)),
    )


def _types(graph, vertices):
    each = typed(jnp.int32, vertices.shape[0])
    return each, each


farthest = Operation("eccentricity", types=_types)


@farthest.register("native", backend="cpu", refuse=bind.refused)
def _in_cpp(graph: Graph, vertices: Array) -> tuple[Array, Array]:
    A = graph.out
    return bind.call("eccentricities", _types(graph, vertices), A.indptr, A.indices, vertices)


@farthest.register("words")
def _words(graph: Graph, vertices: Array) -> tuple[Array, Array]:
    """The largest level and the vertices reached of each source, a word of them after the other."""

    def search(sources):
        levels = bfs_of_sources(graph, sources, parents=False, deterministic=False).levels
        return jnp.max(levels, axis=1, initial=0), jnp.sum(levels >= 0, axis=1, dtype=jnp.int32)

    return in_words(search, vertices, graph.n)


def diameter(G: Matrix, start: Count | None = None, *, max_searches: int | None = None) -> Diameter:
    """The largest distance in an undirected graph, by bounds that searches draw closer.

    A search from v with eccentricity e puts that of u at `max(e - d, d)` or above, d the distance
    of u. A vertex is open while its upper bound is above all distances found: two vertices that are
    farther apart are both open. With o the largest distance of an open vertex from v, none is
    farther from u than `o + d`: the upper bound. Searches start alternately from the vertex of the
    largest upper bound and from a central one (the smallest lower bound, then the largest degree),
    more often from the kind that closes more, until no vertex is open.

    Args:
        G: a `Graph` from `prepare(A, for_="bfs")` or a square sparse matrix with a symmetric
            pattern.
        start: vertex whose component is looked at; None: one of largest degree.
        max_searches: bound on them; None: n.

    Returns:
        `Diameter(diameter, searches, connected)`; a lower bound where `max_searches` ended it.

    Raises:
        TypeError: G is no graph, `start` or `max_searches` no integer.
        ValueError: G is not square, its pattern, where it is concrete, is not symmetric, or a
            concrete start is out of range.

    Cost: a search each; some tens on most graphs, a thousand where many vertices are as far from
    the center as the diameter allows, n at worst.

    Source: Takes, Kosters, "Determining the diameter of small world networks", CIKM 2011; bounds of
    pairs: Crescenzi et al., "On computing the diameter of real-world undirected graphs",
    Theoretical Computer Science 514, 2013.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2], [1, 0, 2, 1], shape=(3, 3))
    >>> int(jsp.diameter(A).diameter)
    2
    """
    undirected(G, "diameter")
    graph = as_graph(G, "diameter", ("bfs",))
    if start is not None:
        start = jnp.asarray(check_vertex(start, graph.n, "start"))
    limit = graph.n if max_searches is None else max_searches
    single_numbers(max_searches=limit)
    limit = iteration_limit("max_searches", limit)
    return one_program(_diameter, graph, start, jnp.asarray(limit, jnp.int32))


def _diameter(graph: Graph, start: Array | None, limit: Array) -> Diameter:
    found, searches, reached = widest(graph, start, limit)
    return Diameter(found, searches, reached == vertices_of(graph))


def _numbers(*_: Any) -> Any:
    return (typed(jnp.int32),) * 3


widest = Operation("diameter", types=_numbers)


@widest.register("native", backend="cpu", refuse=bind.refused)
def _widest_in_cpp(graph: Graph, start: Array | None, limit: Array) -> tuple[Array, ...]:
    A, given = graph.out, start is not None
    first = start if given else np.int32(0)
    return bind.call("diameter", _numbers(), A.indptr, A.indices, first, limit, given=given)


class _Search(NamedTuple):
    low: Array  # bounds of each vertex: of its eccentricity, and of its distance from an open one
    high: Array
    searched: Array  # bool
    most: Array  # the largest distance found
    reached: Array  # vertices
    start: Array
    count: Array  # searches
    kind: Array  # of the search from `start`: 0 where the upper bound is largest, 1 central
    closed: Array  # (2,) vertices that the last search of either kind closed
    left: Array  # open vertices


@widest.register("bounds")
def _by_bounds(graph: Graph, start: Array | None, limit: Array) -> tuple[Array, ...]:
    """Diameter, searches, and the vertices that the last of them reached."""
    n = graph.n
    if n == 0:
        return (jnp.int32(0),) * 3
    if start is None:
        start = jnp.argmax(graph.out_degrees).astype(jnp.int32)

    degrees = graph.out_degrees

    def search(s: _Search) -> _Search:
        levels = bfs(graph, s.start, parents=False).levels
        reached, searched = levels >= 0, s.searched.at[s.start].set(True)
        far = jnp.max(levels, initial=0)
        low = jnp.where(reached, jnp.maximum(s.low, jnp.maximum(far - levels, levels)), 0)
        most = jnp.maximum(s.most, far)
        farthest_open = jnp.max(jnp.where(s.high > most, levels, 0))
        high = jnp.where(reached, jnp.minimum(s.high, farthest_open + levels), -1)
        left = jnp.sum(high > most, dtype=jnp.int32)
        closed = s.closed.at[s.kind].set(s.left - left)
        count, kind = s.count + 1, s.count % 2
        poor = (count > 8) & (s.count % 8 > 1) & (closed[kind] < closed[1 - kind])
        kind = jnp.where(poor, 1 - kind, kind)
        center = reached & ~searched
        center = center & (low == jnp.min(jnp.where(center, low, n)))
        central = jnp.argmax(jnp.where(center, degrees, -1))
        start = jnp.where(kind == 1, central, jnp.argmax(high)).astype(jnp.int32)
        reached = jnp.sum(reached, dtype=jnp.int32)
        return _Search(low, high, searched, most, reached, start, count, kind, closed, left)

    zeros, none = jnp.zeros(n, jnp.int32), jnp.int32(0)
    unsearched, closed = jnp.zeros(n, bool), jnp.full(2, n, jnp.int32)
    first = _Search(
        zeros, zeros + 2 * n, unsearched, none, none, start, none, none, closed, jnp.int32(n)
    )
    found = lax.while_loop(lambda s: (s.left > 0) & (s.count < limit), search, first)
    return found.most, found.count, found.reached
