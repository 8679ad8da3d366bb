"""PageRank over the rows of several GPUs, all iterations in one launch on each.

    x <- d (x D^-1 A + dangling(x) p) + (1 - d) p

where A is symmetric, weights included: each device gathers z = x / strength over the rows of its
places, from a copy of z of all places, and writes the new z of its places into the copies on all
devices. Nothing is prepared. Rows are walked in the pieces of `rows/pieces.py`, by as many lanes as
suit their lengths; the warp that walked a piece then computes x and z of its whole rows, 32
consecutive rows at a time, because stores of 4 to 16 bytes to another GPU delayed everything else.
Rows that are cut follow after a grid barrier.

The kernel checks whether A is symmetric: the sum of a hash of (row, column, weight) over all
entries above the diagonal, less that of (column, row, weight) over those below, is 0 modulo 2^32 if
it is; for a matrix that is not, it is 0 by chance once in 2^32.

Cost of an iteration: 8 bytes and a gather an entry, 28 bytes a place and 4 over each link; a grid
barrier, a device barrier and a reduction over a CTA. One pass over the entries before the first.
Sums are added in a fixed order: results do not change from run to run, and all devices agree when
to stop.

Measured (two H200; one GPU, prepared): rmat21-22 5.2 ms a call (8.5), rmat24-22 46.2 (92.5),
rmat18-22 1.1 (1.3). Of an iteration of rmat21-22 230 us are the walk, 190 G gathers/s, and 20
barriers, cut rows and waiting for the slower device; the pass before takes 150. Without gathers the
walk takes 110.
"""

import math

import jax
import jax.numpy as jnp

from ..layouts.ragged import LIMIT
from ..rows.lanes import Lanes
from ..rows.merge_path import ByLength
from ..rows.pieces import RowsInPieces
from ..simt.device import extent
from ..simt.launch import launch
from ..simt.mesh import MeshBarrier, Vertices
from ..simt.primitives import CONTROL_WORDS
from .one_gpu import Limits

PAYLOAD_WORDS = 3  # of a barrier: L1 change, mass on vertices without edges, sum of the hashes
WARPS = 32
# Rows are sorted by length; above each bound the next shape is faster (H200, rmat 21).
SHAPE = ByLength(
    (
        (9, Lanes(1, 3, 2, ahead=True)),
        (48, Lanes(8, 3, 2, ahead=True)),
        (math.inf, Lanes(32, 1, 8, ahead=True, stream=True)),
    )
)
ROW_COST = 4  # cost of a row in units of an entry
PIECES, LEAST = 8, 1024  # pieces of a warp at most; rows and entries of a piece at least


def pagerank(
    indptr: jax.Array,
    indices: jax.Array,
    weights: jax.Array,
    positions: jax.Array,
    personalization: jax.Array,
    limits: Limits,
    *,
    axes: tuple[str, ...],
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """(scores float32[n], iterations int32, change float32, status int32, refused int32), the same
    on every device.

    weights float32[nse] >= 0. personalization float32[places]: p, whose sum over all devices is 1,
    also the start. refused 1: A is not symmetric, nothing was computed.
    """
    devices, places = jax.lax.axis_size(axes), personalization.shape[0]
    form, n = extent(), positions.shape[0]
    ctas, threads = form["ctas"], form["threads"]
    cost = ROW_COST if ROW_COST * places + indices.shape[0] < LIMIT else 1
    f32 = jnp.float32
    path, warps = cost * places + indices.shape[0], threads // 32
    pieces = min(max(path // (LEAST * ctas * warps), 1), PIECES) * ctas * warps
    out = launch(
        lambda k, m: _PageRank(k, m, places, n, cost, pieces).run(),
        {
            "indptr": indptr,
            "indices": indices,
            "weights": weights,
            "positions": positions,
            "personalization": personalization.astype(f32),
            **limits.operands(),
        },
        {
            **{name: (places, f32) for name in ("rank", "inverse")},
            "scores": (n, f32),
            **dict.fromkeys(("steps", "status", "refused"), ()),
            "change": (1, f32),
            "share": (2 * places * devices, f32),
            **RowsInPieces.workspace(places, pieces, 2, f32),
            "parted": (2 * ctas, f32),
        },
        shared_words=2 * SHAPE.shared_words(threads) + threads + 2 * WARPS + 160,
        more_control=MeshBarrier.control_words(devices, PAYLOAD_WORDS) + 1,
        name="pagerank_on_mesh",
        axes=axes,
    )
    return out["scores"], out["steps"], out["change"][0], out["status"], out["refused"]


class _Pass(RowsInPieces):
    """A pass over the entries of this device."""

    def __init__(self, k, m, places, cost, pieces):
        streams, zero = [m.indices, m.weights], k.const(0.0, "f32")
        super().__init__(k, m, pieces, places, streams, SHAPE, zero, cost)

    def combine(self, a, b):
        return a + b


class _PageRank(_Pass):
    """One launch."""

    def __init__(self, k, m, places, n, cost, pieces):
        super().__init__(k, m, places, cost, pieces)
        self.all_places, self.vertices = places * k.devices, Vertices(k, m, places, n)
        self.within = k.shared(2 * WARPS, "f32")
        self.barrier = MeshBarrier(k, m.control, PAYLOAD_WORDS)
        self.before = _Before(k, m, places, cost, pieces)
        self.left = CONTROL_WORDS + MeshBarrier.control_words(k.devices, PAYLOAD_WORDS)

    def run(self):
        k, m = self.k, self.m
        damping, tol = (k.load(m.knobs, j) for j in range(2))
        most, least = (k.load(m.limits, j) for j in range(2))
        together, lost = self._start()
        ok, _, lost = self._device_barrier(k.const(1), k.const(0.0, "f32"), lost)
        refused = k.cast(self.barrier.total(2) != 0, "i32")
        ok = ok & together

        def going(step, change, lost, ok):
            unsettled = (change > tol) | (step < least)
            return unsettled & (step < most) & (ok == 1) & (refused == 0)

        def step(i, change, lost, ok):
            copies = (i & 1) * self.all_places, self.all_places - (i & 1) * self.all_places
            together, *sums = self._step(*copies, damping, damping * lost + (1.0 - damping))
            ok, change, lost = self._device_barrier(i + 2, *sums)
            return i + 1, change, lost, ok & together

        infinity = k.bits(k.const(0x7F800000), "f32")
        steps, change, _, ok = k.while_(going, step, 0, infinity, lost, ok)
        ok = ok & self._finish(steps + 2)
        k.results(m, steps=steps, change=change, refused=refused)
        return ok

    def _start(self):
        """Computes x = p and its z; returns (ok of the barriers, this thread's part of the dangling
        mass)."""
        k, m = self.k, self.m
        self.find()
        (together,) = k.grid_barrier(m.control)

        def row(r, strength):
            rank = k.load(m.personalization, r, cache="nc")
            linked = strength > 0.0
            inverse = k.where(linked, k.const(1.0, "f32") / k.where(linked, strength, 1.0), 0.0)
            k.store(m.rank, r, rank)
            k.store(m.inverse, r, inverse)
            self._share(0, r, rank * inverse)
            return (k.where(linked, 0.0, rank),)

        walked, lost = self.before.each_row(row, k.const(0.0, "f32"))
        total = k.warp_sum(k.load(self.before.sum, k.thread))
        k.reduce("add", m.control, self.left, total, mask=k.lane == 0)
        return together & walked, lost

    def _finish(self, turn):
        """Writes the scores of all vertices, which are sent through `share`."""
        k, m, none = self.k, self.m, self.k.const(0.0, "f32")
        k.spread(self.n, lambda r: self._share(0, r, k.load(m.rank, r, cache="fresh")))
        ok, *_ = self._device_barrier(turn, none, none)
        self.vertices.write_by_vertex(m.scores, lambda place: k.load(m.share, place, cache="fresh"))
        return ok

    def _share(self, copy, r, share):
        self.vertices.broadcast(self.m.share, copy + r, share)

    def terms(self, fetched, places, masks, owners):
        k, (index, weights) = self.k, fetched
        valid = k.below(index, self.all_places) & masks
        return weights * k.load(self.m.share, k.behind(self.read, index) + index, mask=valid)

    def _step(self, read, write, damping, teleport):
        """Computes the new x and its z, from one copy of z into the other. Returns (ok of the
        barrier, this thread's parts of the L1 change and of the dangling mass)."""
        k, m, none = self.k, self.m, self.k.const(0.0, "f32")
        self.read = read

        def row(r, flow):
            old, p, inverse = (
                k.load(a, r, cache="fresh") for a in (m.rank, m.personalization, m.inverse)
            )
            new = damping * flow + teleport * p
            k.store(m.rank, r, new)
            self._share(write, r, new * inverse)
            return k.maximum(new - old, old - new), k.where(inverse == 0.0, new, 0.0)

        return self.each_row(row, none, none)

    def _device_barrier(self, turn, *parts):
        """A device barrier; returns (ok, *sums over all threads of all devices of `parts`)."""
        k, m = self.k, self.m
        for j, x in enumerate(parts):
            k.store(self.within, WARPS * j + k.warp, k.warp_sum(x), mask=k.lane == 0)
        k.sync()

        def cta():
            valid = k.lane < k.threads // 32
            for j in range(2):
                x = k.load(self.within, WARPS * j + k.lane, mask=valid)
                k.store(m.parted, j * k.ctas + k.cta, k.warp_sum(x), mask=k.lane == 0)

        k.if_(k.warp == 0, cta)

        def payload(device):
            sums = [k.sum_words(m.parted, j * k.ctas, k.ctas) for j in range(2)]
            return *sums, k.load(m.control, self.left, cache="fresh")

        ok = self.barrier.device_barrier(turn, payload)
        return ok, *(self.barrier.total(j, k.bits) for j in range(2))


class _Before(_Pass):
    """The pass before the first step: the strength of each row, and the sum of hashes that is 0 if
    A is symmetric; each thread has its part of that sum in shared memory."""

    def __init__(self, k, m, places, cost, pieces):
        super().__init__(k, m, places, cost, pieces)
        self.offset, self.all_places = k.device * places, places * k.devices
        self.sum = k.shared(k.threads)
        k.store(self.sum, k.thread, 0)

    def row(self, r, mask):
        return (self.offset + r,)

    def terms(self, fetched, places, masks, owners):
        k = self.k
        total, (v, w), (u,) = k.load(self.sum, k.thread), fetched, owners()
        loaded = k.total(w) >= 0.0  # depends on all weights
        u = k.where(loaded, k.behind(u, v), 0)
        valid = k.below(v, self.all_places) & masks
        high, low = k.maximum(u, v), k.minimum(u, v)
        x = (high * -1640531535) ^ (low * -2048144777 + k.bits(w, "i32"))
        for multiplier in (739982445, 695872825):
            x = (x ^ k.shr(x, 15)) * multiplier
        x = k.where(u < v, x, k.where(u > v, -x, 0))
        k.store(self.sum, k.thread, k.total(k.where(valid, x, 0), total))
        return k.where(valid, w, 0.0)
