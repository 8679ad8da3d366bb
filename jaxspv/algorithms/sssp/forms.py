"""Forms of `sssp`: in C++, relaxation of all edges; what they share: trees, widths of buckets."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..._core.loops import while_going
from ..._core.operation import Operation, typed
from ...algebra.semirings import min_plus
from ...formats.offsets import search_rows
from ...graph import Graph
from ...native import bind
from ...ops.products.mxv.api import mxv
from ...until import Until
from .xla import OutEdges, extend, forest, infinity, overflow

DTYPES = ("float32", "float64", "int32", "int64")


def not_native(graph: Graph, source: Any, until: Any, delta: Any, *, max_steps: Any, **_: Any):
    """Why the C++ cannot serve a call: a sentence, or None."""
    if max_steps is not None or (until is not None and until.bounds()):
        return "it counts no steps: no `max_steps`, no `max_iterations`"
    return refuse_tree(graph.out, graph.data, source)


def refuse_tree(A: Any, distances: Any, source: Any) -> str | None:
    """Why the C++ cannot serve distances along the edges of A, a CSR or its arrays."""
    if distances.dtype.name not in DTYPES or not A.indptr.dtype == A.indices.dtype == jnp.int32:
        return f"it takes weights in {', '.join(DTYPES)} and indices of 32 bits"
    return bind.refused()


def search_in_cpp(graph: Graph, source: Array, until: Until | None) -> tuple[Array, ...]:
    """Distances, parents, steps, converged, overflow; see `SSSP`.

    With `until` it may end before it has settled the vertices beyond the limit of `until`.
    """
    out, n = graph.out, graph.n
    flag = typed(jnp.bool_)
    results = typed(graph.dtype, n), typed(jnp.int32, n), typed(jnp.int32), flag, flag
    targets: Any = np.zeros(0, np.int32)  # to the end
    if until is not None and all(c.kind == "reached" for c in until.conditions()):
        targets = jnp.stack([jnp.asarray(v, jnp.int32) for v in until.targets()])
    operands = out.indptr, out.indices, out.data, jnp.asarray(source, jnp.int32), targets
    return bind.call("sssp", results, *operands)


# `parents[v] = the tight predecessor u of v of smallest (hops[u], u)`, (n,) int32, where an edge
# u -> v is tight if v is reached and `distances[u] + weight = distances[v]`, and hops counts the
# tight edges from the source. The source is its own parent; -1 where unreached.
shortest_path_tree = Operation(
    "shortest-path tree",
    types=lambda graph, distances, source: typed(jnp.int32, graph.n),
    internal=True,
)


@shortest_path_tree.register("native", backend="cpu", refuse=refuse_tree)
def _in_cpp(graph: OutEdges, distances: Array, source: Array) -> Array:
    tree = typed(jnp.int32, graph.n)
    return bind.call("shortest_path_tree", tree, *graph, distances, jnp.asarray(source, jnp.int32))


@shortest_path_tree.register("levels", batched="map")
def _in_levels(graph: OutEdges, distances: Array, source: Array) -> Array:
    """Breadth-first over the tight edges, a level of hops at a time.

    Zero weights, and weights that a float sum absorbs, make cycles of tight edges: so a parent is
    chosen by hops, which rise along every chosen edge.
    """
    n, top = graph.n, infinity(distances.dtype)
    at_source = jnp.arange(n, dtype=jnp.int32) == source
    root = jnp.where(at_source, source, -1).astype(jnp.int32)
    if n == 0 or graph.indices.shape[0] == 0:
        return root

    tail, head = search_rows(graph.indptr, graph.indices.shape[0]), graph.indices
    before, after = (jnp.take(distances, v, mode="clip") for v in (tail, head))
    tight = (tail < n) & (extend(before, graph.weights) == after) & (after < top)
    _, tails = forest(tail, head, tight, at_source)
    return jnp.where(tails < n, tails, root)


def delta_of(mean: float, n: int, entries: int, dtype: Any) -> Any:
    """A width of buckets for weights >= 0: the mean weight times 4 / (mean degree), on the host.

    Narrow buckets relax few edges twice, wide ones are few; the more edges leave a vertex, the more
    often its label falls within a wide bucket. The factor lies in [0.15, 3]; measured on CPU over
    the graphs of `benchmarks`, it is within 1.3 of the best width on each. mean: of the finite
    weights.
    """
    width = mean * float(width_over_mean(n, entries, np))
    return width if jnp.issubdtype(dtype, jnp.floating) else max(int(width), 1)


def traced_delta(
    indptr: Array,
    weights: Array,
    factor: Callable[[int, Array], Array] | None = None,
    negative: Array | None = None,
) -> Array:
    """`delta_of` while tracing; infinity, which means Bellman-Ford, if a weight is below 0 or NaN.

    Gives unprepared graphs the same bucket width, at the cost of one pass. () of their dtype.
    factor: `factor(n, count)` over the mean weight; None: `width_over_mean`. negative: whether a
    weight is; None: they are looked at.
    """
    dtype, top = weights.dtype, infinity(weights.dtype)
    n, count = indptr.shape[0] - 1, indptr[-1]
    valid = jnp.arange(weights.shape[0], dtype=jnp.int32) < count
    finite = jnp.where(valid & (weights < top), weights, jnp.zeros((), dtype))
    count = jnp.maximum(count, 1).astype(jnp.float32)
    over = width_over_mean(n, count, jnp) if factor is None else factor(n, count)
    width = (jnp.sum(finite.astype(jnp.float32)) / count * over).astype(dtype)
    width = jnp.where(width > 0, width, jnp.ones((), dtype))
    return jnp.where(jnp.any(valid & ~(weights >= 0)) if negative is None else negative, top, width)


def width_over_mean(n: int, count: Any, xp: ModuleType) -> Any:
    """The factor of `delta_of` for n vertices and `count` entries."""
    return xp.clip(4 * max(n, 1) / xp.maximum(count, 1), 0.15, 3.0)


def relax(
    graph: Graph, source: Array, max_steps: int | None, parents: bool
) -> tuple[Array, Array | None, Array, Array, Array]:
    """Distances (n,), parents, steps, converged, overflow: `d = min(d, d (min.+) A)` to the end.

    Under vmap over the source a step is one product of the matrix with all vectors, and the loop
    ends when the last of them stands still. O(nse) a step and source; n steps at most unless a
    cycle is negative.
    """
    n = graph.n
    pull = graph.out.T if graph.inn is None else graph.inn
    top = infinity(graph.dtype)
    at_source = jnp.arange(n, dtype=jnp.int32) == source
    most = n if max_steps is None else min(max_steps, n)

    def step(c: Any):
        d, steps, moving = c
        new = jnp.minimum(d, mxv(pull, d, min_plus))
        return new, steps + moving, moving & jnp.any(new != d) & (steps + 1 < most)

    first = (jnp.where(at_source, jnp.zeros_like(top), top), jnp.int32(0), jnp.bool_(most > 0))
    d, steps, _ = while_going(step, first, together=True)
    still = jnp.all(jnp.minimum(d, mxv(pull, d, min_plus)) == d)
    out = OutEdges.of(graph.out)
    tree = shortest_path_tree(out, d, source) if parents else None
    return d, tree, steps, still, overflow(out, d)
