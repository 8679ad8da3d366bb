"""Greedy colours in a given order, in one launch: a vertex waits for its earlier neighbours.

Method: Jones, Plassmann (1993), with a shortcut (Alabandi, Powers, Burtscher, "Increasing the
parallelism of graph coloring via shortcutting", PPoPP 2020). The least colour that the earlier
neighbours of a vertex do not have yet is a lower bound of its own colour; a waiting vertex
publishes this bound. Once all earlier neighbours without a colour have larger bounds, none of them
can take the colour that equals its bound, so that is final: the same colour as in the sequential
order. This shortens the chains of waiting vertices to about the number of colours (rmat18: 1,600 to
280).

Vertices are distributed to warps round robin in their order, and a warp finishes one before the
next. So the first vertex without a colour is always being processed, and there is no deadlock. The
lanes of a warp read the row of its vertex together; neighbours that come earlier and have no colour
are listed, and only these are read again. After the last vertex of more than NARROW edges, each
lane has a vertex of its own. Long rows are cut into pieces first, and all warps list the earlier
neighbours in them, so that no warp reads a row of a hundred thousand edges alone.

Cost: a gather an edge, one more for each edge of long rows, repeated loads of the words of listed
neighbours; 3 to 4 grid barriers. The word of a vertex is its place in the order, then FLAG + its
bound, then minus its colour - 1.

Floor (H200): rmat18 has 19.4 million gathers, 0.06 ms; the time goes into chains of about 280
waiting vertices, 1 us or more each. Measured: rmat18 0.43 ms, rmat21 2.2, cnr-2000 0.27,
coAuthorsDBLP 0.19; the sort of the vertices takes 0.05 to 0.12 more.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..frontier import store_each
from ..simt.device import extent
from ..simt.launch import launch
from ..simt.primitives import ABORT, SPIN_LIMIT
from ..simt.typed import one_by_one

FLAG = 2**30  # added to a bound
NEVER = FLAG - 1  # the place of a vertex that is not in the order
NARROW = 31  # edges of a row that one lane may have: its colours are bits of a word
LONG = 1024  # a row of more edges is cut into pieces
PIECE = 256
PIECE_WORDS = 4  # begin, end, the vertex, its place
UNROLL = 4  # strides of 32 edges that are in flight together
AHEAD = 4  # edges of a lane that are in flight together, if each lane has a vertex
WINDOW = 1024  # colours that one pass distinguishes: bits, a word of them for each lane
# verdicts: wait, the colour is final, all colours of the window are taken, not computed yet
OPEN, FINAL, FULL, UNSEEN = range(4)
WIDE, PIECES = 40, 41  # control words: vertices of the order that warps colour, pieces listed


def coloring(
    indptr: jax.Array, indices: jax.Array, order: jax.Array, *, limit: int = SPIN_LIMIT
) -> tuple[jax.Array, jax.Array]:
    """(colors int32[n], status int32): each the least that no earlier neighbour in the order has.

    The graph is symmetric; self loops do not count. order: int32[n], the vertices; one that is not
    in it has colour -1. n < 2^30. status is also 1 where a warp polled the neighbours that it waits
    for `limit` times without success.
    """
    n, form = indptr.shape[0] - 1, extent(threads=512)
    capacity = indices.shape[0] // PIECE + indices.shape[0] // LONG + 1  # each row's last is short

    def kernel(k, m):
        shared = k.shared(k.threads), k.shared(4)
        _body(k, _State(n, limit, capacity, *shared), m)

    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices, "order": order},
        {
            "state": n,
            "place": n,
            "listed": n,  # neighbours before a vertex with a long row
            "pending": max(indices.shape[0], 1),  # those of row v from indptr[v] on
            "pieces": PIECE_WORDS * capacity,
        },
        **form,
        shared_words=form["threads"] + 4,
        name="coloring_in_order",
    )
    state = out["state"]
    return jnp.where(state < 0, -1 - state, -1), out["control"][ABORT]


class _State(NamedTuple):
    """limit: polls without success at most. capacity: of `pieces`. bits: colours of a window, for
    each warp. widest: a word, see `_place`."""

    n: int
    limit: int
    capacity: int
    bits: Any
    widest: Any


def _body(k, c, m):
    k.spread(c.n, lambda v: k.store(m.state, v, NEVER))
    k.grid_barrier(m.control)
    _place(k, c, m)
    ok, wide, pieces = k.grid_barrier(m.control, [(m.control, w) for w in (WIDE, PIECES)])

    def pick():
        _pick(k, c, m, pieces)
        return k.grid_barrier(m.control)[0]

    (ok,) = k.if_(pieces > 0, pick, ok)
    wide = k.where(ok != 0, wide, 0)
    narrow = k.where(ok != 0, c.n, 0)
    warp, warps = k.warps
    k.for_(warp, wide, warps, lambda i: _by_warp(k, c, m, i))
    k.for_(wide + warp * 32, narrow, 32 * warps, lambda i: _by_lanes(k, c, m, i + k.lane))


def _place(k, c, m):
    """Stores the place of each vertex and lists the pieces of long rows. Control word PIECES counts
    the pieces; WIDE becomes the place behind the last vertex of more than NARROW edges."""
    k.store(c.widest, k.thread, 0, mask=k.thread < 4)
    k.sync()

    def one(i, widest):
        v = k.load(m.order, i, mask=i < c.n, other=-1, cache="nc")
        valid = k.below(v, c.n)
        k.store(m.state, v, i, mask=valid)
        k.store(m.place, v, i, mask=valid)
        begin, end = k.row(m.indptr, v, valid)
        long = end - begin > LONG
        k.store(m.listed, v, 0, mask=long)

        def cut():
            parts = k.where(long, (end - begin + (PIECE - 1)) // PIECE, 0)
            at = k.atomic("add", m.control, PIECES, parts, mask=long)

            def store(j):
                low = begin + j * PIECE
                piece = low, k.minimum(low + PIECE, end), v, i
                fits = at + j < c.capacity  # all do, unless a vertex is in the order twice
                k.store_vec(m.pieces, (at + j) * PIECE_WORDS, piece, mask=fits)

            k.for_(0, parts, 1, store)

        k.if_(k.any(long), cut)
        return k.where(end - begin > NARROW, i + 1, widest)

    (widest,) = k.spread_warps(c.n, one, 0)
    widest = k.warp_fold(k.maximum, widest)
    k.reduce("max", c.widest, 0, widest, mask=k.lane == 0)
    k.sync()
    widest = k.load(c.widest, 0)
    k.reduce("max", m.control, WIDE, widest, mask=(k.thread == 0) & (widest > 0))


def _pick(k, c, m, pieces):
    """Lists the earlier neighbours of vertices with long rows, in `pending` from indptr[v] on."""

    def piece(p):
        low, high, v, mine = k.load_vec(m.pieces, p * PIECE_WORDS, PIECE_WORDS, cache="fresh")
        begin, end = k.row(m.indptr, v)

        def stretch(e):
            places = k.several(UNROLL, lambda u: e + 32 * u + k.lane)
            heads = k.load(m.indices, places, mask=places < high, cache="nc")
            found = k.load(m.state, heads, mask=places < high, other=NEVER, cache="fresh")
            votes = k.ballot(found < mine)
            total = k.total(k.popc(votes))
            base = k.atomic("add", m.listed, v, total, mask=(k.lane == 0) & (total > 0))

            def store(to, head, place):
                k.store(m.pending, to, head, mask=(place < mine) & (to < end))

            store_each(k, begin + k.shfl(base, 0), votes, store, heads, found)

        k.for_(low, high, 32 * UNROLL, stretch)

    warp, warps = k.warps
    k.for_(warp, k.minimum(pieces, c.capacity), warps, piece)


def _by_warp(k, c, m, i):
    """Colours the vertex at place i with all lanes of a warp."""
    v = k.load(m.order, i, cache="nc")
    valid = k.below(v, c.n)
    begin, end = k.row(m.indptr, v, valid)
    size = end - begin
    long = size > LONG
    some = k.load(m.listed, v, mask=long, cache="fresh")
    size = k.where(long, k.minimum(some, size), size)
    mine = k.warp * 32
    k.sync_warp()
    k.store(c.bits, mine + k.lane, 0)
    k.sync_warp()

    def look(turn, abort, base, bound, listed, size, verdict):
        """A pass over the listed neighbours (listed 1) or over the row (0); then waits, if at most
        32 neighbours are left."""
        left, least = _pass(k, c, m, (begin, size, i, listed == 0, base, mine))
        k.sync_warp()
        taken = k.load(c.bits, mine + k.lane)
        waited = left, least, begin
        found = _await(k, c, m, waited, (turn, abort, base, bound, taken), v)
        turn, abort, bound, verdict = found
        full = verdict == FULL
        k.sync_warp()
        k.store(c.bits, mine + k.lane, 0, mask=full)  # on to the next window, from the row again
        k.sync_warp()
        base = k.where(full, base + WINDOW, base)
        size = k.where(full, end - begin, left)
        return turn, abort, base, bound, k.where(full, 0, 1), size, verdict

    def going(turn, abort, base, bound, listed, size, verdict):
        return (verdict != FINAL) & (turn < c.limit) & (abort == 0)

    start = 0, 0, 0, 0, k.cast(long, "i32"), size, k.where(valid, OPEN, FINAL)
    *_, verdict = k.while_(going, look, *start)
    k.store(m.control, ABORT, 1, mask=(verdict != FINAL) & (k.lane == 0))


def _await(k, c, m, waited, state, v):
    """Waits for the neighbours that a pass has listed; returns (turn, abort, bound, verdict). If
    the verdict is FINAL, `bound` is the colour.

    Up to 32 neighbours: each lane polls the word of one until there is a verdict. More: the verdict
    follows from their least bound, without waiting. taken: bits of the window, a word in each lane.
    """
    left, least, begin = waited
    turn, abort, base, bound, taken = state
    can_poll = left <= 32
    mine = can_poll & (k.lane < left)
    head = k.load(m.pending, begin + k.lane, mask=mine, cache="fresh")
    lead = k.lane == 0

    def once(turn, abort, bound, taken, waits, verdict):
        word = k.load(m.state, head, mask=waits != 0, other=-1, cache="fresh")
        color = -1 - word - base
        new = k.ballot((waits != 0) & (word < 0) & k.below(color, WINDOW))

        def note(lane, taken):
            color_ = k.shfl(color, lane)
            return k.where(k.shr(color_, 5) == k.lane, taken | k.bit(color_), taken)

        (taken,) = k.each_bit(new, note, taken)
        waits = k.where(word < 0, 0, waits)
        free = k.where(k.lane < WINDOW // 32, ~taken, 0)
        vote = k.ballot(free != 0)
        full = vote == 0
        lane = k.ctz(k.where(full, 1, vote))
        free = k.shfl(free, lane)
        color = base + lane * 32 + k.ctz(k.where(full, 1, free))
        color = k.where(full, base + WINDOW, color)
        lower = k.where(word >= FLAG, word - FLAG, 0)
        open_ = k.any((waits != 0) & (lower <= color)) | (~can_poll & (least <= color))
        verdict = k.where(full, FULL, k.where(open_, OPEN, FINAL))
        k.reduce("min", m.state, v, -1 - color, mask=lead & (verdict == FINAL))
        k.reduce("max", m.state, v, FLAG + color, mask=lead & (verdict != FINAL) & (color > bound))
        read = lambda: k.load(m.control, ABORT, cache="fresh")  # noqa: E731
        abort = k.if_((turn & 63) == 63, read, abort)[0]
        return turn + 1, k.shfl(abort, 0), color, taken, waits, verdict

    def going(turn, abort, bound, taken, waits, verdict):
        again = can_poll & (verdict == OPEN) & (turn < c.limit) & (abort == 0)
        return (verdict == UNSEEN) | again

    start = turn, abort, bound, taken, k.cast(mine, "i32"), UNSEEN
    turn, abort, bound, _, _, verdict = k.while_(going, once, *start)
    return turn, abort, bound, verdict


def _pass(k, c, m, row):
    """Reads the row of a vertex, or its list; returns (number of earlier neighbours without a
    colour, their least bound).

    Colours in the window are set in `bits`; neighbours without one are listed from `begin` on.
    """
    begin, size, i, whole, base, mine = row
    source = k.either(whole, m.indices, m.pending)

    def stretch(unroll, e, left, least):
        places = k.several(unroll, lambda u: e + 32 * u + k.lane)
        heads = k.load(source, begin + places, mask=places < size, cache="fresh")
        words = k.load(m.state, heads, mask=places < size, other=NEVER, cache="fresh")
        bounds = words >= FLAG
        asked = whole & bounds
        ranks = k.load(m.place, heads, mask=asked, other=0, cache="fresh")
        k.sync_warp()  # the list is written from here on
        for head, word, flagged, known, rank in one_by_one(heads, words, bounds, asked, ranks):
            color = -1 - word - base
            inside = (word < 0) & k.below(color, WINDOW)
            k.reduce("or", c.bits, mine + k.shr(color & (WINDOW - 1), 5), k.bit(color), mask=inside)
            rank = k.where(known, rank, k.where(flagged, 0, word))
            waits = (word >= 0) & (rank < i) & (word != NEVER)
            vote = k.ballot(waits)
            k.store(m.pending, begin + left + k.lanes_below(vote), head, mask=waits)
            left = left + k.popc(vote)
            least = k.where(waits, k.minimum(least, k.where(flagged, word - FLAG, 0)), least)
        k.sync_warp()
        return left, least

    full = size - size % (32 * UNROLL)  # a short list is read with one stride in flight
    found = 0, 2**31 - 1
    for first, last, unroll in ((0, full, UNROLL), (full, size, 1)):
        found = k.for_(first, last, 32 * unroll, functools.partial(stretch, unroll), *found)
    left, least = found
    return left, k.warp_fold(k.minimum, least)


def _by_lanes(k, c, m, i):
    """Colours the vertex at place i of each lane, whose row has at most NARROW edges."""
    v = k.load(m.order, i, mask=i < c.n, other=-1, cache="nc")
    valid = k.below(v, c.n)
    begin, end = k.row(m.indptr, v, valid)

    def look(turn, abort, at, taken, open_):
        blocked = open_ == 0
        places = k.several(AHEAD, lambda j: at + j)
        inside = (open_ != 0) & (places < end)
        heads = k.load(m.indices, places, mask=inside, cache="nc")
        words = k.load(m.state, heads, mask=inside, other=NEVER, cache="fresh")
        ranks = k.load(m.place, heads, mask=words >= FLAG, other=0, cache="fresh")
        for mask, word, flagged, rank in one_by_one(inside, words, words >= FLAG, ranks):
            waits = (word >= 0) & (k.where(flagged, rank, word) < i)
            blocked = blocked | waits
            color = -1 - word
            use = mask & ~blocked & (word < 0) & (color <= NARROW)
            taken = k.where(use, taken | k.bit(color), taken)
            at = k.where(mask & ~blocked, at + 1, at)
        done = (open_ != 0) & (at >= end)
        k.reduce("min", m.state, v, -1 - k.ctz(~taken), mask=done)
        abort = k.if_((turn & 63) == 63, lambda: k.load(m.control, ABORT, cache="fresh"), abort)[0]
        return turn + 1, k.shfl(abort, 0), at, taken, k.where(done, 0, open_)

    def going(turn, abort, at, taken, open_):
        return k.any(open_ != 0) & (turn < c.limit) & (abort == 0)

    start = 0, 0, begin, 0, k.cast(valid, "i32")
    *_, open_ = k.while_(going, look, *start)
    k.store(m.control, ABORT, 1, mask=open_ != 0)
