"""Vertices that wait for their earlier neighbours, without rounds: independent sets, colours.

Method: the vertices have an order, and a vertex is decided once its earlier neighbours determine
it. So the result does not depend on the threads: it is that of the sequential algorithm (Burtscher,
Devale, Azimi, Jaiganesh, Powers, "A high-quality and fast maximal independent set implementation
for GPUs", TOPC 2018; Jones, Plassmann 1993 for colours). One word for each vertex holds its
priority, later the decision.

The lanes of a warp take a vertex each. A lane reads its row up to the first neighbour that is
earlier and not decided, and stores this place; all neighbours before it in the row are decided, so
no edge is read twice. The warp lists its waiting vertices, the first KEPT in shared memory, and
polls the word of the neighbour that each waits for; in sets also its own. All lanes read a stretch
of a long row together. A warp polls all its waiting vertices in rotation, so there is no deadlock:
the first undecided vertex of the order waits for none.

Cost: a gather for each edge up to the neighbour that decides, one for each edge of a member of the
set, one or two for each poll; no grid barrier. Sets wait in chains of 4 to 6 on graphs of every
kind, colours in chains of 10 to 20 on meshes and roads (on R-MAT graphs of 1,600: `in_order.py`).

Floor (H200): rmat21 has offsets, words and 32 bytes of each row to read, 0.03 ms; its gathers for a
set, about ten a vertex, take 0.15. Measured, sets: rmat21 0.18 ms, rmat18 0.038, delaunay21 0.14,
cnr-2000 0.065, grid1000 0.039, moscow-roads 0.021; colours: delaunay21 0.30, grid1000 0.055,
moscow-roads 0.022, but coAuthorsDBLP 0.6 and cnr-2000 3.8: dense parts are for `in_order.py`.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..rows.flatten import flatten
from ..simt.device import extent
from ..simt.launch import launch
from ..simt.primitives import SPIN_LIMIT
from ..simt.typed import Several, one_by_one

IN, OUT = 2**31 - 1, -1  # decided words of sets; of colours -1 - color; open ones are priorities
AHEAD = 8  # neighbours that one lane reads before all lanes read the row together
MEAN = 5  # entries a row from which on a lane has AHEAD of them in flight together, else half
WORDS = 4  # of a waiting vertex: itself, place in its row, colours taken, `_packed` head
MANY = 7  # entries behind a place in a row that are not counted exactly
HEAD = (1 << 28) - 1  # of a packed word, the vertex
KEPT = 128  # waiting vertices of a warp in shared memory; a multiple of 32
READY = 64  # capacity of the list of ready vertices, of which a warp takes 32 together
READY_WORDS = 4  # of a ready vertex: itself, place in its row, colours taken, entries behind
SHARED_WORDS = READY * READY_WORDS + KEPT * WORDS  # of a warp


def independent_set(
    indptr: jax.Array, indices: jax.Array, priority: jax.Array, *, limit: int = SPIN_LIMIT
) -> tuple[jax.Array, jax.Array]:
    """(members bool[n], status int32): the greedy set by descending priority, symmetric graphs.

    Self loops do not count. priority: int32[n], 0 <= priority < 2^31 - 1; of equal ones the smaller
    vertex is first; n at most 2^28. status 0: right; otherwise a warp polled `limit` times without
    success.
    """
    out = decided(Set, "independent_set", indptr, indices, priority, limit)
    return out["state"] == IN, jnp.max(out["late"])


def decided(rule, name, indptr, indices, priority, limit):
    """The arrays of a launch that decides all vertices, one or more."""
    n, form = indptr.shape[0] - 1, extent()
    ctas, threads = form["ctas"], form["threads"]
    warps = ctas * threads // 32
    capacity = -(-n // (32 * warps)) * 32  # vertices of a warp, in whole strides
    ahead = AHEAD if rule.all_ahead and indices.shape[0] >= MEAN * n else AHEAD // 2
    sizes = Sizes(n, capacity, limit, ahead)
    return launch(
        lambda k, m: rule(k, m, sizes).run(),
        {"indptr": indptr, "indices": indices},
        {"waiting": WORDS * capacity * warps, "late": ctas, **rule.results(n, ctas)},
        inout={"state": priority},
        more_control=None,
        shared_words=threads // 32 * SHARED_WORDS + 8,
        name=name,
    )


class Sizes(NamedTuple):
    """Vertices, those of a warp at most, polls without success at most, neighbours of a lane that
    are in flight together."""

    n: int
    capacity: int
    limit: int
    ahead: int


class Waiting:
    """The vertices of one warp; subclasses define how they are decided.

    late: whether a warp of the CTA gave up; word 0 of shared memory.
    results(n, ctas): sizes of the arrays that they write besides `state` and `late`, by name.
    all_ahead: whether a vertex needs all of its neighbours, so that AHEAD may be in flight.
    """

    results: Callable[..., dict[str, int]] = staticmethod(lambda n, ctas: {})
    all_ahead = False

    def __init__(self, k, m, c):
        self.k, self.m, self.c = k, m, c
        self.late = k.shared(4)
        # of the places of this warp in `waiting`
        self.first = k.warps[0] * c.capacity
        # word by word, warp by warp
        self.kept = k.shared(k.threads // 32 * KEPT * WORDS), k.warp * (KEPT * WORDS)
        self.ready = k.shared(k.threads // 32 * READY * READY_WORDS), k.warp * (READY * READY_WORDS)

    def run(self):
        k, m, c = self.k, self.m, self.c
        k.store(self.late, k.thread, 0, mask=k.thread < 4)
        k.sync()

        def start(v, count):
            valid = v < c.n
            priority = k.load(m.state, v, mask=valid, other=OUT, cache="fresh")
            begin, end = k.row(m.indptr, v, valid)
            vertex, open_ = (v, begin, priority, k.const(0)), priority >= 0
            return (self._settle(vertex, (begin, k.where(open_, end, begin)), open_, count),)

        (count,) = k.spread_warps(c.n, start, 0)

        def again(count, turn):
            k.sync_warp()
            look = lambda j, left, ready: self._look(j, count, left, ready)  # noqa: E731
            left, ready = k.for_(0, count, 32, look, 0, 0)
            (left,) = k.if_(ready > 0, lambda: self._go_on(0, ready, left), left)
            return left, turn + 1

        going = lambda count, turn: (count > 0) & (turn < c.limit)  # noqa: E731
        count, _ = k.while_(going, again, count, 0)
        k.store(self.late, 0, 1, mask=(count > 0) & (k.lane == 0))
        k.sync()
        k.store(m.late, k.cta, k.load(self.late, 0), mask=k.thread == 0)

    def _look(self, j, count, left, ready):
        """Polls the waiting vertices from place j on. left, ready: numbers of vertices before them
        that still wait and that are ready; returns both with these vertices included.
        """
        k, m = self.k, self.m
        valid = j + k.lane < count
        kept = lambda: self._words(self.kept, KEPT, j + k.lane, valid, WORDS)  # noqa: E731
        place, mask = (self.first + j + k.lane) * WORDS, valid & (j >= KEPT)
        far = k.load_vec(m.waiting, place, WORDS, mask=mask, cache="fresh")
        v, at, taken, packed = k.if_(j < KEPT, kept, *far)
        head, behind = packed & HEAD, k.shr(packed, 28)
        open_ = self._open(v, valid)
        word_of_head = k.load(m.state, head, mask=valid, other=OUT, cache="fresh")
        k.sync_warp()  # places are written from here on, behind none that is still to be read
        waits = open_ & (word_of_head >= 0)
        left = self._wait((v, at, None, taken), packed, waits, left)
        goes, taken = self._next(v, word_of_head, behind, taken, open_ & (word_of_head < 0))
        voters = k.ballot(goes)
        words = v, at, taken, behind
        self._keep(self.ready, READY, ready + k.lanes_below(voters), words, goes)
        ready = ready + k.popc(voters)
        some = lambda: (self._go_on(ready - 32, 32, left), ready - 32)  # noqa: E731
        return k.if_(ready >= 32, some, left, ready)

    def _words(self, where, size, place, valid, many):
        """`many` words of an entry of a list of this warp in shared memory."""
        array, first = where
        return tuple(self.k.load(array, first + i * size + place, mask=valid) for i in range(many))

    def _keep(self, where, size, place, words, mask):
        """Stores an entry of such a list."""
        array, first = where
        for i, word in enumerate(words):
            self.k.store(array, first + i * size + place, word, mask=mask)

    def _open(self, v, valid):
        """Whether waiting vertices are not decided yet."""
        return valid

    def _next(self, v, word, behind, taken, mask):
        """Called for vertices whose neighbour got a word: (who must read its row further, taken).

        behind: how many entries of the row come after that neighbour, or MANY.
        """
        raise NotImplementedError

    def _row(self, v, at, behind, valid):
        """(begin, end) of the rows of vertices that are ready."""
        return self.k.row(self.m.indptr, v, valid)

    def _go_on(self, first, count, left):
        """`_settle` of `count` vertices that are ready, from number `first` on."""
        k, m = self.k, self.m
        k.sync_warp()
        valid = k.lane < count
        v, at, taken, behind = self._words(self.ready, READY, first + k.lane, valid, READY_WORDS)
        k.sync_warp()
        priority = k.load(m.state, v, mask=valid, other=OUT, cache="fresh")
        row = self._row(v, at, behind, valid)
        return self._settle((v, at, priority, taken), row, valid & (priority >= 0), left)

    def _packed(self, head, at, end):
        """The neighbour at a place in a row, and how many entries come after it: MANY at most."""
        k = self.k
        return head | (k.minimum(end - at - 1, MANY) << 28)

    def _wait(self, vertex, head, mask, left):
        """Lists the vertices where `mask` holds as waiting, behind `left` others."""
        k, (v, at, _, taken) = self.k, vertex
        voters = k.ballot(mask)
        place = left + k.lanes_below(voters)
        words, near = (v, at, taken, head), mask & (place < KEPT)
        self._keep(self.kept, KEPT, place, words, near)
        k.store_vec(self.m.waiting, (self.first + place) * WORDS, words, mask=mask & ~near)
        return left + k.popc(voters)

    def _settle(self, vertex, row, mask, left):
        """Reads the rows (begin, end) of vertices (v, place, priority, taken) further: each stops
        at a neighbour or is decided."""
        v, at, priority, taken = vertex
        begin, end = row
        at, head, word, taken = self._first_before(vertex, end, mask)
        stopped = mask & (word >= 0)
        head = self._packed(head, at, end)
        left = self._stop((v, at, priority, taken), (head, word), stopped, left)
        self._end(v, (begin, end), taken, mask & ~stopped)
        return left

    def _stop(self, vertex, other, mask, left):
        """Called for vertices that stopped at an earlier neighbour `other` = (packed, word)."""
        return self._wait(vertex, other[0], mask, left)

    def _end(self, v, row, taken, mask):
        """Called for vertices that found no such neighbour in their rows: decides them."""
        raise NotImplementedError

    def _add_colors(self, taken, words, valid):
        """`taken` with the colours of neighbours with these words."""
        return taken

    def _before(self, places, v, priority, end):
        """(neighbours, words, whether they come earlier, valid) at some places of each lane."""
        k, m = self.k, self.m
        valid = places < end
        heads = k.load(m.indices, places, mask=valid, cache="nc")
        words = k.load(m.state, heads, mask=valid, other=OUT, cache="fresh")
        found = valid & ((words > priority) | ((words == priority) & (heads < v)))
        return heads, words, found, valid

    def _first_before(self, vertex, end, mask):
        """(place, neighbour, word, taken) of the first earlier neighbour that is not OUT.

        If a vertex has none, and where `mask` does not hold, the word is OUT. First each lane reads
        up to AHEAD entries of its row (`by_lane`), then the warp reads the other rows one by one.
        """
        k, ahead = self.k, self.c.ahead
        v, at, priority, taken = vertex

        def by_lane(turn, at, head, word, taken):
            open_ = (at < end) & (word == OUT) & mask
            places = Several(at + j for j in range(ahead))
            heads, words, found, valid = self._before(places, v, priority, end)
            taken = self._add_colors(taken, words, open_ & valid)
            place = at + ahead
            for hit, here, *near in reversed(one_by_one(open_ & found, places, heads, words)):
                place = k.where(hit, here, place)
                head, word = k.where(hit, near[0], head), k.where(hit, near[1], word)
            return turn + 1, k.where(open_, place, at), head, word, taken

        def more(turn, at, head, word, taken):
            return (turn < AHEAD // ahead) & k.any((at < end) & (word == OUT) & mask)

        start = 0, at, k.const(0), k.const(OUT), taken
        _, at, head, word, taken = k.while_(more, by_lane, *start)

        def by_warp(owner, at, head, word, taken):
            of_owner = [k.shfl(x, owner) for x in (v, priority, end)]
            found = self._stretches(of_owner, k.shfl(at, owner))
            mine, old = k.lane == owner, (at, head, word)
            new = [k.where(mine, x, y) for x, y in zip(found[:3], old, strict=True)]
            return *new, k.where(mine, taken | found[3], taken)

        left = k.ballot(mask & (at < end) & (word == OUT))
        return k.each_bit(left, by_warp, at, head, word, taken)

    def _stretches(self, vertex, at):
        """(place, neighbour, word, taken) for one row, read by all lanes."""
        k, end = self.k, vertex[2]

        def stretch(place, head, word, taken):
            places = Several((place + k.lane, place + 32 + k.lane))
            heads, words, found, valid = self._before(places, *vertex)
            taken = self._add_colors(taken, words, valid)
            votes = k.ballot(found)
            later = votes[0] == 0
            vote = k.where(later, votes[1], votes[0])
            hit = vote != 0
            lane = k.ctz(k.where(hit, vote, 1))
            head, word = (
                k.where(hit, k.where(later, k.shfl(x[1], lane), k.shfl(x[0], lane)), old)
                for x, old in ((heads, head), (words, word))
            )
            return place + k.where(hit, lane + k.where(later, 32, 0), 64), head, word, taken

        def more(place, head, word, taken):
            return (word == OUT) & (place < end)

        place, head, word, taken = k.while_(more, stretch, at, 0, OUT, 0)
        return place, head, word, k.warp_fold(lambda x, y: x | y, taken)


class Set(Waiting):
    """A vertex without an earlier neighbour in the set joins it; its neighbours are out."""

    def _open(self, v, valid):
        return valid & (self.k.load(self.m.state, v, mask=valid, other=OUT, cache="fresh") >= 0)

    def _next(self, v, word, behind, taken, mask):
        self.k.reduce("min", self.m.state, v, OUT, mask=mask & (word == IN))
        return mask & (word != IN), taken

    def _stop(self, vertex, other, mask, left):
        k, (head, word) = self.k, other
        k.reduce("min", self.m.state, vertex[0], OUT, mask=mask & (word == IN))
        return self._wait(vertex, head, mask & (word != IN), left)

    def _end(self, v, row, taken, mask):
        k, m = self.k, self.m
        begin, end = row
        k.reduce("max", m.state, v, IN, mask=mask)

        def exclude(places, valid, owner):
            near = k.load(m.indices, places, mask=valid, cache="nc")
            word = k.load(m.state, near, mask=valid, other=OUT, cache="fresh")
            k.reduce("min", m.state, near, OUT, mask=valid & (word != OUT) & (near != owner))

        rows = lambda: flatten(k, begin, k.where(mask, end - begin, 0), (v,), exclude)  # noqa: E731
        k.if_(k.any(mask), rows)
