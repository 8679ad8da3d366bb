"""Shortest paths over the rows of several GPUs, all rounds in one launch on each.

Delta-stepping without buckets (Meyer and Sanders 2003). A place is pending if its label fell since
its edges were last relaxed. A round relaxes the edges of all pending places whose label lies within
some width of the least pending label (`Width`). Labels are the bits of float32 lengths >= 0, which
have the same order as the numbers; they fall by atomic minima (`mesh_relax.py`). Every thread
reports the least label that it lowered or left pending, and the next bound follows from the minimum
of all reports.

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
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from ..frontier import Rotation
from ..simt.device import extent
from ..simt.launch import launch
from ..simt.mesh import MeshBarrier, Vertices
from ..simt.primitives import CONTROL_WORDS
from .mesh_relax import EDGES, INFINITY, PIECES, TAKEN, Flags, Relaxing, capacity

# payload of a barrier: TOP - the least pending label (-1 stands for one below 0); edges relaxed
PAYLOAD_WORDS = 2
TOP = 0x7FFFFFFE
# a group of control words has WORDS words; word LOW is TOP - the least label that was reported
LOW, WORDS = max(PIECES, TAKEN, EDGES) + 1, 4
# Width over the mean length: 4 / mean degree within these bounds.
LOWEST, HIGHEST = 0.1, 3.0
DOUBLINGS = 60
SMALL = 8  # edges a thread: a round with fewer is bound by latency


def sssp(
    graph: Sequence[jax.Array],
    source: jax.Array,
    delta: jax.Array,
    most: jax.Array,
    *,
    axes: tuple[str, ...],
    n: int,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """(distances float32[n], local distances float32[places], rounds int32, ended int32, status
    int32, refused int32) of a search.

    Local distances are those of the places of this device. ended is 1 if the search is complete, 0
    if it stopped after `most` rounds. refused is 1 if a length fell below 0, by negative weights:
    then the distances are invalid. graph: (indptr, indices, weights float32[nse], none NaN,
    positions). delta float32: the width of a round, > 0 or inf; 0: chosen by the kernel
    (`Width`).
    """
    indptr, indices, weights, positions = graph
    devices, places = jax.lax.axis_size(axes), indptr.shape[0] - 1
    form = extent()
    more = MeshBarrier.control_words(devices, PAYLOAD_WORDS)
    f32, i32 = jnp.float32, jnp.int32

    def kernel(k, m):
        return Search(k, m, places, n, CONTROL_WORDS + more).run()

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
            **dict.fromkeys(("rounds", "ended", "status", "refused"), ()),
            "done": places,
            "waiting": Flags.words(places, devices),
            "queue": 4 * capacity(places, indices.shape[0]),
            "parts": (2 * form["ctas"], f32),
        },
        shared_words=MeshBarrier.shared_words(PAYLOAD_WORDS) + 8,
        more_control=more + 4 * WORDS,
        name="sssp_on_mesh",
        axes=axes,
    )
    first = jax.lax.axis_index(axes) * places
    local = jax.lax.dynamic_slice_in_dim(out["labels"], first, places)
    local = jax.lax.bitcast_convert_type(local, f32)
    ended, refused = out["ended"], out["refused"]
    return out["whole"], local, out["rounds"], ended, out["status"], refused


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
        k.results(m, rounds=steps, ended=ended, refused=refused)
        return ok

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


class Width:
    """The given width (`m.delta`), or one chosen from the weights and from the sizes of the rounds.

    To choose one (m.delta is 0), every thread of every device samples one weight. A round of few
    edges, which is bound by latency, doubles the width of the next; any other quarters it, but not
    below what the weights suggest. `m.parts` float32[2 CTAs]: sums and numbers of sampled weights.
    """

    def __init__(self, k, m, places, n):
        self.k, self.m, self.places, self.n = k, m, places, n
        self.sums, self.given = k.shared(2, "f32"), k.load(m.delta, 0)
        self.chosen = self.given == 0.0
        self.entries = k.load(m.indptr, places)

    def sample(self):
        """Adds up one weight of each thread of this device; `word` is the result for the next
        device barrier."""
        k, m = self.k, self.m
        threads = k.ctas * k.threads
        k.store(self.sums, k.thread, 0.0, mask=k.thread < 2)
        k.sync()
        at = (k.cta * k.threads + k.thread) * k.maximum(self.entries // threads, 1)
        valid = self.chosen & k.below(at, self.entries)
        weight = k.load(m.weights, at, mask=valid, other=-1.0, cache="nc")
        fine = (weight >= 0.0) & (weight < k.bits(k.const(0x7F800000), "f32"))
        total = k.warp_sum(k.where(fine, weight, 0.0))
        count = k.cast(k.popc(k.ballot(fine)), "f32")
        for j, x in enumerate((total, count)):
            k.reduce("add", self.sums, j, x, mask=k.lane == 0)
        k.sync()
        two = k.thread < 2
        k.store(m.parts, k.thread * k.ctas + k.cta, k.load(self.sums, k.thread, mask=two), mask=two)

    def word(self):
        """The width that the weights of this device suggest, as bits; called by one warp after
        `sample`."""
        k, m = self.k, self.m
        sums = [k.sum_words(m.parts, j * k.ctas, k.ctas) for j in range(2)]
        entries = k.maximum(k.cast(self.entries, "f32"), 1.0) * float(k.devices)
        over = k.minimum(k.maximum(k.const(4.0 * self.n, "f32") / entries, LOWEST), HIGHEST)
        return k.bits(sums[0] / k.maximum(sums[1], 1.0) * over, "i32")

    def start(self, barrier):
        """The width of the first round, after a device barrier whose payload word 0 was `word`."""
        k = self.k
        mean = barrier.total(0, k.bits) / k.const(float(k.devices), "f32")
        return k.where(self.chosen, mean, self.given)

    def bound(self, start, doublings, least):
        """The label up to which a round relaxes; least: the least pending label."""
        k = self.k
        times = k.bits((doublings + 127) << 23, "f32")
        return k.bits(k.bits(least, "f32") + start * times, "i32")

    def next(self, doublings, edges):
        """Doublings of the width for the next round; edges: how many the last one relaxed on all
        devices, float32."""
        k = self.k
        small = self.chosen & (edges < float(SMALL * k.devices * k.ctas * k.threads))
        fewer = k.maximum(doublings - 2, 0)
        return k.where(small, k.minimum(doublings + 1, DOUBLINGS), fewer)
