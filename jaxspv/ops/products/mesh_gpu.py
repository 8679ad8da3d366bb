"""Products of a sharded graph by kernels: each GPU runs the one-GPU kernel on its rows, or one
launch sends the rows to all GPUs as they are computed (`pallas_kernels/products/spmm_mesh.py`)."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh

from pallas_kernels.layouts.ragged import LIMIT
from pallas_kernels.products.spmm import Config, csr_spmm
from pallas_kernels.products.spmm_mesh import CHUNK
from pallas_kernels.products.spmm_mesh import row_sharded_spmm as row_sharded_kernel
from pallas_kernels.products.spmm_mesh import spmm as kernel

from ...sharding.exchange import Local, on_mesh
from ...sharding.operation import one_kernel_refused, unasked
from .mesh import multiplied, multiplied_row_sharded, op, product
from .spmv.api import no_fold
from .spmv.gpu import no_scalars, scalars

LATE = 8  # columns of one gather after the kernels timed out: no more memory than they take


def _not_whole(G, x, semiring, *, flip, keep=False, kept: bool) -> str | None:
    """kept: whether the form leaves rows of the result where they are computed."""
    if keep and not kept:
        return "rows of the result stay where they are computed: nothing has to be sent"
    if kept and not keep:
        return "the result is replicated on every device"
    if flip or x.ndim != 2:
        return "it multiplies by a matrix on the right: `mxm(G, X)`"
    return _not_counted(G, x, semiring, G.n * x.shape[1], G.part.places + G.data.shape[-1])


def _not_counted(G, x, semiring, *counts: int) -> str | None:
    """Why one kernel cannot multiply by x on the right, or count so far."""
    if reason := one_kernel_refused(G):
        return reason
    if 0 in x.shape or G.data.shape[-1] == 0:
        return "there is nothing to multiply"
    if max(counts) > LIMIT:
        return "kernels count rows, entries and the numbers of X and of the result in int32"
    one = jax.ShapeDtypeStruct((G.n, x.shape[-1]), x.dtype)
    return no_fold(semiring, G) or no_scalars(semiring, G, one, False)


def _or_again(y, status, local: Local, again):
    """y; where devices waited in vain `again()`."""
    late = lax.pmax(status, local.part.axes)

    def compute(_):
        return jnp.int32(0), again().astype(y.dtype)

    # a loop keeps y where it is; the branches of a conditional would copy it
    return lax.while_loop(lambda carry: carry[0] > 0, compute, (late, y))[1]


@op.register("one_launch", backend="pallas", refuse=functools.partial(_not_whole, kept=False))
def one_launch(G, x, semiring, *, flip, keep=False):
    """Rows of the result go to all devices as they come; where devices waited in vain, as the form
    without kernels."""

    def body(local: Local, x, semiring):
        block, how = local.block, scalars(semiring, G, x, flip)
        arrays = block.indptr, block.indices, block.data, x, local.everyone
        y, status = kernel(*arrays, axes=local.part.axes, semiring=how)
        return _or_again(y, status, local, lambda: multiplied(local, x, semiring))

    return on_mesh(body, G, x, semiring)


@op.register("in_place", backend="pallas", refuse=functools.partial(_not_whole, kept=True))
def in_place(G, x, semiring, *, flip, keep=True):
    """Rows of the result stay where they are computed: the kernel of one GPU over its rows."""

    def body(local: Local, x, semiring):
        block, how = local.block, scalars(semiring, G, x, flip)
        arrays = block.indptr, block.indices, block.data, x, local.everyone
        return csr_spmm(*arrays, semiring=how, config=Config(mixed=True))

    return on_mesh(body, G, x, semiring, whole=False, kernels=True)


def _not_row_sharded(G, x, semiring, *, flip, keep=False) -> str | None:
    if flip or x.ndim != 4:
        return "it multiplies by a row-sharded matrix on the right: `mxm(G, G.deal(X))`"
    others = G.part.places * (G.part.grid[0] - 1)
    return _not_counted(G, x, semiring, G.part.places * x.shape[-1], others * CHUNK)


@op.register("in_chunks", backend="pallas", refuse=_not_row_sharded)
def in_chunks(G, x, semiring, *, flip, keep=False):
    """Rows of X travel in chunks of columns while others are multiplied; where devices waited in
    vain, as the form of one GPU, chunk by chunk."""
    one = jax.ShapeDtypeStruct((G.n, x.shape[-1]), x.dtype)

    def body(local: Local, semiring, x):
        block, how = local.block, scalars(semiring, G, one, flip)
        graph = block.indptr, block.indices, block.data, x
        last = _rows_with_entries(block.indptr) if G.symmetric else G.part.places
        y, status = row_sharded_kernel(*graph, last, axes=G.part.axes, semiring=how)
        again = functools.partial(multiplied_row_sharded, local, semiring, x, columns=LATE)
        return _or_again(y, status, local, again)

    return on_mesh(body, G, semiring, values=x, whole=False, kernels=True)


def _rows_with_entries(indptr):
    """The number of rows up to the last one that has an entry; if A is symmetric, no later row of x
    is read either."""
    places = jnp.arange(1, indptr.shape[0], dtype=jnp.int32)
    return jnp.max(jnp.where(jnp.diff(indptr) > 0, places, 0))


def _not_separate(G, x, semiring, *, flip, keep=False) -> str | None:
    mesh, gpu = G.part.mesh, ("gpu", "cuda")
    if flip:
        return "kernels of one GPU gather along rows: `mxv`, and `mxm` with the array on the right"
    if not isinstance(mesh, Mesh) or any(d.platform not in gpu for d in mesh.devices.flat):
        return "its devices are no NVIDIA GPUs"
    return unasked(mesh)


op.register("kernels", backend="pallas", refuse=_not_separate)(
    functools.partial(product, kernels=True)
)
