"""Greedy colours by priority, without rounds: a vertex waits for all of its earlier neighbours.

The method, its cost and its times stand in `waiting.py`.
"""

import jax
import jax.numpy as jnp
from jax import lax

from ..simt.primitives import SPIN_LIMIT
from ..simt.typed import one_by_one
from .waiting import MANY, Waiting, decided


def coloring(
    indptr: jax.Array, indices: jax.Array, priority: jax.Array, *, limit: int = SPIN_LIMIT
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(colors int32[n], status, count int32) by descending priority: each the least that no earlier
    neighbour has, and how many colours there are.

    Operands and status as for `independent_set`. For graphs of short chains: every vertex
    waits for the last of its earlier neighbours.
    """
    out = decided(Colors, "coloring", indptr, indices, priority, limit)

    def larger(x, y):
        return jnp.maximum(x[0], y[0]), jnp.maximum(x[1], y[1])

    words = out["late"], out["used"]  # one kernel for both
    return out["colors"], *lax.reduce(words, (jnp.int32(0), jnp.int32(0)), larger, (0,))


class Colors(Waiting):
    """A vertex whose earlier neighbours all have colours takes the least that none of them has.

    `taken` has a bit for colours 0 .. 31; if all are set, the row is read again for the next 32.
    """

    results = staticmethod(lambda n, ctas: {"colors": n, "used": ctas})
    all_ahead = True

    def run(self):
        k = self.k
        self.count = k.shared(4)  # of colours that this CTA has seen
        k.store(self.count, k.thread, 0, mask=k.thread < 4)
        super().run()
        k.store(self.m.used, k.cta, k.load(self.count, 0), mask=k.thread == 0)

    def _add_colors(self, taken, words, valid):
        k = self.k
        for word, t in one_by_one(words, valid):
            color = -1 - word
            taken = k.where(t & k.below(color, 32), taken | k.bit(color), taken)
        return taken

    def _next(self, v, word, behind, taken, mask):
        taken = self._add_colors(taken, word, mask)
        last = mask & (behind == 0) & (taken != -1)
        self._put(v, self.k.ctz(~taken), last)
        return mask & ~last, taken

    def _row(self, v, at, behind, valid):
        k = self.k
        far = valid & (behind == MANY)
        end = k.load(self.m.indptr, v + 1, mask=far, cache="nc")
        return at, k.where(far, end, at + 1 + behind)

    def _put(self, v, color, mask):
        """Colours vertices."""
        k, m = self.k, self.m
        k.reduce("min", m.state, v, -1 - color, mask=mask)
        k.store(m.colors, v, color, mask=mask)
        more = mask & (k.load(self.count, 0) <= color)
        k.reduce("max", self.count, 0, color + 1, mask=more)

    def _end(self, v, row, taken, mask):
        k, m = self.k, self.m
        full = mask & (taken == -1)
        self._put(v, k.ctz(~taken), mask & ~full)

        def again(owner):
            first, last = k.row(m.indptr, k.shfl(v, owner), k.lane >= 0)

            def some(e, base, taken):
                head = k.load(m.indices, e + k.lane, mask=e + k.lane < last, other=-1, cache="nc")
                word = k.load(m.state, head, mask=head >= 0, other=0, cache="fresh")
                color = -1 - word - base
                return k.where(k.below(color, 32), taken | k.bit(color), taken)

            def window(base, taken):
                base = base + 32
                (taken,) = k.for_(first, last, 32, lambda e, t: some(e, base, t), 0)
                return base, k.warp_fold(lambda x, y: x | y, taken)

            base, taken = k.while_(lambda base, taken: taken == -1, window, 0, -1)
            self._put(k.shfl(v, owner), base + k.ctz(~taken), k.lane == 0)

        k.each_bit(k.ballot(full), again)
