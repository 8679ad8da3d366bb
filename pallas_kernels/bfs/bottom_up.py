"""The pull side of `any_degree.py`: unvisited vertices look for a visited neighbour."""

import functools
import operator

from .top_down import range_count, write

STRETCH = 1024  # neighbours of a vertex that one warp searches


class Copies:
    """Two copies of the bits of the visited: a level reads one and writes the other.

    `ends` vertices are numbered as neighbours, c.n are looked after: here the same.
    """

    def __init__(self, k, c, state, half):
        self.k, self.c, self.bits, self.ends = k, c, state.visited, c.n
        self.here, self.there = half * c.words, (half ^ 1) * c.words

    def visited(self, v):
        """Whether a neighbour is visited; none is where v is out of range."""
        k, inside = self.k, self.k.below(v, self.ends)
        return inside & (
            k.shr(k.load(self.bits, self.here + k.shr(v, 5), mask=inside), v & 31) & 1 != 0
        )

    def old(self, w):
        """The word w of those looked after; beyond the last: all visited."""
        return self.k.load(self.bits, self.here + w, mask=w < self.c.words, other=-1)

    def put(self, w, words):
        """Stores neighbouring words from w on, where they are; all lanes of the warp take part."""
        for j, word in enumerate(words):
            mask = (self.k.lane == 0) & (w + j < self.c.words)
            self.k.store(self.bits, self.there + w + j, word, mask=mask)

    def taken(self, v):
        """Whether the other copy has v, one of those looked after."""
        k = self.k
        word = k.load(self.bits, self.there + k.shr(v, 5), cache="fresh")
        return word & k.bit(v) != 0

    def claim(self, v, mask):
        """Sets the bit of v in the other copy; whether it was this call that did."""
        k, bit = self.k, self.k.bit(v)
        return mask & (
            k.atomic("or", self.bits, self.there + k.shr(v, 5), bit, mask=mask) & bit == 0
        )


def pull(k, c, graph, state, level, copies, warps):
    """Every unvisited vertex looks for a visited neighbour; found ones get their bit in the other
    copy.
    """
    worker, workers = warps
    visited, none = copies.visited, copies.ends

    def first_four(v, need):
        if graph.first is not None:
            return k.load_vec(graph.first, v * 4, 4, mask=need, other=none, cache="nc")
        s, e = k.row(graph.in_indptr, v, need)
        return [
            k.load(graph.in_indices, s + j, mask=need & (s + j < e), other=none, cache="nc")
            for j in range(4)
        ]

    tail = _Leftovers(k, c, graph, state, copies, level)

    def some(w0, count):
        """One round of the CTA; all its warps take part, words beyond the last masked."""
        groups = []
        for u in range(c.unroll):
            w = w0 + u
            old = copies.old(w)
            v = w * 32 + k.lane
            groups.append((w, old, v, (k.shr(old, k.lane) & 1 == 0) & k.below(v, c.n)))
        near = [first_four(v, need) for _, _, v, need in groups]
        hits = [[visited(x) for x in four] for four in near]
        found, parent, rest = [], [], []
        for (_, _, _, need), four, hit in zip(groups, near, hits, strict=True):
            found.append(hit[0] | hit[1] | hit[2] | hit[3])
            parent.append(
                k.where(
                    hit[0], four[0], k.where(hit[1], four[1], k.where(hit[2], four[2], four[3]))
                )
            )
            rest.append(need & ~found[-1] & k.below(four[3], none))
        out = k.if_(
            k.any(functools.reduce(operator.or_, rest)),
            lambda: _pull_rest(
                k, c, graph, copies, tail, [g[2] for g in groups], rest, found, parent
            ),
            *found,
            *parent,
        )
        words = []
        for (_, old, v, _), found, parent in zip(
            groups, out[: c.unroll], out[c.unroll :], strict=True
        ):
            new = k.ballot(found)
            words.append(old | new)
            k.store(state.levels, v, level + 1, mask=found)
            if c.parents:
                k.store(state.parents, v, parent, mask=found)
            count = count + k.where(k.lane == 0, k.popc(new), 0)
        copies.put(w0, words)
        return count + tail.search()

    rounds = (c.words + (workers * c.unroll - 1)) // (workers * c.unroll)
    (count,) = k.for_(
        0, rounds, 1, lambda r, count: some((r * workers + worker) * c.unroll, count), 0
    )
    k.reduce("add", state.sums, 1, count, mask=(k.lane == 0) & (count != 0))


def _pull_rest(k, c, graph, copies, tail, v, rest, found, parent):
    """The neighbours after the fourth of `unroll` vertices a lane: some by the lane, the others
    left to the CTA.
    """
    begin = [
        k.load(graph.in_indptr, x, mask=r, cache="nc") + 4 for x, r in zip(v, rest, strict=True)
    ]
    end = [
        k.load(graph.in_indptr, x + 1, mask=r, other=-1, cache="nc")
        for x, r in zip(v, rest, strict=True)
    ]

    def searching(tries, found):
        return [~f & (b + tries < e) for b, e, f in zip(begin, end, found, strict=True)]

    def probe(tries, *state):
        found, parent = list(state[: c.unroll]), list(state[c.unroll :])
        mask = searching(tries, found)
        first = [b + tries for b in begin]
        near = [
            [
                k.load(
                    graph.in_indices,
                    first[u] + j,
                    mask=mask[u] & (first[u] + j < end[u]),
                    other=copies.ends,
                    cache="nc",
                )
                for j in range(4)
            ]
            for u in range(c.unroll)
        ]
        hits = [[copies.visited(x) for x in four] for four in near]
        for u in range(c.unroll):
            for x, hit in zip(near[u], hits[u], strict=True):
                parent[u] = k.where(hit & ~found[u], x, parent[u])
                found[u] = found[u] | hit
        return tries + 4, *found, *parent

    def unfinished(tries, *state):
        return k.any(functools.reduce(operator.or_, searching(tries, state[: c.unroll])))

    tries, *out = k.while_(
        lambda tries, *state: (tries < c.lane_probes) & unfinished(tries, *state),
        probe,
        0,
        *found,
        *parent,
    )

    def leave():
        left = searching(tries, out[: c.unroll])
        parts = [
            k.where(m, range_count(STRETCH, b + tries, e), 0)
            for m, b, e in zip(left, begin, end, strict=True)
        ]
        scans = [k.warp_scan(p) for p in parts]
        total = sum((t for _, t in scans[1:]), scans[0][1])
        base = tail.reserve(total)
        room = base + total <= c.buffer

        def list_them():
            at = base
            for x, p, (upto, count), b, e in zip(v, parts, scans, begin, end, strict=True):
                k.if_(
                    count > 0,
                    lambda x=x, p=p, upto=upto, at=at, b=b, e=e: write(
                        k, STRETCH, tail, at, p, upto - p, b + tries, e, x
                    ),
                )
                at = at + count

        def search_them():
            tail.blank(base)
            return k.while_(unfinished, probe, tries, *out)[1:]

        k.if_(room, list_them)
        return k.if_(~room, search_them, *out)

    return k.if_(unfinished(tries, *out), leave, *out)


class _Leftovers:
    """Stretches of neighbours that a pull level leaves to all warps of the CTA: (begin, end,
    vertex, -) in the buffer.

    So a vertex of many neighbours does not hold up one warp. Stretches that find no room are
    searched by their lanes.
    """

    def __init__(self, k, c, graph, state, copies, level):
        self.k, self.c, self.graph, self.state = k, c, graph, state
        self.copies, self.level = copies, level

    def reserve(self, total):
        return self.k.shfl(
            self.k.atomic("add", self.state.sums, 0, total, mask=self.k.lane == 0), 0
        )

    def store(self, at, entry, mask=None):
        self.k.store_vec(self.state.buffer, at * 4, entry, mask=mask)

    def blank(self, at):
        """Empties the list from `at` on, for a warp whose stretches found no room."""
        entry = (0, 0, 0, 0)
        self.k.for_(at + self.k.lane, self.c.buffer, 32, lambda i: self.store(i, entry))

    def claim(self, v, parent, mask):
        """Sets the bit of v in the next copy; its other stretches may have done so."""
        k = self.k
        won = self.copies.claim(v, mask)
        k.store(self.state.levels, v, self.level + 1, mask=won)
        if self.c.parents:
            k.store(self.state.parents, v, parent, mask=won)
        return won

    def search(self):
        """All warps search what was left so far, 128 neighbours at a time; how many vertices this
        lane found.
        """
        k, c, state = self.k, self.c, self.state
        k.sync()
        total = k.minimum(k.load(state.sums, 0), c.buffer)

        def one(i, count):
            begin, end, v, _ = k.load_vec(state.buffer, i * 4, 4)
            begin = k.where(self.copies.taken(v), end, begin)

            def stretch(at, who):
                here = [at + 32 * j + k.lane for j in range(4)]
                near = [
                    k.load(
                        self.graph.in_indices, x, mask=x < end, other=self.copies.ends, cache="nc"
                    )
                    for x in here
                ]
                for x, hit in zip(near, [self.copies.visited(x) for x in near], strict=True):
                    hits = k.ballot(hit)
                    who = k.where((who < 0) & (hits != 0), k.shfl(x, k.ctz(hits | (1 << 31))), who)
                return at + 128, who

            _, who = k.while_(lambda at, who: (at < end) & (who < 0), stretch, begin, -1)
            return count + k.cast(self.claim(v, who, (k.lane == 0) & (who >= 0)), "i32")

        def some():
            (count,) = k.for_(k.warp, total, k.threads // 32, one, 0)
            k.sync()
            k.store(state.sums, 0, 0, mask=k.thread == 0)
            k.sync()
            return count

        return k.if_(total > 0, some, 0)[0]
