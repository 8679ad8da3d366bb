"""The three level kernels of `tile.py`; each of them also pushes the edges of the remainder.

`g.front` holds three bitmaps of c.words words in rotation: the frontier, the next one, and the last
one, which is cleared meanwhile. `g.visited` is one bitmap. A level reads the frontier from `front`,
so the bits that it sets in `visited` do not change its result: they only save work.
"""

from ..rows.flatten import flatten
from ..simt.typed import one_by_one, together

UNROLL = 4
SPLIT = 256  # a row of more tiles than this is shared by the warps of a CTA
LISTED = 1024  # capacity of the list of such rows of a CTA


class Level:
    """One level: `k` the primitives, `c` the constants, `g` the arrays, all threads together."""

    def __init__(self, k, c, g, level, cur, nxt):
        self.k, self.c, self.g, self.level = k, c, g, level
        self.cur, self.nxt = cur * c.words, nxt * c.words

    def claim(self, *claims):
        """Marks the bits of claims (tiles, words of lines, masks) as visited and part of the next
        frontier; the accesses of several claims are in flight together. Word 0 of `sums` counts the
        new vertices."""
        k, g = self.k, self.g
        at, new = together(
            (tile * self.c.each + q, k.where(mask, w, 0))
            for tile, word, mask in one_by_one(*claims)
            for q, w in enumerate(word)
        )
        new = new & ~k.load(g.visited, at, mask=new != 0, other=-1, cache="fresh")
        won = new & ~k.atomic("or", g.visited, at, new, mask=new != 0)
        k.reduce("or", g.front, self.nxt + at, won, mask=won != 0)
        count = k.total(k.popc(won), k.const(0))
        k.reduce("add", g.sums, 0, count, mask=count != 0)

    def frontier(self, expand):
        """Writes the levels of the frontier, pushes its remainder, and its tiles if `expand`."""
        k, c, g = self.k, self.c, self.g

        def some(tile, valid):
            word = k.load_vec(g.front, self.cur + tile * c.each, c.each, mask=valid, cache="fresh")
            alive = valid & (k.union(word) != 0)
            start = k.load(g.out_ptr, tile, mask=alive & expand, cache="nc")
            size = k.load(g.out_ptr, tile + 1, mask=alive & expand, cache="nc") - start

            def one(lane):
                self.one_tile(*(k.shfl(x, lane) for x in (tile, start, size, *word)))

            k.each_bit(k.ballot(alive), one)

        k.round_robin(self.c.tiles, k.warps, some)

    def one_tile(self, tile, start, size, *word):
        k, c, g = self.k, self.c, self.g
        for q, w in enumerate(word):
            vertex = tile * c.nt + 32 * q + k.lane
            mine = k.shr(w, k.lane) & 1 != 0
            k.store(g.levels, vertex, self.level, mask=mine)
            if c.rest:
                self.remainder(vertex, mine)
        self.push_csc(start, size, word)

    def remainder(self, vertex, mine):
        """The edges of the remainder that leave the vertices of the lanes."""
        k, g = self.k, self.g
        start, end = k.row(g.rest_ptr, vertex, mine)

        def edges(places, valid):
            v = k.load(g.rest_minor, places, mask=valid, other=self.c.n, cache="nc")
            at, bit, valid = k.shr(v, 5), k.bit(v), valid & k.below(v, self.c.n)
            new = valid & (k.load(g.visited, at, mask=valid, other=-1, cache="fresh") & bit == 0)
            won = new & (k.atomic("or", g.visited, at, bit, mask=new) & bit == 0)
            for i, word, mask in one_by_one(self.nxt + at, bit, won):
                k.reduce("or", g.front, i, word, mask=mask)
                k.reduce("add", g.sums, 0, 1, mask=mask)

        flatten(k, start, k.where(mine, end - start, 0), (), edges)

    def push_csc(self, start, size, word):
        """Vector-driven: all pairs of a vertex of a frontier tile and a tile of its row.

        If the warp can take all pairs in one pass, each lane has a pair. Otherwise the warp takes
        one tile after the other, each lane has a line of it, and the warp combines the lines.
        """
        k = self.k
        pairs = k.total(map(k.popc, word)) * size
        one_pass = pairs <= 32 * UNROLL
        k.if_(one_pass & (pairs > 0), lambda: self.push_pairs(start, size, word, pairs))
        k.if_(~one_pass, lambda: self.push_whole(start, start + size, word))

    def push_pairs(self, start, size, word, pairs):
        k, c, g = self.k, self.c, self.g
        j = k.several(UNROLL, lambda u: 32 * u + k.lane)
        rank, valid = j // size, j < pairs
        tile = start + (j - rank * size)
        line = tile * c.nt + _select(k, word, rank)
        targets = k.load_vec(g.out_words, line * c.each, c.each, mask=valid, cache="nc")
        self.claim(k.load(g.out_minor, tile, mask=valid, cache="nc"), targets, valid)

    def push_whole(self, start, end, word):
        k, c, g = self.k, self.c, self.g
        mine = [k.shr(w, k.lane) & 1 != 0 for w in word]

        def some(t0):
            joined = []
            for u in range(UNROLL):
                total = [k.const(0)] * c.each
                for q, m in enumerate(mine):
                    line = (t0 + u) * c.nt + 32 * q + k.lane
                    bits = k.load_vec(
                        g.out_words, line * c.each, c.each, mask=m & (t0 + u < end), cache="nc"
                    )
                    total = [t | b for t, b in zip(total, bits, strict=True)]
                joined.append(total)
            for d in (16, 8, 4, 2, 1):
                joined = [[x | k.shfl_xor(x, d) for x in total] for total in joined]
            # lane u claims for tile t0 + u
            tile = t0 + k.lane
            valid = (k.lane < UNROLL) & (tile < end)
            words = joined[0]
            for u in range(1, UNROLL):
                words = [k.where(k.lane == u, x, w) for x, w in zip(joined[u], words, strict=True)]
            self.claim(k.load(g.out_minor, tile, mask=valid, cache="nc"), words, valid)

        k.for_(start, end, UNROLL, some)

    def unvisited(self, scan):
        """scan(tile, start, end, missing) for every tile with unvisited vertices, a warp each."""
        k, g = self.k, self.g
        k.store(g.listed, LISTED, 0, mask=k.thread == 0)
        k.sync()

        def some(tile, valid):
            missing = self.missing(tile, valid)
            alive = valid & (k.union(missing) != 0)
            start, end = k.row(g.in_ptr, tile, alive)
            at = k.atomic("add", g.listed, LISTED, 1, mask=end - start > SPLIT)
            later = (end - start > SPLIT) & (at < LISTED)
            k.store(g.listed, at, tile, mask=later)

            def one(lane):
                t, s, e, *m = (k.shfl(x, lane) for x in (tile, start, end, *missing))
                scan(t, s, e, m)

            k.each_bit(k.ballot(alive & ~later & (end > start)), one)

        k.round_robin(self.c.tiles, k.warps, some)
        k.sync()

        def long(i):
            tile = k.load(g.listed, i)
            end = k.load(g.in_ptr, tile + 1, cache="nc")

            def part(t0):
                # lane 0 reads for all lanes: other warps set bits meanwhile
                missing = [k.shfl(m, 0) for m in self.missing(tile, k.const(True, "i1"))]
                scan(tile, t0, k.minimum(t0 + 32, end), missing)

            first = k.load(g.in_ptr, tile, cache="nc") + k.warp * 32
            k.for_(first, end, k.threads, part)

        k.for_(0, k.minimum(k.load(g.listed, LISTED), LISTED), 1, long)
        k.sync()

    def missing(self, tile, valid):
        """The unvisited vertices of a tile, as words."""
        k, c, g = self.k, self.c, self.g
        seen = k.load_vec(g.visited, tile * c.each, c.each, mask=valid, cache="fresh")
        left = [k.minimum(k.maximum(c.n - tile * c.nt - 32 * q, 0), 32) for q in range(c.each)]
        inside = [k.where(m == 32, -1, (k.const(1) << (m & 31)) - 1) for m in left]
        return [~s & i for s, i in zip(seen, inside, strict=True)]

    def sources(self, t0, end):
        """(words of the frontier in the tiles of the lanes, ballot of those not empty)."""
        k, c, g = self.k, self.c, self.g
        t = t0 + k.lane
        minor = k.load(g.in_minor, t, mask=t < end, cache="nc")
        word = k.load_vec(g.front, self.cur + minor * c.each, c.each, mask=t < end, cache="fresh")
        return word, k.ballot((t < end) & (k.union(word) != 0))

    def push_csr(self, tile, start, end, missing):
        """Matrix-driven: intersects whole tiles with their frontier words, one line a lane; tiles
        whose frontier words are zero are skipped."""
        k, c, g = self.k, self.c, self.g

        def chunk(t0, *hits):
            word, left = self.sources(t0, end)

            def some(left, *hits):
                hits = list(hits)
                for _ in range(UNROLL):
                    lane, valid = k.ctz(left) & 31, left != 0
                    front = [k.shfl(w, lane) for w in word]
                    for q in range(c.each):
                        line = (t0 + lane) * c.nt + 32 * q + k.lane
                        bits = k.load_vec(g.in_words, line * c.each, c.each, mask=valid, cache="nc")
                        for b, f in zip(bits, front, strict=True):
                            hits[q] = hits[q] | (b & f)
                    left = left & (left - 1)
                return (left, *hits)

            return k.while_(lambda left, *hits: left != 0, some, left, *hits)[1:]

        hits = k.for_(start, end, 32, chunk, *[0] * c.each)
        found = [k.ballot(h != 0) & m for h, m in zip(hits, missing, strict=True)]
        self.claim(tile, found, k.lane == 0)

    def pull_csc(self, tile, start, end, missing):
        """Driven by the unvisited: each searches its tiles up to the first visited neighbour."""
        k, c, g = self.k, self.c, self.g

        def chunk(state):
            t0, *missing = state
            word, live = self.sources(t0, end)
            mine = k.shr(live, k.lane) & 1 != 0
            found = [k.const(0)] * c.each
            for q in range(c.each):

                def some(left, found, q=q):
                    for _ in range(UNROLL):
                        bit, valid = k.ctz(left) & 31, (left != 0) & mine
                        line = (t0 + k.lane) * c.nt + 32 * q + bit
                        bits = k.load_vec(g.in_words, line * c.each, c.each, mask=valid, cache="nc")
                        hit = k.union([b & f for b, f in zip(bits, word, strict=True)]) != 0
                        found = k.where(k.any(valid & hit), found | k.bit(bit), found)
                        left = left & (left - 1)
                    return left, found

                seek = k.where(live != 0, missing[q], 0)
                found[q] = k.while_(lambda left, found: left != 0, some, seek, found[q])[1]
            self.claim(tile, found, k.lane == 0)
            return t0 + 32, *[m & ~f for m, f in zip(missing, found, strict=True)]

        k.while_(
            lambda t0, *missing: (t0 < end) & (k.union(missing) != 0),
            lambda *state: chunk(state),
            start,
            *missing,
        )


def _select(k, word, rank):
    """The place of the set bit that has `rank` set bits below it, in the words of a line."""
    base, w = k.const(0), word[0]
    if len(word) == 2:
        low = k.popc(word[0])
        high = rank >= low
        w, base = k.where(high, word[1], word[0]), k.where(high, 32, 0)
        rank = k.where(high, rank - low, rank)
    place = k.const(0)
    for width in (16, 8, 4, 2, 1):
        below = k.popc(k.shr(w, place) & ((1 << width) - 1))
        goes = rank >= below
        rank, place = k.where(goes, rank - below, rank), k.where(goes, place + width, place)
    return base + place
