"""Results by vertex, whole on every device, from values by place."""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false


class Names:
    """`m.names`: the vertex at every place of all devices.

    places: of each device; n: vertices, and the name of a place that has none.
    """

    def __init__(self, k, m, places, n):
        self.k, self.m, self.places, self.n = k, m, places, n
        self.first = k.device * places

    def own(self, i):
        """The vertex at place i of this device."""
        return self.k.load(self.m.names, self.first + i, cache="nc")

    def tell_all(self, a, i, *values):
        """Stores what belongs to the places from i on of this device in `a` on every device."""
        for d in range(self.k.devices):
            self.k.store_vec(self.k.on(a, d), self.first + i, values)

    def give(self, whole, values):
        """whole[vertex at v] = its value for the places v of all devices.

        values(j): those of the places 4 j .. 4 j + 3, which are under way together.
        """
        k = self.k

        def four(j):
            vertices = k.load_vec(self.m.names, 4 * j, 4, cache="nc")
            for vertex, value in zip(vertices, values(j), strict=True):
                k.store(whole, vertex, value, mask=k.below(vertex, self.n))

        k.spread(self.places * k.devices // 4, four)
