"""The push side of `any_degree.py`: queues of edge ranges and the level that expands them."""

import functools
from typing import Any

from ..frontier import range_count, write_ranges
from ..rows.flatten import flatten
from ..simt.primitives import Simt
from ..simt.typed import Array, Arrays, Operand, Value, one_by_one
from .problem import Problem


def append(
    k: Simt, span: int, tail: "UnbufferedTail", won: Value, start: Value, end: Value, vertex: Value
) -> None:
    """Cuts the rows start .. end of lanes with `won` into ranges and appends them to `tail`; all
    lanes of the warp take part.
    """
    parts = k.where(won, range_count(span, start, end), 0)
    upto, total = k.warp_scan(parts)

    def some():
        write(k, span, tail, tail.reserve(total), parts, (start, end, vertex, upto - parts))

    k.if_(total > 0, some)


def write(
    k: Simt, span: int, tail: "UnbufferedTail", base: Value, parts: Value, row: tuple[Value, ...]
) -> None:
    """Stores the ranges of every lane from position base + before on; row: (start, end, vertex,
    before). A negative base stands for position ~base of the queue itself, and positions then run
    downwards.
    """

    def store(j, s, e, v, offset):
        at, b = k.where(base < 0, base - offset - j, base + offset + j), s + j * span
        tail.store(at, (b, k.minimum(e, b + span), v, 0))

    write_ranges(k, parts, row, store)


class UnbufferedTail:
    """The end of the next queue, in global memory, for few ranges: each warp appends directly, by
    an atomic on `counter`, the array and the word of the length of the queue. They are in shared
    memory while one CTA works alone, else control words.
    """

    def __init__(self, k: Simt, c: Problem, m: Arrays, into: Any, counter: tuple[Array, Operand]):
        self.k, self.c, self.m, self.counter = k, c, m, counter
        self.base = into * c.capacity

    def reserve(self, total):
        """Position of the first of `total` ranges of this warp (valid in every lane)."""
        return self.k.reserve(*self.counter, total)

    def store(self, at, entry, mask=None):
        self.k.store_vec(self.m.queue, (self.base + at) * 4, entry, mask=mask)


class Tail(UnbufferedTail):
    """The same for all CTAs: each buffers its ranges in shared memory and appends them at the end
    of the level.

    This takes one atomic a CTA on control word `slot`, the length of the queue, instead of one a
    warp; atomics on one word take 1/1.7 ns each. Word 0 of `sums` counts the buffered ranges. If
    the buffer is full, a position in the queue itself is reserved immediately and encoded as
    ~position until `store` decodes it.
    """

    def __init__(self, k: Simt, c: Problem, m: Arrays, into: Any, slot: Value):
        super().__init__(k, c, m, into, (m.sums, 0))
        self.slot = slot

    def reserve(self, total):
        k, c, m = self.k, self.c, self.m
        at = super().reserve(total)

        def beyond():
            # fill the rest of the buffer with ranges of no edges
            def blank(i):
                k.store_vec(m.buffer, i * 4, (0, 0, 0, 0))

            k.for_(at + k.lane, c.buffer, 32, blank)
            return ~k.reserve(m.control, self.slot, total)

        return k.if_(at + total > c.buffer, beyond, at)[0]

    def store(self, at, entry, mask=None):
        k = self.k
        mask = k.const(True, "i1") if mask is None else mask
        k.store_vec(self.m.buffer, at * 4, entry, mask=mask & (at >= 0))
        k.store_vec(self.m.queue, (self.base + ~at) * 4, entry, mask=mask & (at < 0))

    def flush(self):
        k, c, m = self.k, self.c, self.m
        k.sync()
        count = k.minimum(k.load(m.sums, 0), c.buffer)

        def copy():
            mine = k.thread == 0
            base = k.atomic("add", m.control, self.slot, count, mask=mine)
            k.store(m.sums, 3, base, mask=mine)
            k.sync()
            k.store(m.sums, 0, 0, mask=mine)
            base = self.base + k.load(m.sums, 3)
            one = lambda i: k.store_vec(m.queue, (base + i) * 4, k.load_vec(m.buffer, i * 4, 4))  # noqa: E731
            k.for_(k.thread, count, k.threads, one)

        k.if_(count > 0, copy)


def push(
    k: Simt,
    c: Problem,
    m: Arrays,
    s: Any,
    warps: tuple[Value, Any],
    tail: "UnbufferedTail",
    queue: Operand,
    group: Any = 0,
) -> None:
    """One push level: visits the edges of the current queue, claims unvisited vertices, stores
    their levels and parents and, where `queue`, appends their edges to the next queue.

    Words group + 1 and group + 2 of `sums` count the claimed vertices and their edges.
    """
    level, ranges, half, cur, sums = s.level, s.ranges, s.half, s.cur, m.sums

    def chunk(i, mine, found, edges):
        at = (cur * c.capacity + i) * 4
        start, end, vertex, _ = k.load_vec(m.queue, at, 4, mask=mine, cache="fresh")

        def edge(at, valid, parent, found, edges):
            v = k.load(m.indices, at, mask=valid, other=c.n, cache="nc")
            valid = k.below(v, c.n)
            word = half * c.words + k.shr(v, 5)
            new = valid & (k.load(m.visited, word, mask=valid, other=-1) & k.bit(v) == 0)
            s, t = k.row(m.indptr, v, new)
            new = new & (k.atomic("or", m.visited, word, k.bit(v), mask=new) & k.bit(v) == 0)
            k.store(m.levels, v, level + 1, mask=new)
            if c.parents:
                k.store(m.parents, v, parent, mask=new)
            k.if_(queue, lambda: append(k, c.span, tail, new, s, t, v))
            return found + k.cast(new, "i32"), edges + k.where(new, t - s, 0)

        return flatten(k, start, end - start, (vertex,), edge, found, edges, unroll=1)

    found, edges = k.distribute(ranges, warps, chunk, 0, 0)
    k.add_sum(sums, group + 1, found, edges)


def collect(k: Simt, c: Problem, m: Arrays, level: Value, tail: "UnbufferedTail") -> None:
    """Makes the queue of the vertices of `level` from the levels: after a pull, or after a push
    that made none. Word 2 of `sums` counts their edges.
    """
    worker, workers = k.warps

    def stretch(v0, edges):
        v = k.several(4, lambda j: v0 + 32 * j + k.lane)
        mine = k.load(m.levels, v, mask=k.below(v, c.n), other=-1) == level

        def some():
            start, end = k.row(m.indptr, v, mine)
            for row in one_by_one(mine, start, end, v):
                k.if_(k.any(row[0]), functools.partial(append, k, c.span, tail, *row))
            return k.total(end - start, edges)

        return k.if_(k.any(mine), some, edges)

    (edges,) = k.for_(worker * 128, c.n, workers * 128, stretch, 0)
    k.add_sum(m.sums, 2, edges)
