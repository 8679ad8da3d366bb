"""A monotone `fixpoint` on a CPU: the elements that changed, one after the other in native loops.

A step is three loops, each of the kind that `native_loops` describes: the elements in the queue
push along their edges into `y`, which holds the identity elsewhere; `update` looks at what was
touched; what changed is written. So the steps are those of `xla.run_dense`, x, iterations and
conditions included, and a step costs in proportion to the edges of its frontier.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ..._core.native_loops import each, is_negative, read, write
from .xla import Call, State, differs


class _Work(NamedTuple):
    """State between steps.

    Attributes:
        state: x and what the last step did.
        y: (n,) what arrived, the identity between steps.
        marks: (n,) int32, not negative where something arrived, -1 between steps.
        queue: (n + 1,) int32; `queue[:tail]` are the elements that changed.
        touched, new: (n + 1,) scratch: where something arrived, and what comes of it.
    """

    state: State
    y: Array
    marks: Array
    queue: Array
    tail: Array
    touched: Array
    new: Array


def run_frontier(call: Call) -> tuple[Array, Array, Array]:
    """x, iterations, and whether the loop stopped for another reason than a bound on them."""
    add, x0, n = call.semiring.add, call.x0, call.graph.n
    zero, missing = jnp.int32(0), jnp.asarray(add.identity_of(x0.dtype)[()])
    term = add.admit(call.semiring.mul(jnp.zeros(1, x0.dtype), jnp.zeros(1, call.graph.dtype)))
    at_rest = jnp.asarray(add.identity_of(term.dtype)[()])

    def queued(i, queue, tail):
        return write(queue, tail, i), tail + differs(read(x0, i), missing)

    queue, tail = each(0, n, queued, jnp.zeros(n + 1, jnp.int32), zero)
    first = _Work(
        State.before(x0),
        jnp.full(n, at_rest),
        jnp.full(n, -1, jnp.int32),
        queue,
        tail,
        jnp.zeros(n + 1, jnp.int32),
        jnp.zeros(n + 1, x0.dtype),
    )

    def step(work: _Work) -> _Work:
        state = work.state
        y, marks, touched, count = _pushed(call, work)
        queue, new, tail, changed, moved = _updated(call, work, y, touched, count, missing)

        def settle(k, x, y, marks):
            v = read(touched, k)
            return write(x, v, read(new, k)), write(y, v, at_rest), write(marks, v, jnp.int32(-1))

        x, y, marks = each(0, count, settle, state.x, y, marks)
        state = State(x, state.iterations + 1, moved, changed == 0)
        return _Work(state, y, marks, queue, tail, touched, new)

    return call.result(lax.while_loop(lambda w: call.going(w.state), step, first).state)


def _pushed(call: Call, work: _Work) -> tuple[Array, Array, Array, Array]:
    """(y, marks, touched, how many): every edge of the queued elements."""
    A, add, x = call.graph.out, call.semiring.add, work.state.x
    dtype = work.y.dtype

    def edge(value, slot, y, marks, touched, count):
        v = read(A.indices, slot)
        new = is_negative(read(marks, v))
        term = add.admit(call.semiring.mul(value, read(A.data, slot))).astype(dtype)
        y = write(y, v, add.op(read(y, v), term).astype(dtype))
        touched = write(touched, count, v)
        return y, write(marks, v, new), touched, count + new  # read, then written

    def vertex(k, *state):
        u = read(work.queue, k)
        ends = read(A.indptr, u), read(A.indptr, u + 1)
        return each(*ends, functools.partial(edge, read(x, u)), *state)

    return each(0, work.tail, vertex, work.y, work.marks, work.touched, jnp.int32(0))


def _updated(call: Call, work: _Work, y, touched, count, missing) -> tuple[Array, ...]:
    """(queue, new, tail, how many changed, L1 change): `update` of elements that got a term."""
    state = work.state
    wide = state.residual.dtype

    def one(k, queue, new, tail, changed, moved):
        v = read(touched, k)
        old = read(state.x, v)

        def part(a):
            return a if a.ndim == 0 else read(a, v)

        consts, operands = ([*map(part, own)] for own in (call.captured[0], call.operands))
        value = call.update.at(consts, old, read(y, v), state.iterations, operands, {})
        differ = differs(value, old)
        change = jnp.where(differ, jnp.abs(value.astype(wide) - old.astype(wide)), 0)
        more = differ & differs(value, missing)
        queue, new = write(queue, tail, v), write(new, k, value)
        return queue, new, tail + more, changed + differ, moved + change

    zero = jnp.int32(0)
    start = (work.queue, work.new, zero, zero, jnp.zeros_like(state.residual))
    return each(0, count, one, *start)
