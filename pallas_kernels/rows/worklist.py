"""A worklist of rows, cut into short pieces and processed in rounds: by all CTAs, or by one CTA
while there are few pieces."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..frontier import Carry
from ..simt.primitives import Simt
from ..simt.typed import Array, Mask, Operand, Several, Value
from ..tuning import constants

PIECE = 32  # edges of a piece at most
CAPACITY = 2048  # pieces of a round that this CTA has in shared memory
TABLE = 1024  # entries of the hash table of rows that a round of one CTA has listed
MANY = 8  # a row of so many pieces or more is listed by all lanes of the warp
TURNS = 4
COUNT, MORE, THIRD, FOURTH = range(4)  # control words of a turn: pieces listed; the kernel's own
SET = 4

Row = tuple[Value, ...]  # begin, end and payload of each lane: a row, or a piece of one
Put = Callable[[Row], None]
Visit = Callable[[Row, Put, Value, bool], None]
Refill = Callable[[Put, Callable[[], Value]], Value]


@dataclasses.dataclass
class Rounds(Carry):
    """The carry of the loop over rounds, equal in all CTAs."""

    ok: Any
    turn: Any
    part: Any
    count: Any  # pieces of round `part`


class Worklist:
    """Pieces of rows for this round and for the next, in two alternating halves of an array.

    A piece is `width` words: begin, end, payload. Pieces are distributed to warps round robin, so
    that neighbouring rows of similar length go to different warps. A round of all CTAs ends with a
    grid barrier. Small rounds follow each other in one CTA, which has the list in shared memory.
    `turn` counts grid barriers, `part` counts rounds; a round lists pieces for the next one.

    Control words, from `first` on: TURNS sets of SET words, set turn & (TURNS - 1) for a
    turn; then the part and the number of pieces that CTA 0 reports after small rounds.
    """

    def __init__(self, k: Simt, control: Array, first: int, a: Array, capacity: int, width: int):
        """first: index of its first control word, all zero; a: array of 2 `capacity` pieces."""
        self.k, self.control, self.first = k, control, first
        self.a, self.pieces, self.width = a, capacity, width
        self.local, self.found = k.shared(2 * CAPACITY * width), k.shared(4)
        self.seen = k.shared(TABLE)
        self.solo = min(constants().solo_pieces, CAPACITY)  # pieces of a round that one CTA does

    CONTROL_WORDS = TURNS * SET + 2

    @staticmethod
    def shared_words(width: int) -> int:
        """Number of words of shared memory."""
        return 2 * CAPACITY * width + TABLE + 12

    @staticmethod
    def capacity(rows: int, edges: int) -> int:
        """The most pieces that `rows` rows with `edges` edges make."""
        return rows + edges // PIECE + 1

    def word(self, turn: Any, j: Any = COUNT) -> Any:
        """Index of control word j of a turn, which is zero when the turn begins."""
        return self.first + (turn & (TURNS - 1)) * SET + j

    def clear(self, turn: Value) -> None:
        """Clears the control words of the next turn, which are not in use before the next
        barrier."""
        k = self.k
        mine = (k.cta == 0) & (k.thread < SET)
        k.store(self.control, self.word(turn + 1, k.thread), 0, mask=mine)

    def put(self, turn: Any, part: Any, row: Row) -> None:
        """Lists rows for the round after `part`: (begin, end, ...) of each lane of a warp, or of
        several of each; nothing where begin is end.
        """
        at = ((part + 1) & 1) * self.pieces

        def store(place, piece, mask=None):
            self._store(at + place, piece, mask)

        self._put(row, (self.control, self.word(turn)), store)

    def first_time(self, row: Value, mask: Value) -> Value:
        """In a round of one CTA: true if the row is not in the hash table, which it enters; may be
        true again after another row has replaced it there.
        """
        before = self.k.atomic("exch", self.seen, row & (TABLE - 1), row, mask=mask)
        return mask & (before != row)

    def _clear_table(self) -> None:
        k = self.k
        k.for_(k.thread, TABLE, k.threads, lambda i: k.store(self.seen, i, -1))

    def _put(self, row: Row, counter: tuple[Array, Operand], store: Any) -> None:
        k, rows = self.k, [row]
        if isinstance(row[0], Several):
            rows = list(zip(*row, strict=True))
        sizes = [(end - begin + (PIECE - 1)) // PIECE for begin, end, *_ in rows]
        mine = k.total(sizes)
        upto, total = k.warp_scan(mine)

        def some():
            place = k.reserve(*counter, total) + upto - mine
            for row, size in zip(rows, sizes, strict=True):
                self._pieces(row, size, place, store)
                place = place + size

        k.if_(total > 0, some)

    def _pieces(self, row: Row, size: Value, place: Value, store: Any) -> None:
        """Stores the pieces of each lane's row from `place` on; long rows are stored by all
        lanes."""
        k = self.k
        long = size >= MANY

        def one(begin, end, payload, place, j, mask=None):
            low = begin + j * PIECE
            store(place + j, (low, k.minimum(low + PIECE, end), *payload), mask)

        begin, end, *payload = row
        k.for_(0, k.where(long, 0, size), 1, lambda j: one(begin, end, payload, place, j))

        def by_warp(owner):
            of_owner = [k.shfl(x, owner) for x in (begin, end, place, size, *payload)]

            def stride(j0):
                j = j0 + k.lane
                one(of_owner[0], of_owner[1], of_owner[4:], of_owner[2], j, mask=j < of_owner[3])

            k.for_(0, of_owner[3], 32, stride)

        k.each_bit(k.ballot(long), by_warp)

    def _store(self, place: Value, piece: Sequence[Value], mask: Mask) -> None:
        k = self.k
        words = (*piece, *(k.const(0) for _ in range(self.width - len(piece))))
        k.store_vec(self.a, place * self.width, words, mask=mask)

    def run(
        self,
        visit: Visit,
        ok: Operand,
        turn: Operand,
        part: Operand,
        count: Operand,
        refill: tuple[Operand, Refill] | None = None,
    ) -> tuple[Value, Value, Value]:
        """Runs rounds until nothing is listed; returns (ok, turn, part). count: pieces of round
        `part`.

        visit(pieces, put, part, alone): called for the pieces of a warp, one a lane, (begin, size,
        ...) with size 0 for a lane without one. put(row) lists rows for the next round. alone:
        whether one CTA does the round, where latency counts and not the amount of loads. `visit` is
        traced once for each value of `alone`.

        refill = (last, f): if `last` is not 0, the CTA that does rounds alone does all others too,
        whatever their sizes, and calls f(put, listed) when nothing is listed. f puts rows of new
        work; listed() waits for the CTA and gives their number, which f returns, 0 to end.
        """
        k, control = self.k, self.control
        part_word, count_word = (self.first + TURNS * SET + j for j in range(2))

        def round_(s: Rounds) -> None:
            small = s.count <= self.solo
            self.clear(s.turn)
            report = part_word, count_word
            by_one_cta = lambda: self._by_one_cta(visit, s, report, refill)  # noqa: E731
            k.if_(small & (k.cta == 0), by_one_cta)
            k.if_(~small, lambda: self._by_all_ctas(visit, s))
            words = [(control, word) for word in (self.word(s.turn), part_word, count_word)]
            s.ok, count, after, left = k.grid_barrier(control, words)
            s.turn = s.turn + 1
            s.part, s.count = k.where(small, after, s.part + 1), k.where(small, left, count)

        last = Rounds(ok, turn, part, count).loop(k, lambda s: (s.ok != 0) & (s.count > 0), round_)
        return last.ok, last.turn, last.part

    def _by_all_ctas(self, visit: Visit, s: Rounds) -> None:
        k, at = self.k, (s.part & 1) * self.pieces

        def some(i, valid):
            place = (at + i) * self.width
            piece = k.load_vec(self.a, place, self.width, mask=valid, cache="fresh")
            put = lambda row: self.put(s.turn, s.part, row)  # noqa: E731
            visit(self._piece(piece, valid), put, s.part, False)

        k.round_robin(s.count, k.warps, some)

    def _piece(self, words: Sequence[Value], valid: Value) -> Row:
        begin, end, *payload = words
        return begin, self.k.where(valid, end - begin, 0), *payload

    def _by_one_cta(
        self, visit: Visit, s: Rounds, words: tuple[int, int], refill: tuple[Operand, Refill] | None
    ) -> None:
        """Rounds of this CTA while they are small; writes part and count to the control words
        `words`.

        The next turn is a round of all CTAs or the end, so all CTAs have read these two words
        before they are written again.
        """
        k, width, part, count = self.k, self.width, s.part, s.count
        last, more = refill or (None, None)
        half = lambda part: (part & 1) * (CAPACITY * width)  # noqa: E731
        begin = (part & 1) * self.pieces

        def fetch(i):
            words = k.load_vec(self.a, (begin + i) * width, width, cache="fresh")
            for j, word in enumerate(words):
                k.store(self.local, half(part) + i * width + j, word)

        k.store(self.found, k.thread, 0, mask=k.thread < 4)
        self._clear_table()
        k.for_(k.thread, count, k.threads, fetch)
        k.sync()

        def round_(part, count):
            at, behind = half(part + 1), ((part + 1) & 1) * self.pieces

            def store(place, piece, mask):
                inside = place < CAPACITY
                mine, over = (inside, ~inside) if mask is None else (inside & mask, ~inside & mask)
                for j, word in enumerate(piece):
                    k.store(self.local, at + place * width + j, word, mask=mine)
                self._store(behind + place, piece, over)

            def some(i, valid):
                mine = valid if last is None else valid & (i < CAPACITY)
                words = [
                    k.load(self.local, half(part) + i * width + j, mask=mine) for j in range(width)
                ]
                if last is not None:
                    at, over = (part & 1) * self.pieces + i, valid & (i >= CAPACITY)
                    words = k.if_(k.any(over), lambda: beyond(at, over, words), *words)
                visit(self._piece(words, valid), put, part, True)

            def beyond(at, over, words):
                found = k.load_vec(self.a, at * width, width, mask=over, cache="fresh")
                return tuple(k.where(over, new, old) for new, old in zip(found, words, strict=True))

            def put(row):
                self._put(row, (self.found, part & 1), store)

            def listed():
                k.sync()
                return k.load(self.found, part & 1)

            k.round_robin(count, (k.warp, k.threads // 32), some)
            count = listed()
            k.store(self.found, (part + 1) & 1, 0, mask=k.thread == 0)
            self._clear_table()
            k.sync()
            if last is not None and more is not None:
                empty = (last != 0) & (count == 0)
                (count,) = k.if_(empty, functools.partial(more, put, listed), count)
            return part + 1, count

        def going(part, count):
            small = count <= self.solo
            return (count > 0) & (small if last is None else small | (last != 0))

        part, count = k.while_(going, round_, part, count)
        behind = (part & 1) * self.pieces

        def back(i):
            words = [k.load(self.local, half(part) + i * width + j) for j in range(width)]
            self._store(behind + i, words, None)

        k.for_(k.thread, k.minimum(count, CAPACITY), k.threads, back)
        for word, value in zip(words, (part, count), strict=True):
            k.store(self.control, word, value, mask=k.thread == 0)
