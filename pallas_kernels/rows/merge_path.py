"""Rows of a CSR shared evenly by the warps of a grid, whatever their lengths: nothing prepared.

The rows and the entries of all rows, merged in their order, are cut into pieces of one size, one a
warp: where a piece begins follows from a search in the row offsets. That is the merge path of
Merrill and Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016. A `Shape`
walks the rows of a warp: entry by entry, with rows found in shared memory, where rows are short
(`stream.py`); some lanes for each row where they are longer (`lanes.py`).
"""

import dataclasses
import functools
import operator
import typing
from collections.abc import Callable, Sequence
from typing import Any

from ..layouts.ragged import LIMIT
from ..simt.primitives import Simt
from ..simt.typed import Array, Several, Value

Words = tuple[Value, ...]  # of one result


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
    """A shape of `merge_path.CsrRows` for rows sorted by length: each warp takes the first of a
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
