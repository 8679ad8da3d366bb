"""Core numbers in one launch: vertices are peeled off level by level, in rounds between barriers.

Method: peeling with one counter a vertex (Batagelj, Zaversnik 2003; in parallel: Kabir, Madduri,
"Parallel k-core decomposition on multicore platforms", HPEC 2017). At level k the vertices of
degree k are listed; an edge out of one of them takes one from a larger degree, and the edge that
took the last above k claims its head, which is peeled in the same level. A counter that fell below
k, because two edges took at once, is raised again: in the end it holds the core number, and nobody
is asked whether it is still there.

A claimed vertex with a short row goes to a stack of its warp as long as there is room, so that a
chain of vertices that fall one after the other costs no barriers; the others go to a list for the
next round. Where a round has fewer vertices than there are warps, several warps share each row;
pieces of many edges are shared by the warps of a CTA. Rounds of few edges are done by one CTA, as
long as they follow each other.

Cost: a pass over all edges; for every level from 0 to the largest core number, but not between two
levels when nothing is left there, a pass over the n degrees and two grid barriers, and one for each
further round. An atomic for every edge between vertices that are left.

Measured (H200): rmat18 4.2 ms (188 levels that are not empty, 597 rounds), cnr-2000 6.6 (73 and
1,240), coAuthorsDBLP 1.6 (47 and 242). Before rows were cut for several warps, and whatever the
length of what a warp kept: 12.1 to 63, 7.5 and 1.2 to 1.6. One CTA alone neither gains nor loses: a
round is a chain of some ten accesses to L2, 5 us, and the barrier the least of it.
"""

import types

import jax
import jax.numpy as jnp

from .rows.dealt import LongRows, append, deal_rows
from .rows.flatten import flatten
from .simt.device import resident_ctas
from .simt.launch import launch

STACK = 8  # vertices that a warp keeps to itself
SHORT = 64  # edges that the row of such a vertex may have
UNROLL = 2
SOLO = 512  # edges, and vertices, of a round up to which one CTA goes on alone
# Control words, four sets in turns, one for each part between two barriers.
WORDS, SET = 40, 3
# Vertices listed, their edges; FAR less the least degree above the level.
LISTING, EDGES, ABOVE = range(SET)
ALONE = WORDS + 4 * SET  # where the CTA alone came to: part, first, end, edges
FAR = 2**31 - 1


def cores(
    indptr: jax.Array,
    indices: jax.Array,
    *,
    ctas: int | None = None,
    threads: int = 1024,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """(core numbers int32[n], status int32) of a symmetric graph; self loops do not count.

    indptr int32[n + 1], indices int32[nnz]: edges v -> indices[i], indptr[v] <= i < indptr[v + 1],
    in any order. status 0: right; otherwise a grid barrier expired.
    """
    n = indptr.shape[0] - 1
    if n == 0:
        return jnp.zeros(0, jnp.int32), jnp.int32(0)
    c = types.SimpleNamespace(n=n)

    def kernel(k, m):
        ok = _body(k, c, m, m.control)
        k.tell(m.status, ok)

    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices},
        {"degree": n, "queue": n, "status": 1},
        ctas=ctas or resident_ctas(),
        threads=threads,
        shared_words=threads // 32 * STACK + LongRows.shared_words() + 4,
        name="cores",
        interpret=interpret,
    )
    return out["degree"], out["status"][0]


def _body(k, c, m, control):
    c.stack, c.long, c.least = k.shared(k.threads // 32 * STACK), LongRows(k), k.shared(4)
    k.store(c.least, k.thread, 0, mask=k.thread < 4)
    _degrees(k, c, m)
    (ok,) = k.grid_barrier(control)

    def words(part, *which):
        return [(control, _word(part, j)) for j in which]

    def round_(ok, part, first, end, edges, level):
        few = _few(first, end, edges)
        state = part, first, end, edges
        k.if_(few & (k.cta == 0), lambda: _alone(k, c, m, control, state, level))

        def together():
            _clear(k, control, part)
            _peel(k, c, m, control, part, first, end, level)

        k.if_(~few, together)
        alone = [(control, ALONE + j) for j in range(4)]
        ok, listed, edges, *alone = k.grid_barrier(control, words(part, LISTING, EDGES) + alone)
        state = part + 1, end, end + listed, edges
        return ok, *(k.where(few, a, b) for a, b in zip(alone, state, strict=True)), level

    def level_(ok, part, end, level, left):
        _clear(k, control, part)
        _list(k, c, m, control, part, end, level)
        read = words(part, LISTING, EDGES, ABOVE)
        ok, listed, edges, left = k.grid_barrier(control, read)
        state = ok, part + 1, end, end + listed, edges, level
        # where nothing is above, those listed have their numbers
        ok, part, _, end, _, _ = k.while_(
            lambda ok, part, first, end, *_: (ok != 0) & (first < end) & (left != 0), round_, *state
        )
        return ok, part, end, k.where(listed > 0, level + 1, FAR - left), left

    start = ok, k.const(0), k.const(0), k.const(0), k.const(1)
    return k.while_(lambda ok, part, end, level, left: (ok != 0) & (left != 0), level_, *start)[0]


def _alone(k, c, m, control, state, level):
    """Rounds of this CTA while they are of few edges. What comes next is not alone, or lists a
    level, so that all have read the words of ALONE before they are written again.
    """

    def round_(part, first, end, edges):
        _clear(k, control, part)
        _peel(k, c, m, control, part, first, end, level, alone=True)
        k.sync()
        listed, edges = (k.load(control, _word(part, j), cache="fresh") for j in (LISTING, EDGES))
        return part + 1, end, end + listed, edges

    going = lambda part, first, end, edges: (first < end) & _few(first, end, edges)  # noqa: E731
    for j, value in enumerate(k.while_(going, round_, *state)):
        k.store(control, ALONE + j, value, mask=k.thread == 0)


def _few(first, end, edges):
    return (edges <= SOLO) & (end - first <= SOLO)


def _word(part, j):
    return WORDS + (part & 3) * SET + j


def _clear(k, control, part):
    """The words of the next part, which nobody reads or writes before the next barrier."""
    mine = (k.cta == 0) & (k.thread < SET)
    k.store(control, _word(part + 1, k.thread), 0, mask=mine)


def _degrees(k, c, m):
    """The edges of each vertex to others."""

    def rows(v):
        there = v < c.n
        begin, end = k.row(m.indptr, v, there)
        size = k.where(there, end - begin, 0)
        k.store(m.degree, v, size, mask=there)
        k.sync_warp()

        def edge(places, payloads, there):
            heads = k.loads(m.indices, places, there, cache="nc")
            for head, (tail,), mask in zip(heads, payloads, there, strict=True):
                k.reduce("add", m.degree, tail, -1, mask=mask & (head == tail))

        flatten(k, begin, size, (v,), edge)

    k.spread_warps(c.n, rows)


def _list(k, c, m, control, part, end, level):
    """Lists the vertices of this degree behind `end`, and finds the least degree above."""

    def some(v, least):
        degree = k.load(m.degree, v, mask=v < c.n, other=-1, cache="fresh")
        _append(k, m, control, part, end, v, degree == level)
        return k.minimum(least, k.where(degree > level, degree, FAR))

    (least,) = k.spread_warps(c.n, some, FAR)
    above = FAR - k.warp_fold(k.minimum, least)
    k.reduce("max", c.least, 0, above, mask=k.lane == 0)
    k.sync()

    def tell():
        k.reduce("max", control, _word(part, ABOVE), k.load(c.least, 0))
        k.store(c.least, 0, 0)

    k.if_(k.thread == 0, tell)


def _append(k, m, control, part, end, v, mask):
    """Puts the vertices v of a warp behind what is listed."""

    def put():
        begin, stop = k.row(m.indptr, v, mask)
        edges = k.warp_sum(k.where(mask, stop - begin, 0))
        k.reduce("add", control, _word(part, EDGES), edges, mask=k.lane == 0)
        append(k, m.queue, end, control, _word(part, LISTING), v, mask)

    k.if_(k.any(mask), put)


def _peel(k, c, m, control, part, first, end, level, alone=False):
    """Takes the edges of the vertices listed from `first` to `end`."""
    mine = k.warp * STACK

    def claim(places, there):
        """The heads that these edges took down to the level, each by one edge alone."""
        heads = k.loads(m.indices, places, there, cache="nc")
        degrees = k.loads(m.degree, heads, there, other=0, cache="fresh")
        live = [degree > level for degree in degrees]
        before = k.atomics("add", m.degree, heads, [-1] * len(heads), live)
        for head, mask, old in zip(heads, live, before, strict=True):
            k.reduce("add", m.degree, head, 1, mask=mask & (old <= level))
        return [(h, a & (old == level + 1)) for h, a, old in zip(heads, live, before, strict=True)]

    def edges(places, payloads, there, top):
        del payloads
        for head, mask in claim(places, there):
            top = k.if_(k.any(mask), lambda h=head, a=mask, t=top: keep(h, a, t), top)[0]
        return top

    def keep(v, mask, top):
        begin, stop = k.row(m.indptr, v, mask)
        short = mask & (stop - begin <= SHORT)
        place = top + k.lanes_below(k.ballot(short))
        inside = short & (place < STACK)
        k.store(c.stack, mine + place, v, mask=inside)
        _append(k, m, control, part, end, v, mask & ~inside)
        return k.minimum(top + k.popc(k.ballot(short)), STACK)

    def rows(begin, size):
        size = c.long.without(begin, size)
        return flatten(k, begin, size, (), edges, 0, unroll=UNROLL)

    def row(v, there):
        begin, stop = k.row(m.indptr, v, there)
        return begin, k.where(there, stop - begin, 0)

    def listed(begin, size):
        (top,) = rows(begin, size)

        def again(top):
            k.sync_warp()
            there = k.lane < top
            v = k.load(c.stack, mine + k.lane, mask=there)
            k.sync_warp()
            return rows(*row(v, there))

        k.while_(lambda top: top > 0, again, top)

    def vertex(i, there):
        return row(k.load(m.queue, first + i, mask=there, cache="fresh"), there)

    def listing(places, payloads, there):
        del payloads
        for head, mask in claim(places, there):
            _append(k, m, control, part, end, head, mask)

    deal_rows(k, end - first, vertex, listed, alone)
    c.long.run(listing, UNROLL)
