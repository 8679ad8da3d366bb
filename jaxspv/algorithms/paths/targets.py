"""Paths between given vertices, and between all: reachability, A*, all pairs."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.eager.arrays import array_of
from ..._core.eager.programs import one_program
from ..._core.pytree import is_concrete, result_tuple
from ...graph import Graph, as_graph
from ...shapes import Bool, Count, Int, Matrix, Num, Vector
from ...until import reached
from ..bfs.api import bfs
from ..common.edges import endpoints_of
from ..common.sources import check_vertex, path_to
from ..common.weights import with_real_weights
from ..sssp.api import sssp


@result_tuple
class ShortestPath(NamedTuple):
    """The result of `astar`.

    Attributes:
        distance: sum of the weights of a shortest path; inf where the target is unreached.
        parents: (n,) int32, the vertex before on a shortest path from the source; -1 where nothing
            is settled yet.
        settled: int32, vertices whose distance was found on the way.
    """

    distance: Num[Array, ""]
    parents: Int[Array, " n"]
    settled: Int[Array, ""]

    def path_to(self, target: Count) -> Int[np.ndarray, " k"]:
        """Vertices of the path from the source to `target`, both included; empty: unreached."""
        return path_to(self.parents, target)


@result_tuple
class AllPairs(NamedTuple):
    """The result of `all_pairs_shortest_path_length`.

    Attributes:
        lengths: (n, n), `lengths[i, j]` that of a shortest path i -> j; without one -1, weighted:
            inf, or the largest integer.
        converged: bool; False: a cycle is negative (an eager call raises then).
        overflow: bool; a sum of integers did not fit their dtype, and was clamped.
        status: int32, 0 unless a kernel gave up; see `jaxspv.check`.
    """

    lengths: Num[Array, "n n"]
    converged: Bool[Array, ""]
    overflow: Bool[Array, ""]
    status: Int[Array, ""]


def has_path(G: Matrix, source: Count, target: Count) -> Bool[Array, ""]:
    """Whether edges lead from `source` to `target`; a vertex leads to itself.

    Args:
        G: a `Graph` from `prepare(A, for_="bfs")` or a square sparse matrix, A[i, j] the edge
            i -> j.
        source, target: vertices.

    Returns:
        A bool scalar.

    Raises:
        TypeError: G is no graph, a vertex no integer.
        ValueError: G is not square, a concrete vertex is out of range.

    Cost: that of a search that ends at the target.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1], [1, 2], shape=(3, 3))
    >>> bool(jsp.has_path(A, 0, 2)), bool(jsp.has_path(A, 2, 0))
    (True, False)
    """
    graph = as_graph(G, "has_path", ("bfs",))
    n = graph.n
    source, target = check_vertex(source, n, "source"), check_vertex(target, n, "target")
    levels = bfs(graph, source, until=reached(target), parents=False).levels
    return one_program(_is_reached, levels, target)


def _is_reached(levels: Array, target: Array) -> Array:
    return levels.at[target].get(mode="fill", fill_value=-1) >= 0


def astar(G: Matrix, source: Count, target: Count, heuristic: Vector) -> ShortestPath:
    """A shortest path by weights to one target, led by a lower bound on what is left.

    Searches with weights `w(u, v) + h(v) - h(u)`, whose shortest paths are the same, until the
    target is settled: vertices that lead away from it are not looked at.

    Args:
        G: a `Graph` or a square sparse matrix of weights >= 0, A[i, j] the edge i -> j.
        source, target: vertices.
        heuristic: (n,) h(v), at most the distance of the target from v, inf where none leads
            there, and consistent: `h(u) <= w(u, v) + h(v)` for every edge.

    Returns:
        `ShortestPath(distance, parents, settled)`, float32 or the wider dtype of the weights.

    Raises:
        TypeError: G is no graph, a vertex no integer.
        ValueError: G is not square, a concrete vertex is out of range, the heuristic has a wrong
            shape or is not consistent (traced: the distance is NaN).

    Cost: that of `sssp` until the target.

    Source: Hart, Nilsson, Raphael, "A formal basis for the heuristic determination of minimum cost
    paths", IEEE Transactions on Systems Science and Cybernetics 4, 1968.

    >>> import jax.numpy as jnp, jaxspv as jsp
    >>> A = jsp.from_edges([0, 0, 1, 2], [1, 2, 3, 3], [1.0, 5.0, 1.0, 1.0], shape=(4, 4))
    >>> found = jsp.astar(A, 0, 3, jnp.asarray([2.0, 1.0, 1.0, 0.0]))
    >>> float(found.distance), found.path_to(3).tolist()
    (2.0, [0, 1, 3])
    """
    graph = with_real_weights(as_graph(G, "astar", ()), "astar")
    n = graph.n
    source, target = check_vertex(source, n, "source"), check_vertex(target, n, "target")
    dtype = jnp.promote_types(graph.dtype, jnp.float32)
    h = array_of("heuristic", heuristic).astype(dtype)
    if h.shape != (n,):
        raise ValueError(f"`heuristic` must have shape ({n},); got {h.shape}.")
    reduced, lengths, falls = one_program(_reduced, graph, h)
    if is_concrete(falls) and falls:
        least = float(np.asarray(reduced).min(initial=0))
        raise ValueError(f"`heuristic` must not fall by more than a weight; by {-least} it does.")
    bare = Graph(dataclasses.replace(graph.out, data=lengths))  # new weights have no layouts
    found = sssp(bare, source, until=reached(target))
    assert found.parents is not None
    numbers = one_program(_led, found.distances, h, source, target, falls)
    return ShortestPath(numbers[0], found.parents, numbers[1])


def _reduced(graph: Graph, h: Array) -> tuple[Array, Array, Array]:
    """The reduced weights; the same with 0 where rounding makes them negative, of the same
    gradient; whether some are too low for rounding."""
    tail, head = endpoints_of(graph)
    before, after = (h.at[v].get(mode="clip") for v in (tail, head))
    data = graph.data.astype(h.dtype)
    shut = (data == jnp.inf) | (after == jnp.inf)
    reduced = jnp.where(shut, jnp.inf, data + (after - before))
    reduced = jnp.where(tail < graph.n, reduced, 0)
    highest = jnp.max(jnp.abs(h), initial=1, where=jnp.isfinite(h))
    falls = jnp.any(reduced < -1e-4 * highest)
    return reduced, reduced - lax.stop_gradient(jnp.minimum(reduced, 0)), falls


def _led(
    distances: Array, h: Array, source: Array, target: Array, falls: Array
) -> tuple[Array, Array]:
    """The distance of the target by the weights of the graph; how many vertices are settled."""
    far = distances.at[target].get(mode="fill", fill_value=jnp.inf)
    shift = h.at[source].get(mode="clip") - h.at[target].get(mode="clip")
    far = jnp.where(falls, jnp.nan, far + shift)  # traced: a concrete one is refused
    return far, jnp.sum(jnp.isfinite(distances), dtype=jnp.int32)


def all_pairs_shortest_path_length(G: Matrix, *, weighted: bool = False) -> AllPairs:
    """`lengths[i, j]`: the length of a shortest path i -> j.

    Args:
        G: a `Graph` from `prepare(A, for_=("bfs", "sssp"))` or a square sparse matrix, A[i, j] the
            edge i -> j.
        weighted: whether lengths are sums of weights, else numbers of edges.

    Returns:
        `AllPairs(lengths, converged, overflow, status)`: int32, -1 where there is no path;
        weighted: in the dtype of the weights (booleans count as int32 ones), and where there is no
        path inf, or the largest integer, which a sum that overflows is clamped to as well.

    Raises:
        TypeError, ValueError: as `bfs` and `sssp`.

    Cost: n searches, 32 together where they count edges; n^2 numbers.

    >>> import jaxspv as jsp
    >>> jsp.all_pairs_shortest_path_length(jsp.from_edges([0], [1], shape=(2, 2))).lengths.tolist()
    [[0, 1], [-1, 0]]
    """
    graph = as_graph(G, "all_pairs_shortest_path_length", ("bfs", "sssp"))
    every: Any = np.arange(graph.n, dtype=np.int32)
    if weighted:
        with_real_weights(graph, "all_pairs_shortest_path_length")
        far = sssp(graph, every, parents=False)
        lengths, flags = far.distances, (jnp.all(far.converged), jnp.any(far.overflow))
    else:
        far = bfs(graph, every, parents=False)
        lengths, flags = far.levels, (jnp.bool_(True), jnp.bool_(False))
    return AllPairs(lengths, *flags, jnp.max(far.status, initial=0))
