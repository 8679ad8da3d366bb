"""One step of a fixpoint from its arguments: product, totals, update; for both forms and tangents.

`operands` of every function are those of the operation: (semiring, graph, x0, operands, captured,
until), with captured = (of the update, one tuple for each of the sums).
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ...operators import BinaryOp
from ...ops.frame.product import product, safe, take
from ...ops.mxv.spmv import op as spmv_op
from ...semirings import Semiring
from .xla import Loop, Push, differs


def loop_of(semiring, graph, x0, operands, captured, until, *, update, sums, monotone) -> Loop:
    """The loop of a call."""

    def totals(x):
        return totals_of(sums, x, operands, captured)

    def step(old, y, i, totals):
        return update(captured[0], old, y, i, operands, totals)

    def step_at(index, old, y, i):
        def part(v):
            return v if v.ndim == 0 else v[index]

        return update.at([part(c) for c in captured[0]], old, y, i, [part(v) for v in operands], {})

    return Loop(x0, pull_of(semiring, graph, x0, monotone), step, step_at, totals, until, monotone)


def totals_of(sums, x, operands, captured) -> dict[str, Any]:
    """The named sums of a vector."""
    return {
        name: jnp.sum(jnp.broadcast_to(fn(consts, x, *operands), x.shape))
        for (name, fn), consts in zip(sums, captured[1], strict=True)
    }


def pull_of(semiring, graph, x0, monotone):
    """x -> x (add.mul) A, from the in-edges where they are there."""
    missing = semiring.add.identity_of(x0.dtype)[()]
    if monotone and semiring.mul.position is not None:
        return lambda x: _joined(semiring, graph, x, missing)
    if monotone and not _annihilates(semiring, graph.dtype, x0.dtype):
        semiring = _masked(semiring, x0.dtype, graph.dtype, missing)
    layout = graph.layouts.get("fixpoint")
    rows = None if layout is None else layout.rows
    M = graph.out.T if rows is None or graph.inn is None else graph.inn

    def pull(x):
        return spmv_op(semiring, M, x, rows, flip=True)

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


def push_of(semiring, graph, x0, operands, captured, until, *, update, sums, monotone) -> Push:
    """How the frontier form goes along edges."""
    del operands, captured, until, update, sums, monotone

    def mul(x, a):
        return semiring.add.admit(semiring.mul(x, a))

    one = jnp.zeros(1, x0.dtype), jnp.zeros(1, graph.dtype)
    dtype = mul(*one).dtype
    return Push(
        graph.out.indptr,
        graph.out.indices,
        graph.data,
        mul,
        str(semiring.add.atomic(dtype)),
        jnp.int8 if dtype == jnp.bool_ else dtype,
        dtype,
        semiring.add.identity_of(dtype)[()],
        semiring.add.identity_of(x0.dtype)[()],
    )
