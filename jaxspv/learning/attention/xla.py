"""Attention in two passes over chunks of entries, and the derivative that recomputes them.

Pass 1 finds the largest score of each row, pass 2 adds the weights and the weighted rows of V. The
scores of a chunk are all that is in memory of them; what stays is one number a row and head, the
logarithm of the sum of the exponentials, from which derivatives compute every weight anew.

Source: Dao, Fu, Ermon, Rudra, Ré, "FlashAttention", NeurIPS 2022, for the recomputation.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..._core.derivatives import dense_tangent, is_zero
from ..._core.operation import Operation, typed
from ...ops.aggregate import wide
from ...ops.products.common.elementwise import Elementwise
from ...ops.products.sddmm.api import live_tangents, register_chunks
from ...ops.products.sddmm.by_entry import ByEntry, chunk_for
from ...ops.reduce import broadcast_rows
from ...ops.write_rule.entries import take


@dataclasses.dataclass(frozen=True)
class Dot:
    """The score `scale <q, k> + bias` of each head."""

    scale: float

    def __call__(self, _: Any, q: Array, k: Array, own: Any) -> Array:
        s = jnp.sum(wide(q) * wide(k), axis=-1) * self.scale
        return s if own[0] is None else s + _over_heads(own[0], s)


@dataclasses.dataclass(frozen=True)
class Score:
    """The score of a user's function, times `scale`, plus the bias."""

    fn: Elementwise
    scale: float

    def __call__(self, captured: Any, q: Array, k: Array, own: Any) -> Array:
        bias, edges = own
        s = wide(self.fn(captured, q, k, edges)) * self.scale
        return s if bias is None else s + _over_heads(bias, s)


def _over_heads(bias: Array, s: Array) -> Array:
    return wide(bias) if bias.ndim == s.ndim else jnp.broadcast_to(wide(bias), s.shape)


def _attended(backend, A, operands, V, *, score) -> tuple[Array, Array]:
    """(m, heads, f) weighted rows of V, and the (m, heads) logarithm of the sum of exponentials."""
    ends, leaves = _ends(backend, A, operands, V, score)
    m, own = A.shape[0], ends.entries(leaves)

    def scores(row, col, own):
        return ends.at(ends.local(leaves, row, col, own)).astype(dtype)  # under x64 a bias is wider

    def largest(peak, row, col, own):
        return peak.at[row].max(scores(row, col, own), mode="drop"), None

    dtype = jnp.result_type(jnp.float32, V.dtype)
    heads = V.shape[1:-1]
    peak = ends.over(largest, jnp.full((m, *heads), -jnp.inf, dtype), own)[0]
    shift = jnp.where(jnp.isfinite(peak), peak, 0)

    def joined(sums, row, col, own):
        level = scores(row, col, own) - take(shift, row)
        e = jnp.where(broadcast_rows(row < m, level), jnp.exp(level), 0)
        terms = e[..., None] * take(V, col).astype(dtype)
        return (sums[0].at[row].add(e, mode="drop"), sums[1].at[row].add(terms, mode="drop")), None

    zeros = jnp.zeros((m, *heads), dtype), jnp.zeros((m, *V.shape[1:]), dtype)
    total, y = ends.over(joined, zeros, own)[0]
    empty = total == 0
    total = jnp.where(empty, 1, total)
    return (y / total[..., None]).astype(V.dtype), jnp.where(
        empty, -jnp.inf, jnp.log(total) + shift
    )


def _ends(backend, A, operands, V, score) -> tuple[ByEntry, list[Any]]:
    chunk = chunk_for(backend, operands[1:3], V)
    return ByEntry.of(score, A, operands, chunk), jax.tree.leaves(operands)


def _weights(s: Array, row: Array, level: Array) -> Array:
    """The weight of each entry from its score and the (m, heads) `level` of its row."""
    return jnp.where(
        broadcast_rows(row < level.shape[0], s),
        jnp.exp(s.astype(level.dtype) - take(level, row)),
        0,
    )


def _tangent(primals, tangents, result, *, score):
    """`dy_i = sum_j p_ij (ds_ij v_j + dv_j) - t_i y_i` with `t_i = sum_j p_ij ds_ij`, that of
    the logarithm; its transpose recomputes p from the scores and the logarithm."""
    A, operands, V = primals
    dots = live_tangents(tangents[1])
    perturbed = tuple(t is not None for t in dots)
    by_value = not is_zero(tangents[2])
    parts = [t for t in dots if t is not None]
    parts += [dense_tangent(tangents[2])] if by_value else []
    if not parts:
        return jax.tree.map(jnp.zeros_like, result)

    return tuple(
        pushed(A, operands, V, tuple(result), parts, score=score, live=(perturbed, by_value))
    )


def _spread(parts, live):
    """The tangents of the operands' leaves, None for constant ones, and that of V."""
    perturbed, by_value = live
    given = iter(parts)
    found = [next(given) if on else None for on in perturbed]
    return found, next(given) if by_value else None


def _level(logs: Array) -> Array:
    """What to subtract from the scores of a row: infinity for rows without any weight."""
    return jnp.where(logs > -jnp.inf, logs, jnp.inf)


def _pushed(backend, A, operands, V, result, parts, *, score, live):
    y, logs = result
    ends, leaves = _ends(backend, A, operands, V, score)
    dots, V_dot = _spread(parts, live)
    level = _level(logs)
    by_score = any(t is not None for t in dots)

    def step(sums, row, col, own, own_dots):
        local = ends.local(leaves, row, col, own)
        terms: Any = 0
        if by_score:
            s, ds = ends.moved(local, ends.local(dots, row, col, own_dots, 0))
            p = _weights(s, row, level)
            moved = jnp.where(p > 0, p * ds.astype(p.dtype), 0)
            sums = sums[0].at[row].add(moved, mode="drop"), sums[1]
            terms += moved[..., None] * take(V, col).astype(moved.dtype)
        else:
            p = _weights(ends.at(local), row, level)
        if V_dot is not None:
            terms += p[..., None] * take(V_dot, col).astype(p.dtype)
        return (sums[0], sums[1].at[row].add(terms, mode="drop")), None

    zeros = jnp.zeros_like(logs), jnp.zeros(y.shape, logs.dtype)
    own = ends.entries(leaves), ends.entries(dots)
    t, moved = ends.over(step, zeros, *own)[0]
    return [(moved - t[..., None] * y.astype(t.dtype)).astype(y.dtype), t]


def _pulled(backend, A, operands, V, result, cotangents, *, score, live):
    (y, logs), (w, u), (perturbed, by_value) = result, cotangents, live
    ends, leaves = _ends(backend, A, operands, V, score)
    level, w = _level(logs), w.astype(logs.dtype)
    less = jnp.sum(w * y.astype(w.dtype), axis=-1) - u
    by_score = any(perturbed)

    def step(sums, row, col, own):
        local = ends.local(leaves, row, col, own)
        sums, V_sum = sums
        w_here = take(w, row)

        def cotangent_of(s):
            dp = jnp.sum(w_here * take(V, col).astype(w.dtype), axis=-1)
            p = _weights(s, row, level)
            return jnp.where(p > 0, p * (dp - take(less, row)), 0)

        outs: list[Any] = []
        if by_score:
            sums, outs = ends.pull(local, perturbed, sums, row, col, cotangent_of)
        if by_value:
            p = _weights(ends.at(local), row, level)
            V_sum = V_sum.at[col].add(p[..., None] * w_here, mode="drop")
        return (sums, V_sum), outs

    zeros = jnp.zeros(V.shape, w.dtype) if by_value else None
    start = ends.zeros(leaves, perturbed, w.dtype), zeros
    (sums, V_sum), own = ends.over(step, start, ends.entries(leaves))
    found = ends.joined(sums, own) if by_score else []
    return [s for s in found if s is not None] + ([V_sum] if by_value else [])


def _types(A, operands, V, *, score):
    heads, dtype = V.shape[1:-1], jnp.result_type(jnp.float32, V.dtype)
    return typed(V.dtype, A.shape[0], *V.shape[1:]), typed(dtype, A.shape[0], *heads)


op = Operation("attention", _tangent, types=_types)
op.gpu_forms_in(f"{__package__}.gpu")
register_chunks(op, "two_passes", _attended)


def _transposed(cotangents, A, operands, V, result, parts, **how):
    found = pulled(A, operands, V, result, tuple(cotangents), **how)
    found = [c.reshape(p.shape).astype(p.dtype) for c, p in zip(found, parts, strict=True)]
    return None, None, None, None, found


pushed = Operation("tangent of attention", "definition", transpose=_transposed, internal=True)
pulled = Operation("cotangent of attention", "definition", internal=True)
pulled.gpu_forms_in(f"{__package__}.gpu")
register_chunks(pushed, "chunks", _pushed)
register_chunks(pulled, "chunks", _pulled)
