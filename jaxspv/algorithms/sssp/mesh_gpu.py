"""Shortest paths on a sharded graph in one launch on each GPU (`pallas_kernels/sssp/mesh`)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from pallas_kernels.sssp.mesh.api import sssp as kernel

from ...sharding.exchange import Local, on_mesh
from ...sharding.graph import ShardedGraph
from ...sharding.kernels import one_kernel_refused
from .api import SSSP
from .mesh import op, tree_of
from .mesh_rounds import lengths_of


def _refuse(G, source, until, delta, most, *, parents) -> str | None:
    del delta, most, parents
    if until is not None:
        return "it goes to the end: `until` stops the other form"
    if jnp.ndim(source) > 0:
        return "it takes one source"
    if G.dtype != jnp.float32:
        return f"its kernel computes in float32, not {G.dtype}"
    return one_kernel_refused(G)


@op.register("one_launch", backend="pallas", refuse=_refuse)
def one_launch(G: ShardedGraph, source, until, delta, most, *, parents, **options):
    """Lengths go into the other devices' memory inside the kernel; where one falls below 0, or a
    negative cycle goes round, as the other form; parents by a search after it. options: of the
    kernel."""

    def body(local: Local, source, delta, most):
        part, block = local.part, local.block
        graph = block.indptr, block.indices, block.data, local.positions
        width = jnp.float32(0) if delta is None else jnp.asarray(delta, jnp.float32)
        how = {"axes": part.axes, "n": part.n, **options}
        # without negative weights every other round at least settles a vertex
        limit = jnp.minimum(most, 2 * part.n + 2)
        whole, own, rounds, ended, status, below = kernel(graph, source, width, limit, **how)
        refused = (below > 0) | ((ended == 0) & (status == 0) & (rounds < most) & (rounds >= limit))

        def by_collectives():
            end, done = lengths_of(local, source, None, delta, most, low_memory=True)
            return local.everywhere(end.length), end.length, end.steps, done, jnp.int32(0)

        def together():
            return whole, own, rounds, ended > 0, status

        lengths, own, rounds, done, status = lax.cond(refused, by_collectives, together)
        tree = local.everywhere(tree_of(local, own, source)) if parents else None
        return lengths, tree, rounds, done, jnp.asarray(False), status

    del until
    return SSSP(*on_mesh(body, G, source, delta, most))
