"""Rows of a CSR in many more pieces than warps, which warps take one by one: for walks that are
repeated.

With one piece a warp, as in `merge_path.py`, all warps wait for the slowest one, whose rows suit
its lanes least. Here pieces are an eighth as long, and a warp that is done takes the next one. This
also evens out CTAs, which do not get equal bandwidth (150 to 250 us for equal shares of rmat21's
entries on an H200). The begins of the pieces are searched once and stored. A row shorter than a
part of a piece stays whole in the piece where it begins. A longer row may be cut: each piece stores
its part, and the parts are added in a fixed order, so the result does not depend on which warp
walks a piece.

Cost in addition to the walk: an atomic, two vectors and some 1.3 us of latency a piece, 8 bytes a
row and a word a sum and piece; a grid barrier, and the parts of cut rows read once more.
"""

from collections.abc import Callable
from typing import Any

from ..simt.primitives import Simt
from ..simt.typed import Value, one_by_one
from .merge_path import CsrRows

WORDS = 4  # of a piece: first row, first entry, whether the row began before, last: see `find`
WHOLE = 4  # a row shorter than 1 / WHOLE of a piece is not cut
AHEAD = 8  # parts of a row that are loaded together


class RowsInPieces(CsrRows):
    """`CsrRows` in pieces that warps take one by one; a kernel defines the same methods as there
    except `settle`.

    m: memory with `indptr`, the arrays of `workspace`, and `control`. rows: (n, streams, shape,
    identity, row_cost), as for `CsrRows`.
    """

    def __init__(self, k: Simt, m: Any, pieces: int, *rows: Any):
        super().__init__(k, m.indptr, *rows)
        self.m, self.pieces = m, pieces
        self.warps = k.cta * (k.threads // 32) + k.warp, k.ctas * (k.threads // 32)
        self.piece: Any = None  # the one that is walked

    @staticmethod
    def workspace(n: Any, pieces: int, totals: int, dtype: Any) -> dict[str, Any]:
        """name -> (size, dtype) of the outputs that it needs; totals: number of sums over rows that
        `each_row` returns; dtype: that of a row's y."""
        return {
            **{"next": 1, "pieces": WORDS * (pieces + 1), "totals": totals * pieces},
            **{"parts": (pieces, dtype), "sums": (n, dtype)},
        }

    def find(self) -> None:
        """Stores where the pieces begin; a grid barrier must follow.

        If a row is cut, the first piece that continues it has as fourth word the number of the
        piece after the last that does. The fourth word of all other pieces is 0.
        """
        k, cost, pieces = self.k, self.row_cost, self.pieces
        total = k.load(self.indptr, self.n, cache="nc") + self.n * cost
        size = (total + (pieces - 1)) // pieces

        def one(p):
            at = k.minimum(p * size, total)
            ((row, entry, begin),) = self._bounds([at])
            end = k.load(self.indptr, k.minimum(row + 1, self.n), cache="nc")
            entry = k.where(end - begin < size // WHOLE, begin, entry)
            before = entry > begin
            start = row * cost + begin  # of the row on the path
            stop = (row * cost + end - 1) // size + 1
            stop = k.where(before & (at - size <= start), stop, 0)
            words = row, entry, k.cast(before, "i32"), stop
            k.store_vec(self.m.pieces, WORDS * p, words, mask=k.lane == 0)

        worker, workers = self.warps
        k.for_(worker, pieces + 1, workers, one)
        k.store(self.m.next, 0, 0, mask=(k.cta == 0) & (k.thread == 0))

    def settle(self, r: Value, y: Any, mask: Value) -> None:
        k = self.k
        head = self.continued & (r == self.first)
        k.store(self.m.sums, r, y, mask=mask & ~head)
        k.store(self.m.parts, self.piece, y, mask=mask & head)

    def each_row(self, f: Callable[..., Any], *zeros: Value) -> tuple[Value, ...]:
        """Walks all rows; f(row, its y) gives the terms of the sums. Returns (ok, *sums of this
        thread).

        There is a grid barrier before the rows that are cut; another one must follow before the
        next walk. A counter (`m.next`) assigns pieces to warps, but sums are stored for each piece,
        so sums over all threads are the same in every run.
        """
        k, m, many = self.k, self.m, len(zeros)
        kinds = [zero.kind for zero in zeros]

        def piece(p):
            first, stop = self._walk(p)
            k.sync_warp()  # other lanes wrote `m.sums`

            def row(r, *sums):
                return self._plus(sums, f(r, k.load(m.sums, r, cache="fresh")))

            sums = k.for_(first + k.lane, stop, 32, row, *zeros)
            for j, x in enumerate(sums):
                k.store(m.totals, many * p + j, k.bits(k.warp_sum(x), "i32"), mask=k.lane == 0)
            return self.warps[1] + k.reserve(m.next, 0, k.const(1))

        # the first pieces: consecutive ones go to different CTAs
        k.while_(lambda p: p < self.pieces, piece, k.warps[0])
        (together,) = k.grid_barrier(m.control)
        k.store(m.next, 0, 0, mask=(k.cta == 0) & (k.thread == 0))

        def rest(p, valid, *sums):
            at = [many * p + j for j in range(many)]
            words = [k.load(m.totals, i, mask=valid, cache="fresh") for i in at]
            totals = [k.bits(word, kind) for word, kind in zip(words, kinds, strict=True)]
            return self._cut(p, valid, f, self._plus(sums, totals))

        return together, *k.distribute(self.pieces, self.warps, rest, *zeros)

    def _plus(self, sums: Any, terms: Any) -> tuple[Value, ...]:
        return tuple(x + y for x, y in zip(sums, terms, strict=True))

    def _walk(self, p: Value) -> tuple[Value, Value]:
        """Walks a piece; its rows that are whole: the first, and behind the last."""
        k, m = self.k, self.m
        self.first, self.low, before, _ = k.load_vec(m.pieces, WORDS * p, WORDS)
        last, self.high, more, _ = k.load_vec(m.pieces, WORDS * (p + 1), WORDS)
        self.piece, self.continued = p, before == 1
        self.walk_rows(self.first, last + more)
        return self.first + before, last

    def _cut(self, p: Value, valid: Value, f: Callable[..., Any], sums: Any) -> tuple[Value, ...]:
        """Adds f(row, its y) to the sums for the cut row whose first continuation is piece p."""
        k, m = self.k, self.m
        row, _, _, stop = k.load_vec(m.pieces, WORDS * p, WORDS, mask=valid)
        cut = stop > 0
        y = k.load(m.sums, row, mask=cut, cache="fresh")
        at = k.several(AHEAD, lambda j: p + j)
        near = cut & (at < stop)
        for t, part in one_by_one(near, k.load(m.parts, at, mask=near, cache="fresh")):
            y = k.where(t, self.combine(y, part), y)

        def rest(lane, y):
            first, behind = k.shfl(p, lane) + AHEAD, k.shfl(stop, lane)

            def some(i, z):
                return self.combine(z, k.load(m.parts, i, cache="fresh"))

            z = k.for_(first + k.lane, behind, 32, some, self.identity)[0]
            z = k.warp_fold(self.combine, z)
            return k.where(k.lane == lane, self.combine(y, z), y)

        (y,) = k.each_bit(k.ballot(cut & (p + AHEAD < stop)), rest, y)
        return k.if_(cut, lambda: self._plus(sums, f(row, y)), *sums)
