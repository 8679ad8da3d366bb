"""Shortest paths over the rows of several GPUs, all rounds in one launch on each.

Delta-stepping without buckets (Meyer and Sanders 2003): a round relaxes the edges of all places
that wait, whose label fell since their edges were relaxed last, and lie within `delta` of the least
of them. Labels are the bits of float32 lengths >= 0, ordered as the numbers are; they fall by
atomic minima, at once where the head is a place of this device. For heads of other devices the
least length of this round is kept and mailed at its end. What a thread lowers it reports as least,
so nothing that waits is missed: the next round's bound follows from all reports.

Cost of a round: a flag for 32 places, 8 bytes for each of those of which one waits, 8 bytes and a
gather an edge that is relaxed, 8 bytes over the link for each head of another device whose length
fell; a meeting, a grid barrier, and one more where there are long rows.
"""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

import jax
import jax.numpy as jnp

from ..rows.flatten import LONG, PIECE, flatten, piece_room
from ..simt.barrier import MeshBarrier
from ..simt.device import resident_ctas
from ..simt.launch import launch
from ..simt.primitives import CONTROL_WORDS
from .vertices import Vertices

TOLD = 2  # words: MAX - the least label that may wait, letters for whom it is told
MAX, INFINITY = 0x7FFFFFFF, 0x7F800000
LOW, PIECES, MAILS = 0, 1, 2  # words of a group of control words; of mails one for each device


def sssp(
    indptr: jax.Array,
    indices: jax.Array,
    weights: jax.Array,
    positions: jax.Array,
    source: jax.Array,
    delta: jax.Array,
    most: jax.Array,
    *,
    axes: tuple[str, ...],
    n: int,
    ctas: int | None = None,
    threads: int = 1024,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """(distances float32[n], those of the places of this device float32[places], rounds int32,
    whether that was the end int32, status int32), inside of a `shard_map`.

    Of this device: indptr int32[places + 1], indices int32[nse] and weights float32[nse], none
    negative or NaN, of the rows of its places, by places of all devices; positions int32[n], the
    same on all: the place of each vertex. axes: all axes of
    the mesh in their order. delta float32 > 0, inf too; at most `most` rounds. status 0: right;
    otherwise a device or a CTA waited in vain.
    """
    devices, places = jax.lax.axis_size(axes), indptr.shape[0] - 1
    everyone, room = places * devices, piece_room(indices.shape[0])
    more = MeshBarrier.control_words(devices, TOLD)
    f32, i32 = jnp.float32, jnp.int32

    def kernel(k, m):
        _Search(k, m, places, n, room, CONTROL_WORDS + more).run()

    out = launch(
        kernel,
        {
            "indptr": indptr,
            "indices": indices,
            "weights": weights,
            "positions": positions,
            "numbers": jnp.stack([jnp.asarray(x, i32) for x in (source, most)]),
            "delta": jnp.asarray(delta, f32).reshape(1),
        },
        {
            "whole": (n, f32),
            "labels": places,
            "summary": 3,
            "done": places,
            "waiting": places // 32,
            "letters": 4 * max(devices - 1, 1) * places,
            "sent": everyone,
            "marks": everyone,
            "outbox": everyone,
            "pieces": 4 * room,
        },
        ctas=ctas or resident_ctas(),
        threads=threads,
        shared_words=160,
        more_control=more + 4 * (MAILS + devices),
        name="sssp_on_mesh",
        axes=axes,
        interpret=interpret,
    )
    own = jax.lax.bitcast_convert_type(out["labels"], f32)
    rounds, ended, status = out["summary"]
    return out["whole"], own, rounds, ended, status


class _Search:
    """One launch; slots: the first of four groups of control words that take turns."""

    def __init__(self, k, m, places, n, room, slots):
        self.k, self.m, self.places, self.room, self.slots = k, m, places, room, slots
        self.n, self.everyone = n, places * k.devices
        self.vertices, self.barrier = Vertices(k, m, places, n), MeshBarrier(k, m.control, TOLD)
        self.low = k.shared(1)  # MAX - the least label that a thread of the CTA reported
        self.warps = (k.warp * k.ctas + k.cta, k.ctas * k.threads // 32)
        self.flags = places // 32  # of 32 places each, in `waiting`: 0 where none of them waits

    def run(self):
        k, m = self.k, self.m
        most, delta = k.load(m.numbers, 1), k.load(m.delta, 0)
        ok, least = self._start()

        def going(step, least, ok):
            return (least < INFINITY) & (step < most) & (ok == 1)

        def step(i, least, ok):
            turn = i + 2
            slot = self._group(turn)
            after = self._group(turn + 2)
            spare = (k.cta == 0) & (k.thread < MAILS + k.devices)
            k.store(m.control, after + k.thread, 0, mask=spare)
            bound = k.bits(k.bits(least, "f32") + delta, "i32")
            low = self._open(turn, k.const(INFINITY))
            self._report(slot, self._scan(turn, slot, bound, low))
            good, pieces = k.grid_barrier(m.control, [(m.control, slot + PIECES)])

            def long_rows():
                self._report(slot, self._pieces(turn, slot, pieces, k.const(INFINITY)))
                return k.grid_barrier(m.control)

            good = good & k.if_(pieces > 0, long_rows, 1)[0]
            self._mail(turn, slot)
            good = good & self._meet(turn, slot)
            return i + 1, self._least(), ok & good

        steps, least, ok = k.while_(going, step, 0, least, ok)
        self._open(steps + 2, k.const(INFINITY))  # some are left where `most` ended it
        ok = ok & k.grid_barrier(m.control)[0] & self._finish(steps + 2)
        for j, word in enumerate((steps, k.cast(least >= INFINITY, "i32"), 1 - ok)):
            k.store(m.summary, j, word, mask=(k.cta == 0) & (k.thread == 0))

    def _group(self, turn):
        return self.slots + (turn & 3) * (MAILS + self.k.devices)

    def _start(self):
        """Only the source has a label; (ok, the least)."""
        k, m = self.k, self.m
        source = self.vertices.place(k.load(m.numbers, 0))

        def clear(i, low):
            label = k.where(i == source, 0, INFINITY)
            k.store(m.labels, i, label)
            k.store(m.done, i, INFINITY)
            return k.minimum(low, label)

        def nothing(v):
            k.store(m.sent, v, INFINITY)
            k.store(m.marks, v, 0)

        k.store(self.low, 0, 0, mask=k.thread == 0)
        k.sync()
        (low,) = k.spread(self.places, clear, INFINITY)
        k.spread(self.everyone, nothing)
        first = k.where(source >= 0, k.shr(source, 5), -1)
        k.spread(self.flags, lambda f: k.store(m.waiting, f, k.where(f == first, 1, 0)))
        turn = k.const(1)
        self._report(self._group(turn), low)
        return self._meet(turn, self._group(turn)), self._least()

    def _report(self, slot, low):
        """Adds what the threads of the CTA lowered or left waiting; `low` of each."""
        k = self.k
        low = k.warp_fold(k.minimum, low)
        k.reduce("max", self.low, 0, MAX - low, mask=(k.lane == 0) & (low < INFINITY))
        k.sync()
        mine = k.thread == 0
        k.reduce("max", self.m.control, slot + LOW, k.load(self.low, 0), mask=mine)
        k.store(self.low, 0, 0, mask=mine)

    def _meet(self, turn, slot):
        k, control = self.k, self.m.control

        def tell(device):
            words = slot + LOW, slot + MAILS + device
            return [k.load(control, word, cache="fresh") for word in words]

        return self.barrier.meet(turn, tell)

    def _least(self):
        """The least label that waits on any device; at least INFINITY: none does."""
        k, most = self.k, self.barrier.word(0, 0)
        for d in range(1, k.devices):
            most = k.maximum(most, self.barrier.word(d, 0))
        return MAX - most

    def _place_of_letters(self, turn, device, at):
        """Where the letters of a device in a round lie with whom they go to, `at`."""
        k = self.k
        others = k.const(device) - k.where(k.const(device) > at, 1, 0)
        return ((turn & 1) * max(k.devices - 1, 1) + others) * self.places

    def _open(self, turn, low):
        """Takes the letters of the last round."""
        k, m = self.k, self.m
        for s in range(k.devices):
            first = self._place_of_letters(turn + 1, s, k.device)
            count = self.barrier.word(s, 1)

            def letter(i, there, low, first=first):
                place, label = k.load_pair(m.letters, (first + i) * 2, mask=there)
                won = there & (k.atomic("min", m.labels, place, label, mask=there) > label)
                k.store(m.waiting, k.shr(place, 5), 1, mask=won)
                return k.minimum(low, k.where(won, label, INFINITY))

            (low,) = k.deal(count, self.warps, letter, low)
        return low

    def _scan(self, turn, slot, bound, low):
        """Relaxes the edges of all places that wait up to the bound; long rows go to pieces.

        A flag is taken down before the labels of its places are read, and put up after a label
        fell: at worst it is up in vain.
        """
        k, m = self.k, self.m

        def flags(f, there, low):
            up = there & (k.load(m.waiting, f, mask=there, cache="fresh") != 0)
            k.atomic("exch", m.waiting, f, 0, mask=up, order="acq_rel")

            def first(left, low):
                flag = k.shfl(f, k.ctz(left))
                return left & (left - 1), *some(flag, flag * 32 + k.lane, low)

            return k.while_(lambda left, low: left != 0, first, k.ballot(up), low)[1]

        def some(flag, i, low):
            label, done = (k.load(a, i, cache="fresh") for a in (m.labels, m.done))
            waits = label < done
            active = waits & (label <= bound)
            low = k.minimum(low, k.where(waits & ~active, label, INFINITY))
            k.store(m.waiting, flag, 1, mask=(k.lane == 0) & k.any(waits & ~active))

            def relax():
                k.store(m.done, i, label, mask=active)
                start, end = k.row(m.indptr, i, active)
                size = k.where(active, end - start, 0)
                parts = k.where(size > LONG, (size + (PIECE - 1)) // PIECE, 0)
                at = k.atomic("add", m.control, slot + PIECES, parts, mask=parts > 0)

                def store(j):
                    begin = start + j * PIECE
                    piece = begin, k.minimum(begin + PIECE, end), label, 0
                    k.store_vec(m.pieces, (at + j) * 4, piece, mask=at + j < self.room)

                k.for_(0, parts, 1, store)
                size = k.where(size > LONG, 0, size)
                return self._relax(turn, slot, start, size, label, low)

            return k.if_(k.any(active), relax, low)

        # neighbours go to different warps: the heaviest places come first and wait together
        worker, workers = self.warps

        def stretch(first, low):
            f = first + k.lane * workers
            return flags(f, f < self.flags, low)

        return k.for_(worker, self.flags, 32 * workers, stretch, low)[0]

    def _pieces(self, turn, slot, pieces, low):
        k = self.k

        def piece(i, there, low):
            start, end, label, _ = k.load_vec(self.m.pieces, i * 4, 4, mask=there, cache="fresh")
            return self._relax(turn, slot, start, k.where(there, end - start, 0), label, low)

        return k.deal(k.minimum(pieces, self.room), self.warps, piece, low)[0]

    def _relax(self, turn, slot, start, size, label, low):
        """The least of low and what the edges of the lanes' rows lower."""
        k, m = self.k, self.m

        def edge(places, payloads, there, low):
            (at,), ((label,),), (there,) = places, payloads, there
            v = k.load(m.indices, at, mask=there, other=self.everyone, cache="nc")
            weight = k.load(m.weights, at, mask=there, cache="nc")
            length = k.bits(k.bits(label, "f32") + weight, "i32")
            there = there & k.below(v, self.everyone)
            device = v // self.places
            place, here = v - device * self.places, there & (device == k.device)
            away = there & ~here
            known = k.load(m.labels, place, mask=here), k.load(m.sent, v, mask=away)
            here, away = here & (known[0] > length), away & (known[1] > length)
            known = (
                k.atomic("min", m.labels, place, length, mask=here),
                k.atomic("min", m.sent, v, length, mask=away),
            )
            here, away = here & (known[0] > length), away & (known[1] > length)
            k.store(m.waiting, k.shr(place, 5), 1, mask=here)
            first = away & (k.atomic("exch", m.marks, v, turn, mask=away) != turn)
            k.if_(k.any(first), lambda: self._list(slot, v, device, first))
            return k.minimum(low, k.where(here | away, length, INFINITY))

        return flatten(k, start, size, (label,), edge, low, unroll=1)

    def _list(self, slot, v, device, mask):
        """Lists places of other devices whose lengths fell; all lanes of the warp take part."""
        k, m = self.k, self.m
        for d in range(k.devices):
            votes = k.ballot(mask & (device == d))

            def some(d=d, votes=votes):
                count = slot + MAILS + d
                base = k.atomic("add", m.control, count, k.popc(votes), mask=k.lane == 0)
                at = d * self.places + k.shfl(base, 0) + k.lanes_below(votes)
                k.store(m.outbox, at, v, mask=mask & (device == d))

            k.if_(votes != 0, some)

    def _mail(self, turn, slot):
        """Sends the least length of this round for every place that is listed."""
        k, m = self.k, self.m
        for d in range(k.devices):
            there, first = k.on(m.letters, d), self._place_of_letters(turn, k.device, d)

            def one(i, there=there, first=first, d=d):
                v = k.load(m.outbox, d * self.places + i, cache="fresh")
                length = k.load(m.sent, v, cache="fresh")
                k.store_pair(there, (first + i) * 2, v - d * self.places, length)

            k.spread(k.load(m.control, slot + MAILS + d, cache="fresh"), one)

    def _finish(self, turn):
        """Distances of all vertices, told where the letters of the last round but one were."""
        k, m = self.k, self.m
        group = (turn & 1) * 2 * max(k.devices - 1, 1) * self.places

        def tell(j):
            four = k.load_vec(m.labels, 4 * j, 4, cache="fresh")
            self.vertices.tell_all(m.letters, group + 4 * j, *four)

        k.spread(self.places // 4, tell)
        ok = self.barrier.meet(turn, lambda device: (0, 0))

        def length(place):
            return k.bits(k.load(m.letters, group + place, cache="fresh"), "f32")

        self.vertices.give(m.whole, length)
        return ok
