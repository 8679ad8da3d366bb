"""Rows of a CSR by some lanes each: for rows that keep those lanes busy.

The lanes of a warp are split into groups. A group takes one row at a time; much longer rows are
taken by the whole warp. `Lanes` has the loads of several rows in flight together; `InOrder` joins
terms of several words in the order of the entries, so that an operation need not commute.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..simt.primitives import Simt
from ..simt.typed import Several, Value, one_by_one
from .merge_path import Words, where

WIDE = 8  # strides of a long row that are in flight together
TURNS = 8  # a row that would take a group of lanes more steps than this is taken by the warp


def fold_spans(
    k: Simt,
    spans: tuple[Several, Several],
    stride: int,
    unroll: int,
    terms_of: Callable[[Several, Value], Any],
    combine: Callable[[Any, Any], Any],
    *start: Several,
) -> tuple[Any, ...]:
    """The lane's fold of the terms of entries first, first + stride, ... below end, for several
    spans (first, end); `unroll` entries of all of them are in flight together.

    Args:
        terms_of: the terms of entries at places, where masks hold, in the order of the spans.
        start: a value for each span; without it, the terms are not combined.
    """
    first, end = spans
    ends = Several(e for e in end for _ in range(unroll))

    def some(at, *y):
        places = Several(a + stride * u for a in at for u in range(unroll))
        terms = terms_of(places, places < ends)
        if y:
            parts = [Several(terms[u::unroll]) for u in range(unroll)]
            y = [combine(y[0], functools.reduce(combine, parts))]
        return at + stride * unroll, *y

    return k.while_(lambda at, *_: k.union(at < end), some, first, *start)[1:]


@dataclasses.dataclass(frozen=True)
class Lanes:
    """A shape of `merge_path.CsrRows`.

    lanes: lanes a row, a power of two; batch: rows of each group of lanes that are in flight
    together; unroll: entries of each row and lane that are in flight together; ahead: offsets are
    loaded a step before their rows; stream: entries do not stay in the L1 cache.
    """

    lanes: int
    batch: int
    unroll: int
    ahead: bool = False
    stream: bool = False

    def shared_words(self, threads: int, words: int = 1) -> int:
        return 0

    def walk_of(self, job: Any) -> Any:
        return _ByLanes(job, self).walk


class _ByLanes:
    """The walk of one warp."""

    def __init__(self, job: Any, shape: Any):
        k = job.k
        self.job, self.shape = job, shape
        self.cache = "stream" if shape.stream else "nc"
        self.group = k.shr(k.lane, shape.lanes.bit_length() - 1)
        self.member = k.lane & (shape.lanes - 1)

    def walk(self, first: Value, stop: Value) -> None:
        k = self.job.k
        step = 32 // self.shape.lanes * self.shape.batch

        def rows(base, *offsets):
            later = self._offsets(base + step, stop) if self.shape.ahead else ()
            self._rows(stop, base, *(offsets or self._offsets(base, stop)))
            return later

        k.for_(first, stop, step, rows, *(self._offsets(first, stop) if self.shape.ahead else ()))

    def _places(self, base: Value, stop: Value) -> tuple[Several, Value]:
        """The rows of this lane's group in a step, and whether they exist."""
        groups = 32 // self.shape.lanes
        at = Several(base + b * groups + self.group for b in range(self.shape.batch))
        return at, at < stop

    def _offsets(self, base: Value, stop: Value) -> tuple[Value, ...]:
        """Where their entries begin, and where they end."""
        at, valid = self._places(base, stop)
        job = self.job
        return tuple(job.k.load(job.indptr, at + j, mask=valid, cache="nc") for j in range(2))

    def _rows(self, stop: Value, base: Value, begin: Any, end: Any) -> None:
        job, k, shape = self.job, self.job.k, self.shape
        at, valid = self._places(base, stop)
        row = job.row(at, valid)
        begin = k.maximum(begin, job.low)
        end = k.where(job.wanted(row), k.minimum(end, job.high), 0)
        long = end - begin > TURNS * shape.lanes * shape.unroll
        span = begin + self.member, k.where(long, begin, end)
        found = self._entries(span, row, shape.lanes, shape.unroll)
        ys = [k.warp_fold(job.combine, y, shape.lanes) for y in found]
        for b, (mask, first, last, values) in enumerate(one_by_one(long, begin, end, row)):
            ys[b : b + 1] = self._long(mask, (first, last), values, ys[b : b + 1])
        for b, (r, mask) in enumerate(one_by_one(at, valid & (self.member == 0))):
            job.settle(r, ys[b] if ys else None, mask)

    def _long(self, long: Value, span: Sequence[Value], row: Sequence[Value], y: Any) -> Any:
        """The rows of a batch that are long, one after the other, by all lanes."""
        k, shape = self.job.k, self.shape
        word = k.ballot(long & (self.member == 0))

        def one(lane, *y):
            begin, end, *values = (Several([k.shfl(v, lane)]) for v in (*span, *row))
            found = self._entries((begin + k.lane, end), values, 32, WIDE)
            mine = self.group == k.shr(lane, shape.lanes.bit_length() - 1)
            return tuple(k.where(mine, k.warp_fold(self.job.combine, x), *y) for x in found)

        return k.each_bit(word, one, *y)

    def _entries(self, span: Any, row: Sequence[Any], stride: int, unroll: int) -> Any:
        """The lane's folds of the terms of entries first, first + stride, ... below the ends of
        several spans (first, end); () if there is nothing to combine."""
        job = self.job
        owners = tuple(Several(v for v in x for _ in range(unroll)) for x in row)

        def terms(places, masks):
            return job.terms(job.fetch(places, masks, self.cache), places, masks, lambda: owners)

        start = [] if job.identity is None else [Several([job.identity] * len(span[0]))]
        found = fold_spans(job.k, span, stride, unroll, terms, job.combine, *start)
        return found[0] if found else ()


@dataclasses.dataclass(frozen=True)
class InOrder:
    """A shape of `merge_path.CsrRows` for jobs whose terms and identity are tuples of words.

    lanes: lanes a row, a power of two; unroll: consecutive entries of a lane in a step, which it
    joins before the lanes of the group are joined by halves.
    """

    lanes: int
    unroll: int

    batch, ahead, stream = 1, True, False  # as of `Lanes`
    shared_words = Lanes.shared_words

    def walk_of(self, job: Any) -> Any:
        return _InOrder(job, self).walk


class _InOrder(_ByLanes):
    """The walk of one warp."""

    def _rows(self, stop: Value, base: Value, begin: Any, end: Any) -> None:
        job, k, shape = self.job, self.job.k, self.shape
        r, (begin,), (end,) = base + self.group, begin, end
        begin = k.maximum(begin, job.low)
        end = k.where(r < stop, k.minimum(end, job.high), 0)
        head = self.member == 0
        long = end - begin > TURNS * shape.lanes * shape.unroll
        y = self._fold(begin, k.where(long, begin, end), shape.lanes)

        def by_warp(owner, *y):
            found = self._fold(k.shfl(begin, owner), k.shfl(end, owner), 32)
            mine = self.group == k.shr(owner, shape.lanes.bit_length() - 1)
            return where(k, mine, found, y)

        y = k.each_bit(k.ballot(long & head), by_warp, *y)
        job.settle(r, y, (r < stop) & head)

    def _fold(self, begin: Value, end: Value, lanes: int) -> Words:
        """The terms of entries begin .. end - 1 joined, in all lanes of the group; called by all
        lanes of the warp together."""
        job, k, unroll = self.job, self.job.k, self.shape.unroll
        first = (k.lane & (lanes - 1)) * unroll

        def some(at, *y):
            places = Several(at + first + u for u in range(unroll))
            masks = places < end
            terms = job.terms(job.fetch(places, masks, "nc"), places, masks, lambda: ())
            terms = list(zip(*terms, strict=True))
            return at + lanes * unroll, *job.combine(y, self._over(lanes, terms))

        def left(at, *y):
            return k.any(at < end)

        return k.while_(left, some, begin, *job.identity)[1:]

    def _over(self, lanes: int, terms: list[Words]) -> Words:
        """The terms of all lanes of each group joined, in all of them."""
        k = self.job.k
        y, d = functools.reduce(self.job.combine, terms), 1
        while d < lanes:
            other, behind = tuple(k.shfl_xor(v, d) for v in y), (k.lane & d) != 0
            y = self.job.combine(where(k, behind, other, y), where(k, behind, y, other))
            d *= 2
        return y
