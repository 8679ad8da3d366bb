"""`extract`: submatrices, rows, columns and subvectors; `A[i, j]` is its short form."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy  # its modules are imported when they are first used
from jax import Array

from .._core.eager.arrays import known_while_tracing, to_device, zeros
from .._core.forms import overloadable
from .._core.indices import eager_capacity, index_dtype_for, with_pattern
from .._core.pytree import is_concrete
from ..formats import CSR
from ..formats.stored import in_slots
from ..formats.vector import SparseVector
from ..shapes import Allowed, Operand, Places
from .write_rule.call import Dense, Options, call, format_of, is_dense, operand
from .write_rule.entries import (
    Entries,
    element,
    elements,
    entries_of,
    find,
    keep,
    sort_entries,
    take,
)
from .write_rule.index import (
    Index,
    as_index,
    as_indices,
    csr_like,
    is_on_host,
    is_vector_on_host,
    listed,
)


@overloadable
def extract(
    A: Operand,
    i: Places = None,
    j: Places = None,
    *,
    mask: Allowed = None,
    accum: Any = None,
    out: Operand | None = None,
    replace: bool = False,
    nse: int | None = None,
) -> Any:
    """`C[k, l] = A[i[k], j[l]]` where that is stored; `w[k] = u[i[k]]` for a vector.

    GrB_extract of the GraphBLAS C API 2.1.

    Args:
        A: matrix, SparseVector, or dense vector.
        i, j: None or a slice (static), an integer, or an array of integers in any order, with
            repetitions; traced integers and arrays too. An integer takes one row or column.
        mask, accum, out, replace: as in `ewise_add`.
        nse: capacity; a bucket eagerly. Under jit a bound no result exceeds: A.nse for slices,
            times the length of an array of indices.

    Returns:
        A matrix; a vector where one of i and j is an integer (of a dense vector a dense one); a
        scalar array, 0 where nothing is stored, where both are.

    Raises:
        IndexError: a concrete index is out of range. A traced one selects nothing.
        ValueError: `nse` too small for concrete values.
        TypeError: an index is something else; options with a scalar result.

    Cost: O((nse + entries selected + indices) log), with a sort where indices do not ascend.

    >>> import jaxspv as jsp
    >>> A = jsp.from_dense([[1.0, 2.0], [3.0, 4.0]])
    >>> jsp.extract(A, [1, 1, 0], slice(0, 1)).todense().tolist()
    [[3.0], [3.0], [1.0]]
    >>> jsp.extract(A, 1).todense().tolist()
    [3.0, 4.0]
    """
    M = operand("A", A)
    options = Options(mask, accum, out, replace, nse)
    M = with_pattern(M) if M.ndim == 2 else M
    indices = as_indices(M, i, j)
    if all(index.point for index in indices):
        if options.writes:
            raise TypeError("an element has no `mask`, `accum`, `out` or `replace`.")
        if M.ndim == 1 or not _on_host(M, options, *indices):
            return _element(M, *to_device(indices))
        return _stored_at(M, *indices) if M.row_sorted else _stored_at(M.T, *indices[::-1])
    if M.ndim == 1:
        if not options.writes and options.nse is None and is_vector_on_host(M, *indices):
            return _part(M, *indices)
        return call(_subvector, (M, *to_device(indices)), options, dense=is_dense(M))
    rows, cols = indices
    if _on_host(M, options, rows, cols):
        if M.row_sorted:
            return _by_numpy(M, rows, cols)
        flipped = _by_numpy(M.T, cols, rows)
        return flipped.T if flipped.ndim == 2 else flipped
    rows, cols = to_device((rows, cols))
    static = {"capacity": _capacity(M, rows, cols, options)}
    return call(_extract, (M, rows, cols), options, static=static, format=format_of(M))


def _on_host(A: Any, options: Options, *indices: Index) -> bool:
    """Whether NumPy and SciPy serve."""
    return not options.writes and options.nse is None and is_on_host(A, *indices)


def _by_numpy(A: CSR, rows: Index, cols: Index) -> Any:
    """The same by NumPy and SciPy, which have no program for each size."""
    indptr, indices, data = (np.asarray(x) for x in (A.indptr, A.indices, A.data))
    if rows.point or (rows.values is None and rows.step == 1):  # neighbours
        first = int(np.asarray(rows.values)[0]) if rows.point else rows.start * (rows.size > 0)
        indptr = indptr[first : first + rows.size + 1]
        used = slice(int(indptr[0]), int(indptr[-1]))
        data, indices, indptr = data[used], indices[used], indptr - indptr[0]
    else:
        data, indices, indptr = _by_scipy((data, indices, indptr), A.shape, 0, rows)
    if cols.point:
        slots = np.flatnonzero(indices == cols.values[0])
        return _vector(A, data[slots], indptr.searchsorted(slots, "right") - 1, rows.size)
    if cols.values is None and cols.step == 1 and not cols.whole:
        slots = np.flatnonzero((indices >= cols.start) & (indices < cols.start + cols.size))
        data, indices = data[slots], indices[slots] - cols.start
        indptr = slots.searchsorted(indptr)
    elif not cols.whole:
        shape = rows.size, cols.extent
        data, indices, indptr = _by_scipy((data, indices, indptr), shape, 1, cols)
    if rows.point:
        return _vector(A, data, indices, cols.size)
    return csr_like(A, (data, indices, indptr), (rows.size, cols.size), A.overflow)


def _by_scipy(parts: tuple[Any, ...], shape: Any, axis: int, index: Index) -> tuple[Any, ...]:
    """Some rows or columns of compressed rows (data, indices, indptr); without padding."""
    data, indices, indptr = parts
    count, known = indptr[-1], data.dtype.char in "?bhilfdFD"  # SciPy's dtypes
    values = data[:count] if known else np.arange(count)
    chosen = scipy.sparse.csr_array((values, indices[:count], indptr), shape)
    chosen = chosen[:, listed(index)] if axis else chosen[listed(index)]
    chosen.sort_indices()
    return chosen.data if known else data[chosen.data], chosen.indices, chosen.indptr


def _stored_at(A: CSR, row: Index, col: Index) -> Array:
    """The element of compressed rows in the memory of a host."""
    i, j = int(row.values[0]), col.values[0]
    first, last = np.asarray(A.indptr)[i : i + 2]
    columns = np.asarray(A.indices)[first:last]
    at = columns.searchsorted(j)
    found = at < columns.size and columns[at] == j
    return to_device(np.asarray(A.data)[first + at] if found else np.zeros((), A.dtype), A.data)


def _part(v: SparseVector, index: Index) -> SparseVector:
    """Some places of a vector by NumPy, which has no program for each size."""
    own, data = (np.asarray(x)[: int(v.count)] for x in (v.indices, v.data))
    if index.values is None:
        k, rest = np.divmod(own.astype(np.int64) - index.start, index.step)
        slots = np.flatnonzero((rest == 0) & (k >= 0) & (k < index.size))
        slots = slots[:: -1 if index.step < 0 else 1]
        return _vector(v, data[slots], k[slots], index.size)
    places = np.asarray(index.values)
    at = own.searchsorted(places)
    found = np.flatnonzero(at < own.size)
    found = found[own[at[found]] == places[found]]
    return _vector(v, data[at[found]], found, index.size)


def _vector(A: CSR | SparseVector, data: Any, indices: Any, n: int) -> SparseVector:
    """Entries in NumPy's arrays as a vector, in the capacity of eager results."""
    capacity = eager_capacity(data.size, n)
    count: Any = np.asarray(data.size, A.index_dtype)
    data = in_slots(data, capacity, 0, A.dtype)
    indices = in_slots(indices, capacity, n, A.index_dtype)
    return to_device(SparseVector(data, indices, count, A.overflow, (n,)), A.data)


@jax.jit
def _element(A, *indices) -> Array:
    value, found = element(A, tuple(index.values for index in indices))
    return jnp.where(found, value, jnp.zeros((), value.dtype))


def pairs(A: Any, i: Places, j: Places) -> Array:
    """`values[k] = A[i[k], j[k]]`, 0 where nothing is stored; one of them may have length 1. Raises
    IndexError: a concrete index is out of range, or the lengths differ."""
    rows, cols = as_index("i", i, A.shape[0]), as_index("j", j, A.shape[1])
    if rows.size != cols.size and 1 not in (rows.size, cols.size):
        raise IndexError(
            f"two arrays take pairs, so they need one length; got {rows.size} and {cols.size}. "
            "All rows with all columns: `A[np.ix_(i, j)]` or `extract(A, i, j)`."
        )
    if is_on_host(with_pattern(A), rows, cols):
        i, j = np.broadcast_arrays(rows.values, cols.values)
        return to_device(
            _by_bisection(A, i, j) if A.row_sorted else _by_bisection(A.T, j, i), A.data
        )
    rows, cols = to_device((rows, cols))
    return _pairs(A, *jnp.broadcast_arrays(rows.values, cols.values))


def _by_bisection(A: CSR, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """The elements of compressed rows in the memory of a host at pairs of places."""
    indptr, indices, data = (np.asarray(x) for x in (A.indptr, A.indices, A.data))
    at, end = indptr[rows].astype(np.int64), np.minimum(indptr[rows + 1], data.size)
    for k in reversed(range(int((end - at).max(initial=0)).bit_length())):
        ahead = at + (1 << k)
        below = (ahead <= end) & (indices.take(ahead - 1, mode="clip") < cols)
        at = np.where(below, ahead, at)
    found = np.flatnonzero(at < end)
    found = found[indices[at[found]] == cols[found]]
    values = zeros(rows.shape, data.dtype)
    values[found] = data[at[found]]
    return values


@jax.jit
def _pairs(A, rows, cols) -> Array:
    values, found = elements(A, (rows, cols))
    found = found.reshape(-1, *(1 for _ in values.shape[1:]))
    return jnp.where(found, values, jnp.zeros((), values.dtype))


def _subvector(u, index) -> Any:
    if is_dense(u):
        own = jnp.arange(index.size, dtype=index_dtype_for(sizes=(index.extent,)))
        places = index.place(own)
        inside = places < u.shape[0]
        return Dense(jnp.where(inside, take(u, places), jnp.zeros((), u.dtype)), inside)
    e = entries_of(u)
    if index.values is None:
        return select_slice(e, 0, index)
    slot, found = find(e, (index.values,))
    own = (jnp.arange(index.size, dtype=e.index_dtype),)
    nothing = jnp.zeros((), e.index_dtype)
    chosen = Entries(take(e.data, slot), own, nothing, e.overflow, (index.size,))
    return keep(chosen, found)


def _capacity(A, rows: Index, cols: Index, options: Options) -> int:
    """How many entries `_extract` must hold: exactly, or a bound; `nse` where that is no less."""
    bound = rows.size * cols.size
    if rows.values is None and cols.values is None:
        return min(A.nse, bound)
    if is_concrete([x for x in jax.tree.leaves(A) if x is not A.data], rows, cols):
        with known_while_tracing():
            fields = {field.name for field in dataclasses.fields(A)}
            bare = {"data": np.zeros(A.nse, bool)} if "data" in fields else {}
            need = int(_count(dataclasses.replace(A, **bare), rows, cols))
        if need == 2**31 - 1:
            raise ValueError("the result has 2^30 entries or more: extract it in parts.")
        return eager_capacity(need, bound)
    if options.nse is not None and options.mask is None:
        return options.nse
    most = A.nse
    for index in (rows, cols):
        most *= 1 if index.values is None else index.size
    if min(bound, most) >= 2**31:
        raise ValueError("`nse` must be given under jit: the safe bound does not fit int32.")
    return min(bound, most)


@jax.jit
def _count(A, rows: Index, cols: Index) -> Array:
    row, col = A.rowcol()
    each = jnp.where(row < A.shape[0], rows.times(row) * cols.times(col), 0)
    fits = jnp.sum(each.astype(jnp.float32)) < 2**30
    return jnp.where(fits, jnp.sum(each, dtype=jnp.int32), jnp.int32(2**31 - 1))


def _extract(A, rows: Index, cols: Index, *, capacity: int) -> Entries:
    e = entries_of(A)
    for axis, index in enumerate((rows, cols)):
        if index.values is None and not index.whole:
            e = select_slice(e, axis, index)
    if cols.values is not None:  # entries that no column selects must not use up the capacity
        e = keep(e, e.valid() & (cols.times(e.keys[1]) > 0))
    if rows.values is not None:
        e = _repeat_rows(e, rows, capacity)
    if cols.values is not None:
        flipped = sort_entries(_transposed(e))
        e = sort_entries(_transposed(_repeat_rows(flipped, cols, capacity)))
    if not (rows.point or cols.point):
        return e
    other = 1 if rows.point else 0
    return dataclasses.replace(e, keys=(e.keys[other],), shape=(e.shape[other],))


def _transposed(e: Entries) -> Entries:
    return dataclasses.replace(e, keys=e.keys[::-1], shape=e.shape[::-1])


def select_slice(e: Entries, axis: int, index: Index) -> Entries:
    """The entries in a slice of an axis, at their places in the slice."""
    own = index.back(e.keys[axis])
    inside = e.valid() & (own < index.size)
    keys = (*e.keys[:axis], own, *e.keys[axis + 1 :])
    shape = (*e.shape[:axis], index.size, *e.shape[axis + 1 :])
    chosen = keep(dataclasses.replace(e, keys=keys, shape=shape), inside)
    return chosen if index.ascending else sort_entries(chosen)


def _repeat_rows(e: Entries, index: Index, capacity: int) -> Entries:
    """Row `index[k]` of e as row k: each copies its run of slots."""
    m, k = e.shape[0], index.size
    shape = (k, e.shape[1])
    if 0 in (k, e.nse):
        blank = tuple(jnp.full(capacity, extent, e.index_dtype) for extent in shape)
        data, nothing = jnp.zeros(capacity, e.data.dtype), jnp.zeros((), e.index_dtype)
        return Entries(data, blank, nothing, e.overflow, shape)
    e = e.holding(capacity)
    dtype = e.index_dtype
    start, end = (
        jnp.searchsorted(e.keys[0], index.values, side=side).astype(dtype)
        for side in ("left", "right")
    )
    lengths = jnp.where(index.values < m, end - start, 0)
    ends = jnp.cumsum(lengths, dtype=dtype)
    wide = jnp.sum(lengths.astype(jnp.float32)) > 2**30
    slot = jnp.arange(capacity, dtype=dtype)
    owner = jnp.searchsorted(ends, slot, side="right").astype(dtype)
    source = take(start, owner) + slot - (take(ends, owner) - take(lengths, owner))
    total = jnp.minimum(ends[-1], capacity)
    valid = slot < total
    keys = (jnp.where(valid, owner, k), jnp.where(valid, take(e.keys[1], source), e.shape[1]))
    flag = e.overflow | (ends[-1] > capacity) | wide
    return Entries(take(e.data, source), keys, total, flag, shape)
