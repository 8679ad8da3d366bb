"""Bits of all places on every device: what a pull level of `any_degree.py` reads and writes."""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

import functools
import operator

from ..bottom_up import Copies
from .levels import FAR


class OnMesh(Copies):
    """Copies of the bits of all places, on all devices; each looks after `words` of its own."""

    def __init__(self, k, c, state, half):
        super().__init__(k, c, state, half)
        self.levels, all_words = state.levels, c.everyone // 32
        self.ends, self.far = c.everyone, k.device * (all_words // k.devices)
        self.here, self.there = (h * all_words for h in (half, half ^ 1))

    def old(self, w, mask):
        return self.k.load(self.bits, self.here + self.far + w, mask=mask)

    def put(self, w, word, mask):
        at = self.there + self.far + w
        changed = self.k.load(self.bits, at, mask=mask, other=0, cache="fresh") != word
        self.everywhere(at, word, mask & changed)

    def of_levels(self, w0):
        """A word a lane, w0 + lane of those looked after: who has a level."""
        k, m, lane = self.k, self.levels, self.k.lane
        places = [w0 * 32 + 128 * j + 4 * lane for j in range(8)]
        levels = [k.load_vec(m, v, 4, mask=v < self.c.n, other=FAR, cache="fresh") for v in places]
        mine = k.const(0)
        for j, four in enumerate(levels):
            bits = [k.where(level == FAR, 0, 1 << i) for i, level in enumerate(four)]
            word = functools.reduce(operator.or_, bits) << ((lane & 7) * 4)
            for d in (1, 2, 4):  # of a word each of eight lanes has four bits
                word = word | k.shfl_xor(word, d)
            mine = k.where(k.shr(lane, 2) == j, k.shfl(word, (lane & 3) * 8), mine)
        return mine

    def everywhere(self, at, word, mask):
        """Stores a word in the copies of all devices."""
        for d in range(self.k.devices):
            self.k.store(self.k.on(self.bits, d), at, word, mask=mask)
