"""Rows of few products, a warp each: expanded into shared memory, sorted, combined.

A warp takes a stretch of neighbouring rows. The products of a row are flattened over its lanes and
put side by side, those that a mask forbids left out; then they are sorted in registers
(`sort.py`). Rows are collected in shared memory and written together, so that few slots are
fetched from the counter. Rows of more products are listed for `by_ctas.py`.

No hash table: a sort of 256 pairs takes about five instructions a pair, needs no atomics, serves
any monoid, gives the order that a CSR must have, and always sums in the same order.
"""

from ..rows.flatten import flatten
from ..simt.launch import launch
from .job import ALLOCATED, COUNTERS, LARGE, MEDIUM, Terms
from .sort import combine_runs, sort

MOST = 256  # products of a row that a warp sorts
WAITING = 512  # entries that wait to be written
QUEUE = 40  # control word: stretches taken


def rows_by_warps(job, operands, products, *, large, stretch, ctas, threads, interpret):
    """The arrays that the other launches go on with: start, count (rows,), `indices` and `data`
    (nse,) by rows in any order, the rows left over in two lists, counters."""
    words = threads // 32 * (2 * MOST + 2 * WAITING)
    out = launch(
        lambda k, g: _Warps(k, g, job, large, stretch).run(),
        {**operands, "products": products},
        {
            "start": job.rows,
            "count": job.rows,
            "indices": job.nse,
            "data": (job.nse, job.semiring.dtype),
            "medium": job.rows,
            "large": job.rows,
            "counters": COUNTERS,
        },
        optional=("m_indptr", "m_indices", "m_data"),
        ctas=ctas,
        threads=threads,
        shared_words=words,
        name="spgemm_by_warps",
        interpret=interpret,
    )
    control = out.pop("control")
    out["counters"] = control[QUEUE + 1 : QUEUE + 1 + COUNTERS]
    return out


class _Warps:
    """One launch."""

    def __init__(self, k, g, job, large, stretch):
        self.k, self.g, self.job, self.terms = k, g, job, Terms(k, g, job)
        self.large, self.stretch = large, stretch
        warps = k.threads // 32
        self.keys, self.values = k.shared(warps * MOST), k.shared(warps * MOST, job.kind)
        self.out_keys = k.shared(warps * WAITING)
        self.out_values = k.shared(warps * WAITING, job.kind)
        self.base, self.out_base = k.warp * MOST, k.warp * WAITING

    def run(self):
        k = self.k
        stretches = -(-self.job.rows // self.stretch)

        def take():
            mine = k.atomic("add", self.g.control, QUEUE, 1, mask=k.lane == 0)
            return k.shfl(mine, 0)

        def some(i):
            self._stretch(i * self.stretch)
            return take()

        k.while_(lambda i: i < stretches, some, take())

    def _stretch(self, first):
        k, g = self.k, self.g
        row = first + k.lane
        there = (k.lane < self.stretch) & (row < self.job.rows)
        products = k.load(g.products, row, mask=there, cache="nc")
        begin, end = k.row(g.a_indptr, row, there)
        k.store(g.start, row, 0, mask=there & (products == 0))
        k.store(g.count, row, 0, mask=there & (products == 0))
        more = there & (products > MOST)
        for word, a, mask in (
            (MEDIUM, g.medium, more & (products <= self.large)),
            (LARGE, g.large, more & (products > self.large)),
        ):
            at = k.atomic("add", g.control, QUEUE + 1 + word, 1, mask=mask)
            k.store(a, at, row, mask=mask)
        few = there & (products > 0) & (products <= MOST)

        def one(left, filled, offset, count):
            lane = k.ctz(left)
            room = k.shfl(products, lane)
            full = filled + room > WAITING
            k.if_(full, lambda: self._flush(row, filled, offset, count))
            filled, offset = k.where(full, 0, filled), k.where(full, -1, offset)
            size = self._row(first + lane, k.shfl(begin, lane), k.shfl(end, lane), filled)
            mine = k.lane == lane
            return (
                left & (left - 1),
                filled + size,
                k.where(mine, filled, offset),
                k.where(mine, size, count),
            )

        _, filled, offset, count = k.while_(
            lambda left, *_: left != 0, one, k.ballot(few), 0, -1, 0
        )
        k.if_(k.any(offset >= 0), lambda: self._flush(row, filled, offset, count))

    def _row(self, row, begin, end, filled):
        """Puts the entries of a row behind those that wait; how many."""
        k = self.k
        bounds = self.terms.bounds_of_mask(row)

        def entries(i, size):
            start, length, payload = self.terms.entry(i + k.lane, i + k.lane < end)

            def put(places, payloads, there, size):
                columns = self.terms.columns(places, there)
                there = self.terms.allowed(bounds, columns, there)
                values = self.terms.values(row, places, payloads, columns, there)
                for column, value, t in zip(columns, values, there, strict=True):
                    word = k.ballot(t)
                    at = self.base + size + k.lanes_below(word)
                    k.store(self.keys, at, column, mask=t)
                    k.store(self.values, at, value, mask=t)
                    size = size + k.popc(word)
                return size

            return flatten(k, start, length, payload, put, size, unroll=2)

        (size,) = k.for_(begin, end, 32, entries, 0)
        k.sync_warp()
        found = k.const(0)
        low = 0
        for width in (1, 2, 4, 8):
            high = 32 * width
            fits = (size > low) & (size <= high)
            (found,) = k.if_(fits, lambda w=width: self._sorted(w, size, filled), found)
            low = high
        k.sync_warp()
        return found

    def _sorted(self, width, size, filled):
        k = self.k
        places = [k.lane * width + u for u in range(width)]
        there = [p < size for p in places]
        keys = [
            k.load(self.keys, self.base + p, mask=t, other=self.job.columns)
            for p, t in zip(places, there, strict=True)
        ]
        values = [
            k.load(self.values, self.base + p, mask=t) for p, t in zip(places, there, strict=True)
        ]
        keys, values = sort(k, keys, values)
        values, last = combine_runs(k, self.terms.combine, keys, values)
        last = [e & (key < self.job.columns) for e, key in zip(last, keys, strict=True)]
        mine = k.const(0)
        for e in last:
            mine = mine + k.cast(e, "i32")
        upto, total = k.warp_scan(mine)
        at = self.out_base + filled + upto - mine
        for key, value, e in zip(keys, values, last, strict=True):
            k.store(self.out_keys, at, key, mask=e)
            k.store(self.out_values, at, value, mask=e)
            at = at + k.cast(e, "i32")
        return total

    def _flush(self, row, filled, offset, count):
        """Writes what waits, if there is room; all lanes."""
        k, g, nse = self.k, self.g, self.job.nse
        k.sync_warp()
        at = k.atomic("add", g.control, QUEUE + 1 + ALLOCATED, filled, mask=k.lane == 0)
        at = k.shfl(at, 0)
        fits = (at >= 0) & (at <= nse - filled)

        def write(j):
            k.store(g.indices, at + j, k.load(self.out_keys, self.out_base + j))
            k.store(g.data, at + j, k.load(self.out_values, self.out_base + j))

        k.for_(k.lane, k.where(fits, filled, 0), 32, write)
        k.store(g.start, row, k.where(fits, at + offset, -1), mask=offset >= 0)
        k.store(g.count, row, count, mask=offset >= 0)
        k.sync_warp()
