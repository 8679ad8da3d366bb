"""The width of a round of `rounds.py`: it relaxes labels up to the least pending one + width."""

# Width over the mean length: 4 / mean degree within these bounds.
LOWEST, HIGHEST = 0.1, 3.0
DOUBLINGS = 60
SMALL = 8  # edges a thread: a round with fewer is bound by latency


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
