"""A sparse product of few terms: each CTA has the accumulators of a stretch of rows in shared
memory.

There is no pass over the rows in global memory and no grid barrier. Every CTA walks the columns
that x selects; if rows are sorted, it skips columns whose first and last row show that they do not
reach its stretch. It combines the terms of its own rows by atomics on shared memory, adds its
number of rows to the counts of the CTAs, and writes its rows behind those of the CTAs before.
"""

import functools

from ..rows.flatten import warps_before
from ..simt.device import target
from ..simt.typed import Several, one_by_one
from .sparse_result import fill

COLUMNS = 4  # columns of a warp in flight together, two strides of 32 entries of each
LONG = 256  # entries above which a column is walked by all warps
MARGIN = 8192  # bytes of shared memory that are left free
PARTS = 2  # entries of x for each thread, at most
MOST = 1 << 16  # entries of a column
CROWD = 8192  # terms that one CTA may combine
# words of `sums`: columns that reach this stretch, long ones among them, terms that are walked, all
# terms; SUMS: how many words it has
NEAR, LONG_COLUMNS, WORK, TERMS, SUMS = 0, 1, 2, 3, 40


def fits(rows, ctas, threads, other_words):
    """Whether the stretch of a CTA and `other_words` more words fit in shared memory."""
    return 4 * (words(rows, ctas, threads) + other_words) <= target().shared_bytes - MARGIN


def words(rows, ctas, threads):
    """Words of shared memory that a stretch and the columns take."""
    each = _each(rows, ctas)
    return 32 * each + 2 * (-(-each // 4) * 4) + 5 * PARTS * threads + SUMS + ctas + 3


def _each(rows, ctas):
    """Words of bits of a stretch."""
    return -(-rows // (32 * ctas))


class OwnRows:
    """The rows of y by stretches. `y` is the `SparseResult` whose coding and mask it shares."""

    def __init__(self, k, y, control, at):
        self.k, self.y, self.control, self.at = k, y, control, at
        self.each = _each(y.m, k.ctas)
        self.values = k.shared(32 * self.each, y.word_kind())
        self.bits, self.places = k.shared(self.each), k.shared(self.each)
        capacity = PARTS * k.threads
        self.columns, self.long = k.shared(4 * capacity), k.shared(capacity)
        self.sums, self.crowd = k.shared(SUMS), k.shared(k.ctas)
        self.base = k.cta * self.each * 32

    def plan(self, count, column, indices, limit):
        """Reads the columns of at most PARTS * threads entries of x; returns whether to use this
        form.

        It is used, in all CTAs or in none, if a CTA walks at most `limit` terms in the mean and
        none combines more than CROWD. column(i, mask): start, end and value (as int32) of the
        column of entry i; indices: the rows of its entries, if they ascend, else None.
        """
        k = self.k
        k.store(self.sums, k.thread, 0, mask=k.thread < 4)
        k.store(self.crowd, k.thread, 0, mask=k.thread < k.ctas)
        found = []
        for part in range(PARTS):
            i = part * k.threads + k.thread
            found.append(column(i, i < count))
        spans = [self._span(indices, start, end) for start, end, _ in found]
        k.sync()
        work, terms = k.const(0), k.const(0)
        for (start, end, x), (first, last) in zip(found, spans, strict=True):
            size = end - start
            stretches = last - first + 1
            near = (size > 0) & (first <= k.cta) & (k.cta <= last)
            at = k.atomic("add", self.sums, NEAR, 1, mask=near)
            k.store_vec(self.columns, 4 * at, [start, end, x, 0], mask=near)
            long = near & (size > LONG)
            place = k.atomic("add", self.sums, LONG_COLUMNS, 1, mask=long)
            k.store(self.long, place, at, mask=long)
            huge = size > MOST  # its terms are not counted
            size = k.where(huge, 0, size)
            terms = terms + size
            work = work + (size * stretches + (k.ctas - 1)) // k.ctas
            work = k.where(huge, limit + 1, work)
            share = (size + (stretches - 1)) // stretches
            k.atomic("add", self.crowd, first, share, mask=size > 0)
        k.add_sum(self.sums, WORK, work, terms)
        k.sync()
        mine = k.load(self.crowd, k.thread, mask=k.thread < k.ctas)
        crowded = k.sync_count(mine > CROWD)
        return (crowded == 0) & (k.load(self.sums, WORK) <= limit)

    def _span(self, indices, start, end):
        """The first and the last CTA whose stretch a column may reach."""
        k = self.k
        if indices is None:
            return k.const(0), k.const(k.ctas - 1)
        valid = start < end
        first = k.load(indices, start, mask=valid, cache="nc")
        last = k.load(indices, end - 1, mask=valid, cache="nc")
        last = k.minimum(last, self.y.m - 1) // (32 * self.each)
        return k.minimum(first // (32 * self.each), last), last

    def run(self, term, indices, data, nse):
        """Writes y; returns (ok, rows of y).

        term(places, valid): rows of the entries at some places, and a function of values of x and
        masks that gives the terms.
        """
        k = self.k
        columns_near, columns_long = k.load(self.sums, NEAR), k.load(self.sums, LONG_COLUMNS)
        capacity = k.minimum(k.load(self.sums, TERMS), nse)
        self._clear()
        k.sync()
        self._combine(term, columns_near, columns_long)
        k.sync()
        mine = self._number()
        pad = lambda: fill(k, indices, capacity, nse, self.y.m)  # noqa: E731
        ok, before, count = k.sums_of_ctas(self.control, self.at, mine, self.sums, pad)
        fill(k, indices, k.minimum(count, nse), capacity, self.y.m)
        self._write(before, indices, data, nse)
        return ok, count

    def _clear(self):
        k = self.k
        identity = self.y.identity()

        def some(i):
            k.store_vec(self.values, i * 4, [identity] * 4)

        k.for_(k.thread, 8 * self.each, k.threads, some)
        k.for_(k.thread, self.each, k.threads, lambda i: k.store(self.bits, i, 0))

    def _combine(self, term, columns_near, columns_long):
        k = self.k

        def short(i0):
            columns = [
                k.load_vec(self.columns, 4 * (i0 + u), 4, mask=i0 + u < columns_near)
                for u in range(COLUMNS)
            ]
            sizes = [k.where(end - start > LONG, 0, end - start) for start, end, *_ in columns]
            most = functools.reduce(k.maximum, sizes)

            def stride(at):
                at = [at + k.lane, at + k.lane + 32]
                places = Several(start + a for start, *_ in columns for a in at)
                valid = Several(a < size for size in sizes for a in at)
                x = Several(x for _, _, x, _ in columns for _ in at)
                self._terms(term, places, x, valid)

            k.for_(0, most, 64, stride)

        def long(i):
            start, end, x, _ = k.load_vec(self.columns, 4 * k.load(self.long, i), 4)

            def stride(at):
                places = Several((at + k.thread, at + k.thread + k.threads))
                self._terms(term, places, x, places < end)

            k.for_(start, end, 2 * k.threads, stride)

        k.for_(COLUMNS * k.warp, columns_near, COLUMNS * (k.threads // 32), short)
        k.for_(0, columns_long, 1, long)

    def _terms(self, term, places, xs, valid):
        """Combines the terms at some places whose rows are in this stretch."""
        k = self.k
        rows, values = term(places, valid)
        inside = valid & k.below(rows - self.base, 32 * self.each)
        mine = inside & k.below(rows, self.y.m)

        def combine():
            allowed = self.y.allowed_at(rows, mine)
            for own, value, mask in one_by_one(rows - self.base, values(xs, allowed), allowed):
                k.reduce(self.y.add, self.values, own, self.y.encode(value), mask=mask)
                k.reduce("or", self.bits, k.shr(own, 5), k.bit(own), mask=mask)

        k.if_(k.union(mine), combine)

    def _number(self):
        """Numbers the rows of the stretch that have a term: `places` gets that of the first row of
        each word of bits. Returns their number."""
        k = self.k

        def block(i0, running):
            i = i0 + k.thread
            n = k.popc(k.load(self.bits, i, mask=i < self.each))
            upto, total = k.warp_scan(n)
            k.sync()
            before, all_ = warps_before(k, self.sums, total)
            k.store(self.places, i, running + before + upto - n, mask=i < self.each)
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
