"""What shortest paths want prepared: bucket widths, checks of the weights, the kernel's arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from pallas_kernels.prepare.lengths import prepare_sssp, revalue
from pallas_kernels.sssp.api import default_delta as kernel_delta

from ..._core.compilation import on_gpu
from ..._core.pytree import is_concrete, result_tuple
from ...graph import Graph, register_layout
from .forms import default_delta
from .lengths import infinity


@result_tuple
class Widths(NamedTuple):
    """The bucket width of each form: the kernel's buckets fill a GPU, the others' a core."""

    xla: Any
    kernel: Any


def choose_delta(graph: Graph, delta: Any, method: str | None) -> Widths | None:
    """The bucket widths given or prepared, or None; checks concrete weights."""
    prepared = graph.layouts.get("sssp")
    if prepared is None and is_concrete(graph.data):
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
        return Widths(*2 * (jnp.asarray(delta, graph.dtype),))
    if prepared is None or method == "bellman_ford":
        return None
    return prepared["widths"]


def least_weight(graph: Graph) -> Any:
    """The least weight of a concrete graph.

    Raises:
        ValueError: a weight is NaN.
    """
    weights = np.asarray(graph.data)[: int(np.asarray(graph.out.indptr)[-1])]
    if jnp.issubdtype(weights.dtype, jnp.floating) and np.isnan(weights).any():
        slot = int(np.flatnonzero(np.isnan(weights))[0])
        raise ValueError(f"weights must not be NaN; the one in slot {slot} is.")
    return weights.min(initial=0)


def with_lengths(graph: Graph) -> Graph:
    """Booleans count as int32 ones."""
    return graph.with_data(graph.data.astype(jnp.int32)) if graph.dtype == bool else graph


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
        "widths": Widths(*(None if v is None else width(v) for v in layout["over_mean"])),
        "negative": negative,
        "pallas": revalue(layout["pallas"], graph.data),
    }


@register_layout("sssp", revalue=_revalue, needs_inn=False)
def _layout(graph: Graph) -> Any:
    """Bucket widths; on a GPU also what the kernel wants."""
    graph = with_lengths(graph)
    count = int(graph.out.count)
    arrays = (
        np.asarray(graph.out.indptr),
        np.asarray(graph.out.indices)[:count],
        np.asarray(graph.data)[:count],
    )
    low = least_weight(graph)
    mean = float(np.mean(arrays[2], dtype=np.float64)) if count else 1.0

    def over_mean(width):
        return jnp.float32(float(width) / mean if mean > 0 else 1.0)

    wide = default_delta(*arrays)
    if low < 0:  # one bucket, and nothing for the kernel
        widths = Widths(infinity(graph.dtype), None)
        ratios = Widths(over_mean(wide), None)
    else:
        rules = Widths(wide, kernel_delta(arrays[0], arrays[2]))
        most = np.asarray(infinity(graph.dtype))
        widths = Widths(*(jnp.asarray(min(width, most), graph.dtype) for width in rules))
        ratios = Widths(*map(over_mean, rules))
    layout = {"widths": widths, "over_mean": ratios, "negative": jnp.asarray(low < 0), "pallas": {}}
    if on_gpu(graph.out.indices) and graph.dtype in (np.float32, np.int32):
        prepared = prepare_sssp(*arrays, renumber=True)
        layout["pallas"] = {name: jnp.asarray(array) for name, array in prepared.items()}
    return layout
