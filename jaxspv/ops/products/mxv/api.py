"""Matrix times vector over a semiring: `mxv` and `vxm`."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...._core.eager.arrays import array_of, is_eager, on_gpu
from ...._core.eager.programs import on_leaves
from ...._core.forms import overloadable
from ...._core.indices import index_dtype_for, narrowed, widened
from ...._core.platforms import Backend
from ....algebra.masks import check_mask
from ....algebra.semirings import Semiring, as_semiring, plus_times
from ....formats import SparseMatrix
from ....formats.vector import SparseVector
from ....graph import Graph, linked
from ....shapes import Allowed, DenseMatrix, Matrix, Operand, Vector
from ...write_rule.call import (
    Dense,
    Options,
    as_operand_mask,
    as_out,
    call,
    is_dense,
    matrix,
    settled,
    with_capacity,
    with_least_capacity,
)
from ...write_rule.entries import entries_of
from ...write_rule.write import as_accum
from ..common.hypersparse import beyond_int32, multiply_vector
from ..common.product import entry_rows, joined, positions_as
from ..row_layouts.layout import Arranged
from ..spmspv import cpu as spmspv_cpu  # noqa: F401
from ..spmspv.api import bound_of, multiply_sparse
from ..spmv.api import op as spmv_op


@overloadable
def mxv(
    A: Matrix,
    x: Vector | DenseMatrix | SparseVector,
    semiring: Semiring | str = plus_times,
    *,
    mask: Allowed = None,
    accum: Any = None,
    out: Operand | None = None,
    replace: bool = False,
    nse: int | None = None,
    method: str = "auto",
    backend: Backend | None = None,
) -> Any:
    """Multiplies a matrix by a vector: `y[i] = add_j mul(A[i, j], x[j])` over stored entries.

    Args:
        A: (m, n), any format, or a `Graph` (from `prepare(A, for_="mxv")`: rows arranged).
        x: dense (n,) array, or a `SparseVector` of length n.
        semiring: `add` combines, `mul` extends; or its name, such as "min_plus".
        mask: boolean (m,) array, sparse vector (by value), `structure(v)` or `~` of these: places
            that are not allowed stay missing.
        accum, out, replace: out<mask, replace> = out accum A x, as in `ewise_add`.
        nse: capacity of a sparse result; by default eagerly a bucket that depends on its count,
            under jit min(m, a safe bound). Ignored for a dense one.
        method: "auto", or for a sparse x one of "scatter" (no sort: products go to a dense
            accumulator by atomics, then stream compaction), "sort" (radix sort of the products by
            row, segmented reduction), "merge" (a k-way merge of the sorted columns), "row" (each
            row searches its columns in x), "dense" (x made dense), "tile" (each tile of A meets one
            tile of x, empty ones are skipped; A is `Tiled`). The first three need the columns of A:
            a CSC (or `vxm` with a CSR). For a dense x the name of an implementation, see `explain`.
        backend: "pallas", "cpu", "xla", or None for the fastest that accepts the call.

    Returns:
        For a dense x a dense (m,) array, missing places holding the identity of `add`; for a
        `SparseVector` a `SparseVector`. The dtype is that of `mul` on the dtypes of A and x (of
        positional operators the index dtype); indices are int64 where those of A, x or `out` are.
        With `out` the kind and dtype of `out`.

    Raises:
        ValueError: shapes do not match; `nse` too small for concrete values; a capacity of 2^31 - 1
            or more, or such an extent and a dense x or a positional operator.
        TypeError: A is not a sparse matrix, or the monoid is not defined on the dtype.
        NotImplementedError: no implementation accepts the call; says why for each.

    Differentiable in both modes in `A.data`, x and the semiring's parameters: for min and max the
    winning entry, the one of smallest index at ties.

    Cost: O(entries) for a dense x; for a sparse one in proportion to the entries that x selects.

    Source: of a sparse x Yang, Wang, Owens, "Fast sparse matrix and sparse vector multiplication
    algorithm on the GPU", IPDPSW 2015, Algorithm 3; "row" is that of GraphBLAS-sharp, 2021; "tile"
    is Algorithm 4 of Ji et al., "TileSpMSpV", ICPP 2022.

    >>> import jax.numpy as jnp, jaxspv as jsp
    >>> A = jsp.from_dense([[0.0, 2.0], [3.0, 0.0]])
    >>> mxv(A, jnp.array([1.0, 10.0]))
    Array([20.,  3.], dtype=float32)
    >>> mxv(A, jnp.array([1.0, 10.0]), jsp.semirings.min_plus)
    Array([12.,  4.], dtype=float32)
    """
    options = Options(mask, accum, out, replace, nse)
    return _multiply(A, x, semiring, options, method, backend, flip=False)


@overloadable
def vxm(
    x: Vector | DenseMatrix | SparseVector,
    A: Matrix,
    semiring: Semiring | str = plus_times,
    *,
    mask: Allowed = None,
    accum: Any = None,
    out: Operand | None = None,
    replace: bool = False,
    nse: int | None = None,
    method: str = "auto",
    backend: Backend | None = None,
) -> Any:
    """Multiplies a vector by a matrix: `y[j] = add_i mul(x[i], A[i, j])` over stored entries.

    With A[i, j] the edge i -> j this is one step of a traversal.

    Args:
        x: dense (m,) array or `SparseVector` of length m; the first operand of `mul`.
        A: (m, n), or a `Graph` (from `prepare(A, for_="vxm")`: columns arranged).
        semiring, mask, accum, out, replace, nse, method, backend: as in `mxv`, for y of length n.

    Returns:
        A vector of length n, as `mxv` gives one of length m.

    Raises:
        ValueError, TypeError, NotImplementedError: as `mxv`.

    >>> import jax.numpy as jnp, jaxspv as jsp
    >>> A = jsp.from_dense([[0.0, 2.0], [3.0, 0.0]])
    >>> vxm(jnp.array([1.0, 10.0]), A)
    Array([30.,  2.], dtype=float32)
    """
    options = Options(mask, accum, out, replace, nse)
    return _multiply(A, x, semiring, options, method, backend, flip=True)


def _multiply(A, x, semiring, options: Options, method, backend, *, flip):
    """Outside of traces one compiled program, checks included; choices by types are made once."""
    sparse = not is_dense(x)
    if not sparse and not isinstance(x, jax.Array):
        x = array_of("x", x)
    semiring = as_semiring(semiring)
    M, rows = _operand(A, flip, sparse)
    how = _How(method, backend, bool(options.replace), options.nse, flip)
    mask, accum, out = as_operand_mask(options.mask), as_accum(options.accum), as_out(options.out)
    operands = M, rows, x, semiring, mask, accum, out
    lost = how.backend == "pallas" and not on_gpu(M)  # the operation says so
    leaves, tree = jax.tree.flatten(operands)
    if lost or not is_eager(*leaves):
        return _traced(how, *operands)
    least = with_least_capacity(x), with_least_capacity(out)
    if least[0] is not x or least[1] is not out:
        x = least[0]
        leaves, tree = jax.tree.flatten((M, rows, x, semiring, mask, accum, least[1]))
    allocated = bound_of(M, x) if sparse and options.out is None else None
    static = {"how": how, "allocated": allocated}
    result, count = on_leaves(_product_in_capacity, leaves, tree, **static)
    return result if count is None else settled(result, options.nse, count)


class _How(NamedTuple):
    """The static options of a product."""

    method: str
    backend: Backend | None
    replace: bool
    nse: int | None
    flip: bool


def _product_in_capacity(*operands: Any, how: _How, allocated: int | None) -> Any:
    return with_capacity(_traced(how._replace(nse=allocated), *operands), how.nse)


def _traced(how: _How, M, rows, x, semiring, mask, accum, out):
    """Products run on int32 indices; the result has those of the operands."""
    dtype = index_dtype_for(M, x, out)
    plain = how._replace(replace=False, nse=how.nse if out is None else None)
    if beyond_int32(M, x):

        def product(M, x, mask):
            return _traced(plain, M, None, x, semiring, mask, None, None)

        y = multiply_vector(product, M, x, semiring, mask)
    else:
        M, x, mask, out = narrowed("a product", M, x, mask, out)
        y = _product(plain, M, rows, x, positions_as(semiring, dtype), mask)
    if out is not None:
        # Only what is added up where may be left out beforehand: the rule reads the mask again.
        options = Options(mask, accum, out, how.replace, how.nse)
        rule, given = (Dense, (y, entry_rows(M))) if is_dense(x) else (entries_of, (y,))
        y = call(rule, given, options, fill=semiring.zero(out.dtype))
    return widened(y, dtype)


def _product(how: _How, M, rows, x, semiring, mask):
    method, backend, flip = how.method, how.backend, how.flip
    if not M.unique:
        M, rows = joined(M, semiring), None
    if x.shape != M.shape[1:]:
        side, shape = ("left", M.shape[::-1]) if flip else ("right", M.shape)
        raise ValueError(
            f"`x` must have shape {M.shape[1:]} on the {side} of A of {shape}; got {x.shape}."
        )
    checked = check_mask(mask, M.shape[:1])
    if not is_dense(x):
        return multiply_sparse(M, x, semiring, checked, how)
    if method != "auto" and method not in (names := {impl.name for impl in spmv_op.impls}):
        names = sorted({"auto", *names})
        raise ValueError(f"`method` must be one of {names} for a dense vector; got {method!r}.")
    chosen = None if method == "auto" else method
    y = spmv_op(semiring, M, x, rows, backend=backend, method=chosen, flip=flip)
    if checked is None:
        return y
    return jnp.where(checked.allowed(), y, jnp.asarray(semiring.zero(y.dtype)))


def _operand(A: Any, flip: bool, sparse: bool) -> tuple[SparseMatrix, Arranged | None]:
    """The matrix whose rows are the places of the result, and its prepared rows if there are any.
    Raises TypeError: A is neither a sparse matrix nor a Graph."""
    if isinstance(A, Graph):
        A = linked(A)
        rows = None if sparse else A.layouts.get("vxm" if flip else "mxv")
        rows = rows and rows.in_products()
        if flip:
            return (A.out.T if rows is None or A.inn is None else A.inn), rows
        columns = A.inn if sparse else None  # a push reads the columns of A: the rows of A^T
        return (A.out if columns is None else columns.T), rows
    A = matrix("A", A)
    return (A.T if flip else A), None
