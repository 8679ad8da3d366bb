"""SpMSpV on NVIDIA GPUs: when the kernels serve a call, and how they are called."""

from __future__ import annotations

import jax.numpy as jnp

from pallas_kernels.products.sparse_result import ATOMIC
from pallas_kernels.products.spmspv import Entries, Result, Tiles, spmspv_push, spmspv_tile

from ....formats import Tiled
from ....formats.base import serves
from ....formats.tiled.vector import BitVector
from ....formats.vector import SparseVector
from ..common.product import no_plain_product, result_dtype
from ..spmv.api import multiply_values
from ..spmv.gpu import no_scalars
from .api import needs_columns, op


def _not_here(semiring, A, x, flip) -> str | None:
    if A.nse == 0 or x.nse == 0 or 0 in A.shape:
        return "there is nothing to multiply"
    if not x.unique:
        return "`x` may hold a place twice"
    how = semiring, A, x, flip
    if reason := no_plain_product(semiring) or no_scalars(*how, addition=False):
        return reason
    if semiring.mul.overflow is not None and jnp.issubdtype(A.dtype, jnp.integer):
        return "kernels do not detect the overflow of integer path lengths"
    atomic = semiring.add.atomic(result_dtype(*how)) in ATOMIC
    return None if atomic else f"the monoid `{semiring.add.name}` has no atomic"


def _not_pushed(semiring, A, x, allowed, *, flip, nse) -> str | None:
    return needs_columns(semiring, A, x, allowed) or _not_here(semiring, A, x, flip)


def _not_tiled(semiring, A, x, allowed, *, flip, nse) -> str | None:
    if A.transposed:
        return "it reads rows of tiles, and this is the transpose of a Tiled: store the other one"
    return _not_here(semiring, A, x, flip)


def _finish(out, A, x, nse) -> SparseVector:
    indices, data, count, failed = out
    overflow = A.overflow | x.overflow | (failed != 0)
    count = jnp.minimum(count, nse) if nse == 0 else count
    return SparseVector(data[:nse], indices[:nse], count, overflow, A.shape[:1])


def _common(semiring, A, x, allowed, flip, nse) -> tuple[Entries, Result]:
    words = None if allowed is None else BitVector.from_bool(allowed).words
    add = semiring.add.atomic(result_dtype(semiring, A, x, flip))
    how = add, multiply_values(semiring, flip), words
    return Entries(x.indices, x.data, x.count), Result(A.shape[0], max(nse, 1), *how)


@op.register("scatter", backend="pallas", refuse=_not_pushed)
def _push(semiring, A, x, allowed, *, flip, nse):
    """The columns that x selects, combined by atomics and compacted, in one launch."""
    common = _common(semiring, A, x, allowed, flip, nse)
    out = spmspv_push(A.indptr, A.indices, A.data, *common, ascending=A.sorted)
    return _finish(out, A, x, nse)


@op.register("tile", backend="pallas", refuse=serves(Tiled, reads="tiles", refuse=_not_tiled))
def _tile(semiring, A, x, allowed, *, flip, nse):
    """The tiles that meet entries of x, combined by atomics and compacted, in one launch."""
    arrays = (A.tile_ptr, A.tile_col, A.slot_ptr, A.packed, A.data, A.rest_row, A.rest_col)
    tiles = Tiles(*arrays, A.nt, A.shape[1])
    out = spmspv_tile(tiles, *_common(semiring, A, x, allowed, flip, nse))
    return _finish(out, A, x, nse)
