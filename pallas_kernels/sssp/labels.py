"""Labels of a search for shortest paths: what an edge makes of one, and widths of buckets.

int32: the bits of a non-negative float32, ordered as the numbers are, or the integer itself.
Unreached is the bits of inf, or iinfo.max, where integer sums clamp, which makes it absorbing.
"""

from ..simt.primitives import Simt
from ..simt.typed import Arrays, Value
from .problem import MAX, Problem


class Labels:
    """Arithmetic of labels; a base of the searches."""

    limit: Value | None = None  # labels above it are neither stored nor relaxed

    def __init__(self, k: Simt, c: Problem, m: Arrays):
        self.k, self.c, self.m = k, c, m
        self.delta = k.load(m.delta, 0)

    def clamped(self, label: Value, weight: Value) -> Value:
        """label (+) weight; the weight is a float32 or an int32 value."""
        k = self.k
        if self.c.rule.real:
            return k.bits(k.bits(label, "f32") + weight, "i32")
        total = label + weight
        return k.where(total < 0, MAX, total)

    def extended(self, labels: Value, weights: Value) -> Value:
        """The labels at the ends of edges: of the caller's algebra, or clamped sums."""
        extend = self.c.rule.extend
        if extend is None:
            return self.clamped(labels, weights)
        return extend(self.k, labels, weights)

    def within(self, label: Value) -> Value:
        """Whether a label is at most the limit."""
        return label == label if self.limit is None else label <= self.limit

    def tight(self, label: Value, weight: Value, other: Value) -> Value:
        """Whether an edge from a vertex of `label` may be the last one of a shortest path to one of
        label `other`: farther away, or as far if the weight is zero or absorbed."""
        extended = self.clamped(label, weight) == other
        return extended & (label <= other) & (other != self.c.infinity)

    def width(self, doublings: Value) -> Value:
        """delta * 2^doublings, at most MAX."""
        k = self.k
        if self.c.rule.real:
            return self.delta * k.bits((doublings + 127) << 23, "f32")
        doublings = k.minimum(doublings, 30)
        limit = k.shr(k.const(MAX), doublings)
        return k.where(self.delta > limit, MAX, self.delta << doublings)
