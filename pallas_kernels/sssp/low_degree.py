"""Shortest paths on graphs of small degree (meshes, roads): one lane for each vertex, fixed-width
rows.

Adjacency: rows of `quads` times 4 slots, row v the neighbours of v, padded with n; a last slot
below 0 is ~(quad that continues this one), counted from the start of the table. lengths: the
weights in the same places. So a lane gets from a vertex to 4 neighbours and their weights by two
16-byte accesses that are in flight together with that of its label.

A warp takes its part of the near queue, one vertex a lane, and follows its own discoveries for up
to `hops` edges before the round ends: the vertices whose labels it lowered become the next ones of
its lanes through 32 words of shared memory, without any barrier. Vertices beyond 32, and those left
after the last hop, are queued for the next round. A vertex whose label another warp lowers
meanwhile is followed by that warp. So a round costs one grid barrier
(1.5 us) for `hops` levels, each a chain of dependent accesses: row, weights and label (L2) ->
atomic minimum (L2) -> ballots -> lanes (shared). Running ahead relaxes some vertices too early; in
exchange a path of many edges takes few rounds.

Traffic of a relaxed vertex: 8 bytes a slot of its row, its label, one atomic minimum an edge; 8
bytes of queue and one exchange where it ends a warp's walk. The tree: one more pass over all rows.

Measured (H200): luxembourg_osm 1.16 ms, in which 4.3 MB come from memory and 0.52M atomics are
done, in 3.6% of the issue slots: bound by the chain, 1.0 to 1.3 us a hop, of which an atomic is 0.3
and the row 0.2. delaunay 2^21: 5.9 ms with far reached by two atomics in every hop and its quads
one after the other, 5.1 with piles and quads together, 4.4 with hops in queues of up to 65,536.
"""

import functools
import operator

from .rounds import (
    FAR,
    FOUND,
    INFINITY,
    LEAST,
    MAX,
    ORPHANS,
    extended,
    marked,
    new_to_far,
    put,
    report_least,
    reserve,
    tight,
    within,
)
from .tree import adopt, claim, count_orphans


def first_queue(k, c, graph, state, source, valid):
    """Queues the source; returns the length of the queue."""
    del graph
    k.store(state.queue, 0, source, mask=valid & (k.cta == 0) & (k.thread == 0))
    return k.cast(valid, "i32")


def expand(k, c, graph, state, s, place, hop=None):
    """Follows paths of up to `hops` edges from the near queue. Returns the least label that this
    lane put into far."""
    hops = k.where(s.near <= c.hop_most, c.hops, 1)
    hop = hop or _relaxing

    def chunk(i, is_valid, least, piled):
        vertex = place.entry(s, i, is_valid)

        def one(left, vertex, least, piled):
            count, least, piled = hop(k, c, graph, state, s, place, vertex, least, piled)
            slot = k.warp * 32 + k.lane
            vertex = k.load(state.slots, slot, mask=k.lane < count, other=-1)
            return left - 1, vertex, least, piled

        def going(left, vertex, least, piled):
            return (left > 0) & k.any(vertex >= 0)

        _, vertex, least, piled = k.while_(going, one, hops, vertex, least, piled)
        _queue(k, state, s, place, vertex, vertex >= 0)
        return least, piled

    least, piled = k.distribute(s.near, place.warps, chunk, MAX, 0)
    place.to_far(s, piled, k.const(0))
    return least


def _relaxing(k, c, graph, state, s, place, vertex, least, piled):
    """Relaxes the edges of the lanes' vertices. Returns (number of the warp's next vertices, least
    label put into far, length of the warp's pile for far)."""
    label = k.load(state.labels, vertex, mask=vertex >= 0, cache="fresh")

    def relaxed(near, weights, count, least, piled):
        new = [extended(k, c, label, w) for w in weights]
        close, least, piled = _relax(k, c, state, s, place, near, new, least, piled)
        return _next_vertices(k, state, s, place, near, close, count), least, piled

    return _walk(k, c, graph, vertex, relaxed, k.const(0), least, piled)


def _walk(k, c, graph, vertex, visit, *carry):
    """carry = visit(neighbours, weights, *carry) for all quads of the lanes' rows (-1: none),
    `together` quads in one call; the quads that continue a row come one by one."""

    def row(quad):
        near = k.load_vec(graph.adjacency, quad * 4, 4, mask=quad >= 0, other=c.n, cache="nc")
        return near, k.load_vec(graph.lengths, quad * 4, 4, mask=quad >= 0, cache="nc")

    rows = [row(k.where(vertex >= 0, vertex * c.quads + q, -1)) for q in range(c.quads)]
    for q in range(0, c.quads, c.together):
        near, weights = ([x for row in rows[q : q + c.together] for x in row[j]] for j in (0, 1))
        carry = visit(near, weights, *carry)
    if c.linked:

        def linked(quad, *carry):
            near, weights = row(quad)
            return k.where(near[3] < 0, ~near[3], -1), *visit(near, weights, *carry)

        last = rows[-1][0][3]
        _, *carry = k.while_(
            lambda quad, *carry: k.any(quad >= 0), linked, k.where(last < 0, ~last, -1), *carry
        )
    return carry


def note(k, state, vertex, parent, slot, mask):
    """Records a parent."""
    del slot
    k.store(state.noted, vertex, parent, mask=mask)


def tree(search, s):
    """Records for every vertex a tight predecessor that is strictly nearer, if it has one.

    This is one more pass over all edges, which costs little where rows are short; any such
    predecessor is right, so the order does not matter. The others get a parent by adoption
    (`tree.py`). Returns whether no barrier expired.

    marks[n + v], zero because far is empty, is set if a tight edge of v leads to a vertex of equal
    label: adoption begins at these vertices.
    """
    k, c, graph, state = search.k, search.c, search.graph, search.state

    def look(vertex):
        label = k.load(state.labels, vertex, mask=vertex >= 0)

        def visit(near, weights, level):
            is_valid = [k.below(v, c.n) for v in near]
            labels = k.loads(state.labels, near, is_valid)
            for v, w, x, t in zip(near, weights, labels, is_valid, strict=True):
                short = t & tight(k, c, label, w, x)
                k.store(state.noted, v, vertex, mask=short & (label < x))
                level = level | (short & (label == x) & (v != vertex))
            return (level,)

        (level,) = _walk(k, c, graph, vertex, visit, k.const(False, "i1"))
        k.store(state.marks, c.n + vertex, 1, mask=level)

    def known(vertex):
        is_valid = vertex >= 0
        label = k.load(state.labels, vertex, mask=is_valid)
        k.store(state.noted, vertex, -1, mask=is_valid & (label == INFINITY[c.real]))
        k.store(state.noted, vertex, vertex, mask=is_valid & (vertex == state.source))
        parent = k.load(state.noted, vertex, mask=is_valid, cache="fresh")
        level = k.load(state.marks, c.n + vertex, mask=is_valid, cache="fresh") == 1
        search.place.put_near(s, [vertex], [level & (parent != c.n)])
        count_orphans(k, state, is_valid & (parent == c.n))

    def everywhere(f):
        k.spread_warps(c.n, lambda i: f(k.where(i < c.n, i, -1)))

    search.begin(s)
    everywhere(look)
    k.grid_barrier(state.control)  # an expired one makes the next fail as well
    everywhere(known)
    (orphans,) = search.barrier(s, ORPHANS)
    s.turn = s.turn + 1
    return adopt(search, s, orphans, state.noted, _adopting)


def _adopting(search, s):
    """The vertices of the near queue become parents of their tight successors that have none."""

    def hop(k, c, graph, state, s, place, vertex, least, piled):
        label = k.load(state.labels, vertex, mask=vertex >= 0)

        def visit(near, weights, count):
            is_valid = [k.below(v, c.n) for v in near]
            labels = k.loads(state.labels, near, is_valid)
            fits = [
                t & tight(k, c, label, w, x)
                for t, w, x in zip(is_valid, weights, labels, strict=True)
            ]
            won = [claim(k, c, state.noted, v, vertex, f) for v, f in zip(near, fits, strict=True)]
            return (_next_vertices(k, state, s, place, near, won, count),)

        (count,) = _walk(k, c, graph, vertex, visit, k.const(0))
        return count, least, piled

    expand(search.k, search.c, search.graph, search.state, s, search.place, hop)


def _relax(k, c, state, s, place, near, new, least, piled):
    """Lowers labels; returns masks of those that this lane lowered below the bound, the least other
    label, and the length of the pile. The other vertices go to the warp's pile for far, in shared
    memory, which is written to global memory by 32."""
    is_valid = [k.below(v, c.n) & within(x, state.limit) for v, x in zip(near, new, strict=True)]
    old = k.atomics("min", state.labels, near, new, is_valid)
    won = [t & (x < o) for t, x, o in zip(is_valid, new, old, strict=True)]
    close = [w & (x < s.bound) for w, x in zip(won, new, strict=True)]
    away = [w & (x >= s.bound) for w, x in zip(won, new, strict=True)]
    for x, w in zip(new, away, strict=True):
        least = k.where(w, k.minimum(least, x), least)

    first = new_to_far(c, away, old)

    def pile():
        count = place.pile(near, first, piled)
        return place.to_far(s, count, count & 31)

    some = functools.reduce(operator.or_, first)
    return close, least, k.if_(k.any(some), pile, piled)[0]


def _next_vertices(k, state, s, place, near, close, count):
    """Adds vertices to the warp's next ones, after `count` others; those beyond 32 are queued for
    the next round. Returns the new number."""
    for v, w in zip(near, close, strict=True):
        votes = k.ballot(w)
        at = count + k.lanes_below(votes)
        k.store(state.slots, k.warp * 32 + at, v, mask=w & (at < 32))
        beyond = w & (at >= 32)
        k.if_(k.any(beyond), lambda v=v, w=beyond: _queue(k, state, s, place, v, w))
        count = count + k.popc(votes)
    return count


def _queue(k, state, s, place, vertex, mask):
    """Queues the lanes' vertices for the next round, each once."""
    was = k.atomic("exch", state.marks, vertex, s.steps, mask=mask)
    place.put_near(s, [vertex], [mask & (was != s.steps)])


def pile_words(c):
    """Words of shared memory of a warp's pile: up to 31 entries are left over, then every lane may
    add 4 for each quad."""
    return 32 * (1 + 4 * min(c.together, c.quads))


def shared_words(c):
    """Words of shared memory of a CTA."""
    return c.threads + c.threads // 32 * pile_words(c) + 8


class Grid:
    """All CTAs: queues in global memory, their lengths in the control words."""

    small_round, counted = 0, ()  # edges are not counted: a round follows chains of them

    def __init__(self, k, c, graph, state):
        del graph
        self.k, self.c, self.state = k, c, state
        self.warps = (k.warp * k.ctas + k.cta, k.threads // 32 * k.ctas)
        state.slots = k.shared(k.threads)  # 32 a warp
        self.piles = k.shared(k.threads // 32 * pile_words(c))
        self.first = k.warp * pile_words(c)

    def entry(self, s, i, is_valid):
        at = s.cur * self.c.n + i
        return self.k.load(self.state.queue, at, mask=is_valid, other=-1, cache="fresh")

    def clear(self):
        """Nothing: the CTA has no buffers."""

    def append(self, s, v, mask):
        """Queues the lanes' vertices."""
        self.put_near(s, [v], [mask])

    def put_near(self, s, vertices, won):
        base = (s.cur ^ 1) * self.c.n
        self._put(self.state.queue, base, FOUND + (s.turn & 3), vertices, won)

    def pile(self, vertices, wanted, piled):
        """Puts vertices on the warp's pile, which has `piled`; returns its new length."""
        k = self.k
        for v, w in zip(vertices, wanted, strict=True):
            votes = k.ballot(w)
            k.store(self.piles, self.first + piled + k.lanes_below(votes), v, mask=w)
            piled = piled + k.popc(votes)
        return piled

    def to_far(self, s, piled, left):
        """Moves the pile from entry `left` on into far; returns `left`."""
        k, marks, n = self.k, self.state.marks, self.c.n
        k.sync_warp()

        def some(at):
            is_valid = at + k.lane < piled
            v = k.load(self.piles, self.first + at + k.lane, mask=is_valid)
            if marked(self.c):
                is_valid = is_valid & (k.atomic("exch", marks, n + v, 1, mask=is_valid) == 0)
            self.put_far(s, [v], [is_valid])
            return at + 32

        k.while_(lambda at: at < piled, some, left)
        return left

    def put_far(self, s, vertices, won):
        self._put(self.state.far, (s.pile & 1) * self.c.n, FAR + (s.pile & 3), vertices, won)

    def _put(self, queue, base, word, vertices, won):
        k, control = self.k, self.state.control

        def store(at, v, mask):
            k.store(queue, base + at, v, mask=mask)

        put(k, vertices, won, lambda total: reserve(k, control, word, total), store)

    def least(self, s, least):
        report_least(self.k, least, self.state.control, LEAST + (s.pile & 3))

    def flush(self, s):
        pass
