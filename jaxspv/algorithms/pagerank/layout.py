"""The layout "pagerank": out-strengths, and on a GPU the in-edges, arranged."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..._core.eager.arrays import by_numpy, on_gpu, to_device
from ..._core.eager.kept import kept
from ..._core.pytree import pytree_dataclass, static
from ..._core.reductions import sum_in_double
from ...formats import CSR
from ...graph import Graph, arrays_of, register_layout
from ..common.edges import sliced_in_edges
from ..common.weights import check_weights, facts_of

MOST_ENTRIES = 2**30  # of the kernel, which counts its padded entries in int32


@pytree_dataclass
class PageRankLayout:
    """The layout "pagerank": the out-strength of each vertex, on a GPU the in-edges.

    Attributes:
        strength: (n,) row sums of A.
        ones: whether every weight is 1.
        kernel: on a GPU, float32: the in-edges as the kernel wants them, `sliced_in_edges`.
    """

    strength: Array
    kernel: dict[str, Array] | None = None
    ones: bool = static(default=False)


def strength_of(graph: Graph) -> Array:
    """(n,) row sums of A in the dtype of its values, floats at least."""
    row, _ = graph.out.rowcol()  # n in padding, which is dropped
    data = graph.data
    data = data if jnp.issubdtype(data.dtype, jnp.floating) else data.astype(jnp.float32)
    return sum_in_double(data, row, graph.n)


def _revalue(links: PageRankLayout, graph: Graph) -> PageRankLayout:
    """The layout with new values, which are used even if all were 1 before."""
    del links
    return PageRankLayout(strength_of(graph))


@jax.jit
def _strength_on_device(A: CSR) -> Array:
    return strength_of(Graph(A))


def _strength_on_host(graph: Graph) -> Array:
    """The same by NumPy: nothing to compile."""
    degree = np.diff(np.asarray(graph.out.indptr))
    row = np.repeat(np.arange(graph.n), degree)
    weights = np.asarray(graph.data)[: row.size].astype(np.float64)
    dtype = graph.dtype if jnp.issubdtype(graph.dtype, jnp.floating) else np.float32
    return to_device(np.bincount(row, weights, minlength=graph.n).astype(dtype), graph.out.indices)


def check_strength(graph: Graph) -> None:
    """Refuses concrete weights that are not finite and >= 0, and too large sums of rows."""
    kept(arrays_of(graph), "strength", functools.partial(_check_strength, graph))


def _check_strength(graph: Graph) -> None:
    check_weights(graph)
    if not jnp.issubdtype(graph.dtype, jnp.floating):
        return
    top = float(jnp.finfo(graph.dtype).max) ** 0.5
    if (facts_of(graph).finite_mean or 0.0) * float(graph.nse) < top:  # the sum of all is
        return
    with np.errstate(over="ignore"):
        strength = np.asarray(_strength_on_host(graph))
    v = int(np.argmax(strength))
    if strength[v] > top:
        raise ValueError(
            f"the weights of vertex {v} have the sum {strength[v]}, too large for {graph.dtype}; "
            "scale all weights, which does not change the result."
        )


@register_layout("pagerank", revalue=_revalue, numpy=True)
def _layout(graph: Graph) -> PageRankLayout:
    assert graph.inn is not None
    check_strength(graph)
    unweighted = facts_of(graph).ones
    if not on_gpu(graph.out.indices):
        return PageRankLayout(_strength_on_host(graph), ones=unweighted)
    strength = _strength_on_host(graph) if by_numpy(graph.data) else _strength_on_device(graph.out)
    many = graph.nse >= MOST_ENTRIES and int(graph.out.count) >= MOST_ENTRIES
    runs = graph.dtype == np.float32 and not many
    kernel = sliced_in_edges(graph, None if unweighted else graph.inn.data) if runs else None
    return PageRankLayout(strength, kernel, unweighted)
