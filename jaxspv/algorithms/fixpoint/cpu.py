"""A monotone `fixpoint` on a CPU: the elements that changed, one after the other in native loops.

A step is three loops, each of the kind that `native_loops` describes: the elements in the queue
push along their edges into `y`, which holds the identity elsewhere; `update` looks at what was
touched; what changed is written. So the steps are those of `xla.run_dense`, x, iterations and
conditions included, and a step costs in proportion to the edges of its frontier.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ..._core.native_loops import each, is_negative, read, write
from .step import Call, loop_of
from .xla import Loop, State, differs, going, result_of, start_of


class Push(NamedTuple):
    """How edges are relaxed.

    Attributes:
        indptr, indices, data: CSR of A.
        mul: (x, a) -> term.
        combine: the addition of terms.
        dtype: of the terms.
        identity: of the addition, in `dtype`.
        missing: the value of x that passes nothing on.
    """

    indptr: Array
    indices: Array
    data: Array
    mul: Callable[[Array, Array], Array]
    combine: Callable[[Array, Array], Array]
    dtype: Any
    identity: Any
    missing: Any

    @classmethod
    def of(cls, call: Call) -> Push:
        """That of a call."""
        add, graph, x0 = call.semiring.add, call.graph, call.x0

        def mul(x, a):
            return add.admit(call.semiring.mul(x, a))

        dtype = mul(jnp.zeros(1, x0.dtype), jnp.zeros(1, graph.dtype)).dtype
        identity, missing = (add.identity_of(d)[()] for d in (dtype, x0.dtype))
        out = graph.out
        return cls(out.indptr, out.indices, graph.data, mul, add.op, dtype, identity, missing)


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
    loop, push = loop_of(call, at=read), Push.of(call)
    x0, n = loop.x0, loop.x0.shape[0]
    zero = jnp.int32(0)
    missing = jnp.asarray(push.missing, x0.dtype)

    def queued(i, queue, tail):
        return write(queue, tail, i), tail + differs(read(x0, i), missing)

    queue, tail = each(0, n, queued, jnp.zeros(n + 1, jnp.int32), zero)
    first = _Work(
        start_of(loop),
        jnp.full(n, jnp.asarray(push.identity, push.dtype)),
        jnp.full(n, -1, jnp.int32),
        queue,
        tail,
        jnp.zeros(n + 1, jnp.int32),
        jnp.zeros(n + 1, x0.dtype),
    )

    def step(work: _Work) -> _Work:
        state = work.state
        y, marks, touched, count = _pushed(push, work)
        queue, new, tail, changed, moved = _updated(loop, push, work, y, touched, count)

        def settle(c):
            k, x, y, marks = c
            v = read(touched, k)
            x, y = write(x, v, read(new, k)), write(y, v, at_rest)
            return k + 1, x, y, write(marks, v, jnp.int32(-1))

        at_rest = jnp.asarray(push.identity, push.dtype)
        _, x, y, marks = lax.while_loop(lambda c: c[0] < count, settle, (zero, state.x, y, marks))
        state = State(x, state.iterations + 1, moved, changed == 0)
        return _Work(state, y, marks, queue, tail, touched, new)

    end = lax.while_loop(lambda w: going(loop, w.state), step, first)
    return result_of(loop, end.state)


def _pushed(push: Push, work: _Work) -> tuple[Array, Array, Array, Array]:
    """(y, marks, touched, how many): every edge of the queued elements."""
    x = work.state.x

    def edge(c):
        slot, value, y, marks, touched, count = c
        v = read(push.indices, slot)
        new = is_negative(read(marks, v))
        term = push.mul(value, read(push.data, slot)).astype(push.dtype)
        y = write(y, v, push.combine(read(y, v), term).astype(push.dtype))
        touched = write(touched, count, v)
        return slot + 1, value, y, write(marks, v, new), touched, count + new  # read, then written

    def vertex(c):
        k, y, marks, touched, count = c
        u = read(work.queue, k)
        last = read(push.indptr, u + 1)
        start = (read(push.indptr, u), read(x, u), y, marks, touched, count)
        _, _, *rest = lax.while_loop(lambda c: c[0] < last, edge, start)
        return k + 1, *rest

    zero = jnp.int32(0)
    start = (zero, work.y, work.marks, work.touched, zero)
    return lax.while_loop(lambda c: c[0] < work.tail, vertex, start)[1:]


def _updated(loop: Loop, push: Push, work: _Work, y, touched, count) -> tuple[Array, ...]:
    """(queue, new, tail, how many changed, L1 change): `update` of elements that got a term."""
    state = work.state
    wide = state.residual.dtype

    def one(c):
        k, queue, new, tail, changed, moved = c
        v = read(touched, k)
        old = read(state.x, v)
        value = loop.update_at(v, old, read(y, v), state.iterations)
        differ = differs(value, old)
        change = jnp.where(differ, jnp.abs(value.astype(wide) - old.astype(wide)), 0)
        more = differ & differs(value, jnp.asarray(push.missing, value.dtype))
        queue, new = write(queue, tail, v), write(new, k, value)
        return k + 1, queue, new, tail + more, changed + differ, moved + change

    zero = jnp.int32(0)
    start = (zero, work.queue, work.new, zero, zero, jnp.zeros_like(state.residual))
    return lax.while_loop(lambda c: c[0] < count, one, start)[1:]
