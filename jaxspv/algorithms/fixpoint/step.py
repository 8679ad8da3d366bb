"""One step of a fixpoint from its arguments: product, totals, update; for both forms and
tangents."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from pallas_kernels.sssp.widths import most_rounds

from ...algebra.operators import BinaryOp
from ...algebra.semirings import Semiring
from ...graph import Graph
from ...ops.products.common.elementwise import Elementwise
from ...ops.products.common.product import product, safe, take
from ...ops.products.spmv.api import op as spmv_op
from ...until import Until
from .xla import Loop, differs


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


def of_call(fn: Callable[[Call], Any]) -> Callable[..., Any]:
    """`fn` as a function of what an `Op` gives its implementations."""

    @functools.wraps(fn)
    def taken(*operands, **static):
        return fn(Call(*operands, **static))

    return taken


def loop_of(call: Call, at: Callable[[Array, Array], Array] = operator.getitem) -> Loop:
    """The loop of a call; `at(array, index)` gives the elements that `update_at` asks for."""

    def step(old, y, i, totals):
        return call.update(call.captured[0], old, y, i, call.operands, totals)

    def step_at(index, old, y, i):
        def part(v):
            return v if v.ndim == 0 else at(v, index)

        consts, operands = ([part(v) for v in vs] for vs in (call.captured[0], call.operands))
        return call.update.at(consts, old, y, i, operands, {})

    most = jnp.iinfo(jnp.int32).max if call.until.bounds() else most_rounds(call.graph.n)
    totals = functools.partial(totals_of, call)
    return Loop(call.x0, pull_of(call), step, step_at, totals, call.until, call.monotone, most)


def totals_of(call: Call, x: Array) -> dict[str, Any]:
    """The named sums of a vector."""
    return {
        name: jnp.sum(jnp.broadcast_to(fn(consts, x, *call.operands), x.shape))
        for (name, fn), consts in zip(call.sums, call.captured[1], strict=True)
    }


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
