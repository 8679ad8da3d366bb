"""`apply` an operator to every entry, and `select` the entries that satisfy a predicate."""

from __future__ import annotations

import math
import operator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, dtypes

from .._core.eager.arrays import array_of, single
from .._core.forms import overloadable
from ..algebra import operators
from ..algebra.functions import check_function, takes, traceable
from ..algebra.monoids import Monoid
from ..algebra.operators import BinaryOp, IndexUnaryOp, UnaryOp, as_binary
from ..shapes import Allowed, Number, Operand
from .write_rule.call import Dense, Options, beyond, call, format_of, is_dense, number, operand
from .write_rule.entries import Entries, at_places_of, entries_in_slots, entries_of, keep

COMPARISONS = tuple(
    getattr(operators, kind + name)
    for kind in ("", "value")
    for name in ("eq", "ne", "lt", "le", "gt", "ge")
)
PLACES = tuple(
    getattr(operators, k) for k in "tril triu diag offdiag rowle rowgt colle colgt".split()
)
ALL = UnaryOp(lambda x: jnp.ones(jnp.shape(x), bool), "all")
NONE = UnaryOp(lambda x: jnp.zeros(jnp.shape(x), bool), "none")


@overloadable
def apply(
    A: Operand,
    op: Any,
    *,
    left: Number | None = None,
    right: Number | None = None,
    thunk: Number = 0,
    mask: Allowed = None,
    accum: Any = None,
    out: Operand | None = None,
    replace: bool = False,
    nse: int | None = None,
) -> Any:
    """`C[i, j] = op(A[i, j])` for every entry, whatever the value that results.

    With `left` or `right` a binary operator bound to a scalar: `op(left, a)`, `op(a, right)`. An
    `IndexUnaryOp` takes the place too: `op(a, i, j, thunk)`. GrB_apply of the GraphBLAS C API 2.1.

    Args:
        A: matrix, SparseVector, or dense vector.
        op: UnaryOp, BinaryOp, IndexUnaryOp, its name, or a function of one array (of two with
            `left` or `right`).
        left, right: the scalar, at most one of them.
        thunk: the scalar of an IndexUnaryOp.
        mask, accum, out, replace, nse: as in `ewise_add`; the capacity is that of A.

    Returns:
        A matrix in the format of `out`, else of A, CSR where that is padded or tiled; a vector
        dense or sparse as `out`, else as A. The dtype is that of `out`, else of op's result.

    Raises:
        TypeError: `op` does not fit `left`, `right`.
        ValueError: both `left` and `right`; `nse` too small for concrete values.

    Differentiable in both modes in A's values, the scalars and op's parameters.

    >>> import jaxspv as jsp
    >>> x = jsp.vector_from_entries([0, 2], [1.0, 2.0], 3)
    >>> jsp.apply(x, jsp.operators.minus, left=10.0).data.tolist()
    [9.0, 8.0]
    >>> jsp.apply(x, jsp.operators.rowindex, thunk=1).data.tolist()
    [1, 3]
    """
    A = operand("A", A)
    options = Options(mask, accum, out, replace, nse)
    op, scalar, static = bound(op, left, right, thunk, A)
    how = {"static": static, "format": format_of(A), "dense": is_dense(A)}
    return call(_apply, (A, op, scalar), options, **how, keeps=True)


def bound(op: Any, left: Any, right: Any, thunk: Any, A: Any) -> tuple[Any, Any, dict[str, Any]]:
    """The operator of `apply` on A, its scalar, and what `applied` must know of them. Raises
    TypeError, ValueError: as `apply`."""
    if left is not None and right is not None:
        raise ValueError("at most one of `left` and `right` may be given; got both.")
    side = "left" if left is not None else "right" if right is not None else None
    op = getattr(operators, op, op) if isinstance(op, str) else op
    if isinstance(op, Monoid):
        op = op.op
    if isinstance(op, BinaryOp) and side is None:
        raise TypeError(f"{op!r} needs its other operand: give `left` or `right`.")
    if isinstance(op, (UnaryOp, IndexUnaryOp)) and side:
        raise TypeError(f"{op!r} takes no `left` or `right`; an IndexUnaryOp takes `thunk`.")
    if not callable(op):
        raise TypeError(f"`op` must be an operator or a function; got {op!r}.")
    if side:
        op = as_binary(op)
    elif not isinstance(op, (UnaryOp, IndexUnaryOp)):
        check_function("op", op, 1, "one array, or of two with `left` or `right`")
        op = UnaryOp(op)
    scalar: Any = left if side == "left" else right if side else thunk
    name = side or "thunk"
    if (isinstance(scalar, (list, tuple)) or np.ndim(scalar)) and array_of(name, scalar).ndim:
        raise TypeError(f"`{name}` must be a scalar; got shape {np.shape(scalar)}.")
    op, scalar, side = _in_dtype(op, scalar, side, A)
    weak = type(scalar) in (bool, int, float)  # NumPy's float64 is a float of Python, not weak
    return op, scalar, {"bind": side, "weak": weak}


def _in_dtype(op: Any, scalar: Any, side: str | None, A: Any) -> tuple[Any, Any, str | None]:
    """`op`, its scalar, its side; of an integer that no value equals comparisons are constant."""
    real = isinstance(scalar, (float, np.floating))
    if real and op in COMPARISONS and not jnp.issubdtype(A.dtype, jnp.inexact):
        scalar = _whole(op.name.removeprefix("value"), scalar, side)
    if beyond(scalar, A.dtype) and op in COMPARISONS:
        compare = getattr(operator, op.name.removeprefix("value"))
        return ALL if compare(*((scalar, 0) if side == "left" else (0, scalar))) else NONE, 0, None
    if beyond(scalar, np.int32) and op in PLACES:
        enabled = jnp.iinfo(dtypes.canonicalize_dtype(int))
        return op, np.asarray(max(enabled.min, min(scalar, enabled.max)), enabled.dtype), side
    return op, number(side or "thunk", scalar, A.dtype), side


def _whole(name: str, x: Any, side: str | None) -> Any:
    """The integer that integers compare with as they do with x: in float32 beyond 2^24 they would
    be rounded. Infinity and NaN stay."""
    if not math.isfinite(x):
        return x
    if name in ("eq", "ne"):
        return int(x) if x == math.floor(x) else 1 << 64  # which no integer equals
    return math.floor(x) if (name in ("gt", "le")) != (side == "left") else math.ceil(x)


def _apply(A, op, scalar, *, bind, weak) -> Any:
    e = entries_in_slots(A)
    full = e.repeated()
    z = applied(op, scalar, full.data, full.keys, bind=bind, weak=weak)
    z = jnp.where(e.valid(), z, jnp.zeros((), z.dtype))
    return Dense(z) if is_dense(A) else at_places_of(A, e, z)


def applied(op: Any, scalar: Any, x: Array, keys: Any, *, bind: str | None, weak: bool) -> Array:
    """What an operator of `bound` makes of values at the places `keys`, one array an axis."""
    scalar = jnp.asarray(scalar)
    order = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}  # of dtypes by promotion
    if weak and bind and order[scalar.dtype.kind] <= order[x.dtype.kind]:
        scalar = scalar.astype(x.dtype)  # a Python number takes the dtype of A, as everywhere
    if bind:
        z = op(scalar, x) if bind == "left" else op(x, scalar)
    elif isinstance(op, IndexUnaryOp):
        z = op(x, keys[0], keys[1] if len(keys) == 2 else jnp.zeros_like(keys[0]), scalar)
    else:
        z = op(x)
    return _each(op, z, x)


def _each(op: Any, z: Any, x: Any) -> Any:
    """A result for each entry; a constant is one for all."""
    if isinstance(z, (bool, int, float, complex, np.generic)):
        z = jnp.full(x.shape, jnp.asarray(z))
    if jnp.shape(z) != x.shape:
        raise TypeError(
            f"`op` must work element by element; {op!r} gave shape {jnp.shape(z)} for {x.shape}."
        )
    return jnp.asarray(z)


@overloadable
def select(
    A: Operand,
    op: Any,
    thunk: Number = 0,
    *,
    mask: Allowed = None,
    accum: Any = None,
    out: Operand | None = None,
    replace: bool = False,
    nse: int | None = None,
) -> Any:
    """The entries of A for which `op(A[i, j], i, j, thunk)` is true, with their values.

    GrB_select of the GraphBLAS C API 2.1. Predicates in `jaxspv.operators`: tril, triu, diag,
    offdiag (of the diagonal j = i + thunk), rowle, rowgt, colle, colgt, valueeq, valuene, valuelt,
    valuele, valuegt, valuege.

    Args:
        A: matrix, SparseVector, or dense vector.
        op: IndexUnaryOp or its name, or a function (values, rows, columns, thunk) -> booleans; the
            columns of a vector are 0. Or a function of the values alone, a UnaryOp.
        thunk: scalar.
        mask, accum, out, replace, nse: as in `ewise_add`; the capacity under jit is that of A.

    Returns:
        A matrix in the format of `out`, else of A, CSR where that is padded or tiled; a
        SparseVector where `out` is not dense.

    Raises:
        TypeError: `op` is not callable, or takes another number of arguments.
        ValueError: `nse` too small for concrete values.

    >>> import jaxspv as jsp
    >>> A = jsp.from_dense([[1.0, 2.0], [3.0, 4.0]])
    >>> jsp.select(A, jsp.operators.tril).todense().tolist()
    [[1.0, 0.0], [3.0, 4.0]]
    >>> jsp.select(A, lambda x, i, j, s: x > 2 * i + s, 1.5).todense().tolist()
    [[0.0, 2.0], [0.0, 4.0]]
    """
    A = operand("A", A)
    op = _predicate(op)
    if type(thunk) not in (int, float) and op in operators.INDEX_UNARY:  # yours may take arrays
        single("thunk", thunk)
    op, thunk, _ = _in_dtype(op, thunk, None, A)
    options = Options(mask, accum, out, replace, nse)
    return call(_select, (A, op, thunk), options, format=format_of(A))


def _predicate(op: Any) -> IndexUnaryOp | UnaryOp:
    """What `select` asks entries by: of their values alone, or of their places too."""
    op = getattr(operators, op, op) if isinstance(op, str) else op
    if isinstance(op, (IndexUnaryOp, UnaryOp)):
        return op
    if isinstance(op, BinaryOp) or not callable(op):
        raise TypeError(f"`op` must be an IndexUnaryOp or a function; got {op!r}.")
    fn = traceable(op)
    if takes(fn, 4):
        return IndexUnaryOp(fn)
    if takes(fn, 1, unknown=False):
        return UnaryOp(fn)
    raise TypeError(
        "`op` must be a function of (values, rows, columns, thunk), or of values alone; "
        f"got {op!r}, which takes neither 4 nor 1 arguments."
    )


def _select(A, op, thunk) -> Entries:
    e = entries_of(A)
    if isinstance(op, UnaryOp):
        return keep(e, e.valid() & jnp.asarray(op(e.values())).astype(bool))
    column = e.keys[1] if len(e.keys) == 2 else jnp.zeros_like(e.keys[0])
    thunk = jnp.asarray(thunk)
    return keep(e, e.valid() & jnp.asarray(op(e.values(), e.keys[0], column, thunk)).astype(bool))
