"""PageRank on a sharded graph in one launch on each GPU (`pallas_kernels/pagerank/mesh.py`)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from pallas_kernels.pagerank.mesh import pagerank as kernel
from pallas_kernels.pagerank.one_gpu import Limits

from ...sharding.exchange import Local, on_mesh
from ...sharding.graph import ShardedGraph
from ...sharding.kernels import one_kernel_refused
from .api import PageRank
from .mesh import iterate, op, start_of


def _refuse(G, *_) -> str | None:
    if not G.symmetric:
        return "it pulls along the rows: the graph must be symmetric, by `shard(..., symmetric=)`"
    if G.dtype != jnp.float32:
        return f"its kernel computes in float32, not {G.dtype}"
    return one_kernel_refused(G)


@op.register("one_launch", backend="pallas", refuse=_refuse)
def one_launch(G: ShardedGraph, p, damping, tol, max_iterations, min_iterations, **options):
    """Shares go into the other devices' memory inside the kernel; where the weights turn out not to
    be symmetric, as the other form. options: of the kernel."""

    def body(local: Local, p, *knobs):
        mine, block = start_of(local, p, G.dtype), local.block
        rows = block.indptr, block.indices, block.data, local.positions
        found = kernel(*rows, mine, Limits(*knobs), axes=local.part.axes, **options)
        scores, iterations, change, status, refused = found

        def by_collectives():
            scores, *rest = iterate(local, mine, *knobs)
            return local.everywhere(scores), *rest, jnp.int32(0)

        def together():
            return scores, iterations, change <= knobs[1], status

        return lax.cond(refused > 0, by_collectives, together)

    return PageRank(*on_mesh(body, G, p, damping, tol, max_iterations, min_iterations))
