"""Element-wise operations: union (`ewise_add`, `ewise_union`) and intersection (`ewise_mult`)."""

from __future__ import annotations

from typing import Any

from .._core.eager.arrays import single
from .._core.operations.overload import overloadable
from ..algebra.monoids import Monoid
from ..algebra.operators import as_binary, plus, times
from ..shapes import Allowed, Number, Operand
from .write_rule.call import Options, call, format_of, number, operand
from .write_rule.merge import Places, join, slots_for


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
