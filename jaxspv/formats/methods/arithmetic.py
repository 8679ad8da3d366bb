"""`+ - * / @` and `A[...]` of matrices and vectors, declared: `ops/install.py` fills them."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

COMPARED = (np.ndarray, np.generic, jax.Array, bool, int, float, complex)


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
            f"a {type(self).__name__} never changes: "
            "`A = jsp.graphblas.set_element(A, value, i, j)` or "
            "`A = jsp.assign(A, values, i, j)` gives one with new entries, `A.with_data(values)` "
            "one with the same entries and new values."
        )

    def __delitem__(self, index: Any) -> None:
        raise TypeError(
            f"a {type(self).__name__} never changes: "
            "`A = jsp.graphblas.remove_element(A, i, j)` gives one "
            "without an entry, `jsp.select` one with those that a condition keeps."
        )


class Products(NoValue):
    """The operator `@`: products over (+, x)."""

    def __matmul__(self, other: Any) -> Any: ...

    def __rmatmul__(self, other: Any) -> Any: ...


class Arithmetic(NoValue):
    """NumPy's operators on sparse objects; what they mean stands in docs/graphblas.md."""

    def __add__(self, other: Any) -> Any:
        """The union: values are added where both have an entry."""
        ...

    def __radd__(self, other: Any) -> Any: ...

    def __sub__(self, other: Any) -> Any:
        """The union with 0 for what one of them lacks: `A + (-B)`."""
        ...

    def __rsub__(self, other: Any) -> Any: ...

    def __mul__(self, other: Any) -> Any:
        """The intersection; a scalar multiplies every entry."""
        ...

    def __rmul__(self, other: Any) -> Any: ...

    def __truediv__(self, other: Any) -> Any:
        """The intersection; a scalar divides every entry."""
        ...

    def __neg__(self) -> Any:
        """Every entry negated."""
        ...

    def __getitem__(self, index: Any) -> Any:
        """As for SciPy's arrays; an element that is not stored is 0.

        `A[i, j]` is a scalar array for integers. For two arrays of indices it is a dense array with
        `A[i[k], j[k]]` at k. Anything else is `extract`: slices, an array of indices and a slice,
        and rows and columns as `A[np.ix_(i, j)]`.
        """
        ...
