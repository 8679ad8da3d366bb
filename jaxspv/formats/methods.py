"""Operators and SciPy's methods of sparse objects, declared; `ops/install.py` sets what they do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import Array

from ..shapes import Int, Shaped

METHODS = {  # of matrices A of SciPy, python-graphblas and PyTorch -> what does the same
    "argmax": "`A.todense().argmax()`",
    "argmin": "`A.todense().argmin()`",
    "col": "`A.rowcol()[1]`",
    "conj": "`A.with_data(A.data.conj())`",
    "conjugate": "`A.with_data(A.data.conj())`",
    "coords": "`A.rowcol()`",
    "count_nonzero": "`(A != 0).sum()`, or `A.nnz` for the number of entries",
    "eliminate_zeros": "`jsp.select(A, jsp.operators.valuene, 0)`",
    "H": "`jsp.apply(A.T, jnp.conj)`",
    "S": "`jsp.structure(A)`",
    "V": "the mask `A` itself",
    "getcol": "`A[:, j]`",
    "getnnz": "`A.nnz`",
    "getrow": "`A[i]`",
    "has_canonical_format": "`A.unique`",
    "has_sorted_indices": "`A.sorted`",
    "imag": "`A.with_data(A.data.imag)`",
    "maximum": "`jsp.ewise_union(A, B, jsp.operators.max)`",
    "minimum": "`jsp.ewise_union(A, B, jsp.operators.min)`",
    "ncols": "`A.shape[1]`",
    "nrows": "`A.shape[0]`",
    "nvals": "`A.nnz`",
    "real": "`A.with_data(A.data.real)`",
    "reduce_columnwise": "`jsp.reduce(A, monoid, axis=0)`",
    "reduce_rowwise": "`jsp.reduce(A, monoid, axis=1)`",
    "reshape": "`jsp.from_scipy(A.to_scipy().reshape(...))`",
    "resize": "`jsp.graphblas.resize`",
    "row": "`A.rowcol()[0]`",
    "sum_duplicates": "`jsp.graphblas.build` when the matrix is made",
    "to_dense": "`A.todense()`",
    "tobsr": '`A.asformat("tiled")`',
    "todia": "`A.to_scipy().todia()`",
    "todok": "`A.to_scipy().todok()`",
    "tolil": "`A.to_scipy().tolil()`",
    "trace": "`A.diagonal().sum()`",
}
EVERY_PAIR = "`jsp.all_pairs_shortest_path_length(A, weighted=True)`"
SOLVER = "`jax.scipy.sparse.linalg.cg(lambda x: A @ x, b)`"
FUNCTIONS = {  # of SciPy and NetworkX -> what does the same
    "csr_array": "`jsp.from_scipy`, `jsp.from_edges` or `jsp.CSR`",
    "csc_array": "`jsp.from_scipy`, `jsp.from_edges` or `jsp.CSC`",
    "coo_array": "`jsp.from_edges` or `jsp.COO`",
    "find": "`A.rowcol()` and `A.data`",
    "issparse": "`isinstance(A, jsp.CSR)`",
    "tril": "`jsp.select(A, jsp.operators.tril)`",
    "triu": "`jsp.select(A, jsp.operators.triu)`",
    "degree": "`jnp.diff(A.indptr)`",
    "degree_centrality": "`jnp.diff(A.indptr) / (n - 1)`",
    "is_connected": "`jsp.connected_components(A).count == 1`",
    "laplacian": "`jsp.diag(A.sum(axis=1)) - A`",
    "lobpcg": "`jax.experimental.sparse.linalg.lobpcg_standard(lambda X: A @ X, X)`",
}
FUNCTIONS |= dict.fromkeys(("floyd_warshall", "johnson"), EVERY_PAIR)
FUNCTIONS |= dict.fromkeys(("cg", "solve", "spsolve"), SOLVER)
FUNCTIONS |= dict.fromkeys(("binary", "unary"), "`jsp.operators`")
FUNCTIONS |= dict.fromkeys(("center", "periphery", "radius"), "`jsp.eccentricity`")
FUNCTIONS |= dict.fromkeys(("eye", "eye_array", "identity"), "`jsp.diag(jnp.ones(n))`")
FUNCTIONS |= dict.fromkeys(("random", "random_array"), "`jsp.generators.erdos_renyi`")
FUNCTIONS |= {
    name: f"`jsp.from_scipy(scipy.sparse.{name}(...))`"
    for name in "block_array bmat hstack kronsum vstack".split()
}
FUNCTIONS |= {f"{k[:3]}_matrix": FUNCTIONS[f"{k[:3]}_array"] for k in ("csr", "csc", "coo")}
ELEMENTWISE = frozenset(
    "arcsin arcsinh arctan arctanh ceil deg2rad expm1 floor log1p rad2deg rint sign sin sinh sqrt "
    "tan tanh trunc".split()
)


def method(name: str) -> str:
    """The end of the message that a matrix has no such method."""
    if name in ELEMENTWISE:
        return f"; use `jsp.apply(A, jnp.{name})`"
    known = METHODS.get(name) or FUNCTIONS.get(name)
    public = vars(sys.modules[__name__.split(".")[0]])
    if known is None and not name.startswith("_") and callable(public.get(name)):
        known = f"the function `jsp.{name}`"
    return f"; use {known}" if known else ""


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
            f"a {type(self).__name__} never changes: `A = jsp.graphblas.set_element(A, value, i, "
            "j)` or `A = jsp.assign(A, values, i, j)` gives one with new entries, "
            "`A.with_data(values)` one with the same entries and new values."
        )

    def __delitem__(self, index: Any) -> None:
        raise TypeError(
            f"a {type(self).__name__} never changes: `A = jsp.graphblas.remove_element(A, i, j)` "
            "gives one without an entry, `jsp.select` one with those that a condition keeps."
        )


class Products(NoValue):
    """The operator `@`: products over (+, x)."""

    def __matmul__(self, other: Any) -> Any: ...

    def __rmatmul__(self, other: Any) -> Any: ...


class Arithmetic(NoValue):
    """NumPy's operators on sparse objects; what they mean stands in docs/graphblas.md."""

    def __add__(self, other: Any) -> Any:
        """The union: values are added where both have an entry."""

    def __radd__(self, other: Any) -> Any: ...

    def __sub__(self, other: Any) -> Any:
        """The union with 0 for what one of them lacks: `A + (-B)`."""

    def __rsub__(self, other: Any) -> Any: ...

    def __mul__(self, other: Any) -> Any:
        """The intersection; a scalar multiplies every entry."""

    def __rmul__(self, other: Any) -> Any: ...

    def __truediv__(self, other: Any) -> Any:
        """The intersection; a scalar divides every entry."""

    def __neg__(self) -> Any:
        """Every entry negated."""

    def __getitem__(self, index: Any) -> Any:
        """As for SciPy's arrays; an element that is not stored is 0.

        `A[i, j]` is a scalar array for integers. For two arrays of indices it is a dense array with
        `A[i[k], j[k]]` at k. Anything else is `extract`: slices, an array of indices and a slice,
        and rows and columns as `A[np.ix_(i, j)]`.
        """


class SciPyMethods(Arithmetic):
    """SciPy's methods of sparse arrays, with SciPy's meaning: a missing entry counts as 0.

    In GraphBLAS a missing entry has no value, and operations pass it by: `jsp.reduce`,
    `jsp.ewise_mult`, `jsp.apply`, `jsp.select`. Objects are immutable, so `setdiag` gives a new
    matrix. Reference: sparse arrays of SciPy 1.17.

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

    def sum(
        self, axis: int | None = None, dtype: Any = None, out: None = None
    ) -> Shaped[Array, "*kept"]:
        """The sum of all entries, or along an axis to a dense vector.

        Args:
            axis: None, or 0 or 1 of a matrix: the axis that vanishes.
            dtype: of the result; None: that of the values (for booleans and integers under 32
                bits int32 or uint32).
            out: None, which `numpy.sum(A)` passes; as of `mean`, `min` and `max`.
        """
        ...

    def mean(
        self, axis: int | None = None, dtype: Any = None, out: None = None
    ) -> Shaped[Array, "*kept"]:
        """The sum over the number of places, stored or not; a float, or rounded to `dtype`."""
        ...

    def min(self, axis: int | None = None, out: None = None) -> Shaped[Array, "*kept"]:
        """The least value, 0 where an entry is missing; along an axis a dense vector.

        Raises:
            ValueError: there are no places to take it of.
        """
        ...

    def max(self, axis: int | None = None, out: None = None) -> Shaped[Array, "*kept"]:
        """The greatest value, 0 where an entry is missing; along an axis a dense vector.

        Raises:
            ValueError: there are no places to take it of.
        """
        ...

    def dot(self, other: Any) -> Any:
        """`self @ other`; a scalar multiplies."""

    def multiply(self, other: Any) -> Any:
        """`self * other`: a scalar, an array that broadcasts, or the intersection of patterns."""
        return self * other

    def power(self, n: Any, dtype: Any = None) -> Any:
        """Every entry to the power `n`, a scalar other than 0.

        Raises:
            ValueError: n is 0, whose result would be dense.
        """

    def __pow__(self, n: Any) -> Any:
        """`power`: element by element, as of SciPy's arrays (and unlike its matrices)."""
        return self.power(n)

    def __abs__(self) -> Any:
        """The absolute value of every entry."""

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

    def __gt__(self, other: Any) -> Any:
        """Element-wise `>`, a boolean object; refused where missing entries would satisfy it."""

    def __le__(self, other: Any) -> Any:
        """Element-wise `<=`, a boolean object; refused where missing entries would satisfy it."""

    def __ge__(self, other: Any) -> Any:
        """Element-wise `>=`, a boolean object; refused where missing entries would satisfy it."""

    def __ne__(self, other: object) -> Any:
        """Element-wise `!=`, a boolean object; for anything but numbers and arrays `is not`."""

    __hash__ = object.__hash__

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> None:
            """Says what stands in for a method of SciPy that is not here."""
            kind = type(self).__name__
            raise AttributeError(f"{kind!r} has no attribute {name!r}{method(name)}")


class SciPyMatrixMethods(SciPyMethods):
    """SciPy's methods that only matrices have."""

    def matvec(self, x: Any) -> Any:
        """`self @ x`; with `rmatvec` what `scipy.sparse.linalg.aslinearoperator` looks for.

        Of an array of NumPy a new one: SciPy's solvers write into it.
        """
        y: Any = self @ x  # pyright: ignore[reportOperatorIssue]
        return np.array(y) if isinstance(x, np.ndarray) else y

    def rmatvec(self, x: Any) -> Any:
        """`self^H @ x`, the product with the conjugate transpose."""
        return self.T.matvec(x.conj()).conj()  # pyright: ignore[reportAttributeAccessIssue]

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
