"""Attention in two passes over chunks of entries, and the derivative that recomputes them.

Pass 1 finds the largest score of each row, pass 2 adds the weights and the weighted rows of V. The
scores of a chunk are all that is in memory of them; what stays is one number a row and head, the
logarithm of the sum of the exponentials, from which derivatives compute every weight anew.

Source: Dao, Fu, Ermon, Rudra, Ré, "FlashAttention", NeurIPS 2022, for the recomputation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..._core.batching import over_trailing
from ..._core.derivatives.tangents import dense_tangent, is_inexact, is_zero
from ..._core.dispatch import Op
from ...monoids import logaddexp, plus
from ..aggregate import softmax_of_lines, wide
from ..frame.entries import take
from ..reduce import beside
from ..sddmm.by_entry import ByEntry, chunk_for
from ..sddmm.linear import linear_map
from ..sddmm.xla import by_platform, live_tangents, register_chunks

KERNELS: dict[str, Callable[..., Any]] = {}  # "pulled": filled by `gpu`


def _attended(backend, A, operands, V, *, score) -> tuple[Array, Array]:
    """(m, heads, f) weighted rows of V, and the (m, heads) logarithm of the sum of exponentials."""
    ends, leaves = _ends(backend, A, operands, V, score)
    m, own = A.shape[0], ends.entries(leaves)

    def scores(row, col, own):
        return wide(ends.at(ends.local(leaves, row, col, own)))

    def largest(peak, row, col, own):
        return peak.at[row].max(scores(row, col, own), mode="drop"), None

    dtype = jnp.result_type(jnp.float32, V.dtype)
    heads = V.shape[1:-1]
    peak = ends.over(largest, jnp.full((m, *heads), -jnp.inf, dtype), own)[0]
    shift = jnp.where(jnp.isfinite(peak), peak, 0)

    def joined(sums, row, col, own):
        level = scores(row, col, own) - take(shift, row)
        e = jnp.where(beside(row < m, level), jnp.exp(level), 0)
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
    chunk = max(A.nse, 1) if backend is None else chunk_for(backend, operands[1:3], V)
    return ByEntry.of(score, A, operands, chunk), jax.tree.leaves(operands)


def _weights(s: Array, row: Array, level: Array) -> Array:
    """The weight of each entry from its score and the (m, heads) `level` of its row."""
    return jnp.where(beside(row < level.shape[0], s), jnp.exp(wide(s) - take(level, row)), 0)


def _tangent(primals, tangents, result, *, score):
    """`dy_i = sum_j p_ij (ds_ij v_j + dv_j) - t_i y_i` with `t_i = sum_j p_ij ds_ij`, that of
    the logarithm; its transpose recomputes p from the scores and the logarithm."""
    A, operands, V = primals
    leaves = jax.tree.leaves(operands)
    dots = live_tangents(tangents[1])
    perturbed = [t is not None for t in dots]
    by_value = not is_zero(tangents[2])
    parts = [t for t in dots if t is not None]
    parts += [dense_tangent(tangents[2])] if by_value else []
    if not parts:
        return jax.tree.map(jnp.zeros_like, result)

    def spread(parts):
        given = iter(parts)
        found = [next(given) if on else None for on in perturbed]
        return found, next(given) if by_value else None

    given = (A, operands, V, *result)

    def forward(parts):
        run = functools.partial(_pushed, score, spread)
        return by_platform("tangent of attention", run, *given, list(parts))

    def transposed(cotangents):
        run = functools.partial(_pulled, score, perturbed, by_value)
        kernel = KERNELS["pulled"](score, perturbed, by_value, A, operands, V)
        name = "cotangent of attention"
        return by_platform(name, run, *given, *cotangents, kernel=kernel)

    def definition(parts):
        dots, V_dot = spread(parts)
        return _by_definition(A, operands, V, score, dots, V_dot)

    floats = [v for v in (*leaves, V) if is_inexact(v)]
    return tuple(linear_map(definition, forward, transposed, parts, result, floats))


def _level(logs: Array) -> Array:
    """What to take from the scores of a row: infinite for those that have no weight at all."""
    return jnp.where(logs > -jnp.inf, logs, jnp.inf)


def _pushed(score, spread, backend, A, operands, V, y, logs, parts):
    ends, leaves = _ends(backend, A, operands, V, score)
    dots, V_dot = spread(parts)
    level = _level(logs)
    by_score = any(t is not None for t in dots)

    def step(sums, row, col, own, own_dots):
        local = ends.local(leaves, row, col, own)
        terms: Any = 0
        if by_score:
            s, ds = ends.moved(local, ends.local(dots, row, col, own_dots, 0))
            p = _weights(s, row, level)
            moved = jnp.where(p > 0, p * wide(ds), 0)
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


def _pulled(score, perturbed, by_value, backend, A, operands, V, y, logs, w, u):
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


def composed(score: Callable[..., Array], A: Any, operands: Any, V: Array) -> tuple[Array, Array]:
    """Attention unfused, in operations that JAX differentiates: the definition."""
    ends, leaves = _ends(None, A, operands, V, score)
    m, own = A.shape[0], ends.entries(leaves)
    s = wide(ends.at(ends.local(leaves, ends.row, ends.col, own)))
    p = softmax_of_lines(s, ends.row, m, A.row_sorted)

    def total(x):
        return over_trailing(lambda v: plus.segment_reduce(v, ends.row, m), x)

    terms = jnp.where(beside(ends.row < m, p), p, 0)[..., None] * take(V, ends.col)
    logs = over_trailing(lambda v: logaddexp.segment_reduce(v, ends.row, m), s)
    return total(terms).astype(V.dtype), logs


def _by_definition(A, operands, V, score, dots, V_dot):
    leaves, tree = jax.tree.flatten(operands)
    perturbed = [t is not None for t in dots]

    def f(parts, V):
        given = iter(parts)
        full = [next(given) if on else v for v, on in zip(leaves, perturbed, strict=True)]
        return composed(score, A, jax.tree.unflatten(tree, full), V)

    parts = [v for v, on in zip(leaves, perturbed, strict=True) if on]
    V_dot = jnp.zeros_like(V) if V_dot is None else V_dot
    return jax.jvp(f, (parts, V), ([t for t in dots if t is not None], V_dot))[1]


op = Op("attention", _tangent)
register_chunks(op, "two_passes", _attended)
