"""Making sparse matrices: from SciPy, dense arrays, edge lists, BCOO and BCSR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core.eager.arrays import (
    array_of,
    differ,
    is_eager,
    known_while_tracing,
    on_accelerator,
    single,
    to_device,
)
from .._core.indices import LIMIT, check_range, checked_count, index_dtype_for
from .._core.pytree import is_concrete
from ..algebra.monoids import Monoid, as_monoid, plus
from ..formats import COO, CSR, FORMATS
from ..formats.stored import as_values, in_slots
from ..shapes import ArrayLike, Indices, Number, Shaped, Values
from .edges import (
    by_rows,
    check_shape,
    checked_capacity,
    checked_indices,
    checked_values,
    joined_host,
    moved,
    narrow,
    noted,
    unique_host,
    unique_traced,
    values_in,
)


def from_edges(
    senders: Indices,
    receivers: Indices,
    values: Values | Number | None = None,
    *,
    shape: tuple[int, int] | None = None,
    nse: int | None = None,
    dup: Monoid = plus,
    return_slots: bool = False,
    format: str = "csr",
    index_dtype: Any = None,
) -> Any:
    """A matrix from an edge list in any order: entry (senders[e], receivers[e]) holds values[e].

    Args:
        senders, receivers: int (edges,).
        values: (edges,), or a scalar for all; float32 ones by default.
        shape: (m, n), Python integers; None: (n, n), one more than the largest index there is. It
            must be given under jit.
        nse: capacity; by default the number of distinct pairs where indices are concrete, the
            number of edges under jit. Where the edges are not in the order of the slots, or may not
            be, and the slots would be as many, it is one more: `with_data`, which takes values in
            slot order, so refuses values in the order of the edges; see `with_edge_data`.
        dup: the monoid that combines the values of equal pairs.
        return_slots: also give, for each edge, the slot that holds it (`nse` where it was dropped),
            for `with_edge_data(slots, values)`; there is no slot to spare then.
        format: name of the format.
        index_dtype: int32 or int64 (under x64); None: int32, unless an extent or the number of
            edges needs int64. The dtype of `senders` and `receivers` is not looked at.

    Returns:
        The matrix, sorted and unique; or (matrix, slots). Under jit an edge out of range is
        dropped, and pairs beyond `nse` are dropped and set `overflow`.

    Raises:
        ValueError: shapes differ, an index is out of range, `nse` is too small, int64 indices are
            asked for or needed without x64.
        TypeError: indices are no integers, `shape` is no pair of Python integers.

    >>> A, slots = from_edges([1, 0, 1], [0, 1, 0], [1.0, 2.0, 4.0], shape=(2, 2),
    ...                       return_slots=True)
    >>> A.todense().tolist(), slots.tolist()
    ([[0.0, 2.0], [5.0, 0.0]], [1, 0, 1])
    """
    _check_format(format)
    dup = as_monoid(dup, "dup")
    row, col = checked_indices("senders", senders), checked_indices("receivers", receivers)
    if row.shape != col.shape or row.ndim != 1:
        raise ValueError(
            "`senders` and `receivers` must be 1-D and of one length; "
            f"got {row.shape} and {col.shape}."
        )
    if shape is None:
        if not is_concrete(row, col):
            raise ValueError("`shape` must be given under jit: the largest index is unknown.")
        n = max((int(index.max()) + 1 for index in (row, col) if index.size), default=0)
        shape = n, n
    shape = check_shape(shape)
    data, nse = checked_values(values, row.shape[0]), checked_count("nse", nse, 0)
    dtype = index_dtype_for(sizes=(*shape, row.shape[0], nse or 0), asked=index_dtype)
    concrete = is_concrete(row, col)
    if concrete:
        check_range("senders", row, shape[0])
        check_range("receivers", col, shape[1])
    on_host = concrete and not (is_eager(data) and on_accelerator(row, col, data))  # traced: host
    sort = unique_host if on_host else unique_traced
    row, col, slots, count = sort(row, col, shape, dtype)
    edges = slots.shape[0]
    in_order = concrete and (format in ("csr", "coo") or edges < 2) and by_rows(slots, count)
    if nse is None and not return_slots and not in_order:
        nse = edges + 1 if not concrete or int(count) == edges else None
    capacity = checked_capacity(nse, count, concrete, edges)
    over = count > capacity
    overflow: Any = np.asarray(over) if on_host else jnp.asarray(over)
    slots = (np if on_host else jnp).where(slots < capacity, slots, capacity)
    known = on_host and is_concrete(data)  # then there is no program to compile
    joined = joined_host(dup, np.asarray(data), slots, int(count), capacity) if known else None
    if joined is None:
        joined = dup.segment_reduce(array_of("values", data), jnp.asarray(slots), capacity)
    row, col = in_slots(row, capacity, shape[0], dtype), in_slots(col, capacity, shape[1], dtype)
    matrix = to_device(COO(joined, row, col, overflow, shape), data)
    A = as_format(matrix, format)
    if not return_slots:
        return noted(A, matrix, slots, count) if concrete else A
    return A, moved(type(A), matrix, slots)


def from_dense(
    dense: Shaped[ArrayLike, "m n *entry"] | Sequence[Any],
    *,
    nse: int | None = None,
    fill: Number = 0,
    format: str = "csr",
    index_dtype: Any = None,
) -> Any:
    """The entries of a dense matrix that differ from `fill`.

    Args:
        dense: (m, n) array.
        nse: capacity; by default the number of entries. It must be given under jit.
        fill: the value of what is left out; NaN leaves out NaN.
        format, index_dtype: as in `from_edges`.

    Raises:
        ValueError: `dense` is no matrix; `nse` is too small, or missing under jit.
        TypeError: `dense` or `fill` is not of numbers.

    >>> from_dense([[0.0, 2.0], [3.0, 0.0]])
    CSR(float32[2], shape=(2, 2))
    """
    dense = as_values(dense, "dense")
    single("fill", fill)
    if dense.ndim != 2:
        raise ValueError(f"`dense` must be a matrix; got shape {dense.shape}.")
    _check_format(format)
    if nse is None and not is_concrete(dense):
        raise ValueError("`nse` must be given under jit: the number of entries is unknown.")
    if is_eager(dense) and not on_accelerator(dense):
        return as_format(_dense_on_host(dense, nse, fill, index_dtype), format)
    with known_while_tracing():
        differs = differ(dense, fill)
        count = jnp.sum(differs, dtype=jnp.int32)
    capacity = checked_capacity(nse, count, is_concrete(dense), dense.size)
    m, n = dense.shape
    if dense.size:
        row, col = jnp.nonzero(differs, size=capacity, fill_value=(m, n))
        data = dense.at[row, col].get(mode="fill", fill_value=0)
    else:  # JAX neither fills the places of nothing nor gathers from it
        row, col = jnp.full(capacity, m), jnp.full(capacity, n)
        data = jnp.zeros(capacity, dense.dtype)
    overflow = jnp.asarray(count > capacity)
    dtype = index_dtype_for(sizes=(m, n, capacity), asked=index_dtype)
    coo = COO(data, row.astype(dtype), col.astype(dtype), overflow, (m, n))
    return as_format(coo, format)


def _dense_on_host(dense: Array, nse: int | None, fill: Number, asked: Any) -> COO:
    """`from_dense` by NumPy: JAX compiles some 30 programs for a shape."""
    values, (m, n) = np.asarray(dense), dense.shape
    row, col = np.nonzero(differ(values, fill))
    capacity = checked_capacity(nse, row.size, True, values.size)
    dtype = index_dtype_for(sizes=(m, n, capacity), asked=asked)
    data = in_slots(values[row, col], capacity, 0)
    row, col = in_slots(row, capacity, m, dtype), in_slots(col, capacity, n, dtype)
    overflow: Any = np.asarray(False)
    return to_device(COO(data, row, col, overflow, (m, n)), dense)


def from_scipy(
    matrix: Any,
    *,
    nse: int | None = None,
    dtype: Any = None,
    dup: Monoid = plus,
    format: str = "csr",
    index_dtype: Any = None,
) -> Any:
    """A matrix from any `scipy.sparse` array or matrix (host).

    Explicit zeros stay entries; duplicates are joined by `dup`. float64 and int64 values become
    float32 and int32 unless x64 is enabled, as everywhere in JAX; values that do not fit, 1e300
    say, or 1.5 in an integer `dtype`, raise. Indices become int32, whatever SciPy holds, unless
    `index_dtype` or a size asks for int64, as in `from_edges`.

    Raises:
        TypeError: `matrix` is not sparse.
        ValueError: it is 1-D, it needs int64 indices (an extent or 2^31 - 1 entries) without x64,
            or values do not fit.

    >>> import scipy.sparse
    >>> from_scipy(scipy.sparse.eye_array(3, format="csr"))
    CSR(float32[3], shape=(3, 3))
    """
    import scipy.sparse

    if not scipy.sparse.issparse(matrix):
        raise TypeError(f"`matrix` must be a scipy.sparse array; got {type(matrix).__name__}.")
    _check_format(format)
    if matrix.ndim != 2:
        raise ValueError(
            f"`matrix` must be 2-D; got shape {matrix.shape}. Of a 1-D x: "
            "`vector_from_entries(x.coords[0], x.data, x.shape[0])`."
        )
    as_it_is = matrix.format == format == "csr" and matrix.has_canonical_format
    coo: Any = matrix if as_it_is else matrix.tocoo()
    data = coo.data[: coo.nnz]  # a CSR may have more
    values = narrow(data) if dtype is None else values_in(dtype, data, "`matrix` holds")
    if as_it_is:
        return _csr_from_host(matrix, values, nse, index_dtype)
    row, col = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
    how: dict[str, Any] = {"nse": nse, "dup": dup, "format": format, "index_dtype": index_dtype}
    return from_edges(row, col, values, shape=coo.shape, **how)


def from_bcoo(matrix: Any, *, dup: Monoid = plus, format: str = "csr") -> Any:
    """A matrix from `jax.experimental.sparse.BCOO` with two sparse dimensions; traceable.

    The capacity and the index dtype stay.

    Raises:
        ValueError: `matrix` is no BCOO of two sparse dimensions and no others.

    >>> import jax.numpy as jnp
    >>> from jax.experimental import sparse
    >>> from_bcoo(sparse.BCOO.fromdense(jnp.eye(2)))
    CSR(float32[2], shape=(2, 2))
    """
    is_bcoo = getattr(matrix, "n_sparse", None) == 2 and not hasattr(matrix, "indptr")
    if not is_bcoo or matrix.n_batch or matrix.n_dense:
        raise ValueError("`matrix` must be a BCOO of two sparse and no batch or dense dimensions.")
    row, col = matrix.indices[:, 0], matrix.indices[:, 1]
    return _from_padded(row, col, matrix.data, matrix.shape, matrix.nse, dup, format)


def from_bcsr(matrix: Any, *, dup: Monoid = plus, format: str = "csr") -> Any:
    """A matrix from `jax.experimental.sparse.BCSR` without batch or dense dimensions; traceable.

    The capacity and the index dtype stay.

    Raises:
        ValueError: `matrix` is no BCSR, or has batch or dense dimensions.

    >>> import jax.numpy as jnp
    >>> from jax.experimental import sparse
    >>> from_bcsr(sparse.BCSR.fromdense(jnp.eye(2)))
    CSR(float32[2], shape=(2, 2))
    """
    if getattr(matrix, "n_batch", 1) or matrix.n_dense or not hasattr(matrix, "indptr"):
        raise ValueError("`matrix` must be a BCSR without batch or dense dimensions.")
    csr = CSR(matrix.data, matrix.indices, matrix.indptr, jnp.asarray(False), matrix.shape)
    return _from_padded(*csr.rowcol(), csr.data, csr.shape, csr.nse, dup, format)


def _check_format(name: str) -> None:
    if not isinstance(name, str) or name not in FORMATS:
        raise ValueError(f"`format` must be one of {sorted(FORMATS)}; got {name!r}.")


def as_format(coo: COO, name: str) -> Any:
    """A sorted COO in the format called `name`."""
    _check_format(name)
    on_host = is_concrete(coo.row) and not on_accelerator(coo.row)
    if name == "csr" and coo.shape[0] < LIMIT and on_host:
        m, n = coo.shape  # on the host, where a CSR is two counts: no program to compile
        counts = np.bincount(np.asarray(coo.row), minlength=m + 1)[:m]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(coo.index_dtype)
        return CSR(
            coo.data, coo.col, to_device(indptr, coo.row), coo.overflow, (m, n), True, coo.unique
        )
    return FORMATS[name].from_coo(coo)


def _csr_from_host(matrix: Any, values: np.ndarray, nse: int | None, asked: Any) -> CSR:
    m, n = check_shape(tuple(int(s) for s in matrix.shape))
    capacity = checked_capacity(nse, matrix.nnz, True, matrix.nnz)
    dtype = index_dtype_for(sizes=(m, n, capacity), asked=asked)
    check_range("matrix.indices", matrix.indices[: matrix.nnz], n)
    data = in_slots(values, capacity, 0)  # a copy
    indices = in_slots(matrix.indices[: matrix.nnz], capacity, n, dtype)
    indptr = in_slots(matrix.indptr, m + 1, 0, dtype)
    overflow: Any = np.asarray(False)
    return to_device(CSR(data, indices, indptr, overflow, (m, n)))


def _from_padded(row, col, data, shape, nse, dup, format):
    """From triplets whose padding is out of range; keeps their capacity and index dtype."""
    _check_format(format)
    dup, values = as_monoid(dup, "dup"), None
    kept = row.dtype if row.dtype == np.int64 else None
    dtype = index_dtype_for(sizes=(*shape, nse), asked=kept)
    if is_concrete(row, col, data) and not on_accelerator(row, col, data):
        row, col = np.asarray(row), np.asarray(col)
        inside = (row >= 0) & (row < shape[0]) & (col >= 0) & (col < shape[1])
        slots = np.full(row.shape, nse, dtype)
        row, col, slots[inside], count = unique_host(row[inside], col[inside], shape, dtype)
        row, col = in_slots(row, nse, shape[0], dtype), in_slots(col, nse, shape[1], dtype)
        values = joined_host(dup, np.asarray(data)[inside], slots[inside], count, nse)
    else:
        row, col, slots, count = unique_traced(row, col, shape, dtype)
        slots = jnp.where(slots < nse, slots, nse)
    if values is None:
        values = dup.segment_reduce(data, jnp.asarray(slots), nse)
    coo = to_device(COO(values, row, col, jnp.asarray(count > nse), tuple(shape)), data)
    A = as_format(coo, format)
    return noted(A, coo, slots, count) if is_concrete(slots) else A
