"""Maximal independent sets and greedy colouring in a given order, in parallel rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from ..._core.dispatch import Op
from ..._core.native_loops import each, once, read, write
from ..._core.platforms import Backend
from ..._core.pytree import result_tuple
from ...graph import Graph
from ...ops.mxv.api import mxv
from ...semirings import min_second
from ..common.edges import degrees_without_loops, ends_of, without_values
from ..common.undirected import undirected

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

    from ...shapes import Key, Matrix


@result_tuple
class IndependentSet(NamedTuple):
    """The result of `maximal_independent_set`.

    Attributes:
        members: (n,) bool.
        count: int32, how many.
    """

    members: Bool[Array, " n"]
    count: Int[Array, ""]


@result_tuple
class Coloring(NamedTuple):
    """The result of `greedy_color`.

    Attributes:
        colors: (n,) int32 from 0; -1 for ghosts of `pad`.
        count: int32, how many are used.
    """

    colors: Int[Array, " n"]
    count: Int[Array, ""]


def maximal_independent_set(
    key: Key, G: Matrix, *, backend: Backend | None = None, method: str | None = None
) -> IndependentSet:
    """A set without two neighbours to which no vertex can be added, drawn at random.

    The vertices are put in a random order, and each that has no neighbour in the set before it
    joins: the same set on every backend, where many are decided at once.

    Args:
        key: of `jax.random`.
        G: a `Graph` or a square sparse matrix with a symmetric pattern; self loops are ignored.
        backend: "cpu", "xla" or None.
        method: "greedy" (in order, on a CPU), "rounds" (elsewhere), or None for these.

    Returns:
        `IndependentSet(members, count)`.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or its pattern, where it is concrete, is not symmetric.

    Cost: a pass over the edges a round, O(log n) rounds with high probability.

    Source: Luby, "A simple parallel algorithm for the maximal independent set problem", SIAM
    Journal on Computing 15, 1986; one order for all rounds: Blelloch, Fineman, Shun, "Greedy
    sequential maximal independent set and matching are parallel on average", SPAA 2012; Fischer,
    Noever, "Tight analysis of parallel randomized greedy MIS", SODA 2018.

    >>> import jax, jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2], [1, 0, 2, 1], shape=(3, 3))
    >>> int(jsp.maximal_independent_set(jax.random.key(0), A).count) in (1, 2)
    True
    """
    graph = undirected(G, "maximal_independent_set")
    order = jax.random.permutation(key, graph.n).astype(jnp.int32)
    members = independent(graph, order, backend=backend, method=method)
    if graph.exists is not None:
        members = members & graph.exists
    return IndependentSet(members, jnp.sum(members, dtype=jnp.int32))


def greedy_color(
    G: Any, order: Any = None, *, backend: Backend | None = None, method: str | None = None
) -> Coloring:
    """Colours vertices one after the other, each with the smallest that no neighbour has.

    Args:
        G: a `Graph` or a square sparse matrix with a symmetric pattern; self loops are ignored.
        order: (n,) the vertices as they are coloured; None: by descending degree, the smaller
            number first at ties.
        backend: "cpu", "xla" or None.
        method: "greedy" (in order, on a CPU), "rounds" (all whose neighbours before them have
            colours, elsewhere), or None for these. The colours are the same.

    Returns:
        `Coloring(colors, count)`, at most 1 + the largest degree colours.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or its pattern, where it is concrete, is not symmetric, or
            `order` has a wrong shape.

    Cost: O(n + edges); "rounds" a pass over the edges for each colour and each step of the longest
    chain of neighbours in the order.

    Source: Welsh, Powell, "An upper bound for the chromatic number of a graph", Computer Journal
    10, 1967; Jones, Plassmann, "A parallel graph coloring heuristic", SIAM Journal on Scientific
    Computing 14, 1993.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2], [1, 0, 2, 1], shape=(3, 3))
    >>> jsp.greedy_color(A).colors.tolist()
    [1, 0, 1]
    """
    graph = undirected(G, "greedy_color")
    if order is None:
        order = jnp.argsort(-degrees_without_loops(graph), stable=True)
    order = jnp.asarray(order).astype(jnp.int32)
    if order.shape != (graph.n,):
        raise ValueError(f"`order` must have shape ({graph.n},); got {order.shape}.")
    colors = colored(graph, order, backend=backend, method=method)
    if graph.exists is not None:
        colors = jnp.where(graph.exists, colors, -1)
    return Coloring(colors, jnp.max(colors, initial=-1) + 1)


independent = Op("maximal_independent_set")
colored = Op("greedy_color")


def _place(order: Array) -> Array:
    """(n,) where each vertex stands in the order."""
    n = order.shape[0]
    return jnp.zeros(n, jnp.int32).at[order].set(jnp.arange(n, dtype=jnp.int32))


@independent.register("greedy", backend="cpu")
def _independent_in_order(graph: Graph, order: Array) -> Array:
    """0: open, 1: in the set, 2: a neighbour is."""
    n, indptr, indices = graph.n, graph.out.indptr, graph.out.indices
    if n == 0 or graph.nse == 0:
        return jnp.ones(n, bool)

    def join(v, state):
        def edge(e, state):
            return (write(state, read(indices, e), jnp.int8(2)),)

        (state,) = each(read(indptr, v), read(indptr, v + 1), edge, state)
        return v, write(state, v, jnp.int8(1))

    def vertex(i, state):
        v = read(order, i)
        return (once(read(state, v) == 0, join, v, state)[1],)

    (state,) = each(0, n, vertex, jnp.zeros(n, jnp.int8))
    return state == 1


@independent.register("rounds")
def _independent_in_rounds(graph: Graph, order: Array) -> Array:
    """A round takes all that come before every open neighbour; the next leaves out theirs.

    One product a round, the least over the neighbours: members count as -1, the open by their
    place, the others as n.
    """
    n, place = graph.n, _place(order)
    pattern = without_values(graph.out, jnp.int32)

    def round_(state):
        counts, open_ = state
        least = mxv(pattern, counts, min_second)
        joins = open_ & (place <= least)  # itself too, by a self loop
        open_ = open_ & ~joins & (least >= 0)
        return jnp.where(joins, -1, jnp.where(open_ | (counts < 0), counts, n)), open_

    start = (place, jnp.ones(n, bool))
    return lax.while_loop(lambda s: jnp.any(s[1]), round_, start)[0] < 0


@colored.register("greedy", backend="cpu")
def _colored_in_order(graph: Graph, order: Array) -> Array:
    """`taken[c]` is the last vertex of the order that found a neighbour of colour c."""
    n, indptr, indices = graph.n, graph.out.indptr, graph.out.indices
    if n == 0 or graph.nse == 0:
        return jnp.zeros(n, jnp.int32)

    def vertex(i, colors, taken):
        v = read(order, i)

        def edge(e, taken):
            c = read(colors, read(indices, e))
            return (write(taken, jnp.where(c < 0, n + 1, c), i),)

        (taken,) = each(read(indptr, v), read(indptr, v + 1), edge, taken)
        (c,) = lax.while_loop(lambda c: read(taken, c[0]) == i, lambda c: (c[0] + 1,), (0 * i,))
        return write(colors, v, c), taken

    nothing = jnp.full(n + 2, -1, jnp.int32)
    return each(0, n, vertex, nothing[:n], nothing)[0]


@colored.register("rounds")
def _colored_in_rounds(graph: Graph, order: Array) -> Array:
    """A vertex without colour tries the least that it has not seen at a neighbour before it.

    `colors[v]` only grows: an open vertex moves past the colours of neighbours that are settled,
    and is settled once all before it are and none has its colour.
    """
    n, place = graph.n, _place(order)
    tail, head = ends_of(graph, loops=False)
    where = [place.at[v].get(mode="fill", fill_value=n) for v in (tail, head)]
    before = where[0] < where[1]  # of two neighbours the tail is coloured first

    def round_(state):
        colors, settled = state
        theirs, mine = (colors.at[v].get(mode="fill", fill_value=-1) for v in (tail, head))
        known = settled.at[tail].get(mode="fill", fill_value=True)
        waits = before & ~known
        clashes = before & known & (theirs == mine)
        some = jnp.zeros((2, n), bool)
        some = some.at[0, jnp.where(waits, head, n)].set(True, mode="drop")
        some = some.at[1, jnp.where(clashes, head, n)].set(True, mode="drop")
        moves = ~settled & some[1]
        return colors + moves, settled | ~(some[0] | some[1])

    start = (jnp.zeros(n, jnp.int32), jnp.zeros(n, bool))
    return lax.while_loop(lambda s: ~jnp.all(s[1]), round_, start)[0]
