"""Breadth-first search from up to 32 sources in one launch: one bit for each source, one word for
each vertex.

Method: Then et al., "The more the merrier: efficient multi-source graph traversal", VLDB 2014, with
atomics: `seen[v]` holds a bit for every source that has reached v. An edge u -> v sets the bits of
u's frontier that `seen[v]` lacks, by an atomic `or`; its old value shows which of them no other
edge set before, and exactly for these sources u is the parent of v. After a grid barrier, `seen`
xor its copy `old` is the next frontier. A level is pushed (the edges of the frontier) or pulled
(the edges into vertices that some source has not reached), whichever has fewer edges. Rows of more
than LONG edges are cut into ranges that all warps share; a warp expands 32 of the others together,
an edge a lane.

Cost: two passes over the n words and two grid barriers a level; one gather for each visited edge;
one atomic for each edge that sets a bit; 4 bytes of level and of parent for each bit.

Measured (H200), 32 sources: rmat18 0.492 ms with parents, 0.381 levels alone, where 30M gathers at
100 G/s take 0.3; 32 launches for one source each take 2.33. coAuthorsDBLP 1.17 and 0.90 (4.02),
moscow-roads 9.50 and 8.87 (31.2; 726 levels, 12 us each).
"""

import operator
from typing import NamedTuple

import jax

from ..frontier import Rotation
from ..layouts.adjacency import Adjacency
from ..simt.launch import launch
from ..simt.primitives import Simt
from ..simt.typed import Array, Arrays, Operand, Value

SOURCES = 32
LONG = 128  # edges of a row that one warp expands together with 31 other rows
SPAN = 128  # edges of a range of a longer row
UNROLL = 2  # edges of a lane in flight
ALPHA = 1.5  # a pull visits so many edges in the time that a push takes for one
# Control words, in rotation by the level: active vertices, edges to push, edges to pull, ranges of
# long rows to push, ranges to pull.
COUNTS, SET = 40, 5
ACTIVE, OUT, MISSING, OUT_RANGES, IN_RANGES = range(SET)


class Problem(NamedTuple):
    """What is known while a search is traced; every: the word of all sources."""

    n: int
    count: int
    every: int
    parents: bool
    alpha: float
    pull: bool


def bfs_sources(
    graph: Adjacency,
    sources: jax.Array,
    *,
    symmetric: bool = True,
    parents: bool = True,
    alpha: float = ALPHA,
) -> tuple[jax.Array, jax.Array | None, jax.Array]:
    """(levels int32[count, n], parents int32[count, n] or None, status int32) of count searches.

    graph, symmetric, levels, parents and status as in `bfs`; sources int32[count], count <= 32,
    one that is no vertex reaches nothing.
    """
    n, count = graph.n, sources.shape[0]
    if not 0 < count <= SOURCES:
        raise ValueError(f"sources has {count} entries: from 1 to {SOURCES} fit into a word")
    graph = graph.in_both_directions(symmetric)
    every = -1 if count == 32 else (1 << count) - 1
    c = Problem(n, count, every, parents, alpha, pull=graph.in_indices is not None)
    operands = {"indptr": graph.indptr, "indices": graph.indices, "sources": sources}
    if c.pull:
        operands |= {"in_indptr": graph.in_indptr, "in_indices": graph.in_indices}
    nnz = graph.indices.shape[0]
    ranges = 2 * (nnz // SPAN + nnz // LONG + 1)
    outputs = {"levels": count * n} | ({"parents": count * n} if parents else {})
    outputs |= {"seen": n, "old": n, "words": n, "out_ranges": ranges}
    outputs |= {"in_ranges": ranges} if c.pull else {}
    out = launch(
        lambda k, m: _body(k, c, m),
        operands,
        outputs | {"status": 1},
        shared_words=8,
        name="bfs_sources",
    )
    tree = out["parents"].reshape(n, count).T if parents else None
    return out["levels"].reshape(count, n), tree, out["status"][0]


def _body(k: Simt, c: Problem, m: Arrays) -> Value:
    m.sums, groups = k.shared(8), Rotation(k, m.control, COUNTS, SET)
    k.store(m.sums, k.thread, 0, mask=k.thread < 8)
    _start(k, c, m)

    def step(level, ok, active, out, missing, out_ranges, in_ranges):
        push = k.const(True, "i1")
        if c.pull:
            push = k.cast(out, "f32") * c.alpha <= k.cast(missing, "f32")
            k.if_(~push, lambda: _expand(k, c, m, in_ranges, pull=True))
        k.if_(push, lambda: _expand(k, c, m, out_ranges, pull=False))
        k.grid_barrier(m.control)
        return _advance(k, c, m, groups, level + 1)

    first = _advance(k, c, m, groups, k.const(0))
    return k.while_(lambda level, ok, active, *_: (ok != 0) & (active > 0), step, *first)[1]


def _start(k: Simt, c: Problem, m: Arrays) -> None:
    """Fills the results with -1 and gives every source its bit."""

    def blank(i):
        k.store(m.levels, i, -1)
        if c.parents:
            k.store(m.parents, i, -1)

    def empty(v):
        k.store(m.seen, v, 0)
        k.store(m.old, v, 0)

    k.spread(c.count * c.n, blank)
    k.spread(c.n, empty)
    k.grid_barrier(m.control)
    mine = (k.cta == 0) & (k.thread < c.count)
    source = k.load(m.sources, k.thread, mask=mine, other=-1)
    mine = mine & k.below(source, c.n)
    k.reduce("or", m.seen, source, k.bit(k.thread), mask=mine)
    if c.parents:
        k.store(m.parents, _place(c, k.thread, source), source, mask=mine)
    k.grid_barrier(m.control)


def _place(c: Problem, source: Value, v: Value) -> Value:
    """Where the parent of v in the search from `source` is stored while it runs: parents of one
    vertex are side by side."""
    return v * c.count + source


def _advance(k: Simt, c: Problem, m: Arrays, groups: Rotation, level: Value) -> tuple[Value, ...]:
    """Makes the vertices that the level found the frontier; returns (level, ok, *the control words
    of the next expansion)."""
    control, at = m.control, groups.group(level)
    groups.clear(level)

    def group(v, active, edges, missing):
        valid = v < c.n
        now = k.load(m.seen, v, mask=valid, cache="fresh")
        new = now ^ k.load(m.old, v, mask=valid, cache="fresh")
        k.store(m.words, v, new, mask=valid)
        k.store(m.old, v, now, mask=new != 0)
        union = k.warp_fold(operator.or_, new)

        def reached(s):
            k.store(m.levels, s * c.n + v, level, mask=k.shr(new, s) & 1 != 0)

        k.each_bit(union, reached)
        begin, end = k.row(m.indptr, v, new != 0)
        _list_long(k, m.out_ranges, (control, at + OUT_RANGES), v, begin, end - begin)
        active, edges = active + k.cast(new != 0, "i32"), edges + (end - begin)
        if c.pull:
            begin, end = k.row(m.in_indptr, v, valid & (now != c.every))
            _list_long(k, m.in_ranges, (control, at + IN_RANGES), v, begin, end - begin)
            missing = missing + (end - begin)
        return active, edges, missing

    k.add_sum(m.sums, 0, *k.spread_warps(c.n, group, 0, 0, 0))
    k.sync()
    ok, *counts = k.grid_barrier(
        control,
        reads=[(control, at + j) for j in range(SET)],
        adds=[(m.sums, j, control, at + j) for j in (ACTIVE, OUT, MISSING)],
    )
    return level, ok, *counts


def _list_long(
    k: Simt, ranges: Array, tail: tuple[Array, Operand], v: Value, begin: Value, degree: Value
) -> None:
    """Appends the ranges of the rows with more than LONG edges: (vertex, first edge). tail: the
    array and the word that count them."""
    parts = k.where(degree > LONG, (degree + (SPAN - 1)) // SPAN, 0)

    def append():
        upto, total = k.warp_scan(parts)
        at = k.reserve(*tail, total) + upto - parts
        k.for_(0, parts, 1, lambda j: k.store_vec(ranges, 2 * (at + j), (v, begin + j * SPAN)))

    k.if_(k.any(parts > 0), append)


def _expand(k: Simt, c: Problem, m: Arrays, ranges: Value, *, pull: bool) -> None:
    """Visits the edges of one level: out of the frontier (push), or into vertices that some source
    has not reached (pull)."""
    indptr, indices, ranges_of = m.indptr, m.indices, m.out_ranges
    if pull:
        indptr, indices, ranges_of = m.in_indptr, m.in_indices, m.in_ranges

    def edge(x, word, at, mask):
        """(tail, head, bits to set) of edge number `at` of vertex x; word: the bits that x can send
        (push) or that it lacks (pull)."""
        if not pull:
            y = k.load(indices, at, mask=mask, cache="nc")
            return x, y, word & ~k.load(m.seen, y, mask=mask, other=-1, cache="fresh")
        word = word & ~k.load(m.seen, x, mask=mask, other=-1, cache="fresh")
        y = k.load(indices, at, mask=word != 0, cache="nc")
        return y, x, word & k.load(m.words, y, mask=word != 0, cache="fresh")

    def bits_of(v, mask):
        if pull:
            return c.every & ~k.load(m.seen, v, mask=mask, other=-1, cache="fresh")
        return k.load(m.words, v, mask=mask, cache="fresh")

    def rows(v):
        word = bits_of(v, v < c.n)
        begin, end = k.row(indptr, v, word != 0)
        degree = k.where(end - begin > LONG, 0, end - begin)
        upto, total = k.warp_scan(degree)
        before = upto - degree

        def some(e0):
            found = []
            for j in range(UNROLL):
                e = e0 + 32 * j + k.lane
                owner = k.owner(before, e)
                at, x = k.shfl(begin - before, owner) + e, k.shfl(v, owner)
                found.append(edge(x, k.shfl(word, owner), at, e < total))
            for one in found:
                _record(k, c, m, *one)

        k.for_(0, total, 32 * UNROLL, some)

    k.spread_warps(c.n, rows)

    def one_range(i):
        x, begin = k.load_vec(ranges_of, 2 * i, 2, cache="fresh")
        word = bits_of(x, k.const(True, "i1"))
        end = k.minimum(begin + SPAN, k.load(indptr, x + 1, cache="nc"))

        def some(e0):
            places = [e0 + 32 * j + k.lane for j in range(UNROLL)]
            for one in [edge(x, word, at, at < end) for at in places]:
                _record(k, c, m, *one)

        k.for_(begin, k.where(word != 0, end, begin), 32 * UNROLL, some)

    first, step = k.warps
    k.for_(first, ranges, step, one_range)


def _record(k: Simt, c: Problem, m: Arrays, u: Value, v: Value, new: Value) -> None:
    """Sets the bits `new` of v, reached from u; u becomes the parent for those not set before."""
    before = k.atomic("or", m.seen, v, new, mask=new != 0)
    if c.parents:
        k.each_bit(new & ~before, lambda source: k.store(m.parents, _place(c, source, v), u))
