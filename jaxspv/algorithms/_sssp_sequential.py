"""Shortest paths one edge at a time: what runs on CPU, where XLA makes native code of such loops.

Label-correcting with buckets, after delta-stepping: a ring (first in, first out) holds the vertices
of the current bucket, `far` the others. All state is told by two arrays and the bound `limit`:

    length[v]   the best length so far
    scanned[v]  the length with which the edges of v were relaxed last
    v waits in the ring  <=>  length[v] <= limit and length[v] < scanned[v]
    v waits in `far`     <=>  limit < length[v] < infinity

so that a vertex is at most once in the ring (capacity n + 1) and is put into `far` at most once
(capacity n); entries of `far` that a shorter path has pulled into the ring are dropped when it is
read next. Lengths only fall and `limit` only rises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ._lengths import after, extend, infinity, wraps
from ._scalar import load, store

UNROLL = 4  # edges looked at together; most improve nothing
SPARSE = 16  # a bucket wider than wanted, where fewer than one in SPARSE far vertices moved
STAYS, NEAR, FAR = (np.int32(k) for k in range(3))  # where a vertex goes


class Graph(NamedTuple):
    """The CSR arrays, at least one slot each."""

    indptr: Array
    indices: Array
    weights: Array


class State(NamedTuple):
    """The labels and the two waiting lists; see the head of this file.

    `label` is `length`, n values, followed by `scanned`, n values. `queue` is the ring, n + 1 slots
    of which [head, tail) wait, followed by `far`, n slots that end at `far_end`. `pred` is the
    vertex that gave each label last, -1 where there is none; None if not asked for.
    """

    label: Array
    queue: Array
    head: Array
    tail: Array
    far_end: Array
    pred: Array | None


def start(graph: Graph, source: Array, predecessors: bool) -> State:
    """Only the source waits; nothing does where it is out of range."""
    n = graph.indptr.shape[0] - 1
    top = infinity(graph.weights.dtype)
    inside = (source >= 0) & (source < n)
    return State(
        label=jnp.where(jnp.arange(2 * n) == jnp.where(inside, source, -1), 0, top),
        queue=jnp.full(2 * n + 1, jnp.where(inside, source, 0), jnp.int32),
        head=jnp.int32(0),
        tail=inside.astype(jnp.int32),
        far_end=jnp.int32(n + 1),
        pred=jnp.full(n, -1, jnp.int32) if predecessors else None,
    )


def _advance(position: Array, n: int) -> Array:
    return jnp.where(position == n, 0, position + 1)


def _append(queue, tail, far_end, vertex, to, n):
    """Puts the vertex at the end of the ring, of `far`, or (it stays) into a free slot."""
    queue = store(queue, jnp.where(to == FAR, far_end, tail), vertex)
    tail = jnp.where(to == NEAR, _advance(tail, n), tail)
    return queue, tail, jnp.where(to == FAR, far_end + 1, far_end)


def drain(graph: Graph, state: State, limit: Array | None, until: Array | None) -> State:
    """Relaxes the edges of the vertices that wait in the ring, and of those put there meanwhile.

    Args:
        limit: lengths above it go to `far`; None: all go to the ring, and weights may be negative.
        until: position in the ring at which to stop; None: when it is empty.
    """
    n = graph.indptr.shape[0] - 1
    top = infinity(graph.weights.dtype)

    def reach(label, u, e):
        # Weights >= 0 need no clamping: a sum that wraps is below `length` and refused.
        length, weight = load(label, u), load(graph.weights, e)
        return extend(length, weight) if limit is None else length + weight

    def scan(c):
        e, end, u, s = c
        take = e >= end
        u = jnp.where(take, load(s.queue, s.head), u)
        head = jnp.where(take, _advance(s.head, n), s.head)
        e = jnp.where(take, load(graph.indptr, u), e)
        end = jnp.where(take, load(graph.indptr, u + 1), end)
        # With a negative loop u may wait again by its second chunk: `scanned` stays as it is then.
        read = u if limit is not None else jnp.where(take, u, u + n)
        label = store(s.label, u + n, load(s.label, read))

        def nothing_to_do(e):
            found = e >= end
            for j in range(UNROLL):
                found |= reach(label, u, e + j) < load(label, load(graph.indices, e + j))
            return ~found

        e = lax.while_loop(nothing_to_do, lambda e: e + UNROLL, e)
        stop = jnp.minimum(e + UNROLL, end)

        def relax(c):
            # Writes what edge e - 1 gave, then looks at edge e; what edge `stop` gives is dropped.
            e, v, value, to, label, queue, tail, far_end, pred = c
            label = store(label, v, jnp.minimum(load(label, v), value))
            queue, tail, far_end = _append(queue, tail, far_end, v, to, n)
            if pred is not None:
                pred = store(pred, v, jnp.where(value < top, u, load(pred, v)))
            v = load(graph.indices, e)
            value, old, scanned = reach(label, u, e), load(label, v), load(label, v + n)
            better = value < old
            if limit is None:
                to = jnp.where(better & (old >= scanned), NEAR, STAYS)
            else:
                better &= value >= load(label, u)
                near = (value <= limit) & ((old > limit) | (old >= scanned))
                far = (value > limit) & (old == top)
                to = jnp.where(better & near, NEAR, jnp.where(better & far, FAR, STAYS))
            return e + 1, v, jnp.where(better, value, top), to, label, queue, tail, far_end, pred

        _, _, _, _, label, queue, tail, far_end, pred = lax.while_loop(
            lambda c: c[0] <= stop, relax,
            (e, u, top, STAYS, label, s.queue, s.tail, s.far_end, s.pred),
        )
        return stop, end, u, State(label, queue, head, tail, far_end, pred)

    def waiting(c):
        e, end, _, s = c
        return (e < end) | (s.head != (s.tail if until is None else until))

    zero = jnp.int32(0)
    return lax.while_loop(waiting, scan, (zero, zero, zero, state))[-1]


def refill(state: State, limit: Array, wider: Array, inert: Array) -> State:
    """Moves the vertices of length in (limit, wider] from `far` to the empty ring.

    `inert` is a vertex of length <= limit: the first "previous entry" of the loop.
    """
    n = state.label.shape[0] // 2

    def move(c):
        i, v, queue, tail, far_end = c
        length = load(state.label, v)
        to = jnp.where(length > wider, FAR, jnp.where(length > limit, NEAR, STAYS))
        queue, tail, far_end = _append(queue, tail, far_end, v, to, n)
        return i + 1, load(queue, i), queue, tail, far_end

    begin = jnp.int32(n + 1)
    _, _, queue, tail, far_end = lax.while_loop(
        lambda c: c[0] <= state.far_end, move, (begin, inert, state.queue, state.tail, begin)
    )
    return state._replace(queue=queue, tail=tail, far_end=far_end)


def _half(width: Array) -> Array:
    return width / 2 if jnp.issubdtype(width.dtype, jnp.floating) else width // 2


def delta_stepping(
    graph: Graph, source: Array, delta: Array, stop: Callable | None, max_steps: Array, parents
) -> tuple[Array, Array, Array]:
    """Lengths, steps, converged, for weights >= 0 (negative ones are ignored).

    The width of a bucket is doubled while few far vertices move, so that reading `far` costs at
    most SPARSE times as much as moving them, whatever the weights, and halved again down to delta.
    """
    n = graph.indptr.shape[0] - 1
    top = infinity(graph.weights.dtype)
    base = jnp.where(delta > 0, delta, top)
    inert = jnp.clip(source, 0, n - 1)

    def waits(s):
        return (s.head != s.tail) | (s.far_end > n + 1)

    def step(c):
        s, limit, width, steps, _ = c
        steps += (s.head != s.tail).astype(jnp.int32)
        s = drain(graph, s, limit, None)
        done = jnp.bool_(False)
        if stop is not None:
            done = stop(steps, s.label[:n], after(limit), s.far_end - (n + 1))
        before = s.far_end
        wider = jnp.where(done, limit, extend(limit, width))
        s = refill(s, limit, wider, inert)
        few = (before - s.far_end) * SPARSE < before - (n + 1)
        width = jnp.where(few, extend(width, width), jnp.maximum(base, _half(width)))
        return s, wider, width, steps, done

    def more(c):
        return waits(c[0]) & ~c[-1] & (c[3] < max_steps)

    first = (start(graph, source, parents), base, base, jnp.int32(0), jnp.bool_(False))
    s, limit, _, steps, stopped = lax.while_loop(more, step, first)
    length = s.label[:n]
    if stop is not None:
        length = jnp.where(stopped & (length > limit), top, length)
    return length, steps, stopped | ~waits(s), s.pred


def bellman_ford(
    graph: Graph, source: Array, stop: Callable | None, max_steps: Array
) -> tuple[Array, Array, Array]:
    """Lengths, steps, converged, for any weights; not converged: a negative cycle, or too few.

    One step scans the vertices that waited at its beginning. After 2, 4, 8, ... steps the graph of
    predecessors is searched for a cycle: it has one soon after labels went around a negative cycle.
    """
    n = graph.indptr.shape[0] - 1
    top = infinity(graph.weights.dtype)
    floor = -top if jnp.issubdtype(top.dtype, jnp.floating) else jnp.iinfo(top.dtype).min

    def step(c):
        s, steps, check, _, _ = c
        s = drain(graph, s, None, s.tail)
        steps += 1
        cycle = lax.cond(steps == check, has_cycle, lambda pred: jnp.bool_(False), s.pred)
        waits = jnp.mod(s.tail - s.head, n + 1)
        done = jnp.bool_(False)
        if stop is not None:
            settled = jnp.where(waits > 0, jnp.asarray(floor, top.dtype), top)
            done = stop(steps, s.label[:n], settled, waits)
        return s, steps, jnp.where(steps == check, 2 * check, check), cycle, done

    def more(c):
        s, steps, _, cycle, done = c
        return (s.head != s.tail) & ~cycle & ~done & (steps < max_steps)

    first = (start(graph, source, True), jnp.int32(0), jnp.int32(2), *[jnp.bool_(False)] * 2)
    s, steps, _, cycle, stopped = lax.while_loop(more, step, first)
    return s.label[:n], steps, (stopped | (s.head == s.tail)) & ~cycle, s.pred


def has_cycle(pred: Array) -> Array:
    """Whether following `pred` (-1: none) from some vertex comes back to it. O(n)."""
    n = pred.shape[0]

    def unseen(v, seen):
        return (v >= 0) & (load(seen, jnp.maximum(v, 0)) < 0)

    def walk_from(c):
        root, seen, _ = c
        v, seen = lax.while_loop(
            lambda c: unseen(*c), lambda c: (load(pred, c[0]), store(c[1], c[0], root)), (root, seen)
        )
        return root + 1, seen, (v >= 0) & (load(seen, jnp.maximum(v, 0)) == root)

    first = (jnp.int32(0), jnp.full(n, -1, jnp.int32), jnp.bool_(False))
    return lax.while_loop(lambda c: (c[0] < n) & ~c[2], walk_from, first)[2]


def clamped(graph: Graph, length: Array) -> Array:
    """Whether a finite sum `length[u] + weight` of some edge does not fit the integer dtype."""
    end = load(graph.indptr, jnp.int32(length.shape[0]))

    def row(c):
        u, _ = c
        stop, length_u = load(graph.indptr, u + 1), load(length, u)

        def edge(c):
            return c[0] + 1, c[1] | wraps(length_u, load(graph.weights, c[0]))

        return u + 1, lax.while_loop(
            lambda c: c[0] < stop, edge, (load(graph.indptr, u), jnp.bool_(False))
        )[1]

    def search(_):
        return lax.while_loop(
            lambda c: (c[0] < length.shape[0]) & ~c[1], row, (jnp.int32(0), jnp.bool_(False))
        )[1]

    top = infinity(length.dtype)
    valid = jnp.arange(graph.weights.shape[0], dtype=jnp.int32) < end
    finite = jnp.where(length < top, length, 0)
    weights = jnp.where(valid & (graph.weights < top), graph.weights, 0)
    near = wraps(jnp.max(finite), jnp.max(weights)) | wraps(jnp.min(finite), jnp.min(weights))
    return lax.cond(near, search, lambda _: jnp.bool_(False), None)
