"""Core numbers in one launch: vertices are peeled off level by level, in rounds between barriers.

Method: peeling with one counter a vertex (Batagelj, Zaversnik 2003; in parallel: Kabir, Madduri,
"Parallel k-core decomposition on multicore platforms", HPEC 2017). At level k the vertices of
degree k are listed; an edge out of one of them takes one from a larger degree, and the edge that
took the last above k claims its head, which is peeled in the same level. A counter that fell below
k, because two edges took at once, is raised again: in the end it holds the core number, and nobody
is asked whether it is still there.

A claimed vertex goes to a stack of its warp as long as there is room, so that a chain of vertices
that fall one after the other costs no barriers; more go to a list, shared by all warps in the next
round. Rows of LONG edges or more are shared by the warps of a CTA.

Cost: a pass over all edges; for every level from 0 to the largest core number, but not between two
levels when nothing is left there, a pass over the n degrees and two grid barriers, and one for each
further round. An atomic for every edge between vertices that are left.

Measured (H200): coAuthorsDBLP 1.55 ms (114 levels, 242 rounds by a queue alone), cnr-2000 7.5 (83
and 1,240), rmat18 12.1 (688 levels). Stacks of 8: 1.2, 7.4 and 38 ms, of 32: 1.2, 8.5 and 63: a
warp that keeps many of the last core to itself makes all others wait. 512 threads: up to a seventh
slower.
"""

import types

import jax
import jax.numpy as jnp

from .rows.flatten import flatten
from .simt.device import resident_ctas
from .simt.launch import launch

STACK = 1  # vertices that a warp keeps to itself
LONG = 2048  # edges of a row that the warps of a CTA share
LISTED = 1024  # of such rows a CTA has room for in a round
UNROLL = 2
# Control words, four sets in turns, one for each part between two barriers.
WORDS, SET = 40, 2
LISTING, ABOVE = range(SET)  # vertices listed; FAR less the least degree above the level
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
        k.store(m.status, 0, 1 - ok, mask=(k.cta == 0) & (k.thread == 0))

    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices},
        {"degree": n, "queue": n, "status": 1},
        ctas=ctas or resident_ctas(),
        threads=threads,
        shared_words=threads // 32 * STACK + LISTED + 12,
        name="cores",
        interpret=interpret,
    )
    return out["degree"], out["status"][0]


def _body(k, c, m, control):
    c.stack, c.long = k.shared(k.threads // 32 * STACK), k.shared(LISTED)
    c.count = k.shared(4)
    k.store(c.count, k.thread, 0, mask=k.thread < 4)
    _degrees(k, c, m)
    (ok,) = k.grid_barrier(control)

    def round_(ok, part, first, end, level):
        _clear(k, control, part)
        _peel(k, c, m, control, part, first, end, level)
        ok, listed = k.grid_barrier(control, [(control, _word(part, LISTING))])
        return ok, part + 1, end, end + listed, level

    def level_(ok, part, end, level, left):
        _clear(k, control, part)
        _list(k, c, m, control, part, end, level)
        words = [(control, _word(part, j)) for j in range(SET)]
        ok, listed, left = k.grid_barrier(control, words)
        state = ok, part + 1, end, end + listed, level
        # where nothing is above, those listed have their numbers
        ok, part, _, end, _ = k.while_(
            lambda ok, part, first, end, level: (ok != 0) & (first < end) & (left != 0),
            round_,
            *state,
        )
        return ok, part, end, k.where(listed > 0, level + 1, FAR - left), left

    start = ok, k.const(0), k.const(0), k.const(0), k.const(1)
    return k.while_(lambda ok, part, end, level, left: (ok != 0) & (left != 0), level_, *start)[0]


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
    k.reduce("max", c.count, 1, above, mask=k.lane == 0)
    k.sync()

    def tell():
        k.reduce("max", control, _word(part, ABOVE), k.load(c.count, 1))
        k.store(c.count, 1, 0)

    k.if_(k.thread == 0, tell)


def _append(k, m, control, part, end, v, mask):
    """Puts the vertices v of a warp behind what is listed."""
    votes = k.ballot(mask)

    def put():
        word = _word(part, LISTING)
        base = k.atomic("add", control, word, k.popc(votes), mask=k.lane == 0)
        k.store(m.queue, end + k.shfl(base, 0) + k.lanes_below(votes), v, mask=mask)

    k.if_(votes != 0, put)


def _peel(k, c, m, control, part, first, end, level):
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
        place = top + k.lanes_below(k.ballot(mask))
        inside = mask & (place < STACK)
        k.store(c.stack, mine + place, v, mask=inside)
        _append(k, m, control, part, end, v, mask & ~inside)
        return k.minimum(top + k.popc(k.ballot(mask)), STACK)

    def rows(v, there):
        begin, stop = k.row(m.indptr, v, there)
        size = k.where(there, stop - begin, 0)
        place = k.atomic("add", c.count, 0, 1, mask=size >= LONG)
        listed = (size >= LONG) & (place < LISTED)
        k.store(c.long, place, v, mask=listed)
        return flatten(k, begin, k.where(listed, 0, size), (), edges, 0, unroll=UNROLL)

    def listed(i, there):
        (top,) = rows(k.load(m.queue, first + i, mask=there, cache="fresh"), there)

        def again(top):
            k.sync_warp()
            there = k.lane < top
            v = k.load(c.stack, mine + k.lane, mask=there)
            k.sync_warp()
            return rows(v, there)

        k.while_(lambda top: top > 0, again, top)

    k.deal(end - first, (k.warp * k.ctas + k.cta, k.ctas * k.threads // 32), listed)
    k.sync()
    _peel_long(k, c, m, control, part, end, claim)


def _peel_long(k, c, m, control, part, end, claim):
    """The long rows that the warps of this CTA met."""

    def row(i):
        begin, stop = k.row(m.indptr, k.load(c.long, i))

        def stride(e0):
            at = e0 + k.lane
            ((head, mask),) = claim([at], [at < stop])
            _append(k, m, control, part, end, head, mask)

        k.for_(begin + k.warp * 32, stop, k.threads, stride)

    k.for_(0, k.minimum(k.load(c.count, 0), LISTED), 1, row)
    k.sync()
    k.store(c.count, 0, 0, mask=k.thread == 0)
