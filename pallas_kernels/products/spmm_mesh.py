"""Sparse matrix times dense matrix over the rows of several GPUs, one launch on each.

    y[i, c] = combine over the entries j of row i of mul(A[i, j], x[j, c])

`spmm`, with the same x on all devices: the product of one device (`products/spmm.py`), except that
a row of the result is stored at its vertex in the memory of every device while other rows are being
computed. So no result is gathered or permuted afterwards. Rows are sorted by length. CTAs alternate
between pieces of long and of short rows, so that the stores spread over the whole launch (otherwise
it takes 0.5 ms longer than 2.1). Cost: the work of one device over its own rows; over each link 4 k
bytes for each of them, overlapped with that work; the last CTA of a device waits for the last ones
of the others.

`row_sharded_spmm`, with x sharded like the result: each device has the rows of x, of A and of y of
its own places. Only x is sent, in chunks of columns: the first CTAs of a launch store their rows of
the next chunk in the memory of the other devices while the other CTAs multiply by the current one.
Local rows of x are read in place, and each entry selects the array that it reads: loading from both
would take twice the registers and 1 ms of 3.3. There is a launch for each chunk, and one that sends
the first chunk, so any number of CTAs is right; later launches of a program cost little
(benchmarks/NOTES.md, "One launch on each of several GPUs").

Cost: the work of one device over its own rows; over each link 4 bytes for each column of the rows
of x, overlapped with that work except for the first chunk; a device barrier a chunk. Memory: two
chunks of the rows of the other devices. Two H200, R-MAT 20, 128 columns: 2.2 to 2.3 ms, of which
0.3 are sending the first chunk and 0.2 selecting; 1.7 if all rows are in one array and nothing is
sent (one GPU 3.1).
"""

import dataclasses

import jax
import jax.numpy as jnp

from ..rows.columns import Job, Product, Tile
from ..simt.device import grid_now, most_ctas, resident_ctas
from ..simt.launch import launch
from ..simt.mesh import MeshBarrier
from ..simt.primitives import CONTROL_WORDS
from ..simt.scalar_jaxpr import ScalarSemiring, uses
from ..simt.typed import each
from .spmm import LEAST, THREADS, ctas_for, tile_for

CHUNK = 64  # columns of a chunk
LOCAL = 2**30  # added to the numbers of local rows of x; no array has so many places
SENDERS = 64  # CTAs of a launch that send
AHEAD = 4  # vectors that a thread has in flight


def spmm(
    indptr: jax.Array,
    indices: jax.Array,
    data: jax.Array,
    x: jax.Array,
    names: jax.Array,
    *,
    axes: tuple[str, ...],
    semiring: ScalarSemiring,
) -> tuple[jax.Array, jax.Array]:
    """(y[n, k], status int32), the same on every device.

    y[i, c] = combine over the entries j of row i of mul(A[i, j], x[j, c]); k > 0.

    x[n, k]: the same on all; data[nse] and x are float32 or int32, n k < 2^31. names
    int32[places * devices], the same on all: the vertex at each place, n: none.
    """
    devices, places = jax.lax.axis_size(axes), indptr.shape[0] - 1
    n, width = x.shape
    grid = grid_now()
    tile, threads = tile_for(width), grid.threads or THREADS
    tiles = -(-width // (tile.lanes * tile.words))
    groups = threads // tile.lanes
    work = -(-(places + indices.shape[0]) // (LEAST * groups))
    ctas = grid.ctas or most_ctas(work, threads, tile.waves)
    parts = tiles * ctas * groups * 2 * tile.lanes * tile.words
    more = tiles * ctas * groups
    job = Job(places, width, n, ctas, tile, semiring, mixed=True)
    out = launch(
        lambda k, m: _OnMesh(k, m, job, n, more).run(),
        {"indptr": indptr, "indices": indices, "data": data, "x": x.reshape(-1), "names": names},
        {"y": (n * width, semiring.dtype), "parts": (parts, semiring.dtype), "status": 1},
        ctas=ctas * tiles,
        threads=threads,
        shared_words=MeshBarrier.shared_words(1) + 16,
        more_control=more + MeshBarrier.control_words(devices, 1),
        name="spmm_on_mesh",
        axes=axes,
    )
    return out["y"].reshape(n, width), out["status"][0]


class _OnMesh(Product):
    """One launch."""

    def __init__(self, k, m, job, vertices, used):
        super().__init__(k, m, job)
        self.vertices = vertices
        self.barrier = MeshBarrier(k, m.control, 1, first=CONTROL_WORDS + used)

    def run(self):
        super().run()
        self.barrier.depart(self.k.const(1), self.g.status)

    def _store(self, r, acc, mask):
        k, width = self.k, self.job.width
        vertex = k.load(self.g.names, k.device * self.job.n + r, mask=mask, cache="nc")
        mask = mask & k.below(vertex, self.vertices) & self.inside
        acc = self.fold.result(acc)
        for d in range(k.devices):
            y = k.on(self.g.y, d)
            for j in range(0, len(acc), 4):
                at = vertex * width + self.column + j
                k.store_vec(y, at, acc[j : j + 4], mask=mask)


def chunk_for(width: int) -> Tile:
    """How a group of lanes takes the columns of a chunk of rows of x of `width` words."""
    tile = tile_for(width)
    return dataclasses.replace(tile, lanes=min(tile.lanes, max(1, CHUNK // tile.words)))


def row_sharded_spmm(
    indptr: jax.Array,
    indices: jax.Array,
    data: jax.Array,
    x: jax.Array,
    needed: jax.Array,
    *,
    axes: tuple[str, ...],
    semiring: ScalarSemiring,
) -> tuple[jax.Array, jax.Array]:
    """(y[places, k] of this device, status int32); k > 0.

    x[places, k]: the rows of x of this device's places. needed int32: no entry of any device has a
    column among these places from this one on. data[nse] and x are float32 or int32; a chunk of the
    rows of the other devices, and x, have less than 2^31 words.
    """
    devices = jax.lax.axis_size(axes)
    places, width = x.shape
    grid = grid_now()
    tile, threads = chunk_for(width), grid.threads or THREADS
    columns = tile.lanes * tile.words
    groups = threads // tile.lanes
    ctas = grid.ctas or ctas_for((places + indices.shape[0]) / groups, threads, tile, 1)
    job = Job(places, width, places * devices, ctas, tile, semiring)
    operands = {
        "indptr": indptr,
        "indices": indices,
        "data": data,
        "x": x.reshape(-1),
        "needed": jnp.reshape(needed, 1),
        "me": jax.lax.axis_index(axes).astype(jnp.int32).reshape(1),
    }
    capacity = max(devices - 1, 1) * places * columns, x.dtype
    sent = {"next": capacity, "status": 1}
    met = MeshBarrier.control_words(devices, 1)

    def start(k, m):
        _Chunk(k, m, job, devices, k.ctas, 0).send_first()

    many = ctas if grid.interpret else 2048 // threads * resident_ctas()
    out = launch(
        start,
        {name: operands[name] for name in ("x", "needed", "me")},
        sent,
        ctas=many,
        shared_words=MeshBarrier.shared_words(1) + 16,
        more_control=job.ctas * groups + met,
        name="row_sharded_spmm_first",
        axes=axes,
        threads=threads,
    )
    status, y = out["status"][0], None
    for c in range(-(-width // columns)):
        last = (c + 1) * columns >= width
        first = 0 if last else SENDERS

        def multiply(k, m, c=c, first=first):
            _Chunk(k, m, job, devices, first, c).run()

        written = {"parts": (job.ctas * groups * 2 * columns, semiring.dtype)}
        written |= {} if last else sent
        written |= {"y": (places * width, semiring.dtype)} if y is None else {}
        out = launch(
            multiply,
            operands | {"chunk": out["next"]},
            written,
            inout=None if y is None else {"y": y},
            ctas=first + job.ctas,
            shared_words=MeshBarrier.shared_words(1) + 16,
            more_control=job.ctas * groups + met,
            name="row_sharded_spmm",
            axes=() if last else axes,
            threads=threads,
        )
        y, status = out["y"], status if last else jnp.maximum(status, out["status"][0])
    return out["y"].reshape(places, width), status


class _Chunk(Product):
    """One launch: the first CTAs send chunk c + 1, the others multiply by chunk c."""

    def __init__(self, k, m, job, devices, senders, c):
        super().__init__(k, m, job)
        tile = job.tile
        self.devices, self.senders, self.c = devices, senders, c
        self.columns = tile.lanes * tile.words
        self.me = k.load(m.me, 0)
        self.group = self._group(k.cta - senders)
        self.before, self.column = 0, c * self.columns + self.member * tile.words
        self.inside = self.column < job.width

    def run(self):
        k = self.k
        if not self.senders:
            super().run()
            return
        sends = k.cta < self.senders
        k.if_(sends, lambda: self._send(self.c + 1))
        k.if_(~sends, super().run)
        self._leave()

    def send_first(self):
        self._send(0)
        self._leave()

    def _leave(self):
        k = self.k
        barrier = MeshBarrier(k, self.g.control, 1, first=CONTROL_WORDS + self.groups)
        barrier.depart(k.const(1), self.g.status)

    def _send(self, c):
        """Stores chunk c of the rows of x of this device in the memory of the others."""
        k, job, words = self.k, self.job, self.job.tile.words
        vectors = self.columns // words
        total = k.minimum(k.load(self.g.needed, 0), job.n) * vectors
        workers = self.senders * k.threads

        def some(i0):
            at = [i0 + j * workers for j in range(AHEAD)]
            valid, loaded = [], []
            for i in at:
                row, column = i // vectors, (i % vectors) * words + c * self.columns
                valid.append((i < total) & (column < job.width))
                source = row * job.width + column
                loaded.append(k.load_vec(self.g.x, source, words, mask=valid[-1], cache="nc"))
            for d in range(self.devices):
                first = (self.me - k.where(self.me > d, 1, 0)) * (job.n * self.columns)
                for i, values, mask in zip(at, loaded, valid, strict=True):
                    mine = mask & (self.me != d)
                    k.store_vec(k.on(self.g.next, d), first + i * words, values, mask=mine)

        k.for_(k.cta * k.threads + k.thread, total, workers * AHEAD, some)

    def _row_of(self, j):
        """Number of row j of x: LOCAL + its row on this device, or its row in the chunk; -1:
        none."""
        k, places = self.k, self.job.n
        device = j // places
        here = LOCAL + j - device * places
        valid = j - k.where(device > self.me, places, 0)
        return k.where(j < 0, -1, k.where(device == self.me, here, valid))

    def _row(self, j, mask):
        if not uses(self.job.semiring.mul, 1):
            return [None] * self.size
        return self._words(j, mask)

    @each
    def _words(self, j, mask):
        k, words = self.k, self.job.tile.words
        own = j >= LOCAL
        here = (j - LOCAL) * self.job.width + self.column
        valid = j * self.columns + self.member * words
        x = k.either(own, self.g.x, self.g.chunk)
        return k.load_vec(x, k.where(own, here, valid), words, mask=mask, cache="nc")
