"""The loop of `fixpoint` on every platform: all elements in a step, described by `Loop`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ..._core.loops import batch_any
from ...until import Until

_LAST = jnp.iinfo(jnp.int32).max


class Loop(NamedTuple):
    """The functions and operands of a step.

    Attributes:
        x0: (n,) the start.
        pull: x -> y, (n,) each.
        update: (old, y, i, sums) -> new, (n,) each.
        update_at: the same with a slice of the element-wise operands: (index, old, y, i) -> new.
        totals: x -> dict of scalars.
        until: when to stop.
        monotone: a step that changes nothing ends the loop whatever `until` says.
        most: steps at most, whatever `until` says.
    """

    x0: Array
    pull: Callable[[Array], Array]
    update: Callable[..., Array]
    update_at: Callable[..., Array]
    totals: Callable[[Array], dict[str, Array]]
    until: Until
    monotone: bool
    most: int


class State(NamedTuple):
    """x, the number of steps, and what the last one did: L1 change, whether none changed."""

    x: Array
    iterations: Array
    residual: Array
    unchanged: Array


def differs(new: Array, old: Array) -> Array:
    """Where two vectors differ; NaN is equal to NaN."""
    return (new != old) & ((new == new) | (old == old))


def distance(new: Array, old: Array) -> Array:
    """The L1 change as a float32 (float64 for float64); equal infinities are no change."""
    dtype = jnp.promote_types(new.dtype, jnp.float32)
    wide = new.astype(dtype) - old.astype(dtype)
    return jnp.sum(jnp.where(differs(new, old), jnp.abs(wide), jnp.zeros((), dtype)))


def start_of(loop: Loop) -> State:
    """Before the first step."""
    dtype = jnp.promote_types(loop.x0.dtype, jnp.float32)
    infinity = jnp.asarray(jnp.inf, dtype)
    return State(loop.x0, jnp.int32(0), infinity, jnp.bool_(False))


def _holds(loop: Loop, state: State, *, bounded: bool = True) -> Array:
    """Whether `until` holds; not `bounded`: as if `max_iterations` never did."""
    n = loop.x0.shape[0]
    reached = []
    for node in loop.until.targets():
        at = jnp.asarray(node)
        inside = (at >= 0) & (at < n)
        at = jnp.where(inside, at, 0)
        reached.append(inside & differs(state.x[at], loop.x0[at]))
    facts = {"reached": reached, "unchanged": state.unchanged, "residual": state.residual}
    until = loop.until if bounded else unbounded(loop.until)
    done = jnp.asarray(until.holds(iteration=state.iterations, **facts))
    return done | state.unchanged if loop.monotone else done


def unbounded(until: Until) -> Until:
    """The condition with its `max_iterations` never holding."""
    return until.with_bounds([_LAST] * len(until.bounds()))


def going(loop: Loop, state: State) -> Array:
    """Whether there is a step more."""
    return ~_holds(loop, state) & (state.iterations < loop.most)


def result_of(loop: Loop, state: State) -> tuple[Array, Array, Array]:
    """x, iterations, and whether the loop stopped for another reason than a bound on them."""
    return state.x, state.iterations, _holds(loop, state, bounded=False)


def run_dense(loop: Loop) -> tuple[Array, Array, Array]:
    """All elements in every step; under vmap a finished lane stays as it is."""

    def step(state: State) -> State:
        on = going(loop, state)
        new = loop.update(state.x, loop.pull(state.x), state.iterations, loop.totals(state.x))
        new = jnp.where(on, new, state.x)
        return State(
            new,
            state.iterations + on,
            jnp.where(on, distance(new, state.x), state.residual),
            jnp.where(on, ~jnp.any(differs(new, state.x)), state.unchanged),
        )

    end = lax.while_loop(lambda s: batch_any(going(loop, s)), step, start_of(loop))
    return result_of(loop, end)
