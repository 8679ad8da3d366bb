"""The barrier over all CTAs of all devices of a mesh, with sums: inside one launch a device."""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

import functools
import operator

from .primitives import ABORT, ARRIVALS, CONTROL_WORDS, SPIN_LIMIT

MOST_DEVICES = 32  # one lane of a warp listens to each


class MeshBarrier:
    """Waits for all devices; each tells every other `words` words at every meeting.

    The last CTA of a device to arrive writes (turn, word) pairs into the control words of all
    devices, never half a pair; one warp of every CTA waits for those of all devices in its own
    memory. So nothing is counted across devices and nothing is read from afar. Two groups of pairs
    take turns: who is two meetings ahead has heard that all have left the first.

    Cost: one atomic, one fence of the system by the last CTA, one way over the link, polling in L2.
    That the last CTA's fence covers what the others wrote to other devices before their arrival is
    cumulativity: their writes come before it in the causality order of PTX.
    """

    def __init__(self, k, control, words, limit=SPIN_LIMIT, first=CONTROL_WORDS):
        """first: of its control words."""
        self.k, self.control, self.words, self.limit, self.first = k, control, words, limit, first
        self.heard = k.shared(MOST_DEVICES * words)  # what each device told at the last meeting
        self.found = k.shared(4)

    @staticmethod
    def control_words(devices, words):
        """How many words of control it takes beside CONTROL_WORDS."""
        return 4 * devices * words

    @staticmethod
    def shared_words(words):
        """How many shared words it takes."""
        return MOST_DEVICES * words + 8

    def device_barrier(self, turn, tell, adds=()):
        """ok, once all CTAs of all devices are here; `word` and `total` tell what was said then.

        turn: the number of this meeting, 1, 2, ..., the same everywhere. tell(device) -> the words
        for that device, called by the first warp of the last CTA to arrive, a lane for each device;
        it sees what all others wrote before. adds: (shared array, j, array, i) as for
        `grid_barrier`. ok is 0 where some device did not come within `limit` polls: every later
        meeting fails at once, the kernel must leave. What any device wrote anywhere before is seen
        after by "fresh" loads.
        """
        k = self.k
        group = self._group(turn)
        k.sync()

        def meeting():
            self._arrive(adds, lambda: self._say(turn, group, tell))
            self._listen(turn, group)

        k.if_(k.warp == 0, meeting)
        k.sync()
        return k.load(self.found, 0)

    def depart(self, turn, then):
        """The last CTA of a device to come here waits for those of the others, the rest may leave.

        So any number of CTAs is right, resident together or not. then(ok): what the first warp of
        the last CTA does after; what any device wrote before is there when all kernels have ended.
        """
        k = self.k
        group = self._group(turn)
        k.sync()

        def last():
            self._say(turn, group, lambda device: (0,) * self.words)
            self._listen(turn, group)
            k.sync_warp()
            then(k.load(self.found, 0))

        k.if_(k.warp == 0, lambda: self._arrive((), last))

    def _group(self, turn):
        """The first of the control words of a meeting."""
        return self.first + (turn & 1) * (2 * self.k.devices * self.words)

    def _arrive(self, adds, last):
        """The first warp: counts its CTA; last() where it is the last of the device."""
        k = self.k

        def arrive():
            for source, j, a, i in adds:
                amount = k.load(source, j)
                k.reduce("add", a, i, amount, mask=amount != 0)
                k.store(source, j, 0)
            before = k.atomic("add", self.control, ARRIVALS, 1, order="acq_rel")
            return k.cast(before % k.ctas == k.ctas - 1, "i32")

        (found,) = k.if_(k.lane == 0, arrive, 0)
        k.if_(k.shfl(found, 0) == 1, last)

    def _say(self, turn, group, tell):
        """The first warp of the last CTA: a lane for each device."""
        k = self.k
        to = k.where(k.lane < k.devices, k.lane, 0)
        valid, words = k.on(self.control, to), tell(to)
        k.fence("sys" if k.devices > 1 else "gpu")
        for j, word in enumerate(words):
            at = group + (k.device * self.words + j) * 2
            word = k.bits(k.const(word), "i32")
            k.store_pair(valid, at, turn, word, mask=k.lane < k.devices)

    def _listen(self, turn, group):
        """The first warp: a lane for each device."""
        k, control = self.k, self.control
        mine, valid = k.on(control, k.device), k.lane < k.devices

        def look():
            # all under way together: the last one acquires, each tells by its turn that it is new
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
            lambda n, abort, late, *words: (late != 0) & (n < self.limit) & (abort == 0),
            poll,
            0,
            abort,
            *look(),
        )
        failed = (late != 0) | (abort != 0)

        def give_up():
            for d in range(k.devices):
                k.store(k.on(control, d), ABORT, 1, mask=k.lane == 0)

        k.if_(failed, give_up)
        for j, word in enumerate(words):
            k.store(self.heard, k.lane * self.words + j, word, mask=valid)
        k.store(self.found, 0, k.cast(~failed, "i32"), mask=k.lane == 0)

    def word(self, device, j):
        """What a device told at the last meeting."""
        return self.k.load(self.heard, self.k.const(device) * self.words + j)

    def total(self, j, as_f32=None):
        """The sum over the devices of word j, in one order everywhere.

        as_f32: of int32, for sums beyond them: `k.cast`; of words that are float32: `k.bits`.
        """
        k = self.k
        words = [self.word(d, j) for d in range(k.devices)]
        if as_f32 is not None:
            words = [as_f32(word, "f32") for word in words]
        return functools.reduce(operator.add, words)
