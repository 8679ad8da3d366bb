"""What a search for shortest paths is given: configuration, sizes, control words, its labels."""

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, NamedTuple

from ..frontier import Sizes, Spread
from ..simt.primitives import Simt
from ..simt.typed import Arrays, Value

MAX = 0x7FFFFFFF
INFINITY = {True: 0x7F800000, False: MAX}  # by Problem.real


@dataclasses.dataclass(frozen=True)
class Config(Spread):
    """How a search is spread over the GPU; `default_config` chooses it."""

    # low_degree: edges that a warp follows before the round ends, 1 for queues beyond hop_most
    hops: int = 16
    hop_most: int = 65536
    together: int = 2  # quads of a row whose edges are relaxed together
    tail: int = 8  # far is split early once near is shorter than 1 / tail of its longest; 0: never
    # any_degree: edges of a range, strides of 32 edges in flight together, vertices buffered in
    # shared memory
    span: int = 128
    unroll: int = 4
    near_buffer: int = 8192
    far_buffer: int = 16384
    # any_degree: long ranges that a warp takes in one step; a round is small below so many edges a
    # warp, and so is far below so many vertices a warp
    taken: int = 8
    small_round: int = 64
    small_far: int = 256
    # by_weight: the vertices above the ceiling pull if they have at most 2^-rest of all edges; the
    # ceiling rises by more while those below have less than 2^-few
    rest: int = 3
    few: int = 5


class Rule(NamedTuple):
    """What a search computes, known while it is traced; see `api.sssp`."""

    real: bool = True  # weights are float32, else int32
    symmetric: bool = False
    parents: bool = True
    limit: Callable[..., Any] | None = None
    extend: Callable[..., Any] | None = None  # (k, label, weight) -> label; None: their sum


@dataclasses.dataclass(frozen=True)
class Problem(Config, Sizes):
    """The configuration with the sizes of a graph and the rule."""

    later: int = 0  # doublings of the width in long searches
    rule: Rule = Rule()

    @property
    def infinity(self) -> int:
        """The label of unreached vertices."""
        return INFINITY[self.rule.real]

    @property
    def marked(self) -> bool:
        """Whether far needs marks: with a limit, labels above it are dropped from far; labels given
        at the start are finite but not in far."""
        return self.rule.limit is not None or self.rule.extend is not None


class Word(enum.IntEnum):
    """Control words. All but ORPHANS begin a group of four: a turn t (a step of the loop) or a
    split p uses number t & 3 or p & 3 of it."""

    ORPHANS = 39  # vertices without a recorded parent (`tree.py`)
    FOUND = 40  # length of the next near queue, by turn
    FAR = 44  # length of the far queue, by split
    LEAST = 48  # greatest (MAX - label) put into far, by split
    EDGES = 52  # edges of the next near queue, by turn
    AWAY = 56  # entries put into far, by turn
    TAKEN = 60  # entries of near that warps took, by turn

    def at(self, number):
        """Index of the word of a turn or split."""
        return int(self) + (number & 3)


class Count(enum.IntEnum):
    """Shared words of a CTA (`counts`): of what it has buffered, and of its last flush."""

    NEAR = 0  # entries of the buffer of near
    FAR = 1  # entries of the buffer of far
    LEAST = 2  # greatest (MAX - label) put into far
    FAR_AT = 3  # position of its far entries
    EDGES = 4  # edges of the ranges it appended
    AWAY = 5  # entries it put into far


class Labels:
    """Arithmetic of labels; a base of the searches.

    A label is an int32: the bits of a non-negative float32, which are ordered as the numbers are,
    or an integer. Unreached vertices have the bits of inf, or iinfo.max. Integer sums stop at that
    value, so that an edge from an unreached vertex reaches nothing.
    """

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
