"""Shortest paths a frontier at a time: label-correcting with buckets, after delta-stepping.

A ring holds the vertices of the current bucket, `beyond` the others. The state is two numbers of
each vertex and the upper bound `limit` of the current bucket:

    length[v]   the best length so far
    scanned[v]  the length with which the edges of v were relaxed last
    v is in the ring    <=>  length[v] <= limit and length[v] < scanned[v]
    v is in `beyond`    <=>  limit < length[v] < infinity

so that a vertex is at most once in each; entries of `beyond` that a shorter path has pulled into
the ring are dropped when it is read next. Lengths only fall and `limit` only rises. All vertices of
the ring are scanned together, in chunks of edges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.batching import while_loop
from ...algebra.operators import min_extend
from ...formats import CSR
from ..common import frontier
from ..common.frontier import Edges, Queue, append, distinct_or_dropped, one_of_each


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


def after(length: Array) -> Array:
    """The next larger length: every length <= `length` is below it; infinity stays."""
    top = infinity(length.dtype)
    if jnp.issubdtype(length.dtype, jnp.floating):
        return jnp.nextafter(length, top)
    return jnp.where(length == top, top, length + jnp.ones((), length.dtype))


WORSE, WAITS, NEAR, FAR = (np.uint32(k) for k in range(4))  # what an edge did to its vertex


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
    """Labels, (n,) each, and lists: `ring` holds this bucket's vertices, `beyond` the later ones.

    `claims` (n,) is scratch; `pred` the vertex that gave each label last, -1 where there is none,
    or None where it is not asked for.
    """

    length: Array
    scanned: Array
    ring: Queue
    beyond: Queue
    claims: Array
    pred: Array | None

    @property
    def near(self) -> Array:
        """The number of vertices in the ring."""
        return self.ring.tail

    @property
    def far(self) -> Array:
        """How many entries `beyond` has."""
        return self.beyond.tail


def _empty(n: int) -> Queue:
    return Queue(jnp.zeros(n, jnp.int32), jnp.int32(0), jnp.int32(0))


def start(graph: OutEdges, source: Array, predecessors: bool) -> State:
    """The source is in the ring; nothing is if it is out of range."""
    n = graph.n
    top = infinity(graph.weights.dtype)
    inside = ((source >= 0) & (source < n)).astype(jnp.int32)
    ring = Queue(jnp.full(n, source, jnp.int32), jnp.int32(0), inside)
    at_source = jnp.arange(n, dtype=jnp.int32) == source
    length = jnp.where(at_source, jnp.zeros_like(top), top)
    pred = jnp.full(n, -1, jnp.int32) if predecessors else None
    return State(length, jnp.full(n, top), ring, _empty(n), jnp.zeros(n, jnp.int32), pred)


def for_edges(graph: OutEdges, ring: Queue, carry, visit, begin=None):
    """`carry = visit(carry, edges)` over the edges of the vertices of the ring."""
    return frontier.for_edges(graph.indptr, graph.indices.shape[0], ring, carry, visit, begin)


def tree_edges(
    graph: OutEdges, roots: Array, counts: Callable[[Edges, Array], Array]
) -> tuple[Array, Array]:
    """(n,) slots and tails of the edges of a breadth-first forest from the roots (n,) bool.

    counts: (edges, their heads) -> which of them may be taken. Of those into a vertex the first one
    from the level before; along it the number of edges rises, so cycles of such edges do no harm.
    (nse, n) for a root and what is not reached.
    """
    n, nse = graph.n, graph.indices.shape[0]
    queue = append(_empty(n), jnp.arange(n, dtype=jnp.int32), roots)
    hops = jnp.where(roots, 0, n).astype(jnp.int32)  # n: unknown

    def level(c):
        depth, queue, *rest = c

        def visit(c, edges: Edges):
            queue, hops, slots, claims = c
            v = jnp.where(edges.valid, graph.indices.at[edges.slot].get(mode="clip"), 0)
            good = edges.valid & (hops[v] > depth) & counts(edges, v)
            claims, new = one_of_each(claims, v, good & (hops[v] == n))
            at = jnp.where(good, v, n)
            slots = slots.at[at].min(edges.slot, mode="drop")
            hops = hops.at[at].set(depth + 1, mode="drop")
            return append(queue, v, new), hops, slots, claims

        carry = for_edges(graph, queue, (queue, *rest), visit)
        return depth + 1, carry[0]._replace(head=queue.tail), *carry[1:]

    slots = jnp.full(n, nse, jnp.int32)
    start = (jnp.int32(0), queue, hops, slots, jnp.zeros(n, jnp.int32))
    slots = while_loop(lambda c: c[1].head < c[1].tail, level, start)[3]
    return slots, jnp.where(slots < nse, _row_of(graph, slots), n)


def _row_of(graph: OutEdges, slot: Array) -> Array:
    return jnp.searchsorted(graph.indptr, slot, side="right").astype(jnp.int32) - 1


def drain(graph: OutEdges, state: State, limit: Array | None) -> State:
    """One step: relaxes the edges of the vertices in the ring.

    With a `limit` in rounds until it is empty: lengths above it go to `beyond`, and edges of
    negative weight are ignored. With None all go to the ring for the next step, and weights may be
    negative.
    """
    if limit is None:
        return _round(graph, state, None)
    return lax.while_loop(lambda s: s.near > 0, lambda s: _round(graph, s, limit), state)


def _round(graph: OutEdges, state: State, limit: Array | None) -> State:
    """Relaxes the edges of the vertices in the ring; the next ring is what they improved."""
    n = graph.n

    def begin(s: State, vertices, valid):
        index = distinct_or_dropped(vertices, valid, n)
        scanned = s.scanned.at[index].set(s.length[vertices], mode="drop", unique_indices=True)
        return s._replace(scanned=scanned)

    def visit(s: State, edges: Edges):
        v, weight = _ends(graph, edges)
        length_u, old = s.length[edges.tail], s.length[v]
        value = extend(length_u, weight) if limit is None else length_u + weight
        to = effect(value, length_u, old, s.scanned[v], limit)
        better = edges.valid & (to != WORSE)
        length = s.length.at[jnp.where(better, v, n)].min(value, mode="drop")
        claims, keep = one_of_each(s.claims, v, better & (length[v] == value))
        pred = s.pred
        if pred is not None:
            index = distinct_or_dropped(v, keep, n)
            pred = pred.at[index].set(edges.tail, mode="drop", unique_indices=True)
        ring = append(s.ring, v, keep & (to == NEAR))
        beyond = s.beyond if limit is None else append(s.beyond, v, keep & (to == FAR))
        return State(length, s.scanned, ring, beyond, claims, pred)

    return for_edges(graph, state.ring, state._replace(ring=_empty(n)), visit, begin)


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


def _ends(graph: OutEdges, edges: Edges) -> tuple[Array, Array]:
    """Head and weight of edges; any value where they are not valid."""
    v = graph.indices.at[edges.slot].get(mode="clip")
    return jnp.where(edges.valid, v, 0), graph.weights.at[edges.slot].get(mode="clip")


def refill(state: State, limit: Array, wider: Array) -> State:
    """Moves the vertices of length in (limit, wider] from `beyond` to the empty ring."""
    block = min(state.length.shape[0], frontier.sizes()[0])
    old = state.beyond

    def move(c):
        first, ring, beyond = c
        vertices = beyond._replace(head=first).window(block)
        valid = first + jnp.arange(block, dtype=jnp.int32) < old.tail
        length = state.length[vertices]
        ring = append(ring, vertices, valid & (length > limit) & (length <= wider))
        return first + block, ring, append(beyond, vertices, valid & (length > wider))

    first = (jnp.int32(0), state.ring, old._replace(tail=jnp.int32(0)))
    _, ring, beyond = lax.while_loop(lambda c: c[0] < old.tail, move, first)
    return state._replace(ring=ring, beyond=beyond)


def has_cycle(pred: Array) -> Array:
    """Whether following `pred` (-1: none) from some vertex never ends: pointer doubling."""
    n = pred.shape[0]
    jump = jnp.append(jnp.where(pred < 0, n, pred), n)
    jump = lax.fori_loop(0, n.bit_length(), lambda _, jump: jump[jump], jump)
    return jnp.any(jump < n)


def any_spoiled(graph: OutEdges, length: Array) -> Array:
    """Whether an edge spoils a length: see `spoiled`."""
    slot = jnp.arange(graph.indices.shape[0], dtype=jnp.int32)
    valid = slot < graph.indptr[-1]
    u = jnp.where(valid, _row_of(graph, slot), 0)
    return jnp.any(valid & spoiled(length[u], graph.weights, length[graph.indices]))
