"""The pull side of `any_degree.py`: unvisited vertices look for a visited neighbour."""

import functools

from ..frontier import range_count
from ..simt.primitives import Simt
from ..simt.typed import Arrays, Several, Value, one_by_one, together
from .problem import Problem
from .top_down import UnbufferedTail, append, write

STRETCH = 1024  # neighbours of a vertex that one warp searches


class Copies:
    """Two copies of the bitmap of the visited: a level reads one and writes the other.

    `ends`: neighbours are numbers below it; c.n: vertices that this device pulls for. On one device
    they are equal.
    """

    def __init__(self, k: Simt, c: Problem, m: Arrays, half: Value):
        self.k, self.c, self.bits, self.ends = k, c, m.visited, c.n
        self.here, self.there = half * c.words, (half ^ 1) * c.words

    def visited(self, v, mask):
        """Whether neighbour v is visited; False if v is out of range."""
        k, inside = self.k, mask & self.k.below(v, self.ends)
        return inside & (
            k.shr(k.load(self.bits, self.here + k.shr(v, 5), mask=inside), v & 31) & 1 != 0
        )

    def old(self, w, mask):
        """Words w of the copy that is read."""
        return self.k.load(self.bits, self.here + w, mask=mask)

    def put(self, w, word, mask):
        """Stores words w of the other copy, one a lane."""
        self.k.store(self.bits, self.there + w, word, mask=mask)


def pull(
    k: Simt,
    c: Problem,
    m: Arrays,
    level: Value,
    copies: Copies,
    queue: tuple[UnbufferedTail, Value],
) -> None:
    """Every unvisited vertex looks for a visited neighbour. A vertex that finds one gets its level,
    its parent and its bit in the other copy.

    queue: (tail, whether to append the edges of found vertices to it). A warp takes up to 32 words
    in a step, one a lane. First all vertices of these words probe their first neighbours, where
    most find one; then the others that have more neighbours probe further. Word 1 of `sums` counts
    the found vertices.
    """
    worker, workers = k.warps
    runs = 32 // c.unroll
    tail = _Leftovers(k, c, m, copies, level, queue)

    def sweep(s, count):
        """One step of all warps of the CTA together; words beyond the last are skipped."""
        run = s * runs + k.lane // c.unroll
        w = (run * workers + worker) * c.unroll + k.lane % c.unroll
        mine = (w < c.words) & (k.lane < runs * c.unroll)
        old = copies.old(w, mine)
        bits = k.minimum(k.maximum(c.n - w * 32, 0), 32)  # vertices of this word
        left = k.where(mine & (bits > 0), ~old & k.shr(k.const(-1), (32 - bits) & 31), 0)
        k.store(m.news, k.thread, 0)
        picks = _Picks(k, c, w, left)

        def look(left, new, rest):
            vertices, need, left = picks.take(left)
            near, far = _first(k, m, vertices, need, copies.ends)
            found, parent = _visited(k, copies, near, need)
            tail.record(vertices, found, parent)
            return left, new | picks.words(found), rest | picks.words(far & ~found)

        _, new, rest = k.while_(lambda left, *_: k.any(left != 0), look, left, 0, 0)
        picks = _Picks(k, c, w, rest)
        unfinished = k.sync_count(rest != 0)

        def look_further(rest, new, claimed, unfinished):

            def some():
                vertices, need, left = picks.take(rest)
                found, parent = _pull_rest(k, c, m, copies, tail, vertices, need)
                tail.record(vertices, found, parent)
                return left, new | picks.words(found)

            rest, new = k.if_(k.any(rest != 0), some, rest, new)
            unfinished, won = tail.search(rest)
            return rest, new, claimed + won, unfinished

        carry = rest, new, 0, unfinished
        _, new, claimed, _ = k.while_(lambda *carry: carry[-1] != 0, look_further, *carry)
        copies.put(w, old | new | k.load(m.news, k.thread), mine)
        return count + k.popc(new) + claimed

    sweeps = (c.words + (workers * c.unroll * runs - 1)) // (workers * c.unroll * runs)
    (count,) = k.for_(0, sweeps, 1, sweep, 0)
    k.add_sum(m.sums, 1, count)


class _Picks:
    """Assigns the vertices of set bits, in one word a lane, to lanes: `unroll` a lane in a step.

    Dense words: the warp takes the 32 vertices of a word together, whose loads are coalesced.
    Sparse words: each lane takes the vertices of its own word.
    """

    def __init__(self, k, c, w, left):
        self.k, self.c, self.w = k, c, w
        most = k.warp_fold(k.maximum, k.popc(left))
        self.sparse = 2 * most <= k.popc(k.ballot(left != 0))

    def take(self, left):
        """(vertices, masks of those that are valid, the bits that remain)."""
        k, sparse, w = self.k, self.sparse, self.w
        dense, own, found = k.ballot(left != 0), left, []
        for _ in range(self.c.unroll):
            at, bit = k.ctz(dense) & 31, k.ctz(own) & 31
            word, bits = k.shfl(w, at), k.where(dense != 0, k.shfl(left, at), 0)
            vertex = k.where(sparse, w * 32 + bit, word * 32 + k.lane)
            need = k.where(sparse, own, k.shr(bits, k.lane) & 1) != 0
            at = k.where(dense != 0, at, 32)
            left = k.where(k.lane == at, 0, left)
            dense, own = dense & (dense - 1), own & (own - 1)
            found.append((vertex, need, at, bit))
        vertices, need, self.at, self.bit = together(found)
        return vertices, need, k.where(sparse, own, left)

    def words(self, flags):
        """Bits of the vertices taken last for which `flags` holds, in the words of their lanes."""
        k = self.k
        word = k.where(k.lane == self.at, k.ballot(flags), 0)
        word = k.where(self.sparse, k.where(flags, k.bit(self.bit), 0), word)
        return k.union((k.const(0), *word))


def _visited(k, copies, near, need):
    """(whether one of four neighbours of each vertex with `need` is visited, which one).

    First neighbours are tested first: most are hubs, whose bits lie in a few cache lines. A vertex
    that found one tests no other.
    """
    found, parent = k.const(False, "i1"), k.const(-1)
    for v in near:
        hit = copies.visited(v, need & ~found)
        found, parent = found | hit, k.where(hit, v, parent)
    return found, parent


def _first(k, m, v, need, none):
    """(up to four first neighbours of v, whether v may have more)."""
    if m.first is not None:
        four = k.load_vec(m.first, v * 4, 4, mask=need, other=none, cache="nc")
        return four, need & k.below(four[3], none)
    start, end = k.row(m.in_indptr, v, need)
    at = start & -4
    near = _aligned(k, m.in_indices, at, end, need & (start < end), none)
    near = [k.where(at + j < start, none, x) for j, x in enumerate(near)]
    return near, need & (at + 4 < end)


def _aligned(k, indices, at, end, mask, none):
    """Entries at .. at + 3 that lie before `end`: one access if the size is a multiple of 4."""
    if indices.size % 4 == 0:
        four = k.load_vec(indices, at, 4, mask=mask, other=none, cache="nc")
        return [k.where(at + j < end, x, none) for j, x in enumerate(four)]
    mask = [mask & (at + j < end) for j in range(4)]
    return [k.load(indices, at + j, mask=t, other=none, cache="nc") for j, t in enumerate(mask)]


def _pull_rest(k, c, m, copies, tail, v, rest):
    """(whether a later neighbour of each of `unroll` vertices a lane is visited, which one): the
    lane probes some, by fours, and leaves the others to the CTA.
    """
    begin = (k.load(m.in_indptr, v, mask=rest, cache="nc") + 4) & -4
    end = k.load(m.in_indptr, v + 1, mask=rest, other=-1, cache="nc")

    def searching(tries, found):
        return ~found & (begin + tries < end)

    def probe(tries, found, parent):
        mask = searching(tries, found)
        near = _aligned(k, m.in_indices, begin + tries, end, mask, copies.ends)
        hit, u = _visited(k, copies, near, mask)
        return tries + 4, found | hit, k.where(hit, u, parent)

    def unfinished(tries, found, parent):
        return k.any(searching(tries, found))

    going = lambda tries, *found: (tries < c.lane_probes) & unfinished(tries, *found)  # noqa: E731
    none = Several([k.const(False, "i1")] * c.unroll), Several([k.const(-1)] * c.unroll)
    tries, *out = k.while_(going, probe, 0, *none)

    def leave():
        parts = range_count(STRETCH, begin + tries, end)
        parts = k.where(searching(tries, out[0]), parts, 0)
        upto, counts = together(map(k.warp_scan, parts))
        total = k.total(counts)
        base = tail.reserve(total)
        capacity = base + total <= c.buffer

        def list_them():
            at = base
            rows = one_by_one(counts, parts, (begin + tries, end, v, upto - parts))
            for count, part, row in rows:
                k.if_(count > 0, functools.partial(write, k, STRETCH, tail, at, part, row))
                at = at + count

        def search_them():
            tail.blank(base)
            return k.while_(unfinished, probe, tries, *out)[1:]

        k.if_(capacity, list_them)
        return k.if_(~capacity, search_them, *out)

    return k.if_(unfinished(tries, *out), leave, *out)


class _Leftovers:
    """Stretches of neighbours that a pull level leaves to all warps of the CTA: (begin, end,
    vertex, -) in the buffer.

    So a vertex of many neighbours does not delay one warp. Stretches beyond the capacity of the
    buffer are searched by their lanes. Word 0 of `sums` counts the stretches.
    """

    def __init__(self, k: Simt, c: Problem, m: Arrays, copies: Copies, level: Value, queue):
        self.k, self.c, self.m = k, c, m
        self.copies, self.level, self.queue = copies, level, queue

    def reserve(self, total):
        return self.k.reserve(self.m.sums, 0, total)

    def store(self, at, entry, mask=None):
        self.k.store_vec(self.m.buffer, at * 4, entry, mask=mask)

    def blank(self, at):
        """Empties the list from `at` on, for a warp whose stretches did not fit."""
        entry = (0, 0, 0, 0)
        self.k.for_(at + self.k.lane, self.c.buffer, 32, lambda i: self.store(i, entry))

    def record(self, vertices, found, parent):
        """Stores levels and parents of the vertices that found a neighbour, and queues them."""
        for each in one_by_one(vertices, parent, found):
            self._visit(*each)
        self.enqueue(vertices, found)

    def _visit(self, v, parent, mask):
        self.k.store(self.m.levels, v, self.level + 1, mask=mask)
        if self.c.parents:
            self.k.store(self.m.parents, v, parent, mask=mask)

    def enqueue(self, vertices, found):
        """Appends the edges of found vertices to the queue, if asked for; all lanes of the warp
        take part. Word 2 of `sums` counts these edges."""
        k, m, (tail, wanted) = self.k, self.m, self.queue

        def some():
            edges = k.const(0)
            for v, mask in one_by_one(vertices, found):
                start, end = k.row(self.m.indptr, v, mask)
                append(k, self.c.span, tail, mask, start, end, v)
                edges = edges + k.where(mask, end - start, 0)
            k.reduce("add", m.sums, 2, edges, mask=edges != 0)

        k.if_(wanted & k.any(found), some)

    def slot(self, v):
        """Index of the word of v in `news`: the thread of this CTA that holds this word."""
        k, c, w = self.k, self.c, self.k.shr(v, 5)
        run = w // c.unroll
        warp = run % k.warps[1] // k.ctas
        lane = run // k.warps[1] % (32 // c.unroll) * c.unroll + w % c.unroll
        return warp * 32 + lane

    def claim(self, v, parent, mask):
        """Sets the bit of v in `news` and, if this is the first to do so, its level and parent."""
        k, bit = self.k, self.k.bit(v)
        before = k.atomic("or", self.m.news, self.slot(v), bit, mask=mask)
        won = mask & (before & bit == 0)
        self._visit(v, parent, won)
        return won

    def search(self, left):
        """All warps search the listed stretches, 128 neighbours at a time; returns (number of
        threads with a bit in `left`, number of vertices that this lane found).
        """
        k, c, m = self.k, self.c, self.m
        more = k.sync_count(left != 0)
        total = k.minimum(k.load(m.sums, 0), c.buffer)

        def one(i, count):
            begin, end, v, _ = k.load_vec(m.buffer, i * 4, 4)
            taken = k.load(m.news, self.slot(v)) & k.bit(v) != 0
            begin = k.where(taken, end, begin)

            def stretch(at, parent):
                here = k.several(4, lambda j: at + 32 * j + k.lane)
                none = self.copies.ends
                near = k.load(m.in_indices, here, mask=here < end, other=none, cache="nc")
                for x, hit in one_by_one(near, self.copies.visited(near, near >= 0)):
                    hits = k.ballot(hit)
                    first = k.shfl(x, k.ctz(hits | (1 << 31)))
                    parent = k.where((parent < 0) & (hits != 0), first, parent)
                return at + 128, parent

            _, parent = k.while_(lambda at, parent: (at < end) & (parent < 0), stretch, begin, -1)
            won = self.claim(v, parent, (k.lane == 0) & (parent >= 0))
            self.enqueue(v, won)
            return count + k.cast(won, "i32")

        def some():
            (count,) = k.for_(k.warp, total, k.threads // 32, one, 0)
            k.sync()
            k.store(m.sums, 0, 0, mask=k.thread == 0)
            k.sync()
            return count

        return more, k.if_(total > 0, some, 0)[0]
