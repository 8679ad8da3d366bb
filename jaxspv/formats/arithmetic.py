"""`+ - * /` and `A[...]` of matrices and vectors; the operations above the formats fill them in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SUGAR: dict[str, Callable[..., Any]] = {}  # filled by jaxspv.ops


class Arithmetic:
    """NumPy's operators on sparse objects; what they mean stands in docs/graphblas.md."""

    __array_priority__ = 100  # NumPy arrays on the left leave operators to us

    def __add__(self, other: Any) -> Any:
        """The union: values are added where both have an entry."""
        return SUGAR["add"](self, other)

    def __radd__(self, other: Any) -> Any:
        return SUGAR["add"](other, self)

    def __sub__(self, other: Any) -> Any:
        """The union with 0 for what one of them lacks: `A + (-B)`."""
        return SUGAR["sub"](self, other)

    def __rsub__(self, other: Any) -> Any:
        return SUGAR["sub"](other, self)

    def __mul__(self, other: Any) -> Any:
        """The intersection; a scalar multiplies every entry."""
        return SUGAR["mul"](self, other)

    def __rmul__(self, other: Any) -> Any:
        return SUGAR["mul"](other, self)

    def __truediv__(self, other: Any) -> Any:
        """The intersection; a scalar divides every entry."""
        return SUGAR["div"](self, other)

    def __neg__(self) -> Any:
        """Every entry negated."""
        return SUGAR["neg"](self)

    def __getitem__(self, index: Any) -> Any:
        """`extract`; an element that is not stored is 0."""
        return SUGAR["getitem"](self, index)
