"""NumPy's forms of the operations: `A + B`, `A * B`, `A - B`, `-A`, `A @ B`, `A[i, j]`, `where`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core.eager.arrays import array_of
from ..algebra.masks import Mask
from ..algebra.operators import minus, plus
from ..formats import SparseMatrix
from ..formats.base import ours
from ..formats.stored import Stored
from ..graph import Graph
from ..shapes import Allowed, Operand
from .apply import apply
from .ewise import ewise_add, ewise_mult, ewise_union
from .extract import extract, pairs
from .products.mxm.api import mxm
from .products.mxv.api import mxv, vxm
from .write_rule.call import Options, as_operand_mask, call, format_of, is_dense, operand
from .write_rule.entries import at_places_of, entries_in_slots, entries_of


def where(mask: Allowed, A: Operand, B: Operand | None = None, *, nse: int | None = None) -> Any:
    """The entries of A where the mask allows, those of B elsewhere: `B<mask> = A`.

    Args:
        mask: boolean array or sparse object (by value), `structure(m)`, `~` of these.
        A: matrix, SparseVector, or dense vector.
        B: of A's shape; None: nothing.
        nse: capacity; a bucket eagerly, A.nse + B.nse under jit.

    Returns:
        As B, else as A: format (CSR where that is padded or tiled), dense or sparse. The dtype is
        the common one.

    Raises:
        ValueError: shapes differ; `nse` too small for concrete values.
        TypeError: A or B is no matrix or vector.

    >>> import jaxspv as jsp
    >>> x = jsp.vector_from_entries([0, 2], [1.0, 2.0], 3)
    >>> y = jsp.vector_from_entries([1, 2], [10.0, 20.0], 3)
    >>> jsp.where([True, True, False], x, y).todense().tolist()
    [1.0, 0.0, 20.0]
    """
    x = operand("A", A)
    mask = as_operand_mask(mask if isinstance(mask, Mask) else Mask(mask))
    if B is None:
        return call(entries_of, (x,), Options(mask=mask, nse=nse), format=format_of(x))
    y = operand("B", B)
    dtype = jnp.result_type(x.dtype, y.dtype)
    options = Options(mask=mask, out=y.astype(dtype), nse=nse)
    return call(entries_of, (x,), options, format=format_of(y))


_ARRAYS = jax.Array, np.ndarray


def _is_scalar(x: Any) -> bool:
    number = isinstance(x, (bool, int, float, complex, np.generic))
    return number or (isinstance(x, _ARRAYS) and x.ndim == 0)


def _is_array(x: Any) -> bool:
    return isinstance(x, _ARRAYS) and x.ndim > 0


def _known(x: Any) -> bool:
    return isinstance(x, Stored) or _is_array(x)


def added(A: Any, B: Any) -> Any:
    return ewise_add(A, B, plus) if _known(A) and _known(B) else NotImplemented


def subtracted(A: Any, B: Any) -> Any:
    return ewise_union(A, B, minus) if _known(A) and _known(B) else NotImplemented


def scaled(A: Any, B: Any, op: Any) -> Any:
    """`A op B` where at least one is sparse: the other is a scalar, an array or sparse."""
    if _is_scalar(B):
        return apply(A, op, right=B)
    if _is_scalar(A):
        return apply(B, op, left=A)
    if not (_known(A) and _known(B)):
        return NotImplemented
    if _is_array(B) and A.ndim == 2:
        return _times_array(A, B, op, False)
    if _is_array(A) and B.ndim == 2:
        return _times_array(B, A, op, True)
    return ewise_mult(A, B, op)


def _times_array(A: Any, dense: Any, op: Any, flip: bool) -> Any:
    """Entries with the values of an array, broadcast to the shape of A, at their places."""
    shape = np.broadcast_shapes(dense.shape, A.shape)
    if shape != A.shape:
        raise ValueError(f"an array of shape {dense.shape} does not broadcast to {A.shape}.")
    operands, static = (A, array_of("other", dense), op), {"flip": flip}
    return call(_at_places, operands, Options(), static=static, format=format_of(A), keeps=True)


def _at_places(A, dense, op, *, flip) -> Any:
    e = entries_in_slots(A)
    spread = dense.reshape((1,) * (2 - dense.ndim) + dense.shape)
    row, col = (
        jnp.zeros_like(k) if extent == 1 else jnp.minimum(k, max(extent - 1, 0))
        for k, extent in zip(e.keys, spread.shape, strict=True)
    )
    factor = ones = jnp.ones((), dense.dtype)
    if spread.size:  # by two indices: places of a flat array may exceed int32
        factor = jnp.where(e.valid(), spread.at[row, col].get(mode="clip"), ones)
    x, y = (factor, e.values(1)) if flip else (e.values(1), factor)
    return at_places_of(A, e, op(x, y))


def item(A: Any, index: Any) -> Any:
    index = index if isinstance(index, tuple) else (index,)
    index = tuple(list(i) if isinstance(i, (tuple, range)) else i for i in index)
    if A.ndim == 2 and any(i is None for i in index):
        raise IndexError("a matrix has two axes and gets no further one by None.")
    dots = [k for k, i in enumerate(index) if i is Ellipsis]
    if len(dots) > 1:
        raise IndexError(f"there can be one `...`; got {len(dots)}.")
    for k in dots:
        index = (*index[:k], *[slice(None)] * (A.ndim + 1 - len(index)), *index[k + 1 :])
    if len(index) > A.ndim:
        takes = "a matrix has two indices" if A.ndim == 2 else "a vector has one index"
        raise IndexError(f"{takes}; got {len(index)}.")
    if len(index) == 2 and all(isinstance(i, (list, *_ARRAYS)) and np.ndim(i) for i in index):
        shapes = [np.shape(i) for i in index]
        if len(shapes[0]) == 1 and len(shapes[1]) == 1:
            return pairs(A, *index)
        if shapes[0][1:] == (1,) and shapes[1][:-1] == (1,):  # np.ix_
            index = tuple(i.reshape(-1) if hasattr(i, "reshape") else np.ravel(i) for i in index)
    return extract(A, *index)


def matmul(A: Any, other: Any) -> Any:
    other = other if _known(other) else ours(other)
    if isinstance(other, (SparseMatrix, Graph)) or hasattr(other, "__jaxspv_functions__"):
        return mxm(A, other)
    if is_dense(other) and np.ndim(other) >= 2:
        return mxm(A, array_of("other", other))
    return mxv(A, other)


def rmatmul(A: Any, other: Any) -> Any:
    if is_dense(other) and np.ndim(other) >= 2:
        return mxm(array_of("other", other), A)
    return vxm(other, A)
