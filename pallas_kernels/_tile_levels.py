"""The three level kernels of `tile_bfs.py`, and the remainder that takes part in each of them.

`g.front` holds three bitmaps of W words that take turns: the frontier, the next one, and the one
before, which is cleared meanwhile. `g.visited` is one bitmap: a level reads the frontier from its
own bitmap, so bits that the level itself sets in `visited` change nothing but save work.
"""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

from pallas_kernels._flatten import flatten

UNROLL = 4
SPLIT = 256  # tiles from which a line of tiles is shared by the warps of a program
LISTED = 1024  # such lines a program has room for


class Level:
    """One level: `k` the primitives, `c` the constants, `g` the arrays, all threads together."""

    def __init__(self, k, c, g, level, cur, nxt):
        self.k, self.c, self.g, self.level = k, c, g, level
        self.cur, self.nxt = cur * c.words, nxt * c.words
        self.worker, self.workers = k.warp * k.programs + k.program, k.programs * k.threads // 32

    def claim(self, tile, word, mask):
        """Marks the bits of `word` (one value for each word of a line) in a tile as visited."""
        k, g = self.k, self.g
        for q, w in enumerate(word):
            at = tile * self.c.each + q
            there = mask & (w != 0)
            seen = k.load(g.visited, at, mask=there, other=-1, cache="fresh")
            new = w & ~seen
            won = new & ~k.atomic("or", g.visited, at, new, mask=there & (new != 0))
            k.reduce("or", g.front, self.nxt + at, won, mask=won != 0)
            k.reduce("add", g.sums, 0, k.popc(won), mask=won != 0)

    def own_tiles(self, f):
        """f(tile, there) for tiles that lie far apart, so that a dense stretch meets all warps."""
        k, c = self.k, self.c

        def chunk(i0):
            tile = (i0 + k.lane) * self.workers + self.worker
            f(tile, tile < c.tiles)

        k.for_(0, -(-c.tiles // self.workers), 32, chunk)

    def frontier(self, expand):
        """Writes the levels of the frontier, pushes its remainder, and its tiles if `expand`."""
        k, c, g = self.k, self.c, self.g

        def some(tile, there):
            word = k.load_vec(g.front, self.cur + tile * c.each, c.each, mask=there, cache="fresh")
            alive = there & (_any(word) != 0)
            start = k.load(g.out_ptr, tile, mask=alive & expand, cache="nc")
            size = k.load(g.out_ptr, tile + 1, mask=alive & expand, cache="nc") - start

            def one(left):
                lane = k.ctz(left)
                self.one_tile(*(k.shfl(x, lane) for x in (tile, start, size, *word)))
                return left & (left - 1)

            k.while_(lambda left: left != 0, one, k.ballot(alive))

        self.own_tiles(some)

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
        start = k.load(g.rest_ptr, vertex, mask=mine, cache="nc")
        end = k.load(g.rest_ptr, vertex + 1, mask=mine, cache="nc")

        def edges(places, payloads, there):
            del payloads
            for p, t in zip(places, there, strict=True):
                v = k.load(g.rest_minor, p, mask=t, cache="nc")
                self.claim_vertex(v, t & k.below(v, self.c.n))

        flatten(k, start, k.where(mine, end - start, 0), (), edges)

    def claim_vertex(self, v, mask):
        k, g = self.k, self.g
        at = k.shr(v, 5)
        new = mask & (k.load(g.visited, at, mask=mask, other=-1, cache="fresh") & k.bit(v) == 0)
        won = new & (k.atomic("or", g.visited, at, k.bit(v), mask=new) & k.bit(v) == 0)
        k.reduce("or", g.front, self.nxt + at, k.bit(v), mask=won)
        k.reduce("add", g.sums, 0, 1, mask=won)

    def push_csc(self, start, size, word):
        """Vector-driven: each vertex of a frontier tile with each tile of its row."""
        k, c, g = self.k, self.c, self.g
        count = sum((k.popc(w) for w in word[1:]), k.popc(word[0]))
        each = k.maximum(size, 1)

        def pairs(j0):
            for u in range(UNROLL):
                j = j0 + 32 * u + k.lane
                there = j < count * size
                tile = start + j % each
                line = tile * c.nt + _select(k, word, j // each)
                targets = k.load_vec(g.out_words, line * c.each, c.each, mask=there, cache="nc")
                minor = k.load(g.out_minor, tile, mask=there, cache="nc")
                self.claim(minor, targets, there)

        k.for_(0, count * size, 32 * UNROLL, pairs)

    def unvisited(self, scan):
        """scan(tile, start, end, missing) for every tile with unvisited vertices, a warp each."""
        k, c, g = self.k, self.c, self.g
        k.store(g.listed, LISTED, 0, mask=k.thread == 0)
        k.sync()

        def one(tile):
            missing = self.missing(tile)

            def some():
                start = k.load(g.in_ptr, tile, cache="nc")
                end = k.load(g.in_ptr, tile + 1, cache="nc")
                at = k.atomic("add", g.listed, LISTED, 1,
                              mask=(k.lane == 0) & (end - start > SPLIT))  # fmt: skip
                later = (end - start > SPLIT) & (k.shfl(at, 0) < LISTED)
                k.store(g.listed, at, tile, mask=later & (k.lane == 0))
                k.if_(~later, lambda: scan(tile, start, end, missing))

            k.if_(_any(missing) != 0, some)

        k.for_(self.worker, c.tiles, self.workers, one)
        k.sync()

        def long(i):
            tile = k.load(g.listed, i)
            end = k.load(g.in_ptr, tile + 1, cache="nc")

            def part(t0):
                scan(tile, t0, k.minimum(t0 + 32, end), self.missing(tile))

            first = k.load(g.in_ptr, tile, cache="nc") + k.warp * 32
            k.for_(first, end, k.threads, part)

        k.for_(0, k.minimum(k.load(g.listed, LISTED), LISTED), 1, long)
        k.sync()

    def missing(self, tile):
        """The unvisited vertices of a tile, as words."""
        k, c, g = self.k, self.c, self.g
        seen = k.load_vec(g.visited, tile * c.each, c.each, cache="fresh")
        left = [k.minimum(k.maximum(c.n - tile * c.nt - 32 * q, 0), 32) for q in range(c.each)]
        inside = [k.where(m == 32, -1, (k.const(1) << (m & 31)) - 1) for m in left]
        # one lane's view for all: other warps set bits meanwhile
        return [k.shfl(~s & i, 0) for s, i in zip(seen, inside, strict=True)]

    def sources(self, t0, end):
        """(words of the frontier in the tiles of the lanes, ballot of those not empty)."""
        k, c, g = self.k, self.c, self.g
        t = t0 + k.lane
        minor = k.load(g.in_minor, t, mask=t < end, cache="nc")
        word = k.load_vec(g.front, self.cur + minor * c.each, c.each, mask=t < end, cache="fresh")
        return word, k.ballot((t < end) & (_any(word) != 0))

    def push_csr(self, tile, start, end, missing):
        """Matrix-driven: whole tiles against their frontier words, a lane a line; empty skipped."""
        k, c, g = self.k, self.c, self.g

        def chunk(t0, *hits):
            word, left = self.sources(t0, end)

            def some(left, *hits):
                hits = list(hits)
                for _ in range(UNROLL):
                    lane, there = k.ctz(left) & 31, left != 0
                    front = [k.shfl(w, lane) for w in word]
                    for q in range(c.each):
                        line = (t0 + lane) * c.nt + 32 * q + k.lane
                        bits = k.load_vec(g.in_words, line * c.each, c.each, mask=there,
                                          cache="nc")  # fmt: skip
                        for b, f in zip(bits, front, strict=True):
                            hits[q] = hits[q] | (b & f)
                    left = left & (left - 1)
                return (left, *hits)

            return k.while_(lambda left, *hits: left != 0, some, left, *hits)[1:]

        hits = k.for_(start, end, 32, chunk, *[0] * c.each)
        found = [k.ballot(h != 0) & m for h, m in zip(hits, missing, strict=True)]
        self.claim(tile, found, k.lane == 0)

    def pull_csc(self, tile, start, end, missing):
        """Unvisited-driven: each missing vertex looks along its tiles up to the first hit."""
        k, c, g = self.k, self.c, self.g

        def chunk(state):
            t0, *missing = state
            word, live = self.sources(t0, end)
            mine = k.shr(live, k.lane) & 1 != 0
            found = [k.const(0)] * c.each
            for q in range(c.each):

                def some(left, found, q=q):
                    for _ in range(UNROLL):
                        bit, there = k.ctz(left) & 31, (left != 0) & mine
                        line = (t0 + k.lane) * c.nt + 32 * q + bit
                        bits = k.load_vec(g.in_words, line * c.each, c.each, mask=there,
                                          cache="nc")  # fmt: skip
                        hit = _any([b & f for b, f in zip(bits, word, strict=True)]) != 0
                        found = k.where(k.any(there & hit), found | k.bit(bit), found)
                        left = left & (left - 1)
                    return left, found

                seek = k.where(live != 0, missing[q], 0)
                found[q] = k.while_(lambda left, found: left != 0, some, seek, found[q])[1]
            self.claim(tile, found, k.lane == 0)
            return t0 + 32, *[m & ~f for m, f in zip(missing, found, strict=True)]

        k.while_(lambda t0, *missing: (t0 < end) & (_any(missing) != 0),
                 lambda *state: chunk(state), start, *missing)  # fmt: skip


def _any(words):
    """The OR of the words of a line."""
    total = words[0]
    for w in words[1:]:
        total = total | w
    return total


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
