"""`+ - * /` and `A[...]` of matrices and vectors; the operations above the formats fill them in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

COMPARED = (np.ndarray, np.generic, jax.Array, bool, int, float, complex)
SUGAR: dict[str, Callable[..., Any]] = {}  # filled by jaxspv.ops


class NoValue:
    """Refuses what has no sensible meaning: `bool(A)`, `np.asarray(A)`, `A == B`."""

    __array_priority__ = 100  # NumPy arrays on the left leave operators to us

    def __bool__(self) -> bool:
        raise TypeError(
            f"a {type(self).__name__} has no truth value; compare with None, or use `nnz`."
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} is no array: use `todense()` or `to_scipy()`.")

    def __eq__(self, other: object) -> bool:
        if other is not self and isinstance(other, (NoValue, *COMPARED)):
            raise TypeError(
                f"`==` of a {type(self).__name__} would compare identity: compare what `todense()` "
                "or `jax.tree.leaves` give."
            )
        return other is self

    __hash__ = object.__hash__

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            f"a {type(self).__name__} never changes: `A = jsp.set_element(A, value, i, j)` or "
            "`A = jsp.assign(A, values, i, j)` gives one with new entries, `A.with_data(values)` "
            "one with the same entries and new values."
        )

    def __delitem__(self, index: Any) -> None:
        raise TypeError(
            f"a {type(self).__name__} never changes: `A = jsp.remove_element(A, i, j)` gives one "
            "without an entry, `jsp.select` one with those that a condition keeps."
        )


class Arithmetic(NoValue):
    """NumPy's operators on sparse objects; what they mean stands in docs/graphblas.md."""

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
        """What SciPy's arrays give; an element that is not stored is 0.

        `A[i, j]` of integers is a scalar array, of two arrays of indices their pairs: a dense array
        with `A[i[k], j[k]]` at k. All else is `extract`: slices, an array of indices beside a
        slice, and rows with columns as `A[np.ix_(i, j)]`.
        """
        return SUGAR["getitem"](self, index)
