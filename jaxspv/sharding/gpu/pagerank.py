"""PageRank on a sharded graph in one launch on each GPU (`pallas_kernels/mesh/pagerank.py`)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from pallas_kernels.mesh.pagerank import pagerank as kernel

from ...algorithms.pagerank.api import PageRank
from ..exchange import Local, on_mesh
from ..graph import ShardedGraph
from ..pagerank import iterate, op, start_of
from .frame import apart


def _refuse(G, *_) -> str | None:
    if not G.symmetric:
        return "it pulls along the rows: the graph must be symmetric, by `shard(..., symmetric=)`"
    if G.dtype != jnp.float32:
        return f"its kernel computes in float32, not {G.dtype}"
    return apart("pagerank", G)


def _even(local: Local) -> Array:
    """Whether all entries of all devices have one positive value."""
    data = local.block.data
    there = jnp.arange(data.shape[0], dtype=jnp.int32) < local.block.indptr[-1]
    least = jnp.min(jnp.where(there, data, jnp.inf), initial=jnp.inf)
    most = jnp.max(jnp.where(there, data, -jnp.inf), initial=-jnp.inf)
    least, most = lax.pmin(jnp.stack([least, -most]), local.part.axes)
    return (least == -most) & (least > 0)


@op.register("one_launch", backend="pallas", refuse=_refuse)
def one_launch(G: ShardedGraph, p, damping, tol, max_iterations, min_iterations, **options):
    """Shares go into the other devices' memory inside the kernel; with weights that differ, as the
    other form. options: of the kernel."""

    def body(local: Local, p, *knobs):
        mine = start_of(local, p, G.dtype)
        rows = local.block.indptr, local.block.indices, local.order

        def together(mine, damping, tol, *limits):
            how = {"axes": local.part.axes, "n": local.part.n, **options}
            scores, iterations, change, status = kernel(*rows, mine, damping, tol, *limits, **how)
            return scores, iterations, change <= tol, status

        def by_collectives(mine, *knobs):
            scores, iterations, converged = iterate(local, mine, *knobs)
            return local.everywhere(scores), iterations, converged, jnp.int32(0)

        return lax.cond(_even(local), together, by_collectives, mine, *knobs)

    return PageRank(*on_mesh(body, G, p, damping, tol, max_iterations, min_iterations))
