"""The rounds of shortest paths over the rows of several GPUs, all in one launch on each.

Delta-stepping without buckets (Meyer and Sanders 2003). A place is pending if its label fell since
its edges were last relaxed. A round relaxes the edges of all pending places whose label lies within
some width of the least pending label (`width.py`). Labels are the bits of float32 lengths >= 0,
which have the same order as the numbers; they fall by atomic minima (`relax.py`). Every thread
reports the least label that it lowered or left pending, and the next bound follows from the
minimum of all reports.

Cost of a round: a flag for each 128 places; 8 bytes for each place under a raised flag; 16 bytes
written and read for each piece of a row; 8 bytes and a gather for each relaxed edge; an atomic over
the link for each length that falls below what this device has sent; a grid barrier and a device
barrier.

Measured (two H200, rmat21-22, 86.3M entries, lengths 1 to 64): 1.09 relaxations an entry in 14
rounds, 0.77 ms of the kernel: 0.46 relaxing, up to 180 G/s on each device, 0.17 listing; 1.34M
atomics go over the link each way. A call takes 1.3 ms, one GPU's 2.6 to 2.9; in a loop of one
program 0.85 and 2.14.
"""

import functools

from ...frontier import Rotation
from ...rows.by_vertex import Vertices
from ...simt.barrier import MeshBarrier
from .relax import EDGES, INFINITY, PIECES, TAKEN, Flags, Relaxing
from .width import Width

# payload of a barrier: TOP - the least pending label (-1 stands for one below 0); edges relaxed
PAYLOAD_WORDS = 2
TOP = 0x7FFFFFFE
# a group of control words has WORDS words; word LOW is TOP - the least label that was reported
LOW, WORDS = max(PIECES, TAKEN, EDGES) + 1, 4


class Search:
    """One launch; slots: index of the first of four groups of control words, used in rotation."""

    def __init__(self, k, m, places, n, slots):
        self.k, self.m, self.places = k, m, places
        self.groups = Rotation(k, m.control, slots, WORDS)
        self.vertices = Vertices(k, m, places, n)
        self.barrier = MeshBarrier(k, m.control, PAYLOAD_WORDS)
        self.low = k.shared(1)  # TOP - the least label that a thread of the CTA reported
        self.flags = Flags(k, m, places)
        self.relaxing = Relaxing(k, m, places, self.flags)
        self.width = Width(k, m, places, n)

    def run(self):
        k, m = self.k, self.m
        most = k.load(m.numbers, 1)
        ok, least = self._start()
        width = self.width.start(self.barrier)

        def going(step, least, doublings, ok):
            return k.below(least, INFINITY) & (step < most) & (ok == 1)

        def step(i, least, doublings, ok):
            turn = i + 2
            slot = self.groups.group(turn)
            self.groups.clear(turn)
            bound = self.width.bound(width, doublings, least)
            low = self.relaxing.queue(turn, slot, bound)
            good, pieces = k.grid_barrier(m.control, [(m.control, slot + PIECES)])
            self._report(slot, self.relaxing.relax(turn, slot, pieces, low))
            good = good & self._device_barrier(turn)
            doublings = self.width.next(doublings, self.barrier.total(1, k.cast))
            return i + 1, self._least(), doublings, ok & good

        steps, least, _, ok = k.while_(going, step, 0, least, 0, ok)
        ok = ok & self._finish(steps + 2)
        ended, refused = (k.cast(x, "i32") for x in (least >= INFINITY, least < 0))
        k.results(m.summary, steps, ended, 1 - ok, refused)

    def _start(self):
        """Gives a label to the source alone; returns (ok, the least label)."""
        k, m = self.k, self.m
        source = self.vertices.anywhere(k.load(m.numbers, 0))
        known = k.below(source, self.places * k.devices)

        def clear(i):
            k.store(m.labels, i, k.where(i == source, 0, INFINITY))

        k.store(self.low, 0, 0, mask=k.thread == 0)
        k.spread(self.places * k.devices, clear)
        k.spread(self.places, lambda i: k.store(m.done, i, INFINITY))
        self.flags.clear(source, known)
        self.width.sample()
        ok = self.barrier.device_barrier(k.const(1), lambda device: (self.width.word(), 0))
        return ok, k.where(known, 0, INFINITY)

    def _report(self, slot, low):
        """Adds `low`, the least label that each thread lowered or left pending, to control word
        slot + LOW."""
        k = self.k
        low = k.warp_fold(k.minimum, low)
        sent = TOP - k.maximum(low, -1)
        k.reduce("max", self.low, 0, sent, mask=(k.lane == 0) & (low < INFINITY))
        k.sync()
        mine = k.thread == 0
        k.reduce("max", self.m.control, slot + LOW, k.load(self.low, 0), mask=mine)
        k.store(self.low, 0, 0, mask=mine)

    def _device_barrier(self, turn):
        k, control = self.k, self.m.control
        words = [self.groups.group(turn) + word for word in (LOW, EDGES)]

        def payload(device):
            return [k.load(control, word, cache="fresh") for word in words]

        return self.barrier.device_barrier(turn, payload)

    def _least(self):
        """The least pending label of all devices; INFINITY or more: none is pending; -1: one is
        negative."""
        sent = (self.barrier.word(d, 0) for d in range(self.k.devices))
        return TOP - functools.reduce(self.k.maximum, sent)

    def _finish(self, turn):
        """Every device sends the labels of its places to the others and writes the distances of all
        vertices."""
        k, m = self.k, self.m

        def send(j):
            four = k.load_vec(m.labels, self.vertices.first + 4 * j, 4, cache="fresh")
            self.vertices.broadcast(m.labels, 4 * j, *four, here=False)

        k.spread(self.places // 4, send)
        ok = self.barrier.device_barrier(turn, lambda device: (0, 0))

        def length(place):
            return k.bits(k.load(m.labels, place, cache="fresh"), "f32")

        self.vertices.write_by_vertex(m.whole, length)
        return ok
