"""Shortest paths one edge at a time: the form for CPU, where XLA makes native code of the loops.

Label-correcting with buckets, after delta-stepping: a ring (first in, first out) holds the vertices
of the current bucket, `far` the others. The state is two numbers of each vertex and the upper
bound `limit` of the current bucket:

    length[v]   the best length so far
    scanned[v]  the length with which the edges of v were relaxed last
    v is in the ring  <=>  length[v] <= limit and length[v] < scanned[v]
    v is in `far`     <=>  limit < length[v] < infinity

so that a vertex is at most once in the ring (capacity n + 1) and is put into `far` at most once
(capacity n); entries of `far` that a shorter path has pulled into the ring are dropped when `far`
is read next. Lengths only fall and `limit` only rises.

Each loop is of the kind that `native_loops` describes. The outermost one in `drain` is near the
bound of 1024 bytes, where every array that it carries counts 24: one more, and it is ten times
slower.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.native_loops import read, write
from .lengths import extend, infinity, wraps

UNROLL = 4  # edges looked at together; most improve nothing
WORSE, WAITS, NEAR, FAR = (np.uint32(k) for k in range(4))  # what an edge did to its vertex


class OutEdges(NamedTuple):
    """CSR arrays: (n + 1,) and (nse,) int32, (nse,) weights; n >= 1, nse >= 1."""

    indptr: Array
    indices: Array
    weights: Array

    @property
    def n(self) -> int:
        return self.indptr.shape[0] - 1


class State(NamedTuple):
    """The labels and the two lists of vertices; see the docstring of this file.

    `label` is `length`, n values, followed by `scanned`, n values. `queue` is the ring, n + 1 slots
    of which [head, tail) are used, followed by `far`, n slots that end at `far_end`. `pred` is the
    vertex that gave each label last, -1 where there is none, or None where it is not asked for.
    """

    label: Array
    queue: Array
    head: Array
    tail: Array
    far_end: Array
    pred: Array | None

    @property
    def n(self) -> int:
        return self.label.shape[0] // 2

    @property
    def length(self) -> Array:
        return self.label[: self.n]

    @property
    def near(self) -> Array:
        """The number of vertices in the ring."""
        return jnp.mod(self.tail - self.head, self.n + 1)

    @property
    def far(self) -> Array:
        """How many entries `far` has."""
        return self.far_end - (self.n + 1)


def start(graph: OutEdges, source: Array, predecessors: bool) -> State:
    """The source is in the ring; nothing is if it is out of range."""
    n = graph.n
    top = infinity(graph.weights.dtype)
    inside = (source >= 0) & (source < n)
    at_source = jnp.arange(2 * n, dtype=jnp.int32) == jnp.where(inside, source, -1)
    return State(
        label=jnp.where(at_source, jnp.zeros_like(top), top),
        queue=jnp.full(2 * n + 1, jnp.where(inside, source, 0), jnp.int32),
        head=jnp.int32(0),
        tail=inside.astype(jnp.int32),
        far_end=jnp.int32(n + 1),
        pred=jnp.full(n, -1, jnp.int32) if predecessors else None,
    )


def once(value: Array) -> Array:
    """A small uint32, computed once however many use it: XLA does not repeat a division."""
    return lax.div(value * np.uint32(3), np.uint32(3))


def _advance(position: Array, n: int) -> Array:
    return jnp.where(position == n, 0, position + 1)


def _append(queue, tail, far_end, vertex, to, n):
    """Puts the vertex at the end of the ring, of `far`, or (neither) into a free slot."""
    queue = write(queue, jnp.where(to == FAR, far_end, tail), vertex)
    tail = jnp.where(to == NEAR, _advance(tail, n), tail)
    return queue, tail, jnp.where(to == FAR, far_end + 1, far_end)


def drain(graph: OutEdges, state: State, limit: Array | None) -> State:
    """One step: relaxes the edges of the vertices in the ring.

    With a `limit` also those of the vertices that come to the ring meanwhile; lengths above it go
    to `far`, and edges of negative weight are ignored. With None all go to the ring for the next
    step, and weights may be negative.
    """
    n = graph.n
    until = state.tail if limit is None else None

    def reach(length, e):
        # Weights >= 0 need no clamping: a sum that wraps is below `length` and refused.
        weight = read(graph.weights, e)
        return extend(length, weight) if limit is None else length + weight

    def scan(c):
        e, end, u, s = c
        take = e >= end
        u = jnp.where(take, read(s.queue, s.head), u)
        head = jnp.where(take, _advance(s.head, n), s.head)
        e = jnp.where(take, read(graph.indptr, u), e)
        end = jnp.where(take, read(graph.indptr, u + 1), end)
        # A negative loop may put u into the ring again before its second chunk: `scanned` stays.
        source = u if limit is not None else jnp.where(take, u, u + n)
        label = write(s.label, u + n, read(s.label, source))
        length = read(label, u + n)

        def nothing_to_do(e):
            found = e >= end
            for j in range(UNROLL):
                found |= reach(length, e + j) < read(label, read(graph.indices, e + j))
            return ~found

        e = lax.while_loop(nothing_to_do, lambda e: e + UNROLL, e)
        stop = jnp.minimum(e + UNROLL, end)

        def relax(c):
            e, label, queue, tail, far_end, pred = c
            v, value = read(graph.indices, e), reach(length, e)
            to = once(effect(value, length, read(label, v), read(label, v + n), limit))
            label = write(label, v, jnp.where(to == WORSE, read(label, v), value))
            if pred is not None:
                pred = write(pred, v, jnp.where(to == WORSE, read(pred, v), u))
            return e + 1, label, *_append(queue, tail, far_end, v, to, n), pred

        _, label, queue, tail, far_end, pred = lax.while_loop(
            lambda c: c[0] < stop, relax, (e, label, s.queue, s.tail, s.far_end, s.pred)
        )
        return stop, end, u, State(label, queue, head, tail, far_end, pred)

    def waiting(c):
        e, end, _, s = c
        return (e < end) | (s.head != (s.tail if until is None else until))

    zero = jnp.int32(0)
    return lax.while_loop(waiting, scan, (zero, zero, zero, state))[-1]


def effect(value, length_u, old, scanned, limit):
    """The action on a vertex of length `old` of a path of length `value` via one of `length_u`."""
    better = value < old
    if limit is None:
        return jnp.where(better, jnp.where(old >= scanned, NEAR, WAITS), WORSE)
    better &= value >= length_u
    near = (value <= limit) & ((old > limit) | (old >= scanned))
    far = (value > limit) & (old == infinity(old.dtype))
    to = jnp.where(near, NEAR, jnp.where(far, FAR, WAITS))
    return jnp.where(better, to, WORSE)


def refill(state: State, limit: Array, wider: Array, source: Array) -> State:
    """Moves the vertices of length in (limit, wider] from `far` to the empty ring.

    What an entry does is written by the next iteration, which begins with the source: its length
    is not above the limit, so it goes nowhere.
    """
    n = state.n

    def move(c):
        i, v, queue, tail, far_end = c
        length = read(state.label, v)
        to = jnp.where(length > wider, FAR, jnp.where(length > limit, NEAR, WAITS))
        queue, tail, far_end = _append(queue, tail, far_end, v, to, n)
        return i + 1, read(queue, i), queue, tail, far_end

    begin = jnp.int32(n + 1)
    _, _, queue, tail, far_end = lax.while_loop(
        lambda c: c[0] <= state.far_end,
        move,
        (begin, jnp.clip(source, 0, n - 1), state.queue, state.tail, begin),
    )
    return state._replace(queue=queue, tail=tail, far_end=far_end)


def has_cycle(pred: Array) -> Array:
    """Whether following `pred` (-1: none) from some vertex comes back to it. O(n)."""
    n = pred.shape[0]

    def unseen(v, seen):
        return (v >= 0) & (read(seen, jnp.maximum(v, 0)) < 0)

    def walk_from(c):
        root, seen, _ = c
        v, seen = lax.while_loop(
            lambda c: unseen(*c),
            lambda c: (read(pred, c[0]), write(c[1], c[0], root)),
            (root, seen),
        )
        return root + 1, seen, (v >= 0) & (read(seen, jnp.maximum(v, 0)) == root)

    first = (jnp.int32(0), jnp.full(n, -1, jnp.int32), jnp.bool_(False))
    return lax.while_loop(lambda c: (c[0] < n) & ~c[2], walk_from, first)[2]


def any_wraps(graph: OutEdges, length: Array) -> Array:
    """Whether `length[u] + weight` of some edge of a reached vertex is clamped. O(edges)."""

    def row(c):
        u, _ = c
        stop, length_u = read(graph.indptr, u + 1), read(length, u)

        def edge(c):
            return c[0] + 1, c[1] | wraps(length_u, read(graph.weights, c[0]))

        first = (read(graph.indptr, u), jnp.bool_(False))
        return u + 1, lax.while_loop(lambda c: c[0] < stop, edge, first)[1]

    first = (jnp.int32(0), jnp.bool_(False))
    return lax.while_loop(lambda c: (c[0] < graph.n) & ~c[1], row, first)[1]
