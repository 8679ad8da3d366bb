"""PageRank by increments, gathered in 16 bits: half of the bytes, with a bounded error.

    r = F(x) - x                 F: the right side, an affine map with the linear part L
    x <- x + q,  r <- (r - q) + L q     q: r with its shares r / strength rounded to bfloat16

The rounding error of q stays in r and is propagated in the next step. So r is always the change
that a step of power iteration from x makes, whatever q is. The loop ends by the norm of r, and the
scores are x + r = F(x). The first step gathers float32 shares of the start. Scores after a bounded
number of steps differ from those of power iteration, by about 2^-9 of the last change.

Rounding may change the mass of x. This error shrinks by the factor d a step, more slowly than the
others (rmat21: 20 steps instead of 13), and not at all if d is 1. So each step scales x to
mass 1, by c = 1 / sum x:  x <- c x,  r <- c r + (1 - c) (1 - d) p.

Source: Gleich, "PageRank beyond the Web", SIAM Review 2015, for residuals; error feedback
as in Seide et al., "1-bit stochastic gradient descent", Interspeech 2014.
"""

from typing import Any

from ..simt.typed import Body, Value
from .steps import Iteration


class Increments(Iteration):
    """One launch: start, one step in 32 bits, steps in 16, result."""

    KINDS = ("f32", "f32", "f32")  # as in `Iteration`, and the mass of x
    first = True  # while the first step is traced
    scale: Any = None  # of x and r, before a step

    @staticmethod
    def more(c: Any) -> dict[str, Any]:
        return {"change_of": (c.positions, "float32"), "halves": (c.n + 2, "uint32")}

    def _before(self, going: Body, step: Body, state: tuple[Value, ...]) -> tuple[Value, ...]:
        state = *state[:-1], self.k.const(1.0, "f32")
        state = self.k.if_(going(*state), lambda: step(*state), *state)
        self.first = False
        return state

    def _jumps(self, jumps: Value, *more: Value) -> Value:
        self.scale = self.k.const(1.0, "f32") / more[0]
        return jumps if self.first else jumps * (1.0 - self.scale)

    def _start(self) -> Value:
        k, m = self.k, self.m
        for half in (self.c.n, 2 * self.c.n + 1):  # what padding entries gather
            k.store_half(m.halves, half, k.const(0), (k.cta == 0) & (k.thread == 0))
        k.spread(self.c.positions, lambda i: k.store(m.change_of, i, 0.0))
        return super()._start()

    def _step(self, copy: Any, damping: Value, teleport: Value) -> tuple[Value, ...]:
        k, c, m = self.k, self.c, self.m
        read, write = copy * (c.n + 1), (1 - copy) * (c.n + 1)

        def settle(row, flow, mask, totals):
            position, number, x, inverse, p, r = row
            moved, lost, mass = totals
            dangles = inverse == 0.0
            new = damping * flow + teleport * p
            if self.first:
                new, later = new - x, x
            else:
                share = self._widened(self._rounded(r * inverse))
                q = k.where(dangles, r, share / k.where(dangles, 1.0, inverse))
                new, later = (self.scale * r - q) + new, self.scale * x + q
                k.store(m.rank, position, later, mask=mask)
            k.store(m.change_of, position, new, mask=mask)
            half = self._rounded(new * inverse)
            k.store_half(m.halves, write + number, half, mask & (number < c.n))
            moved = moved + k.where(mask, k.maximum(new, 0.0 - new), 0.0)
            lost = lost + k.where(mask & dangles, new, 0.0)
            return moved, lost, mass + k.where(mask, later, 0.0)

        return self.sweep(read, settle)

    def _rounded(self, x: Value) -> Value:
        """x as a bfloat16 in the low half of a word."""
        return self.k.pack(x, self.k.const(0.0, "f32"), "bf16") & 0xFFFF

    def _widened(self, half: Value) -> Value:
        return self.k.bits(half << 16, "f32")

    def row(self, position: Value, mask: Value) -> tuple[Any, ...]:
        change = self.k.load(self.m.change_of, position, mask=mask, cache="fresh")
        return *super().row(position, mask), change

    def shares(self, read: Value, index: Value) -> Value:
        if self.first:
            return super().shares(read, index)
        return self._widened(self.k.load_half(self.m.halves, read + index))

    def score(self, position: Value) -> Value:
        return super().score(position) + self.k.load(self.m.change_of, position, cache="fresh")
