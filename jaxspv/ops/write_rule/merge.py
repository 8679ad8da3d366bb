"""Element-wise rules of sparse operands; C++ merges the rows of matrices in one format on a CPU."""

from __future__ import annotations

from typing import Any, Literal

import jax.numpy as jnp
from jax import Array

from ..._core.eager.arrays import is_eager
from ..._core.indices import Keys, eager_capacity, index_dtype_for, with_index_dtype
from ..._core.operation import Operation, typed
from ...algebra.operators import BinaryOp, maximum, minimum, minus, plus, times
from ...formats import CSR
from ...native import bind
from ...native.codes import DTYPES
from .call import Dense, is_dense
from .entries import (
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

OPERATORS = plus, minus, times, minimum, maximum  # of merge.h, in the order of their numbers
Places = Literal["either", "defaults", "both"]


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
    """The same for two CSR or two CSC of one dtype and a common operator; else None."""
    number = next((k for k, o in enumerate(OPERATORS) if (o.fn, o.name) == (op.fn, op.name)), None)
    if number is None or not (is_plain(A) and is_plain(B) and A.format == B.format != "coo"):
        return None
    if A.entry_shape or B.entry_shape or A.dtype != B.dtype or A.dtype.name not in DTYPES:
        return None
    least = min(A.nse, B.nse) if places == "both" else A.nse + B.nse
    most = max(slots, least)  # as many as C++ may write
    if (A.dtype == bool and op is minus) or most >= 2**31:
        return None
    if index_dtype_for(A, B, sizes=(slots,)) != jnp.int32:
        return None
    rows = [with_index_dtype(M if M.format == "csr" else M.T, jnp.int32) for M in (A, B)]
    zero = jnp.zeros((), A.dtype)
    how = {"op": number, "places": places, "slots": most}
    indptr, indices, data, overflow = merge_rows(*rows, *(defaults or (zero, zero)), **how)
    return type(A)(data[:slots], indices[:slots], indptr, overflow, A.shape)


def _types(A: CSR, B: CSR, *defaults: Array, op: int, places: Places, slots: int) -> Any:
    pattern = typed(jnp.int32, A.shape[0] + 1), typed(jnp.int32, slots)
    return *pattern, typed(A.dtype, slots), typed(bool)


merge_rows = Operation("merge of rows", tangent="definition", types=_types, internal=True)
"""`merge_rows(A, B, no_a, no_b, op=, places=, slots=)`: (indptr, indices, data, overflow) of an
operator's number on two CSR in order: at the places of both, where what one lacks leaves the entry
of the other ("either") or has a default ("defaults"); or at those that "both" have."""


@merge_rows.register("native", backend="cpu", refuse=bind.refused)
def _in_cpp(A: CSR, B: CSR, *defaults: Array, op: int, places: Places, slots: int) -> Any:
    types = _types(A, B, op=op, places=places, slots=slots)
    arrays = [v for M in (A, B) for v in (M.indptr, M.indices, M.data)]
    operands = *arrays, *defaults, A.overflow, B.overflow
    kind = {"union": places != "both", "defaults": places == "defaults"}
    return bind.call("merge", types, *operands, columns=A.shape[1], op=op, **kind)


@merge_rows.register("slots")
def _by_slots(A: CSR, B: CSR, *defaults: Array, op: int, places: Places, slots: int) -> Any:
    given = defaults if places == "defaults" else ()
    C = stored(fitted(_by_places(A, B, OPERATORS[op], places, *given), slots), "csr")
    return C.indptr, C.indices, C.data, C.overflow


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
