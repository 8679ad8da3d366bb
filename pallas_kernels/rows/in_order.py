"""Rows of a CSR by some lanes each, terms of several words, joined in the order of the entries.

The lanes of a warp are split into groups, one row each; a lane takes `unroll` consecutive entries
of every step and joins them, then the lanes of the group are joined by halves. So an operation need
not commute. Much longer rows are taken by the whole warp.
"""

import dataclasses
import functools
from typing import Any

from ..simt.typed import Value
from .merge_path import Words, where

TURNS = 8  # a row that would take a group of lanes more steps than this is taken by the warp


@dataclasses.dataclass(frozen=True)
class InOrder:
    """A shape of `merge_path.CsrRows` for jobs whose terms and identity are tuples of words.

    lanes: lanes a row, a power of two; unroll: consecutive entries of a lane in a step.
    """

    lanes: int
    unroll: int

    def shared_words(self, threads: int, words: int = 1) -> int:
        return 0

    def walker(self, job: Any) -> Any:
        return _InOrder(job, self)


class _InOrder:
    """The walk of one warp."""

    def __init__(self, job: Any, shape: InOrder):
        k = job.k
        self.job, self.k, self.shape = job, k, shape
        self.group = k.shr(k.lane, shape.lanes.bit_length() - 1)

    def walk(self, first: Value, stop: Value) -> None:
        step = 32 // self.shape.lanes

        def rows(base, begin, end):
            later = self._offsets(base + step, stop)
            self._rows(base, stop, begin, end)
            return later

        self.k.for_(first, stop, step, rows, *self._offsets(first, stop))

    def _offsets(self, base: Value, stop: Value) -> tuple[Value, Value]:
        """Where the entries of this group's row begin and end."""
        r = base + self.group
        begin, end = (
            self.k.load(self.job.indptr, r + j, mask=r < stop, cache="nc") for j in range(2)
        )
        return begin, end

    def _rows(self, base: Value, stop: Value, begin: Value, end: Value) -> None:
        job, k, shape = self.job, self.k, self.shape
        r = base + self.group
        begin = k.maximum(begin, job.low)
        end = k.where(r < stop, k.minimum(end, job.high), 0)
        head = (k.lane & (shape.lanes - 1)) == 0
        long = end - begin > TURNS * shape.lanes * shape.unroll
        y = self._fold(begin, k.where(long, begin, end), shape.lanes)

        def by_warp(left, *y):
            owner = k.ctz(left)
            found = self._fold(k.shfl(begin, owner), k.shfl(end, owner), 32)
            mine = self.group == k.shr(owner, shape.lanes.bit_length() - 1)
            return left & (left - 1), *where(k, mine, found, y)

        _, *y = k.while_(lambda left, *y: left != 0, by_warp, k.ballot(long & head), *y)
        job.settle(r, tuple(y), (r < stop) & head)

    def _fold(self, begin: Value, end: Value, lanes: int) -> Words:
        """The terms of entries begin .. end - 1 joined, in all lanes of the group; called by all
        lanes of the warp together."""
        job, k, unroll = self.job, self.k, self.shape.unroll
        first = (k.lane & (lanes - 1)) * unroll

        def some(at, *y):
            places = [at + first + u for u in range(unroll)]
            masks = [p < end for p in places]
            terms = job.terms(job.fetch(places, masks, "nc"), places, masks, lambda: ())
            return at + lanes * unroll, *job.combine(y, self._over(lanes, terms))

        def left(at, *y):
            return k.any(at < end)

        return k.while_(left, some, begin, *job.identity)[1:]

    def _over(self, lanes: int, terms: list[Words]) -> Words:
        """The terms of all lanes of each group joined, in all of them."""
        k = self.k
        y, d = functools.reduce(self.job.combine, terms), 1
        while d < lanes:
            other, behind = tuple(k.shfl_xor(v, d) for v in y), (k.lane & d) != 0
            y = self.job.combine(where(k, behind, other, y), where(k, behind, y, other))
            d *= 2
        return y
