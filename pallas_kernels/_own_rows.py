"""A sparse product of few terms: each program keeps a stretch of the rows in shared memory.

No pass over the rows in global memory and no grid barrier. Every program walks all terms (their
rows alone, a few words from L2 for each thread), joins those of its own rows by atomics on shared
memory, tells the others how many rows it got, and writes them behind those of the programs before.
"""

from pallas_kernels._flatten import flatten
from pallas_kernels._launch import SHARED_BYTES
from pallas_kernels._sparse_result import fill

ENTRIES = 4096  # of x, whose columns shared memory describes
UNROLL = 4  # terms of a thread whose loads are in flight together
MARGIN = 8192  # bytes of shared memory that are not the kernel's own
SUMS = 40


def fits(rows, programs, other_words):
    """Whether a program's stretch fits beside so many other words of shared memory."""
    return 4 * (words(rows, programs) + other_words) <= SHARED_BYTES - MARGIN


def words(rows, programs):
    """Words of shared memory that a stretch and the description of x take."""
    each = _each(rows, programs)
    return 32 * each + 2 * (-(-each // 4) * 4) + 3 * ENTRIES + SUMS + programs + 3


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
        self.before, self.shift, self.x = (k.shared(ENTRIES) for _ in range(3))
        self.sums, self.counts = k.shared(SUMS), k.shared(k.programs)
        self.base = k.program * self.each * 32

    def plan(self, count, column, few):
        """The number of terms, where there are at most `few` and x has at most ENTRIES entries,
        else a number above `few`.

        column(i): start, end and value (as int32) of the column of entry i.
        """
        k = self.k

        def scan():
            def block(i0, running):
                i = i0 + k.thread
                start, end, x = column(i, i < count)
                upto, total = self._block_scan(end - start)
                before = running + upto - (end - start)
                k.store(self.before, i, before, mask=i < count)
                k.store(self.shift, i, start - before, mask=i < count)
                k.store(self.x, i, x, mask=i < count)
                return running + total

            return k.for_(0, count, k.threads, block, 0)

        (self.total,) = k.if_(count <= ENTRIES, scan, few + 1)
        self.count = count
        return self.total

    def _block_scan(self, value):
        """(inclusive prefix sum over the program, total)."""
        k = self.k
        upto, total = k.warp_scan(value)
        k.sync()
        k.store(self.sums, k.warp, total, mask=k.lane == 0)
        k.sync()
        sums, all_ = k.warp_scan(k.load(self.sums, k.lane, mask=k.lane < k.threads // 32))
        return upto + k.shfl(sums, k.warp) - total, all_

    def run(self, join, indices, data, nse):
        """Writes y, whose terms `join()` joins; returns (ok, rows of y)."""
        k = self.k
        room = k.minimum(self.total, nse)
        fill(k, indices, room, nse, self.y.m)
        self._clear()
        k.sync()
        met = join()
        k.sync()
        mine = self._number()
        ok, before, count = k.sums_of_programs(self.control, self.at, mine, self.sums)
        fill(k, indices, k.minimum(count, nse), room, self.y.m)
        self._write(before, indices, data, nse)
        return ok & met, count

    def _clear(self):
        k = self.k
        identity = self.y.identity()

        def some(i):
            k.store_vec(self.values, i * 4, [identity] * 4)

        k.for_(k.thread, 8 * self.each, k.threads, some)
        k.for_(k.thread, self.each, k.threads, lambda i: k.store(self.bits, i, 0))

    def _owners(self, e):
        """The entries of x to whose columns terms e belong, by bisection."""
        k = self.k
        (half,) = k.while_(lambda s: s * 2 < self.count, lambda s: s * 2, 1)

        def halve(step, *owner):
            probe = [o + step for o in owner]
            inside = [p < self.count for p in probe]
            at = [k.load(self.before, p, mask=m) for p, m in zip(probe, inside, strict=True)]
            return (k.shr(step, 1), *(k.where(m & (b <= i), p, o) for m, b, i, p, o
                                      in zip(inside, at, e, probe, owner, strict=True)))

        return k.while_(lambda step, *_: step > 0, halve, half, *[0] * len(e))[1:]

    def _add(self, rows, words, masks):
        k = self.k
        for row, word, mask in zip(rows, words, masks, strict=True):
            own = row - self.base
            k.reduce(self.y.add, self.values, own, word, mask=mask)
            k.reduce("or", self.bits, k.shr(own, 5), k.bit(own), mask=mask)

    def join_all(self, term):
        """Every program walks all terms. term(places, there) -> rows, and what gives the values
        from those of x and masks."""
        k = self.k

        def some(e0):
            e = [e0 + k.threads * u + k.thread for u in range(UNROLL)]
            there = [i < self.total for i in e]
            owner = self._owners(e)
            places = [k.load(self.shift, o) + i for o, i in zip(owner, e, strict=True)]
            rows, values = term(places, there)
            mine = [t & k.below(r - self.base, 32 * self.each) & k.below(r, self.y.m)
                    for r, t in zip(rows, there, strict=True)]  # fmt: skip
            mine = [self.y.lets(r, m) for r, m in zip(rows, mine, strict=True)]

            def join():
                xs = [k.load(self.x, o, mask=m) for o, m in zip(owner, mine, strict=True)]
                self._add(rows, [self.y.encode(v) for v in values(xs, mine)], mine)

            hit = mine[0]
            for m in mine[1:]:
                hit = hit | m
            k.if_(hit, join)

        k.for_(0, self.total, UNROLL * k.threads, some)
        return 1

    def join_by_lists(self, term, lists, table):
        """A thread makes one term; lists in global memory, sorted by owner, take them there."""
        k = self.k
        each = (self.total + (k.programs - 1)) // k.programs
        e = k.program * each + k.thread
        there = (k.thread < each) & (e < self.total)
        k.store(self.counts, k.thread, 0, mask=k.thread < k.programs)
        (owner,) = self._owners([e])
        (row,), values = term([k.load(self.shift, owner) + e], [there])
        there = self.y.lets(row, there & k.below(row, self.y.m))
        (value,) = values([k.load(self.x, owner, mask=there)], [there])
        word = k.bits(self.y.encode(value), "i32")
        k.sync()
        target = row // (32 * self.each)
        rank = k.atomic("add", self.counts, target, 1, mask=there)
        k.sync()
        size = k.load(self.counts, k.thread, mask=k.thread < k.programs)
        start = self._block_scan(size)[0] - size
        k.store(self.counts, k.thread, start, mask=k.thread < k.programs)
        k.store(table, k.thread * k.programs + k.program, start | (size << 16),
                mask=k.thread < k.programs)  # fmt: skip
        k.sync()
        at = k.program * k.threads + k.load(self.counts, target, mask=there) + rank
        k.store_pair(lists, 2 * at, row, word, mask=there)
        (ok,) = k.grid_barrier(self.control)

        share = -(-k.programs // (k.threads // 32))
        for i0 in range(0, share, 32):
            i = k.lane + i0
            source = k.warp * share + i
            there = (i < share) & (source < k.programs)
            run = k.load(table, k.program * k.programs + source, mask=there, cache="fresh")
            start = source * k.threads + (run & 0xFFFF)
            flatten(k, start, k.shr(run, 16), (), lambda *chunk: self._take(lists, *chunk))
        return ok

    def _take(self, lists, places, _, there):
        k = self.k
        pairs = [k.load_vec(lists, 2 * p, 2, mask=t, cache="fresh")
                 for p, t in zip(places, there, strict=True)]  # fmt: skip
        kind = self.y.word_kind()
        self._add([row for row, _ in pairs], [k.bits(word, kind) for _, word in pairs], there)

    def _number(self):
        """Places of the first row of each word among those of the stretch; how many there are."""
        k = self.k

        def block(i0, running):
            i = i0 + k.thread
            n = k.popc(k.load(self.bits, i, mask=i < self.each))
            upto, total = self._block_scan(n)
            k.store(self.places, i, running + upto - n, mask=i < self.each)
            return running + total

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
