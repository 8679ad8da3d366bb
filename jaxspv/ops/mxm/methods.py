"""The implementations behind `mxm`, on operands that were checked; see `mxm` for the meaning."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.custom_batching import sequential_vmap

from ..._core.dispatch import Op
from ...formats import CSR, SparseMatrix
from ...masks import Mask
from ...semirings import Semiring
from . import gustavson_cpu as loops
from .dense import CELLS, multiply_densely
from .dot import multiply_by_dots
from .esc import Result, multiply_in_steps, multiply_once, term_dtype
from .expand import operands
from .gustavson_masked_cpu import multiply_where
from .jvp import tangent

op = Op("mxm", tangent)


def sorted_csr(A: SparseMatrix) -> CSR:
    """The entries of A as a CSR whose rows are sorted."""
    if isinstance(A, CSR) and A.sorted:
        return A
    return CSR.from_coo(A.to_coo())


def csr_of(r: Result, A: SparseMatrix, B: SparseMatrix) -> CSR:
    """The result as a matrix; its overflow is sticky."""
    over = (r.total > r.data.shape[0]) | r.wrapped | A.overflow | B.overflow
    shape = (A.shape[0], B.shape[1])
    return CSR(r.data, r.indices, r.indptr, over, shape, True, True)


def sorted_mask(mask: Mask | None) -> Mask | None:
    """A mask whose sparse source is a sorted CSR."""
    if mask is None or not isinstance(mask.source, SparseMatrix):
        return mask
    return Mask(sorted_csr(mask.source), mask.structural, mask.complement)


def allowed_by_columns(mask: Mask | None) -> loops.Allowed | None:
    """A mask as the native loops take it."""
    if mask is None:
        return None
    if not isinstance(mask.source, SparseMatrix):
        return loops.Allowed(None, mask.source ^ mask.complement, False)
    source = mask.source
    true = jnp.ones(source.nse, bool) if mask.structural else source.data.astype(bool)
    return loops.Allowed(loops.by_columns(source.with_data(true)), None, mask.complement)


def pattern_by_loops(
    A: SparseMatrix, B: SparseMatrix | None, mask: Mask | None, capacity: int
) -> tuple[loops.Compressed, loops.Compressed, loops.Pattern]:
    """A and B by columns and the `Pattern` of their product.

    None for B, or for the source of the mask, stands for A.
    """
    a = loops.by_columns(A)
    b = a if B is None else loops.by_columns(B)
    if mask is not None and mask.source is None:
        true = jnp.ones(a.data.shape, bool) if mask.structural else a.data.astype(bool)
        allowed = loops.Allowed(a._replace(data=true), None, mask.complement)
    else:
        allowed = allowed_by_columns(mask)
    return a, b, loops.pattern(a, b, allowed, A.shape[0], capacity)


def fill_by_loops(
    semiring: Semiring,
    a: loops.Compressed,
    b: loops.Compressed,
    found: loops.Pattern,
    *,
    m: int,
    nse: int,
    flip: bool,
) -> Result:
    """The product by rows, from its `Pattern`."""
    n = b.indptr.shape[0] - 1
    term, check = _scalar_terms(semiring, flip)
    slots, total = max(nse, 1), jnp.where(found.cut, nse + 1, found.total)
    values, wrapped = loops.fill(semiring.add, term, check, a, b, found, m, slots)
    spare = max(slots - found.rows.shape[0], 0)
    columns = loops.Compressed(found.indptr, jnp.pad(found.rows, (0, spare))[:slots], values)
    rows = loops.transpose(columns, m)
    indices = jnp.where(jnp.arange(slots) < rows.indptr[-1], rows.indices, n)
    return Result(rows.indptr, indices[:nse], rows.data[:nse], total, wrapped)


def _scalar_terms(semiring: Semiring, flip: bool) -> tuple[Any, Any]:
    """`term(x, y, i, k, j)` of single entries, and `wraps(x, y)` where products may not fit."""
    mul = semiring.mul

    def term(x, y, i, k, j):
        z = mul.at(y, x, j, k, i) if flip else mul.at(x, y, i, k, j)
        return semiring.add.admit(z)

    def wraps(x, y):
        assert mul.overflow is not None
        return mul.overflow(y, x) if flip else mul.overflow(x, y)

    return term, None if mul.overflow is None else wraps


def lists_places(mask: Mask | None) -> bool:
    """Whether a mask names the places that C may have."""
    return (
        mask is not None
        and not mask.complement
        and (mask.source is None or isinstance(mask.source, SparseMatrix))
    )


def masked_by_loops(
    semiring: Semiring, A: SparseMatrix, B: SparseMatrix | None, mask: Mask, *, nse: int, flip: bool
) -> Result:
    """The product at the places that a mask lists; None stands for A, as in `pattern_by_loops`."""
    a = loops.by_rows(A)
    b = a if B is None else loops.by_rows(B)
    allowed = a if mask.source is None else loops.by_rows(sorted_csr(mask.source))
    true = jnp.ones(allowed.data.shape, bool) if mask.structural else allowed.data.astype(bool)
    term, check = _scalar_terms(semiring, flip)
    n = (A if B is None else B).shape[1]
    return multiply_where(semiring.add, term, check, a, b, allowed._replace(data=true), n, nse)


def by_loops(semiring, A, B, mask, *, nse, flip):
    # One product after the other: lanes in step would lose the native loops.
    @sequential_vmap
    def run(semiring, A, B, mask):
        if lists_places(mask):
            return masked_by_loops(semiring, A, B, mask, nse=nse, flip=flip)
        a, b, found = pattern_by_loops(A, B, mask, nse)
        return fill_by_loops(semiring, a, b, found, m=A.shape[0], nse=nse, flip=flip)

    return run(semiring, A, B, mask)


def by_sorting(semiring, A, B, mask, *, nse, size, steps, flip):
    o = operands(sorted_csr(A), sorted_csr(B))
    multiply = multiply_once if steps == 1 else multiply_in_steps
    return multiply(semiring, o, sorted_mask(mask), nse=nse, size=size, flip=flip)


def empty(semiring: Semiring, A: SparseMatrix, B: SparseMatrix, nse: int, flip: bool) -> CSR:
    """A product without entries."""
    (m, _), (_, n) = A.shape, B.shape
    data = jnp.zeros(nse, term_dtype(semiring, A.dtype, B.dtype, flip))
    indptr = jnp.zeros(m + 1, jnp.int32)
    indices = jnp.full(nse, n, jnp.int32)
    return CSR(data, indices, indptr, A.overflow | B.overflow, (m, n), True, True)


def by_dots(semiring, A, B, mask, *, nse, size, flip):
    """A dot product for each place of a sparse mask."""
    columns = sorted_csr(B.T).T
    wanted = sorted_mask(mask)
    assert wanted is not None  # else refused
    return multiply_by_dots(semiring, sorted_csr(A), columns, wanted, nse=nse, size=size, flip=flip)


def no_dots(semiring, A, B, mask, **_) -> str | None:
    if not lists_places(mask):
        return "dot products need a sparse mask that is not a complement"
    if not (A.unique and B.unique):
        return "a search finds one of several entries of one place"
    return None


@op.register("auto")
def _auto(semiring, A, B, mask, *, nse, size, steps, flip):
    """Native loops on a CPU; elsewhere dot products where the mask lists places, else sorting."""

    def elsewhere(*o):
        if no_dots(*o) is None:
            return by_dots(*o, nse=nse, size=size, flip=flip)
        return by_sorting(*o, nse=nse, size=size, steps=steps, flip=flip)

    result = lax.platform_dependent(
        semiring, A, B, mask, cpu=lambda *o: by_loops(*o, nse=nse, flip=flip), default=elsewhere
    )
    return csr_of(result, A, B)


@op.register("gustavson")
def _gustavson(semiring, A, B, mask, *, nse, size, steps, flip):
    """Column by column into a dense accumulator; native loops on a CPU."""
    return csr_of(by_loops(semiring, A, B, mask, nse=nse, flip=flip), A, B)


@op.register("dot", refuse=no_dots)
def _dot(semiring, A, B, mask, *, nse, size, steps, flip):
    """For each place of the mask, a row of A meets a column of B."""
    return csr_of(by_dots(semiring, A, B, mask, nse=nse, size=size, flip=flip), A, B)


@op.register("sort")
def _sort(semiring, A, B, mask, *, nse, size, steps, flip):
    """All products expanded, sorted by place, joined; `size` of them at a time."""
    result = by_sorting(semiring, A, B, mask, nse=nse, size=size, steps=steps, flip=flip)
    return csr_of(result, A, B)


def no_cells(semiring, A, B, mask, **_) -> str | None:
    """Why dense accumulators are refused, or None."""
    if semiring.add.kind in (None, "logaddexp"):
        return f"the monoid `{semiring.add.name}` has no scatter"
    if B.shape[1] > CELLS:
        return f"a row of {B.shape[1]} places exceeds a block of {CELLS} cells"
    return None


@op.register("dense", refuse=no_cells)
def _dense(semiring, A, B, mask, *, nse, size, steps, flip):
    """All products scattered into dense accumulators of blocks of rows, which are compacted."""
    o = operands(sorted_csr(A), sorted_csr(B))
    r = multiply_densely(semiring, o, sorted_mask(mask), nse=nse, size=size, flip=flip)
    return csr_of(r, A, B)
