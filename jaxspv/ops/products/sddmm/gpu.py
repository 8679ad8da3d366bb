"""SDDMM on NVIDIA GPUs: when the kernel over entries serves a call, and how it is called."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from pallas_kernels.products.sddmm import LIMIT, NARROW
from pallas_kernels.products.sddmm import sddmm as kernel

from ...._core.loops import lanes_second, one_by_one
from ..common.product import term_dtype
from ..spmv.gpu import SCALARS, no_scalars, scalars
from .api import op


def _not_here(semiring, A, X, Y) -> str | None:
    if 0 in (A.nse, *X.shape, *Y.shape):
        return "there is nothing to multiply"
    if semiring.add.identity is None:
        return f"the monoid `{semiring.add.name}` has no identity to pad with"
    if X.dtype != Y.dtype or X.dtype.name not in (*SCALARS, *NARROW):
        kinds = "float32, int32, bfloat16 or float16"
        return f"kernels take {kinds}, both alike, not {X.dtype} and {Y.dtype}"
    heads = X.size // (X.shape[0] * X.shape[-1])
    if max(A.nse * heads, X.size, Y.size) > LIMIT or A.index_dtype != jnp.int32:
        return "kernels count pairs and numbers in int32"
    return no_scalars(semiring, _wide(X), _wide(Y), False)


def _wide(x):
    """The type of what the kernel computes with."""
    return jax.ShapeDtypeStruct((1,), "float32" if x.dtype.name in NARROW else x.dtype)


def _entries(semiring, A, X, Y) -> Array:
    """Pairs (entry, head) shared evenly by groups of lanes, which have the columns; one launch."""
    row, col = A.rowcol()
    (m, *heads, k), n = X.shape, Y.shape[0]
    of = scalars(semiring, _wide(X), _wide(Y), False)
    values = kernel(row, col, X.reshape(m, -1, k), Y.reshape(n, -1, k), semiring=of)
    return values.reshape(-1, *heads).astype(term_dtype(semiring, X.dtype, X.dtype))


def _batched(axis_size, in_batched, semiring, A, X, Y):
    """vmap over X and Y alone: heads of one launch."""
    if any(jax.tree.leaves(in_batched[:2])):
        return one_by_one(_entries, axis_size, in_batched, semiring, A, X, Y)
    X, Y = lanes_second(axis_size, (X, Y), in_batched[2:])
    return jnp.moveaxis(op(semiring, A, X, Y), 1, 0)


op.register("entries", backend="pallas", refuse=_not_here, batched=_batched)(_entries)
