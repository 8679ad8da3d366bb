"""Delta-stepping on a sharded graph: relax the current bucket, then exchange lengths."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ...algebra.monoids import min_, plus
from ...sharding.exchange import Local, mine
from ..common.frontier import one_of_each
from ..common.mesh import capacity_of, compacted, followed, listed, relaxed
from .forms import width_over_mean
from .xla import extend, infinity


class State(NamedTuple):
    """Between steps, on each device: `length` and `pending` of its vertices; the rest is common.

    Attributes:
        length: (r,) the best so far.
        pending: (r,) bool: has edges, and is shorter than when these were last relaxed.
        least: of the lengths of all pending vertices; infinity: none is pending.
        edges: that leave pending vertices, in the dtype of lengths; at most `capacity` + 1.
        steps: int32.
        at: (targets,) lengths of the target nodes of `until`.
    """

    length: Array
    pending: Array
    least: Array
    edges: Array
    steps: Array
    at: Array


class _SparseState(NamedTuple):
    """Steps while few edges are pending, on each device.

    Attributes:
        state: as between other steps.
        places: (capacity,) int32, the pending vertices of this device, then r.
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
    local: Local, source: Array, until: Any, delta: Any, most: Array, low_memory: bool = False
) -> tuple[State, Array]:
    """Runs delta-stepping; returns the state and whether it converged.

    A step relaxes the pending vertices within a bucket's width of the least length. If a weight is
    negative it relaxes all pending ones, n times at most: after that there is a negative cycle.
    While pending vertices have few edges, lists are exchanged, else the lengths of all vertices.
    low_memory: process the entries in chunks.
    """
    dtype = local.block.data.dtype
    top, r = infinity(dtype), local.part.places
    width, negative = width_of(local)
    width = jnp.where(negative, top, width if delta is None else jnp.asarray(delta, dtype))
    most = jnp.where(negative, jnp.minimum(most, local.part.n), most)
    targets = [] if until is None else [jnp.asarray(t, jnp.int32) for t in until.targets()]
    # The number of edges is sent as one of the lengths, so it needs their dtype to hold it.
    capacity = capacity_of(local.part, 1) if dtype.itemsize >= 4 else 0
    degrees = local.fold_rows(jnp.diff(local.block.indptr), plus)

    def common(s: State, length, pending, least, degree):
        """The state after a step; what all devices must agree on, in one exchange."""
        at = [jnp.min(jnp.where(mine(local, t), length, top)) for t in targets]
        edges = jnp.minimum(jnp.sum(degree.astype(jnp.float32)), capacity + 1).astype(dtype)
        was_sent = lax.all_gather(jnp.stack([least, *at, edges]), local.part.axes)
        found = jnp.min(was_sent[:, :-1], axis=0)
        edges = jnp.sum(jnp.minimum(was_sent[:, -1], capacity + 1).astype(jnp.float32))
        edges = jnp.minimum(edges, capacity + 1).astype(dtype)
        return State(length, pending, found[0], edges, s.steps + 1, found[1:])

    def stopped(s: State):
        if until is None:
            return jnp.asarray(False)
        reached = [(at < s.least) & ~negative for at in s.at]
        return jnp.asarray(
            until.holds(iteration=s.steps, reached=reached, unchanged=s.least == top)
        )

    def going(s: State):
        return (s.least < top) & (s.steps < most) & ~stopped(s)

    def entered(s: State, length, pending):
        pending &= degrees > 0
        least = jnp.min(jnp.where(pending, length, top))
        return common(s, length, pending, least, jnp.where(pending, degrees, 0))

    def step(s: State):
        active = s.pending & (s.length <= extend(s.least, width))
        lengths = local.along_rows(jnp.where(active, s.length, top))
        new = local.fold_cols(relaxed(local.block, lengths, top, low_memory), min_)
        better = new < s.length
        length, pending = jnp.where(better, new, s.length), (s.pending & ~active) | better
        return entered(s, length, pending)

    def sparse_step(f: _SparseState):
        s, places, claims = f
        own = s.length.at[places].get(mode="clip")
        active = (places < r) & (own <= extend(s.least, width))
        sent = jnp.where(active, places, r)
        place, came = followed(local, sent, carried=own, travel=extend)
        assert came is not None
        better = (place < r) & (came < s.length.at[place].get(mode="clip"))
        length = s.length.at[jnp.where(better, place, r)].min(came, mode="drop")
        pending = s.pending.at[sent].set(False, mode="drop")
        pending = pending.at[jnp.where(better, place, r)].set(True, mode="drop")
        places = jnp.concatenate([places, place])
        claims, once = one_of_each(claims, places, places < r)
        again = once & pending.at[places].get(mode="fill", fill_value=False)
        degree = jnp.where(again, degrees.at[places].get(mode="clip"), 0)
        again &= degree > 0
        least = jnp.min(jnp.where(again, length.at[places].get(mode="clip"), top))
        s = common(s, length, pending, least, degree)
        return _SparseState(s, compacted(places, again, capacity, r), claims)

    def sparse_steps(s: State):
        here = listed(local, s.pending, capacity)
        start = _SparseState(s, here, jnp.zeros(r, jnp.int32))
        few_left = lambda f: going(f.state) & (f.state.edges <= capacity)  # noqa: E731
        s = lax.while_loop(few_left, sparse_step, start).state
        return s._replace(pending=s.pending & (degrees > 0))

    def some_steps(s: State):
        return lax.cond(s.edges <= capacity, sparse_steps, step, s) if capacity else step(s)

    first = mine(local, source)
    length = jnp.where(first, jnp.zeros((), dtype), top)
    nothing = State(length, first, top, top, jnp.int32(-1), jnp.zeros(0, dtype))
    end = lax.while_loop(going, some_steps, entered(nothing, length, first))
    return end, (end.least == top) | stopped(end)
