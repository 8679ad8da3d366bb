"""Rows of many products, a CTA each: columns marked as bits in shared memory, then accumulated.

The products of a row are walked twice. The first walk sets a bit for each column that they reach;
the bits before it are the place of a column among those of the row, so entries are numbered in
order without a sort or a hash table. The second walk combines the products at these places, in
shared memory, `capacity` places at a time. Bits are divided into groups of 1024 columns, and only
groups that were reached are read. If C has more columns than shared memory has bits, a row is
walked window by window.
"""

import dataclasses

from ..rows.flatten import flatten, warps_before
from ..simt.launch import launch
from ..simt.typed import each, one_by_one
from .job import ALLOCATED, LISTS, OUT, Sums, Terms

LONG = 512  # a row of B of so many entries or more is walked by all warps of a CTA
LISTED = 256  # capacity of the list of such rows
GROUP = 1024  # columns
QUEUE = 40  # control word: rows taken


@dataclasses.dataclass(frozen=True)
class Config:
    """CTAs of a launch, threads of each, columns of a window, places in shared memory."""

    ctas: int
    threads: int
    window: int
    capacity: int

    @property
    def words(self):
        """Words of shared memory."""
        groups = -(-self.window // GROUP // 4) * 4
        return self.window * 3 // 64 + 2 * groups + self.capacity + LISTED + 48


def rows_by_ctas(job, operands, out, config, *, listed):
    """Computes the rows that are listed in out[listed]; returns the new `out`."""
    done = launch(
        lambda k, g: _Ctas(k, g, job, listed, config).run(),
        {**operands, "listed": out[LISTS[listed]]},
        {},
        inout={name: out[name] for name in OUT},
        ctas=config.ctas,
        threads=config.threads,
        shared_words=config.words,
        name="spgemm_by_ctas",
    )
    return out | {name: done[name] for name in OUT}


class _Ctas:
    """One launch."""

    def __init__(self, k, g, job, listed, config):
        self.k, self.g, self.job, self.listed = k, g, job, listed
        self.terms, self.window, self.capacity = Terms(k, g, job), config.window, config.capacity
        self.warps, self.groups = k.threads // 32, config.window // GROUP
        self.bits, self.before = k.shared(config.window // 32), k.shared(config.window // 64)
        self.reached, self.group_before = k.shared(self.groups), k.shared(self.groups)
        self.sums = Sums(k, job, config.capacity)
        self.long, self.scratch = k.shared(LISTED), k.shared(40)

    def run(self):
        k = self.k
        self._clear()
        number = k.load(self.g.counters, self.listed)

        def take():
            def fetch():
                k.store(self.scratch, 36, k.atomic("add", self.g.control, QUEUE, 1))

            k.sync()
            k.if_(k.thread == 0, fetch)
            k.sync()
            return k.load(self.scratch, 36)

        def some(i):
            self._row(k.load(self.g.listed, i, cache="nc"))
            return take()

        k.while_(lambda i: i < number, some, take())

    def _clear(self):
        k = self.k
        for a, size in ((self.bits, self.window // 32), (self.reached, self.groups)):
            k.for_(k.thread, size, k.threads, lambda i, a=a: k.store(a, i, 0))

    def _row(self, row):
        k, g, job = self.k, self.g, self.job
        begin, end = k.row(g.a_indptr, row)
        bounds = self.terms.bounds_of_mask(row)
        walk = _Walk(self, row, begin, end, bounds)
        windows = -(-job.columns // self.window)
        if windows == 1:
            size = self._mark(walk, 0)
            first, fits = self._allocate(row, size)
            k.if_(fits, lambda: self._sum(walk, 0, first, size))
            self._write(0, first, fits)
            return

        def count(low, size):
            size = size + self._mark(walk, low)
            self._write(low, 0, k.const(False, "i1"))
            return size

        def fill(low, first):
            size = self._mark(walk, low)
            self._sum(walk, low, first, size)
            self._write(low, first, k.const(True, "i1"))
            return first + size

        (size,) = k.for_(0, job.columns, self.window, count, 0)
        first, fits = self._allocate(row, size)
        k.for_(0, k.where(fits, job.columns, 0), self.window, fill, first)

    def _mark(self, walk, low):
        """Sets the bits of the reached columns, from `low` on; returns their number."""
        k = self.k

        def mark(places, valid, *payload):
            for column, t in one_by_one(*walk.columns(places, valid, low)):
                word = k.shr(column, 5)
                t = t & (k.load(self.bits, word, mask=t) & k.bit(column) == 0)
                old = k.atomic("or", self.bits, word, k.bit(column), mask=t)
                k.store(self.reached, k.shr(word, 5), 1, mask=t & (old == 0))

        walk.run(mark)

        def number(group):
            n = k.popc(k.load(self.bits, group * 32 + k.lane))
            upto, total = k.warp_scan(n)
            both = (upto - n) | (k.shfl_xor(upto - n, 1) << 16)  # of two words in one
            k.store(self.before, group * 16 + k.shr(k.lane, 1), both, mask=k.lane & 1 == 0)
            k.store(self.reached, group, total, mask=k.lane == 0)

        self._each_group(number)
        k.sync()

        def block(i0, running):
            i = i0 + k.thread
            n = k.load(self.reached, i, mask=i < self.groups)
            upto, total = k.warp_scan(n)
            before, all_ = warps_before(k, self.scratch, total)
            k.store(self.group_before, i, running + before + upto - n, mask=i < self.groups)
            k.sync()
            return running + all_

        return k.for_(0, self.groups, k.threads, block, 0)[0]

    def _each_group(self, f):
        """f(group) by a warp for each group that was reached."""
        k = self.k
        every = 32 * self.warps

        def some(g0):
            mine = g0 + k.lane * self.warps + k.warp
            word = k.ballot(k.load(self.reached, mine, mask=mine < self.groups) != 0)
            k.each_bit(word, lambda j: f(g0 + j * self.warps + k.warp))

        k.for_(0, self.groups, every, some)

    def _allocate(self, row, size):
        """(first slot, whether they fit) for the entries of a row; called by all threads."""
        k, g, nse = self.k, self.g, self.job.nse

        def one():
            at = k.atomic("add", g.counters, ALLOCATED, size)
            fits = (at >= 0) & (at <= nse - size)
            k.store(self.scratch, 37, k.where(fits, at, -1))
            k.store(g.start, row, k.where(fits, at, -1))
            k.store(g.count, row, size)

        k.if_(k.thread == 0, one)
        k.sync()
        first = k.load(self.scratch, 37)
        return first, first >= 0

    @each
    def _place(self, column):
        """The number of a marked column among those of the row."""
        k = self.k
        word = k.shr(column, 5)
        below = k.load(self.bits, word) & (k.bit(column) - 1)
        return self._before(word) + k.load(self.group_before, k.shr(word, 5)) + k.popc(below)

    def _before(self, word):
        """The marks in the words of its group before a word."""
        k = self.k
        return k.shr(k.load(self.before, k.shr(word, 1)), (word & 1) << 4) & 0xFFFF

    def _sum(self, walk, low, first, size):
        """Combines the products whose columns are marked, and writes them from `first` on."""
        k, g = self.k, self.g

        def part(done):
            here = k.minimum(size - done, self.capacity)

            k.for_(k.thread, here, k.threads, self.sums.clear)
            k.sync()

            def add(places, valid, *payload):
                columns, valid = walk.columns(places, valid, low)
                spots = self._place(k.where(valid, columns, 0)) - done
                valid = valid & k.below(spots, here)
                values = self.terms.values(walk.row, places, payload, columns + low, valid)
                for spot, value, t in one_by_one(spots, values, valid):
                    self.sums.combine(spot, value, t)

            walk.run(add)

            def write(i):
                k.store(g.data, first + done + i, self.sums.read(i))

            k.for_(k.thread, here, k.threads, write)
            k.sync()

        k.for_(0, size, self.capacity, part)

    def _write(self, low, first, fits):
        """Writes the columns that are marked from `first` on, where they fit; no mark is left."""
        k, g = self.k, self.g

        def group(group):
            at = group * 32 + k.lane
            word = k.load(self.bits, at)
            place = first + k.load(self.group_before, group) + self._before(at)

            def one(bit, place):
                k.store(g.indices, place, low + at * 32 + bit)
                return place + 1

            k.each_bit(k.where(fits, word, 0), one, place)
            k.store(self.bits, at, 0)
            k.store(self.reached, group, 0, mask=k.lane == 0)

        self._each_group(group)
        k.sync()


class _Walk:
    """The products of one row by all threads of a CTA."""

    def __init__(self, ctas, row, begin, end, bounds):
        self.ctas, self.k, self.terms = ctas, ctas.k, ctas.terms
        self.row, self.begin, self.end, self.bounds = row, begin, end, bounds

    def columns(self, places, valid, low):
        """Columns of products as numbers in the window from `low` on, and which are inside."""
        k, width = self.k, min(self.ctas.window, self.ctas.job.columns)
        columns = self.terms.columns(places, valid)
        valid = self.terms.allowed(self.bounds, columns, valid & k.below(columns - low, width))
        return columns - low, valid

    def run(self, f):
        """f(places, valid, *payload) for all products; ends with all threads together."""
        k, long, word = self.k, self.ctas.long, self.ctas.scratch
        k.store(word, 38, 0, mask=k.thread == 0)
        k.sync()

        def short(i, valid):
            start, size, payload = self.terms.entry(self.begin + i, valid)
            many = size > LONG
            at = k.atomic("add", word, 38, 1, mask=many)
            many = many & (at < LISTED)
            k.store(long, at, self.begin + i, mask=many)
            flatten(k, start, k.where(many, 0, size), payload, f)

        k.distribute(self.end - self.begin, (k.warp, self.ctas.warps), short)
        k.sync()

        def whole(i):
            start, size, payload = self.terms.entry(k.load(long, i), k.const(True, "i1"))

            def stride(at):
                places = k.several(2, lambda u: start + at + u * k.threads)
                f(places, k.several(2, lambda u: at + u * k.threads) < size, *payload)

            k.for_(k.thread, size, 2 * k.threads, stride)

        k.for_(0, k.minimum(k.load(word, 38), LISTED), 1, whole)
        k.sync()
