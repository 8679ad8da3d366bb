"""`sddmm`: a product of two dense matrices, sampled where a sparse one has entries.

On every platform its values, and those of the derivatives, come in chunks of entries.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ...._core.derivatives import dense_tangent, is_inexact, is_zero
from ...._core.eager.arrays import array_of
from ...._core.indices import with_pattern
from ...._core.operation import Operation, typed
from ...._core.platforms import Backend
from ....algebra.semirings import Semiring, as_semiring, plus_times
from ....formats import SparseMatrix
from ....native import bind
from ....native.codes import codes, refused
from ....shapes import ArrayLike, Matrix, Shaped
from ...aggregate import wide
from ...write_rule.call import matrix
from ..common.product import bare, is_linear, spmm, term_dtype
from ..common.product import sddmm as op
from .by_entry import ByEntry, chunk_for


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


def inner(semiring: Semiring, x: Array, y: Array, _: None = None) -> Array:
    """`add_k mul(x[..., k], y[..., k])`; of what min and max choose from the first at ties."""
    add = semiring.add
    dtype = term_dtype(semiring, x.dtype, y.dtype)
    terms = add.admit(semiring.mul(wide(x), wide(y)))
    if add.selective and not add.takes_first and terms.shape[-1] and is_inexact(terms):
        fixed = jax.lax.stop_gradient(terms)
        first = jnp.argmax(fixed == add.reduce(fixed)[..., None], axis=-1, keepdims=True)
        return jnp.take_along_axis(terms, first, axis=-1)[..., 0].astype(dtype)
    return add.reduce(terms).astype(dtype)


def live_tangents(tangents: Any) -> list[Any]:
    """The tangents of all leaves, None for those that are known to be zero."""
    return [None if is_zero(t) else dense_tangent(t) for t in jax.tree.leaves(tangents)]


def _tangent(primals, tangents, values):
    """(nse, ...) tangent of the values: linear in the tangents of X, Y and the semiring's."""
    semiring, A, X, Y = primals
    dots = live_tangents((tangents[0], *tangents[2:]))
    perturbed = tuple(t is not None for t in dots)
    if not any(perturbed):
        return jnp.zeros_like(values)
    parts = [t for t in dots if t is not None]
    return pushed(semiring, A, X, Y, parts, perturbed=perturbed)


def _ends(backend, semiring, A, X, Y) -> tuple[ByEntry, list[Any]]:
    operands = (semiring, X, Y, None)
    ends = ByEntry.of(inner, A, operands, chunk_for(backend, X, Y))
    return ends, jax.tree.leaves(operands)


def _pushed(backend, semiring, A, X, Y, parts, *, perturbed):
    """The tangent of the values, by values of other operands or in chunks of entries."""
    if is_ordinary(semiring, X, Y):
        given = iter(parts)
        x, y = (next(given) if on else None for on in perturbed)
        sides = [] if x is None else [op(semiring, A, x, Y)]
        return functools.reduce(jnp.add, sides if y is None else [*sides, op(semiring, A, X, y)])
    ends, leaves = _ends(backend, semiring, A, X, Y)
    given = iter(parts)
    dots = [next(given) if on else None for on in perturbed]

    def step(_, row, col):
        place = (row, col, [])
        return None, ends.moved(ends.local(leaves, *place), ends.local(dots, *place))[1]

    return ends.over(step, None)[1]


def _pulled(backend, semiring, A, X, Y, g, *, perturbed):
    """The cotangents of the perturbed leaves, in chunks of entries or by products. On a CPU by
    products where these are C++ and there is one head: others need a transpose each."""
    one = X.ndim == 2 and A.index_dtype == jnp.int32 and refused(plus_times, X.dtype) is None
    if is_ordinary(semiring, X, Y) and (backend == "xla" or one):
        sides = ((A, Y), (A.T, X))
        wanted = [side for side, on in zip(sides, perturbed, strict=True) if on]
        return [by_heads(M, g, v) for M, v in wanted]
    ends, leaves = _ends(backend, semiring, A, X, Y)

    def step(sums, row, col, g):
        local = ends.local(leaves, row, col, [])
        return ends.pull(local, perturbed, sums, row, col, lambda _: g)[0], None

    sums = ends.over(step, ends.zeros(leaves, perturbed, g.dtype), g)[0]
    return [s for s in sums if s is not None]


def is_ordinary(semiring: Semiring, X: Array, Y: Array) -> bool:
    """Whether it adds ordinary products of one floating dtype."""
    return is_linear(semiring) and X.dtype == Y.dtype and is_inexact(X)


def by_heads(A: SparseMatrix, data: Array, X: Array) -> Array:
    """`sum_j data[i, j, h] X[j, h]` (m, heads, k): a product with X for each head.

    By the kernel of `spmm`.
    """
    (n, *heads, k) = X.shape
    if A.takes_arrays:  # sorted by row once for all heads
        A = A.with_data(data.reshape(data.shape[0], -1)).asformat("csr")
        data = A.data
    values = data.reshape(data.shape[0], -1).T

    def product(one):
        values, x = one
        return spmm(plus_times, A.with_data(values), x, None, flip=False)

    parts = values, jnp.moveaxis(X.reshape(n, -1, k), 1, 0)
    if values.shape[0] == 1:
        Y = product(jax.tree.map(lambda v: v[0], parts))[None]
    else:
        Y = jax.lax.map(product, parts)
    return jnp.moveaxis(Y, 0, 1).reshape(A.shape[0], *heads, k)


op.tangent = _tangent
op.types = lambda semiring, A, X, Y: typed(
    term_dtype(semiring, X.dtype, Y.dtype), A.nse, *X.shape[1:-1]
)


def values_in_chunks(backend, semiring: Semiring, A: SparseMatrix, X: Array, Y: Array) -> Array:
    ends, leaves = _ends(backend, semiring, A, X, Y)
    return ends.over(lambda _, r, c: (None, ends.at(ends.local(leaves, r, c, []))), None)[1]


def register_chunks(op: Operation, name: str, run: Callable[..., Any]) -> None:
    """Enters `run(backend, *operands, **static)` for CPUs and for all; JAX's own batching."""
    for backend in ("cpu", "xla"):
        op.register(name, backend=backend, batched="vmap")(functools.partial(run, backend))


def _transposed(g, semiring, A, X, Y, parts, *, perturbed):
    found = pulled(semiring, A, X, Y, g, perturbed=perturbed)
    found = [c.astype(p.dtype) for c, p in zip(found, parts, strict=True)]
    return None, None, None, None, found


pushed = Operation("tangent of sddmm", "definition", transpose=_transposed, internal=True)
pulled = Operation("cotangent of sddmm", "definition", internal=True)
register_chunks(pushed, "chunks", _pushed)
register_chunks(pulled, "chunks", _pulled)


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
