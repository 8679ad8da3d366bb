"""Label propagation: each vertex takes the label that most of its neighbours have."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ..._core.eager.arrays import single_numbers
from ..._core.operation import Operation
from ..._core.platforms import Backend
from ..._core.pytree import result_tuple
from ...graph import Graph, as_graph
from ...native import bind
from ...shapes import Bool, Count, Int, Matrix, Vector
from ...until import iteration_limit
from ..common.edges import by_vertex, endpoints_of, without_ghosts
from ..common.sources import vertex_labels


@result_tuple
class LabelPropagation(NamedTuple):
    """The result of `label_propagation`.

    Attributes:
        labels: (n,) int32; -1 for ghosts of `pad`, and where no label came.
        iterations: int32, steps taken.
        converged: bool, whether the last step changed nothing.
    """

    labels: Int[Array, " n"]
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]


def label_propagation(
    G: Matrix,
    max_iterations: Count = 10,
    labels: Vector | None = None,
    *,
    backend: Backend | None = None,
    method: str | None = None,
) -> LabelPropagation:
    """`labels[v] <- the most frequent label of v's neighbours`, smallest at ties; synchronous.

    The rule of LDBC Graphalytics (CDLP): in a directed graph in-edges and out-edges count both, a
    neighbour joined in both directions twice. A vertex without edges keeps its label. Synchronous
    steps may alternate between two states for ever, hence the bound.

    Args:
        G: a `Graph` or a square sparse matrix; values do not matter.
        max_iterations: bound on the steps; it stops earlier where nothing changes.
        labels: (n,) integers in [0, n) to start from; others are no labels and count for nothing.
            None: each vertex its own number.
        backend: "cpu", "xla" or None.
        method: "native" (C++, on a CPU), "sort" (labels sorted by vertex, elsewhere), or None.

    Returns:
        `LabelPropagation(labels, iterations, converged)`.

    Raises:
        TypeError: G is no graph, or `labels` are no integers.
        ValueError: it is not square, or `labels` has a wrong shape.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: a pass over the edges a step; "sort" a sort of them.

    Source: Raghavan, Albert, Kumara, "Near linear time algorithm to detect community structures in
    large-scale networks", Physical Review E 76, 2007; Iosup et al., "LDBC Graphalytics", VLDB 2016.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2, 2, 0, 3, 4], [1, 0, 2, 1, 0, 2, 4, 3], shape=(5, 5))
    >>> jsp.label_propagation(A, 2).labels.tolist()
    [0, 0, 0, 3, 4]
    """
    graph = as_graph(G, "label_propagation", ())
    n = graph.n
    start = jnp.arange(n, dtype=jnp.int32) if labels is None else vertex_labels(labels, n)
    single_numbers(max_iterations=max_iterations)
    limit = jnp.asarray(iteration_limit("max_iterations", max_iterations), jnp.int32)
    found = op(graph, start, limit, backend=backend, method=method)
    if labels is not None:
        found = found._replace(labels=jnp.where(found.labels < n, found.labels, -1))
    return found._replace(labels=without_ghosts(graph, found.labels, -1))


_types = by_vertex(LabelPropagation, jnp.int32, jnp.int32, jnp.bool_)
op = Operation("label_propagation", types=_types)


@op.register("native", backend="cpu", refuse=bind.refused)
def _native(graph: Graph, labels: Array, limit: Array) -> LabelPropagation:
    """A number for each label counts those of the neighbours, in C++."""
    operands = graph.out.indptr, graph.out.indices, labels, limit
    results = tuple(_types(graph, labels, limit))
    found = bind.call("label_propagation", results, *operands, symmetric=graph.symmetric)
    return LabelPropagation(*found)


@op.register("sort")
def _sort(graph: Graph, labels: Array, limit: Array) -> LabelPropagation:
    """Sorts pairs (vertex, label of a neighbour) and takes the longest run of each vertex."""
    n = graph.n
    tail, head = endpoints_of(graph)
    vertex, neighbor = tail, head
    if not graph.symmetric:
        vertex, neighbor = jnp.concatenate([tail, head]), jnp.concatenate([head, tail])
    place = jnp.arange(vertex.shape[0], dtype=jnp.int32)

    def step(s):
        seen = s.labels.at[neighbor].get(mode="fill", fill_value=n)
        v, label = lax.sort((jnp.where(seen < n, vertex, n), seen), num_keys=2)
        new = jnp.append(True, (v[1:] != v[:-1]) | (label[1:] != label[:-1]))[: place.shape[0]]
        length = place - lax.cummax(jnp.where(new, place, 0)) + 1
        longest = jnp.zeros(n, jnp.int32).at[v].max(length, mode="drop")
        wins = length == longest.at[v].get(mode="fill", fill_value=0)
        best = jnp.full(n, n, jnp.int32).at[jnp.where(wins, v, n)].min(label, mode="drop")
        labels = jnp.where(best < n, best, s.labels)
        return LabelPropagation(labels, s.iterations + 1, jnp.all(labels == s.labels))

    first = LabelPropagation(labels, jnp.int32(0), jnp.bool_(n == 0))
    return lax.while_loop(lambda s: ~s.converged & (s.iterations < limit), step, first)
