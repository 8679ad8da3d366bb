"""PageRank by power iteration, all iterations in one launch: pull, one grid barrier an iteration.

    x <- d (x D^-1 A + dangling(x) p) + (1 - d) p

Every row of A transposed gathers z = x / out-strength from one array of n words; its thread then
writes the new x and z and adds to two sums, the L1 change and the mass on vertices without
out-edges. The machine is that of `rows/sliced.py`.

Cost of an iteration: a gather and 4 bytes an entry (8 with weights), 28 bytes a row, one grid
barrier and two reductions over a CTA (2.5 us together). No atomics but those that order the
segments of split rows.

Measured (H200): rmat18 90 us an iteration, 210 to 240 G gathers/s, above the 150 of a permuted
graph from L2: with vertices by falling degree 68% of them hit in the L1 cache (2.7 TB/s from L2,
0.8 from memory). rmat21 690 us: 240 G/s. delaunay 2^21 55 us: 110 MB at 2 TB/s of the 4.3 of a
copy. luxembourg_osm 4.6 us: barrier, reductions and one chain of accesses.
"""

import jax
import jax.numpy as jnp

from ..rows.sliced import BATCH, UNROLL, PullRows, operands_of, shared_words, sizes, workspace
from ..simt.device import resident_ctas
from ..simt.launch import launch

KINDS = ("f32", "f32")  # of the two sums


def pagerank(
    strength: jax.Array,
    personalization: jax.Array,
    damping: jax.Array,
    tol: jax.Array,
    max_iterations: jax.Array,
    min_iterations: jax.Array,
    *,
    prepared: dict[str, jax.Array],
    ctas: int | None = None,
    threads: int = 1024,
    batch: int = BATCH,
    unroll: int = UNROLL,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """(scores float32[n], iterations int32, change float32, status int32).

    strength float32[n]: row sums of A; personalization float32[n]: p, of sum 1, also the start.
    prepared: the in-edges by `prepare_pagerank`. Iterates while the L1 change of the last step is
    above tol or fewer than min_iterations were made, at most max_iterations times. change is that
    of the last step (inf before the first). status 0: right; otherwise a grid barrier expired.
    """
    n = strength.shape[0]
    c = sizes(prepared, n)
    c.weighted = "values" in prepared
    f32, i32 = jnp.float32, jnp.int32
    operands = operands_of(prepared, *(["values"] if c.weighted else []))
    operands |= {
        "strength": strength.astype(f32),
        "personalization": personalization.astype(f32),
        "knobs": jnp.stack([jnp.asarray(damping, f32), jnp.asarray(tol, f32)]),
        "limits": jnp.stack([jnp.asarray(max_iterations, i32), jnp.asarray(min_iterations, i32)]),
    }
    ctas = ctas or resident_ctas()
    outputs = {
        "scores": (n, f32),
        "summary": 2,
        "change": (1, f32),
        "share": (2 * (n + 1), f32),
        "rank": (c.positions, f32),
        "inverse": (c.positions, f32),
        "teleport": (c.positions, f32),
        **workspace(c, len(KINDS), ctas, f32),
    }
    out = launch(
        lambda k, m: _Iteration(k, c, m, KINDS, batch=batch, unroll=unroll).run(),
        operands,
        outputs,
        ctas=ctas,
        threads=threads,
        shared_words=shared_words(len(KINDS)),
        name="pagerank",
        interpret=interpret,
    )
    return out["scores"], out["summary"][0], out["change"][0], out["summary"][1]


class _Iteration(PullRows):
    """One launch: start, steps, result."""

    def run(self):
        k, m = self.k, self.m
        damping, tol = (k.load(m.knobs, j) for j in range(2))
        most, least = (k.load(m.limits, j) for j in range(2))
        lost = self._start()
        ok, _, lost = self.total(0, (k.const(0.0, "f32"), lost))

        def going(step, change, lost, ok):
            return ((change > tol) | (step < least)) & (step < most) & (ok == 1)

        def step(i, change, lost, ok):
            moved, lost = self._step(i & 1, damping, damping * lost + (1.0 - damping))
            ok, change, lost = self.total((i + 1) & 1, (moved, lost))
            return i + 1, change, lost, ok

        infinity = k.bits(k.const(0x7F800000), "f32")
        steps, change, _, ok = k.while_(going, step, 0, infinity, lost, ok)
        self._finish()
        mine = (k.cta == 0) & (k.thread == 0)
        k.store(m.summary, 0, steps, mask=mine)
        k.store(m.summary, 1, 1 - ok, mask=mine)
        k.store(m.change, 0, change, mask=mine)

    def _start(self):
        """x = p and z of it; returns the thread's part of the dangling mass."""
        k, c, m = self.k, self.c, self.m
        self.clear()
        for word in (c.n, 2 * c.n + 1):  # the share that padding entries gather
            k.store(m.share, word, 0.0, mask=(k.cta == 0) & (k.thread == 0))

        def row(i, lost):
            vertex = k.load(m.vertices, i, cache="nc")
            there = vertex < c.n
            strength = k.load(m.strength, vertex, mask=there, cache="nc")
            rank = k.load(m.personalization, vertex, mask=there, cache="nc")
            weighs = strength > 0.0
            inverse = k.where(weighs, k.const(1.0, "f32") / k.where(weighs, strength, 1.0), 0.0)
            k.store(m.rank, i, rank)
            k.store(m.teleport, i, rank)
            k.store(m.inverse, i, inverse)
            number = k.load(m.numbers, i, cache="nc")
            k.store(m.share, number, rank * inverse, mask=there)
            return lost + k.where(weighs, 0.0, rank)

        return k.spread(c.positions, row, k.const(0.0, "f32"))[0]

    def _step(self, copy, damping, teleport):
        """New x and z; returns the thread's parts of the L1 change and of the dangling mass."""
        k, c, m = self.k, self.c, self.m
        read, write = copy * (c.n + 1), (1 - copy) * (c.n + 1)

        def settle(row, flow, mask, totals):
            position, number, old, inverse, p = row
            moved, lost = totals
            new = damping * flow + teleport * p
            k.store(m.rank, position, new, mask=mask)
            k.store(m.share, write + number, new * inverse, mask=mask & (number < c.n))
            moved = moved + k.where(mask, k.maximum(new - old, old - new), 0.0)
            return moved, lost + k.where(mask & (inverse == 0.0), new, 0.0)

        return self.sweep(read, settle)

    def row(self, position, mask):
        k, m = self.k, self.m
        number = k.load(m.numbers, position, mask=mask, cache="nc")
        # a split row is settled by another warp every time: not from L1
        rest = [
            k.load(a, position, mask=mask, cache="fresh") for a in (m.rank, m.inverse, m.teleport)
        ]
        return position, number, *rest

    def terms(self, read, index, places, masks):
        k, m = self.k, self.m
        weights = []
        if self.c.weighted:
            weights = k.loads(m.values, places, masks, cache="stream")
        share = [k.load(m.share, read + v) for v in index]  # padding has a share of 0
        return [z * w for z, w in zip(share, weights, strict=True)] if weights else share

    def combine(self, a, b):
        return a + b

    def _finish(self):
        """Scores in the caller's numbering; a row may have been settled by any CTA."""
        k, c, m = self.k, self.c, self.m

        def row(i):
            vertex = k.load(m.vertices, i, cache="nc")
            rank = k.load(m.rank, i, cache="fresh")
            k.store(m.scores, vertex, rank, mask=vertex < c.n)

        k.spread(c.positions, row)
