"""Strongly connected components: vertices that reach each other, named by the smallest."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from .._core.loops import while_going
from .._core.operation import Operation, typed
from .._core.platforms import Backend
from .._core.pytree import result_tuple
from ..graph import Graph, as_graph
from ..native import bind
from ..shapes import Int, Matrix
from .common.edges import by_vertex, endpoints_of
from .common.status import finished
from .components import connected_components, named_components


@result_tuple
class StrongComponents(NamedTuple):
    """The result of `strongly_connected_components`.

    Attributes:
        labels: (n,) int32, the smallest vertex of the component of each vertex.
        count: int32, the number of components.
        status: int32, 0 unless a kernel gave up; see `jaxspv.check`.
    """

    labels: Int[Array, " n"]
    count: Int[Array, ""]
    status: Int[Array, ""]


def strongly_connected_components(
    G: Matrix, *, backend: Backend | None = None, method: str | None = None
) -> StrongComponents:
    """The strong components: u and v share one if there are paths u -> v and v -> u.

    Args:
        G: a `Graph` or a square sparse matrix, A[i, j] the edge i -> j; values do not matter.
        backend: "pallas", "cpu", "xla" or None.
        method: "native" (one depth-first search in C++, on a CPU), "signatures" (one launch on a
            GPU, rounds over all edges elsewhere), or None for the fastest.

    Returns:
        `StrongComponents(labels, count, status)`; ghosts of `pad` have label -1.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: "native" O(n + edges); "signatures" an edge for each time that the vertex at its end
    hears of a smaller one, and a sort of the edges where `prepare` has not made the in-edges;
    in rounds a pass over the edges for each step of the longest shortest path, in few rounds.

    Source: Pearce, "A space-efficient algorithm for finding strongly connected components",
    Information Processing Letters 116, 2016; Alabandi, Sands, Biros, Burtscher, "A GPU algorithm
    for detecting strongly connected components", SC 2023 (signatures); trimming: McLendon,
    Hendrickson, Plimpton, Rauchwerger, "Finding strongly connected components in distributed
    graphs", Journal of Parallel and Distributed Computing 65, 2005.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 2, 2], [1, 2, 1, 3], shape=(4, 4))
    >>> jsp.strongly_connected_components(A).labels.tolist()
    [0, 1, 1, 3]
    """
    graph = as_graph(G, "strongly_connected_components", ())
    found = op(graph, backend=backend, method=method)
    return finished(found, "strongly_connected_components")


op = Operation("strongly_connected_components", types=by_vertex(StrongComponents, *[jnp.int32] * 3))
MOST_VERTICES = 2**26 - 2  # that the kernel's order can number


def _not_in_one_launch(graph) -> str | None:
    if graph.symmetric:
        return "of a symmetric graph they are the components, which take less"
    if graph.n == 0 or graph.nse == 0:
        return "there is nothing to join"
    if graph.n > MOST_VERTICES or 2 * graph.nse >= 2**31:
        return f"{graph.n} vertices or {graph.nse} edges exceed its int32 places"
    return None


@op.register("signatures", backend="pallas", refuse=_not_in_one_launch)
def _signatures(graph):
    """The component of a pivot, then the others by signatures, in one launch."""
    from pallas_kernels.strong import strong as strong_kernel

    into = _in_edges(graph)
    ends = jnp.concatenate([graph.out.indptr, graph.nse + into[0]])
    degrees = jnp.minimum(graph.out_degrees, jnp.diff(into[0]))
    pivot = jnp.argmax(degrees).astype(jnp.int32)
    heads = jnp.concatenate([graph.out.indices, into[1]])
    labels, status = strong_kernel(ends, heads, pivot)
    return _of(labels, graph, status)


def _in_edges(graph: Graph) -> tuple[Array, Array]:
    """(indptr, indices) of the in-edges; made by a sort where `prepare` has not."""
    if graph.inn is not None:
        return graph.inn.indptr, graph.inn.indices
    tail, head = endpoints_of(graph)
    place, tail = lax.sort((head.astype(jnp.uint32), tail), num_keys=1)
    ends = jnp.searchsorted(place, jnp.arange(graph.n + 1, dtype=jnp.uint32), method="scan")
    return ends.astype(jnp.int32), tail


@op.register("native", backend="cpu", refuse=bind.refused)
def _native(graph):
    """One depth-first search, in C++."""
    types = typed(jnp.int32, graph.n), typed(jnp.int32)
    labels, count = bind.call("strong_components", types, graph.out.indptr, graph.out.indices)
    return _of(labels, graph, jnp.int32(0), count)


@op.register("signatures")
def _by_rounds(graph):
    """Rounds of signatures: the least vertex that reaches each, and the least that it reaches.

    Where both are one vertex, that is the smallest of the component. Edges between vertices of
    different signatures, which join no component, go after each round. If none went, what is joined
    had one signature: of its own least vertex, which all would reach, and be reached by. Of a
    symmetric graph, where every path can be walked back, they are the components.
    """
    if graph.symmetric:
        return StrongComponents(*connected_components(graph))
    n, vertex = graph.n, jnp.arange(graph.n, dtype=jnp.int32)

    def at(values, place):
        return values.at[place].get(mode="fill", fill_value=n)

    def least(ends):
        """The least vertex that reaches each."""

        def turn(state):
            value, _ = state
            new = value.at[ends[1]].min(at(value, ends[0]), mode="drop")
            return new, jnp.any(new != value)

        return while_going(turn, (vertex, jnp.asarray(n > 0)))[0]

    def trim(state):
        """Without the edges of vertices that none leads to, or none from."""
        ends, _ = state
        linked = [jnp.zeros(n, bool).at[end].set(True, mode="drop") for end in ends]
        lone = at(~(linked[0] & linked[1]), ends).any(0)
        return jnp.where(lone, n, ends), jnp.any(lone & (ends[0] < n))

    def round_(state):
        ends, _ = while_going(trim, (state[1], jnp.asarray(n > 0)))
        down, up = least(ends), least(ends[::-1])
        same = [at(signature, ends) for signature in (down, up)]
        inside = (same[0][0] == same[0][1]) & (same[1][0] == same[1][1])
        return down, jnp.where(inside, ends, n), jnp.any(down != up)

    start = (vertex, jnp.stack(endpoints_of(graph)), jnp.asarray(n > 0))
    return _of(while_going(round_, start)[0], graph, jnp.int32(0))


def _of(*found: Any) -> StrongComponents:
    return StrongComponents(*named_components(*found))
