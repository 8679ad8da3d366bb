"""Results by vertex, whole on every device, from values by place."""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false


class Names:
    """The vertex at every place of all devices; `m` has `order`, of this device, and `names`.

    places: of each device; n: vertices, and the name of a place that has none.
    """

    def __init__(self, k, m, places, n):
        self.k, self.m, self.places, self.n = k, m, places, n
        self.first = k.device * places

    def tell(self):
        """Tells all devices the vertices of this one; they know them after a meeting."""
        k, m = self.k, self.m
        k.spread(self.places, lambda i: self.tell_all(m.names, i, k.load(m.order, i, cache="nc")))

    def tell_all(self, a, i, value):
        """Stores what belongs to place i of this device in `a` on every device."""
        for d in range(self.k.devices):
            self.k.store(self.k.on(a, d), self.first + i, value)

    def give(self, whole, value):
        """whole[vertex at v] = value(v) for the places v of all devices."""
        k = self.k

        def one(v):
            vertex = k.load(self.m.names, v, cache="fresh")
            k.store(whole, vertex, value(v), mask=k.below(vertex, self.n))

        k.spread(self.places * k.devices, one)
