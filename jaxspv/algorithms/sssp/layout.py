"""The layout "sssp" of `prepare`: bucket widths, checks of the weights, the kernel's arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pallas_kernels.prepare.adjacency import degree_sizes
from pallas_kernels.prepare.lengths import prepare_sssp, revalue
from pallas_kernels.sssp.api import delta_of as kernel_delta

from ..._core.compilation import on_accelerator, on_gpu
from ..._core.eager.ahead import Program
from ..._core.indices import bucketed
from ..._core.pytree import is_concrete, result_tuple
from ..._core.reductions import is_narrow
from ...formats import CSR
from ...graph import Graph, register_layout
from ..common.weights import Facts, facts_of, weights_program
from .forms import delta_of
from .lengths import infinity


@result_tuple
class BucketWidths(NamedTuple):
    """The bucket width of each form: the kernel's buckets fill a GPU, the others' a core."""

    xla: Any
    kernel: Any


def choose_delta(graph: Graph, delta: Any, method: str | None) -> BucketWidths | None:
    """The bucket widths given or prepared, or None; checks concrete weights."""
    prepared = graph.layouts.get("sssp")
    if (prepared is None or delta is not None) and is_concrete(graph.data):
        low = least_weight(graph)
        if delta is not None and low < 0:
            raise ValueError(
                f"negative weights need method='bellman_ford' (no `delta`); the least is {low}."
            )
    if delta is not None:
        if is_concrete(delta) and not delta > 0:
            raise ValueError(f"`delta` must be positive; got {delta}.")
        if method == "bellman_ford":
            raise ValueError("`delta` has no meaning for method='bellman_ford'.")
        return BucketWidths(*2 * (jnp.asarray(delta, graph.dtype),))
    if prepared is None or method == "bellman_ford":
        return None
    return prepared["widths"]


def surely_in_buckets(widths: BucketWidths | None) -> bool:
    """Whether a width is known and finite, on a CPU, where the look at it costs nothing.

    Else a program holds Bellman-Ford too, as new values of a prepared graph may be negative, which
    makes the width infinite: half of what an eager search compiles.
    """
    if widths is None or not is_concrete(widths.xla) or on_accelerator(widths.xla):
        return False
    width = np.asarray(widths.xla)
    return bool(0 < width < _infinity(width.dtype))


def least_weight(graph: Graph) -> Any:
    """The least weight of a concrete graph, or 0.

    Raises:
        ValueError: a weight is NaN.
    """
    return _checked(graph).least


def _checked(graph: Graph) -> Facts:
    facts = facts_of(graph)
    if facts.nan >= 0:
        raise ValueError(f"weights must not be NaN; the one in slot {facts.nan} is.")
    return facts


def with_lengths(graph: Graph) -> Graph:
    """Booleans count as int32 ones; float16 and bfloat16 are added in float32."""
    if graph.dtype == bool:
        return graph.astype(jnp.int32)
    return graph.astype(jnp.float32) if is_narrow(graph.dtype) else graph


def _revalue(layout: Any, graph: Graph) -> Any:
    """Keeps the bucket widths in proportion to the mean weight; negative weights: one bucket."""
    count = jnp.maximum(graph.out.count, 1)
    valid = jnp.arange(graph.nse) < graph.out.count
    weights = jnp.where(valid, graph.data, jnp.zeros((), graph.dtype))
    mean = jnp.sum(weights.astype(jnp.float32)) / count
    one = jnp.asarray(1, graph.dtype)
    negative = jnp.any(weights < 0)

    def width(over_mean):
        scaled = jnp.asarray(mean * over_mean).astype(graph.dtype)
        scaled = jnp.where(scaled > 0, scaled, one)
        return jnp.where(negative, infinity(graph.dtype), scaled)

    return {
        **layout,
        "widths": BucketWidths(*(None if v is None else width(v) for v in layout["over_mean"])),
        "negative": negative,
        "pallas": revalue(layout["pallas"], graph.data),
    }


def _unasked(graph: Graph) -> int:
    """At once: it costs little more than the look at the weights that every call takes."""
    no_lengths = graph.dtype == bool or jnp.issubdtype(graph.dtype, jnp.complexfloating)
    return 0 if no_lengths else 1


def _ahead(A: CSR) -> list[Program]:
    return [weights_program(A), Program(degree_sizes, (A.indptr,))]


@register_layout("sssp", revalue=_revalue, needs_inn=False, unasked=_unasked, ahead=_ahead)
def _layout(graph: Graph) -> Any:
    """Bucket widths; on a GPU also what the kernel wants."""
    graph = with_lengths(graph)
    out, facts, dtype = graph.out, _checked(graph), graph.dtype
    if on_gpu(out.indices):
        sizes = np.asarray(degree_sizes(out.indptr))
    else:
        indptr = np.asarray(out.indptr)
        sizes = np.asarray([np.diff(indptr).max(initial=0), indptr[-1]])

    def over_mean(width):
        return np.float32(float(width) / facts.mean if facts.mean > 0 else 1.0)

    wide = delta_of(facts.finite_mean or 0.0, graph.n, int(sizes[1]), dtype)
    most = _infinity(dtype)
    if facts.least < 0:  # one bucket, and nothing for the kernel
        widths, ratios = BucketWidths(most, None), BucketWidths(over_mean(wide), None)
    else:
        rules = BucketWidths(
            wide, kernel_delta(facts.finite_mean, graph.n, sizes[0], sizes[1], dtype)
        )
        widths = BucketWidths(*(min(width, most) for width in rules))
        ratios = BucketWidths(*map(over_mean, rules))
    widths = BucketWidths(*(None if w is None else np.asarray(w, dtype) for w in widths))
    layout = {"widths": widths, "over_mean": ratios, "negative": np.bool_(facts.least < 0)}
    layout = jax.tree.map(jnp.asarray, layout) | {"pallas": {}}
    if on_gpu(out.indices) and dtype in (np.float32, np.int32):
        layout["pallas"] = prepare_sssp(
            out.indptr, out.indices, graph.data, renumber=True, rounded=bucketed, sizes=sizes
        )
    return layout


def _infinity(dtype: Any) -> Any:
    """`infinity`, on the host."""
    return np.inf if jnp.issubdtype(dtype, jnp.floating) else np.iinfo(dtype).max
