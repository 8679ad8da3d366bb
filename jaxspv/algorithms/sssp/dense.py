"""Shortest paths from many sources together: one min-plus product relaxes all edges for all."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from ..._core.batching import batch_any
from ...algebra.semirings import min_plus
from ...graph import Graph
from ...ops.products.mxv.api import mxv
from .forms import shortest_path_tree
from .lengths import infinity, wraps


def relax(
    graph: Graph, source: Array, max_steps: int | None, parents: bool
) -> tuple[Array, Array | None, Array, Array, Array]:
    """Distances (n,), parents, steps, converged, overflow: `d = min(d, d (min.+) A)` to the end.

    Under vmap over the source a step is one product of the matrix with all vectors, and the loop
    ends when the last of them stands still. O(nse) a step and source; n steps at most unless a
    cycle is negative.
    """
    n = graph.n
    pull = graph.out.T if graph.inn is None else graph.inn
    top = infinity(graph.dtype)
    at_source = jnp.arange(n, dtype=jnp.int32) == source
    most = n if max_steps is None else min(max_steps, n)

    def step(c: Any):
        d, steps, moving = c
        new = jnp.minimum(d, mxv(pull, d, min_plus))
        return new, steps + moving, moving & jnp.any(new != d) & (steps + 1 < most)

    first = (jnp.where(at_source, jnp.zeros_like(top), top), jnp.int32(0), jnp.bool_(most > 0))
    d, steps, _ = lax.while_loop(lambda c: batch_any(c[2]), step, first)
    still = jnp.all(jnp.minimum(d, mxv(pull, d, min_plus)) == d)
    out = graph.out
    tail, _ = out.rowcol()
    before = jnp.take(d, tail, mode="clip")
    live = (tail < n) & (before != top)
    weights = jnp.where(live, out.data, jnp.zeros((), out.dtype))
    overflow = jnp.any(live & wraps(before, weights))
    tree = shortest_path_tree(out.indptr, out.indices, out.data, d, source) if parents else None
    return d, tree, steps, still, overflow
