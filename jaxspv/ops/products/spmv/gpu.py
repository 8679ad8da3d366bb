"""SpMV on NVIDIA GPUs: when the kernel over a CSR serves a call, and how it is called."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from pallas_kernels.layouts.ragged import LIMIT
from pallas_kernels.products.spmv import csr_spmv, padded_spmv
from pallas_kernels.products.spmv_tuples import csr_spmv_tuples
from pallas_kernels.simt import scalar_jaxpr
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring, TupleSemiring, is_near

from ....formats import ELL, SELL
from ....formats.base import serves
from ..common.product import result_dtype, take
from ..row_layouts.diagonals import Diagonals
from ..row_layouts.layout import Rows
from .api import ell, multiply_values, no_fold, no_rows, pieces, register, sell

SCALARS = ("float32", "int32")


def _not_here(semiring, A, x, rows, *, flip) -> str | None:
    """Why the kernel over a CSR cannot combine these products."""
    if reason := no_rows(A):
        return reason
    if A.indptr.dtype != jnp.int32:
        return "kernels count rows and entries in int32"
    if isinstance(rows, Diagonals) and not rows.direct:
        return "the values lie by diagonals, where no column is read: faster"
    if isinstance(rows, Rows) and rows.ranks is None and not rows.direct:
        return "the values lie in the bins of the rows, their columns close together: faster"
    return _no_values(semiring, A, x, rows, flip=flip)


def _no_values(semiring, A, x, rows, *, flip) -> str | None:
    """Why a kernel cannot combine the products of these values."""
    if A.nse == 0 or 0 in A.shape:
        return "there is nothing to multiply"
    if A.indices.dtype != jnp.int32 or A.nse + A.shape[0] > LIMIT:
        return "kernels count rows and entries in int32"
    return no_fold(semiring, A) or no_scalars(semiring, A, x, flip)


def no_scalars(semiring, A, x, flip, addition=True) -> str | None:
    """Why kernels do not know the functions of a semiring, for values of the dtypes of A and x.

    addition: whether they take its addition as a function.
    """
    if A.dtype.name not in SCALARS or x.dtype.name not in SCALARS:
        return f"kernels take float32 and int32 values, not {A.dtype} and {x.dtype}"
    if jax.tree.leaves(semiring):
        return "the semiring has parameters"
    product, combine = _functions(semiring, A, x, flip)
    term = combine[2][0]
    if term.name not in SCALARS:
        return f"kernels combine float32 and int32 values, not {term}"
    for name, fn, dtypes in (product, combine) if addition else (product,):
        if reason := scalar_jaxpr.refuse(fn, *dtypes):
            return f"`{name}`: {reason}"
    return None


def scalars(semiring, A, x, flip) -> ScalarSemiring:
    """The semiring as kernels take it, for values of the dtypes of A and x."""
    (_, mul, given), (_, combine, terms) = _functions(semiring, A, x, flip)
    identity = semiring.add.identity_of(terms[0])[()].item()
    return ScalarSemiring.of(mul, combine, identity, *given, terms[0])


def _functions(semiring, A, x, flip):
    """(name, function of scalars, its dtypes) of the product and of the addition."""
    term = result_dtype(semiring, A, x, flip)

    def combine(u, v):
        return jnp.asarray(semiring.add.op(u, v), term)

    mul = multiply_values(semiring, flip)
    return (semiring.mul.name, mul, (A.dtype, x.dtype)), (semiring.add.name, combine, (term, term))


def _no_groups(semiring, A, x, rows, *, flip) -> str | None:
    if not isinstance(rows, Rows) or rows.groups is None:
        return "`prepare(A, for_=...)` has not found the entries in aligned pairs or fours"
    return _no_values(semiring, A, x, rows, flip=flip)


@register("groups", pieces, backend="pallas", refuse=_no_groups)
def _groups(semiring, A, x, rows, *, flip):
    """As merge_path, a column index for each pair or four of entries."""
    groups, of = rows.groups, scalars(semiring, A, x, flip)
    return csr_spmv(groups.indptr, groups.indices, A.data, x, semiring=of, width=groups.width)


@register("merge_path", pieces, backend="pallas", refuse=_not_here)
def _merge_path(semiring, A, x, rows, *, flip):
    """Rows and entries shared evenly by the warps of one launch; nothing prepared."""
    indices = A.indices
    if isinstance(rows, Rows) and rows.ranks is not None:
        assert rows.bins.order is not None
        indices, x = rows.ranks, take(x, rows.bins.order)
    of = scalars(semiring, A, x, flip)
    if is_near(of.combine):  # that kernel combines less often in rows of many entries
        terms = TupleSemiring(of.mul, of.combine, (of.identity,))
        return csr_spmv_tuples(A.indptr, indices, None, (A.data,), (x,), semiring=terms)[0]
    return csr_spmv(A.indptr, indices, A.data, x, semiring=of)


def _padded(format):
    def refuse(semiring, A, x, rows, *, flip) -> str | None:
        if A.transposed:
            return "the arrays list the entries by column"
        return _no_values(semiring, A, x, rows, flip=flip)

    return serves(format, reads="rows that are padded", refuse=refuse)


@register("ell_rows", ell, backend="pallas", refuse=_padded(ELL))
def _ell_rows(semiring, A, x, rows, *, flip):
    """A thread a row, position by position."""
    return padded_spmv(A.indices, A.data, x, A.shape[0], semiring=scalars(semiring, A, x, flip))


@register("sell_rows", sell, backend="pallas", refuse=_padded(SELL))
def _sell_rows(semiring, A, x, rows, *, flip):
    """A thread a row, slice by slice."""
    how = {"semiring": scalars(semiring, A, x, flip), "slices": (A.slice_ptr, A.order)}
    return padded_spmv(A.indices, A.data, x, A.shape[0], **how)
