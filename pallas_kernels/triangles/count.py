"""Triangles by tables of rows, from edges to higher ranks (`upward.py`), in one launch.

Every triangle u -> v -> w, u -> w is a w in the rows of both ends of the edge u -> v. The shorter
of the two rows is looked up in the longer one. A vertex x of BIG edges or more has a table in
shared memory, made once by a CTA for all its neighbours y in the whole graph, in either direction,
whose rows are shorter (of equal ones those of smaller number). So an edge costs the length of its
shorter row, whichever direction it has. A table has a bit for each vertex where these fit (Bisson,
Fatica, "High performance exact triangle counting on GPUs", IEEE TPDS 28, 2017), else a word for
each head, by a hash (Pandey et al., "TRUST: triangle counting reloaded on GPUs", IEEE TPDS 32,
2021). CTAs take vertices from a queue. Where both rows of an edge are short, its lanes compare them
entry by entry.

Traffic: for each neighbour of a big vertex its number and two words, for each edge the shorter row
in strides of 32 lanes; a look-up in shared memory an entry. Hash tables are kept an eighth full;
rows of more than MOST edges go through them in parts. Atomics: one a big vertex, and one in shared
memory for each of its heads.

Floor (H200): rmat18 has 1.75e9 look-ups (3.4e9 if the row at the head of each edge is walked), 7 GB
from L2, 1.5 ms; delaunay21 and grid1000 gather two words an edge, 0.06 and 0.02. Measured: upward
edges and count of moscow-roads 0.014 + 0.010 ms, grid1000 0.030 + 0.033, delaunay21 0.136 + 0.25,
coAuthorsDBLP 0.040 + 0.11; with hash tables whose lanes search alone rmat18 0.26 + 13.0, cnr-2000
0.28 + 0.50, rmat21 1.7 + 226; fuller or emptier tables, other BIG and WIDE: within 10% of that.
"""

import functools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..rows.flatten import flatten
from ..simt.device import resident_ctas, target
from ..simt.launch import launch
from .upward import BIG, NUMBER, Upward

MOST_WORDS = 24 * 1024  # words of a table of bits at most: one fits into every GPU
SPARE_WORDS = 512  # of shared memory, left free by each table
LOG = 13  # logarithm of the words of the largest table
MOST = 1 << (LOG - 1)  # entries of a table at most
SPARE = 8  # words of a table for each entry, while they are few
WIDE = 32  # rows of so many edges or more are walked by a warp each
UNROLL = 4  # strides of 32 entries that are in flight together
WAVES = 4  # CTAs on a multiprocessor
EMPTY = -1
MIX = 0x9E3779B1
QUEUE = 40  # control word: big vertices taken
LAST = 2**31 - 1
CARRY = 30  # the higher word of a count is in multiples of 2^CARRY


class Counts(NamedTuple):
    """Numbers of triangles: the sum of `low` and of 2^CARRY times `high`, int32 of every thread."""

    low: jax.Array
    high: jax.Array


class Table(NamedTuple):
    """The hash table of a row: its words but one, and the shift of a hash."""

    last: Any
    shift: Any


def triangles(
    indptr: jax.Array,
    indices: jax.Array,
    edges: Upward,
    *,
    ctas: int | None = None,
    threads: int | None = None,
    interpret: bool = False,
) -> Counts:
    """The number of triangles of an undirected graph.

    indptr int32[n + 1], indices int32[nnz]: as for `upward`, no edge twice; self loops do not
    count. edges: what it gives.
    """
    ctas, threads = _grid(indptr.shape[0] - 1, ctas, threads)
    made = {"low": ctas * threads, "high": ctas * threads}
    out = _launched((indptr, indices, edges), made, {}, (ctas, threads), interpret)
    return Counts(out["low"], out["high"])


def triangles_of_vertices(
    indptr: jax.Array,
    indices: jax.Array,
    edges: Upward,
    *,
    ctas: int | None = None,
    threads: int | None = None,
    interpret: bool = False,
) -> jax.Array:
    """int32[n]: the number of triangles of each vertex; arguments as of `triangles`.

    Three atomics a triangle more, or two where a warp walks a row.
    """
    n, operands = indptr.shape[0] - 1, (indptr, indices, edges)
    grid, start = _grid(n, ctas, threads), {"each": jnp.zeros(n, jnp.int32)}
    return _launched(operands, {}, start, grid, interpret)["each"]


def has_bits(n: int) -> bool:
    """Whether a table has a bit for each vertex, not a word for each head."""
    return n <= 32 * MOST_WORDS


def table_words(n: int) -> int:
    """Words of shared memory of a table."""
    return -(-n // 32) if has_bits(n) else 1 << LOG


def _grid(n: int, ctas: int | None, threads: int | None) -> tuple[int, int]:
    """CTAs, and threads of each: as many tables as fit, of all vertices at most WAVES."""
    fitting = (target().shared_bytes // 4 - SPARE_WORDS) // (table_words(n) + SPARE_WORDS)
    waves = max(min(WAVES, fitting), 1)
    return ctas or waves * resident_ctas(), threads or (256 if waves > 2 else 512 // waves * 2)


def _launched(operands, made, inout, grid, interpret):
    """The arrays that a launch of `grid` (CTAs, threads of each) makes."""
    indptr, indices, edges = operands
    n = indptr.shape[0] - 1
    arrays = {"indptr": indptr, "indices": indices, "rows": edges.rows, "heads": edges.heads}
    return launch(
        lambda k, m: _Triangles(k, m, n, "each" in inout).run(),
        arrays | {"big": edges.big, "totals": edges.totals},
        made,
        inout=inout,
        ctas=grid[0],
        threads=grid[1],
        shared_words=table_words(n) + 4,
        name="triangles",
        interpret=interpret,
    )


class _Triangles:
    """One launch; counts are pairs (below 2^CARRY, multiples of it) of a thread."""

    def __init__(self, k: Any, m: Any, n: int, each: bool):
        """each: whether triangles are counted for each vertex, not for each thread."""
        self.k, self.m, self.n, self.each = k, m, n, each
        self.bits, self.words = has_bits(n), table_words(n)
        self.table, self.next = k.shared(self.words), k.shared(4)

    def run(self):
        k, m = self.k, self.m
        low, high = self._big_vertices()
        low, high = k.spread_warps(self.n, self._short_rows, low, high)
        if self.each:
            return
        at = k.cta * k.threads + k.thread
        k.store(m.low, at, low)
        k.store(m.high, at, high)

    def _row(self, v, mask):
        """Where the heads of v begin, and how many they are; (0, 0) where masked off."""
        return self.k.load_vec(self.m.rows, 2 * v, 2, mask=mask, cache="nc")

    # ---- Vertices with a table ----

    def _big_vertices(self):
        k, m = self.k, self.m
        number = k.load(m.totals, NUMBER, cache="nc")
        most = LAST if self.bits else MOST  # heads that go through the table together
        if self.bits:
            k.for_(k.thread, self.words, k.threads, lambda i: k.store(self.table, i, 0))

        def take():
            k.store(self.next, 0, k.atomic("add", m.control, QUEUE, 1))

        def vertex(i, low, high):
            x = k.load(m.big, i, cache="nc")
            begin, size = self._row(x, None)
            k.if_(k.thread == 0, take)  # read behind the first barrier

            def part(p, taken, low, high):
                del taken
                table = self._fill(begin + p, k.minimum(size - p, most))
                taken = k.load(self.next, 0)
                found = self._neighbours(x, size, table, low)
                self._add_sum(x, found - low)
                low = found
                k.sync()
                if self.bits:
                    self._clear_bits(begin + p, k.minimum(size - p, most))
                return taken, *_carried(k, low, high)

            return k.for_(0, size, most, part, number, low, high)

        k.if_(k.thread == 0, take)
        k.sync()
        first = k.load(self.next, 0)
        k.sync()
        return k.while_(lambda i, low, high: i < number, vertex, first, 0, 0)[1:]

    def _add(self, v, found):
        """One triangle more for v where it was found, if they are counted for each vertex."""
        if self.each:
            self.k.reduce("add", self.m.each, v, 1, mask=found)

    def _add_sum(self, v, many):
        """The triangles of all lanes more for v, the same in all of them."""
        if self.each:
            k = self.k
            many = k.warp_sum(many)
            k.reduce("add", self.m.each, v, many, mask=(k.lane == 0) & (many != 0))

    def _set_bits(self, begin, size):
        """Sets the bits of some heads."""
        k, m = self.k, self.m

        def one(e):
            w = k.load(m.heads, begin + e, cache="nc")
            k.reduce("or", self.table, k.shr(w, 5), k.bit(w))

        k.for_(k.thread, size, k.threads, one)
        k.sync()

    def _clear_bits(self, begin, size):
        k, m = self.k, self.m

        def one(e):
            k.store(self.table, k.shr(k.load(m.heads, begin + e, cache="nc"), 5), 0)

        k.for_(k.thread, size, k.threads, one)
        k.sync()

    def _fill(self, begin, size) -> Table:
        """Makes the table of some heads."""
        k, m = self.k, self.m
        if self.bits:
            self._set_bits(begin, size)
            return Table(k.const(0), k.const(0))
        log = k.shr(k.bits(k.cast(size * SPARE, "f32"), "i32"), 23) - 126  # 2^log > size SPARE
        log = k.minimum(log, LOG)
        table = Table((k.const(1) << log) - 1, 32 - log)
        k.for_(k.thread, table.last + 1, k.threads, lambda i: k.store(self.table, i, EMPTY))
        k.sync()

        def insert(e):
            w = k.load(m.heads, begin + e, cache="nc")
            slot = k.shr(w * MIX, table.shift)
            before = k.atomic_cas(self.table, slot, EMPTY, w)

            def next_(slot, before, tries):
                slot = (slot + 1) & table.last
                return slot, k.atomic_cas(self.table, slot, EMPTY, w), tries + 1

            k.while_(
                lambda slot, before, tries: (
                    (before != EMPTY) & (before != w) & (tries <= table.last)
                ),
                next_,
                slot,
                before,
                0,
            )

        k.for_(k.thread, size, k.threads, insert)
        k.sync()
        return table

    def _neighbours(self, x, size, table: Table, total):
        """`total` and the triangles of x with its neighbours of shorter rows."""
        k, m = self.k, self.m
        begin, end = k.row(m.indptr, x)

        def look(places, payloads, valid, total):
            owners = [y for (y,) in payloads] if self.each else None
            return self._look(places, valid, table, total, owners)

        def some(j, valid, total):
            y = k.load(m.indices, begin + j, mask=valid, cache="nc")
            first, many = self._row(y, valid)
            shorter = (many < size) | ((many == size) & (y < x))
            many = k.where(valid & shorter, many, 0)

            def by_warp(left, total):
                lane = k.ctz(left)
                start, stop = k.shfl(first, lane), k.shfl(first + many, lane)

                def stride(e0, total):
                    places = [e0 + 32 * u + k.lane for u in range(UNROLL)]
                    return self._look(places, [p < stop for p in places], table, total)

                (found,) = k.for_(start, stop, 32 * UNROLL, stride, total)
                if self.each:
                    self._add_sum(k.shfl(y, lane), found - total)
                return left & (left - 1), found

            wide = k.ballot(many >= WIDE)
            _, total = k.while_(lambda left, total: left != 0, by_warp, wide, total)
            payload = (y,) if self.each else ()
            return flatten(k, first, k.where(many < WIDE, many, 0), payload, look, total)

        return k.distribute(end - begin, (k.warp, k.threads // 32), some, total)[0]

    def _look(self, places, valid, table: Table, total, owners=None):
        """`total` and how many of the heads at some places, of rows of `owners`, are in the table.

        Called by whole warps.
        """
        k = self.k
        heads = k.loads(self.m.heads, places, valid, cache="nc")
        hits = (self._bits_of if self.bits else self._words_of)(heads, valid, table)
        for i, (w, hit) in enumerate(zip(heads, hits, strict=True)):
            self._add(w, hit)
            if owners is not None:
                self._add(owners[i], hit)
            total = total + k.cast(hit, "i32")
        return total

    def _bits_of(self, heads, valid, table: Table):
        """Whether the bits of these heads are set."""
        k = self.k
        words = k.loads(self.table, [k.shr(w, 5) for w in heads], valid)
        return [(k.shr(word, w & 31) & 1) != 0 for w, word in zip(heads, words, strict=True)]

    def _words_of(self, heads, valid, table: Table):
        """Whether these heads are in the hash table.

        The lanes of a warp search until all are through, so that they stay together.
        """
        k, many = self.k, len(heads)
        slots = [k.shr(w * MIX, table.shift) for w in heads]
        words = k.loads(self.table, slots, valid, other=EMPTY)

        def searching(words):
            return [(x != w) & (x != EMPTY) for x, w in zip(words, heads, strict=True)]

        def going(tries, *state):
            some = searching(state[many:])
            return k.any(functools.reduce(operator.or_, some)) & (tries <= table.last)

        def next_(tries, *state):
            slots, words, some = state[:many], state[many:], searching(state[many:])
            slots = [(slot + 1) & table.last for slot in slots]
            found = k.loads(self.table, slots, some)
            each = zip(some, found, words, strict=True)
            return tries + 1, *slots, *(k.where(t, new, old) for t, new, old in each)

        words = k.while_(going, next_, 0, *slots, *words)[1 + many :]
        return [x == w for x, w in zip(words, heads, strict=True)]

    # ---- Edges between vertices without a table ----

    def _short_rows(self, u, low, high):
        """The triangles at the edges of some vertices, one a lane, to others without a table."""
        k, m = self.k, self.m
        begin, size = self._row(u, u < self.n)
        size = k.where((size > 1) & (size < BIG), size, 0)

        def compare(places, payloads, valid, total):
            heads = k.loads(m.heads, places, valid, cache="nc")
            for w, (start, stop, *ends), t in zip(heads, payloads, valid, strict=True):

                def same(at, total, w=w, ends=ends):
                    found = k.load(m.heads, at, cache="nc") == w
                    for v in (*ends, w):
                        self._add(v, found)
                    return total + k.cast(found, "i32")

                (total,) = k.for_(start, k.where(t, stop, start), 1, same, total)
            return total

        def edges(places, payloads, valid, total):
            (place,), ((begin, size, *tail),), (valid,) = places, payloads, valid
            v = k.load(m.heads, place, mask=valid, cache="nc")
            first, many = self._row(v, valid)
            valid = valid & (many > 0) & (many < BIG)
            swap = many < size  # the longer row is walked
            walk, steps = k.where(swap, begin, first), k.where(swap, size, many)
            other, length = k.where(swap, first, begin), k.where(swap, many, size)
            payload = (other, other + length, *tail, *((v,) if self.each else ()))
            return flatten(k, walk, k.where(valid, steps, 0), payload, compare, total, unroll=2)

        payload = (begin, size, u) if self.each else (begin, size)
        (low,) = flatten(k, begin, size, payload, edges, low, unroll=1)
        return _carried(k, low, high)


def _carried(k, low, high):
    """The same count with `low` below 2^CARRY."""
    return low & ((1 << CARRY) - 1), high + k.shr(low, CARRY)
