"""Bits of all places on every device: what a pull level of `any_degree.py` reads and writes."""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

from ...bfs.bottom_up import Copies


class OnMesh(Copies):
    """Copies of the bits of all places, on all devices; each looks after `words` of its own."""

    def __init__(self, k, c, state, half):
        super().__init__(k, c, state, half)
        all_words = c.everyone // 32
        self.ends, self.far = c.everyone, k.device * (all_words // k.devices)
        self.here, self.there = (h * all_words for h in (half, half ^ 1))

    def old(self, w):
        return self.k.load(self.bits, self.here + self.far + w, mask=w < self.c.words, other=-1)

    def put(self, w, words):
        # one access for all words, since the link carries few at a time
        k, lane = self.k, self.k.lane
        word = words[0]
        for j, more in enumerate(words[1:], 1):
            word = k.where(lane == j, more, word)
        mask = (lane < len(words)) & (w + lane < self.c.words)
        at = self.there + self.far + w + lane
        changed = k.load(self.bits, at, mask=mask, other=0, cache="fresh") != word
        self.everywhere(at, word, mask & changed)

    def everywhere(self, at, word, mask):
        """Stores a word in the copies of all devices."""
        for d in range(self.k.devices):
            self.k.store(self.k.on(self.bits, d), at, word, mask=mask)

    def taken(self, v):
        return super().taken(v + self.far * 32)

    def claim(self, v, mask):
        k, v = self.k, v + self.far * 32
        won = super().claim(v, mask)
        for d in range(k.devices):
            there = k.on(self.bits, d)
            k.reduce("or", there, self.there + k.shr(v, 5), k.bit(v), mask=won & (k.device != d))
        return won
