"""Core numbers in one launch: vertices are peeled off level by level, in rounds between barriers.

Method: peeling with one counter a vertex (Batagelj, Zaversnik 2003; in parallel: Kabir, Madduri,
"Parallel k-core decomposition on multicore platforms", HPEC 2017). At level k the vertices of
degree k are listed. An edge out of one of them decrements the degree of its head if that is larger
than k; the edge that lowers it from k + 1 to k claims the head, which is peeled in the same level.
A counter that fell below k, because two edges decremented it together, is raised again. So in the
end it holds the core number, and no flag says whether a vertex is peeled.

A claimed vertex with a short row goes to a stack of the warp while that has capacity, so that
vertices that are peeled one after the other cost no barriers. The others are listed in short pieces
for the next round. Consecutive rounds of few pieces are done by one CTA. Once few vertices are
left, with few edges, it does all levels that follow: it has a list of them, and none waits for a
grid barrier.

Cost: two passes over all edges, the first without a list where rows are short; for every level that
has vertices, a pass over the n degrees and two grid barriers, and one more for each further round.
An atomic for every edge between vertices that are not peeled.

Floor (H200): grid1000 has 3.6M atomics, 0.04 ms, delaunay21 12.6M, 0.14. Measured: grid1000 0.204
ms, moscow-roads 0.197, delaunay21 0.378, coAuthorsDBLP 1.12, rmat18 3.33, cnr-2000 3.25 (176 rounds
of all CTAs, 624 of one, 2.0 us each, 80 levels).
"""

import functools
from typing import Any, NamedTuple

import jax

from .frontier import put
from .rows.flatten import flatten
from .rows.worklist import FOURTH, MORE, THIRD, Worklist
from .simt.device import extent
from .simt.launch import launch
from .simt.typed import Several

STACK = 128  # capacity of the stack of a warp
STACKED = 16  # rows of at most so many edges go to the stack
SHORT = 16  # self loops of rows of at most so many edges are found without a list
UNROLL = 2
LEFT, EDGES = 2048, 131072  # vertices that are left to one CTA at most, and entries of their rows
WORDS = 40  # the first control word of the worklist
DONE = WORDS + Worklist.CONTROL_WORDS  # control word: 1 if one CTA has done all levels
ALIVE, SIZE = THIRD, FOURTH  # of a turn: vertices above the level, entries of their rows
PIECE_WORDS = 4  # begin, end, the vertex; the last unused
FAR = 2**31 - 1


class State(NamedTuple):
    """What the parts of a launch share.

    n: vertices. work: the worklist. In shared memory, stack: the stacks of the warps; above: FAR -
    the least degree above the level that this CTA saw, and the entries of such rows; level: the
    level that this CTA peels alone.
    """

    n: int
    work: Worklist
    stack: Any
    above: Any
    level: Any


def cores(indptr: jax.Array, indices: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(core numbers int32[n], the largest, status int32) of a symmetric graph; self loops do not
    count."""
    n = indptr.shape[0] - 1
    capacity, form = Worklist.capacity(n, indices.shape[0]), extent()

    def kernel(k, m):
        stack, above, level = k.shared(k.threads // 32 * STACK), k.shared(4), k.shared(4)
        work = Worklist(k, m.control, WORDS, m.pieces, capacity, PIECE_WORDS)
        few = indices.shape[0] <= EDGES
        return _body(k, State(n, work, stack, above, level), m, m.control, few)

    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices},
        {
            "degree": n,
            "pieces": 2 * PIECE_WORDS * capacity,
            "alive": min(n, LEFT),
            "largest": 1,
            "status": 1,
        },
        shared_words=form["threads"] // 32 * STACK + Worklist.shared_words(PIECE_WORDS) + 8,
        name="cores",
    )
    return out["degree"], out["largest"][0], out["status"][0]


def _body(k: Any, c: State, m: Any, control: Any, few: bool):
    """few: whether the graph has at most EDGES entries."""
    k.store(c.above, k.thread, 0, mask=k.thread < 4)
    k.store(m.largest, 0, 0, mask=(k.cta == 0) & (k.thread == 0))
    _degrees(k, c, m)
    ok, count = k.grid_barrier(control, [(control, c.work.word(0))])
    loops = lambda pieces, *_: _without_loops(k, m, pieces[2], *pieces[:2])  # noqa: E731
    ok, turn, part = c.work.run(loops, ok, k.const(1), k.const(1), count)

    def level_(ok, turn, part, level, left, few):
        c.work.clear(turn)
        _list(k, c, m, control, (turn, part, level, few))
        read = [(control, c.work.word(turn, j)) for j in (0, MORE, ALIVE, SIZE)]
        size = [(c.above, 1, control, c.work.word(turn, SIZE))]
        ok, listed, left, alive, size = k.grid_barrier(control, read, size)
        _largest(k, m, level, listed)
        k.store(c.level, 0, level, mask=k.thread == 0)
        # if no degree is above the level, all listed vertices are done
        count = k.where(left != 0, listed, 0)
        last = k.where((few != 0) & (alive <= LEFT) & (size <= EDGES), 1, 0)
        peel = lambda *w: _peel(k, c, m, level, *w)  # noqa: E731
        refill = last, lambda *w: _next_level(k, c, m, control, alive, *w)
        ok, turn, part = c.work.run(peel, ok, turn + 1, part + 1, count, refill)
        done = k.load(control, DONE, mask=last != 0, other=0, cache="fresh")
        next_ = k.where(listed > 0, level + 1, FAR - left)
        return ok, turn, part, next_, k.where(done != 0, 0, left), k.cast(size <= EDGES, "i32")

    start = ok, turn, part, k.const(1), k.const(1), k.const(int(few))
    going = lambda ok, turn, part, level, left, few: (ok != 0) & (left != 0)  # noqa: E731
    return k.while_(going, level_, *start)[0]


def _largest(k: Any, m: Any, level, listed):
    """Stores the level as the largest core number if vertices are listed."""
    k.store(m.largest, 0, level, mask=(k.cta == 0) & (k.thread == 0) & (listed > 0))


def _degrees(k: Any, c: State, m: Any):
    """Stores the degree of each vertex, without the self loops of short rows; lists the others."""

    def rows(v):
        begin, end = k.row(m.indptr, v, v < c.n)
        k.store(m.degree, v, end - begin, mask=v < c.n)
        k.sync_warp()
        short = end - begin <= SHORT
        _without_loops(k, m, v, begin, k.where(short, end - begin, 0))
        c.work.put(0, 0, (begin, k.where(short, begin, end), v))

    k.spread_warps(c.n, rows)


def _without_loops(k, m, v, begin, size):
    """Subtracts the self loops of some edges of each lane's v from its degree."""

    def edges(places, valid, owner):
        head = k.load(m.indices, places, mask=valid, cache="nc")
        k.reduce("add", m.degree, head, -1, mask=valid & (head == k.shfl(v, owner)))

    flatten(k, begin, size, (k.lane,), edges, unroll=UNROLL)


def _list(k: Any, c: State, m: Any, control, now):
    """Lists the vertices whose degree is `level`; now: (turn, part, level, few).

    Control word MORE of the turn becomes FAR - the least degree above it, 0 if there is none. The
    CTA's part of control word SIZE is added up: entries of rows above the level, the degrees alone
    as long as `few` is 0. If it is not, these vertices are listed in `alive`, and ALIVE is their
    number.
    """
    turn, part, level, few = now

    def some(v, above, size):
        degree = k.load(m.degree, v, mask=v < c.n, other=-1, cache="fresh")
        mine, more = degree == level, degree > level
        listed = lambda: c.work.put(turn, part, (*k.row(m.indptr, v, mine), v))  # noqa: E731
        k.if_(k.any(mine), listed)

        def store(place, v, mask):
            k.store(m.alive, place, v, mask=mask & (place < min(c.n, LEFT)))

        def keep():
            put(k, more, (control, c.work.word(turn, ALIVE)), store, v)
            begin, end = k.row(m.indptr, v, more)
            return size + k.where(more, end - begin, 0)

        (size,) = k.if_((few != 0) & k.any(more), keep, size + k.where(more, degree, 0))
        return k.minimum(above, k.where(more, degree, FAR)), size

    above, size = k.spread_warps(c.n, some, FAR, 0)
    _fold_above(k, c, above)
    k.add_sum(c.above, 1, size)
    k.sync()

    def report():
        k.reduce("max", control, c.work.word(turn, MORE), k.load(c.above, 0))
        k.store(c.above, 0, 0)

    k.if_(k.thread == 0, report)


def _fold_above(k: Any, c: State, above):
    """The least degree above the level that threads of this CTA saw goes to c.above[0]."""
    above = FAR - k.warp_fold(k.minimum, above)
    k.reduce("max", c.above, 0, above, mask=k.lane == 0)


def _next_level(k: Any, c: State, m: Any, control, alive, put, listed):
    """Puts the vertices of the next level that has some; returns their number, 0 if all are done.

    One CTA calls this, which has `alive` vertices in its list; see `Worklist.run`.
    """

    def scan(level, count, left):

        def some(first, above):
            at = k.several(UNROLL, lambda u: first + u * k.threads + k.lane)
            v = k.load(m.alive, at, mask=at < alive, other=0, cache="fresh")
            degree = k.load(m.degree, v, mask=at < alive, other=-1, cache="fresh")
            put((*k.row(m.indptr, v, degree == level), v))
            return functools.reduce(k.minimum, k.where(degree > level, degree, FAR), above)

        (above,) = k.for_(k.warp * 32, alive, UNROLL * k.threads, some, FAR)
        _fold_above(k, c, above)
        count = listed()
        left = k.load(c.above, 0)
        k.sync()
        k.store(c.above, 0, 0, mask=k.thread == 0)
        k.store(c.level, 0, level, mask=k.thread == 0)
        _largest(k, m, level, count)
        k.sync()
        return k.where(count > 0, level, FAR - left), count, left

    going = lambda level, count, left: (count == 0) & (left != 0)  # noqa: E731
    _, count, left = k.while_(going, scan, k.load(c.level, 0) + 1, 0, 1)
    k.store(control, DONE, 1, mask=(left == 0) & (k.thread == 0))
    return k.where(left != 0, count, 0)


def _peel(k: Any, c: State, m: Any, level, pieces, put, part, alone):
    """Peels the listed vertices: decrements the degrees of their neighbours."""
    mine = k.warp * STACK
    if alone:  # levels follow each other in one CTA
        level = k.load(c.level, 0)

    def edges(places, valid, _, top):
        """Each edge decrements the degree of its head, and undoes it if the head is peeled."""
        head, live = k.load(m.indices, places, mask=valid, cache="nc"), valid
        if not alone:
            live = k.load(m.degree, head, mask=valid, other=0, cache="fresh") > level
        before = k.atomic("add", m.degree, head, -1, mask=live)
        row = k.row(m.indptr, head, live) if alone else None
        k.reduce("add", m.degree, head, 1, mask=live & (before <= level))
        # the one edge that lowered a head to this level claims it
        claimed = live & (before == level + 1)
        return k.if_(k.any(claimed), lambda: keep(head, row, claimed, top), top)

    def keep(head, row, claimed, top):
        begin, end = row or k.row(m.indptr, head, claimed)
        short, left = claimed & (end - begin <= STACKED), []
        for v, mask, few in zip(head, claimed, short, strict=True):
            place = top + k.lanes_below(k.ballot(few))
            inside = few & (place < STACK)
            k.store(c.stack, mine + place, v, mask=inside)
            top = k.minimum(top + k.popc(k.ballot(few)), STACK)
            left.append(mask & ~inside)
        put((begin, k.where(Several(left), end, begin), head))
        return top

    def rows(begin, size, top):
        (top,) = flatten(k, begin, size, (k.lane,), edges, top, unroll=UNROLL)
        k.sync_warp()
        below = k.maximum(top - 32, 0)
        valid = below + k.lane < top
        begin, end = k.row(m.indptr, k.load(c.stack, mine + below + k.lane, mask=valid), valid)
        k.sync_warp()
        return begin, end - begin, below

    begin, size, *_ = pieces
    k.while_(lambda begin, size, top: k.any(size > 0), rows, begin, size, 0)
