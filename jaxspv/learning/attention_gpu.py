"""Attention on NVIDIA GPUs: when the kernel over a CSR serves a call, and how it is called."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from pallas_kernels.layouts.ragged import LIMIT
from pallas_kernels.products.attention import job as kernels
from pallas_kernels.products.attention.forward import csr_attention
from pallas_kernels.products.attention.job import MOST
from pallas_kernels.products.attention.job import Score as KernelScore
from pallas_kernels.products.attention.vjp import Wanted, csr_attention_vjp

from .._core.loops import lanes_second, one_by_one
from ..ops.products.common.elementwise import ALONE, inner_of
from ..ops.products.spmv.api import no_rows
from .attention import Dot, Score, op, pulled

_INLINED = ("jit", "pjit", "closed_call", "remat", "remat2", "checkpoint")
FEW = 4  # prepared arrays: each takes registers, and in derivatives as many again


@dataclasses.dataclass(frozen=True)
class Parts:
    """A score in two parts.

    Attributes:
        first: from what it captures to the prepared arrays.
        second: from these and q, k and, if there are, edges of an entry to its scores.
        heads: axes of heads.
        shapes: of q, k, edges and the prepared arrays, for one entry.
    """

    first: ClosedJaxpr
    second: ClosedJaxpr
    heads: tuple[int, ...]
    shapes: tuple[Any, ...]

    @classmethod
    def of(cls, score: Score, captured: Sequence[Any], ends: Sequence[Any], heads: Any) -> Parts:
        """ends: arrays of q, k and, if there are, edges, with the axis of vertices or entries."""
        jaxpr = score.fn.jaxpr
        given = [jax.ShapeDtypeStruct(c.shape, c.dtype) for c in captured]
        given += [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in ends]
        count = len(captured)
        closed = jax.make_jaxpr(lambda *a: _inlined(jaxpr, a[:count], a[count:]))(*given)
        first, second, between = _split(closed, count)
        return cls(first, second, tuple(heads), (*given[count:], *(v.aval for v in between)))

    @property
    def between(self) -> int:
        """How many prepared arrays there are."""
        return len(self.first.jaxpr.outvars)

    @property
    def features(self) -> int:
        """Of an entry's rows; 0 if it has none."""
        inside = len(self.heads)
        rows = [x.shape[-1] for x in self.shapes if x.ndim == inside + 1]
        return max(rows, default=0)

    @property
    def rows(self) -> tuple[bool, ...]:
        """Which of q, k, edges and the prepared arrays are rows of features."""
        row = (*self.heads, self.features)
        return tuple(x.shape == row for x in self.shapes)

    def prepared(self, captured: Sequence[Any]) -> list[Array]:
        """The prepared arrays, of the shapes they have for an entry."""
        return jaxpr_as_fun(self.first)(*captured)

    def refuses(self) -> str | None:
        """Why the kernels cannot compute it, or None."""
        d = self.features
        if self.between > FEW:
            return f"the `score` takes {self.between} arrays that it captures, kernels {FEW}"
        for x in self.shapes:
            shapes = self.heads, (*self.heads, 1), (*self.heads, d)
            if x.shape not in shapes or x.dtype != jnp.float32:
                kind = f"{x.dtype}{list(x.shape)}"
                return (
                    f"the `score` takes {kind} of an entry: kernels take float32, numbers or rows "
                    "of features for each head, rows of one length"
                )
        if d > MOST:
            return f"the `score` has more than {MOST} features of a head"
        score = self.kernel_score()
        reason = score.value.refuses() or score.gradients.refuses()
        return reason and f"the `score`: {reason}"

    def kernel_score(self) -> KernelScore:
        """The second part, with its derivatives."""
        fn, ends = jaxpr_as_fun(self.second), len(self.shapes) - self.between

        def value(*arrays):
            (s,) = fn(*arrays[ends:], *arrays[:ends])
            return jnp.asarray(s, jnp.float32)

        return KernelScore.of(value, self.heads, self.features, [x.shape for x in self.shapes])


def _inlined(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> Any:
    """A jaxpr's results with the operations of nested functions in place of their calls."""
    known = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))

    def read(v):
        return v.val if isinstance(v, Literal) else known[v]

    for eqn in jaxpr.eqns:
        if eqn.primitive.name in _INLINED:
            results = _inlined(*inner_of(eqn), [read(v) for v in eqn.invars])
        elif eqn.primitive.name in ALONE:
            shape = eqn.outvars[0].aval.shape  # axes of 1 are spread here, not by the kernel
            operands = (
                jnp.broadcast_to(read(v), shape) if v.aval.ndim else read(v) for v in eqn.invars
            )
            results = [eqn.primitive.bind(*operands, **eqn.params)]
        else:
            taken = list(dict.fromkeys(v for v in eqn.invars if not isinstance(v, Literal)))
            parts = {"constvars": [], "invars": taken, "outvars": eqn.outvars, "eqns": [eqn]}
            results = jaxpr_as_fun(ClosedJaxpr(jaxpr.replace(**parts), ()))(*map(read, taken))
        known.update(zip(eqn.outvars, results, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _split(closed: ClosedJaxpr, count: int) -> tuple[ClosedJaxpr, ClosedJaxpr, list[Any]]:
    """Splits equations: those of the first `count` arguments only, the rest, the values between."""
    jaxpr = closed.jaxpr
    known = {*jaxpr.constvars, *jaxpr.invars[:count]}
    before, after, between = [], [], []

    def pass_on(atoms):
        between.extend(v for v in atoms if not isinstance(v, Literal) and v in known - {*between})

    for eqn in jaxpr.eqns:
        if all(isinstance(v, Literal) or v in known for v in eqn.invars):
            before.append(eqn)
            known.update(eqn.outvars)
        else:
            pass_on(dict.fromkeys(v for v in eqn.invars if not isinstance(v, Literal)))
            after.append(eqn)
    pass_on(jaxpr.outvars)
    first = jaxpr.replace(invars=jaxpr.invars[:count], outvars=between, eqns=before)
    invars = [*between, *jaxpr.invars[count:]]
    second = jaxpr.replace(constvars=[], invars=invars, eqns=after)
    return ClosedJaxpr(first, closed.consts), ClosedJaxpr(second, ()), between


_FLOATS = ("float32", "bfloat16", "float16")


def not_here(A, operands, V, *_, score, **__) -> str | None:
    """Why the kernel cannot compute these."""
    _, Q, K, (bias, edges) = operands
    if reason := no_rows(A):
        return reason
    if isinstance(score, Score):
        if reason := _parts(score, operands, V).refuses():
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
    own = 1 if edges is None or edges.ndim < V.ndim else MOST
    if A.nse * math.prod(V.shape[1:-1]) * own > LIMIT:
        return "kernels count what entries have of their own in int32"
    return None


def _parts(score: Score, operands, V) -> Parts:
    captured, Q, K, (_, edges) = operands
    ends = (Q, K) if edges is None else (Q, K, edges)
    return Parts.of(score, captured, ends, V.shape[1:-1])


def _how(score: Any, operands, V) -> dict[str, Any]:
    """`scale=` and `score=` of the kernels."""
    if isinstance(score, Dot):
        return {"scale": score.scale}
    return {"scale": score.scale, "score": _parts(score, operands, V).kernel_score()}


def plain(A, operands, V, score) -> kernels.Operands:
    """The operands of the kernels: Q, K, V and edges with one axis of heads, bias with one or none.

    All float32, but V, and of dot products Q and K, in 16 bits where they are.
    """
    captured, Q, K, (bias, edges) = operands
    heads = V.shape[1:-1]
    as_they_are = isinstance(score, Score) or K.dtype == V.dtype

    def by_head(x, narrow=False):
        row = d and x.shape[1:] == (*heads, d)
        x = x.reshape(len(x), math.prod(heads), *[d] * bool(row))
        return x if narrow else x.astype(jnp.float32)

    found: list[Array] = []
    d = Q.shape[-1]
    if isinstance(score, Score):
        parts = _parts(score, operands, V)
        d, found = parts.features, parts.prepared(captured)
    params = tuple(by_head(p[None])[0] for p in found)
    narrow = as_they_are and isinstance(score, Dot)
    q, k = by_head(Q, narrow and Q.dtype == K.dtype), by_head(K, narrow)
    v = V.reshape(len(V), -1, V.shape[-1])
    v = v if as_they_are else v.astype(jnp.float32)
    if bias is not None:
        bias = bias.astype(jnp.float32)
        bias = bias if bias.ndim == 1 else bias.reshape(A.nse, -1)
    edges = None if edges is None else by_head(edges)
    return kernels.Operands(A.indptr, A.indices, q, k, v, bias, edges, params)


def _rows(A, operands, V, *, score) -> tuple[Array, Array]:
    """One launch: rows and entries shared evenly by warps, whose lanes have the features."""
    y, logs = csr_attention(plain(A, operands, V, score), thin=True, **_how(score, operands, V))
    heads = V.shape[1:-1]
    return y.reshape(A.shape[0], *heads, V.shape[-1]).astype(V.dtype), logs.reshape(-1, *heads)


def _batched(axis_size, in_batched, A, operands, V, *, score):
    """vmap over Q, K and V alone: heads of one launch."""
    captured, Q, K, (bias, edges) = operands
    others = jax.tree.leaves((in_batched[0], in_batched[1][0], in_batched[1][3]))
    alone = isinstance(score, Score) or (bias is not None and bias.ndim > 1)
    if any(others) or alone:
        return one_by_one(_rows, axis_size, in_batched, A, operands, V, score=score)

    marks = (*in_batched[1][1:3], in_batched[2])
    Q, K, V = lanes_second(axis_size, (Q, K, V), marks)
    found = op(A, (captured, Q, K, (bias, edges)), V, score=score)
    return tuple(jnp.moveaxis(v, 1, 0) for v in found)


op.register("rows", backend="pallas", refuse=not_here, batched=_batched)(_rows)


@pulled.register("rows", backend="pallas", refuse=not_here, batched="map")
def _pulled(A, operands, V, result, cotangents, *, score, live) -> list[Array]:
    """The transpose of the tangent by the kernel of cotangents."""
    (y, logs), (w, u), (perturbed, by_value) = result, cotangents, live
    captured, Q, K, (bias, edges) = operands
    count = len(captured)
    by_query, by_key, *rest = perturbed[count:]
    by_bias = bias is not None and rest[0]
    by_edge = edges is not None and rest[-1]
    moving = [c for c, on in zip(captured, perturbed, strict=False) if on]

    given = plain(A, operands, V, score)
    less = jnp.sum(w * y.astype(w.dtype), axis=-1) - u
    log, less = (x.reshape(A.shape[0], -1).astype(jnp.float32) for x in (logs, less))
    dq, dk, dv, db, de, *dp = csr_attention_vjp(
        given,
        log,
        w.reshape(*log.shape, -1).astype(jnp.float32),
        less,
        **_how(score, operands, V),
        wanted=Wanted(by_query or by_key or by_edge, by_value, by_bias, bool(moving)),
    )
    if by_bias and bias is not None and db is not None:
        db = db.sum(axis=1) if bias.ndim == 1 else db.reshape(bias.shape)
    found: Any = (by_query, dq, Q), (by_key, dk, K), (by_bias, db, bias), (by_edge, de, edges)
    found = (*found, (by_value, dv, V))
    ends = [x.reshape(like.shape) for on, x, like in found if on]
    return [*_by_captured(score, operands, V, perturbed[:count], dp), *ends] if moving else ends


def _by_captured(score, operands, V, perturbed, cotangents) -> list[Array]:
    """From the cotangents of the prepared arrays those of the captured ones."""
    parts, captured = _parts(score, operands, V), operands[0]

    def f(live):
        live = iter(live)
        given = [next(live) if on else c for c, on in zip(captured, perturbed, strict=True)]
        return parts.prepared(given)

    made, back = jax.vjp(f, [c for c, on in zip(captured, perturbed, strict=True) if on])
    return back([d.reshape(x.shape) for d, x in zip(cotangents, made, strict=True)])[0]
