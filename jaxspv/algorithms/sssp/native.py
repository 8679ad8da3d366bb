"""Shortest paths on CPUs in C++: a radix heap, delta-stepping or Bellman-Ford, by the weights."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...graph import Graph
from ...native import bind
from ...until import Until

DTYPES = ("float32", "float64", "int32", "int64")


def refuse(graph: Graph, source: Any, until: Any, delta: Any, *, max_steps: Any, **_: Any):
    """Why the kernels cannot serve a call: a sentence, or None."""
    if max_steps is not None or (until is not None and until.bounds()):
        return "it counts no steps: no `max_steps`, no `max_iterations`"
    if graph.dtype.name not in DTYPES or graph.out.index_dtype != jnp.int32:
        return f"it takes weights in {', '.join(DTYPES)} and indices of 32 bits"
    return bind.refused()


def refuse_tree(A: Any, distances: Any, source: Any) -> str | None:
    """Why the kernels cannot serve a tree of the edges of A, a CSR or its arrays."""
    indices, weights = (A.indices, A.data) if hasattr(A, "data") else (A.indices, A.weights)
    if weights.dtype.name not in DTYPES or indices.dtype != jnp.int32:
        return f"it takes weights in {', '.join(DTYPES)} and indices of 32 bits"
    return bind.refused()


def search(graph: Graph, source: Array, until: Until | None) -> tuple[Array, ...]:
    """Distances, parents, steps, converged, overflow; see `SSSP`.

    With `until` it may end before it has settled the vertices beyond the limit of `until`.
    """
    out, n = graph.out, graph.n
    number, flag = (jax.ShapeDtypeStruct((), t) for t in (jnp.int32, jnp.bool_))
    vectors = tuple(jax.ShapeDtypeStruct((n,), t) for t in (graph.dtype, jnp.int32))
    return bind.call(
        "sssp",
        (*vectors, number, flag, flag),
        out.indptr,
        out.indices,
        out.data,
        jnp.asarray(source, jnp.int32),
        _targets(until),
    )


def _targets(until: Until | None) -> Array | np.ndarray:
    """Target vertices after which the search may end; empty: it ends when it is complete."""
    if until is None or any(c.kind != "reached" for c in until.conditions()):
        return np.zeros(0, np.int32)
    return jnp.stack([jnp.asarray(v, jnp.int32) for v in until.targets()])
