"""Element-wise operations: union (`ewise_add`, `ewise_union`) and intersection (`ewise_mult`).

On a CPU C++ merges the rows of two matrices in one format.
"""

from __future__ import annotations

from typing import Any, Literal

import jax.numpy as jnp
from jax import Array

from .._core.eager.arrays import is_eager, single
from .._core.forms import overloadable
from .._core.indices import Keys, eager_capacity, index_dtype_for, with_index_dtype
from .._core.operation import Operation, typed
from ..algebra.monoids import Monoid
from ..algebra.operators import (
    BinaryOp,
    as_binary,
    first,
    maximum,
    minimum,
    minus,
    plus,
    second,
    times,
    truediv,
)
from ..native import bind
from ..native.codes import DTYPES
from ..shapes import Allowed, Number, Operand
from .write_rule.call import Dense, Options, call, format_of, is_dense, number, operand
from .write_rule.entries import (
    Entries,
    both,
    entries_of,
    find,
    fitted,
    is_plain,
    keep,
    spread,
    stored,
    take,
    union,
)

OPERATORS = plus, minus, times, minimum, maximum, first, second, truediv  # numbered in merge.h
Places = Literal["either", "defaults", "both"]


@overloadable
def ewise_add(
    A: Operand,
    B: Operand,
    op: Any = plus,
    *,
    mask: Allowed = None,
    accum: Any = None,
    out: Operand | None = None,
    replace: bool = False,
    nse: int | None = None,
) -> Any:
    """`C = A op B` on the union: op(a, b) where both have an entry, else the entry of one.

    GrB_eWiseAdd of the GraphBLAS C API 2.1.

    Args:
        A, B: two matrices, or two vectors (sparse or dense, a dense one has every entry), of one
            shape.
        op: BinaryOp, Monoid, or a function of two arrays.
        mask, accum, out, replace: C<mask, replace> = C accum T; see docs/graphblas.md.
        nse: capacity of a sparse result; by default eagerly a bucket that depends on its count
            (`.trim()` gives the exact one), A.nse + B.nse (+ out.nse) under jit.

    Returns:
        A matrix in the format of `out`, else of A, CSR where that is padded or tiled (ELL, SELL,
        Tiled, BitTiled); a vector that is dense where `out`, or else A or B, is dense. The dtype is
        that of `out`, else of `op(a, b)`: entries that only one operand has are cast to it.

    Raises:
        ValueError: shapes differ; `nse` too small for concrete values.
        TypeError: an operand is neither a matrix nor a vector.

    Differentiable in both modes in every value; min and max take the first of equal operands.

    >>> import jaxspv as jsp
    >>> x = jsp.vector_from_entries([0, 2], [1.0, 2.0], 4)
    >>> y = jsp.vector_from_entries([2, 3], [10.0, 20.0], 4)
    >>> jsp.ewise_add(x, y, jsp.operators.minus).todense().tolist()
    [1.0, 0.0, -8.0, 20.0]
    """
    return _joined("either", A, B, op, (), Options(mask, accum, out, replace, nse))


@overloadable
def ewise_union(
    A: Operand,
    B: Operand,
    op: Any = plus,
    left_default: Number = 0,
    right_default: Number = 0,
    *,
    mask: Allowed = None,
    accum: Any = None,
    out: Operand | None = None,
    replace: bool = False,
    nse: int | None = None,
) -> Any:
    """`C = A op B` on the union, with defaults for what one of them lacks.

    op(a, b), op(a, right_default) or op(left_default, b). GxB_eWiseUnion of SuiteSparse:GraphBLAS.

    Args:
        A, B, op: as in `ewise_add`.
        left_default, right_default: scalars that stand for a missing entry of A and of B, cast to
            their dtypes; differentiable too.
        mask, accum, out, replace, nse: as in `ewise_add`.

    Returns:
        As in `ewise_add`, in the dtype of `op(a, b)`.

    Raises:
        ValueError, TypeError: as in `ewise_add`.

    >>> import jaxspv as jsp
    >>> x = jsp.vector_from_entries([0, 2], [1.0, 2.0], 4)
    >>> y = jsp.vector_from_entries([2, 3], [10.0, 20.0], 4)
    >>> jsp.ewise_union(x, y, jsp.operators.minus).todense().tolist()
    [1.0, 0.0, -8.0, -20.0]
    """
    defaults = left_default, right_default
    return _joined("defaults", A, B, op, defaults, Options(mask, accum, out, replace, nse))


@overloadable
def ewise_mult(
    A: Operand,
    B: Operand,
    op: Any = times,
    *,
    mask: Allowed = None,
    accum: Any = None,
    out: Operand | None = None,
    replace: bool = False,
    nse: int | None = None,
) -> Any:
    """`C = A op B` on the intersection: op(a, b) where both have an entry.

    GrB_eWiseMult of the GraphBLAS C API 2.1.

    Args:
        A, B, op: as in `ewise_add`. Positional operators give the place, in the index dtype: firsti
            and secondi the row, firstj and secondj the column.
        mask, accum, out, replace: as in `ewise_add`.
        nse: capacity; a bucket eagerly, under jit the smaller of A.nse and B.nse (+ out.nse).

    Returns:
        A matrix in the format of `out`, else of A, CSR where that is padded or tiled; a
        SparseVector, but dense where `out` or both operands are. The dtype is that of `out`, else
        of `op(a, b)`.

    Raises:
        ValueError, TypeError: as in `ewise_add`.

    >>> import jaxspv as jsp
    >>> x = jsp.vector_from_entries([0, 2], [1.0, 2.0], 4)
    >>> y = jsp.vector_from_entries([2, 3], [10.0, 20.0], 4)
    >>> z = jsp.ewise_mult(x, y).trim()
    >>> z.indices.tolist(), z.data.tolist()
    ([2], [20.0])
    """
    return _joined("both", A, B, op, (), Options(mask, accum, out, replace, nse))


def _joined(places: Places, A: Any, B: Any, op: Any, defaults: Any, options: Options) -> Any:
    A, B = operand("A", A), operand("B", B)
    if A.shape != B.shape:
        raise ValueError(f"`B` must have the shape {A.shape} of A; got {B.shape}.")
    op = op.op if isinstance(op, Monoid) else as_binary(op)
    how: dict[str, Any] = {"places": places, "slots": slots_for(A, B, places)}
    named = zip(("left_default", "right_default"), defaults, (A, B), strict=False)
    given = [single(name, number(name, d, M.dtype)) for name, d, M in named]
    operands = (A, B, op, *given)
    return call(join, operands, options, static=how, format=format_of(A), dense=True)


def slots_for(A: Any, B: Any, places: Places) -> int:
    """The static `slots` of `join`: of a matrix they hold any result; eagerly a bucket."""
    if A.ndim != 2:
        return 0
    size = A.shape[0] * A.shape[1]
    slots = min(A.nse, B.nse) if places == "both" else min(A.nse + B.nse, size)
    return eager_capacity(slots, size) if is_eager(A, B) else slots


def join(A: Any, B: Any, op: BinaryOp, *defaults: Any, places: Places, slots: int) -> Any:
    """The rule of `op` at the places of "either", with "defaults" for what one lacks, or of "both".

    A matrix, `Entries`, or a `Dense` vector where a dense operand has every place of the result.
    """
    defaults = tuple(jnp.asarray(d).astype(M.dtype) for d, M in zip(defaults, (A, B), strict=False))
    dense = is_dense(A), is_dense(B)
    if all(dense) if places == "both" else any(dense):
        (x, in_x), (y, in_y) = spread(A), spread(B)
        keys = (jnp.arange(*A.shape, dtype=index_dtype_for(A, B, sizes=A.shape)),)
        return Dense(_values(op, x, y, in_x, in_y, keys, defaults))
    C = _by_rows(A, B, op, places, slots, *defaults)
    return _by_places(A, B, op, places, *defaults) if C is None else C


def _by_rows(A: Any, B: Any, op: BinaryOp, places: Places, slots: int, *defaults: Array) -> Any:
    """The same for two CSR, two CSC or two vectors of one dtype and a common operator; else
    None."""
    number = next((k for k, o in enumerate(OPERATORS) if (o.fn, o.name) == (op.fn, op.name)), None)
    vectors = A.ndim == B.ndim == 1 and not (is_dense(A) or is_dense(B))
    alike = is_plain(A) and is_plain(B) and A.format == B.format != "coo"
    if number is None or not (vectors or alike):
        return None
    if A.entry_shape or B.entry_shape or A.dtype != B.dtype or A.dtype.name not in DTYPES:
        return None
    least = min(A.nse, B.nse) if places == "both" else A.nse + B.nse
    if vectors:
        slots = least if places == "both" else min(least, *A.shape)
    most = max(slots, least)  # as many as C++ may write
    if (A.dtype == bool and op is minus) or most >= 2**31:
        return None
    if op is truediv and not jnp.issubdtype(A.dtype, jnp.floating):
        return None
    if index_dtype_for(A, B, sizes=(slots,)) != jnp.int32:
        return None
    rows = [M.canonical() if vectors else M if M.format == "csr" else M.T for M in (A, B)]
    rows = [with_index_dtype(M, jnp.int32) for M in rows]
    zero = jnp.zeros((), A.dtype)
    how = {"op": number, "places": places, "slots": most}
    ends, indices, data, overflow = merge_rows(*rows, *(defaults or (zero, zero)), **how)
    return type(A)(data[:slots], indices[:slots], ends, overflow, A.shape)


def _types(A: Any, B: Any, *defaults: Array, op: int, places: Places, slots: int) -> Any:
    ends = typed(jnp.int32) if A.ndim == 1 else typed(jnp.int32, A.shape[0] + 1)
    return ends, typed(jnp.int32, slots), typed(A.dtype, slots), typed(bool)


merge_rows = Operation("merge of rows", tangent="definition", types=_types, internal=True)
"""`merge_rows(A, B, no_a, no_b, op=, places=, slots=)`: (indptr, indices, data, overflow) of an
operator's number on two CSR in order, (count, ...) on two vectors: at the places of both, where
what one lacks leaves the entry of the other ("either") or has a default ("defaults"); or at those
that "both" have."""


@merge_rows.register("native", backend="cpu", refuse=bind.refused)
def _in_cpp(A: Any, B: Any, *defaults: Array, op: int, places: Places, slots: int) -> Any:
    types = _types(A, B, op=op, places=places, slots=slots)
    vectors = A.ndim == 1  # as matrices of one row

    def ends(M):
        return jnp.stack([jnp.zeros_like(M.count), M.count]) if vectors else M.indptr

    arrays = [v for M in (A, B) for v in (ends(M), M.indices, M.data)]
    operands = *arrays, *defaults, A.overflow, B.overflow
    kind = {"union": places != "both", "defaults": places == "defaults"}
    types = (typed(jnp.int32, 2), *types[1:]) if vectors else types
    found = bind.call("merge", types, *operands, columns=A.shape[-1], op=op, **kind)
    return (found[0][1], *found[1:]) if vectors else found


@merge_rows.register("slots")
def _by_slots(A: Any, B: Any, *defaults: Array, op: int, places: Places, slots: int) -> Any:
    given = defaults if places == "defaults" else ()
    C = stored(fitted(_by_places(A, B, OPERATORS[op], places, *given), slots), "csr")
    return C.count if A.ndim == 1 else C.indptr, C.indices, C.data, C.overflow


def _by_places(A: Any, B: Any, op: BinaryOp, places: Places, *defaults: Array) -> Entries:
    a, b = entries_of(A), entries_of(B)
    if places != "both":
        U = union(a, b)
        x, y, keys = take(a.data, U.left), take(b.data, U.right), U.places.keys
        return U.places.with_data(_values(op, x, y, U.in_left, U.in_right, keys, defaults))
    if a.nse <= b.nse:
        slot, hit = find(b, a.keys)
        base, x, y = a, a.data, take(b.data, slot)
    else:
        slot, hit = find(a, b.keys)
        base, x, y = b, take(a.data, slot), b.data
    return keep(base.with_data(_combine(op, x, y, hit, base.keys)), hit)


def _values(op: BinaryOp, x: Array, y: Array, in_x: Array, in_y: Array, keys: Keys, defaults: Any):
    """`op(x, y)` at the places `keys`; of one that is missing its default, or the other alone."""
    if defaults:
        x, y = jnp.where(in_x, x, defaults[0]), jnp.where(in_y, y, defaults[1])
        return _combine(op, x, y, in_x | in_y, keys)
    in_both = in_x & in_y
    z = _combine(op, x, y, in_both, keys)
    return jnp.where(in_both, z, jnp.where(in_x, x.astype(z.dtype), y.astype(z.dtype)))


def _combine(op: BinaryOp, x: Array, y: Array, where: Array, keys: Keys) -> Array:
    """`op(x, y)` at the places `keys`; positional operators give the place."""
    if op.position is None:
        return both(op, x, y, where)
    row = op.position in ("firsti", "secondi")
    return keys[0] if row else keys[1] if len(keys) == 2 else jnp.zeros_like(keys[0])
