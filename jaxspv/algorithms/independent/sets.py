"""Maximal independent sets and greedy colouring in a given order, in parallel rounds."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.operation import Operation, typed
from ..._core.platforms import Backend
from ..._core.pytree import is_concrete, result_tuple
from ...generators.graphs import check_key
from ...graph import Graph
from ...native import bind
from ...shapes import Bool, Int, Key, Matrix
from ..common.edges import by_vertex, endpoints_of, no_edges, undirected, without_ghosts
from ..common.sources import check_source
from ..common.status import finished


@result_tuple
class IndependentSet(NamedTuple):
    """The result of `maximal_independent_set`.

    Attributes:
        members: (n,) bool.
        count: int32, how many.
        status: int32, 0 unless a kernel gave up; see `jaxspv.check`.
    """

    members: Bool[Array, " n"]
    count: Int[Array, ""]
    status: Int[Array, ""]


@result_tuple
class Coloring(NamedTuple):
    """The result of `greedy_color`.

    Attributes:
        colors: (n,) int32 from 0; -1 for ghosts of `pad`.
        count: int32, how many are used.
        status: int32, 0 unless a kernel gave up; see `jaxspv.check`.
    """

    colors: Int[Array, " n"]
    count: Int[Array, ""]
    status: Int[Array, ""]


def maximal_independent_set(
    key: Key, G: Matrix, *, backend: Backend | None = None, method: str | None = None
) -> IndependentSet:
    """A set without two neighbours to which no vertex can be added, drawn at random.

    The vertices are put in order, those of few entries first (rows of 256 and more by the leading
    eight bits of their length), at random among equals, and each that has no neighbour in the set
    before it joins. Every backend gives the same set, also those that decide many vertices in one
    step. Sets in that order are larger than in an order without regard to degrees, by 1 to 14% on
    the graphs of the benchmarks.

    Args:
        key: of `jax.random`.
        G: a `Graph` or a square sparse matrix with a symmetric pattern; self loops are ignored.
        backend: "pallas", "cpu", "xla" or None.
        method: "native" (C++, on a CPU), "waiting" (one launch on a GPU), "rounds" (elsewhere), or
            None for these.

    Returns:
        `IndependentSet(members, count, status)`.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or its pattern, where it is concrete, is not symmetric.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: "waiting" a pass over the edges at most, no sort; "rounds" a sort of the vertices and a
    pass over the edges a round, few rounds.

    Source: few edges first: Burtscher, Devale, Azimi, Jaiganesh, Powers, "A high-quality and fast
    maximal independent set implementation for GPUs", ACM Transactions on Parallel Computing 5,
    2018; Luby, "A simple parallel algorithm for the maximal independent set problem", SIAM
    Journal on Computing 15, 1986; one order for all rounds: Blelloch, Fineman, Shun, "Greedy
    sequential maximal independent set and matching are parallel on average", SPAA 2012; Fischer,
    Noever, "Tight analysis of parallel randomized greedy MIS", SODA 2018.

    >>> import jax, jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2], [1, 0, 2, 1], shape=(3, 3))
    >>> int(jsp.maximal_independent_set(jax.random.key(0), A).count) in (1, 2)
    True
    """
    graph = undirected(G, "maximal_independent_set")
    noise = jax.random.bits(check_key(key), (graph.n,), jnp.uint32)
    found = independent(graph, noise, backend=backend, method=method)
    return finished(found, "maximal_independent_set")


def greedy_color(
    G: Any, order: Any = None, *, backend: Backend | None = None, method: str | None = None
) -> Coloring:
    """Colours vertices one after the other, each with the smallest that no neighbour has.

    Args:
        G: a `Graph` or a square sparse matrix with a symmetric pattern; self loops are ignored.
        order: (n,) the vertices as they are coloured, each once; None: by descending number of
            entries in their rows (from 256 on by its leading eight bits), at ties by a hash of
            their numbers, which keeps chains of neighbours short.
        backend: "pallas", "cpu", "xla" or None.
        method: "native" (C++, on a CPU), "waiting" (one launch on a GPU, of sparse graphs
            without an order), "shortcuts" (one launch after a sort of the vertices), "rounds" (all
            whose neighbours before them have colours, elsewhere), or None for these. The colours
            are the same.

    Returns:
        `Coloring(colors, count, status)`, at most 1 + the largest degree colours.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or its pattern, where it is concrete, is not symmetric, or
            `order` has a wrong shape or, concrete, not each vertex.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: O(n + edges), a sort of the vertices where there is no order; "rounds" a pass over the
    edges for each colour and each step of the longest chain of neighbours in the order.

    Source: Welsh, Powell, "An upper bound for the chromatic number of a graph", Computer Journal
    10, 1967; Jones, Plassmann, "A parallel graph coloring heuristic", SIAM Journal on Scientific
    Computing 14, 1993; Alabandi, Powers, Burtscher, "Increasing the parallelism of graph coloring
    via shortcutting", PPoPP 2020.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2], [1, 0, 2, 1], shape=(3, 3))
    >>> jsp.greedy_color(A).colors.tolist()
    [1, 0, 1]
    """
    graph = undirected(G, "greedy_color")
    if order is not None:
        order = check_source(order, graph.n, "order")
        if order.shape != (graph.n,):
            raise ValueError(f"`order` must have shape ({graph.n},); got {order.shape}.")
        if is_concrete(order) and (missing := np.bincount(order, minlength=graph.n) == 0).any():
            raise ValueError(f"`order` must have each vertex once; it lacks {missing.argmax()}.")
    found = colored(graph, order, backend=backend, method=method)
    return finished(found, "greedy_color")


independent = Operation(
    "maximal_independent_set", types=by_vertex(IndependentSet, jnp.bool_, jnp.int32, jnp.int32)
)
colored = Operation("greedy_color", types=by_vertex(Coloring, *[jnp.int32] * 3))
MOST_VERTICES = 2**28  # whose four words each are counted in int32
PLANAR = 6  # planar graphs have fewer entries a row, on average


def _priority(graph: Graph, noise: Array) -> Array:
    """(n,) int32 in [0, 2^31 - 2^19), larger for rows of fewer entries, then by (n,) uint32 noise.

    Twelve bits for a length: its exponent and seven bits of its mantissa as a float32, so that
    lengths up to 255 differ; nineteen for the noise.
    """
    length = jnp.maximum(jnp.diff(graph.out.indptr), 1).astype(jnp.float32)
    coarse = (lax.bitcast_convert_type(length, jnp.int32) >> 16) - 0x3F80  # of 1.0
    return ((4094 - coarse) << 19) | (noise >> 13).astype(jnp.int32)


def _hashed(graph: Graph) -> Array:
    """(n,) int32 in [0, 2^31 - 2^19), smaller for rows of more entries, then by a hash."""
    x = jnp.arange(graph.n, dtype=jnp.uint32)
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return _priority(graph, x ^ (x >> 16))


def _given(graph: Graph, order: Array | None) -> Array:
    """`order`, or vertices of many entries first, those of equally many by their hashes."""
    if order is not None:
        return order
    key = _hashed(graph).astype(jnp.uint32)  # of 32 bits, unsigned: XLA's radix sort
    return jnp.argsort(key, stable=True).astype(jnp.int32)


def _members(graph: Graph, members: Array, status: Array | int = 0) -> IndependentSet:
    members = without_ghosts(graph, members, False)
    return IndependentSet(members, jnp.sum(members, dtype=jnp.int32), jnp.int32(status))


def _colors(
    graph: Graph, colors: Array, status: Array | int = 0, count: Array | None = None
) -> Coloring:
    colors = without_ghosts(graph, colors, -1)
    if count is None or graph.exists is not None:
        count = jnp.max(colors, initial=-1) + 1
    return Coloring(colors, count, jnp.int32(status))


def _not_in_one_launch(graph: Graph, given: Array | None) -> str | None:
    if reason := no_edges(graph, given):
        return reason
    if graph.n > MOST_VERTICES:
        return f"{graph.n} vertices exceed the {MOST_VERTICES} that its int32 places allow"
    return None


@independent.register("waiting", backend="pallas", refuse=_not_in_one_launch)
def _independent_in_one_launch(graph: Graph, noise: Array) -> IndependentSet:
    """Each vertex is decided after its earlier neighbours, in one launch."""
    from pallas_kernels.independent.waiting import independent_set as set_kernel

    out, priority = graph.out, _priority(graph, noise)
    return _members(graph, *set_kernel(out.indptr, out.indices, priority))


def _not_of_short_chains(graph: Graph, order: Array | None) -> str | None:
    if reason := _not_in_one_launch(graph, order):
        return reason
    if order is not None:
        return "in a given order chains of dependent vertices may be long"
    if graph.nse >= PLANAR * graph.n:
        return "with six entries a row or more chains of dependent vertices may be long"
    return None


@colored.register("waiting", backend="pallas", refuse=_not_of_short_chains)
def _colored_without_order(graph: Graph, order: None) -> Coloring:
    """Each vertex is decided after its earlier neighbours, in one launch and without a sort."""
    from pallas_kernels.independent.waiting_colors import coloring as coloring_of_short_chains

    del order
    out, priority = graph.out, 2**31 - 2**19 - 1 - _hashed(graph)
    return _colors(graph, *coloring_of_short_chains(out.indptr, out.indices, priority))


@colored.register("shortcuts", backend="pallas", refuse=_not_in_one_launch)
def _colored_in_one_launch(graph: Graph, order: Array | None) -> Coloring:
    """Each vertex is decided once no earlier neighbour can take its colour, in one launch."""
    from pallas_kernels.independent.in_order import coloring as coloring_in_order

    out, order = graph.out, _given(graph, order)
    return _colors(graph, *coloring_in_order(out.indptr, out.indices, order))


@independent.register("native", backend="cpu", refuse=bind.refused)
def _independent_in_cpp(graph: Graph, noise: Array) -> IndependentSet:
    """One vertex after the other, in C++."""
    operands = graph.out.indptr, graph.out.indices, ~_priority(graph, noise)
    types = typed(jnp.bool_, graph.n), typed(jnp.int32)
    members, count = bind.call("independent_set", types, *operands)
    if graph.exists is not None:
        return _members(graph, members)
    return IndependentSet(members, count, jnp.int32(0))


@independent.register("rounds")
def _independent_in_rounds(graph: Graph, noise: Array) -> IndependentSet:
    """Those of the first colour, where vertices that cannot have it are left."""
    order = jnp.argsort(-_priority(graph, noise), stable=True)  # the smaller number first at ties
    return _members(graph, _rounds(graph, order.astype(jnp.int32), 1) == 0)


@colored.register("native", backend="cpu", refuse=bind.refused)
def _colored_in_cpp(graph: Graph, order: Array | None) -> Coloring:
    """One vertex after the other, in C++."""
    by = _hashed(graph) if order is None else order
    operands, ordered = (graph.out.indptr, graph.out.indices, by), order is not None
    types = typed(jnp.int32, graph.n), typed(jnp.int32)
    colors, count = bind.call("greedy_color", types, *operands, ordered=ordered)
    return _colors(graph, colors, count=count)


@colored.register("rounds")
def _colored_in_rounds(graph: Graph, order: Array | None) -> Coloring:
    """All whose neighbours before them have colours, in each round."""
    return _colors(graph, _rounds(graph, _given(graph, order), graph.n))


def _rounds(graph: Graph, order: Array, most: int) -> Array:
    """(n,) colours of vertices in an order; `most` where the first `most` colours are all taken.

    An uncoloured vertex tries the least colour not seen at an earlier neighbour. `colors[v]` only
    grows: an open vertex moves past the colours of neighbours that are settled, and is settled once
    all before it are and none has its colour.
    """
    n, place = graph.n, jnp.zeros(graph.n, jnp.int32)
    place = place.at[order].set(jnp.arange(n, dtype=jnp.int32))
    tail, head = endpoints_of(graph, loops=False)
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
        colors += ~settled & some[1]
        return colors, settled | ~(some[0] | some[1]) | (colors >= most)

    start = (jnp.zeros(n, jnp.int32), jnp.zeros(n, bool))
    return lax.while_loop(lambda s: ~jnp.all(s[1]), round_, start)[0]
