"""Triangles of a sharded graph: the rows of each device visit all others, around a ring."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import Array, lax

from ..._core.reductions import exact_sum
from ...algebra.masks import structure
from ...algebra.monoids import plus
from ...algebra.semirings import plus_pair
from ...formats import CSR
from ...ops.products.mxm.api import mxm
from ...sharding.exchange import Local, on_mesh
from ...sharding.operation import mesh_op
from ..common.edges import kept
from .api import Triangles


def _upward(local: Local) -> CSR:
    """The entries of the block to a vertex of higher (degree, number), self loops left out."""
    rows, _ = local.part.block_shape
    row, col = local.block.rowcol()
    degree = jnp.diff(local.block.indptr)  # whole rows: that of the vertex
    others, numbers = local.along_cols(degree), local.along_cols(local.order)
    mine = [jnp.take(v, row, mode="clip") for v in (degree, local.order)]
    other = [jnp.take(v, col, mode="clip") for v in (others, numbers)]
    higher = (mine[0] < other[0]) | ((mine[0] == other[0]) & (mine[1] < other[1]))
    ones = jnp.ones(local.block.nse, jnp.int32)
    A = dataclasses.replace(local.block, data=ones, unique=True)
    return kept(A, (row < rows) & higher)


def _count(local: Local) -> tuple[Array, Array]:
    """The number of triangles u -> v, u -> w, v -> w, and whether some in-degree differs from the
    out-degree. Step k takes the edges u -> v of this device whose v is on the k-th device before.
    """
    part = local.part
    devices, r = part.grid[0], part.places
    own = _upward(local)
    row, col = own.rowcol()
    me = lax.axis_index(part.row_axes)
    ring = [(k, (k + 1) % devices) for k in range(devices)]

    def visit(k, state):
        guest, count = state
        host = (me - k) % devices  # whose rows are here
        valid = (col >= host * r) & (col < (host + 1) * r)
        moved = dataclasses.replace(own, indices=col - host * r, shape=(own.shape[0], r))
        asked = kept(moved, (row < r) & valid)
        met = mxm(own, guest.T, plus_pair, mask=structure(asked), nse=own.nse, method="dot")
        counts = jnp.where(jnp.arange(own.nse) < met.count, met.data, 0)
        with jax.enable_x64(True):
            count = lax.add(count, exact_sum(counts))
        passed = (lax.ppermute(x, part.row_axes, ring) for x in (guest.indices, guest.indptr))
        indices, indptr = passed
        return dataclasses.replace(guest, indices=indices, indptr=indptr), count

    start = (own, exact_sum(jnp.zeros(1, jnp.int32)))
    _, count = lax.fori_loop(0, devices, visit, start)
    valid, cols = jnp.arange(local.block.nse) < local.block.indptr[-1], part.block_shape[1]
    at = jnp.where(valid, local.block.indices, cols)
    in_degrees = local.fold_cols(jnp.zeros(cols, jnp.int32).at[at].add(1, mode="drop"), plus)
    uneven = jnp.any(in_degrees != jnp.diff(local.block.indptr))
    return local.total(count), local.total(uneven.astype(jnp.int32)) > 0


op = mesh_op("triangle_count")


def _in_blocks(G) -> str | None:
    return None if G.part.grid[1] == 1 else "it needs whole rows: shard over rows alone"


@op.register("ring", refuse=_in_blocks)
def _ring(G):
    """As many steps as devices; in each the rows of one visit another.

    Whether the pattern is symmetric is not checked; where in- and out-degrees differ, `overflow`.
    """
    return Triangles(*on_mesh(_count, G))


def sharded_triangle_count(G, *, backend=None, method=None):
    return op(G, backend=backend, method=method)
