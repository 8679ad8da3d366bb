"""Rows of a CSR shared evenly by the warps of a grid, whatever their lengths: nothing prepared.

The rows and the entries of all rows, merged in their order, are cut into pieces of one size, one a
warp: where a piece begins follows from a search in the row offsets. That is the merge path of
Merrill and Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016. A warp
walks its rows, `lanes` lanes a row and `batch` rows of each group of lanes under way together;
rows much longer than that are taken by the whole warp.
"""

import dataclasses
import functools
import operator

WIDE = 8  # strides of a long row that are under way together
TURNS = 8  # a row that would take a group of lanes more turns than this is taken by the warp
LIMIT = 2**31 - 2**22  # rows and entries together that int32 can count


@dataclasses.dataclass(frozen=True)
class Lanes:
    """How a warp walks short rows.

    lanes: lanes a row, a power of two; batch: rows of each group of lanes that are under way
    together; unroll: entries of each row and lane that are; ahead: offsets are loaded a step before
    their rows; stream: entries do not stay in the L1 cache.
    """

    lanes: int
    batch: int
    unroll: int
    ahead: bool = False
    stream: bool = False


def lanes_for(rows: int, entries: int, table: tuple[tuple[float, Lanes], ...]) -> Lanes:
    """The first of a table of (largest mean length of a row, Lanes) that serves."""
    mean = entries / rows
    return next(shape for bound, shape in table if mean <= bound)


class CsrRows:
    """The walk of one warp over its rows; a kernel gives `terms` and `settle`."""

    def __init__(self, k, indptr, n, shape: Lanes, identity=None):
        """indptr: (n + 1,) row offsets. identity: that of `joined`; None: nothing is joined."""
        self.k, self.indptr, self.n, self.shape, self.identity = k, indptr, n, shape, identity
        self.cache = "stream" if shape.stream else "nc"
        self.group = k.shr(k.lane, shape.lanes.bit_length() - 1)
        self.member = k.lane & (shape.lanes - 1)

    def row(self, r, mask):
        """What belongs to row r, a tuple of values; loaded before its entries."""
        return ()

    def terms(self, places, masks, rows):
        """The terms of the entries at places (where masks hold), given `row` of each; or None."""
        raise NotImplementedError

    def joined(self, a, b):
        """Two terms joined."""
        raise NotImplementedError

    def settle(self, r, y, mask):
        """Takes the joined terms y of the part of row r that is in this piece; once a part."""

    def walk(self):
        """Everything this warp has to do."""
        k = self.k
        worker, workers = k.program * (k.threads // 32) + k.warp, k.programs * (k.threads // 32)
        total = k.load(self.indptr, self.n, cache="nc") + self.n
        piece = (total + (workers - 1)) // workers
        lows = [k.minimum((worker + j) * piece, total) for j in range(2)]
        (first, self.low, begin), (last, self.high, end) = self._bounds(lows)
        self.first, self.continued = first, self.low > begin
        stop = last + k.cast(self.high > end, "i32")
        step = 32 // self.shape.lanes * self.shape.batch

        def rows(base, *offsets):
            later = self._offsets(base + step, stop) if self.shape.ahead else ()
            self._rows(stop, base, *(offsets or self._offsets(base, stop)))
            return later

        k.for_(first, stop, step, rows, *(self._offsets(first, stop) if self.shape.ahead else ()))

    def _bounds(self, places):
        """(row, entry, first entry of that row) where each of some places on the path lies."""
        k, n = self.k, self.n
        rows, size = [k.const(0) for _ in places], n + 1
        while size > 1:  # 32 rows are compared in a step
            size = -(-size // 32)
            for j, d in enumerate(places):
                r = rows[j] + k.lane * size
                there = r <= n
                passed = there & (r + k.load(self.indptr, r, mask=there, cache="nc") <= d)
                rows[j] = rows[j] + (k.popc(k.ballot(passed)) - 1) * size
        found = []
        for r, d in zip(rows, places, strict=True):
            begin = k.load(self.indptr, r, cache="nc")
            end = k.load(self.indptr, r + 1, mask=r < n, other=-1, cache="nc")
            entry = d - r
            over = entry == end  # all its entries are in the piece before
            done = over & (end > begin)
            found.append((r + k.cast(done, "i32"), entry, k.where(done, end, begin)))
        return found

    def _places(self, base, stop):
        """The rows of this lane's group in a step, and whether they exist."""
        groups = 32 // self.shape.lanes
        at = [base + b * groups + self.group for b in range(self.shape.batch)]
        return at, [r < stop for r in at]

    def _offsets(self, base, stop):
        """Where their entries begin, then where they end."""
        at, there = self._places(base, stop)
        return tuple(
            self.k.load(self.indptr, r + j, mask=t, cache="nc")
            for j in range(2)
            for r, t in zip(at, there, strict=True)
        )

    def _rows(self, stop, base, *offsets):
        k, shape = self.k, self.shape
        at, there = self._places(base, stop)
        begins, ends = offsets[: shape.batch], offsets[shape.batch :]
        rows = [self.row(r, t) for r, t in zip(at, there, strict=True)]
        begins = [k.maximum(x, self.low) for x in begins]
        ends = [k.minimum(x, self.high) for x in ends]
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
            self.settle(at[b], ys[b] if ys else None, there[b] & (self.member == 0))

    def _long(self, long, begin, end, row, y):
        """The rows of a batch that are long, one after the other, by all lanes."""
        k, shape = self.k, self.shape
        word = k.ballot(long & (self.member == 0))

        def one(word, *y):
            lane = k.ctz(word)
            span = k.shfl(begin, lane) + k.lane, k.shfl(end, lane)
            found = self._entries([span], [tuple(k.shfl(v, lane) for v in row)], 32, WIDE)
            mine = self.group == k.shr(lane, shape.lanes.bit_length() - 1)
            y = [k.where(mine, self._over(32, new), old) for new, old in zip(found, y, strict=True)]
            return word & (word - 1), *y

        return k.while_(lambda word, *y: word != 0, one, word, *y)[1:]

    def _entries(self, spans, rows, stride, unroll):
        """The lane's join of the terms of entries first, first + stride, ... below the end of each
        span; [] if there is nothing to join."""
        k, many = self.k, len(spans)
        ends = [end for _, end in spans for _ in range(unroll)]
        owners = [row for row in rows for _ in range(unroll)]

        def some(*carry):
            at, ys = carry[:many], carry[many:]
            places = [a + stride * u for a in at for u in range(unroll)]
            masks = [p < end for p, end in zip(places, ends, strict=True)]
            terms = self.terms(places, masks, owners)
            if ys:
                parts = [terms[j : j + unroll] for j in range(0, len(terms), unroll)]
                ys = [self.joined(y, functools.reduce(self.joined, part))
                      for y, part in zip(ys, parts, strict=True)]  # fmt: skip
            return *(a + stride * unroll for a in at), *ys

        def left(*carry):
            more = [a < end for a, (_, end) in zip(carry, spans, strict=False)]
            return functools.reduce(operator.or_, more)

        start = [] if self.identity is None else [self.identity] * many
        return k.while_(left, some, *(first for first, _ in spans), *start)[many:]

    def _over(self, lanes, y):
        d = lanes // 2
        while d:
            y, d = self.joined(y, self.k.shfl_xor(y, d)), d // 2
        return y
