"""Breadth-first search on a sharded graph in one launch on each GPU (`pallas_kernels/bfs/mesh`)."""

from __future__ import annotations

import jax.numpy as jnp

from pallas_kernels.bfs.api import BFSConfig
from pallas_kernels.bfs.mesh.api import bfs as kernel

from ...sharding.exchange import Local, on_mesh
from ...sharding.kernels import one_kernel_refused
from .api import BFS
from .mesh import op, smallest_parents


def _refuse(G, source, until, *, parents) -> str | None:
    del parents
    if until is not None:
        return "it goes to the end: `until` stops the other form"
    if jnp.ndim(source) > 0:
        return "it takes one source"
    return one_kernel_refused(G)


@op.register("one_launch", backend="pallas", refuse=_refuse)
def one_launch(G, source, until, *, parents, config: BFSConfig | None = None):
    """Frontiers are exchanged inside the kernel; parents by one pass over the edges after it."""
    del until

    def body(local: Local, source):
        levels, own, deep, status = kernel(
            (local.block.indptr, local.block.indices, local.positions),
            source,
            axes=local.part.axes,
            n=local.part.n,
            symmetric=G.symmetric,
            local_levels=parents,
            config=config,
        )
        tree = local.everywhere(smallest_parents(local, own, source)) if own is not None else None
        return levels, tree, deep, status

    return BFS(*on_mesh(body, G, source))
