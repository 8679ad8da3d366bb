"""Rows of an adjacency shared by all warps of a grid, and lists that warps append to."""

LISTED = 512  # long rows a CTA has room for between two barriers
LONG = 2048  # places from which the warps of a CTA share a row


def append(k, a, at, counts, word, v, mask):
    """Puts the values v of a warp's lanes into a[at + counts[word] ...], which counts them."""
    votes = k.ballot(mask)

    def put():
        base = k.atomic("add", counts, word, k.popc(votes), mask=k.lane == 0)
        k.store(a, at + k.shfl(base, 0) + k.lanes_below(votes), v, mask=mask)

    k.if_(votes != 0, put)


def deal_rows(k, count, row, f, alone=False):
    """f(begin, size, ...) of rows 0 .. count - 1 over all warps, each lane of a warp with its own.

    `row(i, there)` gives (begin, size, ...) of a lane's row, size 0 where it has none. Where there
    are fewer rows than warps each is cut into pieces of whole strides, so that no warp is alone
    with a long one. alone: over the warps of this CTA.
    """
    warps = (k.threads if alone else k.ctas * k.threads) // 32
    mine = k.warp if alone else k.warp * k.ctas + k.cta
    parts = k.maximum(k.const(warps) // k.maximum(count, 1), 1)

    def some(i, there):
        number = i // parts
        begin, size, *payload = row(number, there)
        piece = ((size + (parts - 1)) // parts + 31) & -32
        skipped = k.minimum((i - number * parts) * piece, size)
        f(begin + skipped, k.minimum(size - skipped, piece), *payload)

    k.deal(count * parts, (mine, warps), some)


class LongRows:
    """The rows, or pieces of rows, of LONG places or more that the warps of a CTA met.

    least, listed: LONG and LISTED unless others are given; payload: words beside begin and end.
    """

    def __init__(self, k, payload=0, least=None, listed=None):
        self.k, self.words = k, 2 + payload
        self.least, self.listed = least or LONG, listed or LISTED
        self.table, self.count = k.shared(self.listed * self.words), k.shared(4)
        k.store(self.count, k.thread, 0, mask=k.thread < 4)

    @staticmethod
    def shared_words(payload=0):
        """How many words of shared memory it takes."""
        return LISTED * (2 + payload) + 8

    def without(self, begin, size, *payload):
        """The sizes of rows that are left to the warp; the others are kept for `run`."""
        k = self.k
        long = size >= self.least
        place = k.atomic("add", self.count, 0, 1, mask=long)
        kept = long & (place < self.listed)
        for j, word in enumerate((begin, begin + size, *payload)):
            k.store(self.table, place * self.words + j, word, mask=kept)
        return k.where(kept, 0, size)

    def run(self, f, unroll):
        """f(places, payloads, there) as `flatten` calls it, all warps of the CTA on each row."""
        k = self.k
        k.sync()

        def row(i):
            first, stop, *payload = (
                k.load(self.table, i * self.words + j) for j in range(self.words)
            )

            def stride(e0):
                places = [e0 + k.threads * u + k.lane for u in range(unroll)]
                f(places, [tuple(payload)] * unroll, [place < stop for place in places])

            k.for_(first + k.warp * 32, stop, unroll * k.threads, stride)

        k.for_(0, k.minimum(k.load(self.count, 0), self.listed), 1, row)
        k.sync()
        k.store(self.count, 0, 0, mask=k.thread == 0)
