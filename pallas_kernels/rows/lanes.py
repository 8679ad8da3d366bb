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
from ..simt.typed import Value
from .merge_path import Words, where

WIDE = 8  # strides of a long row that are in flight together
TURNS = 8  # a row that would take a group of lanes more steps than this is taken by the warp


def fold_spans(
    k: Simt,
    spans: Sequence[tuple[Value, Value]],
    stride: int,
    unroll: int,
    terms_of: Callable[[list[Value], list[Value]], Sequence[Any]],
    combine: Callable[[Any, Any], Any],
    start: Sequence[Value],
) -> tuple[Value, ...]:
    """The lane's fold of the terms of entries first, first + stride, ... below end, for each span
    (first, end); `unroll` entries of all of them are in flight together.

    Args:
        terms_of: the terms of entries at places, where masks hold, in the order of the spans.
        start: a value for each span; empty: the terms are not combined.
    """
    many = len(spans)
    ends = [end for _, end in spans for _ in range(unroll)]

    def some(*carry):
        at, ys = carry[:many], carry[many:]
        places = [a + stride * u for a in at for u in range(unroll)]
        masks = [p < end for p, end in zip(places, ends, strict=True)]
        terms = terms_of(places, masks)
        if ys:
            parts = [terms[j : j + unroll] for j in range(0, len(terms), unroll)]
            each = zip(ys, parts, strict=True)
            ys = [combine(y, functools.reduce(combine, part)) for y, part in each]
        return *(a + stride * unroll for a in at), *ys

    def left(*carry):
        more = [a < end for a, (_, end) in zip(carry, spans, strict=False)]
        return k.union(more)

    return k.while_(left, some, *(first for first, _ in spans), *start)[many:]


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

    def walker(self, job: Any) -> Any:
        return _ByLanes(job, self)


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

    def _places(self, base: Value, stop: Value) -> tuple[list[Value], list[Value]]:
        """The rows of this lane's group in a step, and whether they exist."""
        groups = 32 // self.shape.lanes
        at = [base + b * groups + self.group for b in range(self.shape.batch)]
        return at, [r < stop for r in at]

    def _offsets(self, base: Value, stop: Value) -> tuple[Value, ...]:
        """Where their entries begin, then where they end."""
        at, valid = self._places(base, stop)
        return tuple(
            self.job.k.load(self.job.indptr, r + j, mask=t, cache="nc")
            for j in range(2)
            for r, t in zip(at, valid, strict=True)
        )

    def _rows(self, stop: Value, base: Value, *offsets) -> None:
        job, k, shape = self.job, self.job.k, self.shape
        at, valid = self._places(base, stop)
        begins, ends = offsets[: shape.batch], offsets[shape.batch :]
        rows = [job.row(r, t) for r, t in zip(at, valid, strict=True)]
        begins = [k.maximum(x, job.low) for x in begins]
        each = zip(rows, ends, strict=True)
        ends = [k.where(job.wanted(row), k.minimum(x, job.high), 0) for row, x in each]
        many = TURNS * shape.lanes * shape.unroll
        long = [e - b > many for b, e in zip(begins, ends, strict=True)]
        spans = [
            (b + self.member, k.where(l, b, e)) for b, e, l in zip(begins, ends, long, strict=True)
        ]
        ys = self._entries(spans, rows, shape.lanes, shape.unroll)
        ys = [self._over(shape.lanes, y) for y in ys]
        for b in range(shape.batch):
            ys[b : b + 1] = self._long(long[b], begins[b], ends[b], rows[b], ys[b : b + 1])
        for b in range(shape.batch):
            job.settle(at[b], ys[b] if ys else None, valid[b] & (self.member == 0))

    def _long(self, long: Value, begin: Value, end: Value, row: tuple[Value, ...], y: Any) -> Any:
        """The rows of a batch that are long, one after the other, by all lanes."""
        k, shape = self.job.k, self.shape
        word = k.ballot(long & (self.member == 0))

        def one(lane, *y):
            span = k.shfl(begin, lane) + k.lane, k.shfl(end, lane)
            found = self._entries([span], [tuple(k.shfl(v, lane) for v in row)], 32, WIDE)
            mine = self.group == k.shr(lane, shape.lanes.bit_length() - 1)
            each = zip(found, y, strict=True)
            return tuple(k.where(mine, self._over(32, new), old) for new, old in each)

        return k.each_bit(word, one, *y)

    def _entries(
        self, spans: Sequence[tuple[Value, Value]], rows: Any, stride: int, unroll: int
    ) -> Any:
        """The lane's fold of the terms of entries first, first + stride, ... below the end of each
        span; [] if there is nothing to combine."""
        job = self.job
        owners = [row for row in rows for _ in range(unroll)]

        def terms(places, masks):
            return job.terms(job.fetch(places, masks, self.cache), places, masks, lambda: owners)

        start = [] if job.identity is None else [job.identity] * len(spans)
        return fold_spans(job.k, spans, stride, unroll, terms, job.combine, start)

    def _over(self, lanes: int, y: Any) -> Value:
        d = lanes // 2
        while d:
            y, d = self.job.combine(y, self.job.k.shfl_xor(y, d)), d // 2
        return y


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

    def walker(self, job: Any) -> Any:
        return _InOrder(job, self)


class _InOrder(_ByLanes):
    """The walk of one warp."""

    def _rows(self, stop: Value, base: Value, begin: Value, end: Value) -> None:
        job, k, shape = self.job, self.job.k, self.shape
        r = base + self.group
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
            places = [at + first + u for u in range(unroll)]
            masks = [p < end for p in places]
            terms = job.terms(job.fetch(places, masks, "nc"), places, masks, lambda: ())
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
