"""SpMV on NVIDIA GPUs: when the kernel over a CSR serves a call, and how it is called."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from pallas_kernels.products.spmv import csr_spmv
from pallas_kernels.products.spmv_padded import padded_spmv
from pallas_kernels.rows.merge_path import LIMIT
from pallas_kernels.simt import scalar_jaxpr

from ..._core.compat import kernels_refused
from ...formats import ELL, SELL
from ...formats.base import serves
from ..frame.product import take
from .spmv import (
    columns_at_once,
    ell,
    multiply_values,
    no_dense_fold,
    no_rows,
    op,
    pieces,
    result_dtype,
    sell,
)

_SCALARS = ("float32", "int32")


def _not_here(semiring, A, x, rows, *, flip) -> str | None:
    """Why the kernel over a CSR cannot combine these products."""
    if reason := no_rows(A) or kernels_refused():
        return reason
    if A.indptr.dtype != jnp.int32:
        return "kernels count rows and entries in int32"
    if rows is not None and rows.ranks is None and not rows.direct:
        return "the values lie in the bins of the rows, their columns close together: faster"
    return _no_scalars(semiring, A, x, rows, flip=flip)


def _no_scalars(semiring, A, x, rows, *, flip) -> str | None:
    """Why a kernel cannot combine the products of these values."""
    if A.nse == 0 or 0 in A.shape:
        return "there is nothing to multiply"
    if A.indices.dtype != jnp.int32 or A.nse + A.shape[0] > LIMIT:
        return "kernels count rows and entries in int32"
    if jax.tree.leaves(semiring):
        return "the semiring has parameters"
    if A.dtype.name not in _SCALARS or x.dtype.name not in _SCALARS:
        return f"kernels take float32 and int32 values, not {A.dtype} and {x.dtype}"
    reason = no_dense_fold(semiring, A, x, rows, flip=flip)
    if reason is not None:
        return reason
    term = result_dtype(semiring, A, x, flip)
    if term.name not in _SCALARS:
        return f"kernels combine float32 and int32 values, not {term}"
    for name, fn, dtypes in functions(semiring, A, x, flip):
        reason = scalar_jaxpr.refuse(fn, *dtypes)
        if reason is not None:
            return f"`{name}`: {reason}"
    return None


def functions(semiring, A, x, flip):
    """(name, function of scalars, its dtypes) of the product and of the addition."""
    term = result_dtype(semiring, A, x, flip)

    def combine(u, v):
        return jnp.asarray(semiring.add.op(u, v), term)

    mul = multiply_values(semiring, flip)
    return (semiring.mul.name, mul, (A.dtype, x.dtype)), (semiring.add.name, combine, (term, term))


def _merge_path(semiring, A, x, rows, *, flip):
    """Rows and entries shared evenly by the warps of one launch; nothing prepared."""
    indices = A.indices
    if rows is not None and rows.ranks is not None:
        indices, x = rows.ranks, take(x, rows.bins.order)
    return csr_spmv(A.indptr, indices, A.data, x, **_scalars(semiring, A, x, flip))


op.register("merge_path", backend="pallas", refuse=_not_here, batched=columns_at_once(pieces))(
    _merge_path
)


def _scalars(semiring, A, x, flip):
    """The product, the addition and its identity as kernels take them."""
    mul, combine = (scalar_jaxpr.trace(fn, *d) for _, fn, d in functions(semiring, A, x, flip))
    identity = semiring.add.identity_of(result_dtype(semiring, A, x, flip))[()].item()
    return {"mul": mul, "combine": combine, "identity": identity}


def _padded_not_here(semiring, A, x, rows, *, flip) -> str | None:
    if A.transposed:
        return "the arrays list the entries by column"
    return kernels_refused() or _no_scalars(semiring, A, x, rows, flip=flip)


def _ell_rows(semiring, A, x, rows, *, flip):
    """A thread a row, position by position."""
    return padded_spmv(A.indices, A.data, x, A.shape[0], **_scalars(semiring, A, x, flip))


def _sell_rows(semiring, A, x, rows, *, flip):
    """A thread a row, slice by slice."""
    slices, scalars = (A.slice_ptr, A.order), _scalars(semiring, A, x, flip)
    return padded_spmv(A.indices, A.data, x, A.shape[0], slices=slices, **scalars)


for _format, _run, _columns in ((ELL, _ell_rows, ell), (SELL, _sell_rows, sell)):
    op.register(
        f"{_format.format}_rows",
        backend="pallas",
        refuse=serves(_format, reads="rows that are padded", refuse=_padded_not_here),
        batched=columns_at_once(_columns),
    )(_run)
