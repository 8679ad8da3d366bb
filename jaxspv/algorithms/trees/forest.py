"""Minimum spanning forests: the lightest edges that join what can be joined."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.eager.arrays import is_eager, on_accelerator, to_device
from ..._core.eager.programs import one_program
from ..._core.loops import while_going
from ..._core.operation import Operation, typed
from ..._core.platforms import Backend
from ..._core.pytree import is_concrete, result_tuple
from ...graph import Graph, as_graph
from ...native import bind
from ..common.edges import endpoints_of
from ..common.status import finished
from ..common.weights import check_weights, with_real_weights

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Shaped

    from ...shapes import Matrix


@result_tuple
class SpanningForest(NamedTuple):
    """The result of `minimum_spanning_forest`; slots behind the count hold n, n and 0.

    Attributes:
        tails, heads: (n - 1,) int32, the ends of the edges as they are stored in G.
        weights: (n - 1,) their weights.
        count: int32, how many edges: n less the number of components.
        total: the sum of the weights; of integers and booleans float32.
        status: int32, 0 unless a kernel gave up; see `jaxspv.check`.
    """

    tails: Int[Array, " edges"]
    heads: Int[Array, " edges"]
    weights: Shaped[Array, " edges"]
    count: Int[Array, ""]
    total: Float[Array, ""]
    status: Int[Array, ""]


def minimum_spanning_forest(
    G: Matrix, *, backend: Backend | None = None, method: str | None = None
) -> SpanningForest:
    """Of the edges that join all that can be joined, without a cycle, those of least total weight.

    Edges are taken in either direction, and are ordered by (weight, smaller end, larger end), so
    that there is one solution, the same on every backend. Self loops are ignored.

    Args:
        G: a `Graph` or a square sparse matrix of weights, stored in one direction or in both; where
            the two differ the smaller counts.
        backend: "pallas", "cpu", "xla" or None.
        method: "native" (C++, on a CPU), "light_first" (one launch on a GPU, of a `Graph` known to
            be symmetric), "ranks" (edges sorted once, elsewhere), or None.

    Returns:
        `SpanningForest(tails, heads, weights, count, total, status)`.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or a concrete weight is NaN (traced: it counts as the
            largest, and `total` is NaN if it is needed).
        NotImplementedError: the form asked for cannot run; says why.

    Differentiable in the weights: those of the forest have derivative 1 in the total.

    Cost: at most log2(n) rounds, a pass over the edges each; "ranks" also sorts them, "light_first"
    passes over the lightest, then over those between the trees that these make.

    Source: Boruvka, "O jistem problemu minimalnim", 1926; light edges first: Fallin, Gonzalez, Seo,
    Burtscher, "A high-performance MST implementation for GPUs", SC 2023; as rounds of
    products: Kepner, Gilbert, "Graph algorithms in the language of linear algebra", SIAM, 2011.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 0], [1, 2, 2], [1.0, 2.0, 4.0], shape=(4, 4))
    >>> found = jsp.minimum_spanning_forest(A)
    >>> float(found.total), int(found.count)
    (3.0, 2)
    """
    graph = as_graph(G, "minimum_spanning_forest", ())
    with_real_weights(graph, "minimum_spanning_forest")
    check_weights(graph, negative=True, infinite=True)
    if jnp.issubdtype(graph.dtype, jnp.floating) and not is_concrete(graph.data, graph.out.indptr):
        # one sign, as some processors give -NaN for 0 / 0: keys of bits put it first
        graph = graph.with_data(jnp.where(jnp.isnan(graph.data), jnp.nan, graph.data))
    host = graph.n and graph.nse and is_eager(graph) and not on_accelerator(graph.data)
    assemble = _on_host if host else functools.partial(one_program, _forest)
    found = assemble(graph, backend=backend, method=method)
    return finished(found, "minimum_spanning_forest")


def _forest(graph: Graph, *, backend: Backend | None, method: str | None) -> SpanningForest:
    n = graph.n
    wide = jnp.promote_types(graph.dtype, jnp.float32)
    if 0 in (n, graph.nse):
        none = jnp.full(max(n - 1, 0), n, jnp.int32)
        weights = jnp.zeros(none.shape, graph.dtype)
        return SpanningForest(none, none, weights, jnp.int32(0), jnp.zeros((), wide), jnp.int32(0))
    slots, tails, status = op(graph, backend=backend, method=method)
    valid = slots < graph.nse
    heads = graph.out.indices.at[slots].get(mode="fill", fill_value=n).astype(jnp.int32)
    weights = graph.data.at[slots].get(mode="fill", fill_value=0)
    count, total = jnp.sum(valid, dtype=jnp.int32), jnp.sum(weights, dtype=wide)
    return SpanningForest(tails, heads, weights, count, total, status)


def _on_host(graph: Graph, **how: Any) -> SpanningForest:
    """The same by NumPy, which compiles nothing for a size."""
    slots, tails, status = op(graph, **how)
    slot = np.asarray(slots)
    slot = slot[: np.searchsorted(slot, graph.nse)]
    heads = np.full(tails.shape, graph.n, np.int32)
    weights = np.zeros(tails.shape, graph.dtype)
    heads[: slot.size] = np.asarray(graph.out.indices)[slot]
    weights[: slot.size] = np.asarray(graph.data)[slot]
    with np.errstate(over="ignore"):  # the sum may be infinite
        total = weights.sum(dtype=np.promote_types(graph.dtype, np.float32))
    heads, weights, count, total = to_device((heads, weights, np.int32(slot.size), total), tails)
    return SpanningForest(tails, heads, weights, count, total, status)


def _types(graph):
    edges = typed(jnp.int32, max(graph.n - 1, 0))
    return edges, edges, typed(jnp.int32)


op = Operation("minimum_spanning_forest", types=_types)


def _not_in_one_launch(graph: Graph) -> str | None:
    from pallas_kernels.trees.forest import MOST_SLOTS

    if graph.n < 2 or graph.nse == 0:
        return "there is nothing to join"
    if not graph.symmetric:
        return "the graph is not known to have both directions of every edge"
    if not (graph.out.sorted and graph.out.unique):
        return "columns do not ascend in each row"
    if graph.nse > MOST_SLOTS:
        return f"{graph.nse} entries exceed the {MOST_SLOTS} that its int32 places allow"
    if graph.dtype.itemsize > 4:
        return f"weights of {graph.dtype} do not fit into its keys of 32 bits"
    return None


@op.register("light_first", backend="pallas", refuse=_not_in_one_launch)
def _light_first(graph: Graph) -> tuple[Array, Array, Array]:
    """Rounds over the lightest edges, then over those between the trees that these make."""
    from pallas_kernels.trees.forest import spanning_forest

    weights = graph.data
    if jnp.issubdtype(weights.dtype, jnp.floating):
        weights = weights.astype(jnp.float32)
    else:
        digits = _digits(weights) ^ np.uint32(1 << 31)
        weights = lax.bitcast_convert_type(digits, jnp.int32)
    return spanning_forest(graph.out.indptr, graph.out.indices, weights)


NUMBERS = ("float32", "float64", "int32", "int64")  # of weights in C++


def _not_compiled(graph: Graph) -> str | None:
    if graph.dtype.name not in NUMBERS:
        return f"weights are {graph.dtype}, not {', '.join(NUMBERS)}"
    return bind.refused()


@op.register("native", backend="cpu", refuse=_not_compiled)
def _native(graph: Graph) -> tuple[Array, Array, Array]:
    """Edges sorted digit by digit, trees joined one edge after the other, in C++."""
    out, symmetric = graph.out, int(graph.symmetric)
    edges = jax.ShapeDtypeStruct((max(graph.n - 1, 0),), jnp.int32)
    operands = out.indptr, out.indices, out.data
    found = bind.call("spanning_forest", (edges, edges), *operands, symmetric=symmetric)
    return *found, jnp.int32(0)


@op.register("ranks")
def _ranks(graph: Graph) -> tuple[Array, Array, Array]:
    """Rounds in which each component takes its first edge by (weight, ends) and hooks to it."""
    n, nse, vertex = graph.n, graph.nse, jnp.arange(graph.n, dtype=jnp.int32)
    ends, slot = endpoints_of(graph), _by_weight(graph)
    tail, head = (v.at[slot].get(mode="fill", fill_value=n) for v in ends)
    rank = jnp.arange(slot.shape[0], dtype=jnp.int32)

    def round_(state):
        labels, chosen, _ = state
        mine, theirs = (labels.at[v].get(mode="fill", fill_value=n) for v in (tail, head))
        least = jnp.full(n, nse, jnp.int32)
        for end in (mine, theirs):
            least = least.at[jnp.where(mine != theirs, end, n)].min(rank, mode="drop")
        found = least < nse
        both = mine.at[least].get(mode="clip") + theirs.at[least].get(mode="clip")
        other = jnp.where(found, both - vertex, vertex)
        stays = ~found | ((other[other] == vertex) & (vertex < other))
        up = jnp.where(stays, vertex, other)
        up = lax.while_loop(lambda up: jnp.any(up[up] != up), lambda up: up[up], up)
        taken = jnp.where(stays, nse, slot.at[least].get(mode="clip"))
        return up[labels], chosen.at[taken].set(True, mode="drop"), jnp.any(found)

    start = (vertex, jnp.zeros(nse, bool), jnp.bool_(True))
    chosen = while_going(round_, start)[1]
    slots = jnp.flatnonzero(chosen, size=max(n - 1, 0), fill_value=nse).astype(jnp.int32)
    return slots, ends[0].at[slots].get(mode="fill", fill_value=n), jnp.int32(0)


def _by_weight(graph: Graph) -> Array:
    """The slots in order of (weight, smaller end, larger end), nse for none.

    Sorts by one key each, the last first, which a GPU does digit by digit. Of a symmetric graph
    only the slots in the row of the smaller end, which are in order of their ends already.
    """
    tail, head = endpoints_of(graph)
    keys = [jnp.maximum(tail, head), jnp.minimum(tail, head), graph.data]
    slot = jnp.arange(graph.nse, dtype=jnp.int32)
    if graph.symmetric:
        (slot,) = jnp.nonzero(tail < head, size=-(-graph.nse // 2), fill_value=graph.nse)
        slot = slot.astype(jnp.int32)
        keys = keys[2:]
    for key in map(_digits, keys):
        slot = lax.sort((key.at[slot].get(mode="clip"), slot), num_keys=1, is_stable=True)[1]
    return slot


def _digits(values: Array) -> Array:
    """uint32 in the order of values of up to 32 bits, wider ones themselves."""
    dtype, sign = values.dtype, np.uint32(1 << 31)
    if dtype.itemsize > 4:
        return values
    if dtype == jnp.bool_ or jnp.issubdtype(dtype, jnp.unsignedinteger):
        return values.astype(jnp.uint32)
    if jnp.issubdtype(dtype, jnp.integer):
        return lax.bitcast_convert_type(values.astype(jnp.int32), jnp.uint32) ^ sign
    bits = lax.bitcast_convert_type(values.astype(jnp.float32) + 0, jnp.uint32)  # -0 becomes 0
    return jnp.where(bits >= sign, ~bits, bits | sign)
