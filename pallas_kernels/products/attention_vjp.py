"""The cotangents of `attention.csr_attention` in one launch, from the logarithms it left.

    p = exp(s - log[i]),  ds = p (<w[i], v[j]> - less[i])       at every entry (i, j), by head
    dq[i] = scale sum_j ds k[j],  dk[j] = scale sum_i ds q[i],  dv[j] = sum_i p w[i],  dbias = ds

with w the cotangent of y and less = <w, y> less that of log. Warps walk their pieces of the rows as
forwards; dq is kept in registers and stored where a row ends (added, of a row that is cut between
warps), dk and dv are added to memory by atomics of 16 bytes. Their order may vary, and with it the
last bits of sums.

Bytes, for nse entries, f features of all heads: 8 nse f read and as much added in the L2 cache.
"""

import jax
import jax.numpy as jnp

from ..simt.launch import launch
from .attention import LOG2E, Attention, job_of, padded


def csr_attention_vjp(
    indptr: jax.Array,
    indices: jax.Array,
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    bias: jax.Array | None,
    log: jax.Array,
    w: jax.Array,
    less: jax.Array,
    *,
    scale: float,
    scores: bool = True,
    values: bool = True,
    biases: bool = False,
    unroll: int = 2,
    waves: int = 1,
    ctas: int | None = None,
    threads: int = 256,
    interpret: bool = False,
) -> tuple[jax.Array | None, ...]:
    """(dq, dk, dv, dbias); None for what is not asked for by `scores`, `values` and `biases`.

    Operands as forwards; log, less: (n, heads), w: (n, heads, f). dbias is (nse, heads), 0 in
    padding, also where one bias serves all heads.
    """
    heads, d, f = q.shape[1], q.shape[2], v.shape[2]
    job = job_of(indices, q, k, v, bias, scale, unroll, waves, ctas, threads)
    width = job.width
    q, k, v, w = (padded(x, width) for x in (q, k, v, w))
    level = jnp.where(log > -jnp.inf, log * LOG2E, jnp.inf)
    operands = {"indptr": indptr, "indices": indices, "q": q, "k": k, "v": v}
    operands |= {"w": w, "level": level, "less": less}
    operands |= {} if bias is None else {"bias": bias}
    zeros = {"dq": q, "dk": k} if scores else {}
    zeros |= {"dv": v} if values else {}
    sums = {name: jnp.zeros(x.size, jnp.float32) for name, x in zeros.items()}
    sums |= {"dbias": jnp.zeros(indices.size * heads, jnp.float32)} if biases else {}
    found = launch(
        lambda kernel, memory: _Backward(kernel, memory, job).run(),
        {name: x.reshape(-1) for name, x in operands.items()},
        {},
        inout=sums,
        optional=("bias", "dq", "dk", "dv", "dbias"),
        ctas=-(-heads // job.together) * job.ctas,
        threads=threads,
        name="csr_attention_vjp",
        interpret=interpret,
    )

    def slope(name, x, features):
        return found[name].reshape(x.shape)[:, :, :features] if name in found else None

    dbias = found["dbias"].reshape(-1, heads) if biases else None
    return slope("dq", q, d), slope("dk", k, d), slope("dv", v, f), dbias


class _Backward(Attention):
    """One launch; what is kept of a row is its part of dq."""

    def __init__(self, k, g, job):
        super().__init__(k, g, job)
        self.nothing = [k.const(0.0, "f32")] * job.words

    def _row(self, r, start, end):
        k, g, job = self.k, self.g, self.job
        q, w = (
            k.load_vec(a, self._at(r), job.words, mask=self.inside, cache="nc") for a in (g.q, g.w)
        )
        at = r * job.heads + self.head
        level, less = (k.load(a, at, mask=self.inside, cache="nc") for a in (g.level, g.less))

        def some(base, *dq):
            places, there, cols, keys, values = self._met(base, end)
            scores = self._scores(q, keys, places, there)
            weights = [k.exp2(s - level) for s in scores]
            slopes = [p * (dp - less) for p, dp in zip(weights, self._dots(w, values), strict=True)]
            slopes = [k.where(p > 0.0, s, 0.0) for p, s in zip(weights, slopes, strict=True)]
            for e, t, c, words, p, s in zip(
                places, there, cols, keys, weights, slopes, strict=True
            ):
                t = t & self.inside
                self._add(g.dv, c, [p * x for x in w], t)
                self._add(g.dk, c, [s * job.scale * x for x in q], t)
                dq = [a + s * job.scale * x for a, x in zip(dq, words, strict=True)]
                if g.dbias is not None:
                    k.store(g.dbias, e * job.heads + self.head, s, mask=t & (self.feature == 0))
            return tuple(dq)

        step = self.groups * job.unroll
        return self._of_groups(k.for_(start, end, step, some, *self.nothing))

    def _joined(self, one, two):
        return tuple(a + b for a, b in zip(one, two, strict=True))

    def _add(self, a, place, values, mask):
        if a is not None:
            self.k.reduce_vec(a, self._at(place), values, mask=mask)

    def _store(self, r, state, mask):
        if self.g.dq is not None:
            mask = mask & self.inside & (self.group == 0)
            self.k.store_vec(self.g.dq, self._at(r), state, mask=mask)

    def _keep(self, slot, r, state, mask):
        del slot
        self._add(self.g.dq, r, state, mask & self.inside & (self.group == 0))

    def _settle(self, *rows):
        """Parts of cut rows are added up already."""
