"""What the derivatives of a product with a CSR are made of.

Over (+, x) an outer product on its pattern and a transposed product:

    by_values[e] = w[i] x[j]                 for the entry e = (i, j)
    by_vector[j] = sum_i w[i] A[i, j]

On an NVIDIA GPU a kernel for float32 computes either or both in one pass over the entries, by
atomics; on a CPU C++ does. Elsewhere the row of every entry is found first, unless it is at hand.
Where min, max or any chooses: the first entry of each row that wins.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from pallas_kernels.layouts.ragged import LIMIT

from ...._core.compat import kernels_refused
from ...._core.operation import Operation, typed
from ...._core.reductions import in_float32
from ....algebra.monoids import plus
from ....algebra.semirings import Semiring
from ....formats import CSR
from ....formats.offsets import search_rows
from ....native import bind
from ....native.codes import codes, refused
from ..common.product import product, take, winners


def csr_vjp(
    indptr: Array,
    indices: Array,
    w: Array,
    n_cols: int,
    *,
    x: Array | None = None,
    data: Array | None = None,
    rows: Array | None = None,
    ranked: tuple[Array, Array] | None = None,
) -> tuple[Array | None, Array | None]:
    """(by_values, by_vector) of `sum_i w[i] sum_j A[i, j] x[j]`; everything may be traced.

    indptr: (n_rows + 1,). indices: (nse,); entries from indptr[-1] on are padding: 0 in by_values,
    never read for by_vector. w: (n_rows,). x: (n_cols,); None: no by_values, else (nse,). data:
    (nse,); None: no by_vector, else (n_cols,). rows: optional (nse,) row of every entry, n_rows in
    padding; used by the XLA form only. ranked: (nse,) number of every entry's column where column
    order[k] has number k, the most used first, and order (n_cols,); for kernels. All values are of
    one dtype; narrower floats than float32 are multiplied and added in that. O(nse + n_rows).
    """
    nse = indices.shape[0]
    if nse == 0 or n_cols == 0 or w.shape[0] == 0:
        sizes = ((x, nse), (data, n_cols))
        by_values, by_vector = (None if v is None else jnp.zeros(k, w.dtype) for v, k in sizes)
        return by_values, by_vector
    dtype, (w, x, data) = w.dtype, jax.tree.map(in_float32, (w, x, data))
    found = op(indptr, indices, w, x, data, rows, ranked, n_cols=n_cols)
    return jax.tree.map(lambda v: v.astype(dtype), found)


def _types(indptr, indices, w, x, data, rows, ranked, *, n_cols):
    by_values = None if x is None else typed(w.dtype, indices.shape[0])
    return by_values, None if data is None else typed(w.dtype, n_cols)


op = Operation("derivatives of a product", "definition", types=_types, internal=True)


def serves(dtype: Any, indptr: Array, indices: Array) -> bool:
    """Whether the kernel of an NVIDIA GPU computes derivatives of this dtype."""
    return (
        kernels_refused() is None
        and dtype == jnp.float32
        and indptr.dtype == indices.dtype == jnp.int32
        and indptr.shape[0] + indices.shape[0] <= LIMIT
    )


def _no_kernel(indptr, indices, w, x, data, rows, ranked, *, n_cols) -> str | None:
    if serves(w.dtype, indptr, indices):
        return None
    return "the kernel is for float32 and int32 indices that fit its counters"


@op.register("csr_vjp", backend="pallas", refuse=_no_kernel)
def _by_kernel(indptr, indices, w, x, data, rows, ranked, *, n_cols):
    from pallas_kernels.products import spmv_vjp as kernels

    if ranked is None:
        return kernels.csr_vjp(indptr, indices, w, n_cols, x=x, data=data)
    ranks, order = ranked
    x = None if x is None else jnp.take(x, order, mode="clip")
    by_values, by_rank = kernels.csr_vjp(
        indptr, ranks, w, n_cols, x=x, data=data, hot=min(n_cols, kernels.HOT[x is None])
    )
    if by_rank is None:
        return by_values, None
    spread = jnp.zeros(n_cols, by_rank.dtype).at[order].set(by_rank, unique_indices=True)
    return by_values, spread


@op.register("scatter")
def _gather_and_scatter(indptr, indices, w, x, data, rows, ranked, *, n_cols):
    rows = search_rows(indptr, indices.shape[0]) if rows is None else rows
    inside = rows < w.shape[0]
    weight = jnp.where(inside, jnp.take(w, rows, mode="clip"), 0)
    by_values = by_vector = None
    if x is not None:
        by_values = jnp.where(inside, weight * jnp.take(x, indices, mode="clip"), 0)
    if data is not None:
        terms = jnp.where(inside, weight * data, 0)
        by_vector = plus.segment_reduce(terms, jnp.where(inside, indices, n_cols), n_cols)
    return by_values, by_vector


def _not_in_cpp(indptr, indices, w, x, data, rows, ranked, *, n_cols) -> str | None:
    if not indptr.dtype == indices.dtype == jnp.int32 or w.dtype.name not in ("float32", "float64"):
        return "it takes float32 and float64 with indices of 32 bits"
    return bind.refused()


@op.register("native", backend="cpu", refuse=_not_in_cpp, batched="vmap")
def _vjp_in_cpp(indptr, indices, w, x, data, rows, ranked, *, n_cols):
    """One pass over the entries for both; sums of float32 in double."""
    results = _types(indptr, indices, w, x, data, rows, ranked, n_cols=n_cols)
    none = typed(w.dtype, 0)
    found = bind.call(
        "spmv_derivatives",
        tuple(none if r is None else r for r in results),
        *(indptr, indices),
        *(jnp.zeros(0, w.dtype) if v is None else v for v in (data, w, x)),
    )
    return tuple(None if r is None else v for r, v in zip(results, found, strict=True))


def winning_slots(semiring: Semiring, A: CSR, x: Array, y: Array, flip: bool) -> Array:
    """(m,) int32: the first slot of each row whose product is that of y; nse where there is none.

    Nothing of it is differentiated. O(nse + m).
    """
    nse = A.nse
    if 0 in (nse, *A.shape):
        return jnp.full(A.shape[0], nse, jnp.int32)
    if semiring.add.takes_first:
        begin, end = A.indptr[:-1], A.indptr[1:]
        return jnp.where(begin < end, begin, nse).astype(jnp.int32)
    return winners_op(A.indptr, A.indices, semiring, A.data, x, y, flip=flip)


winners_op = Operation("winning entries", internal=True)
winners_op.types = lambda indptr, indices, semiring, data, x, y, **_: typed(jnp.int32, *y.shape)


@winners_op.register("segments")
def _by_segments(indptr, indices, semiring, data, x, y, *, flip):
    out = search_rows(indptr, indices.shape[0])
    terms = product(semiring, data, out, indices, take(x, indices), flip=flip)
    return winners(semiring.add, terms, out, y.shape[0])


def _no_winners(indptr, indices, semiring, data, x, y, *, flip) -> str | None:
    alike = data.dtype == x.dtype == y.dtype and indptr.dtype == indices.dtype == jnp.int32
    alike &= jnp.issubdtype(y.dtype, jnp.floating)
    return refused(semiring, y.dtype if alike else None, flip)


@winners_op.register("native", backend="cpu", refuse=_no_winners, batched="vmap")
def _winners_in_cpp(indptr, indices, semiring, data, x, y, *, flip):
    """The first of each row in C++."""
    slots, number = typed(jnp.int32, *y.shape), codes(semiring, y.dtype, flip)
    return bind.call("winners", slots, indptr, indices, data, x, y, **number)
