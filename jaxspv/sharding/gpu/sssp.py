"""Shortest paths on a sharded graph in one launch on each GPU (`pallas_kernels/mesh/sssp.py`)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from pallas_kernels.mesh.sssp import sssp as kernel

from ...algorithms.sssp.api import SSSP
from ..exchange import Local, on_mesh
from ..frontier.paths import lengths_of, width_of
from ..graph import ShardedGraph
from ..sssp import op, tree_of
from .frame import apart


def _refuse(G, source, until, delta, most, *, parents) -> str | None:
    del delta, most, parents
    if until is not None:
        return "it goes to the end: `until` stops the other form"
    if jnp.ndim(source) > 0:
        return "it takes one source"
    if G.dtype != jnp.float32:
        return f"its kernel computes in float32, not {G.dtype}"
    return apart(G)


@op.register("one_launch", backend="pallas", refuse=_refuse)
def one_launch(G: ShardedGraph, source, until, delta, most, *, parents, **options):
    """Lengths go into the other devices' memory inside the kernel; with negative weights, as the
    other form; parents by a search after it. options: of the kernel."""

    def body(local: Local, source, delta, most):
        part, block = local.part, local.block
        width, negative = width_of(local)
        width = width if delta is None else jnp.asarray(delta, jnp.float32)

        def together(source, width, most):
            graph = block.indptr, block.indices, block.data, local.positions
            how = {"axes": part.axes, "n": part.n, **options}
            whole, own, rounds, ended, status = kernel(*graph, source, width, most, **how)
            return whole, own, rounds, ended > 0, status

        def by_collectives(source, width, most):
            del width
            end, done = lengths_of(local, source, None, delta, most, sparing=True)
            return local.everywhere(end.length), end.length, end.steps, done, jnp.int32(0)

        lengths, own, rounds, done, status = lax.cond(
            negative, by_collectives, together, source, width, most
        )
        tree = local.everywhere(tree_of(local, own, source)) if parents else None
        return lengths, tree, rounds, done, jnp.asarray(False), status

    del until
    return SSSP(*on_mesh(body, G, source, delta, most))
