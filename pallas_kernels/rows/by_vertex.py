"""Places of vertices on a mesh, and results by vertex from values by place."""

from collections.abc import Callable
from typing import Any

from ..simt.primitives import Simt
from ..simt.typed import Array, Value, one_by_one

UNROLL = 3  # groups of four vertices in flight a thread, which waits for two dependent accesses


class Vertices:
    """Uses `m.positions`, int32[n]: the place of every vertex among those of all devices.

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
