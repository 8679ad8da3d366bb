"""`sddmm`: a product of two dense matrices, sampled where a sparse one has entries."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ...._core.eager.arrays import array_of
from ...._core.indices import with_pattern
from ...._core.platforms import Backend
from ....algebra.semirings import Semiring, as_semiring, plus_times
from ....formats import SparseMatrix
from ....native import bind
from ....native.codes import codes, refused
from ....shapes import ArrayLike, Matrix, Shaped
from ...write_rule.call import matrix
from ..common.dense_products import bare
from .xla import op, register_chunks, values_in_chunks


def sddmm(
    A: Matrix,
    X: Shaped[ArrayLike, "m *heads k"],
    Y: Shaped[ArrayLike, "n *heads k"],
    semiring: Semiring | str = plus_times,
    *,
    backend: Backend | None = None,
) -> Any:
    """`S[i, j] = add_k mul(X[i, k], Y[j, k])` at the stored entries of A: over (+, x) `<X_i, Y_j>`.

    The sampled product of dense matrices; the values of A are not read. `A.data * S.data` are the
    values of `A * (X Y^T)`.

    Args:
        A: (m, n) matrix or `Graph`; with axes of heads COO, CSR or CSC.
        X: (m, ..., k) array, a vector for each row. Axes in the middle are heads, each by itself.
        Y: (n, ..., k) array, a vector for each column.
        semiring: `add` combines, `mul` extends; not positional.
        backend: "pallas", "cpu", "xla", or None for the fastest that accepts the call.

    Returns:
        A matrix of the pattern and format of A (COO for a BitTiled, which holds no values), data
        (nse, ...): an array of heads an entry. The dtype is that of `mul`; float16 and bfloat16 are
        added in float32.

    Raises:
        TypeError: A is no matrix, or the monoid is not defined on the dtype.
        ValueError: shapes do not match; the semiring is positional.
        NotImplementedError: the form asked for cannot run; says why.

    Differentiable in both modes in X, Y and the semiring's parameters; the derivative holds no
    array of (entries, k): memory O(nse + size of X and Y + chunk).

    Cost: O(nse heads k) time, in chunks of entries.

    >>> import jax.numpy as jnp, jaxspv as jsp
    >>> A = jsp.from_edges([0, 1], [1, 1], shape=(2, 2))
    >>> sddmm(A, jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[0.0, 0.0], [1.0, 1.0]])).data
    Array([3., 7.], dtype=float32)
    """
    M, ends = with_pattern(matrix("A", A)), (array_of("X", X), array_of("Y", Y))
    semiring = as_semiring(semiring)
    if semiring.mul.position is not None:
        raise ValueError(f"`semiring` must not be positional; got {semiring}.")
    heads = check_ends(M, *ends)
    if heads and not M.takes_arrays:
        raise ValueError(f"heads {heads} need a COO, CSR or CSC; got a {type(M).__name__}.")
    return M._with_slots(op(semiring, bare(M), *ends, backend=backend))


def check_ends(A: SparseMatrix, X: Array, Y: Array, names: str = "XY") -> tuple[int, ...]:
    """The axes of X and Y between the first and the last. Raises ValueError: the shapes do not fit
    A, or each other."""
    m, n = A.shape
    if X.ndim < 2 or X.shape[0] != m:
        raise ValueError(f"`{names[0]}` must have shape ({m}, ..., k); got {X.shape}.")
    if Y.shape != (n, *X.shape[1:]):
        raise ValueError(f"`{names[1]}` must have shape {(n, *X.shape[1:])}; got {Y.shape}.")
    return X.shape[1:-1]


def _refuse(semiring, A, X, Y) -> str | None:
    if A.compressed != 0 or A.index_dtype != jnp.int32:
        return "it takes entries by row with indices of 32 bits"
    if X.ndim != 2 or 0 in (A.nse, *X.shape, *Y.shape):
        return "it takes one head, and something to multiply"
    alike = X.dtype == Y.dtype and not semiring.add.takes_first
    return refused(semiring, X.dtype if alike else None)


@op.register("native", backend="cpu", refuse=_refuse)
def _native(semiring, A, X, Y) -> Array:
    """A dot product in eight parts for each entry."""
    values = jax.ShapeDtypeStruct((A.nse,), X.dtype)
    return bind.call("sddmm", values, A.indptr, A.indices, X, Y, **codes(semiring, X.dtype))


register_chunks(op, "chunks", values_in_chunks)  # after the forms that are faster
