"""A maximal independent set in one launch: whoever comes before all open neighbours joins.

Method: one order of the vertices, those of few edges first, and no rounds (Burtscher, Devale,
Azimi, Jaiganesh, Powers, "A high-quality and fast maximal independent set implementation for GPUs",
TOPC 2018). One word tells of a vertex whether it is in the set, out of it, or its priority. A
vertex is in once every neighbour before it is out, and then says so to its neighbours. The set is
the greedy one of that order, whatever the threads do first.

The lanes of a warp take a vertex each. A lane goes along its row to the first neighbour that comes
before its vertex and is not out, and remembers the place: what lies behind it is settled for good,
so that no edge is read twice. Vertices that wait are listed by their warp, which looks again at two
words of each, its own and that of the neighbour it waits for. Of a row that goes on for long all
lanes read a stretch together, and rows of those that join are shared by the lanes too.

Cost: a gather for each edge up to the neighbour that is in, one for each edge of the set, and two
for each look; no grid barrier. Chains of vertices that wait for each other are short: 4 to 6 on
graphs of every kind.

Floor (H200): rmat21 has 8 MB of offsets, as much of words, and 32 bytes of each row to read, 0.03
ms; its gathers, about ten a vertex, take 0.15. Not measured yet.
"""

import types

import jax
import jax.numpy as jnp

from .rows.flatten import flatten
from .simt.device import resident_ctas
from .simt.launch import launch
from .simt.primitives import ABORT, SPIN_LIMIT

IN, OUT = 2**31 - 1, -1  # states; between them the priority of an open vertex
AHEAD = 4  # neighbours of a lane that are looked at together
STEPS = 2  # as often a lane looks before all lanes help
WAITING = 4  # words of a vertex that waits: itself, place, priority, for whom


def independent_set(
    indptr: jax.Array,
    indices: jax.Array,
    priority: jax.Array,
    *,
    ctas: int | None = None,
    threads: int = 1024,
    interpret: bool = False,
    limit: int = SPIN_LIMIT,
) -> tuple[jax.Array, jax.Array]:
    """(members bool[n], status int32): the greedy set by descending priority, symmetric graphs.

    indptr int32[n + 1], indices int32[nnz]: edges v -> indices[i], indptr[v] <= i < indptr[v + 1],
    in any order; self loops do not count. priority: int32[n], 0 <= priority < 2^31 - 1; of equal
    ones the smaller vertex is first. status 0: right; otherwise a warp looked at what it waits for
    `limit` times in vain.
    """
    n = indptr.shape[0] - 1
    if n == 0:
        return jnp.zeros(0, bool), jnp.int32(0)
    ctas = ctas or resident_ctas()
    warps = ctas * threads // 32
    room = -(-n // (32 * warps)) * 32  # vertices of a warp, in whole strides

    def kernel(k, m):
        _body(k, types.SimpleNamespace(n=n, room=room, limit=limit), m)

    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices},
        {"waiting": WAITING * room * warps},
        inout={"state": priority},
        ctas=ctas,
        threads=threads,
        name="independent_set",
        interpret=interpret,
    )
    return out["state"] == IN, out["control"][ABORT]


def _body(k, c, m):
    c.first = (k.warp * k.ctas + k.cta) * c.room  # of the places of this warp in `waiting`

    def start(v, count):
        there = v < c.n
        priority = k.load(m.state, v, mask=there, other=OUT, cache="fresh")
        begin, _ = k.row(m.indptr, v, there)
        return _settle(k, c, m, (v, begin, priority), there & (priority != OUT), count)

    (count,) = k.spread_warps(c.n, start, 0)

    def again(count, turn, abort):
        abort = k.if_((turn & 63) == 63, lambda: k.load(m.control, ABORT, cache="fresh"), abort)[0]
        k.sync_warp()
        (left,) = k.for_(0, count, 32, lambda j, left: _look(k, c, m, j, count, left), 0)
        return left, turn + 1, k.shfl(abort, 0)

    going = lambda count, turn, abort: (count > 0) & (turn < c.limit) & (abort == 0)  # noqa: E731
    count, _, _ = k.while_(going, again, count, 0, 0)
    k.store(m.control, ABORT, 1, mask=(count > 0) & (k.lane == 0))


def _look(k, c, m, j, count, left):
    """Looks again at the vertices from place j on that wait; how many do, `left` before them."""
    there = j + k.lane < count
    place = (c.first + j + k.lane) * WAITING
    v, at, priority, head = k.load_vec(m.waiting, place, WAITING, mask=there, cache="fresh")
    mine = k.load(m.state, v, mask=there, other=OUT, cache="fresh")
    theirs = k.load(m.state, head, mask=there, other=OUT, cache="fresh")
    k.sync_warp()  # places are written from here on, behind none that is still to be read
    open_ = there & (mine != OUT)
    k.reduce("min", m.state, v, OUT, mask=open_ & (theirs == IN))
    waits = open_ & (theirs != IN) & (theirs != OUT)
    left = _wait(k, c, m, (v, at, priority, head), waits, left)
    goes = open_ & (theirs == OUT)
    # most looks find all as it was
    go_on = lambda: _settle(k, c, m, (v, at + 1, priority), goes, left)  # noqa: E731
    return k.if_(k.any(goes), go_on, left)[0]


def _wait(k, c, m, words, mask, left):
    """Lists the vertices under `mask` behind `left` others."""
    voters = k.ballot(mask)
    place = (c.first + left + k.lanes_below(voters)) * WAITING
    k.store_vec(m.waiting, place, words, mask=mask)
    return left + k.popc(voters)


def _settle(k, c, m, vertex, mask, left):
    """Goes on along the rows of vertices (v, place, priority): they join, are out, or wait."""
    v, at, priority = vertex
    begin, end = k.row(m.indptr, v, mask)
    at, head, word = _first_before(k, m, vertex, end, mask)
    stopped = mask & (word != OUT)
    k.reduce("min", m.state, v, OUT, mask=stopped & (word == IN))
    left = _wait(k, c, m, (v, at, priority, head), stopped & (word != IN), left)
    joins = mask & ~stopped
    k.reduce("max", m.state, v, IN, mask=joins)

    def tell(places, owners, there):
        heads = k.loads(m.indices, places, there, cache="nc")
        words = k.loads(m.state, heads, there, other=OUT, cache="fresh")
        for near, word, (owner,), mask in zip(heads, words, owners, there, strict=True):
            k.reduce("min", m.state, near, OUT, mask=mask & (word != OUT) & (near != owner))

    row = lambda: flatten(k, begin, k.where(joins, end - begin, 0), (v,), tell)  # noqa: E731
    k.if_(k.any(joins), row)
    return left


def _first_before(k, m, vertex, end, mask):
    """(place, neighbour, word) of the first neighbour that is before the vertex and not out.

    Of a vertex without one, and outside of `mask`, the word is OUT.
    """
    v, at, priority = vertex
    word = k.const(OUT)

    def before(places, v, priority, end):
        """(neighbours, words, whether they are before) at some places of each lane."""
        there = [place < end for place in places]
        heads = k.loads(m.indices, places, there, cache="nc")
        words = k.loads(m.state, heads, there, other=OUT, cache="fresh")
        found = [
            (word > priority) | ((word == priority) & (head < v))
            for head, word in zip(heads, words, strict=True)
        ]
        return heads, words, [there_ & b for there_, b in zip(there, found, strict=True)]

    def alone(turn, at, head, word):
        open_ = (at < end) & (word == OUT) & mask
        heads, words, found = before([at + j for j in range(AHEAD)], v, priority, end)
        place = at + AHEAD
        for j in reversed(range(AHEAD)):
            hit = open_ & found[j]
            place = k.where(hit, at + j, place)
            head, word = k.where(hit, heads[j], head), k.where(hit, words[j], word)
        return turn + 1, k.where(open_, place, at), head, word

    def more(turn, at, head, word):
        return (turn < STEPS) & k.any((at < end) & (word == OUT) & mask)

    at, head, word = k.while_(more, alone, 0, at, k.const(0), word)[1:]

    def together(left, at, head, word):
        owner = k.ctz(left)
        theirs = [k.shfl(x, owner) for x in (v, priority, end)]

        def stretch(place, stop, near, found_word):
            places = [place + k.lane, place + 32 + k.lane]
            heads, words, found = before(places, *theirs)
            votes = [k.ballot(f) for f in found]
            second = votes[0] == 0
            vote = k.where(second, votes[1], votes[0])
            lane = k.ctz(k.where(vote == 0, 1, vote))
            near_ = k.where(second, k.shfl(heads[1], lane), k.shfl(heads[0], lane))
            word_ = k.where(second, k.shfl(words[1], lane), k.shfl(words[0], lane))
            hit = vote != 0
            after = k.where(hit, place + lane + k.where(second, 32, 0), place + 64)
            return (
                after,
                k.cast(hit, "i32"),
                k.where(hit, near_, near),
                k.where(hit, word_, found_word),
            )

        place, _, near, found_word = k.while_(
            lambda place, stop, *_: (stop == 0) & (place < theirs[2]),
            stretch,
            k.shfl(at, owner),
            0,
            0,
            OUT,
        )
        mine = k.lane == owner
        return (
            left & (left - 1),
            k.where(mine, place, at),
            k.where(mine, near, head),
            k.where(mine, found_word, word),
        )

    left = k.ballot(mask & (at < end) & (word == OUT))
    return k.while_(lambda left, *_: left != 0, together, left, at, head, word)[1:]
