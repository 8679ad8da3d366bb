"""`fixpoint` on every platform: a checked call, its step, and the loop over all elements."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pallas_kernels.layouts.lengths import most_rounds

from ..._core.loops import batch_any
from ...algebra.operators import BinaryOp
from ...algebra.semirings import Semiring
from ...graph import Graph
from ...ops.products.common.elementwise import Elementwise
from ...ops.products.common.product import product, safe, take
from ...ops.products.spmv.api import op as spmv_op
from ...until import Until

_LAST = jnp.iinfo(jnp.int32).max


class Call(NamedTuple):
    """A checked call: the operands of the operation, then its static arguments.

    Attributes:
        semiring, graph, x0, operands, until, monotone: as given to `fixpoint`.
        captured: the arrays that `update` captures, and one tuple for each of the sums.
        update: (captured, old, y, i, operands, totals) -> new.
        sums: (name, (captured, x, *operands) -> terms) of each.
    """

    semiring: Semiring
    graph: Graph
    x0: Array
    operands: tuple[Array, ...]
    captured: tuple[Any, ...]
    until: Until
    update: Elementwise
    sums: tuple[tuple[str, Elementwise], ...]
    monotone: bool

    def updated(self, x: Array, y: Array, i: Array) -> Array:
        """The vector after step i, in which y arrived."""
        totals = {
            name: jnp.sum(jnp.broadcast_to(fn(consts, x, *self.operands), x.shape))
            for (name, fn), consts in zip(self.sums, self.captured[1], strict=True)
        }
        return self.update(self.captured[0], x, y, i, self.operands, totals)

    def going(self, state: State) -> Array:
        """Whether there is a step more."""
        most = _LAST if self.until.bounds() else most_rounds(self.graph.n)
        return ~self._holds(self.until, state) & (state.iterations < most)

    def result(self, state: State) -> tuple[Array, Array, Array]:
        """x, iterations, and whether the loop stopped for another reason than a bound on them."""
        return state.x, state.iterations, self._holds(unbounded(self.until), state)

    def _holds(self, until: Until, state: State) -> Array:
        """Whether the loop ends by a condition; a monotone one also where nothing changed."""
        reached = []
        for node in until.targets():
            at = jnp.asarray(node)
            inside = (at >= 0) & (at < self.graph.n)
            at = jnp.where(inside, at, 0)
            reached.append(inside & differs(state.x[at], self.x0[at]))
        facts = {"reached": reached, "unchanged": state.unchanged, "residual": state.residual}
        done = jnp.asarray(until.holds(iteration=state.iterations, **facts))
        return done | state.unchanged if self.monotone else done


class State(NamedTuple):
    """x, the number of steps, and what the last one did: L1 change, whether none changed."""

    x: Array
    iterations: Array
    residual: Array
    unchanged: Array

    @classmethod
    def before(cls, x0: Array) -> State:
        """The state before the first step."""
        infinity = jnp.asarray(jnp.inf, jnp.promote_types(x0.dtype, jnp.float32))
        return cls(x0, jnp.int32(0), infinity, jnp.bool_(False))


def of_call(fn: Callable[[Call], Any]) -> Callable[..., Any]:
    """`fn` as a function of what an `Op` gives its implementations."""

    @functools.wraps(fn)
    def taken(*operands, **static):
        return fn(Call(*operands, **static))

    return taken


def differs(new: Array, old: Array) -> Array:
    """Where two vectors differ; NaN is equal to NaN."""
    return (new != old) & ((new == new) | (old == old))


def distance(new: Array, old: Array) -> Array:
    """The L1 change as a float32 (float64 for float64); equal infinities are no change."""
    dtype = jnp.promote_types(new.dtype, jnp.float32)
    wide = new.astype(dtype) - old.astype(dtype)
    return jnp.sum(jnp.where(differs(new, old), jnp.abs(wide), jnp.zeros((), dtype)))


def unbounded(until: Until) -> Until:
    """The condition with its `max_iterations` never holding."""
    return until.with_bounds([_LAST] * len(until.bounds()))


def run_dense(call: Call) -> tuple[Array, Array, Array]:
    """All elements in every step; under vmap a finished lane stays as it is."""
    pull = pull_of(call)

    def step(state: State) -> State:
        on = call.going(state)
        new = call.updated(state.x, pull(state.x), state.iterations)
        new = jnp.where(on, new, state.x)
        return State(
            new,
            state.iterations + on,
            jnp.where(on, distance(new, state.x), state.residual),
            jnp.where(on, ~jnp.any(differs(new, state.x)), state.unchanged),
        )

    end = lax.while_loop(lambda s: batch_any(call.going(s)), step, State.before(call.x0))
    return call.result(end)


def pull_of(call: Call) -> Callable[[Array], Array]:
    """x -> x (add.mul) A, from the in-edges where they are there."""
    semiring, graph, x0, *_, monotone = call
    missing = semiring.add.identity_of(x0.dtype)[()]
    if monotone and semiring.mul.position is not None:
        return lambda x: _joined(semiring, graph, x, missing)
    if monotone and not _annihilates(semiring, graph.dtype, x0.dtype):
        semiring = _masked(semiring, x0.dtype, graph.dtype, missing)
    known = "fixpoint" in graph.layouts and graph.inn is not None
    M = graph.inn if known else graph.out.T

    def pull(x):
        return spmv_op(semiring, M, x, None, flip=True)

    return pull


def _joined(semiring, graph, x, missing):
    """For positional operators: a term a slot."""
    row, col = graph.out.rowcol()
    valid = row < graph.n
    before = take(x, row)
    terms = product(semiring, safe(graph.data, valid), col, row, before, flip=True)
    live = valid & differs(before, jnp.full_like(before, missing))
    return semiring.add.segment_reduce(terms, jnp.where(live, col, graph.n), graph.n)


def _annihilates(semiring: Semiring, dtype, x_dtype) -> bool:
    """Whether `mul(identity, a)` is the identity for every a of the dtype but NaN."""
    dtype = np.dtype(dtype)
    if dtype != x_dtype:
        return False
    domain = semiring.domain("annihilation", dtype)
    if domain is None:
        return False
    if dtype == np.bool_:
        return True
    if dtype.kind in "iu":
        return domain == (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return domain == (-np.inf, np.inf)


def _masked(semiring: Semiring, x_dtype, dtype, missing) -> Semiring:
    """The semiring with a `mul` that gives the identity where x is missing."""
    y = semiring.add.admit(semiring.mul(jnp.zeros(1, x_dtype), jnp.zeros(1, dtype))).dtype
    identity = semiring.add.identity_of(y)[()]

    def mul(x, a, *params):
        term = semiring.add.admit(semiring.mul.fn(x, a, *params))
        return jnp.where(differs(x, jnp.full_like(x, missing)), term, identity)

    return Semiring(semiring.add, BinaryOp(mul, semiring.mul.name, semiring.mul.params))
