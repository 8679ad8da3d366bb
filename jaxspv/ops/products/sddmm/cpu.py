"""SDDMM on a CPU, over the entries of a CSR: in C++, or by native loops over blocks of columns."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from ...._core.native_loops import each, read, write
from ....formats import CSR
from ....native import bind
from ....native.codes import codes
from ..spmv.api import fold_of
from .xla import op


def _refuse(semiring, A, X, Y) -> str | None:
    if A.compressed != 0 or A.index_dtype != jnp.int32:
        return "it takes entries by row with indices of 32 bits"
    if X.ndim != 2 or 0 in (A.nse, *X.shape, *Y.shape):
        return "it takes one head, and something to multiply"
    if X.dtype != Y.dtype or semiring.add.takes_first or codes(semiring, X.dtype) is None:
        return "it takes built-in semirings on float32, float64, int32, int64 or bool, all alike"
    return bind.refused()


@op.register("native", backend="cpu", refuse=_refuse)
def _native(semiring, A, X, Y) -> Array:
    """A dot product in eight parts for each entry."""
    kind = codes(semiring, X.dtype)
    assert kind is not None
    values = jax.ShapeDtypeStruct((A.nse,), X.dtype)
    return bind.call("sddmm", values, A.indptr, A.indices, X, Y, **kind)


BLOCK = 32  # columns of a pass; of more XLA would make a list of operations, no loop


def _not_here(semiring, A, X, Y) -> str | None:
    """Why the loop does not serve."""
    if not isinstance(A, CSR) or A.index_dtype != jnp.int32:
        return "the loop goes over a CSR with int32 indices"
    if X.ndim != 2 or 0 in (A.nse, *X.shape, *Y.shape):
        return "the loop has one head, and something to multiply"
    if semiring.add.identity is None:
        return f"the monoid `{semiring.add.name}` has no identity"
    if X.dtype != Y.dtype or X.dtype.itemsize < 4:
        return "the loop takes 32-bit and 64-bit numbers, both alike"
    if semiring.add.takes_first:
        return "the order of the columns matters"
    return None


def _row_loop(semiring, A, X, Y) -> Array:
    x, y = (jax.ShapeDtypeStruct((1,), v.dtype) for v in (X, Y))
    fold = fold_of(semiring, x, y, False)
    mul, combine, k = fold["mul"], fold["combine"], X.shape[1]

    def dot(i, j, column, width):
        """One number of columns side by side, of which there is a power of two."""
        x, y = (
            lax.dynamic_slice(v, (place, column), (1, width), allow_negative_indices=False)
            for v, place in ((X, i), (Y, j))
        )
        total = mul(x.reshape(width), y.reshape(width))
        while (width := width // 2) > 0:
            total = combine(total[:width], total[width:])
        return total[0]

    def columns(column, values, widths):
        """One pass over all entries, with columns from this one on."""

        def row(i, begin, values):
            end = read(A.indptr, i + 1)

            def entry(e, values):
                j, at, total = read(A.indices, e), column, read(values, e)
                for width in widths:
                    total, at = combine(total, dot(i, j, at, width)), at + width
                return (write(values, e, total),)

            return end, *each(begin, end, entry, values)

        return each(0, A.shape[0], row, A.indptr[0], values)[1]

    identity = jnp.asarray(fold["identity"])
    values = jnp.where(jnp.arange(A.nse) < A.indptr[-1], identity, jnp.zeros_like(identity))
    whole, rest = divmod(k, BLOCK)
    if whole == 1:
        values = columns(jnp.int32(0), values, (BLOCK,))
    elif whole:
        (values,) = each(0, whole, lambda b, v: (columns(b * BLOCK, v, (BLOCK,)),), values)
    if rest:
        widths = [1 << p for p in range(rest.bit_length() - 1, -1, -1) if rest >> p & 1]
        values = columns(jnp.int32(whole * BLOCK), values, widths)
    return values


op.register("row_loop", backend="cpu", refuse=_not_here, batched="map")(_row_loop)
