"""A user's loop of products and element-wise updates in one launch: pull, one grid barrier a step.

    y[j] = combine over the in-edges i -> j of mul(x[i], a);  x[j] <- update(x[j], y[j], ...)

The walk over rows is that of `rows/sliced.py`. `mul`, `combine`, `update` and the functions under
the named sums are jaxprs of scalars (`simt/scalar_jaxpr.py`); the parts of `update` that depend on
scalars alone are computed once a step. Where all out-edges of a vertex have one weight, each vertex
stores mul(x, weight) once and the entries need no values, as in a hand-written PageRank.

Cost of a step: a gather and 4 bytes an entry (8 where weights differ), 16 bytes a row (20), 4 for
each operand, one grid barrier; no atomics but those that order the segments of split rows.

Measured (H200): PageRank written by a user takes 0.99 to 1.09 of `pagerank/one_gpu.py`, whose
limits are the same; with a weight an entry 1.20 (luxembourg_osm) and 1.28 (moscow-roads).
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..rows.sliced import PullRows, Sizes, operands_of, shared_words, sizes, workspace
from ..simt.device import extent
from ..simt.launch import launch
from ..simt.primitives import Simt
from ..simt.scalar_jaxpr import KINDS, ScalarSemiring, evaluate, hoist

FACTS = {"change": "f32", "changed": "i32"}  # kinds of the L1 change and the number of changes


class Steps(NamedTuple):
    """What a loop computes; `fixpoint_dense` describes the fields."""

    semiring: ScalarSemiring
    update: Any
    stop: Callable[..., Any]
    sums: tuple[Any, ...] = ()
    facts: tuple[str, ...] = tuple(FACTS)


@dataclasses.dataclass(frozen=True)
class Problem:
    """A loop with its sizes, known while it is traced."""

    rows: Sizes
    steps: Steps
    kind: str  # of x
    scaled: bool  # all out-edges of a vertex have one weight
    vectors: int
    scalars: int
    targets: int

    def kinds(self) -> list[str]:
        """Kinds of the totals: the facts, then the sums."""
        sums = [KINDS[s.out_avals[0].dtype.name] for s in self.steps.sums]
        return [FACTS[fact] for fact in self.steps.facts] + sums


def fixpoint_dense(
    x0: jax.Array,
    vectors: tuple[jax.Array, ...],
    scalars: tuple[jax.Array, ...],
    steps: Steps,
    *,
    prepared: dict[str, jax.Array],
    targets: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """(x[n], iterations int32, flag int32, status int32) of a loop of steps over all elements.

    x0 (n,), vectors (n,) each and scalars () each are float32 or int32. prepared: the in-edges by
    `prepare_pagerank`, with "values" for each entry or "scales" for each position: the weight of
    all out-edges of its vertex. steps: semiring.mul(x, a) -> term.
    update(x, y, step, *vectors, *scalars, *sums) -> x, and each of sums(x, *vectors, *scalars) are
    closed jaxprs of scalars. targets int32[2 k]: (vertex, its position) of those that are watched.
    stop(step, reached, unchanged, change, scalars) -> (leave, flag) as kernel values: reached is a
    tuple of k booleans, x[target] differs from x0; change is the L1 change of the last step, inf
    before the first; flag is returned as it is at the end. facts: of "change" and "changed", what
    stop looks at; the others are inf and False.
    """
    n = x0.shape[0]
    targets = jnp.zeros(0, jnp.int32) if targets is None else targets
    p = Problem(
        sizes(prepared, n),
        steps,
        KINDS[x0.dtype.name],
        "scales" in prepared,
        len(vectors),
        len(scalars),
        targets.shape[0],
    )
    term, kinds = steps.semiring.dtype, p.kinds()
    operands = operands_of(prepared, "scales" if p.scaled else "values")
    operands |= {"x0": x0, "targets": targets}
    operands |= {f"vector{j}": v for j, v in enumerate(vectors)}
    operands |= {f"scalar{j}": jnp.atleast_1d(v) for j, v in enumerate(scalars)}
    form = extent()
    outputs = {
        "x": (n, x0.dtype),
        **dict.fromkeys(("steps", "flag", "status"), ()),
        "values_now": (p.rows.positions, x0.dtype),
        "passed": (2 * (n + 1), term if p.scaled else x0.dtype),
        **workspace(p.rows, len(kinds), form["ctas"], term),
    }
    outputs |= {f"own{j}": (p.rows.positions, v.dtype) for j, v in enumerate(vectors)}
    out = launch(
        lambda k, m: _Loop(k, p, m).run(),
        operands,
        outputs,
        shared_words=shared_words(len(kinds)),
        name="fixpoint_dense",
    )
    return out["x"], out["steps"], out["flag"], out["status"]


class _Loop(PullRows):
    """One launch: start, steps, result."""

    def __init__(self, k: Simt, p: Problem, memory: Any):
        semiring = p.steps.semiring
        term = KINDS[semiring.dtype.name], semiring.identity
        super().__init__(k, p.rows, memory, p.kinds(), *term)
        self.p, self.steps = p, p.steps
        self.scalars = [k.load(getattr(memory, f"scalar{j}"), 0) for j in range(p.scalars)]

    def run(self):
        k, c, m = self.k, self.c, self.m
        many = len(self.steps.facts)
        ok, *totals = self.total(0, self._start())

        def leave(i, change, unchanged):
            return self.steps.stop(i, self._reached(), unchanged, change, self.scalars)

        infinity, no = k.bits(k.const(0x7F800000), "f32"), k.const(False, "i1")
        out, flag = leave(k.const(0), infinity, no)
        state = (k.const(0), k.cast(out, "i32"), k.cast(flag, "i32"), ok, *totals[many:])

        def step(i, out, flag, ok, *sums):
            ok, *totals = self.total((i + 1) & 1, self._step(i, sums))
            known = dict(zip(self.steps.facts, totals, strict=False))
            unchanged = known["changed"] == 0 if "changed" in known else no
            out, flag = leave(i + 1, known.get("change", infinity), unchanged)
            return i + 1, k.cast(out, "i32"), k.cast(flag, "i32"), ok, *totals[many:]

        steps, _, flag, ok, *_ = k.while_(
            lambda i, out, flag, ok, *sums: (out == 0) & (ok == 1), step, *state
        )

        def row(p):
            vertex = k.load(m.vertices, p, cache="nc")
            value = k.load(m.values_now, p, cache="fresh")
            k.store(m.x, vertex, value, mask=vertex < c.n)

        k.spread(c.positions, row)
        k.results(m, steps=steps, flag=flag)
        return ok

    def _reached(self):
        """Whether x differs from x0 at each target, given by its vertex and its position."""
        k, c, m = self.k, self.c, self.m
        found = []
        for j in range(self.p.targets // 2):
            vertex, position = k.load(m.targets, 2 * j), k.load(m.targets, 2 * j + 1)
            valid = k.below(vertex, c.n)
            now = k.load(m.values_now, position, mask=valid, cache="fresh")
            found.append(valid & _differs(now, k.load(m.x0, vertex, mask=valid)))
        return tuple(found)

    def _start(self):
        """Copies x0 and the vectors to the positions of the rows; returns this thread's parts of
        the sums."""
        k, c, m = self.k, self.c, self.m
        self.clear()
        for word in (c.n, 2 * c.n + 1):  # the value that padding entries gather
            nothing = self.identity if self.p.scaled else 0
            k.store(m.passed, word, nothing, mask=(k.cta == 0) & (k.thread == 0))

        def row(p, *totals):
            vertex = k.load(m.vertices, p, cache="nc")
            valid = vertex < c.n
            x = k.load(m.x0, vertex, mask=valid, cache="nc")
            k.store(m.values_now, p, x)
            self._pass_on(k.load(m.numbers, p, cache="nc"), x, self._scale(p, valid), valid)
            own = []
            for j in range(self.p.vectors):
                own.append(k.load(getattr(m, f"vector{j}"), vertex, mask=valid, cache="nc"))
                k.store(getattr(m, f"own{j}"), p, own[-1])
            return self._counted(totals, x, x, own, valid)

        return k.spread(c.positions, row, *self.zeros())

    def _scale(self, position, mask):
        if not self.p.scaled:
            return None
        return self.k.load(self.m.scales, position, mask=mask, cache="nc")

    def _pass_on(self, place, x, scale, mask):
        """Stores the value that the out-edges of an element gather."""
        if self.p.scaled:
            x = evaluate(self.k, self.steps.semiring.mul, x, scale)
        self.k.store(self.m.passed, place, x, mask=mask)

    def _counted(self, totals, old, new, own, mask):
        """Adds the parts of one element to the totals."""
        k = self.k
        moved, parts = _differs(new, old), []
        for fact in self.steps.facts:
            if fact == "changed":
                parts.append(k.cast(moved, "i32"))
            else:
                wide = k.cast(new, "f32") - k.cast(old, "f32")
                parts.append(k.where(moved, k.maximum(wide, -wide), 0.0))
        parts += [evaluate(k, s, new, *own, *self.scalars) for s in self.steps.sums]
        zeros = self.zeros()
        return tuple(
            t + k.where(mask, part, z) for t, part, z in zip(totals, parts, zeros, strict=True)
        )

    def _step(self, i, sums):
        """Computes the new x; returns this thread's parts of the totals."""
        k, c, m = self.k, self.c, self.m
        read, write = (i & 1) * (c.n + 1), (1 - (i & 1)) * (c.n + 1)
        update, none = self.steps.update, [None] * self.p.vectors
        known = hoist(k, update, None, None, i, *none, *self.scalars, *sums)

        def settle(row, y, mask, totals):
            position, number, old, scale, own = row
            mask = mask & (number < c.n)
            new = evaluate(k, update, old, y, i, *own, *self.scalars, *sums, known=known)
            k.store(m.values_now, position, new, mask=mask)
            self._pass_on(write + number, new, scale, mask)
            return self._counted(totals, old, new, own, mask)

        return self.sweep(read, settle)

    def row(self, position, mask):
        k, c, m = self.k, self.c, self.m
        number = k.load(m.numbers, position, mask=mask, other=c.n, cache="nc")
        # another warp may have written x, and another CTA the operands
        old = k.load(m.values_now, position, mask=mask, cache="fresh")
        own = [
            k.load(getattr(m, f"own{j}"), position, mask=mask, cache="fresh")
            for j in range(self.p.vectors)
        ]
        return position, number, old, self._scale(position, mask), own

    def terms(self, read, index, places, masks):
        k, c, m = self.k, self.c, self.m
        if self.p.scaled:
            return k.load(m.passed, read + index)  # padding passes on the identity
        values = k.load(m.values, places, mask=masks, cache="stream")
        x = k.load(m.passed, read + index)
        return k.where(index < c.n, evaluate(k, self.steps.semiring.mul, x, values), self.identity)

    def combine(self, a, b):
        return evaluate(self.k, self.steps.semiring.combine, a, b)


def _differs(new, old):
    """Where two values differ; NaN is equal to NaN."""
    return (new != old) & ((new == new) | (old == old))
