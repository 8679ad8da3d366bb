"""A sparse product of few terms: each program keeps a stretch of the rows in shared memory.

No pass over the rows in global memory and no grid barrier. Every program walks all columns that x
selects, joins the terms of its own rows by atomics on shared memory, tells the others how many rows
it got, and writes them behind those of the programs before. What all programs do alike is little:
the indices of a few thousand entries, from L2.
"""

from pallas_kernels._launch import SHARED_BYTES
from pallas_kernels._sparse_result import fill

COLUMNS = 4  # columns of a warp in flight together, two strides of 32 entries of each
LONG = 256  # entries above which a column is walked by all warps
MARGIN = 8192  # bytes of shared memory that are not the kernel's own
TERMS, LISTED, SUMS = 0, 1, 40  # words of `sums`: terms, long columns; their number


def fits(rows, programs, threads, other_words):
    """Whether a program's stretch fits beside so many other words of shared memory."""
    return 4 * (words(rows, programs, threads) + other_words) <= SHARED_BYTES - MARGIN


def words(rows, programs, threads):
    """Words of shared memory that a stretch and the columns take."""
    each = _each(rows, programs)
    return 32 * each + 2 * (-(-each // 4) * 4) + 5 * threads + SUMS


def _each(rows, programs):
    """Words of bits of a stretch."""
    return -(-rows // (32 * programs))


class OwnRows:
    """y by stretches. `y` is the `Result` whose coding of values and mask of rows it shares."""

    def __init__(self, k, y, control, at):
        self.k, self.y, self.control, self.at = k, y, control, at
        self.each = _each(y.m, k.programs)
        self.values = k.shared(32 * self.each, y.word_kind())
        self.bits, self.places = k.shared(self.each), k.shared(self.each)
        self.columns, self.long = k.shared(4 * k.threads), k.shared(k.threads)
        self.sums = k.shared(SUMS)
        self.base = k.program * self.each * 32

    def plan(self, count, column):
        """Reads the columns of at most `threads` entries of x; the number of their terms.

        column(i, mask): start, end and value (as int32) of the column of entry i.
        """
        k = self.k
        self.count = count
        k.store(self.sums, k.thread, 0, mask=k.thread < 2)
        start, end, x = column(k.thread, k.thread < count)
        size = end - start
        k.store_vec(self.columns, 4 * k.thread, [start, end, x, 0])
        k.sync()
        mine = k.warp_sum(size)
        k.atomic("add", self.sums, TERMS, mine, mask=(k.lane == 0) & (mine > 0))
        at = k.atomic("add", self.sums, LISTED, 1, mask=size > LONG)
        k.store(self.long, at, k.thread, mask=size > LONG)
        k.sync()
        return k.load(self.sums, TERMS)

    def run(self, term, indices, data, nse):
        """Writes y; returns (ok, rows of y).

        term(places, there): rows of the entries at some places, and a function of values of x and
        masks that gives the terms.
        """
        k = self.k
        room = k.minimum(k.load(self.sums, TERMS), nse)
        listed = k.load(self.sums, LISTED)
        self._clear()
        k.sync()
        self._join(term, listed)
        k.sync()
        mine = self._number()
        ok, before, count = k.sums_of_programs(
            self.control, self.at, mine, self.sums,
            meanwhile=lambda: fill(k, indices, room, nse, self.y.m),
        )  # fmt: skip
        fill(k, indices, k.minimum(count, nse), room, self.y.m)
        self._write(before, indices, data, nse)
        return ok, count

    def _clear(self):
        k = self.k
        identity = self.y.identity()

        def some(i):
            k.store_vec(self.values, i * 4, [identity] * 4)

        k.for_(k.thread, 8 * self.each, k.threads, some)
        k.for_(k.thread, self.each, k.threads, lambda i: k.store(self.bits, i, 0))

    def _join(self, term, listed):
        k = self.k

        def short(i0):
            columns = [k.load_vec(self.columns, 4 * (i0 + u), 4, mask=i0 + u < self.count)
                       for u in range(COLUMNS)]  # fmt: skip
            sizes = [k.where(end - start > LONG, 0, end - start) for start, end, *_ in columns]
            most = sizes[0]
            for size in sizes[1:]:
                most = k.maximum(most, size)

            def stride(at):
                at = [at + k.lane, at + k.lane + 32]
                places = [start + a for start, *_ in columns for a in at]
                there = [a < size for size in sizes for a in at]
                self._terms(term, places, [x for _, _, x, _ in columns for _ in at], there)

            k.for_(0, most, 64, stride)

        def long(i):
            start, end, x, _ = k.load_vec(self.columns, 4 * k.load(self.long, i), 4)

            def stride(at):
                places = [at + k.thread, at + k.thread + k.threads]
                self._terms(term, places, [x, x], [p < end for p in places])

            k.for_(start, end, 2 * k.threads, stride)

        k.for_(COLUMNS * k.warp, self.count, COLUMNS * (k.threads // 32), short)
        k.for_(0, listed, 1, long)

    def _terms(self, term, places, xs, there):
        """Joins those of the terms at some places that belong to the stretch."""
        k = self.k
        rows, values = term(places, there)
        mine = [t & k.below(r - self.base, 32 * self.each) & k.below(r, self.y.m)
                for r, t in zip(rows, there, strict=True)]  # fmt: skip
        hit = mine[0]
        for m in mine[1:]:
            hit = hit | m

        def join():
            kept = [self.y.lets(r, m) for r, m in zip(rows, mine, strict=True)]
            for row, value, mask in zip(rows, values(xs, kept), kept, strict=True):
                own = row - self.base
                k.reduce(self.y.add, self.values, own, self.y.encode(value), mask=mask)
                k.reduce("or", self.bits, k.shr(own, 5), k.bit(own), mask=mask)

        k.if_(hit, join)

    def _number(self):
        """Places of the first row of each word among those of the stretch; how many there are."""
        k = self.k

        def block(i0, running):
            i = i0 + k.thread
            n = k.popc(k.load(self.bits, i, mask=i < self.each))
            upto, total = k.warp_scan(n)
            k.sync()
            k.store(self.sums, k.warp, total, mask=k.lane == 0)
            k.sync()
            sums, all_ = k.warp_scan(k.load(self.sums, k.lane, mask=k.lane < k.threads // 32))
            before = running + k.shfl(sums, k.warp) - total
            k.store(self.places, i, before + upto - n, mask=i < self.each)
            return running + all_

        return k.for_(0, self.each, k.threads, block, 0)[0]

    def _write(self, before, indices, data, nse):
        k = self.k

        def word(i):
            bits = k.load(self.bits, i)
            at = before + k.load(self.places, i) + k.lanes_below(bits)
            mine = (k.shr(bits, k.lane) & 1 != 0) & (at < nse)
            own = 32 * i + k.lane
            k.store(indices, at, self.base + own, mask=mine)
            k.store(data, at, self.y.decode(k.load(self.values, own)), mask=mine)

        k.for_(k.warp, self.each, k.threads // 32, word)
