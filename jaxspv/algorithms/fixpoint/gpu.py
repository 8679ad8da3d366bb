"""`fixpoint` in one launch on NVIDIA GPUs: changed elements push, or all are computed."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from pallas_kernels.fixpoint.pull import Steps, fixpoint_dense
from pallas_kernels.fixpoint.push import DTYPES, ORDERS
from pallas_kernels.fixpoint.push import fixpoint_push as kernel
from pallas_kernels.layouts.lengths import most_rounds
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring
from pallas_kernels.simt.scalar_jaxpr import refuse as refuse_scalar
from pallas_kernels.simt.scalar_jaxpr import trace as trace_scalar

from ...algebra import operators
from ...ops.products.common.elementwise import trace
from ...ops.products.common.product import no_plain_product
from ..common.edges import beyond_places
from .api import Fixpoint, finite, op, vectors_vectorised
from .layout import NUMBERS
from .xla import Call, differs, of_call, unbounded

_SUMS = (operators.min_extend, lambda x, a: x + a, lambda x, a: a + x)

# ---- Changed elements push ----


@of_call
def not_persistent(call: Call) -> str | None:
    """Why the kernel cannot run."""
    semiring, graph, x0, *_ = call
    if not call.monotone:
        return "the loop is not declared monotone"
    if call.until.kind != "unchanged":
        return "the kernel runs to the end: no other `until` than `unchanged()`"
    if graph.n == 0 or graph.nse == 0:
        return "there is nothing to traverse"
    if reason := beyond_places(graph):
        return reason
    if x0.dtype.name not in DTYPES or semiring.add.atomic(x0.dtype) not in ORDERS:
        return f"the monoid `{semiring.add.name}` on {x0.dtype} is no order of the kernel"
    if reason := no_plain_product(semiring):
        return reason
    if graph.dtype.name not in DTYPES:
        return f"the kernel takes weights of {', '.join(DTYPES)}, not {graph.dtype}"
    mul = _extend(semiring)
    zeros = (jax.ShapeDtypeStruct((), d) for d in (x0.dtype, graph.dtype))
    if jax.eval_shape(mul, *zeros).dtype != x0.dtype:
        return "`mul` changes the dtype"
    reason = refuse_scalar(mul, x0.dtype, graph.dtype)
    if reason is not None:
        return f"`{semiring.mul.name}`: {reason}"
    if not _is_addition(call):
        return (
            "`update` is more than the addition of old and y, which the kernel combines by atomics"
        )
    return None


def _extend(semiring):
    def mul(x, a):
        return semiring.add.admit(semiring.mul(x, a))

    return mul


def _is_addition(call: Call) -> bool:
    """Whether the traced update is `add(old, y)` or `add(y, old)`."""
    semiring, _, x0, operands, *_ = call
    if call.sums:
        return False
    like = jax.ShapeDtypeStruct(x0.shape, x0.dtype)
    add = semiring.add.op
    plain = (lambda old, y, *_: add(old, y), lambda old, y, *_: add(y, old))
    same = [trace(fn, like, like, jnp.int32(0), *operands, {})[0] for fn in plain]
    return any(call.update == other for other in same)


def _is_sum(call: Call) -> bool:
    """Whether the traced `mul` is an addition, so that paths have lengths that buckets sort."""
    like = jax.ShapeDtypeStruct((), call.x0.dtype)
    mul, *sums = (trace(fn, like, like)[0] for fn in (call.semiring.mul, *_SUMS))
    return mul in sums


@op.register("frontier", backend="pallas", refuse=not_persistent, batched=vectors_vectorised)
@of_call
def persistent(call: Call) -> Fixpoint:
    """The whole loop in one launch: changed elements are pushed without a barrier for rounds."""
    semiring, graph, x0, *_ = call
    own = graph.layouts.get("fixpoint")
    layout = (own and own.push) or graph.layouts.get("sssp", {})
    out, add, delta = graph.out, str(semiring.add.atomic(x0.dtype)), None
    width = layout["widths"].kernel if "widths" in layout else None  # none: a weight is negative
    if width is not None and add == "min" and graph.dtype == x0.dtype and _is_sum(call):
        delta = jnp.where(jnp.any(x0 < 0), semiring.add.identity_of(x0.dtype)[()], width)
    x, rounds, status = kernel(
        (out.indptr, out.indices, out.data),
        x0,
        add=add,
        mul=_extend(semiring),
        delta=delta,
        prepared=layout.get("pallas"),
    )
    return Fixpoint(x, rounds, rounds < most_rounds(graph.n), status)


# ---- All elements in every step ----


@of_call
def not_dense(call: Call) -> str | None:
    """Why the kernel cannot run, with the primitive that it lacks."""
    semiring, graph, x0, operands, captured, _, update, sums, _ = call
    layout = graph.layouts.get("fixpoint")
    if layout is None or layout.kernel is None:
        return "its edges are not arranged, or have new values: `prepare(A, for_='fixpoint')`"
    arrays = [x0, *operands, *jax.tree.leaves(captured)]
    for array in arrays:
        if array.dtype not in NUMBERS or array.shape not in ((), x0.shape):
            return f"it takes float32 and int32 of {x0.shape} or (); not {array.dtype}{array.shape}"
    if reason := no_plain_product(semiring):
        return reason
    for name, fn in (("update", update), *sums):
        reason = fn.refuses()
        if reason is not None:
            return f"`{name}` uses `{reason}`, which is not element-wise"
    functions = _functions(call)
    for name, (fn, dtypes) in functions.items():
        reason = refuse_scalar(fn, *dtypes)
        if reason is not None:
            return f"`{name}`: {reason}"
    return None


@op.register("dense", backend="pallas", refuse=not_dense, batched=vectors_vectorised)
@of_call
def dense(call: Call) -> Fixpoint:
    """All elements in every step, in one launch, a grid barrier a step."""
    semiring, graph, x0, *_, until, _, sums, monotone = call
    arrays = _Arrays(call)
    functions = _functions(call)
    traced = {name: trace_scalar(fn, *dtypes) for name, (fn, dtypes) in functions.items()}
    prepared = graph.layouts["fixpoint"].kernel
    identity = semiring.add.identity_of(traced["combine"].out_avals[0].dtype)[()]
    tree = jax.tree.structure(until)
    kinds = {c.kind for c in until.conditions()}
    facts = (("change",) if "residual" in kinds else ()) + (
        ("changed",) if monotone or "unchanged" in kinds else ()
    )

    def stop(i, reached, unchanged, change, scalars):
        condition = jax.tree.unflatten(tree, scalars[len(arrays.scalars) - arrays.knobs :])
        now = {"reached": reached, "unchanged": unchanged, "residual": change}
        found = [c.holds(iteration=i, **now) for c in (condition, unbounded(condition))]
        if not until.bounds():
            found[0] = found[0] | (i >= most_rounds(graph.n))
        return tuple(f | unchanged if monotone else f for f in found)

    x, iterations, converged, status = fixpoint_dense(
        x0,
        arrays.vectors,
        arrays.scalars,
        Steps(
            ScalarSemiring(traced["mul"], traced["combine"], identity.item()),
            traced["update"],
            stop,
            sums=tuple(traced[name] for name, _ in sums),
            facts=facts,
        ),
        prepared=prepared,
        targets=_targets(until, prepared, x0.shape[0]),
    )
    return finite(call, Fixpoint(x, iterations, converged != 0, status))


def _targets(until, prepared, n) -> Array | None:
    """(vertex, position) of the nodes of `reached`."""
    if not until.targets():
        return None
    nodes = jnp.stack([jnp.asarray(node, jnp.int32) for node in until.targets()])
    places = jnp.arange(len(prepared["vertices"]), dtype=jnp.int32)
    position = jnp.zeros(n, jnp.int32).at[prepared["vertices"]].set(places, mode="drop")
    known = position.at[jnp.where((nodes >= 0) & (nodes < n), nodes, 0)].get(mode="clip")
    return jnp.stack([nodes, known], axis=1).reshape(-1)


class _Arrays:
    """The arrays of a call in the kernel's order: vectors, then scalars, the last of `until`.

    `parts` are (operands, captured by the update, captured by each of the sums), as places.
    """

    def __init__(self, call):
        knobs = [_knob(leaf) for leaf in jax.tree.leaves(call.until)]
        self.knobs = len(knobs)
        groups = [tuple(call.operands), tuple(call.captured[0]), *map(tuple, call.captured[1])]
        flat = [a for group in groups for a in group]
        self.vectors = tuple(a for a in flat if a.shape != ())
        self.scalars = (*(a for a in flat if a.shape == ()), *knobs)
        order = [j for j, a in enumerate(flat) if a.shape != ()]
        order += [j for j, a in enumerate(flat) if a.shape == ()]
        place = {j: at for at, j in enumerate(order)}
        numbers = iter(range(len(flat)))
        self.parts = [[place[next(numbers)] for _ in group] for group in groups]
        self.dtypes = [a.dtype for a in (*self.vectors, *self.scalars)]


def _knob(leaf: Any) -> Array:
    """A number of `until` as float32 or int32."""
    array = jnp.asarray(leaf)
    return array.astype(jnp.float32 if jnp.issubdtype(array.dtype, jnp.floating) else jnp.int32)


def _functions(call):
    """name -> (function of scalars, its dtypes), in the kernel's order of arguments."""
    semiring, graph, x0, *_, update, sums, monotone = call
    arrays = _Arrays(call)
    missing = semiring.add.identity_of(x0.dtype)[()]

    def mul(x, a):
        term = semiring.add.admit(jnp.asarray(semiring.mul(x, a)))
        if not monotone:
            return term
        nothing = semiring.add.identity_of(term.dtype)[()]
        return jnp.where(differs(x, missing), term, jnp.asarray(nothing, term.dtype))

    def at(group, values):
        return [values[place] for place in arrays.parts[group]]

    def step(old, y, i, *rest):
        values, totals = rest[: len(arrays.dtypes)], rest[len(arrays.dtypes) :]
        named = dict(zip([name for name, _ in sums], totals, strict=True))
        return update.at(at(1, values), old, y, i, *at(0, values), *jax.tree.leaves(named))

    def total(j, fn):
        dtype = _sum_dtype(fn)

        def one(x, *values):
            return fn.at(at(2 + j, values), x, *at(0, values)).astype(dtype)

        return one

    x_dtype, term = (
        x0.dtype,
        jax.eval_shape(
            mul, jax.ShapeDtypeStruct((), x0.dtype), jax.ShapeDtypeStruct((), graph.dtype)
        ).dtype,
    )
    found = {
        "mul": (mul, (x_dtype, graph.dtype)),
        "combine": (lambda a, b: jnp.asarray(semiring.add.op(a, b), term), (term, term)),
    }
    for j, (name, fn) in enumerate(sums):
        found[name] = (total(j, fn), (x_dtype, *arrays.dtypes))
    totals = [_sum_dtype(fn) for _, fn in sums]
    found["update"] = (step, (x_dtype, term, jnp.int32, *arrays.dtypes, *totals))
    return found


def _sum_dtype(fn) -> Any:
    return jax.eval_shape(jnp.sum, jax.ShapeDtypeStruct((0,), fn.result.dtype)).dtype
