"""Sparse times dense on a CPU: jaxlib's own loop for ordinary products, native loops for others.

Entries are taken by row; what is not listed so is by a counting sort first, or for sums scattered.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ...._core.batching import one_by_one
from ...._core.native_loops import each, read
from ...._core.platforms import situation
from ...._core.reductions import ROUNDED, add_in_double, rounded, zeros_in_double
from ....formats.convert.compressed_cpu import by_rows
from ....formats.convert.counting_sort import Compressed
from ....native import bind
from ....native.codes import codes
from ..common.product import take
from ..spmv.cpu import running
from .xla import columns_together, fold_of, no_dense_fold, op, result_dtype, widened

COMPILED = ("float32", "float64", "int32", "int64")  # what jaxlib's loop takes
BYTES = 64  # of a row of X that the loops take together: XLA keeps no more of it in registers
UNROLL = 4  # entries of a row a turn
CLIPPED = 2**15  # indices that are clipped together: from twice as many XLA shares them by cores
LONG = 2**14  # entries of a row that jaxlib's loop adds up one by one in float32, at most
SCATTERED = 2**14  # numbers that are scattered together: what caches hold


def _not_ordinary(semiring, A, X, prepared, *, flip) -> str | None:
    """Why jaxlib's loop does not serve."""
    if reason := _no_loops(semiring, A, X, prepared, flip=flip):
        return reason
    if situation().portable:
        return "what is exported must not call a routine that only jaxlib's module registers"
    dtype = result_dtype(semiring, A, X, flip)
    wide, x = jax.eval_shape(functools.partial(widened, dtype=dtype), A, X)
    if not wide.dtype == x.dtype == _computed(dtype) or x.dtype.name not in COMPILED:
        return f"it takes {', '.join(COMPILED)}, both alike"
    if semiring.add.atomic(x.dtype) != "add" or semiring.mul.fn is not jnp.multiply:
        return "it adds ordinary products"
    return None


def _computed(dtype):
    narrow = jnp.issubdtype(dtype, jnp.floating) and jnp.finfo(dtype).bits < 32
    return jnp.dtype("float32") if narrow else dtype


def _no_loops(semiring, A, X, prepared, *, flip) -> str | None:
    if A.index_dtype != jnp.int32:
        return "loops count in int32"
    return no_dense_fold(semiring, A, X, prepared, flip=flip)


def _not_native(semiring, A, X, prepared, *, flip) -> str | None:
    if reason := _no_loops(semiring, A, X, prepared, flip=flip):
        return reason
    if A.index_dtype != jnp.int32:
        return "it takes indices of 32 bits"
    dtype = result_dtype(semiring, A, X, flip)
    wide, x = jax.eval_shape(functools.partial(widened, dtype=dtype), A, X)
    if not wide.dtype == x.dtype == _computed(dtype) or codes(semiring, x.dtype, flip) is None:
        return "it takes built-in semirings on float32, float64, int32, int64 or bool, all alike"
    return bind.refused()


def _native(semiring, A, X, prepared, *, flip):
    """A loop in C++ over entries for each row and 16 columns."""
    dtype = result_dtype(semiring, A, X, flip)
    A, X = widened(A, X, dtype)
    rows = A.asformat("csr")
    kind = codes(semiring, X.dtype, flip)
    assert kind is not None
    Y = jax.ShapeDtypeStruct((A.shape[0], X.shape[1]), X.dtype)
    operands = rows.indptr, rows.indices, jnp.asarray(rows.data), X
    return bind.call("spmm", Y, *operands, **kind).astype(dtype)


def _compiled(semiring, A, X, prepared, *, flip):
    """`jax.experimental.sparse`'s product of a CSR, on a CPU a loop that jaxlib was built with."""
    from jax.experimental import sparse

    dtype = result_dtype(semiring, A, X, flip)
    A, X = widened(A, X, dtype)
    rows = by_rows(A)
    inside = _clipped(rows.indices, A.shape[1])  # it reads wherever they say

    def multiply(data, X):
        return sparse.BCSR((data, inside, rows.indptr), shape=A.shape) @ X

    def in_double(data, X):
        with jax.enable_x64(True):
            wide = (lax.convert_element_type(v, np.float64) for v in (data, X))
            return lax.convert_element_type(multiply(*wide), np.float32)

    if A.nse <= LONG or X.dtype != jnp.float32:
        return multiply(rows.data, X).astype(dtype)
    long = jnp.max(jnp.diff(rows.indptr)) > LONG
    return lax.cond(long, in_double, multiply, rows.data, X).astype(dtype)


def _clipped(indices: Array, n: int) -> Array:
    """Clips to [0, n) in parts: for the whole array XLA makes a task for each core and waits for
    the last, which takes longer than the product if another program uses that core."""
    nse = indices.shape[0]
    size = min(nse, CLIPPED)

    def some(e, clipped):
        at = jnp.minimum(e * size, nse - size)
        part = jnp.clip(lax.dynamic_slice_in_dim(clipped, at, size), 0, n - 1)
        return (lax.dynamic_update_slice_in_dim(clipped, part, at, 0),)

    return each(0, -(-nse // size), some, indices)[0]


def _row_loops(semiring, A, X, prepared, *, flip):
    """A native loop over entries for each row and block of columns."""
    dtype = result_dtype(semiring, A, X, flip)
    A, X = widened(A, X, dtype)
    adds = semiring.add.atomic(_computed(dtype)) == "add"
    fold = fold_of(semiring, A, X, flip)
    return multiply_rows(by_rows(A), X, adds=adds, **fold).astype(dtype)


def _not_scattered(semiring, A, X, prepared, *, flip) -> str | None:
    if A.compressed == 0:
        return "the entries of a row lie side by side"
    dtype = _computed(result_dtype(semiring, A, X, flip))
    if semiring.add.atomic(dtype) != "add" or jnp.isdtype(dtype, "bool"):
        return "it adds numbers"
    return _no_loops(semiring, A, X, prepared, flip=flip)


def _scatter(semiring, A, X, prepared, *, flip):
    """Some entries after the other: their products with rows of X, added to rows of Y."""
    dtype = result_dtype(semiring, A, X, flip)
    A, X = widened(A, X, dtype)
    mul = fold_of(semiring, A, X, flip)["mul"]
    out, inner = A.rowcol()
    nse, k = A.nse, X.shape[1]
    size = min(nse, max(64, SCATTERED // k))

    def some(e, Y):
        at = jnp.minimum(e * size, nse - size)  # the last begin within those before
        i, j, a = (lax.dynamic_slice_in_dim(v, at, size) for v in (out, inner, A.data))
        i = jnp.where(jnp.arange(size) + at < e * size, A.shape[0], i)
        terms = mul(a[:, None], take(X, j))
        if dtype in ROUNDED:
            return (add_in_double(Y, i, terms),)
        return (Y.at[i].add(terms, mode="drop"),)

    shape = A.shape[0], k
    Y = zeros_in_double(*shape) if dtype in ROUNDED else jnp.zeros(shape, dtype)
    return rounded(each(0, -(-nse // size), some, Y)[0], dtype)


def multiply_rows(
    rows: Compressed,
    X: Array,
    *,
    mul: Callable[[Any, Any], Any],
    combine: Callable[[Any, Any], Any],
    identity: Any,
    adds: bool = False,
) -> Array:
    """(m, k) combinations over the entries j of each row of `mul(A[i, j], X[j])`.

    X: (n, k), both positive. identity: that of `combine` in the dtype of `mul`. adds: it adds.
    """
    m, k = rows.indptr.shape[0] - 1, X.shape[1]
    scalar = jax.ShapeDtypeStruct((), rows.data.dtype), jax.ShapeDtypeStruct((), X.dtype)
    identity = jnp.asarray(identity, jax.eval_shape(mul, *scalar).dtype)
    width = min(k, max(1, BYTES // max(X.dtype.itemsize, identity.dtype.itemsize)))
    steps = -(-k // width)

    first, more, total_of = running(combine, identity.dtype, adds)

    def entries(e: Array, end: Array, column: Array, carried: Any) -> Any:
        terms = []
        for place in range(UNROLL):
            x = lax.dynamic_slice(
                X, (read(rows.indices, e + place), column), (1, width), allow_negative_indices=False
            )
            a = jnp.broadcast_to(read(rows.data, e + place), width)
            term = mul(a, x.reshape(width))
            terms.append(jnp.where(e + place < end, term, identity) if place else term)
        while len(terms) > 1:
            terms = [combine(a, b) for a, b in zip(terms[::2], terms[1::2], strict=True)]
        return more(carried, terms[0])

    def row(state):
        i, begin, Y = state
        end = read(rows.indptr, i + 1)

        def block(state):
            step, Y = state
            column = jnp.minimum(step * width, k - width)  # the last overlaps the one before
            _, *sums = lax.while_loop(
                lambda c: c[0] < end,
                lambda c: (c[0] + UNROLL, *entries(c[0], end, column, c[1:])),
                (begin, *first(jnp.full(width, identity))),
            )
            Y = lax.dynamic_update_slice(
                Y, total_of(sums)[None], (i, column), allow_negative_indices=False
            )
            return step + 1, Y

        start = jnp.int32(0), Y
        if steps == 1:
            return i + 1, end, block(start)[1]
        return i + 1, end, lax.while_loop(lambda c: c[0] < steps, block, start)[1]

    start = jnp.int32(0), rows.indptr[0], jnp.full((m, k), identity)
    return lax.while_loop(lambda c: c[0] < m, row, start)[2]


for name, run, refuse in (
    ("native", _native, _not_native),
    ("scatter", _scatter, _not_scattered),
    ("compiled", _compiled, _not_ordinary),
    ("row_loops", _row_loops, _no_loops),
):
    rule = columns_together(run, one_by_one)
    op.register(name, backend="cpu", refuse=refuse, batched=rule)(run)
