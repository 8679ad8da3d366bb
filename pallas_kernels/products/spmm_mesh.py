"""Sparse matrix times dense matrix over the rows of several GPUs, one launch on each.

The product of one device (`products/spmm.py`), except that a row of the result is stored at its
vertex in the memory of every device while other rows are being computed. So no result is gathered
or permuted afterwards.

Rows are sorted by length. CTAs alternate between pieces of long and of short rows, so that the
stores spread over the whole launch (otherwise it takes 0.5 ms longer than 2.1).

Cost: the work of one device over its own rows; over each link 4 k bytes for each of them,
overlapped with that work; the last CTA of a device waits for the last ones of the others.
"""

import jax

from ..rows.columns import Job, Product
from ..simt.barrier import MeshBarrier
from ..simt.device import DEFAULT_GRID, Grid, most_ctas
from ..simt.launch import launch
from ..simt.primitives import CONTROL_WORDS
from ..simt.scalar_jaxpr import ScalarSemiring
from .spmm import LEAST, THREADS, tile_for


def spmm(
    indptr: jax.Array,
    indices: jax.Array,
    data: jax.Array,
    x: jax.Array,
    names: jax.Array,
    *,
    axes: tuple[str, ...],
    semiring: ScalarSemiring,
    grid: Grid = DEFAULT_GRID,
) -> tuple[jax.Array, jax.Array]:
    """(y[n, k], status int32), the same on every device.

    y[i, c] = combine over the entries j of row i of mul(A[i, j], x[j, c]); k > 0.

    x[n, k]: the same on all; data[nse] and x are float32 or int32, n k < 2^31. names
    int32[places * devices], the same on all: the vertex at each place, n: none.
    """
    devices, places = jax.lax.axis_size(axes), indptr.shape[0] - 1
    n, width = x.shape
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
        **Grid(ctas * tiles, threads, grid.interpret).form(),
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
