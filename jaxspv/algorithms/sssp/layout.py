"""The layout "sssp" of `prepare`: bucket widths, checks of the weights, the kernel's arrays."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pallas_kernels.layouts.adjacency import degree_sizes
from pallas_kernels.layouts.lengths import delta_of as kernel_delta
from pallas_kernels.layouts.lengths import prepare_sssp, revalue
from pallas_kernels.layouts.lengths import width_over_mean as kernel_factor

from ..._core.eager.arrays import host_if_small, is_eager, on_gpu, scalar, single_numbers, to_device
from ..._core.eager.kept import kept
from ..._core.indices import bucketed
from ..._core.pytree import is_concrete, result_tuple, value_of
from ..._core.reductions import is_narrow
from ...graph import Graph, arrays_of, register_layout
from ..common.weights import Facts, facts_of
from .xla import infinity


@result_tuple
class BucketWidths(NamedTuple):
    """The bucket width of each form: the kernel's buckets fill a GPU, the others' a core; whether a
    weight is negative, None: not known."""

    xla: Any
    kernel: Any
    negative: Any


def choose_delta(graph: Graph, delta: Any, method: str | None) -> tuple[BucketWidths | None, bool]:
    """The bucket widths given or prepared, or None; and whether weights may be negative.

    Reads concrete weights, but not those of a prepared graph on a GPU, where it would block
    until they are computed: `prepare` leaves out the kernel's width if a weight is negative.
    """
    prepared = graph.layouts.get("sssp")
    if not is_concrete(graph.data):  # an eager derivative knows the weights too
        out = dataclasses.replace(graph.out, data=value_of(graph.data))
        graph = dataclasses.replace(graph, out=out)
    negative = prepared is not None and prepared["widths"].kernel is None
    new = prepared is None or delta is not None or not on_gpu(graph.data)
    facts = _checked(graph) if new and is_concrete(graph.data, graph.out.indptr) else None
    if facts is not None:
        low = facts.least
        negative = bool(low < 0)
        if delta is not None and negative:
            raise ValueError(
                f"negative weights need method='bellman_ford' (no `delta`); the least is {low}."
            )
    if delta is not None:
        single_numbers(delta=delta)
        if is_concrete(delta) and not np.asarray(delta) > 0:
            raise ValueError(f"`delta` must be positive; got {delta}.")
        if method == "bellman_ford":
            raise ValueError("`delta` has no meaning for method='bellman_ford'.")
        width, known = jnp.asarray(delta, graph.dtype), facts and scalar(False, bool)
        if prepared is not None:
            known = prepared["widths"].negative
        return BucketWidths(width, width, known), negative
    if method == "bellman_ford":
        return None, negative
    if prepared is not None:
        return prepared["widths"], negative
    if facts is None or not is_eager(graph.data, graph.out.indptr):
        return None, negative
    return kept(arrays_of(graph), "bucket widths", lambda: _widths(graph, facts)), negative


def traced_kernel_delta(indptr: Array, weights: Array, negative: Array | None = None) -> Array:
    """`traced_delta` by the kernel's rule."""
    largest = jnp.max(jnp.diff(indptr))
    rule = lambda n, count: kernel_factor(n, largest, count, jnp)  # noqa: E731
    return traced_delta(indptr, weights, rule, negative)


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
    """The bucket widths by the new weights; the kernel has none if a weight was negative."""
    graph = with_lengths(dataclasses.replace(graph, layouts={}))
    widths = _traced_widths(graph.out.indptr, graph.data)
    if layout["widths"].kernel is None:
        widths = widths._replace(kernel=None)
    return {"widths": widths, "pallas": revalue(layout["pallas"], graph.data)}


@jax.jit
def _traced_widths(indptr: Array, weights: Array) -> BucketWidths:
    valid = jnp.arange(weights.shape[0], dtype=indptr.dtype) < indptr[-1]
    negative = jnp.any(valid & (weights < 0))
    rules = traced_delta, traced_kernel_delta
    xla, kernel = (f(indptr, weights, negative=negative) for f in rules)
    return BucketWidths(xla, kernel, negative)


@register_layout("sssp", revalue=_revalue, needs_inn=False, numpy=True)
def _layout(graph: Graph) -> Any:
    """Bucket widths; on a GPU also the kernel's arrays."""
    given, graph = graph, with_lengths(graph)
    out, dtype = graph.out, graph.dtype
    facts = _checked(graph)
    layout = {"widths": _widths(graph, facts), "pallas": {}}
    if on_gpu(out.indices) and dtype in (np.float32, np.int32):
        sizes = _sizes(out)
        # weights that every call casts are new ones, which no order by weight serves
        symmetric = graph.symmetric and given.dtype == dtype
        how = {"renumber": True, "symmetric": symmetric, "rounded": bucketed}
        layout["pallas"] = prepare_sssp(out.indptr, out.indices, graph.data, sizes=sizes, **how)
    return layout


def _sizes(A: Any) -> np.ndarray:
    """The length of the longest row, and the number of entries."""
    return np.asarray(degree_sizes(host_if_small(A.indptr)))


@np.errstate(over="ignore")  # infinity is a single bucket
def _widths(graph: Graph, facts: Facts) -> BucketWidths:
    """The bucket widths for the weights of a graph."""
    sizes, dtype, most = _sizes(graph.out), graph.dtype, _infinity(graph.dtype)
    negative = np.asarray(facts.least < 0)
    if negative:  # one bucket, and nothing for the kernel
        return to_device(BucketWidths(np.asarray(most, dtype), None, negative), graph.out.indices)
    wide = delta_of(facts.finite_mean or 0.0, graph.n, int(sizes[1]), dtype)
    narrow = most  # of ones: each round is a level, and buckets split what is sorted
    if not facts.ones:
        narrow = kernel_delta(facts.finite_mean, graph.n, sizes[0], sizes[1], dtype)
    xla, kernel = (np.asarray(min(w, most), dtype) for w in (wide, narrow))
    return to_device(BucketWidths(xla, kernel, negative), graph.out.indices)


@functools.cache  # at every eager call
def _infinity(dtype: Any) -> Any:
    """`infinity`, on the host."""
    return np.inf if jnp.issubdtype(dtype, jnp.floating) else np.iinfo(dtype).max


def delta_of(mean: float, n: int, entries: int, dtype: Any) -> Any:
    """A width of buckets for weights >= 0: the mean weight times 4 / (mean degree), on the host.

    Narrow buckets relax few edges twice, wide ones are few; the more edges leave a vertex, the more
    often its label falls within a wide bucket. The factor lies in [0.15, 3]; measured on CPU over
    the graphs of `benchmarks`, it is within 1.3 of the best width on each. mean: of the finite
    weights.
    """
    width = mean * float(width_over_mean(n, entries, np))
    return width if jnp.issubdtype(dtype, jnp.floating) else max(int(width), 1)


def traced_delta(
    indptr: Array,
    weights: Array,
    factor: Callable[[int, Array], Array] | None = None,
    negative: Array | None = None,
) -> Array:
    """`delta_of` while tracing; infinity, which means Bellman-Ford, if a weight is below 0 or NaN.

    Gives unprepared graphs the same bucket width, at the cost of one pass. () of their dtype.
    factor: `factor(n, count)` over the mean weight; None: `width_over_mean`. negative: whether a
    weight is; None: they are looked at.
    """
    dtype, top = weights.dtype, infinity(weights.dtype)
    n, count = indptr.shape[0] - 1, indptr[-1]
    valid = jnp.arange(weights.shape[0], dtype=jnp.int32) < count
    finite = jnp.where(valid & (weights < top), weights, jnp.zeros((), dtype))
    count = jnp.maximum(count, 1).astype(jnp.float32)
    over = width_over_mean(n, count, jnp) if factor is None else factor(n, count)
    width = (jnp.sum(finite.astype(jnp.float32)) / count * over).astype(dtype)
    width = jnp.where(width > 0, width, jnp.ones((), dtype))
    return jnp.where(jnp.any(valid & ~(weights >= 0)) if negative is None else negative, top, width)


def width_over_mean(n: int, count: Any, xp: ModuleType) -> Any:
    """The factor of `delta_of` for n vertices and `count` entries."""
    return xp.clip(4 * max(n, 1) / xp.maximum(count, 1), 0.15, 3.0)
