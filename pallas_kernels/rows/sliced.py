"""Loops that pull over rows, one grid barrier a step: what PageRank and `fixpoint` share.

The layout of rows is that of `prepare_pagerank`: a short row for each thread, a long row for each
warp; the longest rows are cut into segments, and the warp that finishes the last one combines the
partial results in their order. A step gathers from one of two copies of an array and writes the
other, alternating: the copy that is read is not written before the next barrier, so its lines may
stay in the L1 cache. Each CTA stores its totals and, after the barrier, every CTA adds those of all
CTAs in the same order. So all CTAs agree when to stop, and results do not change from run to run.

Two rows of a thread, or of a warp, are in flight together, 8 entries each. For the limits of a step
see `pagerank/one_gpu.py`.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from ..simt.primitives import Simt
from ..simt.typed import Several, Value, one_by_one
from .lanes import fold_spans

BATCH, UNROLL = 2, 8  # rows of a thread, and entries of each, that are in flight together
WARPS_MOST = 32
ARRAYS = ("numbers", "vertices", "entries", "items", "splits", "starts", "counts")


class Sizes(NamedTuple):
    """The static numbers of prepared rows; the slices begin at position `base`."""

    n: int
    items: int
    positions: int
    splits: int
    base: int


def sizes(prepared: dict[str, jax.Array], n: int) -> Sizes:
    """The numbers of these arrays."""
    names = "items", "numbers", "splits"
    items, positions, splits = (prepared[name].shape[0] for name in names)
    return Sizes(n, items, positions, splits, positions - 32 * (prepared["starts"].shape[0] - 1))


def operands_of(prepared: dict[str, jax.Array], *more: str) -> dict[str, jax.Array]:
    """The prepared arrays as operands of a launch."""
    return {name: prepared[name] for name in (*ARRAYS, *more)}


def workspace(c: Any, totals: int, ctas: int, term: str) -> dict[str, int | tuple]:
    """name -> (size, dtype) of the outputs that `PullRows` needs for itself."""
    return {
        "totals": 2 * totals * ctas,
        "partial": (max(1, c.items), term),
        "arrived": max(1, c.splits),
    }


def shared_words(totals: int) -> int:
    """Words of shared memory that it needs."""
    return -(-(WARPS_MOST + 1) * totals // 4) * 4 + 4


class PullRows:
    """The steps of a pull loop; a kernel defines `terms`, `combine` and `row`, and passes `settle`
    to `sweep`, which takes the result of each row."""

    def __init__(
        self,
        k: Simt,
        c: Any,
        memory: Any,
        kinds: Sequence[str],
        term: str = "f32",
        identity: Any = 0.0,
    ):
        """kinds: those of the totals; term, identity: kind and identity of what is combined."""
        self.k, self.c, self.m, self.kinds = k, c, memory, kinds
        self.identity = k.const(identity, term)
        self.within = k.shared((WARPS_MOST + 1) * len(kinds))  # totals of warps, then of all
        self.worker, self.workers = k.warps
        # actual numbers: the sizes of the arrays are rounded up, and padding would cost as much
        self.items, self.slices = (k.load(memory.counts, j, cache="nc") for j in range(2))

    def terms(self, read: Value, index: Value, places: Value, masks: Value) -> Value:
        """The terms of several entries at places (where masks hold); index: their columns, n where
        masked."""
        raise NotImplementedError

    def combine(self, a: Value, b: Value) -> Value:
        """Combines two terms."""
        raise NotImplementedError

    def row(self, position: Value, mask: Value) -> tuple[Any, ...]:
        """The operands of the row at a position; loaded before its entries to overlap."""
        raise NotImplementedError

    def zeros(self) -> list[Value]:
        """Totals of no rows."""
        return [self.k.const(0, kind) for kind in self.kinds]

    def clear(self) -> None:
        """Clears the counters of finished segments, before the first step."""
        self.k.spread(self.c.splits, lambda i: self.k.store(self.m.arrived, i, 0))

    def sweep(self, read: Value, settle: Callable[..., Any]) -> tuple[Value, ...]:
        """totals = settle(row, y, mask, totals) for all rows of this thread; returns the totals.
        Terms are read from word `read` on."""
        k, c, m = self.k, self.c, self.m

        def slices(s0, *totals):
            at = k.several(BATCH, lambda b: s0 + b * self.workers)
            valid = at < self.slices
            rows = [self.row(c.base + 32 * s + k.lane, t) for s, t in one_by_one(at, valid)]
            start, end = k.row(m.starts, at, valid)
            ys = self._gather(read, (start + k.lane, end))
            for row, (y, t) in zip(rows, one_by_one(ys, valid), strict=True):
                totals = settle(row, y, t, totals)
            return totals

        def items(i0, *totals):
            at = k.several(BATCH, lambda b: i0 + b * self.workers)
            valid = at < self.items
            start, end, place, splits = k.load_vec(m.items, 4 * at, 4, mask=valid, cache="nc")
            rows = [self.row(p, t) for p, t in one_by_one(place, valid)]
            ys = self._gather(read, (start + k.lane, end))
            each = one_by_one(at, valid, splits, ys)
            for row, (i, t, split, y) in zip(rows, each, strict=True):
                y = k.warp_fold(self.combine, y)
                whole = functools.partial(self._segment, i, split, y)
                last, y = k.if_(t & (split >= 0), whole, 1, y)
                totals = settle(row, y, t & (k.lane == 0) & (last == 1), totals)
            return totals

        turn = self.workers * BATCH
        totals = k.for_(self.worker, self.items, turn, items, *self.zeros())
        # the workers that got no item of the last turn take the first slices
        first = (self.worker + (self.workers - self.items % self.workers)) % self.workers
        return k.for_(first, self.slices, turn, slices, *totals)

    def _gather(self, read: Value, spans: tuple[Any, Any]) -> Several:
        """The lane's fold of the terms of entries first, first + 32, ... below end, for each span
        (first, end); all of them are in flight together."""
        k, c, m = self.k, self.c, self.m

        def terms(places, masks):
            index = k.load(m.entries, places, mask=masks, other=c.n, cache="stream")
            return self.terms(read, index, places, masks)

        start = Several([self.identity] * BATCH)
        return fold_spans(k, spans, 32, UNROLL, terms, self.combine, start)[0]

    def _segment(self, i: Value, split: Value, y: Any) -> tuple[Value, ...]:
        """(1, y of the whole row) for the warp that finishes the last segment, (0, y) for others.
        Word `split` of `arrived` counts the finished segments."""
        k, m = self.k, self.m
        first, count = k.load_vec(m.splits, 2 * split, 2, cache="nc")
        mine = k.lane == 0
        k.store(m.partial, i, y, mask=mine)
        k.fence()
        before = k.shfl(k.atomic("add", m.arrived, split, 1, mask=mine), 0)
        k.fence()

        def whole():
            def part(j, total):
                return self.combine(total, k.load(m.partial, first + j, cache="fresh"))

            k.store(m.arrived, split, 0, mask=mine)  # for the next step
            return 1, self.k.warp_fold(
                self.combine, k.for_(k.lane, count, 32, part, self.identity)[0]
            )

        return k.if_(before == count - 1, whole, 0, y)

    def total(self, copy: Any, parts: Sequence[Value]) -> tuple[Value, ...]:
        """Ends a step with a grid barrier: (ok, *totals over all CTAs), in all threads. copy: 0 and
        1, alternating, the half of m.totals that is used."""
        k, m = self.k, self.m
        many = len(self.kinds)
        for j, x in enumerate(parts):
            word = WARPS_MOST * j + k.warp
            k.store(self.within, word, k.bits(k.warp_sum(x), "i32"), mask=k.lane == 0)
        k.sync()
        valid = k.lane < k.threads // 32

        def cta():
            for j, kind in enumerate(self.kinds):
                x = k.bits(k.load(self.within, WARPS_MOST * j + k.lane, mask=valid), kind)
                word = (many * copy + j) * k.ctas + k.cta
                k.store(m.totals, word, k.bits(k.warp_sum(x), "i32"), mask=k.lane == 0)

        k.if_(k.warp == 0, cta)
        (ok,) = k.grid_barrier(m.control)

        def all_ctas():
            loaded = []  # all loads are in flight together
            for j, kind in enumerate(self.kinds):
                for i in range(0, k.ctas, 32):
                    at, word = i + k.lane, (many * copy + j) * k.ctas + i + k.lane
                    x = k.load(m.totals, word, mask=at < k.ctas, cache="fresh")
                    loaded.append(k.bits(x, kind))
            each = -(-k.ctas // 32)
            for j in range(many):
                total = k.warp_sum(functools.reduce(operator.add, loaded[each * j :][:each]))
                word = WARPS_MOST * many + j
                k.store(self.within, word, k.bits(total, "i32"), mask=k.lane == 0)

        if many:
            k.if_(k.warp == 0, all_ctas)
            k.sync()
        return ok, *(
            k.bits(k.load(self.within, WARPS_MOST * many + j), kind)
            for j, kind in enumerate(self.kinds)
        )
