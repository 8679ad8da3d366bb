"""Element-wise rules of sparse operands; C++ merges the rows of matrices in one format on a CPU."""

from __future__ import annotations

from typing import Any, Literal

import jax.numpy as jnp
from jax import Array

from ..._core.compilation import is_eager
from ..._core.indices import eager_capacity, index_dtype_for, with_index_dtype
from ..._core.operation import Operation, typed
from ...algebra.operators import BinaryOp, maximum, minimum, minus, plus, times
from ...formats import CSR
from ...native import bind
from ...native.codes import DTYPES
from .entries import Entries, both, entries_of, find, fitted, is_plain, keep, stored, take, union

OPERATORS = plus, minus, times, minimum, maximum  # of merge.h, in the order of their numbers
Places = Literal["either", "defaults", "both"]


def slots_for(A: Any, B: Any, *, both: bool = False) -> dict[str, int]:
    """The static `slots` of the rules for matrices: they hold any result; eagerly a bucket."""
    if A.ndim != 2:
        return {}
    size = A.shape[0] * A.shape[1]
    slots = min(A.nse, B.nse) if both else min(A.nse + B.nse, size)
    return {"slots": eager_capacity(slots, size) if is_eager(A, B) else slots}


def added(A: Any, B: Any, op: BinaryOp, *, slots: int = 0) -> Any:
    """`op` where both have an entry, the entry of one elsewhere: a matrix, or `Entries`."""
    C = _by_rows(A, B, op, "either", slots)
    return _added(A, B, op) if C is None else C


def united(
    A: Any, B: Any, op: BinaryOp, left_default: Any, right_default: Any, *, slots: int = 0
) -> Any:
    """`op` where one has an entry, with a default for the other."""
    left, right = with_dtypes(A, B, left_default, right_default)
    C = _by_rows(A, B, op, "defaults", slots, left, right)
    return _united(A, B, op, left, right) if C is None else C


def multiplied(A: Any, B: Any, op: BinaryOp, *, slots: int = 0) -> Any:
    """`op` where both have an entry."""
    C = _by_rows(A, B, op, "both", slots)
    return _multiplied(A, B, op) if C is None else C


def with_dtypes(A: Any, B: Any, left: Any, right: Any) -> tuple[Array, Array]:
    """The defaults of `united` in the dtypes of what they stand for."""
    return jnp.asarray(left).astype(A.dtype), jnp.asarray(right).astype(B.dtype)


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
    return (
        typed(jnp.int32, A.shape[0] + 1),
        typed(jnp.int32, slots),
        typed(A.dtype, slots),
        typed(bool),
    )


merge_rows = Operation("merge of rows", tangent="definition", types=_types, internal=True)
"""`merge_rows(A, B, no_a, no_b, op=, places=, slots=)`: (indptr, indices, data, overflow) of an
operator's number on two CSR in order: at the places of both, where what one lacks leaves the entry
of the other ("either") or has a default ("defaults"); or at those that "both" have."""


def _arrays(A: CSR) -> tuple[Array, Array, Array]:
    return A.indptr, A.indices, A.data


@merge_rows.register("native", backend="cpu", refuse=bind.refused)
def _in_cpp(A: CSR, B: CSR, *defaults: Array, op: int, places: Places, slots: int) -> Any:
    types = _types(A, B, op=op, places=places, slots=slots)
    operands = *_arrays(A), *_arrays(B), *defaults, A.overflow, B.overflow
    kind = {"union": places != "both", "defaults": places == "defaults"}
    return bind.call("merge", types, *operands, columns=A.shape[1], op=op, **kind)


@merge_rows.register("slots")
def _by_slots(A: CSR, B: CSR, *defaults: Array, op: int, places: Places, slots: int) -> Any:
    function = OPERATORS[op]
    if places == "defaults":
        e = _united(A, B, function, *defaults)
    else:
        e = (_added if places == "either" else _multiplied)(A, B, function)
    C = stored(fitted(e, slots), "csr")
    return C.indptr, C.indices, C.data, C.overflow


def combine(op: BinaryOp, x: Array, y: Array, where: Array, keys: Any) -> Array:
    """`op(x, y)` at the places `keys`; positional operators give the place."""
    if op.position is None:
        return both(op, x, y, where)
    row = op.position in ("firsti", "secondi")
    return keys[0] if row else keys[1] if len(keys) == 2 else jnp.zeros_like(keys[0])


def _added(A: Any, B: Any, op: BinaryOp) -> Entries:
    a, b = entries_of(A), entries_of(B)
    U = union(a, b)
    x, y = take(a.data, U.left), take(b.data, U.right)
    in_both = U.in_left & U.in_right
    z = combine(op, x, y, in_both, U.places.keys)
    one = jnp.where(U.in_left, x.astype(z.dtype), y.astype(z.dtype))
    return U.places.with_data(jnp.where(in_both, z, one))


def _united(A: Any, B: Any, op: BinaryOp, left_default: Array, right_default: Array) -> Entries:
    a, b = entries_of(A), entries_of(B)
    U = union(a, b)
    x = jnp.where(U.in_left, take(a.data, U.left), left_default)
    y = jnp.where(U.in_right, take(b.data, U.right), right_default)
    return U.places.with_data(combine(op, x, y, U.places.valid(), U.places.keys))


def _multiplied(A: Any, B: Any, op: BinaryOp) -> Entries:
    a, b = entries_of(A), entries_of(B)
    if a.nse <= b.nse:
        slot, hit = find(b, a.keys)
        base, x, y = a, a.data, take(b.data, slot)
    else:
        slot, hit = find(a, b.keys)
        base, x, y = b, take(a.data, slot), b.data
    return keep(base.with_data(combine(op, x, y, hit, base.keys)), hit)
