"""The methods of sparse products by kernels for GPUs."""

from __future__ import annotations

from ....formats.csr import sorted_csr
from .gpu import in_order, multiply_by_rows, multiply_places, no_kernels
from .methods import no_dots, op
from .result import matrix_of, sorted_mask, term_dtype


@op.register("dot", backend="pallas", refuse=lambda *a, **_: no_dots(*a) or no_kernels(*a))
def _dot_on_gpu(semiring, A, B, mask, found, *, nse, size, products):
    """For each place of the mask, a row of A meets a column of B, 32 in a warp: one kernel."""
    columns, wanted = sorted_csr(B.T).T, sorted_mask(mask)
    assert wanted is not None  # else refused
    return matrix_of(multiply_places(semiring, sorted_csr(A), columns, wanted, nse=nse), A, B)


@op.register("rows", backend="pallas", refuse=no_kernels)
def _rows(semiring, A, B, mask, found, *, nse, size, products):
    """Rows of few products sorted by warps, others marked and accumulated by CTAs: kernels."""
    if found is None:
        r = multiply_by_rows(semiring, sorted_csr(A), sorted_csr(B), sorted_mask(mask), nse=nse)
    else:
        r = in_order(found, B.shape[1], term_dtype(semiring, A.dtype, B.dtype), nse=nse)
    return matrix_of(r, A, B)
