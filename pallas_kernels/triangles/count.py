"""Triangles by tables of rows, from edges to higher ranks (`upward.py`), in one launch.

Every triangle u -> v -> w, u -> w is a w in the rows of both ends of the edge u -> v. The shorter
of the two rows is looked up in the longer one. A vertex x of BIG edges or more has a table in
shared memory (`tables.py`), made once for all its neighbours y in the whole graph, in either
direction, whose rows are shorter (of equal ones those of smaller number). So an edge costs the
length of its shorter row, whichever direction it has. Tables are made by CTAs, those of vertices
with few edges by warps. CTAs take vertices from a queue. Where both rows of an edge are short, its
lanes compare them entry by entry.

Traffic: for each neighbour of a big vertex its number and two words, for each edge the shorter row
in strides of 32 lanes; a look-up in shared memory an entry. Hash tables are kept an eighth full;
rows of more than MOST edges go through them in parts. Atomics: one a big vertex, and one in shared
memory for each of its heads.

Floor (H200): rmat18 has 1.75e9 look-ups (3.4e9 if the row at the head of each edge is walked), 7 GB
from L2, 1.5 ms; delaunay21 and grid1000 gather two words an edge, 0.06 and 0.02. Measured: upward
edges and count of moscow-roads 0.014 + 0.014 ms, grid1000 0.030 + 0.033, delaunay21 0.136 + 0.25,
coAuthorsDBLP 0.043 + 0.11, rmat18 0.26 + 5.3, rmat21 1.7 + 130; cnr-2000 0.24 + 0.20: its 103,550
big vertices have at most 64 edges and 512 entries, all but 439.
"""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..rows.flatten import flatten
from ..simt.device import Extent, extent, resident_ctas, target
from ..simt.launch import launch
from ..simt.typed import one_by_one
from .tables import Table, Tables
from .upward import BIG, MEDIUM, NUMBER, Upward

MOST_WORDS = 24 * 1024  # words of a table of bits at most: one fits into every GPU
SPARE_WORDS = 512  # of shared memory, left free by each table
LOG = 13  # logarithm of the words of the largest hash table of a CTA
LOG_OF_WARP = 8  # and of a warp
WIDE = 32  # rows of so many edges or more are walked by a warp each
UNROLL = 4  # strides of 32 entries that are in flight together
WAVES = 4  # CTAs on a multiprocessor
QUEUE = 43  # control word: vertices taken by CTAs
CARRY = 30  # the higher word of a count is in multiples of 2^CARRY


class Counts(NamedTuple):
    """Numbers of triangles: the sum of `low` and of 2^CARRY times `high`, int32 of every thread."""

    low: jax.Array
    high: jax.Array


def triangles(indptr: jax.Array, indices: jax.Array, edges: Upward) -> Counts:
    """The number of triangles of an undirected graph.

    The graph is as for `upward`, no edge twice; self loops do not count. edges: what it gives.
    """
    form = form_for(indptr.shape[0] - 1)
    threads = form["ctas"] * form["threads"]
    made = {"low": threads, "high": threads}
    out = _launched((indptr, indices, edges), made, {})
    return Counts(out["low"], out["high"])


def triangles_of_vertices(indptr: jax.Array, indices: jax.Array, edges: Upward) -> jax.Array:
    """int32[n]: the number of triangles of each vertex; arguments as of `triangles`.

    Three atomics a triangle more, or two where a warp walks a row.
    """
    start = {"vertices": jnp.zeros(indptr.shape[0] - 1, jnp.int32)}
    return _launched((indptr, indices, edges), {}, start)["vertices"]


def triangles_of_edges(indptr: jax.Array, indices: jax.Array, edges: Upward) -> jax.Array:
    """int32[nnz]: the number of triangles of each edge, at its slot in the row of its smaller end.

    Arguments as of `triangles`, columns ascending in each row. Three searches in rows and three
    atomics a triangle more.
    """
    start = {"edges": jnp.zeros(indices.shape[0], jnp.int32)}
    return _launched((indptr, indices, edges), {}, start)["edges"]


def has_bits(n: int) -> bool:
    """Whether the table of a CTA has a bit for each vertex, not a word for each head."""
    return n <= 32 * MOST_WORDS


def table_words(n: int) -> int:
    """Words of shared memory of the table of a CTA."""
    return -(-n // 32) if has_bits(n) else 1 << LOG


def form_for(n: int) -> Extent:
    """Arguments of `launch`: as many tables as fit, of all vertices at most WAVES."""
    words = table_words(n) + (512 // 32 << LOG_OF_WARP)
    fitting = (target().shared_bytes // 4 - SPARE_WORDS) // (words + SPARE_WORDS)
    waves = max(min(WAVES, fitting), 1)
    return extent(waves * resident_ctas(), 256 if waves > 2 else 512 // waves * 2)


def _launched(operands, made, inout):
    """The arrays that a launch makes."""
    indptr, indices, edges = operands
    n = indptr.shape[0] - 1
    form = form_for(n)
    arrays = {"indptr": indptr, "indices": indices, "rows": edges.rows, "heads": edges.heads}
    return launch(
        lambda k, m: _Triangles(k, m, n, *inout).run(edges.big.shape[0] - 1),
        arrays | {"big": edges.big, "totals": edges.totals},
        made,
        inout=inout,
        **form,
        shared_words=table_words(n) + (form["threads"] // 32 << LOG_OF_WARP) + 8,
        name="triangles",
    )


class _Triangles:
    """One launch; counts are pairs (below 2^CARRY, multiples of it) of a thread."""

    def __init__(self, k: Any, m: Any, n: int, each: str = ""):
        """each: of what triangles are counted, "vertices" or "edges"; else of each thread."""
        self.k, self.m, self.n, self.each = k, m, n, each
        warps, words = k.threads // 32, table_words(n)
        table, self.next = k.shared(words + (warps << LOG_OF_WARP)), k.shared(4)
        log = None if has_bits(n) else LOG
        cta = (k.thread, k.threads), (k.warp, warps), k.sync, (table, 0, log)
        warp_at = words + (k.warp << LOG_OF_WARP)
        warp = (k.lane, 32), (0, 1), k.sync_warp, (table, warp_at, LOG_OF_WARP)
        self.of_cta, self.of_warp = (Tables(k, m.heads, *team) for team in (cta, warp))
        if log is None:
            self.of_cta.clear(words)

    def run(self, last):
        """last: the last place of `big`."""
        k, m = self.k, self.m
        low, high = self._by_ctas()
        first, step = k.warps

        def vertex(i, low, high):
            return self._big_vertex(self.of_warp, last - i, low, high)[1:]

        low, high = k.for_(first, k.load(m.totals, MEDIUM, cache="nc"), step, vertex, low, high)
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

    def _by_ctas(self):
        """The triangles of the first vertices of `big`, which CTAs take from a queue."""
        k, m = self.k, self.m
        number = k.load(m.totals, NUMBER, cache="nc")

        def take():
            k.store(self.next, 0, k.atomic("add", m.control, QUEUE, 1))

        k.if_(k.thread == 0, take)
        k.sync()
        first = k.load(self.next, 0)
        k.sync()

        def vertex(i, low, high):
            return self._big_vertex(self.of_cta, i, low, high, take)

        return k.while_(lambda i, low, high: i < number, vertex, first, 0, 0)[1:]

    def _big_vertex(self, tables: Tables, place, low, high, take=None):
        """The triangles of the vertex at a place of `big`; take: stores the number of the next."""
        k, m = self.k, self.m
        x = k.load(m.big, place, cache="nc")
        begin, size = self._row(x, None)
        if take is not None:
            k.if_(tables.threads[0] == 0, take)  # read behind the first barrier

        def part(p, taken, low, high):
            many = k.minimum(size - p, tables.most)
            table = tables.fill(begin + p, many)
            if take is not None:
                taken = k.load(self.next, 0)
            found = self._neighbours(x, size, tables, table, low)
            self._add_sum(found - low, x)
            tables.sync()
            tables.empty(begin + p, many)
            return taken, *_carried(k, found, high)

        return k.for_(0, size, tables.most, part, 0, low, high)

    def _add(self, found, vertices, summed=()):
        """One triangle more for some of its vertices, or for their edges, where it was found.

        summed: its other vertices, for which, and for the edge between them, `_add_sum` counts.
        """
        if self.each == "vertices":
            for v in vertices:
                self.k.reduce("add", self.m.vertices, v, 1, mask=found)
        if self.each == "edges":
            ends = itertools.combinations(vertices, 2), itertools.product(vertices, summed)
            for u, v in itertools.chain(*ends):
                self._add_to_edge(u, v, 1, found)

    def _add_sum(self, many, v, other=None):
        """The triangles of all lanes more for v, or for its edge to another vertex, the same in
        all of them."""
        k = self.k
        if self.each == ("vertices" if other is None else "edges"):
            many = k.warp_sum(many)
            first = (k.lane == 0) & (many != 0)
            if other is None:
                k.reduce("add", self.m.vertices, v, many, mask=first)
            else:
                self._add_to_edge(v, other, many, first)

    def _add_to_edge(self, u, v, many, mask):
        k, m = self.k, self.m
        row = k.row(m.indptr, k.minimum(u, v), mask)
        k.reduce("add", m.edges, k.search(m.indices, *row, k.maximum(u, v)), many, mask=mask)

    def _neighbours(self, x, size, tables: Tables, table: Table, total):
        """`total` and the triangles of x with its neighbours of shorter rows."""
        k, m = self.k, self.m
        begin, end = k.row(m.indptr, x)

        def look(places, valid, *rest):
            *of_row, total = rest
            add = lambda w, hit, *y: self._add(hit, (w, *y), (x,))  # noqa: E731
            return self._look(places, valid, (tables, table), total, add, *of_row)

        def some(j, valid, total):
            y = k.load(m.indices, begin + j, mask=valid, cache="nc")
            first, many = self._row(y, valid)
            shorter = (many < size) | ((many == size) & (y < x))
            many = k.where(valid & shorter, many, 0)

            def by_warp(lane, total):
                start, stop, owner = (k.shfl(z, lane) for z in (first, first + many, y))

                def stride(e0, total):
                    at = k.several(UNROLL, lambda u: e0 + 32 * u + k.lane)
                    add = lambda w, hit: self._add(hit, (w,), (owner, x))  # noqa: E731
                    return self._look(at, at < stop, (tables, table), total, add)

                (found,) = k.for_(start, stop, 32 * UNROLL, stride, total)
                self._add_sum(found - total, owner)
                self._add_sum(found - total, owner, x)
                return found

            (total,) = k.each_bit(k.ballot(many >= WIDE), by_warp, total)
            payload = (y,) if self.each else ()
            return flatten(k, first, k.where(many < WIDE, many, 0), payload, look, total)

        return k.distribute(end - begin, tables.warps, some, total)[0]

    def _look(self, places, valid, table: tuple[Tables, Table], total, add, *of_row):
        """`total` and how many of the heads at some places are in the table; add(head, whether it
        is, *of_row). Called by whole warps.
        """
        k = self.k
        heads = k.load(self.m.heads, places, mask=valid, cache="nc")
        for w, hit, *more in one_by_one(heads, table[0].has(heads, valid, table[1]), *of_row):
            add(w, hit, *more)
            total = total + k.cast(hit, "i32")
        return total

    # ---- Edges between vertices without a table ----

    def _short_rows(self, u, low, high):
        """The triangles at the edges of some vertices, one a lane, to others without a table."""
        k, m = self.k, self.m
        begin, size = self._row(u, u < self.n)
        size = k.where((size > 1) & (size < BIG), size, 0)

        def compare(places, valid, *rest):
            *row, total = rest
            heads = k.load(m.heads, places, mask=valid, cache="nc")
            for w, t, start, stop, *ends in one_by_one(heads, valid, *row):

                def same(at, total, w=w, ends=ends):
                    found = k.load(m.heads, at, cache="nc") == w
                    self._add(found, (*ends, w))
                    return total + k.cast(found, "i32")

                (total,) = k.for_(start, k.where(t, stop, start), 1, same, total)
            return total

        def edges(place, valid, begin, size, *rest):
            *tail, total = rest
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
