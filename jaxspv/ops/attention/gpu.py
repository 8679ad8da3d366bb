"""Attention on NVIDIA GPUs: when the kernel over a CSR serves a call, and how it is called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from pallas_kernels.products.attention import MOST, csr_attention
from pallas_kernels.products.attention_vjp import csr_attention_vjp
from pallas_kernels.rows.merge_path import LIMIT

from ..._core.batching import one_by_one
from ..._core.compat import kernels_refused
from ..mxv.spmv import no_rows
from .score import Dot
from .xla import KERNELS, op

_FLOATS = ("float32", "bfloat16", "float16")


def not_here(A, operands, V, *, score) -> str | None:
    """Why the kernel cannot compute these."""
    _, Q, K, (bias, _) = operands
    if reason := kernels_refused() or no_rows(A):
        return reason
    if not isinstance(score, Dot):
        return "the kernel knows dot products alone, not a `score` of yours"
    if 0 in (A.nse, *Q.shape, *K.shape, *V.shape):
        return "there is nothing to attend to"
    if A.index_dtype != jnp.int32 or A.nse + A.shape[0] > LIMIT:
        return "kernels count rows and entries in int32"
    if max(Q.shape[-1], V.shape[-1]) > MOST:
        return f"a head has more than {MOST} features"
    if max(v.size // v.shape[-1] for v in (Q, K, V)) * MOST > LIMIT:
        return "kernels count the numbers of Q, K and V in int32"
    for v in (Q, K, V, *([] if bias is None else [bias])):
        if v.dtype.name not in _FLOATS:
            return f"kernels compute in float32, not {v.dtype}"
    if bias is not None and bias.size > LIMIT:
        return "kernels count biases in int32"
    return None


def plain(A, operands, V) -> tuple[Any, ...]:
    """Q, K, V with one axis of heads and the bias with one or none, all float32."""
    _, Q, K, (bias, _) = operands
    q, k, v = (x.reshape(len(x), -1, x.shape[-1]).astype(jnp.float32) for x in (Q, K, V))
    if bias is not None:
        bias = bias.astype(jnp.float32)
        bias = bias if bias.ndim == 1 else bias.reshape(A.nse, -1)
    return q, k, v, bias


def _rows(A, operands, V, *, score) -> tuple[Array, Array]:
    """One launch: rows and entries shared evenly by warps, whose lanes have the features."""
    y, logs = csr_attention(A.indptr, A.indices, *plain(A, operands, V), scale=score.scale)
    heads = V.shape[1:-1]
    return y.reshape(A.shape[0], *heads, V.shape[-1]).astype(V.dtype), logs.reshape(-1, *heads)


def _batched(axis_size, in_batched, A, operands, V, *, score):
    """vmap over Q, K and V alone: heads of one launch."""
    captured, Q, K, (bias, edges) = operands
    others = jax.tree.leaves((in_batched[0], in_batched[1][0], in_batched[1][3]))
    if any(others) or (bias is not None and bias.ndim > 1):
        run = functools.partial(_rows, score=score)
        return one_by_one(run, axis_size, in_batched, A, operands, V)

    def heads(v, on):
        if on:
            return jnp.moveaxis(v, 0, 1)
        return jnp.broadcast_to(v[:, None], (len(v), axis_size, *v.shape[1:]))

    marks = (*in_batched[1][1:3], in_batched[2])
    Q, K, V = (heads(v, on) for v, on in zip((Q, K, V), marks, strict=True))
    found = op(A, (captured, Q, K, (bias, edges)), V, score=score)
    return tuple(jnp.moveaxis(v, 1, 0) for v in found)


op.register("rows", backend="pallas", refuse=not_here, batched=_batched)(_rows)


def _pulled(score, moving, by_value, A, operands, V) -> Callable[..., list[Array]] | None:
    """The transpose of the tangent by the kernel of cotangents, where it serves."""
    if not_here(A, operands, V, score=score) is not None:
        return None
    _, Q, K, (bias, _) = operands
    by_query, by_key, by_bias = (*moving, False)[:3]

    def run(A, operands, V, y, logs, w, u):
        q, k, v, own = plain(A, operands, V)
        less = jnp.sum(w * y.astype(w.dtype), axis=-1) - u
        log, less = (x.reshape(A.shape[0], -1).astype(jnp.float32) for x in (logs, less))
        dq, dk, dv, db = csr_attention_vjp(
            A.indptr,
            A.indices,
            q,
            k,
            v,
            own,
            log,
            w.reshape(*q.shape[:2], -1).astype(jnp.float32),
            less,
            scale=score.scale,
            scores=by_query or by_key,
            values=by_value,
            biases=by_bias,
        )
        if by_bias and bias is not None and db is not None:
            db = db.sum(axis=1) if bias.ndim == 1 else db.reshape(bias.shape)
        found: Any = (by_query, dq, Q), (by_key, dk, K), (by_bias, db, bias), (by_value, dv, V)
        return [x.reshape(like.shape) for on, x, like in found if on]

    return run


KERNELS["pulled"] = _pulled
