"""The places of all devices: which are visited, where the rows of each end, their levels."""

import functools
from typing import Any

from ...simt.typed import one_by_one
from ..bottom_up import Copies

FAR = 2**31 - 1  # the level of a vertex that is not reached
UNROLL = 4  # groups of four levels whose loads a thread has in flight together
BYTE = 255  # FAR in a byte; levels of a search of fewer levels are sent as bytes
# A group of control words, of which 4 rotate: (ranges of the next queue, places claimed here, their
# edges, messages sent, received places claimed). Group g begins at c.slots + GROUP * g, and behind
# the groups there are: end of the rows; sum of squared degrees; greatest level + 1; messages sent
# to each device.
GROUP = 8
LINKED, SQUARED, DEEPEST, SENT_TO = range(4 * GROUP, 4 * GROUP + 4)


class OnMesh(Copies):
    """Two copies of the visited bits of all places, on every device, for a pull level.

    A device computes the words of its own places and stores them on all devices. `here` and `there`
    are the offsets of the copy that is read and of the copy that is written; `far` is the offset of
    this device's words in a copy.
    """

    def __init__(self, k, c: Any, m, half):
        super().__init__(k, c, m, half)
        self.levels, all_words = m.levels, c.all_places // 32
        self.ends, self.far = c.all_places, k.device * (all_words // k.devices)
        self.here, self.there = (h * all_words for h in (half, half ^ 1))

    def old(self, w, mask):
        return self.k.load(self.bits, self.here + self.far + w, mask=mask)

    def put(self, w, word, mask):
        at = self.there + self.far + w
        changed = self.k.load(self.bits, at, mask=mask, other=0, cache="fresh") != word
        self.everywhere(at, word, mask & changed)

    def of_levels(self, w0):
        """Word w0 + lane of this device, one a lane: bits of the places that have a level."""
        k, m, lane = self.k, self.levels, self.k.lane
        places = [w0 * 32 + 128 * j + 4 * lane for j in range(8)]
        levels = [k.load_vec(m, v, 4, mask=v < self.c.n, other=FAR, cache="fresh") for v in places]
        mine = k.const(0)
        for j, four in enumerate(levels):
            bits = [k.where(level == FAR, 0, 1 << i) for i, level in enumerate(four)]
            word = k.union(bits) << ((lane & 7) * 4)
            for d in (1, 2, 4):  # each of eight lanes has four bits of a word
                word = word | k.shfl_xor(word, d)
            mine = k.where(k.shr(lane, 2) == j, k.shfl(word, (lane & 3) * 8), mine)
        return mine

    def everywhere(self, at, word, mask):
        """Stores a word in the copies of all devices."""
        for d in range(self.k.devices):
            self.k.store(self.k.on(self.bits, d), at, word, mask=mask)


class LastRows:
    """`ends[d]` of each device d, a multiple of 32, where scans stop: its rows from there on are
    empty.

    Rows are sorted by falling length. In a symmetric graph the vertices of empty rows have no edge
    at all: half of the vertices of R-MAT graphs. Any other order of the rows gives right results
    too, and saves less.
    """

    def __init__(self, k, c, m):
        self.k, self.c, self.m = k, c, m
        self.ends = k.shared(k.devices)

    def find(self, source, word):
        """Called by one warp: adds the end of this device to a control word, which is 0 before. The
        end lies after place `source`, if that is not negative."""
        k, c, indptr = self.k, self.c, self.m.indptr
        if not c.symmetric:  # a vertex of an empty row may have edges into it
            k.reduce("add", self.m.control, word, c.n, mask=k.lane == 0)
            return
        entries = k.load(indptr, c.n, cache="nc")

        def split(low, high):
            """Narrows low .. high, where the empty rows at the end begin, by 32 guesses."""
            step = (high - low + 31) // 32
            guess = k.minimum(low + k.lane * step, high)
            none = k.ballot(k.load(indptr, guess, cache="nc") == entries)
            at = k.where(none == 0, 32, k.ctz(k.where(none == 0, 1, none)))
            found = k.minimum(low + at * step, high)
            return k.where(at == 0, low, k.minimum(low + (at - 1) * step + 1, high)), found

        _, end = k.while_(lambda low, high: low < high, split, 0, c.n)
        end = (k.maximum(end, source + 1) + 31) & -32
        k.reduce("add", self.m.control, word, end, mask=k.lane == 0)

    def receive(self, barrier, j):
        """Takes word j of each device's payload at the last barrier as its end; returns the end of
        this device."""
        k = self.k
        mine = k.thread < k.devices
        end = k.load(barrier.received, k.thread * barrier.words + j, mask=mine)
        k.store(self.ends, k.thread, end, mask=mine)
        k.sync()
        return self.of(k.device)

    def of(self, device):
        """The end of a device."""
        return self.k.load(self.ends, device)


def finish(k, c, m, vertices, barrier, s, last_rows):
    """The end of a search: all devices get all levels, and how many there are.

    Replaces FAR by -1, broadcasts the levels into m.messages, whose old content every device has
    read, and writes m.whole by vertex. Returns (ok, number of levels). One device barrier.

    Each place takes a byte, or a word where the search has 255 levels or more. Only places before
    `last_rows` are sent. Control word DEEPEST holds the largest level + 1 of this device; it
    travels as the first word of the barrier's payload.
    """
    shallow = s.level < BYTE
    end = last_rows.of(k.device)

    step = k.ctas * k.threads

    def send(j, most):
        at = k.several(UNROLL, lambda i: j + i * step)
        valid = k.below(at, k.shr(end, 2))
        levels = k.load_vec(m.levels, 4 * at, 4, mask=valid, other=FAR, cache="fresh")
        for i, mask, four in one_by_one(at, valid, levels):
            four = [k.where(level == FAR, -1, level) for level in four]
            most = functools.reduce(k.maximum, [level + 1 for level in four], most)
            if c.local_levels:
                k.store_vec(m.levels, 4 * i, four, mask=mask)
            bytes_ = [(level & BYTE) << (8 * b) for b, level in enumerate(four)]
            word = k.union(bytes_)
            for d in range(k.devices):
                at = k.shr(vertices.first, 2) + i
                k.store(k.on(m.messages, d), at, word, mask=mask & shallow)
            in_words = mask & ~shallow
            k.if_(in_words, lambda i=i, four=four: vertices.broadcast(m.messages, 4 * i, *four))
        return most

    worker = k.cta * k.threads + k.thread
    (most,) = k.for_(worker, k.shr(end, 2), UNROLL * step, send, 0)
    beyond = k.shr(end, 2)
    if c.local_levels:
        k.spread(c.n // 4 - beyond, lambda j: k.store_vec(m.levels, 4 * (beyond + j), [-1] * 4))
    most = k.warp_fold(k.maximum, most)
    k.reduce("max", m.control, c.slots + DEEPEST, most, mask=k.lane == 0)

    def payload(device):
        return (k.load(m.control, c.slots + DEEPEST, cache="fresh"),) + (0,) * (barrier.words - 1)

    ok = s.ok & barrier.device_barrier(s.turn, payload)
    count = functools.reduce(k.maximum, (barrier.word(d, 0) for d in range(k.devices)))

    def level(place):
        device = place // c.n
        valid = place - device * c.n < last_rows.of(device)
        at = k.where(shallow, k.shr(place, 2), place)
        word = k.load(m.messages, at, mask=valid, other=-1, cache="fresh")
        byte = k.shr(word, (place & 3) << 3) & BYTE
        return k.where(shallow, k.where(byte == BYTE, -1, byte), word)

    vertices.write_by_vertex(m.whole, level)
    return ok, count
