"""The steps of PageRank over whole scores: what one launch of `pagerank/one_gpu.py` does."""

from typing import Any

from ..rows.sliced import PullRows
from ..simt.typed import Body, Value


class Iteration(PullRows):
    """One launch: start, steps, result."""

    KINDS = ("f32", "f32")  # of the sums: the L1 change, the mass on vertices without out-edges

    @staticmethod
    def more(c: Any) -> dict[str, int | tuple]:
        """Additional outputs of this form."""
        return {}

    def run(self) -> None:
        k, m = self.k, self.m
        damping, tol = (k.load(m.knobs, j) for j in range(2))
        most, least = (k.load(m.limits, j) for j in range(2))
        more = [k.const(0.0, "f32") for _ in self.kinds[2:]]
        ok, _, lost, *more = self.total(0, (k.const(0.0, "f32"), self._start(), *more))

        def going(step, ok, change, *_):
            return ((change > tol) | (step < least)) & (step < most) & (ok == 1)

        def step(i, ok, change, lost, *more):
            jumps = self._jumps(1.0 - damping, *more)
            ok, *sums = self.total((i + 1) & 1, self._step(i & 1, damping, damping * lost + jumps))
            return i + 1, ok, *sums

        infinity = k.bits(k.const(0x7F800000), "f32")
        start = self._before(going, step, (k.const(0), ok, infinity, lost, *more))
        steps, ok, change, *_ = k.while_(going, step, *start)
        self._finish()
        k.results(m.summary, steps, 1 - ok)
        k.results(m.change, change)

    def _before(self, going: Body, step: Body, state: tuple[Value, ...]) -> tuple[Value, ...]:
        """The state (step, ok, *sums) in which the loop begins."""
        return state

    def _jumps(self, jumps: Value, *more: Value) -> Value:
        """What jumps add in a step, over p; more: the further sums."""
        return jumps

    def _start(self) -> Value:
        """Computes x = p and its z; returns this thread's part of the dangling mass."""
        k, c, m = self.k, self.c, self.m
        self.clear()
        for word in (c.n, 2 * c.n + 1):  # the share that padding entries gather
            k.store(m.share, word, 0.0, mask=(k.cta == 0) & (k.thread == 0))

        def row(i, lost):
            vertex = k.load(m.vertices, i, cache="nc")
            valid = vertex < c.n
            strength = k.load(m.strength, vertex, mask=valid, cache="nc")
            rank = k.load(m.personalization, vertex, mask=valid, cache="nc")
            weighs = strength > 0.0
            inverse = k.where(weighs, k.const(1.0, "f32") / k.where(weighs, strength, 1.0), 0.0)
            k.store(m.rank, i, rank)
            k.store(m.teleport, i, rank)
            k.store(m.inverse, i, inverse)
            number = k.load(m.numbers, i, cache="nc")
            k.store(m.share, number, rank * inverse, mask=valid)
            return lost + k.where(weighs, 0.0, rank)

        return k.spread(c.positions, row, k.const(0.0, "f32"))[0]

    def _step(self, copy: Any, damping: Value, teleport: Value) -> tuple[Value, ...]:
        """Computes the new x and z; returns this thread's parts of the L1 change and of the
        dangling mass."""
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

    def row(self, position: Value, mask: Value) -> tuple[Any, ...]:
        k, m = self.k, self.m
        number = k.load(m.numbers, position, mask=mask, cache="nc")
        # another warp may settle a split row in each step: so not from L1
        rest = [
            k.load(a, position, mask=mask, cache="fresh") for a in (m.rank, m.inverse, m.teleport)
        ]
        return position, number, *rest

    def terms(self, read: Value, index: Value, places: Value, masks: Value) -> Value:
        k, m = self.k, self.m
        if not m.values:
            return self.shares(read, index)
        weights = k.load(m.values, places, mask=masks, cache="stream")
        return self.shares(read, index) * weights

    def shares(self, read: Value, index: Value) -> Value:
        """The shares at these indices, in the copy that begins at `read`; that of padding is 0."""
        return self.k.load(self.m.share, read + index)

    def combine(self, a: Value, b: Value) -> Value:
        return a + b

    def _finish(self) -> None:
        """Writes the scores in the caller's numbering."""
        k, c, m = self.k, self.c, self.m

        def row(i):
            vertex = k.load(m.vertices, i, cache="nc")
            k.store(m.scores, vertex, self.score(i), mask=vertex < c.n)

        k.spread(c.positions, row)

    def score(self, position: Value) -> Value:
        """The score of the row at this position."""
        return self.k.load(self.m.rank, position, cache="fresh")
