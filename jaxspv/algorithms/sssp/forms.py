"""Single-source shortest paths without kernels: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.batching import batch_any
from ..._core.operation import Operation, typed
from ...algebra.monoids import max_
from ...algebra.semirings import min_plus
from ...graph import Graph
from ...native import bind
from ...ops.products.mxv.api import mxv
from ..common.frontier import Edges
from . import native, xla
from .xla import OutEdges, after, extend, infinity, wraps

# A bucket is widened while fewer than one in SPARSE of the far vertices move into it, so that
# reading `far` costs at most SPARSE times as much as moving its vertices, whatever the weights.
SPARSE = 16


def delta_stepping(parents, stop, graph, source, delta, max_steps):
    """Lengths, steps, converged, predecessors, by buckets."""
    top = infinity(graph.weights.dtype)
    base = jnp.where(delta > 0, delta, top)

    def step(c):
        s, limit, width, steps, _ = c
        steps += (s.near > 0).astype(jnp.int32)
        s = xla.drain(graph, s, limit)
        done = jnp.bool_(False)
        if stop is not None:
            done = stop(steps, s.length, after(limit), s.far)
        wider = jnp.where(done, limit, extend(limit, width))
        before = s.far
        s = xla.refill(s, limit, wider)
        few = (before - s.far) * SPARSE < before
        width = jnp.where(few, extend(width, width), jnp.maximum(base, _half(width)))
        return s, wider, width, steps, done

    def more(c):
        s, _, _, steps, done = c
        return ((s.near > 0) | (s.far > 0)) & ~done & (steps < max_steps)

    state = xla.start(graph, source, parents)
    first = (state, base, base, jnp.int32(0), _stops_at_start(stop, state))
    s, limit, _, steps, stopped = lax.while_loop(more, step, first)
    length = s.length if stop is None else jnp.where(stopped & (s.length > limit), top, s.length)
    return length, steps, stopped | ((s.near == 0) & (s.far == 0)), s.pred


def _half(width: Array) -> Array:
    return width / 2 if jnp.issubdtype(width.dtype, jnp.floating) else width // 2


def bellman_ford(parents, stop, graph, source, max_steps):
    """Lengths, steps, converged, predecessors, by rounds over the vertices whose label fell.

    After 2, 4, 8, ... rounds the graph of predecessors is searched for a cycle: it has one soon
    after labels went around a negative cycle.
    """
    dtype = graph.weights.dtype
    top, low = infinity(dtype), max_.identity_of(dtype)

    def step(c):
        s, steps, check, _, _ = c
        s = xla.drain(graph, s, None)
        steps += 1
        cycle = lax.cond(steps == check, xla.has_cycle, lambda pred: jnp.bool_(False), s.pred)
        done = jnp.bool_(False)
        if stop is not None:
            done = stop(steps, s.length, jnp.where(s.near > 0, low, top), s.near)
        return s, steps, jnp.where(steps == check, 2 * check, check), cycle, done

    def more(c):
        s, steps, _, cycle, done = c
        return (s.near > 0) & ~cycle & ~done & (steps < max_steps)

    state = xla.start(graph, source, True)
    done = _stops_at_start(stop, state)
    first = (state, jnp.int32(0), jnp.int32(2), jnp.bool_(False), done)
    s, steps, _, cycle, stopped = lax.while_loop(more, step, first)
    converged = (stopped | (s.near == 0)) & ~cycle
    return s.length, steps, converged, s.pred if parents else None


def _stops_at_start(stop: Any, state: xla.State) -> Array:
    """Whether not even a first step is wanted: no distance is final."""
    if stop is None:
        return jnp.bool_(False)
    low = max_.identity_of(state.length.dtype)
    return jnp.asarray(stop(jnp.int32(0), state.length, low, state.near))


def overflow(graph, length) -> Array:
    """Whether a sum that wraps may have made a length wrong; edges are only checked if those of the
    extremes do."""
    if jnp.issubdtype(length.dtype, jnp.floating):
        return jnp.bool_(False)
    top, zero = infinity(length.dtype), jnp.zeros((), length.dtype)
    valid = jnp.arange(graph.weights.shape[0], dtype=jnp.int32) < graph.indptr[-1]
    finite = jnp.where(length < top, length, zero)
    weights = jnp.where(valid, graph.weights, zero)
    high = wraps(jnp.max(finite, initial=0), jnp.max(weights, initial=0))
    low = wraps(jnp.min(finite, initial=0), jnp.min(weights, initial=0))
    return lax.cond(high | low, xla.any_spoiled, lambda *_: jnp.bool_(False), graph, length)


MOST_STEPS = np.int32(np.iinfo(np.int32).max)


class Paths(NamedTuple):
    """What `search` returns.

    Attributes:
        distances: (n,) of the dtype of the weights; unreached: inf, or the largest integer.
        steps: () int32, buckets or rounds of Bellman-Ford.
        converged: () bool; False: a negative cycle can be reached, or `max_steps` were too few.
        overflow: () bool; a clamped sum that no shorter path replaced; False for floats.
        parents: (n,) int32, or None where not asked for.
    """

    distances: Array
    steps: Array
    converged: Array
    overflow: Array
    parents: Array | None


def search(
    graph: OutEdges,
    source: Array,
    *,
    delta: Any = None,
    stop: Callable[[Array, Array, Array, Array], Any] | None = None,
    max_steps: Any = None,
    parents: bool = False,
    sure: bool = False,
) -> Paths:
    """`d[source] = 0`, `d[v] = min over edges u -> v of d[u] + w`: the largest solution.

    In float32 it is the fixpoint in float32 arithmetic, whatever the order of relaxations, for
    rounded addition is monotone: the distances are bit-equal to those of Dijkstra's algorithm.

    Args:
        graph: indptr (n + 1,) int32; indices (nse,) int32, where slots at or after indptr[n] are
            padding of any value; weights (nse,) of any float or integer dtype. Integers: the
            largest value is infinity.
        source: () int32; out of range, negative too: nothing is reached.
        delta: () width of a bucket, weights >= 0 (edges below 0 are ignored); None, or infinity
            (inf, or the largest integer): Bellman-Ford, any weights.
        sure: whether `delta` is known to be finite, static: then the program holds buckets alone.
        stop: `stop(step, distances, threshold, waiting)`, asked after every step: distances below
            the threshold are final. Where it ends a run with buckets, the others become unreached.
        max_steps: steps to run at most; None: to the end.
        parents: whether to return the vertex that gave each label last, static. Where the run
            converged they are a tree of shortest paths: a label is passed on only where it gets
            smaller, and rounded sums along a cycle of weights >= 0 never do, so zero and absorbed
            weights make no cycle. Far cheaper than the `shortest_path_tree`, which depends
            on the distances alone; this one depends on the order of relaxations.

    Cost: with buckets about O(n + nse) as long as delta is near `delta_of`; Bellman-Ford
        O(n nse) at worst. Memory O(n).
    Source: Meyer, Sanders, "Delta-stepping: a parallelizable shortest path algorithm", J.
        Algorithms 2003; Davidson et al., "Work-efficient parallel GPU methods for single-source
        shortest paths", IPDPS 2014; Cherkassky, Goldberg, "Negative-cycle detection algorithms",
        Mathematical Programming 1999.
    """
    source = jnp.asarray(source, jnp.int32)
    if graph.n == 0 or graph.indices.shape[0] == 0:
        return _no_edges(graph.n, graph.weights.dtype, source, parents)
    most = jnp.asarray(MOST_STEPS if max_steps is None else max_steps, jnp.int32)
    if delta is not None:
        delta = jnp.asarray(delta, graph.weights.dtype)
    return _solve(parents, stop, graph, source, delta, most, sure)


# `parents[v] = the tight predecessor u of v of smallest (hops[u], u)`, (n,) int32, where an edge
# u -> v is tight if v is reached and `distances[u] + weight = distances[v]`, and hops counts the
# tight edges from the source. The source is its own parent; -1 where unreached. O(n + nse).
shortest_path_tree = Operation(
    "shortest-path tree",
    types=lambda graph, distances, source: typed(jnp.int32, graph.n),
    internal=True,
)


@shortest_path_tree.register("native", backend="cpu", refuse=native.refuse_tree)
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

    def tight(edges: Edges, v: Array) -> Array:
        weight = graph.weights.at[edges.slot].get(mode="clip")
        return (extend(distances[edges.tail], weight) == distances[v]) & (distances[v] < top)

    _, tails = xla.tree_edges(graph, at_source, tight)
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
    indptr: Array, weights: Array, factor: Callable[[int, Array], Array] | None = None
) -> Array:
    """`delta_of` while tracing; infinity, which means Bellman-Ford, if a weight is below 0 or NaN.

    Gives unprepared graphs the same bucket width, at the cost of one pass. () of their dtype.
    factor: `factor(n, count)` over the mean weight; None: `width_over_mean`.
    """
    dtype, top = weights.dtype, infinity(weights.dtype)
    n, count = indptr.shape[0] - 1, indptr[-1]
    valid = jnp.arange(weights.shape[0], dtype=jnp.int32) < count
    finite = jnp.where(valid & (weights < top), weights, jnp.zeros((), dtype))
    count = jnp.maximum(count, 1).astype(jnp.float32)
    over = width_over_mean(n, count, jnp) if factor is None else factor(n, count)
    width = (jnp.sum(finite.astype(jnp.float32)) / count * over).astype(dtype)
    width = jnp.where(width > 0, width, jnp.ones((), dtype))
    return jnp.where(jnp.any(valid & ~(weights >= 0)), top, width)


def width_over_mean(n: int, count: Any, xp: ModuleType) -> Any:
    """The factor of `delta_of` for n vertices and `count` entries."""
    return xp.clip(4 * max(n, 1) / xp.maximum(count, 1), 0.15, 3.0)


def _no_edges(n: int, dtype: Any, source: Array, parents: bool) -> Paths:
    at_source = jnp.arange(n, dtype=jnp.int32) == source
    top = infinity(dtype)
    false = jnp.bool_(False)
    return Paths(
        jnp.where(at_source, jnp.zeros_like(top), top),
        jnp.any(at_source).astype(jnp.int32),
        ~false,
        false,
        jnp.where(at_source, source, -1) if parents else None,
    )


def _solve(parents, stop, graph, source, delta, max_steps, sure) -> Paths:
    args = (parents, stop, graph, source)
    if delta is None:
        length, steps, converged, pred = bellman_ford(*args, max_steps)
    elif sure:
        length, steps, converged, pred = delta_stepping(*args, delta, max_steps)
    else:
        length, steps, converged, pred = lax.cond(
            delta < infinity(delta.dtype),
            lambda: delta_stepping(*args, delta, max_steps),
            lambda: bellman_ford(*args, max_steps),
        )
    if pred is not None:
        at_source = jnp.arange(graph.n, dtype=jnp.int32) == source
        pred = jnp.where(at_source, source, jnp.where(length < infinity(length.dtype), pred, -1))
    return Paths(length, steps, converged, overflow(graph, length), pred)


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
    d, steps, _ = lax.while_loop(lambda c: batch_any(c[2]), step, first)
    still = jnp.all(jnp.minimum(d, mxv(pull, d, min_plus)) == d)
    out = OutEdges.of(graph.out)
    tree = shortest_path_tree(out, d, source) if parents else None
    return d, tree, steps, still, overflow(out, d)
