"""The cotangents of `attention.csr_attention` in one launch, from the logarithms that it leaves.

    p = exp(s - log[i]),  ds = p (<w[i], v[j]> - less[i])       at every entry (i, j), by head
    dq[i] = scale sum_j ds k[j],  dk[j] = scale sum_i ds q[i],  dv[j] = sum_i p w[i],  dbias = ds

with w the cotangent of y and less = <w, y> minus the cotangent of log; with a `Score`, its
derivatives take the places of k and q. Warps walk their pieces of the rows as in the forward pass.
dq is accumulated in registers and stored at the end of a row (added, if the row is cut between
warps); dk and dv are added to memory by atomics of 16 bytes. The order of these may vary, and with
it the last bits of sums. Each warp has its own sum of the derivatives by the params of a score.

Bytes, for nse entries, f features of all heads: 8 nse f read and as much added in the L2 cache.
Measured (H200), float32, f = 128, the forward pass included: coAuthorsDBLP 2.0 ms, rmat18 11.6
(forward alone 0.43 and 2.25).
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...rows.folds import LOG2E
from ...simt.launch import launch
from ...simt.typed import one_by_one
from .forward import Attention
from .job import Operands, Schedule, Score, job_of, padded

# Neighbouring lanes add 16 bytes each to the same sectors, also if they read 16-bit floats.
SCHEDULE = Schedule(unroll=2, threads=256, features=4)


class Wanted(NamedTuple):
    """Which cotangents are computed. scores: dq, dk, and dedges if there are edges; values: dv;
    biases: dbias; params: dparams."""

    scores: bool = True
    values: bool = True
    biases: bool = False
    params: bool = True


WANTED = Wanted()


def csr_attention_vjp(
    given: Operands,
    log: jax.Array,
    w: jax.Array,
    less: jax.Array,
    *,
    scale: float,
    score: Score | None = None,
    wanted: Wanted = WANTED,
    schedule: Schedule = SCHEDULE,
) -> tuple[jax.Array | None, ...]:
    """(dq, dk, dv, dbias, dedges, *dparams); None for what is not wanted.

    given, scale, score: as forward; log, less: (n, heads), w: (n, heads, f). dbias is (nse, heads),
    0 in padding, also where one bias serves all.
    """
    _, heads, f = given.v.shape
    job = job_of(given, scale, score, schedule)
    operands = given.padded(job.width)
    last = {name: operands.pop(name) for name in ("bias", "edges") if name in operands}
    level = jnp.where(log > -jnp.inf, log * LOG2E, jnp.inf)
    operands |= {"w": padded(w, job.width), "level": level, "less": less} | last

    like = {"dq": given.q, "dk": given.k} if wanted.scores else {}
    like |= {"dv": given.v} if wanted.values else {}
    if wanted.scores and given.edges is not None:
        like["dedges"] = given.edges
    shapes = {n: x.shape if x.ndim == 2 else (*x.shape[:2], job.width) for n, x in like.items()}
    shapes |= {"dbias": (given.indices.size, heads)} if wanted.biases else {}
    workers = job.ctas * schedule.threads // 32
    of_warps = {
        f"dp{i}": (workers, heads, *[job.width] * (p.ndim - 1))
        for i, p in enumerate(given.params)
        if wanted.params
    }
    found = launch(
        lambda kernel, memory: _Backward(kernel, memory, job).run(),
        {name: x.reshape(-1) for name, x in operands.items()},
        {name: (math.prod(shape), jnp.float32) for name, shape in of_warps.items()},
        inout={name: jnp.zeros(math.prod(s), jnp.float32) for name, s in shapes.items()},
        **schedule.form(-(-heads // job.together), job.ctas),
        name="csr_attention_vjp",
    )

    def cotangent(name):
        if name not in shapes:
            return None
        x, operand = found[name].reshape(shapes[name]), like.get(name)
        return x if operand is None or operand.ndim == 2 else x[..., : operand.shape[-1]]

    ends = (cotangent(name) for name in ("dq", "dk", "dv", "dbias", "dedges"))
    by_params: list[jax.Array | None] = [None] * len(given.params)
    for i, name in enumerate(of_warps):
        p = given.params[i]
        total = found[name].reshape(of_warps[name]).sum(axis=0)
        by_params[i] = total if p.ndim == 1 else total[:, : p.shape[-1]]
    return *ends, *by_params


class _Backward(Attention):
    """One launch; the state of a row is its part of dq."""

    def __init__(self, k, g, job):
        super().__init__(k, g, job)
        self.rows = job.score.rows if job.score else (True, True)
        self.nothing = self._zeros(0)
        self.fixed = range(len(self.rows) - len(self.params), len(self.rows))  # the params
        if g.dp0 is not None:
            self.sums = [zero for i in self.fixed for zero in self._zeros(i)]

    def _zeros(self, number):
        return [self.k.const(0.0, "f32")] * (self.job.each if self.rows[number] else 1)

    def _of_row(self, r, mask):
        """Of the cotangent of y, the logarithm, what is taken from its cotangents, and of q."""
        k, g = self.k, self.g
        at = r * self.job.heads + self.head
        numbers = (k.load(a, at, mask=mask, cache="nc") for a in (g.level, g.less))
        return [*self._features(g.w, r, mask), *numbers, *super()._of_row(r, mask)]

    def _row(self, start, end, ahead, sums):
        k, g, job = self.k, self.g, self.job
        columns, row = ahead[0], list(ahead[1:])
        w, (level, less), q = row[: job.each], row[job.each :][:2], row[job.each + 2 :]
        q, own = self._query(q), len(self.nothing)

        def some(base, cols, *carry):
            dq, sums = carry[:own], carry[own:]
            later = self._columns(base + step)
            places, valid, keys, values = self._met(base, end, cols)
            derived = self._derived(q, keys, places, valid)
            weights = k.exp2(self._levels(derived[0], places, valid) - level)
            dp = self._dots(w, values)
            cotangents = k.where(weights > 0.0, weights * (dp - less), 0.0)
            entries = one_by_one(places, valid, cols, derived, weights, cotangents)
            for e, t, c, (_, by_q, by_k, *rest), p, s in entries:
                t = t & self.inside
                if g.dv is not None:
                    self._stored(k.reduce_vec, g.dv, self._at(c), [p * x for x in w], t)
                if g.dbias is not None:
                    first = t & (self.feature == 0)
                    k.store(g.dbias, e * job.heads + self.head, s, mask=first)
                s = s * job.scale
                if g.dq is not None:
                    dq = [a + s * x for a, x in zip(dq, by_q, strict=True)]
                    self._add(g.dk, 1, c, [s * x for x in by_k], t)
                if g.dedges is not None:
                    place, mask = self._place(2, e, t)
                    self._stored(k.store_vec, g.dedges, place, [s * x for x in rest[0]], mask)
                if sums:
                    of_params = [x for row in rest[len(rest) - len(self.params) :] for x in row]
                    sums = [a + s * x for a, x in zip(sums, of_params, strict=True)]
            return later, *dq, *sums

        step = self.groups * job.unroll
        state = k.for_(start, end, step, some, columns, *self.nothing, *sums)[1:]
        return self._of_groups(state[:own]), state[own:]

    def _derived(self, q, keys, places, valid):
        """Of some entries the scores, and lists of their derivatives by q, k, edge and params."""
        score = self.job.score
        if score is None:
            return self._dots(q, keys), keys, q
        edges = self._edges(places, valid)
        given = q, keys, *edges, *self.params
        value, *gradients = self.held.evaluate(score.gradients, *given)
        rows = (x if isinstance(x, list) else [x] for x in gradients)
        return value, *([self.k.where(valid, x, 0.0) for x in row] for row in rows)

    def _joined(self, one, two):
        return tuple(a + b for a, b in zip(one, two, strict=True))

    def _place(self, number, r, mask):
        """(index of this lane's part of argument `number` of row r, whether the lane has one)."""
        if self.rows[number]:
            return self._at(r), mask
        return r * self.job.heads + self.head, mask & (self.feature == 0)

    def _add(self, a, number, r, values, mask):
        at, mask = self._place(number, r, mask)
        self._stored(self.k.reduce_vec, a, at, values, mask)

    def _store(self, r, state, mask):
        if self.g.dq is not None:
            at, mask = self._place(0, r, mask & self.inside & (self.group == 0))
            self._stored(self.k.store_vec, self.g.dq, at, list(state), mask)

    def _store_part(self, slot, r, state, mask):
        if self.g.dq is not None:
            self._add(self.g.dq, 0, r, state, mask & self.inside & (self.group == 0))

    def _finish(self, sums):
        """Stores the sums of this warp for the params; they are added up after the launch."""
        sums = list(self._of_groups(list(sums))) if sums else []
        for i, number in enumerate(self.fixed if sums else ()):
            size = len(self._zeros(number))
            at, mask = self._place(number, self.worker, self.inside & (self.group == 0))
            self._stored(self.k.store_vec, getattr(self.g, f"dp{i}"), at, sums[:size], mask)
            sums = sums[size:]

    def _settle(self, *rows):
        """Parts of cut rows are added up already."""
