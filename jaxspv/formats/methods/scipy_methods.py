"""SciPy's methods of sparse arrays, declared; `ops/install.py` sets what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jax import Array

from .arithmetic import Arithmetic

if TYPE_CHECKING:
    from jaxtyping import Int, Shaped


class SciPyMethods(Arithmetic):
    """SciPy's methods of sparse arrays, with SciPy's meaning: a missing entry counts as 0.

    That is SciPy's view. In GraphBLAS's, where a missing entry is absent and its stand-in belongs
    to the monoid, the same is `jsp.reduce`, `jsp.ewise_mult`, `jsp.apply`, `jsp.select`. Objects
    are immutable, so `setdiag` gives a new matrix. Reference: sparse arrays of SciPy 1.17.

    >>> import jaxspv as jsp
    >>> A = jsp.from_dense([[0.0, -2.0], [3.0, 0.0]])
    >>> float(A.sum()), A.max(axis=0).tolist(), float(A.mean()), abs(A).toarray().tolist()
    (1.0, [3.0, 0.0], 0.25, [[0.0, 2.0], [3.0, 0.0]])
    >>> (A > 0).toarray().tolist(), [i.tolist() for i in A.nonzero()]
    ([[False, False], [True, False]], [[0, 1], [1, 0]])
    """

    def toarray(self) -> Shaped[Array, "*shape"]:
        """`todense()`."""
        return self.todense()  # pyright: ignore[reportAttributeAccessIssue]

    def copy(self) -> Any:
        """The object itself: it cannot change."""
        return self

    def sum(self, axis: int | None = None, dtype: Any = None) -> Shaped[Array, "*kept"]:
        """The sum of all entries, or along an axis to a dense vector.

        Args:
            axis: None, or 0 or 1 of a matrix: the axis that vanishes.
            dtype: of the result; None: that of the values (int32 for booleans).
        """
        ...

    def mean(self, axis: int | None = None, dtype: Any = None) -> Shaped[Array, "*kept"]:
        """The sum over the number of places, stored or not; a float."""
        ...

    def min(self, axis: int | None = None) -> Shaped[Array, "*kept"]:
        """The least value, 0 where an entry is missing; along an axis a dense vector.

        Raises:
            ValueError: there are no places to take it of.
        """
        ...

    def max(self, axis: int | None = None) -> Shaped[Array, "*kept"]:
        """The greatest value, 0 where an entry is missing; along an axis a dense vector.

        Raises:
            ValueError: there are no places to take it of.
        """
        ...

    def dot(self, other: Any) -> Any:
        """`self @ other`; a scalar multiplies."""
        ...

    def multiply(self, other: Any) -> Any:
        """`self * other`: a scalar, an array that broadcasts, or the intersection of patterns."""
        return self * other

    def power(self, n: Any, dtype: Any = None) -> Any:
        """Every entry to the power `n`, a scalar other than 0.

        Raises:
            ValueError: n is 0, whose result would be dense.
        """
        ...

    def __pow__(self, n: Any) -> Any:
        """`power`: element by element, as of SciPy's arrays (and unlike its matrices)."""
        return self.power(n)

    def __abs__(self) -> Any:
        """The absolute value of every entry."""
        ...

    def nonzero(self) -> tuple[Int[Array, " k"], ...]:
        """The indices of the entries that are not 0, row by row; eager only.

        Raises:
            ValueError: under jit, where their number is unknown.
        """
        ...

    def __len__(self) -> int:
        raise TypeError(
            f"the length of a {type(self).__name__} is ambiguous: use `shape[0]`, `nnz` or `nse`."
        )

    def __lt__(self, other: Any) -> Any:
        """Element-wise `<`, a boolean object; refused where missing entries would satisfy it."""
        ...

    def __gt__(self, other: Any) -> Any:
        """Element-wise `>`, a boolean object; refused where missing entries would satisfy it."""
        ...

    def __le__(self, other: Any) -> Any:
        """Element-wise `<=`, a boolean object; refused where missing entries would satisfy it."""
        ...

    def __ge__(self, other: Any) -> Any:
        """Element-wise `>=`, a boolean object; refused where missing entries would satisfy it."""
        ...

    def __ne__(self, other: object) -> Any:
        """Element-wise `!=`, a boolean object; for anything but numbers and arrays `is not`."""
        ...

    __hash__ = object.__hash__


class SciPyMatrixMethods(SciPyMethods):
    """SciPy's methods that only matrices have."""

    def tocoo(self) -> Any:
        """`asformat("coo")`."""
        return self.asformat("coo")  # pyright: ignore[reportAttributeAccessIssue]

    def tocsr(self) -> Any:
        """`asformat("csr")`."""
        return self.asformat("csr")  # pyright: ignore[reportAttributeAccessIssue]

    def tocsc(self) -> Any:
        """`asformat("csc")`."""
        return self.asformat("csc")  # pyright: ignore[reportAttributeAccessIssue]

    def diagonal(self, k: int = 0) -> Shaped[Array, " k"]:
        """The values of the k-th diagonal, a dense vector; 0 where an entry is missing."""
        ...

    def setdiag(self, values: Any, k: int = 0) -> Any:
        """A new matrix with `values`, one or as many as the k-th diagonal has places, on it.

        Unlike SciPy's it changes nothing in place. A shorter vector fills the first places.
        Every place set is an entry, also where the value is 0.
        """
        ...
