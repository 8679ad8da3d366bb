"""Boruvka's rounds over a list of edges: what the launch of `forest.py` does twice.

In a round each tree finds the least edge that leaves it, by an atomic minimum of 64 bits, and
becomes a child of the tree at the other endpoint; edges within a tree leave the list.
"""

from typing import Any, NamedTuple

from ..components.one_gpu import most_frequent, roots
from ..frontier import put
from ..simt.typed import Several, one_by_one

UNROLL = 2  # edges of a list that a thread has in flight
NOTHING = 2**31 - 1, -1  # key and slot behind all others
LISTED = 40  # control words 40, 41: edges in the list of even and of odd turns


class Sizes(NamedTuple):
    """n: vertices. nse: entries. capacity: edges of a list. words: of the bits of the result.
    share: of the slots that are light. light: whether these are listed first. dense: whether the
    largest tree does not choose an edge.
    """

    n: int
    nse: int
    capacity: int
    words: int
    share: float
    light: bool
    dense: bool


class Rounds:
    """A forest, as the parent of each vertex, and the list of edges between its trees."""

    def __init__(self, k: Any, m: Any, c: Sizes):
        self.k, self.m, self.c = k, m, c
        self.bound = k.shared(8)

    def grid_barrier(self, turn):
        """A grid barrier; returns (ok, number of edges in the list of this turn)."""
        control = self.m.control
        return self.k.grid_barrier(control, [(control, LISTED + (self.k.const(turn) & 1))])

    def reset_least(self):
        """Resets the least edge of all trees to none."""
        k, m, c = self.k, self.m, self.c
        key, slot = NOTHING
        k.spread(2 * c.n, lambda i: k.store_pair(m.best, 2 * i, slot, key))

    def append(self, turn, edges, masks):
        """Appends edges (root, root, key, slot) to the list of this turn, counted by LISTED."""
        k, m, c, half = self.k, self.m, self.c, self.k.const(turn) & 1

        def store(place, *rest):
            *edge, mask = rest
            at = (half * c.capacity + place) * 4
            k.store_vec(m.work, at, edge, mask=mask & (place < c.capacity))

        put(k, masks, (m.control, LISTED + half), store, *edges)

    def largest(self):
        """The most frequent root of 32 vertices, the same in all CTAs: trees do not change."""
        k, c = self.k, self.c

        def sample():
            root = roots(k, self.m.parent, k.lane * max(c.n // 32, 1) % c.n, k.lane >= 0)
            k.store(self.bound, 2, most_frequent(k, root), mask=k.lane == 0)

        k.if_(k.warp == 0, sample)
        k.sync()
        return k.load(self.bound, 2)

    # ---- Rounds ----

    def compress(self):
        """The parent of every vertex becomes its root."""
        k = self.k

        def one(v):
            roots(k, self.m.parent, v, v < self.c.n)

        k.spread(self.c.n, one)

    def _over(self, turn, count, f):
        """f(edges, masks) for the list of this turn, all lanes present."""
        k, m, c = self.k, self.m, self.c
        first = k.warps[0] * 32 * UNROLL

        def some(e0):
            places = k.several(UNROLL, lambda u: e0 + 32 * u + k.lane)
            at = ((turn & 1) * c.capacity + places) * 4
            f(k.load_vec(m.work, at, 4, mask=places < count, cache="fresh"), places < count)

        k.for_(first, count, k.ctas * k.threads * UNROLL, some)

    def run_rounds(self, ok, turn, count):
        """Rounds until no edge of the list, of length count, joins two trees; gives (ok, turn)."""
        k = self.k

        def round_(ok, turn, count):
            skip = self.largest() if self.c.dense else k.const(-1)
            self._find_least(turn, count, skip)
            ok, more = self.grid_barrier(turn + 1)
            self._link(turn + 1, more, skip)
            ok, _ = self.grid_barrier(turn)
            return ok, turn + 1, more

        going = lambda ok, turn, count: (ok != 0) & (count != 0)  # noqa: E731
        return k.while_(going, round_, ok, turn, count)[:2]

    def _find_least(self, turn, count, skip):
        """Lists the edges between trees for the next turn; `best` gets the least of each tree."""
        k = self.k

        def some(edges, masks):
            found = roots(k, self.m.parent, _ends(*edges[:2]), _ends(masks, masks))
            u, v = Several(found[::2]), Several(found[1::2])
            live, (key, slot) = u != v, edges[2:]
            self.append(turn + 1, (u, v, key, slot), live)
            at, valid = self._best(turn, found), _ends(live, live) & (found != skip)
            key, slot = _ends(key, key), _ends(slot, slot)
            low, high = k.load_pair(self.m.best, at, valid, acquire=False)
            better = valid & before(k, (key, slot), (high, low))
            k.least_pair(self.m.best, at, slot, key, mask=better)

        self._over(turn, count, some)

    def _best(self, turn, root):
        return ((turn & 1) * self.c.n + root) * 2

    def _link(self, turn, count, skip):
        """Makes each tree a child at the other end of its least edge: of two, the larger root.

        turn: one after that of `_find_least`. The entries of `best` for the next round are reset.
        """
        k, m = self.k, self.m
        next_list = LISTED + ((turn + 1) & 1)
        k.store(m.control, next_list, 0, mask=(k.cta == 0) & (k.thread == 0))

        def some(edges, masks):
            root, t = _ends(*edges[:2]), _ends(masks, masks)
            key, slot = (_ends(x, x) for x in edges[2:])
            low, high = k.load_pair(m.best, self._best(turn + 1, root), t, acquire=False)
            mine = t & (root != skip) & (low == slot) & (high == key)
            each = one_by_one(*edges, Several(mine[::2]), Several(mine[1::2]))
            for u, v, _, slot, first, second in each:
                k.reduce("or", m.taken, k.shr(slot, 5), k.bit(slot), mask=first | second)
                stays = first & second
                k.store(m.parent, u, v, mask=first & ~(stays & (u < v)))
                k.store(m.parent, v, u, mask=second & ~(stays & (v < u)))
            k.store_pair(m.best, self._best(turn, root), *NOTHING[::-1], mask=t)

        self._over(turn, count, some)


def _ends(tails, heads):
    """Tail and head of the first of several edges, of the second, ..."""
    return Several(v for pair in one_by_one(tails, heads) for v in pair)


def before(k, edge, other):
    """Whether (key, slot) comes before another; slots count as unsigned."""
    (key, slot), (key_, slot_) = edge, other
    return (key < key_) | ((key == key_) & k.below(slot, slot_))
