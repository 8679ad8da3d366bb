"""The layout "fixpoint": on a GPU, what its two kernels take."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import Array

from pallas_kernels.layouts.sliced_rows import weights_of_vertices

from ..._core.eager.arrays import on_gpu
from ..._core.pytree import pytree_dataclass
from ...graph import LAYOUTS, Graph, register_layout
from ..common.edges import sliced_in_edges
from ..common.weights import facts_of

NUMBERS = (np.dtype(np.float32), np.dtype(np.int32))


@pytree_dataclass
class FixpointLayout:
    """The layout "fixpoint".

    Attributes:
        kernel: the in-edges for the kernel of all elements, on a GPU; None after new values.
        push: on a GPU, what the layout "sssp" has for the kernel that pushes; else None.
    """

    kernel: dict[str, Array] | None = None
    push: Any = None


def _revalue(layout: FixpointLayout, graph: Graph) -> FixpointLayout:
    revalue = LAYOUTS["sssp"].revalue
    assert revalue is not None
    return FixpointLayout(None, layout.push and revalue(layout.push, graph))


@register_layout("fixpoint", revalue=_revalue)
def _layout(graph: Graph) -> FixpointLayout:
    if not on_gpu(graph.out.indices):
        return FixpointLayout()
    return FixpointLayout(_kernel_layout(graph), _push_layout(graph))


def _kernel_layout(graph: Graph) -> dict[str, Array] | None:
    """In-edges as the kernel wants them."""
    inn = graph.inn
    assert inn is not None
    if graph.dtype not in NUMBERS or graph.nse == 0:
        return None
    scales = weights_of_vertices(graph.out.indptr, graph.data)
    prepared = sliced_in_edges(graph, inn.data if scales is None else None)
    if scales is not None:
        prepared["scales"] = scales.at[prepared["vertices"]].get(mode="fill", fill_value=0)
    return prepared


def _push_layout(graph: Graph) -> Any:
    """On a GPU the layout "sssp" of the graph; None where it has one, or cannot have it."""
    if "sssp" in graph.layouts or graph.dtype not in NUMBERS or graph.nse == 0:
        return None
    return None if facts_of(graph).nan >= 0 else LAYOUTS["sssp"].build(graph)
