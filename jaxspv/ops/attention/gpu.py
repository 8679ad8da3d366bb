"""Attention on NVIDIA GPUs: when the kernel over a CSR serves a call, and how it is called."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from pallas_kernels.products import attention_job as kernels
from pallas_kernels.products.attention import csr_attention
from pallas_kernels.products.attention_job import MOST
from pallas_kernels.products.attention_vjp import csr_attention_vjp
from pallas_kernels.rows.merge_path import LIMIT
from pallas_kernels.simt import scalar_jaxpr

from ..._core.batching import one_by_one
from ..._core.compat import kernels_refused
from ..mxv.spmv import no_rows
from .score import Dot, Score
from .xla import KERNELS, op

_FLOATS = ("float32", "bfloat16", "float16")


def not_here(A, operands, V, *, score) -> str | None:
    """Why the kernel cannot compute these."""
    captured, Q, K, (bias, edges) = operands
    if reason := kernels_refused() or no_rows(A):
        return reason
    if isinstance(score, Score):
        if reason := _no_scalars(score, captured, Q, K, edges, V.shape[1:-1]):
            return reason
    if 0 in (A.nse, *Q.shape, *K.shape, *V.shape):
        return "there is nothing to attend to"
    if A.index_dtype != jnp.int32 or A.nse + A.shape[0] > LIMIT:
        return "kernels count rows and entries in int32"
    if max(V.shape[-1], Q.shape[-1] if isinstance(score, Dot) else 1) > MOST:
        return f"a head has more than {MOST} features"
    if max(len(Q), len(K)) * math.prod(V.shape[1:-1]) * MOST > LIMIT:
        return "kernels count the numbers of Q, K and V in int32"
    for v in (Q, K, V, *([] if bias is None else [bias])):
        if v.dtype.name not in _FLOATS:
            return f"kernels compute in float32, not {v.dtype}"
    if A.nse * math.prod(V.shape[1:-1]) > LIMIT:
        return "kernels count entries and heads in int32"
    return None


def _no_scalars(score: Score, captured, Q, K, edges, heads) -> str | None:
    """Why a score of the user's is no function of one number a head that kernels compute."""
    ends = (Q, K) if edges is None else (Q, K, edges)
    if captured:
        return "the `score` captures arrays"
    if reason := score.fn.refuses():
        return f"the `score` has `{reason}`, which is not by number: kernels take one a head"
    if any(x.shape[1:] != heads or x.dtype != jnp.float32 for x in ends):
        return "the ends of a `score` are not one float32 number a head each"
    value, tangent = _functions(score, len(ends))
    for fn, many in ((value, len(ends)), (tangent, 2 * len(ends))):
        if reason := scalar_jaxpr.refuse(fn, *["float32"] * many):
            return f"the `score`: {reason}"
    return None


def _functions(score: Score, ends: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The score of one head, and its tangent, of so many numbers."""

    def value(*numbers):
        return jnp.asarray(score.fn.at((), *numbers), jnp.float32)

    def tangent(*numbers):
        return jax.jvp(value, numbers[:ends], numbers[ends:])[1]

    return value, tangent


def _how(score: Any, edges: Array | None) -> dict[str, Any]:
    """`scale=` and `score=` of the kernels."""
    if isinstance(score, Dot):
        return {"scale": score.scale}
    ends = 2 if edges is None else 3
    value, tangent = _functions(score, ends)
    traced = (
        scalar_jaxpr.trace(value, *["float32"] * ends),
        scalar_jaxpr.trace(tangent, *["float32"] * (2 * ends)),
    )
    return {"scale": score.scale, "score": kernels.Score(*traced)}


def plain(A, operands, V) -> kernels.Operands:
    """The operands of the kernels: Q, K, V and edges with one axis of heads, bias with one or none.

    All float32, but V, and K where it has features, in 16 bits where they are.
    """
    _, Q, K, (bias, edges) = operands
    scalars = Q.shape[1:] == V.shape[1:-1]
    as_they_are = scalars or K.dtype == V.dtype

    def by_head(x, features, narrow=False):
        shape = (len(x), -1, x.shape[-1]) if features else (len(x), -1)
        return x.reshape(shape) if narrow else x.reshape(shape).astype(jnp.float32)

    q, v = by_head(Q, not scalars), by_head(V, True, as_they_are)
    k = by_head(K, not scalars, as_they_are and not scalars)
    if bias is not None:
        bias = bias.astype(jnp.float32)
        bias = bias if bias.ndim == 1 else bias.reshape(A.nse, -1)
    edges = None if edges is None else by_head(edges, False)
    return kernels.Operands(A.indptr, A.indices, q, k, v, bias, edges)


def _rows(A, operands, V, *, score) -> tuple[Array, Array]:
    """One launch: rows and entries shared evenly by warps, whose lanes have the features."""
    given = plain(A, operands, V)
    y, logs = csr_attention(given, **_how(score, given.edges))
    heads = V.shape[1:-1]
    return y.reshape(A.shape[0], *heads, V.shape[-1]).astype(V.dtype), logs.reshape(-1, *heads)


def _batched(axis_size, in_batched, A, operands, V, *, score):
    """vmap over Q, K and V alone: heads of one launch."""
    captured, Q, K, (bias, edges) = operands
    others = jax.tree.leaves((in_batched[0], in_batched[1][0], in_batched[1][3]))
    alone = isinstance(score, Score) or (bias is not None and bias.ndim > 1)
    if any(others) or alone:
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


def _pulled(score, perturbed, by_value, A, operands, V) -> Callable[..., list[Array]] | None:
    """The transpose of the tangent by the kernel of cotangents, where it serves."""
    if not_here(A, operands, V, score=score) is not None:
        return None
    _, Q, K, (bias, edges) = operands
    by_query, by_key, *rest = perturbed
    by_bias = bias is not None and rest[0]
    by_edge = edges is not None and rest[-1]

    def run(A, operands, V, y, logs, w, u):
        given = plain(A, operands, V)
        less = jnp.sum(w * y.astype(w.dtype), axis=-1) - u
        log, less = (x.reshape(A.shape[0], -1).astype(jnp.float32) for x in (logs, less))
        dq, dk, dv, db, de = csr_attention_vjp(
            given,
            log,
            w.reshape(*log.shape, -1).astype(jnp.float32),
            less,
            **_how(score, given.edges),
            scores=by_query or by_key or by_edge,
            values=by_value,
            biases=by_bias,
        )
        if by_bias and bias is not None and db is not None:
            db = db.sum(axis=1) if bias.ndim == 1 else db.reshape(bias.shape)
        found: Any = (by_query, dq, Q), (by_key, dk, K), (by_bias, db, bias), (by_edge, de, edges)
        found = (*found, (by_value, dv, V))
        return [x.reshape(like.shape) for on, x, like in found if on]

    return run


KERNELS["pulled"] = _pulled
