"""`attention` over the entries of each row: scores, their softmax and the weighted sum in one.

Pass 1 over chunks of entries finds the largest score of each row, pass 2 adds the weights and the
weighted rows of V. What stays is one number a row and head, the logarithm of the sum of the
exponentials, from which derivatives compute every weight anew.

Source: Dao, Fu, Ermon, Rudra, Ré, "FlashAttention", NeurIPS 2022, for the recomputation.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core.derivatives import dense_tangent, is_inexact, is_zero
from .._core.eager.arrays import array_of
from .._core.indices import with_pattern
from .._core.operation import Operation, typed
from .._core.platforms import Backend
from .._core.reductions import add_in_double, rounded, zeros_in_double
from ..algebra.functions import check_function
from ..ops.aggregate import wide
from ..ops.products.common.elementwise import Elementwise, trace
from ..ops.products.sddmm.api import bare, check_ends, live_tangents, register_chunks
from ..ops.products.sddmm.by_entry import ByEntry, chunk_for
from ..ops.reduce import broadcast_rows
from ..ops.write_rule.call import matrix
from ..ops.write_rule.entries import take
from ..shapes import ArrayLike, Matrix, Num


def attention(
    A: Matrix,
    Q: Num[ArrayLike, "m *heads k"],
    K: Num[ArrayLike, "n *heads k"],
    V: Num[ArrayLike, "n *heads v"],
    bias: Num[ArrayLike, " nse *heads"] | None = None,
    *,
    scale: float | None = None,
    score: Callable[..., Any] | None = None,
    edges: Any = None,
    return_logs: bool = False,
    backend: Backend | None = None,
) -> Any:
    """`Y_i = sum_j softmax_j(scale <Q_i, K_j> + bias_ij) V_j` over the stored entries of row i.

    Scaled dot-product attention in which vertex i looks at its neighbours; with `score` that of any
    graph attention network. The same as `softmax` of `sddmm`, then a product with V, but nothing
    of the size of (entries, heads) is stored, in the derivative neither.

    Args:
        A: (m, n) matrix or `Graph`, of which the pattern is read: i looks at the stored j.
        Q: (m, heads, d) array: what rows ask. Without heads (m, d), and so below.
        K: (n, heads, d) array: what columns answer.
        V: (n, heads, f) array: what they give.
        bias: (nse,) or (nse, heads) array in slot order, added to the scores; -inf hides an entry.
            On a GPU scores are finite to 2.3e38: below, `finfo.min` too, they hide as -inf does.
        scale: of the dot products; None: 1 / sqrt(d).
        score: `score(q, k)` or, with `edges`, `score(q, k, e)` in place of the dot product: a
            JAX-traceable function from what lies at the ends of ONE entry, `Q[i]`, `K[j]` and
            `edges` at its slot, to its (heads,) scores (without heads one number); what it
            captures may be differentiated too. Q and K may have any axes then. GATv1:
            `lambda q, k: leaky_relu(q + k)`; GATv2: `lambda q, k: sum(a * leaky_relu(q + k), -1)`.
            On GPUs it is part of the kernel where it is float32, acts on (heads, d) or (heads,)
            arrays element by element and adds over d (`sum`, `einsum`); products with matrices
            belong before the call. `explain` names what is in the way.
        edges: (nse, ...) array for `score`.
        return_logs: also give the (m, heads) logarithm of the sum of the exponentials of the
            scores: with it weights are `exp(score - log)`, and attention over parts of the columns
            is joined to that over all of them.
        backend: "pallas", "cpu", "xla", or None for the fastest that accepts the call.

    Returns:
        (m, heads, f) array of the dtype of V; rows without entries (or with -inf alone) get 0.
        With `return_logs` a pair; the logarithms are float32 (float64 of float64), -inf there.
        float16 and bfloat16 are multiplied and added in float32.

    Raises:
        TypeError: A is no matrix, an operand is not of floats.
        ValueError: shapes do not match; says which.
        NotImplementedError: the form asked for cannot run; says why.

    Differentiable in both modes, and in every order, in Q, K, V, bias, edges and what `score`
    captures. Derivatives recompute the weights from the logarithms; those of second order are of
    the unfused composition and store (entries, heads, d).

    Cost: O(nse heads (d + f)) time, two passes over the entries; memory O(size of the operands
    + chunk).

    Source: Veličković et al., "Graph attention networks", ICLR 2018; Brody, Alon, Yahav, "How
    attentive are graph attention networks?", ICLR 2022; Milakov, Gimelshein, "Online normalizer
    calculation for softmax", 2018.

    >>> import jax.numpy as jnp, jaxspv as jsp
    >>> A = jsp.from_edges([0, 0, 1], [0, 1, 1], shape=(3, 2))
    >>> attention(A, jnp.zeros((3, 4)), jnp.zeros((2, 4)), jnp.array([[1.0], [3.0]])).tolist()
    [[2.0], [3.0], [0.0]]
    """
    M = with_pattern(matrix("A", A))
    V, nse = _floats("V", V), M.nse
    Q, K = _floats("Q", Q), _floats("K", K)
    if V.ndim < 2 or V.shape[0] != M.shape[1]:
        raise ValueError(f"`V` must have shape ({M.shape[1]}, ..., f); got {V.shape}.")
    heads = V.shape[1:-1]
    bias = None if bias is None else _by_slot("bias", bias, nse)
    if bias is not None and bias.shape[1:] not in ((), heads):
        raise ValueError(f"`bias` must have shape ({nse},) or {(nse, *heads)}; got {bias.shape}.")
    if score is None:
        if edges is not None:
            raise ValueError("`edges` are for `score`, which is not given; see `bias`.")
        if check_ends(M, Q, K, "QK") != heads:
            raise ValueError(f"`Q` must have the heads of `V`, {heads}; got shape {Q.shape}.")
        how, captured = Dot(_number(scale, Q.shape[-1])), ()
    else:
        for name, ends, extent in (("Q", Q, M.shape[0]), ("K", K, M.shape[1])):
            if ends.ndim < 1 or ends.shape[0] != extent:
                raise ValueError(f"`{name}` must have shape ({extent}, ...); got {ends.shape}.")
        edges = None if edges is None else _by_slot("edges", edges, nse)
        how, captured = _traced(score, Q, K, edges, heads, 1.0 if scale is None else float(scale))
    y, logs = op(bare(M), (captured, Q, K, (bias, edges)), V, backend=backend, score=how)
    return (y, logs) if return_logs else y


def _traced(score, Q, K, edges, heads, scale) -> tuple[Score, tuple[Any, ...]]:
    """The score as operations on one entry, and the arrays that it captures."""
    ends = 2 if edges is None else 3
    check_function("score", score, ends, "(q, k)" if edges is None else "(q, k, edges)")
    one = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in (Q, K)]
    if edges is not None:
        one.append(jax.ShapeDtypeStruct(edges.shape[1:], edges.dtype))
    fn, captured = trace(lambda *ends: jnp.asarray(score(*ends)), *one)
    if fn.result.shape != heads or not is_inexact(fn.result):
        raise ValueError(
            f"`score` must give floats of the heads of `V`, {heads}, for one entry; got "
            f"{fn.result.dtype} of shape {fn.result.shape}."
        )
    return Score(fn, scale), captured


def _number(scale: Any, d: int) -> float:
    if scale is None:
        return 1 / math.sqrt(max(d, 1))
    if not isinstance(scale, (int, float, np.number)):
        raise TypeError(f"`scale` must be a Python number (else multiply Q); got {scale!r}.")
    return float(scale)


def _floats(name: str, x: Any) -> Array:
    x = array_of(name, x)
    if not is_inexact(x):
        raise TypeError(f"`{name}` must be of floats; got {x.dtype}.")
    return x


def _by_slot(name: str, x: Any, nse: int) -> Array:
    x = array_of(name, x)
    if x.shape[:1] != (nse,):
        raise ValueError(f"`{name}` must have shape ({nse}, ...), one a slot; got {x.shape}.")
    return x


# ---- The forms and derivatives ----


@dataclasses.dataclass(frozen=True)
class Dot:
    """The score `scale <q, k> + bias` of each head."""

    scale: float

    def __call__(self, _: Any, q: Array, k: Array, own: Any) -> Array:
        return _biased(jnp.sum(wide(q) * wide(k), axis=-1) * self.scale, own[0])


@dataclasses.dataclass(frozen=True)
class Score:
    """The score of a user's function, times `scale`, plus the bias."""

    fn: Elementwise
    scale: float

    def __call__(self, captured: Any, q: Array, k: Array, own: Any) -> Array:
        bias, edges = own
        return _biased(wide(self.fn(captured, q, k, edges)) * self.scale, bias)


def _biased(s: Array, bias: Array | None) -> Array:
    return s if bias is None else s + jnp.broadcast_to(wide(bias), s.shape)


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
        s, most = scores(row, col, own), take(shift, row)
        level = jnp.where(s == most, 0, s - most)  # a fused multiply-subtract leaves what s rounds
        e = jnp.where(broadcast_rows(row < m, level), jnp.exp(level), 0)
        terms = e[..., None] * take(V, col).astype(dtype)
        return (add_in_double(sums[0], row, e), add_in_double(sums[1], row, terms)), None

    zeros = zeros_in_double(m, *heads), zeros_in_double(m, *V.shape[1:])
    total, y = (rounded(x, dtype) for x in ends.over(joined, zeros, own)[0])
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
op.gpu_forms_in(f"{__name__}_gpu")
register_chunks(op, "two_passes", _attended)


def _transposed(cotangents, A, operands, V, result, parts, **how):
    found = pulled(A, operands, V, result, tuple(cotangents), **how)
    found = [c.reshape(p.shape).astype(p.dtype) for c, p in zip(found, parts, strict=True)]
    return None, None, None, None, found


pushed = Operation("tangent of attention", "definition", transpose=_transposed, internal=True)
pulled = Operation("cotangent of attention", "definition", internal=True)
pulled.gpu_forms_in(f"{__name__}_gpu")
register_chunks(pushed, "chunks", _pushed)
register_chunks(pulled, "chunks", _pulled)
