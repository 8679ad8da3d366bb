"""Connected components over the rows of several GPUs, in one launch on each.

Every device has a forest over all places and joins its trees by the edges of its own rows, as
`one_gpu.py` does. Twice the devices tell each other their forests, whole, and each joins to its
own what the others found: after the sampled rounds, so that all skip the same largest tree, and at
the end. Then every tree takes the least vertex of its places for a name.

Cost: the work of one device over the edges divided by their number; per device 8 bytes a place over
each link and as many more links of the forest, 3 meetings.
"""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

import jax

from ..rows.by_vertex import Vertices
from ..simt.barrier import MeshBarrier
from ..simt.device import resident_ctas
from ..simt.launch import launch
from .one_gpu import SAMPLED, SHARED, Forest

NO_VERTEX = 2**31 - 1


def components(
    indptr: jax.Array,
    indices: jax.Array,
    positions: jax.Array,
    *,
    axes: tuple[str, ...],
    n: int,
    symmetric: bool,
    ctas: int | None = None,
    threads: int = 1024,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """(labels int32[n], status int32): the least vertex of the weakly connected component.

    Of this device: indptr int32[places + 1] and indices int32[nse] of the rows of its places, by
    places of all devices; positions int32[n], the same on all: the place of each vertex. axes: all
    axes of the mesh in their order. symmetric: every edge is there in both directions. Labels are
    those of all vertices, on every device. status 0: right; otherwise a device or a CTA waited in
    vain.
    """
    devices, places = jax.lax.axis_size(axes), indptr.shape[0] - 1
    everyone = places * devices

    def kernel(k, m):
        ok = _Exchange(k, m, places, everyone, n).run(symmetric)
        k.tell(m.status, ok)

    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices, "positions": positions},
        {
            "least_vertex": n,
            "status": 1,
            "labels": everyone,
            "told": devices * everyone,
            "least": everyone,
        },
        ctas=ctas or resident_ctas(),
        threads=threads,
        shared_words=SHARED + 64,
        more_control=MeshBarrier.control_words(devices, 1),
        name="components_on_mesh",
        axes=axes,
        interpret=interpret,
    )
    return out["least_vertex"], out["status"][0]


class _Exchange(Forest):
    """One launch."""

    def __init__(self, k, m, places, everyone, n):
        super().__init__(k, m, everyone, places, k.device * places)
        self.vertices, self.barrier = Vertices(k, m, places, n), MeshBarrier(k, m.control, 1)

    def run(self, symmetric):
        k, m = self.k, self.m

        def clear(v):
            k.store(self.labels, v, v)
            k.store(m.least, v, NO_VERTEX)

        k.spread(self.n, clear)
        k.grid_barrier(self.control)
        self.plant()
        self._settle()
        for r in range(SAMPLED):
            self.hook(r)
            self._settle()
        skip, turn = k.const(-1), 1
        if symmetric:
            self._join(turn)
            skip, turn = self.largest(), turn + 2
        self.rest(skip)
        self._settle()
        ok = self._join(turn)
        self._name()
        return ok

    def _settle(self):
        k = self.k
        k.grid_barrier(self.control)
        self.compress()
        k.grid_barrier(self.control)

    def _join(self, turn):
        """Joins what all devices have joined; two meetings."""
        k, told = self.k, self.m.told
        self._send()
        ok = self._device_barrier(turn)

        def one(v):
            for s in range(k.devices):
                label = k.load(told, s * self.n + v, cache="fresh")
                self.link(v, label, (label != v) & (k.device != s))

        k.spread(self.n, one)
        # nobody writes what is told here before all have read it
        ok = ok & self._device_barrier(turn + 1)
        self.compress()
        return ok & k.grid_barrier(self.control)[0]

    def _send(self):
        k, told = self.k, self.m.told

        def four(j):
            labels = k.load_vec(self.labels, 4 * j, 4, cache="fresh")
            for d in range(k.devices):
                k.store_vec(k.on(told, d), k.device * self.n + 4 * j, labels)

        k.spread(self.n // 4, four)

    def _device_barrier(self, turn):
        return self.barrier.device_barrier(self.k.const(turn), lambda device: (0,))

    def _name(self):
        """The least vertex of every tree, then of every vertex; few trees have most of them."""
        k, m = self.k, self.m

        def put(root, name):
            better = k.load(m.least, root, mask=name < NO_VERTEX, cache="fresh") > name
            k.reduce("min", m.least, root, name, mask=better & (name < NO_VERTEX))

        def one(v, root, least):
            label = k.load(self.labels, k.load(m.positions, v, cache="nc"), cache="fresh")
            k.if_(label != root, lambda: put(root, least))
            return label, k.where(label == root, k.minimum(least, v), v)

        root, least = k.spread(self.vertices.n, one, 0, NO_VERTEX)
        first = k.shfl(root, 0)
        with_first = k.warp_fold(k.minimum, k.where(root == first, least, NO_VERTEX))
        put(root, k.where(root != first, least, k.where(k.lane == 0, with_first, NO_VERTEX)))
        k.grid_barrier(self.control)

        def least(place):
            return k.load(m.least, k.load(self.labels, place, cache="fresh"), cache="fresh")

        self.vertices.give(m.least_vertex, least)
