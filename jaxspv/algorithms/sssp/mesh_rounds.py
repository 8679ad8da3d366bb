"""Lengths of shortest paths on a sharded graph: who waits near the least is relaxed, then told."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ...algebra.monoids import min_, plus
from ...sharding.exchange import Local, mine
from ..common.frontier import one_of_each
from ..common.mesh.push import relaxed
from ..common.mesh.sparse_frontier import capacity_of, compacted, followed, listed
from .forms import width_over_mean
from .lengths import extend, infinity


class State(NamedTuple):
    """Between steps, on each device: `length` and `waits` of its piece; the rest is common.

    Attributes:
        length: (r,) the best so far.
        waits: (r,) bool, with edges and shorter than when these were relaxed last.
        least: of the lengths of all that wait; infinity: nobody does.
        edges: that leave those that wait, in the dtype of lengths; at most `capacity` + 1.
        steps: int32.
        at: (targets,) lengths of the nodes that `until` waits for.
    """

    length: Array
    waits: Array
    least: Array
    edges: Array
    steps: Array
    at: Array


class _SparseState(NamedTuple):
    """Steps while few edges wait, on each device.

    Attributes:
        state: as between other steps.
        places: (capacity,) int32, those that wait in its piece, then r.
        claims: (r,) int32, scratch.
    """

    state: State
    places: Array
    claims: Array


def width_of(local: Local) -> tuple[Array, Array]:
    """The width of `delta_stepping`, by weights on all devices, and whether one is negative."""
    data = local.block.data
    top = infinity(data.dtype)
    valid = jnp.arange(data.shape[0], dtype=jnp.int32) < local.block.indptr[-1]
    finite = jnp.where(valid & (data < top), data, jnp.zeros((), data.dtype))
    stored = local.block.indptr[-1].astype(jnp.float32)
    below = jnp.any(finite < 0).astype(jnp.float32)
    total, count, negative = local.total(
        jnp.stack([jnp.sum(finite.astype(jnp.float32)), stored, below])
    )
    count = jnp.maximum(count, 1)
    width = total / count * width_over_mean(local.part.n, count, jnp)
    if jnp.issubdtype(data.dtype, jnp.integer):
        width = jnp.maximum(width, 1)
    return width.astype(data.dtype), negative > 0


def lengths_of(
    local: Local, source: Array, until: Any, delta: Any, most: Array, sparing: bool = False
) -> tuple[State, Array]:
    """Each step relaxes who waits within a bucket's width of the least; whether that was the end.

    Where weights are negative all that wait, n times at most: then a negative cycle is reached.
    While those that wait have few edges, these are told as lists, else a length for every place.
    sparing: of memory, as `push.relaxed` is.
    """
    dtype = local.block.data.dtype
    top, r = infinity(dtype), local.part.places
    width, negative = width_of(local)
    width = jnp.where(negative, top, width if delta is None else jnp.asarray(delta, dtype))
    most = jnp.where(negative, jnp.minimum(most, local.part.n), most)
    targets = [] if until is None else [jnp.asarray(t, jnp.int32) for t in until.targets()]
    # The number of edges travels among lengths.
    capacity = capacity_of(local.part, 1) if dtype.itemsize >= 4 else 0
    degrees = local.fold_rows(jnp.diff(local.block.indptr), plus)

    def common(s: State, length, waits, least, degree):
        """The state after a step; what all devices must agree on, in one exchange."""
        at = [jnp.min(jnp.where(mine(local, t), length, top)) for t in targets]
        edges = jnp.minimum(jnp.sum(degree.astype(jnp.float32)), capacity + 1).astype(dtype)
        was_sent = lax.all_gather(jnp.stack([least, *at, edges]), local.part.axes)
        found = jnp.min(was_sent[:, :-1], axis=0)
        edges = jnp.sum(jnp.minimum(was_sent[:, -1], capacity + 1).astype(jnp.float32))
        edges = jnp.minimum(edges, capacity + 1).astype(dtype)
        return State(length, waits, found[0], edges, s.steps + 1, found[1:])

    def stopped(s: State):
        if until is None:
            return jnp.asarray(False)
        reached = [(at < s.least) & ~negative for at in s.at]
        return jnp.asarray(
            until.holds(iteration=s.steps, reached=reached, unchanged=s.least == top)
        )

    def going(s: State):
        return (s.least < top) & (s.steps < most) & ~stopped(s)

    def entered(s: State, length, waits):
        waits &= degrees > 0
        least = jnp.min(jnp.where(waits, length, top))
        return common(s, length, waits, least, jnp.where(waits, degrees, 0))

    def step(s: State):
        active = s.waits & (s.length <= extend(s.least, width))
        lengths = local.along_rows(jnp.where(active, s.length, top))
        new = local.fold_cols(relaxed(local.block, lengths, top, sparing), min_)
        better = new < s.length
        length, waits = jnp.where(better, new, s.length), (s.waits & ~active) | better
        return entered(s, length, waits)

    def few(f: _SparseState):
        s, places, claims = f
        own = s.length.at[places].get(mode="clip")
        active = (places < r) & (own <= extend(s.least, width))
        sent = jnp.where(active, places, r)
        place, came = followed(local, sent, carried=own, travel=extend)
        assert came is not None
        better = (place < r) & (came < s.length.at[place].get(mode="clip"))
        length = s.length.at[jnp.where(better, place, r)].min(came, mode="drop")
        waits = s.waits.at[sent].set(False, mode="drop")
        waits = waits.at[jnp.where(better, place, r)].set(True, mode="drop")
        places = jnp.concatenate([places, place])
        claims, once = one_of_each(claims, places, places < r)
        waiting = once & waits.at[places].get(mode="fill", fill_value=False)
        degree = jnp.where(waiting, degrees.at[places].get(mode="clip"), 0)
        waiting &= degree > 0
        least = jnp.min(jnp.where(waiting, length.at[places].get(mode="clip"), top))
        s = common(s, length, waits, least, degree)
        return _SparseState(s, compacted(places, waiting, capacity, r), claims)

    def sparse_steps(s: State):
        here = listed(local, s.waits, capacity)
        start = _SparseState(s, here, jnp.zeros(r, jnp.int32))
        few_left = lambda f: going(f.state) & (f.state.edges <= capacity)  # noqa: E731
        s = lax.while_loop(few_left, few, start).state
        return s._replace(waits=s.waits & (degrees > 0))

    def some_steps(s: State):
        return lax.cond(s.edges <= capacity, sparse_steps, step, s) if capacity else step(s)

    first = mine(local, source)
    length = jnp.where(first, jnp.zeros((), dtype), top)
    nothing = State(length, first, top, top, jnp.int32(-1), jnp.zeros(0, dtype))
    end = lax.while_loop(going, some_steps, entered(nothing, length, first))
    return end, (end.least == top) | stopped(end)
