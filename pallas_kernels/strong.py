"""Strongly connected components in one launch, by signatures in both directions of the edges.

Method: first the component of a pivot: the vertices that it reaches and that reach it (Fleischer,
Hendrickson, Pinar 2000). Then, for all components together, every vertex computes its signature:
the least vertex that reaches it and the least that it reaches, in a pseudo-random order (Alabandi,
Sands, Biros, Burtscher 2023). If both are the same vertex, this vertex names the component. The
other vertices form classes of equal signatures, and the next generation repeats this within each
class: all vertices of one component have the same signature. A vertex whose signature changed is
listed, in short pieces of its rows, and pushes it along its edges in the next round; a grid barrier
ends a round, and one CTA does consecutive small rounds alone. Vertices of many edges come first in
the order: their signatures spread farthest and are replaced less often.

Cost: for each vertex and each round after its signature changed, a gather of 16 bytes for each of
its edges, in both directions; expected O(log n) rounds; a barrier a round; a pass over the vertices
for each generation, of which a graph needs few. Each generation finishes at least one component, so
the launch ends.

Measured (H200): cnr-2000 1.20 ms: 58 rounds of all CTAs, 4 to 86 us each, 185 of one, 1.7, and 0.10
between generations; 13 million edges. SciPy 18 to 28.
"""

from typing import Any, NamedTuple

import jax

from .rows.flatten import flatten
from .rows.worklist import MORE, Worklist
from .simt.launch import launch
from .simt.typed import Several

UNROLL = 2
WORDS = 40  # the first control word of the worklist
# The rank of a vertex in the order: (v + 1) MIX mod 2^BITS in the low BITS bits, above them a
# number that is smaller for vertices of more edges; 0 for the pivot, FAR for none.
BITS = 26
MIX, BACK, FAR = 0x1E3779B1, pow(0x1E3779B1, -1, 2**BITS), 2**31 - 1
DONE = -1  # the key of a vertex whose component is known
# words of the state of a vertex: its class, the least rank that reaches it, the least it reaches
KEY, DOWN, UP = range(3)
STATE = 4  # the last one is unused
PIECE_WORDS = 4  # begin, end, the row of 2 n; the last unused


class State(NamedTuple):
    """What the parts of a launch share: vertices, the worklist, where the in-edges begin."""

    n: int
    work: Worklist
    split: Any


def strong(indptr: jax.Array, indices: jax.Array, pivot: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(labels int32[n], status int32): for each vertex the least vertex of its strong component.

    indptr int32[2 n + 2], indices: n + 1 offsets of the rows of out-edges, then n + 1 offsets of
    the rows of in-edges, which follow in `indices`; columns in any order. pivot: int32, preferably
    a vertex of the largest component.
    """
    n = indptr.shape[0] // 2 - 1
    capacity = Worklist.capacity(2 * n, indices.shape[0])

    def kernel(k, m):
        work = Worklist(k, m.control, WORDS, m.pieces, capacity, PIECE_WORDS)
        split = k.load(m.indptr, n + 1, cache="nc")
        return _body(k, State(n, work, split), m, m.control)

    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices, "pivot": pivot.reshape(1)},
        {
            "labels": n,
            "least": n + 1,  # the least vertex of each component, by its name
            "state": STATE * n,
            "marks": 2 * n,  # the round (`part`) in which a row was listed
            "pieces": 2 * PIECE_WORDS * capacity,
            "status": 1,
        },
        shared_words=Worklist.shared_words(PIECE_WORDS),
        name="strong",
    )
    return out["labels"], out["status"][0]


def _body(k: Any, c: State, m: Any, control: Any):
    _plant(k, c, m)
    ok, count = k.grid_barrier(control, [(control, c.work.word(0))])

    def generation(ok, turn, part, count, left):
        ok, turn, part = c.work.run(lambda *w: _push(k, c, m, *w), ok, turn, part, count)
        c.work.clear(turn)
        _name(k, c, m, control, turn, part)
        words = [(control, c.work.word(turn, j)) for j in (0, MORE)]
        ok, count, left = k.grid_barrier(control, words)
        return ok, turn + 1, part + 1, count, left

    going = lambda ok, turn, part, count, left: (ok != 0) & (left != 0)  # noqa: E731
    ok = k.while_(going, generation, ok, k.const(1), k.const(1), count, k.const(1))[0]

    def finish(v):
        name = k.load(m.labels, v, cache="fresh")
        k.store(m.labels, v, k.load(m.least, name, mask=k.below(name, c.n + 1), cache="fresh"))

    k.spread(c.n, finish)
    return ok


def _plant(k: Any, c: State, m: Any):
    """Puts all vertices into one class and lists both rows of the pivot."""
    n = c.n
    pivot = k.load(m.pivot, 0, cache="nc")

    def one(v):
        start = k.where(v == pivot, 0, FAR)
        k.store_vec(m.state, v * STATE, (k.const(0), start, start, k.const(0)))
        for direction in (0, n):
            k.store(m.marks, v + direction, 0)
        k.store(m.least, v, FAR)

    k.spread(n, one)
    k.store(m.least, n, FAR, mask=(k.cta == 0) & (k.thread == 0))

    def first():
        r = pivot + k.lane * n
        c.work.put(0, 0, (*_row(k, c, m, r, k.lane < 2), r))

    k.if_((k.cta == 0) & (k.warp == 0), first)


def _row(k: Any, c: State, m: Any, r, mask):
    """(begin, end) of row r of 2 n; both 0 where masked."""
    return k.row(m.indptr, k.where(r >= c.n, r + 1, r), mask)


def _push(k: Any, c: State, m: Any, pieces, put, part, alone):
    """Listed vertices push their ranks along their edges; heads whose rank falls are listed."""
    n = c.n
    begin, size, r, *_ = pieces
    valid, up = size > 0, r >= n
    words = k.load_vec(m.state, k.where(up, r - n, r) * STATE, STATE, mask=valid, cache="fresh")
    mine, key = k.where(up, words[UP], words[DOWN]), words[KEY]

    def edges(places, valid, owner):
        up, head = places >= c.split, k.load(m.indices, places, mask=valid, cache="nc")
        words = k.load_vec(m.state, head * STATE, STATE, mask=valid, other=DONE, cache="fresh")
        row = k.where(up, head + n, head)
        ends = _row(k, c, m, row, valid) if alone else None
        value = k.shfl(mine, owner)
        # a masked load gives DONE, which no listed vertex has as key
        same = words[KEY] == k.shfl(key, owner)
        better = same & (value < k.where(up, words[UP], words[DOWN]))

        def lower():
            """Lowers the larger ranks; of all edges that do so in this round, one lists the
            head."""
            at = head * STATE + k.where(up, UP, DOWN)
            k.reduce("min", m.state, at, value, mask=better)
            if alone:
                new = c.work.first_time(row, better)
            else:
                new = better & (k.atomic("exch", m.marks, row, part + 1, mask=better) != part + 1)
            begin, end = ends or _row(k, c, m, row, better)
            put((begin, k.where(new, end, begin), row))

        k.if_(k.any(better), lower)

    flatten(k, begin, size, (k.lane,), edges, unroll=UNROLL)


def _name(k: Any, c: State, m: Any, control, turn, part):
    """Names the component of vertices whose two ranks are equal by that vertex, n for the pivot;
    the others start the next generation, in new classes. Control word MORE of the turn becomes 1 if
    there are such.
    """
    n = c.n

    def some(v, left_of_all):
        valid = v < n
        words = k.load_vec(m.state, v * STATE, STATE, mask=valid, other=DONE, cache="fresh")
        key, down, up = words[KEY], words[DOWN], words[UP]
        live = key != DONE
        done = live & (down == up) & (down != FAR)
        name = ((down * BACK) & (2**BITS - 1)) - 1
        name = k.where(down == 0, n, name)
        k.store(m.labels, v, name, mask=done)
        # of neighbouring vertices of one name, only the first updates `least`
        known = k.where(done, name, -1)
        is_first = done & ((k.lane == 0) | (k.shfl_up(known, 1) != name))
        least = k.load(m.least, name, mask=is_first, cache="fresh")
        k.reduce("min", m.least, name, v, mask=is_first & (v < least))
        left = live & ~done
        # Two classes that get the same number cost time only.
        mixed = (down * -1640531527) ^ (up * -2048144789)
        key = k.where(done, DONE, k.shr(mixed ^ k.shr(mixed, 15), 1))
        rows = Several((v, v + n))
        begin, end = _row(k, c, m, rows, left)
        own = ((v + 1) * MIX) & (2**BITS - 1)
        out, inn = k.cast(end - begin, "f32")
        power = k.shr(k.bits(out * inn + 1.0, "i32"), 23) - 127  # exponent of the product
        own = own | ((30 - k.minimum(power, 30)) << BITS)
        k.store_vec(m.state, v * STATE, (key, own, own, k.const(0)), mask=live)
        c.work.put(turn, part, (begin, end, rows))
        return left_of_all | k.cast(left, "i32")

    (left,) = k.spread_warps(n, some, 0)
    left = k.sync_count(left != 0)
    k.store(control, c.work.word(turn, MORE), 1, mask=(left > 0) & (k.thread == 0))
