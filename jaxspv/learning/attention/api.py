"""`attention` over the entries of each row: scores, their softmax and the weighted sum in one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..._core.derivatives import is_inexact
from ..._core.indices import with_pattern
from ..._core.platforms import Backend
from ...algebra.functions import check_function
from ...ops.products.common.elementwise import trace
from ...ops.products.sddmm.api import bare, check_ends
from ...ops.write_rule.call import matrix
from ...shapes import ArrayLike, Matrix, Num
from .xla import Dot, Score, op


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
    x = jnp.asarray(x)
    if not is_inexact(x):
        raise TypeError(f"`{name}` must be of floats; got {x.dtype}.")
    return x


def _by_slot(name: str, x: Any, nse: int) -> Array:
    x = jnp.asarray(x)
    if x.shape[:1] != (nse,):
        raise ValueError(f"`{name}` must have shape ({nse}, ...), one a slot; got {x.shape}.")
    return x
