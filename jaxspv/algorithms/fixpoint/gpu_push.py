"""When one kernel runs a whole monotone fixpoint, and how it is called."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pallas_kernels.fixpoint.push import DTYPES, ORDERS
from pallas_kernels.fixpoint.push import fixpoint_push as kernel
from pallas_kernels.simt import scalar_jaxpr
from pallas_kernels.sssp.widths import most_rounds

from ..._core.eager.arrays import on_gpu
from ...algebra import operators
from ...graph import LAYOUTS, Graph
from ...ops.products.common.elementwise import trace
from ...ops.products.common.product import no_plain_product
from ..common.edges import beyond_places
from ..common.weights import facts_of
from .step import Call, of_call

_SUMS = (operators.min_extend.fn, operators.plus.fn)


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
    reason = scalar_jaxpr.refuse(mul, x0.dtype, graph.dtype)
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


@of_call
def persistent(call: Call) -> tuple[Array, Array, Array, Array]:
    """(x, iterations, converged, status) of one launch."""
    semiring, graph, x0, *_ = call
    own = graph.layouts.get("fixpoint")
    layout = (own and own.push) or graph.layouts.get("sssp", {})
    out, delta = graph.out, None
    of_lengths = semiring.add.op is operators.minimum and semiring.mul.fn in _SUMS
    if of_lengths and graph.dtype == x0.dtype and "widths" in layout:
        top = semiring.add.identity_of(x0.dtype)[()]
        delta = jnp.where(jnp.any(x0 < 0), top, layout["widths"].kernel)
    x, rounds, status = kernel(
        (out.indptr, out.indices, out.data),
        x0,
        add=str(semiring.add.atomic(x0.dtype)),
        mul=_extend(semiring),
        delta=delta,
        prepared=layout.get("pallas"),
    )
    return x, rounds, rounds < most_rounds(graph.n), status


def push_layout(graph: Graph) -> Any:
    """On a GPU the layout "sssp" of the graph; None where it has one, or cannot have it."""
    if not on_gpu(graph.out.indices) or "sssp" in graph.layouts:
        return None
    if graph.dtype not in (np.float32, np.int32) or graph.nse == 0:
        return None
    return None if facts_of(graph).nan >= 0 else LAYOUTS["sssp"].build(graph)


def push_revalued(layout: Any, graph: Graph) -> Any:
    """The same after `with_data`."""
    revalue = LAYOUTS["sssp"].revalue
    assert revalue is not None
    return revalue(layout, graph)
