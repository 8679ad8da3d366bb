"""Shortest paths on every platform: rounds over the vertices whose length fell.

A vertex waits when its length fell since its edges were relaxed last. A round relaxes the edges of
those waiting vertices whose length is within a bucket's width of the least; the others wait on.
With a width of infinity this is Bellman-Ford's algorithm, else delta-stepping without empty
buckets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.loops import batch_any, while_going, while_loop
from ...algebra.monoids import max_
from ...algebra.operators import min_extend
from ...algebra.semirings import min_plus
from ...formats import CSR
from ...formats.offsets import search_rows
from ...graph import Graph
from ...ops.products.mxv.api import mxv
from ..common.frontier import Edges, Queue, append, distinct_or_dropped, for_edges, one_of_each

MOST_STEPS = np.int32(np.iinfo(np.int32).max)


def infinity(dtype: Any) -> Array:
    """The length of an unreached vertex: inf, or the largest integer."""
    if jnp.issubdtype(dtype, jnp.floating):
        return jnp.asarray(jnp.inf, dtype)
    return jnp.asarray(jnp.iinfo(dtype).max, dtype)


extend = min_extend.fn  # `length + weight`; integers: infinity absorbs, other sums are clamped


def wraps(length: Array, weight: Array) -> Array:
    """Whether `extend` gives no sum of a finite integer and a weight: it is clamped, infinity
    itself, or the weight is the largest integer, which counts as infinity."""
    assert min_extend.overflow is not None
    top = infinity(length.dtype)
    return (length != top) & (min_extend.overflow(length, weight) | (weight == top))


def spoiled(before: Array, weight: Array, after: Array) -> Array:
    """Whether the length `after` of a head may be wrong because the sum at an edge wraps: nothing
    shorter than the sum leads there."""
    top = infinity(before.dtype)
    infinite = (weight == top) & (jnp.minimum(before, 0) + weight < after)
    return wraps(before, weight) & ((after == top) | (weight < 0) | infinite)


class OutEdges(NamedTuple):
    """CSR arrays: (n + 1,) and (nse,) int32, (nse,) weights; n >= 1, nse >= 1."""

    indptr: Array
    indices: Array
    weights: Array

    @classmethod
    def of(cls, A: CSR) -> OutEdges:
        return cls(A.indptr, A.indices, A.data)

    @property
    def n(self) -> int:
        return self.indptr.shape[0] - 1


class State(NamedTuple):
    """Between rounds.

    Attributes:
        length: (n,) the best so far.
        waits: (n,) bool: whether a vertex waits.
        waiting: the vertices that wait.
        least: () the least of their lengths; infinity: none waits.
        pred: (n,) int32, the vertex that gave each length last, or -1.
        claims: (n,) int32, scratch.
    """

    length: Array
    waits: Array
    waiting: Queue
    least: Array
    pred: Array
    claims: Array


def search(
    graph: OutEdges,
    source: Array,
    *,
    delta: Any = None,
    stop: Callable[[Array, Array, Array, Array], Any] | None = None,
    max_steps: Any = None,
) -> tuple[Array, Array, Array, Array, Array]:
    """Distances, parents, steps, converged, overflow; see `SSSP`.

    `d[source] = 0`, `d[v] = min over edges u -> v of d[u] + w`: the largest solution.

    In float32 it is the fixpoint in float32 arithmetic, whatever the order of relaxations, for
    rounded addition is monotone: the distances are bit-equal to those of Dijkstra's algorithm.

    Slots from indptr[n] on are padding, the largest integer is infinity; from a source out of range
    nothing is reached. delta: None or infinity for Bellman-Ford. `stop(step, distances, threshold,
    waiting)` is asked after every round: distances below the threshold are final, and where it ends
    a run with buckets the others become unreached.

    Where the run converged the parents, which gave each length last, are a tree of shortest paths:
    a length is passed on only where it gets smaller, and rounded sums along a cycle of weights >= 0
    never do. Far cheaper than the `shortest_path_tree`, which depends on the distances alone; this
    one depends on the order of relaxations. After 2, 4, 8, ... rounds the graph of parents is
    searched for a cycle: it has one soon after lengths went around a negative cycle.

    Cost: with buckets about O(n + nse) as long as delta is near `delta_of`; Bellman-Ford
        O(n nse) at worst. Memory O(n).
    Source: Meyer, Sanders, "Delta-stepping: a parallelizable shortest path algorithm", J.
        Algorithms 2003; Davidson et al., "Work-efficient parallel GPU methods for single-source
        shortest paths", IPDPS 2014; Cherkassky, Goldberg, "Negative-cycle detection algorithms",
        Mathematical Programming 1999.
    """
    n, dtype = graph.n, graph.weights.dtype
    top, low = infinity(dtype), jnp.asarray(max_.identity_of(dtype))
    width = top if delta is None else jnp.asarray(delta, dtype)
    source = jnp.asarray(source, jnp.int32)
    at_source = jnp.arange(n, dtype=jnp.int32) == source
    most = jnp.asarray(MOST_STEPS if max_steps is None else max_steps, jnp.int32)
    s = State(
        jnp.where(at_source, jnp.zeros_like(top), top),
        at_source,
        Queue(jnp.full(n, source, jnp.int32), jnp.int32(0), jnp.any(at_source).astype(jnp.int32)),
        jnp.where(jnp.any(at_source), jnp.zeros_like(top), top),
        jnp.full(n, -1, jnp.int32),
        jnp.zeros(n, jnp.int32),
    )

    def stops(steps, s: State, threshold):
        if stop is None:
            return jnp.bool_(False)
        return jnp.asarray(stop(steps, s.length, threshold, s.waiting.tail))

    def step(c):
        s, steps, look, _, _ = c
        limit = jnp.where(width < top, extend(s.least, width), top)
        s, steps = _round(graph, s, limit), steps + 1
        cycle = lax.cond(steps == look, has_cycle, lambda pred: jnp.bool_(False), s.pred)
        final = jnp.where((width < top) | (s.least == top), s.least, low)
        return s, steps, jnp.where(steps == look, 2 * look, look), cycle, stops(steps, s, final)

    def more(c):
        s, steps, _, cycle, stopped = c
        return (s.waiting.tail > 0) & ~cycle & ~stopped & (steps < most)

    steps, cycle, stopped = jnp.int32(0), jnp.bool_(False), jnp.bool_(True)
    if n and graph.indices.shape[0]:
        first = s, steps, jnp.int32(2), cycle, stops(steps, s, low)
        s, steps, _, cycle, stopped = lax.while_loop(more, step, first)
        unsettled = stopped & (width < top) & (s.length > s.least)
        s = s._replace(length=jnp.where(unsettled, top, s.length))
    parents = jnp.where(at_source, source, jnp.where(s.length < top, s.pred, -1))
    converged = (stopped | (s.waiting.tail == 0)) & ~cycle
    return s.length, parents, steps, converged, overflow(graph, s.length)


def _round(graph: OutEdges, s: State, limit: Array) -> State:
    """Relaxes the edges of the waiting vertices of length <= limit."""
    n, top = graph.n, infinity(graph.weights.dtype)

    def begin(s: State, vertices, valid):
        length = s.length[vertices]
        now, later = valid & (length <= limit), valid & (length > limit)
        least = jnp.minimum(s.least, jnp.min(jnp.where(later, length, top)))
        waits = s.waits.at[jnp.where(now, vertices, n)].set(False, mode="drop")
        waiting = append(s.waiting, vertices, later)
        return s._replace(waits=waits, waiting=waiting, least=least), now

    def visit(s: State, edges: Edges):
        v = jnp.where(edges.valid, graph.indices.at[edges.slot].get(mode="clip"), 0)
        value = extend(s.length[edges.tail], graph.weights.at[edges.slot].get(mode="clip"))
        better = edges.valid & (value < s.length[v])
        length = s.length.at[jnp.where(better, v, n)].min(value, mode="drop")
        claims, one = one_of_each(s.claims, v, better & (length[v] == value))
        index = distinct_or_dropped(v, one, n)
        pred = s.pred.at[index].set(edges.tail, mode="drop", unique_indices=True)
        waits = s.waits.at[index].set(True, mode="drop", unique_indices=True)
        waiting = append(s.waiting, v, one & ~s.waits[v])
        least = jnp.minimum(s.least, jnp.min(jnp.where(better, value, top)))
        return State(length, waits, waiting, least, pred, claims)

    zero = jnp.int32(0)
    start = s._replace(waiting=Queue(jnp.zeros(n, jnp.int32), zero, zero), least=top)
    return for_edges(graph.indptr, graph.indices.shape[0], s.waiting, start, visit, begin)


def overflow(graph: OutEdges, length: Array) -> Array:
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
    return lax.cond(high | low, any_spoiled, lambda *_: jnp.bool_(False), graph, length)


def has_cycle(pred: Array) -> Array:
    """Whether following `pred` (-1: none) from some vertex never ends: pointer doubling."""
    n = pred.shape[0]
    jump = jnp.append(jnp.where(pred < 0, n, pred), n)
    jump = lax.fori_loop(0, n.bit_length(), lambda _, jump: jump[jump], jump)
    return jnp.any(jump < n)


def any_spoiled(graph: OutEdges, length: Array) -> Array:
    """Whether an edge spoils a length: see `spoiled`."""
    tail = search_rows(graph.indptr, graph.indices.shape[0])
    before, after = (jnp.take(length, v, mode="clip") for v in (tail, graph.indices))
    return jnp.any((tail < graph.n) & spoiled(before, graph.weights, after))


def forest(tail: Array, head: Array, chosen: Array, roots: Array) -> tuple[Array, Array]:
    """(n,) slots and tails of the edges of a breadth-first forest from the roots (n,) bool.

    tail, head: (nse,) of each edge, by rows; chosen: (nse,) bool, those that may be taken. Of those
    into a vertex the first one from the level before; along it the number of edges rises, so cycles
    of such edges do no harm. (nse, n) for a root and what is not reached. A pass over the edges for
    each level.
    """
    n, nse = roots.shape[0], tail.shape[0]
    slot, none = jnp.arange(nse, dtype=jnp.int32), jnp.full(n, nse, jnp.int32)

    def level(state):
        slots, last = state
        live = chosen & last.at[tail].get(mode="fill", fill_value=False)
        first = none.at[jnp.where(live, head, n)].min(slot, mode="drop")
        new = (slots == nse) & (first < nse) & ~roots
        return jnp.where(new, first, slots), new

    slots = while_loop(lambda s: batch_any(jnp.any(s[1])), level, (none, roots))[0]
    return slots, tail.at[slots].get(mode="fill", fill_value=n).astype(jnp.int32)


def relax(graph: Graph, source: Array, max_steps: int | None) -> tuple[Array, Array, Array, Array]:
    """Distances (n,), steps, converged, overflow: `d = min(d, d (min.+) A)` to the end.

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
    return d, steps, still, overflow(OutEdges.of(graph.out), d)
