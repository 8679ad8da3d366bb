"""The outer loop of shortest paths, by buckets or rounds."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from . import xla
from .xla import after, extend, infinity, wraps

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

    first = (xla.start(graph, source, parents), base, base, jnp.int32(0), jnp.bool_(False))
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
    top = infinity(dtype)
    low = -top if jnp.issubdtype(dtype, jnp.floating) else jnp.asarray(jnp.iinfo(dtype).min, dtype)

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

    false = jnp.bool_(False)
    first = (xla.start(graph, source, True), jnp.int32(0), jnp.int32(2), false, false)
    s, steps, _, cycle, stopped = lax.while_loop(more, step, first)
    converged = (stopped | (s.near == 0)) & ~cycle
    return s.length, steps, converged, s.pred if parents else None


def overflow(graph, length) -> Array:
    """Whether a sum was clamped; edges are only checked if the extremes could be clamped."""
    if jnp.issubdtype(length.dtype, jnp.floating):
        return jnp.bool_(False)
    top, zero = infinity(length.dtype), jnp.zeros((), length.dtype)
    valid = jnp.arange(graph.weights.shape[0], dtype=jnp.int32) < graph.indptr[-1]
    finite = jnp.where(length < top, length, zero)
    weights = jnp.where(valid & (graph.weights < top), graph.weights, zero)
    high = wraps(jnp.max(finite), jnp.max(weights))
    low = wraps(jnp.min(finite), jnp.min(weights))
    return lax.cond(high | low, xla.any_wraps, lambda *_: jnp.bool_(False), graph, length)
