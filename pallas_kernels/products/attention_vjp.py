"""The cotangents of `attention.csr_attention` in one launch, from the logarithms it left.

    p = exp(s - log[i]),  ds = p (<w[i], v[j]> - less[i])       at every entry (i, j), by head
    dq[i] = scale sum_j ds k[j],  dk[j] = scale sum_i ds q[i],  dv[j] = sum_i p w[i],  dbias = ds

with w the cotangent of y and less = <w, y> less that of log. Warps walk their pieces of the rows as
forwards; dq is kept in registers and stored where a row ends (added, of a row that is cut between
warps), dk and dv are added to memory by atomics of 16 bytes. Their order may vary, and with it the
last bits of sums.

Bytes, for nse entries, f features of all heads: 8 nse f read and as much added in the L2 cache.
"""

import math

import jax
import jax.numpy as jnp

from ..simt.launch import launch
from ..simt.scalar_jaxpr import evaluate
from .attention import LOG2E, Attention
from .attention_job import Operands, Schedule, Score, job_of, padded


def csr_attention_vjp(
    given: Operands,
    log: jax.Array,
    w: jax.Array,
    less: jax.Array,
    *,
    scale: float,
    score: Score | None = None,
    scores: bool = True,
    values: bool = True,
    biases: bool = False,
    schedule: Schedule = Schedule(unroll=2),  # noqa: B008 (frozen)
    interpret: bool = False,
) -> tuple[jax.Array | None, ...]:
    """(dq, dk, dv, dbias, dedges); None for what `scores`, `values`, `biases` do not ask for.

    given, scale, score: as forward; log, less: (n, heads), w: (n, heads, f). dbias is (nse, heads),
    0 in padding, also where one bias serves all; dedges comes with `scores`, if there are edges.
    """
    _, heads, f = given.v.shape
    job = job_of(given, scale, score, schedule)
    wanted = ({"dq": given.q, "dk": given.k} if scores else {}) | (
        {"dv": given.v} if values else {}
    )
    level = jnp.where(log > -jnp.inf, log * LOG2E, jnp.inf)
    operands = given.padded(job.width)
    last = {name: operands.pop(name) for name in ("bias", "edges") if name in operands}
    operands |= {"w": padded(w, job.width), "level": level, "less": less} | last
    shapes = {n: x.shape if x.ndim == 2 else (*x.shape[:2], job.width) for n, x in wanted.items()}
    sums = {name: jnp.zeros(math.prod(shape), jnp.float32) for name, shape in shapes.items()}
    each = ["dbias"] * biases + ["dedges"] * (scores and given.edges is not None)
    sums |= {name: jnp.zeros(given.indices.size * heads, jnp.float32) for name in each}
    found = launch(
        lambda kernel, memory: _Backward(kernel, memory, job).run(),
        {name: x.reshape(-1) for name, x in operands.items()},
        {},
        inout=sums,
        optional=("bias", "edges", "dq", "dk", "dv", "dbias", "dedges"),
        ctas=-(-heads // job.together) * job.ctas,
        threads=schedule.threads,
        name="csr_attention_vjp",
        interpret=interpret,
    )

    def cotangent(name):
        if name not in wanted:
            return None
        return found[name].reshape(shapes[name])[..., : wanted[name].shape[-1]]

    by_entry = (found.get(name) for name in ("dbias", "dedges"))
    each = (x if x is None else x.reshape(-1, heads) for x in by_entry)
    return *(cotangent(name) for name in ("dq", "dk", "dv")), *each


class _Backward(Attention):
    """One launch; what is kept of a row is its part of dq."""

    def __init__(self, k, g, job):
        super().__init__(k, g, job)
        self.nothing = [k.const(0.0, "f32")] * (1 if job.score else job.each)

    def _row(self, r, start, end):
        k, g, job = self.k, self.g, self.job
        q, w = self._end(g.q, r, self.inside), self._features(g.w, r, self.inside)
        at = r * job.heads + self.head
        level, less = (k.load(a, at, mask=self.inside, cache="nc") for a in (g.level, g.less))

        def some(base, *dq):
            places, there, cols, keys, values = self._met(base, end)
            scores = self._scores(q, keys, places, there)
            weights = [k.exp2(s - level) for s in scores]
            terms = zip(weights, self._dots(w, values), strict=True)
            cotangents = [k.where(p > 0.0, p * (dp - less), 0.0) for p, dp in terms]
            edges = self._edges(places, there)
            entries = zip(places, there, cols, keys, edges, weights, cotangents, strict=True)
            for e, t, c, key, edge, p, s in entries:
                t = t & self.inside
                first = t & (self.feature == 0)
                if g.dv is not None:
                    self._stored(k.reduce_vec, g.dv, self._at(c), [p * x for x in w], t)
                if g.dbias is not None:
                    k.store(g.dbias, e * job.heads + self.head, s, mask=first)
                if g.dq is None:
                    continue
                by_q, by_k, *by_e = self._slopes(q, key, edge)
                s = s * job.scale
                dq = [a + s * x for a, x in zip(dq, by_q, strict=True)]
                self._add(g.dk, c, [s * x for x in by_k], t)
                if by_e:
                    k.store(g.dedges, e * job.heads + self.head, s * by_e[0], mask=first)
            return tuple(dq)

        step = self.groups * job.unroll
        return self._of_groups(k.for_(start, end, step, some, *self.nothing))

    def _slopes(self, q, key, edge):
        """The derivative of the score of an entry by q, by k and, if it has one, by its edge."""
        score = self.job.score
        if score is None:
            return key, q
        ends = (*q, *key, *edge)
        zero, one = (self.k.const(x, "f32") for x in (0.0, 1.0))
        units = ([one if i == j else zero for j in range(len(ends))] for i in range(len(ends)))
        values = [evaluate(self.k, score.tangent, *ends, *unit) for unit in units]
        return [values[0]], [values[1]], *values[2:]

    def _joined(self, one, two):
        return tuple(a + b for a, b in zip(one, two, strict=True))

    def _place(self, r, mask):
        """Where the part of q or k that this lane has lies, and whether it is there."""
        if self.job.score is None:
            return self._at(r), mask
        return r * self.job.heads + self.head, mask & (self.feature == 0)

    def _add(self, a, r, values, mask):
        at, mask = self._place(r, mask)
        self._stored(self.k.reduce_vec, a, at, values, mask)

    def _store(self, r, state, mask):
        if self.g.dq is not None:
            at, mask = self._place(r, mask & self.inside & (self.group == 0))
            self._stored(self.k.store_vec, self.g.dq, at, list(state), mask)

    def _keep(self, slot, r, state, mask):
        del slot
        if self.g.dq is not None:
            self._add(self.g.dq, r, state, mask & self.inside & (self.group == 0))

    def _settle(self, *rows):
        """Parts of cut rows are added up already."""
