"""Rows of a CSR shared evenly by the warps of a grid, whatever their lengths: nothing prepared.

The rows and the entries of all rows, merged in their order, are cut into pieces of one size, one a
warp: where a piece begins follows from a search in the row offsets. That is the merge path of
Merrill and Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016. A `Shape`
walks the rows of a warp: entry by entry, with rows found in shared memory, where rows are short
(`stream.py`); some lanes for each row where they are longer (`lanes.py`).

If a row is cut between warps, `WholeRows` combines its parts within the CTA after a CTA barrier,
and between CTAs by the last of them to finish, in the order of the entries: no CTA waits for
another, and results do not change from run to run.
"""

import dataclasses
import functools
import operator
import typing
from collections.abc import Callable, Sequence
from typing import Any

from ..layouts.ragged import LIMIT
from ..simt.primitives import ARRIVALS, Simt
from ..simt.typed import Array, Several, Value

Words = tuple[Value, ...]  # of one result
AHEAD = 8  # CTAs whose parts of one row are loaded together


class Shape(typing.Protocol):
    """How a warp walks its rows."""

    def shared_words(self, threads: int, words: int = 1) -> int:
        """Words of shared memory of a CTA, for results of some words."""
        ...

    def walk_of(self, job: "CsrRows") -> Callable[[Value, Value], None]:
        """walk(first, stop), which does these rows of `job`; made outside of control flow."""
        ...


def shape_for(rows: int, entries: int, table: tuple[tuple[float, Shape], ...]) -> Shape:
    """The first of a table of (largest mean length of a row, shape) that serves."""
    mean = entries / rows
    return next(shape for bound, shape in table if mean <= bound)


class CsrRows:
    """The work of one warp; a kernel defines `row`, `wanted`, `terms`, `combine` and `settle`.

    low, high: the entries low .. high - 1 are this warp's piece; its first and its last row may
    extend beyond them. continued: whether `first`, its first row, began in the piece before.
    """

    def __init__(
        self,
        k: Simt,
        indptr: Array,
        n: Any,
        streams: Any,
        shape: Shape,
        identity: Any = None,
        row_cost: int = 1,
    ):
        """indptr: (n + 1,) row offsets. streams: arrays with one word an entry, its column first.
        identity: that of `combine`; None: nothing is combined. row_cost: entries that a row counts
        for, in addition to its own, where pieces are cut. A value above 1 also shares rows that are
        sorted by length evenly; row_cost n + nse < LIMIT.
        """
        self.row_cost = row_cost
        self.k, self.indptr, self.n, self.streams, self.identity = k, indptr, n, streams, identity
        self.walk_rows = shape.walk_of(self)

    def row(self, r: Value, mask: Value) -> tuple[Any, ...]:
        """The operands of row r, a tuple of values; loaded before its entries."""
        return ()

    def wanted(self, row: tuple[Value, ...]) -> Any:
        """Whether the entries of a row, by its values, count at all; others may be skipped."""
        return True

    def fetch(self, places: Value, masks: Value, cache: str) -> list[Value]:
        """The values of `streams` at several entries; where a mask is false, column -1."""
        return [
            self.k.load(a, places, mask=masks, other=-1 if j == 0 else 0, cache=cache)
            for j, a in enumerate(self.streams)
        ]

    def terms(self, fetched: Any, places: Several, masks: Value, owners: Callable[[], Any]) -> Any:
        """The terms of several entries at places (where masks hold), or None. fetched: their
        values, by `fetch`; owners() gives the `row` of each and is called by all lanes together.
        """
        raise NotImplementedError

    def combine(self, a: Any, b: Any) -> Any:
        """Combines two terms: values, or tuples of words where terms have several."""
        raise NotImplementedError

    def joined(self, a: Words, b: Words) -> Words:
        """`combine` of results as tuples."""
        return words(self.combine(*a, *b) if len(a) == 1 else self.combine(a, b))

    def settle(self, r: Value, y: Any, mask: Value) -> None:
        """Called once for each row of the piece: y are the combined terms of row r, or of the part
        of it in this piece."""

    def walk(self) -> None:
        """Does the work of this warp."""
        k = self.k
        worker, workers = k.cta * (k.threads // 32) + k.warp, k.ctas * (k.threads // 32)
        total = k.load(self.indptr, self.n, cache="nc") + self.n * self.row_cost
        piece = (total + (workers - 1)) // workers
        lows = [k.minimum((worker + j) * piece, total) for j in range(2)]
        (first, self.low, begin), (last, self.high, end) = self._bounds(lows)
        self.first, self.continued = first, self.low > begin
        self.walk_rows(first, last + k.cast(self.high > end, "i32"))

    def _bounds(self, places: Sequence[Value]) -> list[tuple[Value, Value, Value]]:
        """(row, entry, first entry of that row) of each of some places on the path."""
        k, indptr, n, cost = self.k, self.indptr, self.n, self.row_cost
        rows = search(k, indptr, n, places, cost)
        return [place(k, indptr, n, r, d, cost) for r, d in zip(rows, places, strict=True)]


def words(result: Any) -> Words:
    """A result as a tuple."""
    return result if isinstance(result, tuple) else (result,)


def where(k: Simt, mask: Value, a: Words, b: Words) -> Words:
    """a where the mask holds, else b, word by word."""
    return tuple(k.where(mask, x, y) for x, y in zip(a, b, strict=True))


def search(k: Simt, indptr: Array, n: Any, places: Sequence[Value], cost: int = 1) -> list[Value]:
    """The last row that begins at or before each of some places on the path; called by all lanes of
    a warp."""
    rows, size = [k.const(0) for _ in places], n + 1
    while size > 1:  # 32 rows are compared in a step
        size = -(-size // 32)
        for j, d in enumerate(places):
            r = rows[j] + k.lane * size
            valid = r <= n
            passed = valid & (r * cost + k.load(indptr, r, mask=valid, cache="nc") <= d)
            rows[j] = rows[j] + (k.popc(k.ballot(passed)) - 1) * size
    return rows


def place(
    k: Simt, indptr: Array, n: Any, r: Value, d: Value, cost: int = 1
) -> tuple[Value, Value, Value]:
    """(row, entry, first entry of that row) at place d of the path; r: by `search`."""
    begin = k.load(indptr, r, cache="nc")
    end = k.load(indptr, r + 1, mask=r < n, other=LIMIT, cache="nc")
    entry = k.minimum(d - r * cost, end)
    # the row is done: all its entries are in the piece before, and it has some or began there
    done = (entry == end) & (d - r * cost > begin)
    return r + k.cast(done, "i32"), entry, k.where(done, end, begin)


@dataclasses.dataclass(frozen=True)
class ByLength:
    """A shape of `CsrRows` for rows sorted by length: each warp takes the first of a
    table of (largest mean length of a row, shape) that fits its rows. The last bound is ignored.
    """

    table: tuple[tuple[float, Shape], ...]

    def shared_words(self, threads: int) -> int:
        return sum(shape.shared_words(threads) for _, shape in self.table)

    def walk_of(self, job: Any) -> Callable[[Value, Value], None]:
        k, walks = job.k, [shape.walk_of(job) for _, shape in self.table]

        def walk(first, stop):
            mean = k.cast(job.high - job.low, "f32") / k.cast(k.maximum(stop - first, 1), "f32")
            longer = [k.const(True, "i1"), *(mean > bound for bound, _ in self.table[:-1])]
            for j, one in enumerate(walks):
                others = [~x for x in longer[j + 1 : j + 2]]
                mine = functools.reduce(operator.and_, others, longer[j])
                k.if_(mine, functools.partial(one, first, stop))

        return walk


def shared_words(many: int) -> int:
    """Words of shared memory of a CTA, for results of some words."""
    return 32 * (1 + many) + 4  # a row and a result of each warp; whether this CTA is the last


class WholeRows(CsrRows):
    """Every row's terms in y, arrays with one word of each result each.

    `m` has `rows` and `control`; parts: as y, of one element a CTA. A kernel defines `terms` and
    `combine`, whose values are words, or tuples of words where there are several.
    """

    def __init__(self, k: Simt, m: Any, y: Sequence[Array], parts: Sequence[Array], *rows: Any):
        """rows: (n, streams, shape, identity), as for `CsrRows`."""
        super().__init__(k, m.indptr, *rows)
        self.m, self.y, self.parts = m, y, parts
        self.heads = [k.shared(32), *(k.shared(32, v.kind) for v in words(self.identity))]
        self.flag = k.shared(1)

    def settle(self, r, y, mask):
        k = self.k
        head = self.continued & (r == self.first)
        _store(k, self.y, r, words(y), mask & ~head)
        _store(k, self.heads[1:], k.warp, words(y), mask & head)

    def run(self) -> None:
        """The work of one thread."""
        k, m = self.k, self.m
        self.walk()
        k.store(self.heads[0], k.warp, k.where(self.continued, self.first, -1), mask=k.lane == 0)
        k.sync()
        k.if_(k.warp == 0, self._join_in_cta)
        k.sync()

        def arrive():
            k.fence()
            before = k.atomic("add", m.control, ARRIVALS, 1)
            k.fence()
            k.store(self.flag, 0, k.cast(before == k.ctas - 1, "i32"))

        k.if_(k.thread == 0, arrive)
        k.sync()
        last = k.load(self.flag, 0) == 1
        k.if_(last & (k.thread < k.ctas), self._join_ctas)

    def _join_in_cta(self) -> None:
        """By one warp: the parts of rows that began in an earlier warp.

        A row that begins in this CTA is completed in y. For a row that began in an earlier CTA,
        rows[cta] and parts[cta] get the part of this CTA; rows[cta] = -1: none.
        """
        k, m, heads = self.k, self.m, self.heads
        valid = k.lane < k.threads // 32
        row = k.load(heads[0], k.lane, mask=valid, other=-1)
        value = tuple(k.load(head, k.lane, mask=valid & (row >= 0)) for head in heads[1:])
        for d in (1, 2, 4, 8, 16):  # the first lane of a run of equal rows combines 2 d of them
            after, part = k.shfl(row, k.lane + d), tuple(k.shfl(v, k.lane + d) for v in value)
            same = (k.lane + d < 32) & (after == row)
            value = where(k, same, self.joined(value, part), value)
        before = k.shfl_up(row, 1)
        begins = (row >= 0) & ((k.lane == 0) | (before != row))
        mine = begins & (k.lane > 0)  # the row begins in this CTA: its first part is in y
        first = tuple(k.load(y, row, mask=mine, cache="fresh") for y in self.y)
        _store(k, self.y, row, self.joined(first, value), mine)
        k.store(m.rows, k.cta, row, mask=k.lane == 0)
        _store(k, self.parts, k.cta, value, k.lane == 0)

    def _join_ctas(self) -> None:
        """By the threads of the last CTA: the rows that several CTAs share."""
        k, rows = self.k, self.m.rows

        def look(p):
            row = k.load(rows, p, cache="fresh")
            before = k.load(rows, p - 1, mask=p > 0, other=-1, cache="fresh")

            def whole():
                def some(p, more, *value):
                    for j in range(AHEAD):
                        at = p + j
                        valid = k.below(at, k.ctas)
                        same = k.load(rows, at, mask=valid, other=-1, cache="fresh") == row
                        part = tuple(k.load(a, at, mask=same, cache="fresh") for a in self.parts)
                        value, more = where(k, same, self.joined(value, part), value), same
                    return p + AHEAD, more, *value

                start = [k.load(y, row, cache="fresh") for y in self.y]
                going = k.const(True, "i1")
                _, _, *value = k.while_(lambda p, more, *value: more, some, p, going, *start)
                _store(k, self.y, row, value)

            k.if_((row >= 0) & (before != row), whole)

        k.for_(k.thread, k.ctas, k.threads, look)


def _store(
    k: Simt, arrays: Sequence[Array], i: Value, values: Sequence[Value], mask: Value | None = None
) -> None:
    for array, value in zip(arrays, values, strict=True):
        k.store(array, i, value, mask=mask)
