"""Edges of `rounds.py`: who waits is listed in pieces of rows, the pieces are dealt and relaxed.

Every device has labels of the places of all: of its own the true ones, of the others the least that
it has sent. An edge gathers that of its head, whoever has it, and lowers it by an atomic minimum;
where the head is of another device, its label there too, over the link, by an atomic that gives
nothing back. So a length travels when it falls here, and nothing is packed, listed or opened.
"""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

import functools
import operator

from ...rows.flatten import flatten

INFINITY = 0x7F800000  # the bits of inf
SPAN = 128  # edges of a piece at most
UNROLL = 4  # strides of 32 edges in flight
SHARE = 128  # places that share a flag: a vector of four for each lane
GROUP = 4  # lanes with neighbouring vectors: their loads take whole sectors
TAKEN_AT_ONCE = 8  # pieces that a warp takes at most from those that are left
PIECES, TAKEN, EDGES = 0, 1, 2  # words of a group of control words


def capacity(places, entries):
    """Pieces that the rows of so many places and entries make at most."""
    return places + entries // SPAN


class Flags:
    """Whose places may wait for the next round: the turn of that round, in two halves by turns.

    A half has the flags of all devices: own ones, which the others raise too, and for those of the
    others what this device has told them. They are read in the turn that they name alone, raised in
    the turn before, and a meeting lies between: nothing is taken down. Places come heaviest first,
    so those that share a flag lie apart: group j of GROUP vectors of four has flag j mod `each`.
    """

    def __init__(self, k, m, places):
        self.k, self.m, self.places = k, m, places
        self.each = -(-places // SHARE)  # of a device

    @staticmethod
    def words(places, devices):
        return 2 * devices * -(-places // SHARE)

    def clear(self, source, known):
        """None but that of the source, for turn 2; a meeting must follow."""
        k = self.k
        word = k.where(known, self._at(2, source), -1)

        def one(j):
            k.store(self.m.waiting, j, k.where(j == word, 2, 0))

        k.spread(2 * k.devices * self.each, one)

    def _half(self, turn):
        return (self.k.const(turn) & 1) * (self.k.devices * self.each)

    def _at(self, turn, v):
        """Where the flag of place v of all lies."""
        device = v // self.places
        group = (v - device * self.places) // (4 * GROUP)
        return self._half(turn) + device * self.each + group % self.each

    def place(self, flag):
        """The first of the lane's four places of those that share a flag of this device, perhaps
        beyond its last."""
        lane = self.k.lane
        return 4 * ((flag + self.each * (lane // GROUP)) * GROUP + lane % GROUP)

    def up(self, turn, flag, mask):
        """Whether a flag of this device is raised for this turn."""
        at = self._half(turn) + self.k.device * self.each + flag
        return mask & (self.k.load(self.m.waiting, at, mask=mask, cache="fresh") == turn)

    def keep(self, turn, flag, mask):
        """Raises a flag of this device for the next turn."""
        at = self._half(turn + 1) + self.k.device * self.each + flag
        self.k.store(self.m.waiting, at, turn + 1, mask=mask)

    def tell(self, turn, v, length, mask):
        """Raises the flags of places whose labels fell in `turn`, and sends those of others."""
        k, waiting = self.k, self.m.waiting
        device, at = k.where(mask, v // self.places, k.device), self._at(turn + 1, v)
        far = mask & (device != k.device)
        k.reduce("min", k.on(self.m.labels, device), v, length, mask=far)
        new = mask & (k.load(waiting, at, mask=mask, cache="fresh") != turn + 1)
        k.store(waiting, at, turn + 1, mask=new)
        k.store(k.on(waiting, device), at, turn + 1, mask=new & far)


class Relaxing:
    """The two halves of a round, a grid barrier between them."""

    def __init__(self, k, m, places, flags):
        self.k, self.m, self.places, self.flags = k, m, places, flags
        self.everyone = places * k.devices
        self.labels = k.on(m.labels, k.device)  # with atomics that other devices' meet
        self.warps = (k.warp * k.ctas + k.cta, k.ctas * k.threads // 32)

    def queue(self, turn, slot, bound):
        """Lists the edges of all that wait up to the bound; the lane's least of other labels."""
        k = self.k
        worker, workers = self.warps

        def stretch(first, low, edges):
            f = first + k.lane * workers
            up = self.flags.up(turn, f, f < self.flags.each)

            def one(left, low, edges):
                flag = k.shfl(f, k.ctz(left))
                return left & (left - 1), *self._shared(turn, slot, bound, flag, low, edges)

            going = lambda left, low, edges: left != 0  # noqa: E731
            return k.while_(going, one, k.ballot(up), low, edges)[1:]

        start = k.const(INFINITY), k.const(0)
        low, edges = k.for_(worker, self.flags.each, 32 * workers, stretch, *start)
        edges = k.warp_sum(edges)
        k.reduce("add", self.m.control, slot + EDGES, edges, mask=(k.lane == 0) & (edges > 0))
        return low

    def _shared(self, turn, slot, bound, flag, low, edges):
        """Those of the places that share a flag; edges: how many the lane has listed."""
        k, m = self.k, self.m
        i = self.flags.place(flag)
        valid, own = i < self.places, k.device * self.places
        labels = k.load_vec(m.labels, own + i, 4, mask=valid, other=INFINITY, cache="fresh")
        done = k.load_vec(m.done, i, 4, mask=valid, other=INFINITY, cache="fresh")
        waits = [label < d for label, d in zip(labels, done, strict=True)]
        active = [w & (label <= bound) for w, label in zip(waits, labels, strict=True)]
        some, stays = k.const(False, "i1"), k.const(False, "i1")
        for label, w, a in zip(labels, waits, active, strict=True):
            low = k.where(w & ~a, k.minimum(low, label), low)
            some, stays = some | a, stays | (w & ~a)
        self.flags.keep(turn, flag, (k.lane == 0) & k.any(stays))

        def take():
            now = [k.where(a, x, d) for a, x, d in zip(active, labels, done, strict=True)]
            k.store_vec(m.done, i, now, mask=some)
            starts = k.load_vec(m.indptr, i, 4, mask=some, cache="nc")
            ends = *starts[1:], k.load(m.indptr, i + 4, mask=some, cache="nc")
            rows = zip(active, starts, ends, strict=True)
            sizes = [k.where(a, end - start, 0) for a, start, end in rows]
            parts = [(size + (SPAN - 1)) // SPAN for size in sizes]
            mine = functools.reduce(operator.add, parts)
            upto, total = k.warp_scan(mine)
            base = k.atomic("add", m.control, slot + PIECES, total, mask=k.lane == 0)
            at = k.shfl(base, 0) + upto - mine
            for count, *row in zip(parts, starts, ends, labels, strict=True):
                flatten(k, at, count, (at, *row), self._piece, unroll=1)
                at = at + count
            return functools.reduce(operator.add, sizes, edges)

        return low, k.if_(k.any(some), take, edges)[0]

    def _piece(self, places, payloads, valid):
        (at,), ((first, start, end, label),), (valid,) = places, payloads, valid
        begin = start + (at - first) * SPAN
        piece = begin, self.k.minimum(begin + SPAN, end), label, 0
        self.k.store_vec(self.m.queue, at * 4, piece, mask=valid)

    def relax(self, turn, slot, pieces, low):
        """Relaxes the edges that are listed; the least of low and what the lane lowered.

        The first pieces are dealt, the others taken by who is done with its own.
        """
        k, m = self.k, self.m
        worker, workers = self.warps
        each = k.minimum((pieces + (workers - 1)) // workers, TAKEN_AT_ONCE)
        dealt = each * workers
        first = (k.lane == 0) & (pieces > dealt)

        def edges(places, payloads, valid, low):
            return self._edges(turn, places, [label for (label,) in payloads], valid, low)

        def some(at, low):
            after = k.atomic("add", m.control, slot + TAKEN, each, mask=first)
            i = at + k.lane
            valid = (k.lane < each) & (i < pieces)
            start, end, label, _ = k.load_vec(m.queue, i * 4, 4, mask=valid, cache="fresh")
            size = k.where(valid, end - start, 0)
            low = flatten(k, start, size, (label,), edges, low, unroll=UNROLL)[0]
            return dealt + k.shfl(after, 0), low

        def going(at, low):
            return at < pieces

        return k.while_(going, some, worker * each, low)[1]

    def _edges(self, turn, places, labels, valid, low):
        k, m = self.k, self.m
        heads = k.loads(m.indices, places, valid, other=self.everyone, cache="nc")
        weights = k.loads(m.weights, places, valid, cache="nc")
        new = [
            k.bits(k.bits(label, "f32") + weight, "i32")
            for label, weight in zip(labels, weights, strict=True)
        ]
        valid = [t & k.below(v, self.everyone) for v, t in zip(heads, valid, strict=True)]
        # what L1 has is at worst too great
        old = k.loads(m.labels, heads, valid, other=-1)
        less = [t & (x < o) for t, x, o in zip(valid, new, old, strict=True)]
        old = k.atomics("min", self.labels, heads, new, less)
        won = [t & (x < o) for t, x, o in zip(less, new, old, strict=True)]
        for v, x, w in zip(heads, new, won, strict=True):
            low = k.where(w, k.minimum(low, x), low)
            k.if_(w, lambda v=v, x=x, w=w: self.flags.tell(turn, v, x, w))
        return low
