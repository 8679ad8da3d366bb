"""The loops of `fixpoint` on the XLA backend: all elements a step, or those that changed.

A loop is described by `Loop`; both forms carry `State` and stop by the same rule. The frontier form
keeps the elements that changed in a queue, pushes them along their edges in chunks, and combines
what arrives in `y`, which holds the identity everywhere else; a step whose frontier has more than
one in DENSE of the edges takes all of them instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ..._core.batching import batch_any
from ...until import Until
from ..common.frontier import Queue, append, distinct_or_dropped, for_edges, one_of_each

VERTICES, EDGES = 2**10, 2**12  # of a frontier that are expanded together
DENSE = 16
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


def distance(new: Array, old: Array, where: Any = True) -> Array:
    """The L1 change as a float32 (float64 for float64); equal infinities are no change."""
    dtype = jnp.promote_types(new.dtype, jnp.float32)
    wide = new.astype(dtype) - old.astype(dtype)
    return jnp.sum(jnp.where(differs(new, old) & where, jnp.abs(wide), jnp.zeros((), dtype)))


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


class Push(NamedTuple):
    """How the frontier form relaxes edges.

    Attributes:
        indptr, indices, data: CSR of A.
        mul: (x, a) -> term.
        scatter: "min" or "max": what the addition is on `width`.
        width: dtype in which terms are combined (int8 for booleans).
        dtype: dtype of the terms.
        identity: of the addition, in `dtype`.
        missing: the value of x that passes nothing on.
    """

    indptr: Array
    indices: Array
    data: Array
    mul: Callable[[Array, Array], Array]
    scatter: str
    width: Any
    dtype: Any
    identity: Any
    missing: Any


class _Work(NamedTuple):
    """`y` (n,) holds the identity between steps; `queue` the elements that changed.

    `claims`, `touched` and `spare` (n,) are scratch.
    """

    state: State
    y: Array
    claims: Array
    queue: Queue
    touched: Array
    spare: Array


def run_frontier(loop: Loop, push: Push) -> tuple[Array, Array, Array]:
    """The elements that changed are pushed; `update` runs where something arrived."""
    n, nse = loop.x0.shape[0], push.indices.shape[0]
    y = jnp.full(n, jnp.asarray(push.identity, push.width))
    present = differs(loop.x0, jnp.full_like(loop.x0, push.missing))
    scratch = [jnp.zeros(n, jnp.int32) for _ in range(3)]
    first = _Work(start_of(loop), y, scratch[0], queue_of(present), *scratch[1:])

    degree = jnp.diff(push.indptr)
    place = jnp.arange(n, dtype=jnp.int32)

    def sparse(work: _Work) -> Array:
        queue = work.queue

        def few(_):
            capacity = min(n, VERTICES)
            vertices = queue.window(capacity)
            small = jnp.sum(jnp.where(place[:capacity] < queue.tail, degree[vertices], 0))
            return small * DENSE <= nse

        def many(_):
            inside = place < queue.tail
            total = jnp.sum(jnp.where(inside, degree[queue.items], 0).astype(jnp.float32))
            return total * DENSE <= nse

        return lax.cond(queue.tail <= VERTICES, few, many, None)

    def step(work: _Work) -> _Work:  # loops work in place, a `cond` would copy what it is given
        work = lax.while_loop(
            lambda w: going(loop, w.state) & sparse(w), lambda w: _pushed(loop, push, w), work
        )
        return lax.while_loop(
            lambda w: going(loop, w.state) & ~sparse(w), lambda w: _pulled(loop, push, w), work
        )

    work = lax.while_loop(lambda w: going(loop, w.state), step, first)
    return result_of(loop, work.state)


def queue_of(flags: Array) -> Queue:
    """The elements that are flagged."""
    n = flags.shape[0]
    place = jnp.cumsum(flags, dtype=jnp.int32)
    index = distinct_or_dropped(place - 1, flags, n)
    items = (
        jnp.zeros(n, jnp.int32)
        .at[index]
        .set(jnp.arange(n, dtype=jnp.int32), mode="drop", unique_indices=True)
    )
    return Queue(items, jnp.int32(0), place[-1])


def _pulled(loop: Loop, push: Push, work: _Work) -> _Work:
    """A step over all elements."""
    old = work.state
    new = loop.update(old.x, loop.pull(old.x), old.iterations, {})
    changed = differs(new, old.x)
    state = State(new, old.iterations + 1, distance(new, old.x), ~jnp.any(changed))
    present = differs(new, jnp.full_like(new, push.missing))
    return work._replace(state=state, queue=queue_of(changed & present))


def _pushed(loop: Loop, push: Push, work: _Work) -> _Work:
    """A step over the frontier."""
    x, n = work.state.x, work.state.x.shape[0]
    zero = jnp.int32(0)
    at_rest = jnp.asarray(push.identity, push.width)

    def visit(carry, edges):
        y, claims, touched = carry
        v = jnp.where(edges.valid, push.indices.at[edges.slot].get(mode="clip"), 0)
        term = push.mul(x[edges.tail], push.data.at[edges.slot].get(mode="clip"))
        term = jnp.where(edges.valid, term.astype(push.width), at_rest)
        before = y[v]
        y = getattr(y.at[jnp.where(edges.valid, v, n)], push.scatter)(term, mode="drop")
        # an element enters the list when its y first leaves the identity
        claims, one = one_of_each(claims, v, edges.valid & (before == at_rest) & (y[v] != at_rest))
        return y, claims, append(touched, v, one)

    touched = Queue(work.touched, zero, zero)
    nse = push.indices.shape[0]
    carry = (work.y, work.claims, touched)
    y, claims, touched = for_edges(
        push.indptr, nse, work.queue, carry, visit, together=(VERTICES, EDGES)
    )

    def settle(carry):
        first, x, y, queue, moved = carry
        block = min(n, VERTICES)
        v = touched._replace(head=first).window(block)
        valid = first + jnp.arange(block, dtype=jnp.int32) < touched.tail
        old = x[v]
        new = loop.update_at(v, old, y[v].astype(push.dtype), work.state.iterations)
        changed = valid & differs(new, old)
        index = distinct_or_dropped(v, valid, n)
        x = x.at[index].set(new, mode="drop", unique_indices=True)
        y = y.at[index].set(at_rest, mode="drop", unique_indices=True)
        queue = append(queue, v, changed & differs(new, jnp.full_like(new, push.missing)))
        return first + block, x, y, queue, moved + distance(new, old, valid)

    start = (zero, x, y, Queue(work.spare, zero, zero), jnp.zeros_like(work.state.residual))
    _, x, y, queue, moved = lax.while_loop(lambda c: c[0] < touched.tail, settle, start)
    state = State(x, work.state.iterations + 1, moved, queue.tail == 0)
    return _Work(state, y, claims, queue, touched.items, work.queue.items)
