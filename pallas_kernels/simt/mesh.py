"""What kernels over several GPUs share: a barrier over all devices, the places of vertices."""

import functools
import operator
from collections.abc import Callable
from typing import Any

from .primitives import ABORT, ARRIVALS, CONTROL_WORDS, SPIN_LIMIT, Simt
from .typed import Array, Value, one_by_one

MAX_DEVICES = 32  # one lane of a warp polls the pairs of one device
UNROLL = 3  # groups of four vertices in flight a thread, which waits for two dependent accesses


class MeshBarrier:
    """All CTAs of all devices wait for each other inside one launch a device; at every barrier each
    device sends `words` words to every device.

    The last CTA of a device to arrive writes (turn, word) pairs into the control words of all
    devices; a pair is one 8-byte store. One warp of every CTA then polls the pairs in the memory of
    its own device until all of them hold the current turn. So no counter is shared by devices and
    no device reads the memory of another. Two groups of pairs alternate: a device reaches barrier
    t + 2 only after barrier t + 1, so all devices have read group t by then.

    Control words, from `first` on: 2 groups x `devices` senders x `words` pairs of (turn, word).

    Cost: one atomic, one system-wide fence by the last CTA, one trip over the link, polling in L2.
    The fence of the last CTA also covers what the other CTAs wrote to other devices before they
    arrived: fences are cumulative in the causality order of PTX.
    """

    def __init__(self, k, control, words, first=CONTROL_WORDS):
        """first: index of its first control word."""
        self.k, self.control, self.words, self.first = k, control, words, first
        self.received = k.shared(MAX_DEVICES * words)  # the words of each device, last barrier
        self.found = k.shared(4)

    @staticmethod
    def control_words(devices, words):
        """Number of control words it needs in addition to CONTROL_WORDS."""
        return 4 * devices * words

    @staticmethod
    def shared_words(words):
        """Number of shared words it needs."""
        return MAX_DEVICES * words + 8

    def device_barrier(self, turn, payload, adds=()):
        """Waits for all CTAs of all devices; returns ok. `word` and `total` then give the payloads.

        turn: the number of this barrier, 1, 2, ..., the same everywhere. payload(device) -> the
        words for that device; the first warp of the last CTA to arrive calls it, one lane for each
        device, and it sees what all other CTAs wrote before. adds: (shared array, j, array, i) as
        for `grid_barrier`. ok is 0 where some device did not arrive within SPIN_LIMIT polls: then
        every later barrier fails immediately and the kernel must leave. After the barrier, "fresh"
        loads see what any device wrote anywhere before it.
        """
        k = self.k
        group = self._group(turn)
        k.sync()

        def wait():
            self._arrive(adds, lambda: self._send(turn, group, payload))
            self._receive(turn, group)

        k.if_(k.warp == 0, wait)
        k.sync()
        return k.load(self.found, 0)

    def depart(self, turn, status):
        """The last barrier: the last CTA of each device to arrive waits for all devices; the other
        CTAs leave.

        So any number of CTAs is right, resident together or not. status[0] becomes 0, or 1 where
        some device did not arrive. When all kernels have ended, what any device wrote before this
        barrier is in memory.
        """
        k = self.k
        group = self._group(turn)
        k.sync()

        def last():
            self._send(turn, group, lambda device: (0,) * self.words)
            self._receive(turn, group)
            k.sync_warp()
            k.store(status, 0, 1 - k.load(self.found, 0), mask=k.lane == 0)

        k.if_(k.warp == 0, lambda: self._arrive((), last))

    def _group(self, turn):
        """Index of the first control word of the group of pairs that barrier `turn` uses."""
        return self.first + (turn & 1) * (2 * self.k.devices * self.words)

    def _arrive(self, adds, last):
        """Called by the first warp: increments control word ARRIVALS; the last CTA of the device
        to do so calls last()."""
        k = self.k

        def arrive():
            k.hand_over(adds)
            before = k.atomic("add", self.control, ARRIVALS, 1, order="acq_rel")
            return k.cast(before % k.ctas == k.ctas - 1, "i32")

        (found,) = k.if_(k.lane == 0, arrive, 0)
        k.if_(k.shfl(found, 0) == 1, last)

    def _send(self, turn, group, payload):
        """Writes this device's pairs into the group of every device: called by one warp, one lane
        for each receiver."""
        k = self.k
        to = k.where(k.lane < k.devices, k.lane, 0)
        remote, words = k.on(self.control, to), payload(to)
        k.fence("sys" if k.devices > 1 else "gpu")
        for j, word in enumerate(words):
            at = group + (k.device * self.words + j) * 2
            word = k.bits(k.const(word), "i32")
            k.store_pair(remote, at, turn, word, mask=k.lane < k.devices)

    def _receive(self, turn, group):
        """Polls the pairs of `group` until all hold `turn` or ABORT is set: called by the first
        warp, one lane for each sender. Stores the words in `received`, ok in `found`; on failure
        sets ABORT on all devices."""
        k, control = self.k, self.control
        mine, valid = k.on(control, k.device), k.lane < k.devices

        def look():
            # all loads are in flight together; the last one acquires; a pair is new where its turn
            # is the current one
            first, last = group + k.lane * (2 * self.words), self.words - 1
            pairs = [
                k.load_pair(mine, first + 2 * j, mask=valid, acquire=j == last)
                for j in range(self.words)
            ]
            late = k.const(False, "i1")
            for stamp, _ in pairs:
                late = late | (stamp != turn)
            return k.cast(k.any(late & valid), "i32"), *(word for _, word in pairs)

        def poll(n, abort, late, *words):
            abort = k.if_((n & 63) == 63, lambda: k.load(mine, ABORT, cache="fresh"), abort)[0]
            return n + 1, abort, *look()

        abort = k.load(mine, ABORT, cache="fresh")
        n, abort, late, *words = k.while_(
            lambda n, abort, late, *words: (late != 0) & (n < SPIN_LIMIT) & (abort == 0),
            poll,
            0,
            abort,
            *look(),
        )
        failed = (late != 0) | (abort != 0)

        def give_up():
            for d in range(k.devices):
                k.give_up(k.on(control, d), k.lane == 0)

        k.if_(failed, give_up)
        for j, word in enumerate(words):
            k.store(self.received, k.lane * self.words + j, word, mask=valid)
        k.store(self.found, 0, k.cast(~failed, "i32"), mask=k.lane == 0)

    def word(self, device, j):
        """Word j that `device` sent to this one at the last barrier."""
        return self.k.load(self.received, self.k.const(device) * self.words + j)

    def total(self, j, as_f32=None):
        """The sum over the devices of word j, added in the same order on every device.

        as_f32: `k.cast` to add int32 words in float32, where int32 would overflow; `k.bits` for
        words that hold float32; None to add in int32.
        """
        k = self.k
        words = [self.word(d, j) for d in range(k.devices)]
        if as_f32 is not None:
            words = [as_f32(word, "f32") for word in words]
        return functools.reduce(operator.add, words)


class Vertices:
    """Places of vertices on a mesh, and results by vertex from values by place.

    Uses `m.positions`, int32[n]: the place of every vertex among those of all devices.

    places: number of places of a device. n: number of vertices.
    """

    def __init__(self, k: Simt, m: Any, places: int, n: int):
        self.k, self.m, self.places, self.n = k, m, places, n
        self.first = k.device * places

    def place(self, vertex: Value) -> Value:
        """The place of a vertex on this device, or a negative number."""
        at = self.anywhere(vertex) - self.first
        return self.k.where(self.k.below(at, self.places), at, -1)

    def anywhere(self, vertex: Value) -> Value:
        """The place of a vertex among those of all devices, or a negative number."""
        valid = self.k.below(vertex, self.n)
        return self.k.load(self.m.positions, vertex, mask=valid, other=-1, cache="nc")

    def broadcast(self, a: Array, i: Value, *values: Value, here: bool = True) -> None:
        """Stores values for the places of this device, from i on, in `a` on every device, or on all
        but this one."""
        for d in range(self.k.devices):
            mask = None if here else self.k.device != d
            self.k.store_vec(self.k.on(a, d), self.first + i, values, mask=mask)

    def write_by_vertex(self, whole: Array, value: Callable[[Value], Value]) -> None:
        """whole[vertex] = value(place of the vertex) for all vertices.

        It reads at random, mostly from the L2 cache, and writes in order: random writes take five
        times as long.
        """
        k, step = self.k, self.k.ctas * self.k.threads

        def some(j):
            at = k.several(UNROLL, lambda i: j + i * step)
            is_valid = k.below(at, self.n // 4)
            places = k.load_vec(self.m.positions, 4 * at, 4, mask=is_valid, cache="nc")
            values = [[value(p) for p in four] for (four,) in one_by_one(places)]
            for (i, mask), four in zip(one_by_one(at, is_valid), values, strict=True):
                k.store_vec(whole, 4 * i, four, mask=mask)

        k.for_(k.cta * k.threads + k.thread, self.n // 4, UNROLL * step, some)
        left = self.n // 4 * 4 + k.thread
        last = (k.cta == 0) & (left < self.n)
        k.if_(last, lambda: k.store(whole, left, value(k.load(self.m.positions, left, cache="nc"))))
