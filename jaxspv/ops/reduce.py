"""`reduce`: rows or columns of a matrix to a vector, everything to a scalar."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._core.eager.arrays import array_of
from .._core.eager.programs import one_program
from .._core.forms import overloadable
from .._core.indices import LIMIT, with_pattern
from .._core.loops import over_trailing
from .._core.native_loops import computed_once
from ..algebra import semirings
from ..algebra.monoids import Monoid, as_monoid, max_, min_, plus
from ..formats import SparseMatrix
from ..shapes import Allowed, Operand
from .products.common.product import entry_rows, first_equal
from .products.mxv.api import mxv, vxm
from .write_rule.call import Dense, Options, as_out, call, operand
from .write_rule.entries import PLAIN, Entries, entries_of, join_equal, sort_entries, take
from .write_rule.write import accumulated, as_accum

AS_PRODUCTS = {
    plus: (semirings.plus_first, semirings.plus_second),
    min_: (semirings.min_first, semirings.min_second),
    max_: (semirings.max_first, semirings.max_second),
}


@overloadable
def reduce(
    A: Operand,
    add: Any = plus,
    *,
    axis: int | None = None,
    mask: Allowed = None,
    accum: Any = None,
    out: Operand | None = None,
    replace: bool = False,
    nse: int | None = None,
) -> Any:
    """Joins the entries: `y[i] = add_j A[i, j]` (axis=1), `y[j] = add_i A[i, j]` (axis=0), or all.

    GrB_reduce of the GraphBLAS C API 2.1.

    Args:
        A: matrix, whose entries may be arrays; SparseVector or dense vector with axis=None.
        add: monoid, or a well-known function such as `jnp.maximum`.
        axis: the axis that vanishes, as in NumPy; None: both, to a scalar.
        mask, accum, out, replace, nse: as in `ewise_add`, for a vector result. To a scalar, `out`
            is a scalar that `accum` combines with the result, and there is no mask.

    Returns:
        A SparseVector in which empty rows (columns) have no entry, or, where `out` is dense, a
        dense vector in which they hold the identity; for axis=None a scalar array, the identity
        where A is empty. The dtype is that of `out`, else of A (bool for logical monoids). Of
        entries that are arrays, data (nse, ...), a dense array (m, ...), or (...) for axis=None.

    Raises:
        ValueError: `axis` is none of None, 0, 1, or A is a vector and axis is not None; options
            where entries are arrays.
        TypeError: the monoid is not defined on the dtype; a mask for a scalar.

    Differentiable in both modes: min, max and any through the entry that wins, the first at ties.

    >>> import jaxspv as jsp
    >>> A = jsp.from_dense([[1.0, 2.0], [0.0, 0.0], [3.0, 0.0]])
    >>> y = jsp.reduce(A, jsp.monoids.max_, axis=1).trim()
    >>> y.indices.tolist(), y.data.tolist(), float(jsp.reduce(A))
    ([0, 2], [2.0, 3.0], 6.0)
    """
    M = operand("A", A)
    add = as_monoid(add)
    axis = checked_axis(axis, M.ndim)
    options = Options(mask, as_accum(accum), as_out(out), replace, nse)
    if M.ndim == 2 and M.entry_shape:
        if (mask, accum, out) != (None, None, None):
            raise ValueError("`reduce` of arrays takes no `mask`, `accum` or `out`.")
        return one_program(_reduce_arrays, with_pattern(M), add, axis=axis)
    if axis is not None:
        dtype = bool if add.dtypes == "b" else M.dtype
        fill = add.identity_of(dtype if options.out is None else options.out.dtype)
        return call(_reduce_axis, (M, add), options, static={"axis": axis}, fill=fill)
    if mask is not None:
        raise TypeError("`mask` has no meaning for a scalar result.")
    total = one_program(_reduce_all, M, add)  # of bounded number
    if out is None:
        return total
    given, accum = array_of("out", out), options.accum
    if accum is not None:
        total = accumulated(accum, given, total, jnp.asarray(True))
    return total.astype(given.dtype)


def checked_axis(axis: Any, ndim: int = 2, optional: bool = True) -> Any:
    """The axis that vanishes: 0 or 1 of a matrix, or None. Raises ValueError: it is none of
    these."""
    if axis is None and optional:
        return None
    whole = isinstance(axis, (int, np.integer)) and not isinstance(axis, bool)
    if not whole or axis not in (0, 1, -1, -2) or ndim == 1:
        right = "None, or 0 or 1 for a matrix" if optional else "0 or 1"
        raise ValueError(f"`axis` must be {right}; got {axis!r}.")
    return int(axis) % 2


def _reduce_axis(A, add, *, axis) -> Dense | Entries:
    """Into a dense accumulator over the axis that stays, and which places got an entry; by sorting
    where that would be too large."""
    compressed = A.format in ("csr", "csc") and A.unique and A.nse > 0 and A.dtype != bool
    if add in AS_PRODUCTS and compressed:
        return _by_product(A, *AS_PRODUCTS[add], axis)
    extent = A.shape[1 - axis]
    if extent >= LIMIT:
        e = entries_of(A)
        e = sort_entries(dataclasses.replace(e, keys=(e.keys[1 - axis],), shape=(extent,)))
        return join_equal(e, lambda x, run, k: joined(add, add.admit(x), run, k, sorted=True))
    if _in_any_order(A, add):
        place, _, ascends = lines_of(A, axis)
        values = jnp.where(place < extent, A.data, jnp.zeros((), A.dtype))
    else:
        e = entries_of(A)
        place, ascends = jnp.where(e.valid(), e.keys[1 - axis], extent), axis == 1
        values = e.values()
    present = jnp.zeros(extent, bool).at[place].set(True, mode="drop")
    return Dense(joined(add, add.admit(values), place, extent, sorted=ascends), present)


def _in_any_order(A: Any, add: Monoid) -> bool:
    """Whether `add` may take the entries as they are stored: to sort those of a padded or tiled
    format takes some hundred times as long."""
    exact = add.identity is not None and not jnp.issubdtype(A.dtype, jnp.inexact)
    return A.ndim == 2 and A.format not in PLAIN and A.unique and (exact or add.sums_tangents)


def _by_product(A: Any, first: Any, second: Any, axis: int) -> Dense:
    """The product with a vector that it does not read: it has a kernel on each platform."""
    ones = jnp.ones(A.shape[axis], A.dtype)
    y = mxv(A, ones, first) if axis else vxm(ones, A, second)
    if axis == 1 - A.compressed:
        offsets = with_pattern(A).indptr
        return Dense(y, offsets[1:] > offsets[:-1])
    return Dense(y, entry_rows(A if axis else A.T))


def lines_of(A: SparseMatrix, axis: int | None) -> tuple[Array, int, bool]:
    """Row (axis=1) or column of each slot, for None 0, out of range in padding; the extent; whether
    they are known to ascend."""
    row, col = A.rowcol()
    valid = row < A.shape[0]
    if axis is None:
        return jnp.where(valid, jnp.zeros_like(row), 1), 1, False
    line, extent = (row, A.shape[0]) if axis == 1 else (col, A.shape[1])
    return jnp.where(valid, line, extent), extent, (A if axis == 1 else A.T).row_sorted


@functools.partial(jax.jit, static_argnums=2)
def _reduce_arrays(A, add, axis) -> Array:
    """The reduction of data (nse, ...): a dense (extent, ...), or (...)."""
    lines, extent, ascends = lines_of(A, axis)

    def of_one(values: Array) -> Array:
        return joined(add, add.admit(values), lines, extent, sorted=ascends)

    y = over_trailing(of_one, jnp.where(broadcast_rows(lines < extent, A.data), A.data, 0))
    return y[0] if axis is None else y


def broadcast_rows(flags: Array, values: Array) -> Array:
    """(nse,) flags in a shape that broadcasts with (nse, ...) values."""
    return flags.reshape(-1, *(1 for _ in values.shape[1:]))


@jax.jit
def _reduce_all(A, add) -> Array:
    if _in_any_order(A, add):
        valid = lines_of(A, None)[0] == 0
        values = jnp.where(valid, A.data, jnp.zeros((), A.dtype))
    else:
        e = entries_of(A)
        valid, values = e.valid(), e.values()
    terms = add.admit(values)
    exact = not jnp.issubdtype(terms.dtype, jnp.inexact)
    whole = jnp.where(valid, terms, jnp.asarray(add.identity_of(terms.dtype)))
    if add.identity is not None and (exact or add.sums_tangents):
        return add.reduce(whole)
    if add.selective and terms.size and not add.takes_first:  # the derivative of the first it is
        fixed = computed_once(lax.stop_gradient(whole))
        y = add.reduce(fixed)
        hit = fixed == y
        first = jnp.argmax(hit)
        return jnp.where(hit[first], whole[first], y)  # y: NaN
    return joined(add, terms, jnp.where(valid, 0, 1), 1, sorted=True)[0]


def joined(
    add: Monoid, terms: Array, segments: Array, count: int, *, sorted: bool = False
) -> Array:
    """`add.segment_reduce` with derivatives that JAX can form natively in both modes.

    Selective monoids: the value of the first slot that wins. A product: by a segmented scan, exact
    where it has zeros.
    """
    if not jnp.issubdtype(terms.dtype, jnp.inexact) or add.sums_tangents:
        return add.segment_reduce(terms, segments, count, sorted=sorted)
    if add.selective:
        constant = computed_once(lax.stop_gradient(terms))
        y = add.segment_reduce(constant, segments, count, sorted=sorted)
        first = first_equal(add, constant, segments, y)
        return jnp.where(first < terms.shape[0], take(terms, first), y)  # y: empty, or NaN
    return add.segment_scan(terms, segments, count, sorted=sorted)
