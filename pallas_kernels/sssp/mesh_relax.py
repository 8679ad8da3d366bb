"""One round of `mesh.py`: lists the rows of the active places in pieces, then relaxes the pieces.

A place is pending if its label fell since its edges were last relaxed, and active if its label also
lies within the bound of the round. Every device has a label for the places of all devices: the true
ones of its own places, and of the others the least that it has sent. An edge reads this local label
of its head and lowers it by an atomic minimum. If the head belongs to another device and the label
fell, the label there is lowered too, by an atomic over the link that returns nothing. So labels are
sent one by one as they fall: there are no message buffers.
"""

import functools

from ..frontier import take_shares
from ..rows.flatten import flatten
from ..simt.typed import Several, one_by_one

INFINITY = 0x7F800000  # the bits of inf
SPAN = 128  # edges of a piece at most
UNROLL = 4  # strides of 32 edges in flight
SHARE = 128  # places that share a flag: a vector of four for each lane
GROUP = 4  # lanes with neighbouring vectors: their loads take whole sectors
MAX_TAKEN = 8  # pieces that a warp takes at most in one step
# words of a group of control words: pieces listed, pieces taken beyond the first share of each
# warp, edges listed (in `mesh.py` a word more: LOW)
PIECES, TAKEN, EDGES = 0, 1, 2


def capacity(places, entries):
    """Pieces that the rows of so many places and entries make at most."""
    return places + entries // SPAN


class Flags:
    """Flags of groups of places: the number (`turn`) of the round in which a place of the group may
    be active. They lie in `m.waiting`, in two halves for even and odd turns.

    A half has flags for the places of all devices. Other devices raise those of this device's
    places directly; those of other devices' places remember what this device has raised there. A
    flag is raised in the turn before the one that it names and read only in that turn, with a
    device barrier between, so flags are never cleared. Places are sorted by falling degree, and
    those of one flag are spread out: group j of GROUP vectors of four places has flag j mod `each`.
    """

    def __init__(self, k, m, places):
        self.k, self.m, self.places = k, m, places
        self.each = -(-places // SHARE)  # flags of a device

    @staticmethod
    def words(places, devices):
        return 2 * devices * -(-places // SHARE)

    def clear(self, source, known):
        """Clears all flags, raises that of the source for turn 2; a device barrier must follow."""
        k = self.k
        word = k.where(known, self._at(2, source), -1)

        def one(j):
            k.store(self.m.waiting, j, k.where(j == word, 2, 0))

        k.spread(2 * k.devices * self.each, one)

    def _half(self, turn):
        return (self.k.const(turn) & 1) * (self.k.devices * self.each)

    def _at(self, turn, v):
        """Index of the flag of place v, numbered over all devices."""
        device = v // self.places
        group = (v - device * self.places) // (4 * GROUP)
        return self._half(turn) + device * self.each + group % self.each

    def place(self, flag):
        """The first of this lane's four places under a flag of this device; it may lie beyond the
        last place."""
        lane = self.k.lane
        return 4 * ((flag + self.each * (lane // GROUP)) * GROUP + lane % GROUP)

    def up(self, turn, flag, mask):
        """Whether a flag of this device is raised for `turn`."""
        at = self._half(turn) + self.k.device * self.each + flag
        return mask & (self.k.load(self.m.waiting, at, mask=mask, cache="fresh") == turn)

    def raise_next(self, turn, flag, mask):
        """Raises a flag of this device for turn + 1."""
        at = self._half(turn + 1) + self.k.device * self.each + flag
        self.k.store(self.m.waiting, at, turn + 1, mask=mask)

    def publish(self, turn, v, length, mask):
        """Raises the flags for turn + 1 of places v whose labels fell to `length` in `turn`, and
        does so, with the label, on the device that owns them."""
        k, waiting = self.k, self.m.waiting
        device, at = k.where(mask, v // self.places, k.device), self._at(turn + 1, v)
        remote = mask & (device != k.device)
        k.reduce("min", k.on(self.m.labels, device), v, length, mask=remote)
        new = mask & (k.load(waiting, at, mask=mask, cache="fresh") != turn + 1)
        k.store(waiting, at, turn + 1, mask=new)
        k.store(k.on(waiting, device), at, turn + 1, mask=new & remote)


class Relaxing:
    """The two halves of a round, `queue` and `relax`, with a grid barrier between them."""

    def __init__(self, k, m, places, flags):
        self.k, self.m, self.places, self.flags = k, m, places, flags
        self.all_places = places * k.devices
        self.labels = k.on(m.labels, k.device)  # atomics on it have the scope of the system

    def queue(self, turn, slot, bound):
        """Lists the rows of the active places: pending, with a label up to the bound.

        Returns the least label beyond the bound that this lane saw. Adds to control words
        slot + PIECES and slot + EDGES.
        """
        k = self.k
        worker, workers = k.warps

        def stretch(first, low, edges):
            f = first + k.lane * workers
            up = self.flags.up(turn, f, f < self.flags.each)

            def one(lane, low, edges):
                return self._flag(turn, slot, bound, k.shfl(f, lane), low, edges)

            return k.each_bit(k.ballot(up), one, low, edges)

        start = k.const(INFINITY), k.const(0)
        low, edges = k.for_(worker, self.flags.each, 32 * workers, stretch, *start)
        k.add_sum(self.m.control, slot + EDGES, edges)
        return low

    def _flag(self, turn, slot, bound, flag, low, edges):
        """Lists the active places under one flag; edges: how many this lane has listed so far."""
        k, m = self.k, self.m
        i = self.flags.place(flag)
        valid, own, no = i < self.places, k.device * self.places, k.const(False, "i1")
        labels, done = (
            Several(k.load_vec(a, at, 4, mask=valid, other=INFINITY, cache="fresh"))
            for a, at in ((m.labels, own + i), (m.done, i))
        )
        pending = labels < done
        active = pending & (labels <= bound)
        left = pending & ~active
        for label, mask in one_by_one(labels, left):
            low = k.where(mask, k.minimum(low, label), low)
        some, stays = k.union((no, *active)), k.union((no, *left))
        self.flags.raise_next(turn, flag, (k.lane == 0) & k.any(stays))

        def list_rows():
            k.store_vec(m.done, i, list(k.where(active, labels, done)), mask=some)
            starts = Several(k.load_vec(m.indptr, i, 4, mask=some, cache="nc"))
            ends = Several((*starts[1:], k.load(m.indptr, i + 4, mask=some, cache="nc")))
            sizes = k.where(active, ends - starts, 0)
            parts = (sizes + (SPAN - 1)) // SPAN
            mine = sum(parts)
            upto, total = k.warp_scan(mine)
            at = k.reserve(m.control, slot + PIECES, total) + upto - mine
            for count, *row in one_by_one(parts, starts, ends, labels):
                flatten(k, at, count, (at, *row), self._piece, unroll=1)
                at = at + count
            return sum(sizes, edges)

        return low, k.if_(k.any(some), list_rows, edges)[0]

    def _piece(self, at, valid, first, start, end, label):
        begin = start + (at - first) * SPAN
        piece = begin, self.k.minimum(begin + SPAN, end), label, 0
        self.k.store_vec(self.m.queue, at * 4, piece, mask=valid)

    def relax(self, turn, slot, pieces, low):
        """Relaxes the listed pieces; returns the minimum of `low` and of the labels lowered
        here."""
        k, m = self.k, self.m
        edges = functools.partial(self._edges, turn)

        def some(i, valid, low):
            start, end, label, _ = k.load_vec(m.queue, i * 4, 4, mask=valid, cache="fresh")
            size = k.where(valid, end - start, 0)
            return flatten(k, start, size, (label,), edges, low, unroll=UNROLL)

        taken = m.control, slot + TAKEN
        return take_shares(k, pieces, MAX_TAKEN, k.warps, taken, some, low)[0]

    def _edges(self, turn, places, valid, labels, low):
        k, m = self.k, self.m
        heads = k.load(m.indices, places, mask=valid, other=self.all_places, cache="nc")
        weights = k.load(m.weights, places, mask=valid, cache="nc")
        new = k.bits(k.bits(labels, "f32") + weights, "i32")
        valid = valid & k.below(heads, self.all_places)
        # this load may be served by L1: an old label is at worst too great
        less = valid & (new < k.load(m.labels, heads, mask=valid, other=-1))
        won = less & (new < k.atomic("min", self.labels, heads, new, mask=less))
        for v, x, w in one_by_one(heads, new, won):
            low = k.where(w, k.minimum(low, x), low)
            k.if_(w, lambda v=v, x=x, w=w: self.flags.publish(turn, v, x, w))
        return low
