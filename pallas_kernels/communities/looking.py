"""How vertices choose a community: the weights to the communities of their neighbours, and the
best of them."""

from ..frontier import put_words

PARTS = 2  # a vertex is drawn once in so many turns, on average; a power of two
SLOTS = 256  # of the hash table of a warp
ROW = 192  # rows of at most so many edges use it
FULL = 6  # eighths of the CTA's table that may be filled
EMPTY = -1
# control words 40..43, a pair for even and one for odd turns: moves of short rows, of long rows
COUNTS = 40


class Looking:
    """Chooses moves; control words `word` and `word` + 1 count those of short and of long rows."""

    def __init__(self, k, m, n, table):
        """n: vertices; table: slots of the hash table of a CTA."""
        self.k, self.m, self.n, self.table = k, m, n, table
        self.keys, self.values = k.shared(table), k.shared(table)
        self.listed, self.best = k.shared(k.threads), k.shared(64)
        self.best_values = k.shared(32, "f32")
        self.factor = k.load(m.factor, 0, cache="nc")
        self.word = k.const(COUNTS)

    def put(self, array, word, values, mask):
        """Appends the values of lanes where `mask` holds; control word `word` counts them."""
        put_words(self.k, mask, (self.m.control, word), (array, 0), *values)

    def _drawn(self, v, turn):
        """Whether v may move in this turn, by a hash of both."""
        k = self.k
        x = v * 0x9E3779B1 + turn * 0x85EBCA6B
        x = (x ^ k.shr(x, 15)) * 0x2C1B3C6D
        return (k.shr(x ^ k.shr(x, 13), 7) & (PARTS - 1)) == 0

    def look(self, turn):
        """Finds the moves of vertices with rows up to ROW."""
        k, m = self.k, self.m
        mine = k.warp * 32

        def some(v):
            valid = (v < self.n) & self._drawn(v, turn)
            valid = valid & (k.load(m.due, v, mask=valid) != 0)

            def look():
                begin, end = k.row(m.indptr, v, valid)
                size = end - begin
                short = valid & (size <= ROW)
                k.store(m.due, v, 0, mask=short)
                self._by_lanes(v, short & (size <= 8), mine, 8)
                self._by_lanes(v, short & (size > 8) & (size <= 32), mine, 32)
                self._by_table(v, short & (size > 32), mine)

            k.if_(k.any(valid), look)

        k.spread_warps(self.n, some)

    def _list(self, v, mask, mine):
        """Lists the vertices where `mask` holds in shared memory; returns their number."""
        k = self.k
        vote = k.ballot(mask)
        k.sync_warp()
        k.store(self.listed, mine + k.lanes_below(vote), v, mask=mask)
        k.sync_warp()
        return k.popc(vote)

    def _by_lanes(self, v, mask, mine, lanes):
        """Rows of up to `lanes` edges, one edge a lane: each lane sums the weights of all lanes of
        its community."""
        k, m = self.k, self.m
        count = self._list(v, mask, mine)
        member = k.lane & (lanes - 1)
        first = k.lane - member

        def rows(i):
            at = i + k.shr(first, 3) if lanes == 8 else i
            valid = at < count
            u = k.load(self.listed, mine + at, mask=valid)
            begin, end = k.row(m.indptr, u, valid)
            e = begin + member
            edge = e < end
            head = k.load(m.indices, e, mask=edge, other=-1, cache="nc")
            edge = edge & (head != u)
            weight = k.load(m.weights, e, mask=edge, cache="nc")
            to = k.load(m.group, head, mask=edge, other=EMPTY)
            weight_of = k.const(0)
            for d in range(lanes):
                other, more = k.shfl(to, first + d), k.shfl(weight, first + d)
                weight_of = weight_of + k.where(other == to, more, 0)
            self._choose(u, valid, to, weight_of, lanes)

        k.for_(0, count, 32 // lanes, rows)

    def _by_table(self, v, mask, mine):
        """Rows of more edges: sums for each community in the hash table of the warp."""
        k, m = self.k, self.m
        count = self._list(v, mask, mine)
        first = k.warp * SLOTS

        def row(i):
            u = k.load(self.listed, mine + i)
            begin, end = k.row(m.indptr, u)
            for j in range(0, SLOTS, 32):
                k.store(self.keys, first + j + k.lane, EMPTY)
                k.store(self.values, first + j + k.lane, 0)
            k.sync_warp()
            k.for_(begin + k.lane, end, 32, lambda e: self._add(u, e, first, SLOTS - 1))
            k.sync_warp()
            own, pull = self._own(u)
            found = k.const(EMPTY), k.const(0.0, "f32"), k.const(0)

            def slots(j, *found):
                at = first + j + k.lane
                to, weight = k.load(self.keys, at), k.load(self.values, at)
                return self._better(found, to, weight, own, pull)

            found = k.for_(0, SLOTS, 32, slots, *found)
            k.sync_warp()
            self._settle(u, k.const(True, "i1"), found, own, pull, 32)

        k.for_(0, count, 1, row)

    def _add(self, u, e, first, last, share=None):
        """Adds edge e of u to the sum of the community of its head, in the table from `first`."""
        k, m = self.k, self.m
        head = k.load(m.indices, e, cache="nc")
        to = k.load(m.group, head)
        spot = to * 0x9E3779B1
        spot = spot ^ k.shr(spot, 15)
        mask = head != u
        if share is not None:
            mask = mask & share(spot)

        def put():
            weight = k.load(m.weights, e, cache="nc")

            def probe(at, going):
                key = k.atomic_cas(self.keys, first + at, EMPTY, to)
                found = (key == EMPTY) | (key == to)
                k.reduce("add", self.values, first + at, weight, mask=found)
                return (at + 1) & last, k.where(found, 0, 1)

            k.while_(lambda at, going: going != 0, probe, spot & last, 1)

        k.if_(mask, put)

    def _own(self, u, mask=None):
        """(community of u, (cost of a unit of a community's sum, strength of u))."""
        k, m = self.k, self.m
        strength = k.load(m.strength, u, mask=mask, cache="nc")
        return k.load(m.group, u, mask=mask), (self.factor * k.cast(strength, "f32"), strength)

    def _better(self, found, to, weight, own, pull):
        """`found` = (best community, its value, weight to the current one), updated by community
        `to`."""
        k = self.k
        best, most, inside = found
        other = (to >= 0) & (to != own)
        sums = k.load(self.m.sums, to, mask=other)
        value = k.cast(weight, "f32") - pull[0] * k.cast(sums, "f32")
        wins = other & ((best < 0) | (value > most) | ((value == most) & (to < best)))
        inside = k.where((to >= 0) & (to == own), weight, inside)
        return k.where(wins, to, best), k.where(wins, value, most), inside

    def _choose(self, u, valid, to, weight, lanes):
        """`_settle` where each lane has one community."""
        k = self.k
        own, pull = self._own(u, valid)
        nothing = k.const(EMPTY), k.const(0.0, "f32"), k.const(0)
        self._settle(u, valid, self._better(nothing, to, weight, own, pull), own, pull, lanes)

    def _over(self, found, lanes):
        """Combines `found` of groups of `lanes` lanes."""
        k = self.k
        best, most, inside = found
        d = lanes // 2
        while d:
            other, value = k.shfl_xor(best, d), k.shfl_xor(most, d)
            first = (value > most) | ((value == most) & (other < best))
            wins = (other >= 0) & ((best < 0) | first)
            best, most = k.where(wins, other, best), k.where(wins, value, most)
            inside = k.maximum(inside, k.shfl_xor(inside, d))
            d //= 2
        return best, most, inside

    def _settle(self, u, valid, found, own, pull, lanes):
        """Combines the lanes of u; its first lane lists the move, if it is one."""
        k, m = self.k, self.m
        best, most, inside = self._over(found, lanes)
        first = (k.lane & (lanes - 1)) == 0
        goes = self._goes(valid & first, (best, most, inside), own, pull)
        self.put(m.moved, self.word, (u, best), goes)

    def _goes(self, mask, found, own, pull):
        """Whether u moves: the best community is better than the current one."""
        k, m = self.k, self.m
        best, most, inside = found
        mask = mask & (best >= 0)
        rest = k.load(m.sums, own, mask=mask) - pull[1]
        stay = k.cast(inside, "f32") - pull[0] * k.cast(rest, "f32")
        lone = k.load(m.size, own, mask=mask) + k.load(m.size, best, mask=mask) == 2
        return mask & (most > stay) & ~(lone & (best > own))

    def look_long(self, turn, long):
        """`look` for longer rows, one CTA each."""
        k, m = self.k, self.m
        holds = self.table * FULL // 8

        def row(i):
            u = k.load(m.long, i, cache="fresh")
            valid = self._drawn(u, turn) & (k.load(m.due, u) != 0)
            k.if_(valid, lambda: self._by_cta(u, holds))

        k.sync()
        k.for_(k.cta, long, k.ctas, row)

    def _by_cta(self, u, holds):
        k, m, table = self.k, self.m, self.table
        begin, end = k.row(m.indptr, u)
        shares = (end - begin + (holds - 1)) // holds
        own, pull = self._own(u)

        def clear(j):
            k.store(self.keys, j, EMPTY)
            k.store(self.values, j, 0)

        def one_share(number, *found):
            def mine(spot):
                return (shares == 1) | (k.shr(spot, 8) % shares == number)

            def slots(j, *found):
                to, weight = k.load(self.keys, j + k.thread), k.load(self.values, j + k.thread)
                return self._better(found, to, weight, own, pull)

            k.sync()  # all threads have read `due` of u, or the slots of the share before
            k.for_(k.thread, table, k.threads, clear)
            k.sync()
            many = lambda e: self._add(u, e, 0, table - 1, mine)  # noqa: E731
            k.for_(begin + k.thread, end, k.threads, many)
            k.sync()
            return k.for_(0, table, k.threads, slots, *found)

        found = k.const(EMPTY), k.const(0.0, "f32"), k.const(0)
        found = k.for_(0, shares, 1, one_share, *found)
        found = self._over(found, 32)
        for j, x in enumerate((found[0], found[2])):
            k.store(self.best, j * 32 + k.warp, x, mask=k.lane == 0)
        k.store(self.best_values, k.warp, found[1], mask=k.lane == 0)
        k.sync()

        def settle():
            valid = k.lane < k.threads // 32
            best = k.load(self.best, k.lane, mask=valid, other=EMPTY)
            most = k.load(self.best_values, k.lane, mask=valid)
            inside = k.load(self.best, 32 + k.lane, mask=valid)
            found = self._over((best, most, inside), 32)
            goes = self._goes(k.lane == 0, found, own, pull)
            self.put(m.moved_long, self.word + 1, (u, found[0]), goes)
            k.store(m.due, u, 0, mask=k.lane == 0)

        k.if_(k.warp == 0, settle)
        k.sync()
