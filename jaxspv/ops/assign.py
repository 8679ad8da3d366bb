"""`assign` and `subassign`: write into a part of a matrix or vector."""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core.eager.arrays import to_device
from .._core.forms import overloadable
from ..algebra.operators import second
from ..formats import CSR, base
from ..formats.stored import Stored
from ..formats.vector import SparseVector
from ..shapes import Allowed, Number, Operand, Places
from .ewise import join, slots_for
from .write_rule.call import (
    Dense,
    Options,
    as_operand_mask,
    call,
    format_of,
    is_dense,
    number,
    operand,
)
from .write_rule.entries import Entries, entries_of, keep, sort_entries, spread, stored
from .write_rule.index import (
    Index,
    as_indices,
    check_distinct,
    csr_like,
    is_listed,
    is_on_host,
    is_vector_on_host,
    listed,
)
from .write_rule.write import allowed_at, as_accum, cast, merge

CAST = {"bool", "int32", "int64", "float32", "float64"}  # dtypes
MOST_PLACES = 1 << 24  # of an axis, for a table of them


@overloadable
def assign(
    C: Operand,
    value: Operand | Number,
    i: Places = None,
    j: Places = None,
    *,
    mask: Allowed = None,
    accum: Any = None,
    replace: bool = False,
    nse: int | None = None,
) -> Any:
    """A copy of C with `C(i, j) = accum(C(i, j), value)`; mask and replace are about all of C.

    GrB_assign of the GraphBLAS C API 2.1: Z is C with its part (i, j) replaced by `value` (without
    `accum` an entry there that `value` lacks is deleted); then C<mask, replace> = Z.

    Args:
        C: matrix, SparseVector, or dense vector.
        value: matrix of shape (len(i), len(j)); vector (for a vector C, or where one of i and j is
            an integer); or a scalar for every place of (i, j).
        i, j: as in `extract`, no index twice.
        mask: as in `ewise_add`, in the shape of C. A vector in the shape of the row or column that
            an integer index names: it and `replace` are about that row or column alone
            (GrB_Row_assign, GrB_Col_assign).
        accum, replace: as in `ewise_add`.
        nse: capacity; a bucket eagerly, C.nse and what `value` has under jit.

    Raises:
        IndexError: a concrete index is out of range. Under jit that part is dropped.
        ValueError: shapes differ, an index comes twice, `nse` too small for concrete values.
        TypeError: C is no matrix or vector, `value` no number or array, an index no integer.

    Returns:
        A new object of the kind, shape, format (CSR where that is padded or tiled) and dtype of C.
        A deleted entry of a dense C becomes 0; padding of C and of `value` reaches nothing.

    Differentiable in both modes in C and in `value`.

    >>> import jaxspv as jsp
    >>> A = jsp.from_dense([[1.0, 2.0], [3.0, 4.0]])
    >>> jsp.assign(A, 9.0, 0).todense().tolist()
    [[9.0, 9.0], [3.0, 4.0]]
    >>> jsp.assign(A, 9.0, 0, mask=[[True, False], [True, False]],
    ...            replace=True).todense().tolist()
    [[9.0, 0.0], [3.0, 0.0]]
    """
    return _run(C, value, i, j, Options(mask, accum, None, replace, nse), sub=False)


def subassign(
    C: Operand,
    value: Operand | Number,
    i: Places = None,
    j: Places = None,
    *,
    mask: Allowed = None,
    accum: Any = None,
    replace: bool = False,
    nse: int | None = None,
) -> Any:
    """A copy of C with `C(i, j)<mask, replace> = accum(C(i, j), value)`; the rest of C stays.

    GxB_subassign of SuiteSparse:GraphBLAS.

    Args:
        C, value, i, j, accum, nse: as in `assign`.
        mask: in the shape of the part (i, j).
        replace: deletes what the mask does not allow in the part alone.

    Returns:
        As `assign`.

    Raises:
        IndexError, ValueError, TypeError: as `assign`.

    >>> import jaxspv as jsp
    >>> A = jsp.from_dense([[1.0, 2.0], [3.0, 4.0]])
    >>> jsp.graphblas.subassign(A, 9.0, 0, mask=[True, False], replace=True).todense().tolist()
    [[9.0, 0.0], [3.0, 4.0]]
    """
    return _run(C, value, i, j, Options(mask, accum, None, replace, nse), sub=True)


def _run(C, value, i, j, options: Options, sub: bool) -> Any:
    C = operand("C", C)
    indices = as_indices(C, i, j)
    for name, index in zip("ij", indices, strict=False):
        check_distinct(name, index)
    local = tuple(x.size for x in indices if not (x.point and C.ndim == 2))
    scalar = not isinstance(value, Stored) and np.ndim(value) == 0
    value = number("value", value, C.dtype) if scalar else operand("value", value)
    if not scalar and value.shape != local and not (local == () and value.shape == (1,)):
        raise ValueError(f"`value` must be a scalar or have shape {local}; got {value.shape}.")
    if options.mask is None and options.accum is None and options.nse is None:
        if _on_host(C, value, indices):
            return _by_numpy(C, value, indices) if C.ndim == 2 else _into_vector(C, value, *indices)
    mask: Any = as_operand_mask(options.mask)
    line = tuple(x.extent for x in indices if not x.point)
    fits = [local] if sub else [C.shape, line] if len(line) == 1 else [C.shape]
    if mask is not None and tuple(mask.shape) not in [tuple(s) for s in fits]:
        wanted = " or ".join(str(tuple(s)) for s in fits)
        raise ValueError(f"`mask` must have shape {wanted}; got {tuple(mask.shape)}.")
    if any(x.values is not None for x in indices):
        indices = to_device(indices)
    operands = (C, value, indices, mask, as_accum(options.accum))
    static = {"sub": sub, "scalar": scalar, "replace": bool(options.replace)}
    how = {"static": static, "format": format_of(C), "dense": is_dense(C)}
    return call(_assign, operands, Options(nse=options.nse), **how)


def _on_host(C: Any, value: Any, indices: tuple[Index, ...]) -> bool:
    """Whether NumPy serves: all lies in the memory of a host, in dtypes that it casts alike."""
    there = is_on_host if C.ndim == 2 else is_vector_on_host
    if max(C.shape) > MOST_PLACES or is_dense(C) or not there(C, value, indices):
        return False
    if C.ndim == 1 and indices[0].whole:  # one program
        return False
    if isinstance(value, Stored) and value.ndim == 2 and not is_listed(value):
        return False
    if not hasattr(value, "dtype"):
        fits = (bool, int, float) if C.dtype.kind == "f" else (bool, int)
        return C.dtype.name in CAST and isinstance(value, fits)
    names = value.dtype.name, C.dtype.name
    return {*names} <= CAST and np.can_cast(*names, "same_kind")


def _by_numpy(C: Any, value: Any, indices: tuple[Index, ...]) -> Any:
    """`assign` without mask and accum; by NumPy, which has no program for each size."""
    if C.format == "csc":
        transposed = value.T if np.ndim(value) == 2 else value
        return _by_numpy(C.T, transposed, indices[::-1]).T
    places = [np.arange(x.extent)[listed(x)] for x in indices]
    old, new = base.entries_on_host(C), _local(value, indices)
    hit = [np.zeros(n, bool) for n in C.shape]
    for marks, at in zip(hit, places, strict=True):
        marks[at] = True
    stays = ~(hit[0][old[0]] & hit[1][old[1]])
    row, col = (
        np.concatenate([before[stays], at[k].astype(before.dtype)])
        for before, at, k in zip(old, places, new, strict=False)
    )
    data = np.concatenate([old[2][stays], np.asarray(new[2], C.dtype)])
    order = np.argsort(row * np.int64(C.shape[1]) + col, kind="stable")
    indptr = np.append(0, np.cumsum(np.bincount(row, minlength=C.shape[0])))
    overflow = C.overflow
    if isinstance(value, Stored):
        overflow = to_device(np.asarray(overflow) | np.asarray(value.overflow), overflow)
    return csr_like(C, (data[order], col[order], indptr), C.shape, overflow)


def _into_vector(v: SparseVector, value: Any, index: Index) -> SparseVector:
    """The same of a vector, the only row of a matrix."""
    ends: Any = np.array([0, v.count], v.index_dtype)
    row = CSR(v.data, v.indices, ends, v.overflow, (1, *v.shape))
    first = Index(np.zeros(1, v.index_dtype), size=1, extent=1, point=True)
    made = _by_numpy(row, value, (first, index))
    count: Any = to_device(np.asarray(made.indptr)[-1], made.indptr)
    return SparseVector(made.data, made.indices, count, made.overflow, v.shape)


def _local(value: Any, indices: tuple[Index, ...]) -> tuple[Any, Any, Any]:
    """(row, column, value) of what is assigned, by its places in the part."""
    stored: Any = value if isinstance(value, Stored) else None
    if stored is not None and stored.ndim == 2:
        row, col, data = base.entries_on_host(stored)
        real = row < stored.shape[0]
        return row[real], col[real], data[: real.size][real]
    if np.ndim(value) == 0:
        row, col = (k.ravel() for k in np.indices([x.size for x in indices]))
        return row, col, np.broadcast_to(np.asarray(value), row.shape)
    if stored is not None:
        k, data = np.asarray(stored.indices), np.asarray(stored.data)
        real = k < stored.shape[0]
        k, data = k[real], data[real]
    else:
        k, data = np.arange(value.shape[0]), np.asarray(value)
    nothing = np.zeros_like(k)
    return (nothing, k, data) if indices[0].point else (k, nothing, data)


def _assign(C, value, indices, mask, accum, *, sub, scalar, replace) -> Dense | Entries:
    """The value at its places in C, then the write rule with a region and a scope."""
    c = entries_of(C)
    rule: Any = mask
    line = mask is not None and not sub and len(rule.shape) < len(c.shape)

    def region(keys):
        return _inside(indices, keys)

    def of_line(keys):
        points = [(x, k) for x, k in zip(indices, keys, strict=True) if x.point]
        return _inside(*zip(*points, strict=True))

    def allowed(keys):
        if sub:
            whole, each = len(rule.shape) == len(keys), zip(indices, keys, strict=True)
            return allowed_at(rule, tuple(x.back(k) for x, k in each if whole or not x.point))
        if line:
            keys = tuple(k for x, k in zip(indices, keys, strict=True) if not x.point)
        return allowed_at(rule, keys)

    if scalar:
        t = _scalar_entries(jnp.asarray(value), indices, c, mask, sub, line)
    else:
        t = _placed(value, indices, c.shape)
    t = cast(t, c.data.dtype) if accum is None else t
    if scalar and accum is None and not (sub or line or replace) and _lists_places(mask):
        T = stored(t, format_of(C))  # at just the places of the region that the mask allows
        return join(C, T, second, places="either", slots=slots_for(C, T, "either"))
    c = dataclasses.replace(c, overflow=c.overflow | t.overflow)
    scope = region if sub else of_line if line else None
    by_mask = None if mask is None else allowed
    e = merge(c, t, by_mask, accum, replace, None, region, scope)
    return Dense(spread(e)[0]) if is_dense(C) else e


def _lists_places(mask: Any) -> bool:
    return mask is not None and not mask.complement and isinstance(mask.source, Stored)


def _inside(indices: Sequence[Index], keys: Sequence[Array]) -> Array:
    """Whether indices select the places `keys`."""
    hits = (index.back(key) < index.size for index, key in zip(indices, keys, strict=True))
    return functools.reduce(operator.and_, hits)


def _placed(value, indices, shape) -> Entries:
    """The entries of `value` at `indices`; those that are out of range are dropped."""
    e = entries_of(value).holding(*shape)
    own, keys = list(e.keys), []
    for index in indices:
        vanished = index.point and len(indices) == 2
        keys.append(index.place(jnp.zeros_like(e.keys[0]) if vanished else own.pop(0)))
    return _in_order(dataclasses.replace(e, keys=tuple(keys), shape=shape), indices)


def _in_order(e: Entries, indices) -> Entries:
    inside = e.valid()
    for key, extent in zip(e.keys, e.shape, strict=True):
        inside &= key < extent
    if all(index.values is None or index.size <= 1 for index in indices):
        if all(index.ascending for index in indices):
            return keep(e, inside)
    return sort_entries(keep(e, inside))


def _scalar_entries(value, indices, c: Entries, mask: Any, sub: bool, line: bool) -> Entries:
    """A scalar at every place of the region, or with a sparse mask only at the mask's places."""
    if _lists_places(mask) and not line:
        e = entries_of(mask.source)
        if not mask.structural:
            e = keep(e, e.valid() & e.data.astype(bool))
        e = e.with_data(jnp.broadcast_to(value, (e.nse,)))
        if sub:
            return _placed(e, indices, c.shape)
        whole = all(index.whole for index in indices)
        return e if whole else keep(e, e.valid() & _inside(indices, e.keys))
    sizes = [index.size for index in indices]
    total = math.prod(sizes)
    c = c.holding(total)
    flat = jnp.arange(total, dtype=c.index_dtype)
    parts = (flat,) if len(sizes) == 1 else (flat // max(sizes[1], 1), flat % max(sizes[1], 1))
    keys = tuple(index.place(part) for index, part in zip(indices, parts, strict=True))
    count = jnp.asarray(total, c.index_dtype)
    e = Entries(jnp.broadcast_to(value, (total,)), keys, count, jnp.asarray(False), c.shape)
    return _in_order(e, indices)
