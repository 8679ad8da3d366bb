"""How a lane combines terms of some columns in registers: by the addition, or by a running maximum.

A state is a flat list of kernel values, `held` of them.
"""

import math

from ..simt.scalar_jaxpr import evaluate

LOG2E = math.log2(math.e)


class Fold:
    """Terms combined one after the other by the addition of a `ScalarSemiring`."""

    def __init__(self, k, semiring, size):
        self.k, self.add, self.size = k, semiring.combine, size
        self.identity = semiring.neutral(k)
        self.held = size

    def start(self):
        """The state of no terms."""
        return [self.identity] * self.size

    def more(self, state, rows):
        """The state with some rows of terms, one for each column, more."""
        for row in rows:
            state = self.joined(state, row)
        return state

    def joined(self, one, two):
        """The state of the terms of both."""
        return [evaluate(self.k, self.add, a, b) for a, b in zip(one, two, strict=True)]

    def result(self, state):
        """What the terms combine to, for each column."""
        return state


class LogSum:
    """Logarithms of sums of exponentials: the largest term and the sum of what is left over it.

    In base 2; one exponential a term, and one for the sum where several terms come together
    (Milakov, Gimelshein, "Online normalizer calculation for softmax", 2018).
    """

    def __init__(self, k, size):
        self.k, self.size, self.held = k, size, 2 * size

    def start(self):
        """The state of no terms."""
        k = self.k
        return [k.const(float("-inf"), "f32")] * self.size + [k.const(0.0, "f32")] * self.size

    def more(self, state, rows):
        """The state with some rows of terms, one for each column, more."""
        k, tops, sums = self.k, [], []
        for column in range(self.size):
            terms = [row[column] * LOG2E for row in rows]
            top, total = state[column], state[self.size + column]
            new = top
            for t in terms:
                new = k.maximum(new, t)
            shift = self._finite(new)
            total = total * k.exp2(top - shift)
            for t in terms:
                total = total + k.exp2(t - shift)
            tops, sums = [*tops, new], [*sums, total]
        return tops + sums

    def joined(self, one, two):
        """The state of the terms of both."""
        k, size = self.k, self.size
        tops = [k.maximum(a, b) for a, b in zip(one[:size], two[:size], strict=True)]
        sums = [k.const(0.0, "f32")] * size
        for column, top in enumerate(tops):
            shift = self._finite(top)
            for state in (one, two):
                sums[column] += state[size + column] * k.exp2(state[column] - shift)
        return tops + sums

    def result(self, state):
        """What the terms combine to, for each column."""
        pairs = zip(state[: self.size], state[self.size :], strict=True)
        return [(top + self.k.log2(total)) * (1 / LOG2E) for top, total in pairs]

    def _finite(self, top):
        """What to take from terms: nothing where the largest is infinite, or NaN."""
        return self.k.where(self.k.maximum(top, -top) < float("inf"), top, 0.0)
