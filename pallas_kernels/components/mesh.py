"""Connected components over the rows of several GPUs, in one launch on each.

Every device has a forest over the places of all devices and joins its trees by the edges of its own
rows, as `one_gpu.py` does. Twice each device sends its whole forest to the others and links the
forests that it receives into its own: after the sampled rounds, so that all skip the same largest
tree, and at the end. Then the label of a tree becomes the least vertex of its places.

Cost: the work of one device divided by the number of devices; for each device 8 bytes a place over
each link, and as many more `link` operations; up to 4 device barriers. Measured (two H200):
rmat21-22 1.50 ms a call, one GPU 2.18.
"""

import jax

from ..simt.launch import launch
from ..simt.mesh import MeshBarrier, Vertices
from .one_gpu import LARGEST, SAMPLED, SHARED, Forest

NO_VERTEX = 2**31 - 1


def components(
    indptr: jax.Array,
    indices: jax.Array,
    positions: jax.Array,
    *,
    axes: tuple[str, ...],
    symmetric: bool,
) -> tuple[jax.Array, jax.Array]:
    """(labels int32[n], status int32): for every vertex the least vertex of its weakly connected
    component; the same on every device. symmetric: the graph has every edge in both directions.
    """
    devices, places = jax.lax.axis_size(axes), indptr.shape[0] - 1
    n = positions.shape[0]
    all_places = places * devices
    out = launch(
        lambda k, m: _Exchange(k, m, places, all_places, n).run(symmetric),
        {"indptr": indptr, "indices": indices, "positions": positions},
        {
            "least_vertex": n,
            "status": 1,
            "labels": all_places,
            "received": devices * all_places,
            "least": all_places,
        },
        shared_words=SHARED + 64,
        more_control=MeshBarrier.control_words(devices, 1),
        name="components_on_mesh",
        axes=axes,
    )
    return out["least_vertex"], out["status"][0]


class _Exchange(Forest):
    """One launch."""

    def __init__(self, k, m, places, all_places, n):
        super().__init__(k, m, all_places, places, k.device * places)
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
            self.sample()
            skip, turn = ~k.grid_barrier(self.control, [(self.control, LARGEST)])[1], turn + 2
        self.rest(skip, SAMPLED)
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
        """Exchanges the forests and links those of the others into this one; two device
        barriers."""
        k, received = self.k, self.m.received
        self._send()
        ok = self._device_barrier(turn)

        def one(v):
            for s in range(k.devices):
                label = k.load(received, s * self.n + v, cache="fresh")
                self.link(v, label, (label != v) & (k.device != s))

        k.spread(self.n, one)
        # no device may send again before all have read what they received
        ok = ok & self._device_barrier(turn + 1)
        self.compress()
        return ok & k.grid_barrier(self.control)[0]

    def _send(self):
        k, received = self.k, self.m.received

        def four(j):
            labels = k.load_vec(self.labels, 4 * j, 4, cache="fresh")
            for d in range(k.devices):
                k.store_vec(k.on(received, d), k.device * self.n + 4 * j, labels)

        k.spread(self.n // 4, four)

    def _device_barrier(self, turn):
        return self.barrier.device_barrier(self.k.const(turn), lambda device: (0,))

    def _name(self):
        """Finds the least vertex of every tree, then writes it for every vertex.

        A few trees have most of the vertices, so a thread combines runs of one root, and a warp its
        lanes, before the atomic minimum.
        """
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

        self.vertices.write_by_vertex(m.least_vertex, least)
