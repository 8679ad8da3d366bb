"""Shortest paths over the rows of several GPUs, all rounds in one launch on each.

Delta-stepping without buckets (Meyer and Sanders 2003): a round relaxes the edges of all places
that wait, whose label fell since their edges were relaxed last, and lie within some width of the
least of them (`width.py`). Labels are the bits of float32 lengths >= 0, ordered as the numbers are;
they fall by atomic minima (`relaxing.py`). What a thread lowers it reports as least, so nothing
that waits is missed: the next round's bound follows from all reports.

Cost of a round: a flag for 128 places, 8 bytes for each of those of which one waits, 16 bytes
written and read for each piece of a row, 8 bytes and a gather an edge that is relaxed, an atomic
over the link for each length that falls below what this device has sent; a grid barrier and a
meeting.
"""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

import jax
import jax.numpy as jnp

from ..simt.barrier import MeshBarrier
from ..simt.device import resident_ctas
from ..simt.launch import launch
from ..simt.primitives import CONTROL_WORDS
from .relaxing import EDGES, INFINITY, PIECES, TAKEN, Flags, Relaxing, room
from .vertices import Vertices
from .width import Width

TOLD = 2  # words: TOP - the least label that may wait, -1 below 0; edges of a round
TOP = 0x7FFFFFFE
LOW, WORDS = max(PIECES, TAKEN, EDGES) + 1, 4  # of a group of control words


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
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """(distances float32[n], those of the places of this device float32[places], rounds int32,
    whether that was the end int32, status int32, refused int32), inside of a `shard_map`.

    Of this device: indptr int32[places + 1], indices int32[nse] and weights float32[nse], none
    NaN, of the rows of its places, by places of all devices; positions int32[n], the same on all:
    the place of each vertex. axes: all axes of the mesh in their order. delta float32: the width of
    a round, > 0, inf too, or 0: chosen (`width.py`). At most `most` rounds. status 0: right;
    otherwise a device or a CTA waited in vain. refused 1: a length fell below 0, by negative
    weights; the distances are none.
    """
    devices, places = jax.lax.axis_size(axes), indptr.shape[0] - 1
    ctas = ctas or resident_ctas()
    more = MeshBarrier.control_words(devices, TOLD)
    f32, i32 = jnp.float32, jnp.int32

    def kernel(k, m):
        _Search(k, m, places, n, CONTROL_WORDS + more).run()

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
            "labels": places * devices,
            "summary": 4,
            "done": places,
            "waiting": Flags.words(places, devices),
            "queue": 4 * room(places, indices.shape[0]),
            "parts": (2 * ctas, f32),
        },
        ctas=ctas,
        threads=threads,
        shared_words=MeshBarrier.shared_words(TOLD) + 8,
        more_control=more + 4 * WORDS,
        name="sssp_on_mesh",
        axes=axes,
        interpret=interpret,
    )
    first = jax.lax.axis_index(axes) * places
    own = jax.lax.dynamic_slice_in_dim(out["labels"], first, places)
    own = jax.lax.bitcast_convert_type(own, f32)
    return out["whole"], own, *out["summary"]


class _Search:
    """One launch; slots: the first of four groups of control words that take turns."""

    def __init__(self, k, m, places, n, slots):
        self.k, self.m, self.places, self.slots = k, m, places, slots
        self.vertices, self.barrier = Vertices(k, m, places, n), MeshBarrier(k, m.control, TOLD)
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
            slot = self._group(turn)
            spare = (k.cta == 0) & (k.thread < WORDS)
            k.store(m.control, self._group(turn + 2) + k.thread, 0, mask=spare)
            bound = self.width.bound(width, doublings, least)
            low = self.relaxing.queue(turn, slot, bound)
            good, pieces = k.grid_barrier(m.control, [(m.control, slot + PIECES)])
            self._report(slot, self.relaxing.relax(turn, slot, pieces, low))
            good = good & self._meet(turn)
            doublings = self.width.next(doublings, self.barrier.total(1, k.cast))
            return i + 1, self._least(), doublings, ok & good

        steps, least, _, ok = k.while_(going, step, 0, least, 0, ok)
        ok = ok & self._finish(steps + 2)
        ended, refused = (k.cast(x, "i32") for x in (least >= INFINITY, least < 0))
        for j, word in enumerate((steps, ended, 1 - ok, refused)):
            k.store(m.summary, j, word, mask=(k.cta == 0) & (k.thread == 0))

    def _group(self, turn):
        return self.slots + (turn & 3) * WORDS

    def _start(self):
        """Only the source has a label; (ok, the least)."""
        k, m = self.k, self.m
        source = self.vertices.anywhere(k.load(m.numbers, 0))
        known = k.below(source, self.places * k.devices)

        def clear(i):
            k.store(m.labels, i, k.where(i == source, 0, INFINITY))

        k.store(self.low, 0, 0, mask=k.thread == 0)
        k.spread(self.places * k.devices, clear)
        k.spread(self.places, lambda i: k.store(m.done, i, INFINITY))
        self.flags.clear(source, known)
        self.width.look()
        ok = self.barrier.meet(k.const(1), lambda device: (self.width.word(), 0))
        return ok, k.where(known, 0, INFINITY)

    def _report(self, slot, low):
        """Adds what the threads of the CTA lowered or left waiting; `low` of each."""
        k = self.k
        low = k.warp_fold(k.minimum, low)
        told = TOP - k.maximum(low, -1)
        k.reduce("max", self.low, 0, told, mask=(k.lane == 0) & (low < INFINITY))
        k.sync()
        mine = k.thread == 0
        k.reduce("max", self.m.control, slot + LOW, k.load(self.low, 0), mask=mine)
        k.store(self.low, 0, 0, mask=mine)

    def _meet(self, turn):
        k, control = self.k, self.m.control
        words = [self._group(turn) + word for word in (LOW, EDGES)]

        def tell(device):
            del device
            return [k.load(control, word, cache="fresh") for word in words]

        return self.barrier.meet(turn, tell)

    def _least(self):
        """The least label that waits on any device; at least INFINITY: none does; -1: below 0."""
        k, most = self.k, self.barrier.word(0, 0)
        for d in range(1, k.devices):
            most = k.maximum(most, self.barrier.word(d, 0))
        return TOP - most

    def _finish(self, turn):
        """Distances of all vertices: every device tells the others its own labels."""
        k, m = self.k, self.m

        def tell(j):
            four = k.load_vec(m.labels, self.vertices.first + 4 * j, 4, cache="fresh")
            self.vertices.tell_others(m.labels, 4 * j, *four)

        k.spread(self.places // 4, tell)
        ok = self.barrier.meet(turn, lambda device: (0, 0))

        def length(place):
            return k.bits(k.load(m.labels, place, cache="fresh"), "f32")

        self.vertices.give(m.whole, length)
        return ok
