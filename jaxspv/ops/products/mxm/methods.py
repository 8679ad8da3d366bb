"""The implementations of `mxm`, each of which gives a `Result` by rows, and what they refuse."""

from __future__ import annotations

import jax.numpy as jnp

from ...._core.operation import Operation, typed
from ....formats import CSR
from ....formats.csr import sorted_csr
from .call import lists_places, matrix_of, sorted_mask, term_dtype
from .cpu import multiply, multiply_natively, no_pattern, not_compiled
from .expand import operands
from .jvp import tangent
from .xla import CELLS, multiply_by_dots, multiply_densely, multiply_in_steps, multiply_once


def _types(semiring, A, B, mask, found, *, nse, size, products):
    (m, _), (_, n) = A.shape, B.shape
    data = typed(term_dtype(semiring, A.dtype, B.dtype), nse)
    indices, indptr = typed(jnp.int32, nse), typed(jnp.int32, m + 1)
    return CSR(data, indices, indptr, typed(jnp.bool_), (m, n), True, True)


op = Operation("mxm", tangent, types=_types)
op.gpu_forms_in(f"{__package__}.gpu")


def no_dots(semiring, A, B, mask, *_, **__) -> str | None:
    """Why dot products are refused, or None."""
    if not lists_places(mask):
        return "dot products need a sparse mask that is not a complement"
    if not (A.unique and B.unique):
        return "a search finds one of several entries of one place"
    return None


def no_cells(semiring, A, B, mask, *_, **__) -> str | None:
    """Why dense accumulators are refused, or None."""
    if not semiring.add.scatters:
        return f"the monoid `{semiring.add.name}` has no scatter"
    if B.shape[1] > CELLS:
        return f"a row of {B.shape[1]} places exceeds a block of {CELLS} cells"
    return None


@op.register("dot", refuse=no_dots)
def _dot(semiring, A, B, mask, found, *, nse, size, products):
    """For each place of the mask, a row of A meets a column of B."""
    wanted = sorted_mask(mask)
    assert wanted is not None  # else refused
    columns = sorted_csr(B.T).T
    r = multiply_by_dots(semiring, sorted_csr(A), columns, wanted, nse=nse, size=size)
    return matrix_of(r, A, B)


@op.register("sort")
def _sort(semiring, A, B, mask, found, *, nse, size, products):
    """All products expanded, sorted by place, joined; `size` of them at a time."""
    o = operands(sorted_csr(A), sorted_csr(B))
    once = products is not None and products <= size
    multiplied = multiply_once if once else multiply_in_steps
    r = multiplied(semiring, o, sorted_mask(mask), nse=nse, size=size)
    return matrix_of(r, A, B)


@op.register("dense", refuse=no_cells)
def _dense(semiring, A, B, mask, found, *, nse, size, products):
    """All products scattered into dense accumulators of blocks of rows, which are compacted."""
    o = operands(sorted_csr(A), sorted_csr(B))
    return matrix_of(multiply_densely(semiring, o, sorted_mask(mask), nse=nse, size=size), A, B)


@op.register("gustavson", backend="cpu", refuse=not_compiled)
def _native(semiring, A, B, mask, found, *, nse, size, products):
    """Row by row into a dense accumulator, or into the places that a mask lists, in C++."""
    return matrix_of(multiply_natively(semiring, A, B, mask, nse=nse), A, B)


@op.register("gustavson", backend="cpu", refuse=lambda _, *abm, **__: no_pattern(*abm[:3]))
def _loop(semiring, A, B, mask, found, *, nse, size, products):
    """The same over any semiring: the pattern in C++, the values by a loop that XLA compiles."""
    return matrix_of(multiply(semiring, A, B, mask, nse=nse), A, B)
