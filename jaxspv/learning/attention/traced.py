"""A score of the user's as the kernels take it: what it captures prepared, the rest by entry.

What depends on captured arrays alone (a broadcast over heads, `a[0] / 2`) is computed once, before
the launch, and differentiated by JAX. The rest is traced on what one entry has: rows of features
and numbers a head, among them these prepared arrays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from pallas_kernels.products.attention.job import MOST
from pallas_kernels.products.attention.job import Score as KernelScore

from ...ops.products.common.elementwise import ALONE, inner_of
from .xla import Score

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
