"""Operations on places: `transpose`, `kron`, `diag`, `resize`, `dup`, `build`."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from .._core.eager.arrays import is_eager
from .._core.forms import overloadable
from .._core.platforms import default_promotion
from .._core.pytree import is_concrete
from ..algebra.monoids import Monoid, any_
from ..algebra.operators import as_binary, times
from ..construct.edges import check_shape
from ..construct.from_arrays import from_edges
from ..formats.vector import vector_from_entries
from ..shapes import Allowed, Indices, Matrix, Number, Operand, Sparse, Values
from .write_rule.call import Options, call, format_of, is_dense, matrix, operand
from .write_rule.entries import Entries, both, entries_of, keep, sort_entries, take
from .write_rule.slots import search


@overloadable
def transpose(
    A: Matrix,
    *,
    mask: Allowed = None,
    accum: Any = None,
    out: Operand | None = None,
    replace: bool = False,
    nse: int | None = None,
) -> Any:
    """`C[j, i] = A[i, j]`. GrB_transpose of the GraphBLAS C API 2.1.

    Without options this is `A.T`, which shares every array and turns CSR into CSC.

    Args:
        A: (m, n) matrix.
        mask, accum, out, replace, nse: as in `ewise_add`; the capacity under jit is A.nse.

    Returns:
        An (n, m) matrix in the format of `out`, else of A, CSR where that is padded or tiled, with
        the dtype of `out`, else of A.

    Raises:
        TypeError: A is no sparse matrix.
        ValueError: `nse` too small for concrete values.

    >>> import jaxspv as jsp
    >>> A = jsp.from_dense([[1.0, 2.0], [0.0, 4.0]])
    >>> jsp.transpose(A, out=A, accum=jsp.operators.plus).todense().tolist()
    [[2.0, 2.0], [2.0, 8.0]]
    """
    A = matrix("A", A)
    options = Options(mask, accum, out, replace, nse)
    if not options.writes and nse is None:
        return A.T
    return call(_transpose, (A,), options, format=format_of(A), keeps=True)


def _transpose(A) -> Entries:
    e = entries_of(A)
    return sort_entries(dataclasses.replace(e, keys=e.keys[::-1], shape=e.shape[::-1]))


@overloadable
def kron(
    A: Matrix,
    B: Matrix,
    op: Any = times,
    *,
    mask: Allowed = None,
    accum: Any = None,
    out: Operand | None = None,
    replace: bool = False,
    nse: int | None = None,
) -> Any:
    """`C[i p + k, j q + l] = op(A[i, j], B[k, l])`, the Kronecker product with B of (p, q).

    GrB_kronecker of the GraphBLAS C API 2.1.

    Args:
        A: (m, n) matrix.
        B: (p, q) matrix.
        op: BinaryOp, Monoid or function of two arrays.
        mask, accum, out, replace, nse: as in `ewise_add`; the capacity under jit is A.nse B.nse.

    Returns:
        An (m p, n q) matrix in the format of `out`, else of A, CSR where that is padded or tiled.
        The dtype is that of `out`, else of `op(a, b)`; entries are those of A times those of B.

    Raises:
        TypeError: A or B is no matrix, or `op` no function of two arrays.
        ValueError: an extent of the (m p, n q) result is 2^31 - 1 or more without x64; with it the
            indices become int64, and a compressed axis must stay below (COO has no such axis).

    >>> import jaxspv as jsp
    >>> A = jsp.from_dense([[1.0, 2.0]])
    >>> jsp.kron(A, A).todense().tolist()
    [[1.0, 2.0, 2.0, 4.0]]
    """
    A, B = matrix("A", A), matrix("B", B)
    op = op.op if isinstance(op, Monoid) else as_binary(op)
    check_shape((A.shape[0] * B.shape[0], A.shape[1] * B.shape[1]))
    options = Options(mask, accum, out, replace, nse)
    if is_eager(A, B):  # their capacities multiply
        A, B = A.trim(), B.trim()
    return call(_kron, (A, B, op), options, format=format_of(A))


@default_promotion()
def _kron(A, B, op) -> Entries:
    """The entries in order, without a sort: those of row (i, k) are the pairs of two rows."""
    a, b = entries_of(A), entries_of(B)
    total = a.nse * b.nse
    shape = (a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])
    a, b = (e.holding(*shape, total) for e in (a, b))
    (first_a, size_a), (first_b, size_b) = _rows_of_slots(a), _rows_of_slots(b)
    row = first_a[:, None] * b.count + size_a[:, None] * first_b  # where (i, k) begins
    place = row + (a.slots() - first_a)[:, None] * size_b + (b.slots() - first_b)
    place = jnp.where(a.valid()[:, None] & b.valid(), place, total).reshape(total)
    pair = jnp.zeros(total, a.index_dtype)
    pair = pair.at[place].set(jnp.arange(total, dtype=a.index_dtype), mode="drop")
    s, t = pair // max(b.nse, 1), pair % max(b.nse, 1)
    count = a.count * b.count
    valid = jnp.arange(total, dtype=a.index_dtype) < count
    keys = tuple(
        jnp.where(valid, take(ka, s) * size + take(kb, t), extent)
        for ka, kb, size, extent in zip(a.keys, b.keys, b.shape, shape, strict=True)
    )
    z = both(op, take(a.data, s), take(b.data, t), valid)
    return Entries(z, keys, count, a.overflow | b.overflow, shape)


def _rows_of_slots(e: Entries) -> tuple[Any, Any]:
    """Of each slot the first one of its row, and how many the row has."""
    row = e.keys[:1]
    first = search(row, row)
    return first, jnp.minimum(search(row, (row[0] + 1,)), e.count) - first


@overloadable
def diag(
    A: Operand,
    k: int = 0,
    *,
    mask: Allowed = None,
    accum: Any = None,
    out: Operand | None = None,
    replace: bool = False,
    nse: int | None = None,
    format: str = "csr",
) -> Any:
    """The matrix with a vector on its k-th diagonal, `C[i, i + k]`, or the diagonal of a matrix.

    GrB_Matrix_diag and GxB_Vector_diag; k > 0 is above the main diagonal, as in NumPy.

    Args:
        A: vector (n,), giving a square matrix of n + |k|; or a matrix, giving a SparseVector as
            long as that diagonal.
        k: the diagonal, a Python integer.
        mask, accum, out, replace, nse: as in `ewise_add`; the capacity under jit is A.nse.
        format: of a matrix result without `out`.

    Returns:
        The matrix or the SparseVector, with the dtype of `out`, else of A; what A lacks is missing.

    Raises:
        TypeError: `k` is no Python integer.
        ValueError: a matrix has no k-th diagonal.

    >>> import jaxspv as jsp, jax.numpy as jnp
    >>> D = jsp.diag(jnp.array([1.0, 2.0]), 1)
    >>> D.todense().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    >>> jsp.diag(D, 1).data.tolist()
    [1.0, 2.0]
    """
    M = operand("A", A)
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
        raise TypeError(f"`k` must be a Python integer; got {k!r}.")
    if M.ndim == 2 and not -M.shape[0] <= k <= M.shape[1]:
        raise ValueError(f"`k` must lie in [{-M.shape[0]}, {M.shape[1]}]; got {k}.")
    options = Options(mask, accum, out, replace, nse)
    rule = _diag_of if M.ndim == 2 else _diag_from
    return call(rule, (M,), options, static={"k": int(k)}, format=format, keeps=rule is _diag_from)


def _diag_from(v, *, k) -> Entries:
    n = v.shape[0] + abs(k)
    e = entries_of(v).holding(n)
    (i,) = e.keys
    keys = tuple(jnp.where(e.valid(), i + shift, n) for shift in (max(-k, 0), max(k, 0)))
    return dataclasses.replace(e, keys=keys, shape=(n, n))


def _diag_of(A, *, k) -> Entries:
    e = entries_of(A)
    (m, n), (i, j) = e.shape, e.keys
    size = max(min(m + min(k, 0), n - max(k, 0)), 0)
    on = e.valid() & (j - i == k)
    return keep(dataclasses.replace(e, keys=(i - max(-k, 0),), shape=(size,)), on, min(e.nse, size))


@overloadable
def resize(A: Sparse, *shape: int) -> Any:
    """The same entries in another shape; those outside of it are dropped. GrB_resize.

    Args:
        A: matrix, SparseVector, or dense vector (padded with 0).
        shape: one Python integer for a vector, two (or a pair) for a matrix.

    Returns:
        An object of the kind, format (CSR where that is padded or tiled) and dtype of A; of its
        capacity under jit.

    Raises:
        ValueError: another number of extents; a negative one; one that needs int64 without x64.
        TypeError: an extent is no Python integer.

    >>> import jaxspv as jsp
    >>> A = jsp.from_dense([[1.0, 2.0], [0.0, 4.0]])
    >>> jsp.graphblas.resize(A, 1, 3).todense().tolist()
    [[1.0, 2.0, 0.0]]
    """
    M = operand("A", A)
    wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    if len(wanted) != M.ndim:
        raise ValueError(f"`shape` must have {M.ndim} extents; got {shape}.")
    check_shape((*wanted, 0)[:2])
    if is_dense(M):
        kept = M[: wanted[0]]
        return jnp.pad(kept, (0, wanted[0] - kept.shape[0]))
    return call(_resize, (M,), Options(), static={"shape": wanted}, format=format_of(M))


def _resize(A, *, shape) -> Entries:
    e = entries_of(A)
    inside = e.valid()
    for key, extent in zip(e.keys, shape, strict=True):
        inside &= key < extent
    return keep(dataclasses.replace(e, shape=tuple(int(s) for s in shape)), inside)


def dup(A: Sparse, dtype: Any = None) -> Any:
    """A duplicate, of another dtype if that is given. GrB_dup; values never change in place.

    Args:
        A: matrix, SparseVector, or dense vector.
        dtype: of the values; None: that of A.

    Returns:
        An object of the same kind and pattern.

    Raises:
        TypeError: A is none of these.

    >>> import jaxspv as jsp, jax.numpy as jnp
    >>> jsp.graphblas.dup(jsp.from_dense([[1.0]]), jnp.int32)
    CSR(int32[1], shape=(1, 1))
    """
    M = operand("A", A)
    return M if dtype is None else M.astype(dtype)


def build(
    indices: Indices | tuple[Indices, Indices],
    values: Values | Number,
    shape: Any,
    *,
    dup: Any = None,
    nse: int | None = None,
    format: str = "csr",
    index_dtype: Any = None,
) -> Any:
    """A matrix or a vector from places and values. GrB_build of the GraphBLAS C API 2.1.

    Args:
        indices: (rows, columns), each int (k,), for a matrix; int (k,) for a vector.
        values: (k,), or a scalar for all.
        shape: (m, n) or n.
        dup: combines values of equal places from the first to the last: a BinaryOp, Monoid or
            function; None: a place must not come twice, which is checked for concrete indices;
            under jit the first then stays.
        nse, format, index_dtype: as in `from_edges`.

    Returns:
        The matrix in `format`, or a SparseVector, in the dtype of the values.

    Raises:
        ValueError: a place comes twice and `dup` is None; as `from_edges`.
        TypeError: as `from_edges`.

    >>> import jaxspv as jsp
    >>> build(([1, 0, 1], [0, 1, 0]), [1.0, 2.0, 4.0], (2, 2),
    ...       dup=jsp.operators.second).todense().tolist()
    [[0.0, 2.0], [4.0, 0.0]]
    """
    if dup is None:
        joined = any_
        _check_places(indices)
    elif isinstance(dup, Monoid):
        joined = dup
    else:  # a scan of runs combines from the left: first, second and others mean what they say
        joined = Monoid(as_binary(dup, "dup"), 0, dtypes="biufc")
    how: dict[str, Any] = {"dup": joined, "nse": nse, "index_dtype": index_dtype}
    if isinstance(indices, tuple) and len(indices) == 2:
        return from_edges(*indices, values, shape=shape, format=format, **how)
    n = shape[0] if isinstance(shape, tuple) else shape
    return vector_from_entries(indices, values, n, **how)


def _check_places(indices: Any) -> None:
    if is_concrete(indices):
        places = np.atleast_2d(np.asarray(indices)).T
        unique, counts = np.unique(places, axis=0, return_counts=True)
        if (counts > 1).any():
            twice = tuple(unique[counts > 1][0].tolist())
            raise ValueError(f"`dup` is needed: the place {twice} comes more than once.")
