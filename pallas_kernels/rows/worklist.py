"""Rows listed in short pieces, taken in rounds: by all CTAs, or by one while they are few."""

from .flatten import flatten

PIECE = 32  # edges of a piece at most
SOLO = 128  # pieces of a round up to which one CTA goes on alone
CAPACITY = 2048  # pieces of a round that this CTA keeps in shared memory
SENT = 1024  # places in the table of rows that a round of one CTA has listed
MANY = 8  # pieces of a row from which the lanes of a warp list them together
TURNS = 4
COUNT, MORE = range(2)  # words of a turn: pieces listed, and one for the kernel
SET = 2


class Worklist:
    """Pieces of rows for this round and for the next, in two halves of an array that take turns.

    A piece is `width` words: where it begins and ends, and payload. Pieces are dealt to warps one
    by one, so that rows of like length that follow each other go to different ones. A round ends
    with a grid barrier; rounds of few pieces follow each other in one CTA, whose list is in shared
    memory then. `turn` counts barriers, `part` rounds: what is listed in a round is of the next.
    """

    def __init__(self, k, control, first, a, capacity, width):
        """first: of its CONTROL_WORDS in control, zero; a: 2 `capacity` pieces."""
        self.k, self.control, self.first = k, control, first
        self.a, self.capacity, self.width = a, capacity, width
        self.local, self.found = k.shared(2 * CAPACITY * width), k.shared(4)
        self.told = k.shared(SENT)

    CONTROL_WORDS = TURNS * SET + 2

    @staticmethod
    def shared_words(width):
        """How many words of shared memory it takes."""
        return 2 * CAPACITY * width + SENT + 12

    @staticmethod
    def capacity(rows, edges):
        """Pieces that so many rows of so many edges make at most."""
        return rows + edges // PIECE + 1

    def word(self, turn, j=COUNT):
        """A control word of a turn, zero when it begins."""
        return self.first + (turn & (TURNS - 1)) * SET + j

    def clear(self, turn):
        """The words of the next turn, which nobody reads or writes before the next barrier."""
        k = self.k
        mine = (k.cta == 0) & (k.thread < SET)
        k.store(self.control, self.word(turn + 1, k.thread), 0, mask=mine)

    def put(self, turn, part, rows):
        """Lists rows for the round after `part`: (begin, end, ...) of each lane of a warp, several
        a lane in a list; nothing where begin is end.
        """
        at = ((part + 1) & 1) * self.capacity

        def store(place, piece, mask=None):
            self._store(at + place, piece, mask)

        self._put(rows, (self.control, self.word(turn)), store)

    def unheard(self, row, mask):
        """In a round of one CTA: whether nobody has asked for this row before; some are told so
        again, where another row took its place in the table between.
        """
        before = self.k.atomic("exch", self.told, row & (SENT - 1), row, mask=mask)
        return mask & (before != row)

    def _forget(self):
        k = self.k
        k.for_(k.thread, SENT, k.threads, lambda i: k.store(self.told, i, -1))

    def _put(self, rows, counter, store):
        k = self.k
        sizes = [(end - begin + (PIECE - 1)) // PIECE for begin, end, *_ in rows]
        mine = sum(sizes[1:], start=sizes[0])
        upto, total = k.warp_scan(mine)

        def some():
            base = k.atomic("add", *counter, total, mask=k.lane == 0)
            place = k.shfl(base, 0) + upto - mine
            for row, size in zip(rows, sizes, strict=True):
                self._pieces(row, size, place, store)
                place = place + size

        k.if_(total > 0, some)

    def _pieces(self, row, size, place, store):
        """Stores the pieces of each lane's row at `place` and behind; of long rows all lanes do."""
        k = self.k
        long = size >= MANY

        def one(begin, end, payload, place, j, mask=None):
            low = begin + j * PIECE
            store(place + j, (low, k.minimum(low + PIECE, end), *payload), mask)

        begin, end, *payload = row
        k.for_(0, k.where(long, 0, size), 1, lambda j: one(begin, end, payload, place, j))

        def together(left):
            owner = k.ctz(left)
            theirs = [k.shfl(x, owner) for x in (begin, end, place, size, *payload)]

            def stride(j0):
                j = j0 + k.lane
                one(theirs[0], theirs[1], theirs[4:], theirs[2], j, mask=j < theirs[3])

            k.for_(0, theirs[3], 32, stride)
            return left & (left - 1)

        k.while_(lambda left: left != 0, together, k.ballot(long))

    def _store(self, place, piece, mask):
        k = self.k
        words = (*piece, *(k.const(0) for _ in range(self.width - len(piece))))
        k.store_vec(self.a, place * self.width, words, mask=mask)

    def run(self, visit, ok, turn, part, count):
        """(ok, turn, part) after rounds while anything is listed; `count` for round `part`.

        visit(pieces, put, part, alone): for a warp's pieces, of all its lanes, (begin, size, ...)
        with size 0 where a lane has none; put(rows): lists rows for the next round; alone: whether
        one CTA does the round, where it is not how much is loaded that takes time but how often
        loads wait for each other. It is traced once for each.
        """
        k, control = self.k, self.control
        valid, listed = (self.first + TURNS * SET + j for j in range(2))

        def round_(ok, turn, part, count):
            few = count <= SOLO
            self.clear(turn)
            alone = lambda: self._alone(visit, part, count, valid, listed)  # noqa: E731
            k.if_(few & (k.cta == 0), alone)
            k.if_(~few, lambda: self._together(visit, turn, part, count))
            words = [(control, word) for word in (self.word(turn), valid, listed)]
            ok, count, after, left = k.grid_barrier(control, words)
            return ok, turn + 1, k.where(few, after, part + 1), k.where(few, left, count)

        going = lambda ok, turn, part, count: (ok != 0) & (count > 0)  # noqa: E731
        return k.while_(going, round_, ok, turn, part, count)[:3]

    def _distribute(self, count, warp, warps, f):
        """f(i, valid) for i = 0 .. count - 1, neighbours to different warps."""
        k = self.k
        each = (count + (warps - 1)) // warps

        def chunk(j0):
            j = j0 + k.lane
            i = j * warps + warp
            f(i, (j < each) & (i < count))

        k.for_(0, each, 32, chunk)

    def _together(self, visit, turn, part, count):
        k, at = self.k, (part & 1) * self.capacity

        def some(i, valid):
            place = (at + i) * self.width
            piece = k.load_vec(self.a, place, self.width, mask=valid, cache="fresh")
            put = lambda rows: self.put(turn, part, rows)  # noqa: E731
            visit(self._piece(piece, valid), put, part, False)

        self._distribute(count, k.warp * k.ctas + k.cta, k.ctas * k.threads // 32, some)

    def _piece(self, words, valid):
        begin, end, *payload = words
        return begin, self.k.where(valid, end - begin, 0), *payload

    def _alone(self, visit, part, count, valid, listed):
        """Rounds of this CTA while they are few. The next turn is not alone, or no round, so that
        all have read `valid` and `listed` before they are written again.
        """
        k, width = self.k, self.width
        half = lambda part: (part & 1) * (CAPACITY * width)  # noqa: E731
        begin = (part & 1) * self.capacity

        def fetch(i):
            words = k.load_vec(self.a, (begin + i) * width, width, cache="fresh")
            for j, word in enumerate(words):
                k.store(self.local, half(part) + i * width + j, word)

        k.store(self.found, k.thread, 0, mask=k.thread < 4)
        self._forget()
        k.for_(k.thread, count, k.threads, fetch)
        k.sync()

        def round_(part, count):
            at, behind = half(part + 1), ((part + 1) & 1) * self.capacity

            def store(place, piece, mask):
                inside = place < CAPACITY
                mine, over = (inside, ~inside) if mask is None else (inside & mask, ~inside & mask)
                for j, word in enumerate(piece):
                    k.store(self.local, at + place * width + j, word, mask=mine)
                self._store(behind + place, piece, over)

            def some(i, valid):
                words = [
                    k.load(self.local, half(part) + i * width + j, mask=valid) for j in range(width)
                ]
                put = lambda rows: self._put(rows, (self.found, part & 1), store)  # noqa: E731
                visit(self._piece(words, valid), put, part, True)

            self._distribute(count, k.warp, k.threads // 32, some)
            k.sync()
            count = k.load(self.found, part & 1)
            k.store(self.found, (part + 1) & 1, 0, mask=k.thread == 0)
            self._forget()
            k.sync()
            return part + 1, count

        going = lambda part, count: (count > 0) & (count <= SOLO)  # noqa: E731
        part, count = k.while_(going, round_, part, count)
        behind = (part & 1) * self.capacity

        def back(i):
            words = [k.load(self.local, half(part) + i * width + j) for j in range(width)]
            self._store(behind + i, words, None)

        k.for_(k.thread, k.minimum(count, CAPACITY), k.threads, back)
        for word, value in ((valid, part), (listed, count)):
            k.store(self.control, word, value, mask=k.thread == 0)


def edges_of(k, pieces, f, *carry, unroll):
    """carry = f(places, owners, there, *carry) over the edges of a warp's pieces: `flatten` by the
    lane whose piece holds an edge, so that what f loads of edges waits for nothing of pieces.
    """
    begin, size = pieces[:2]

    def some(places, payloads, valid, *carry):
        return f(places, [owner for (owner,) in payloads], valid, *carry)

    return flatten(k, begin, size, (k.lane,), some, *carry, unroll=unroll)
