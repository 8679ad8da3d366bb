"""Bitmap of the visited places of all devices, which a pull level of `any_degree.py` reads and
writes."""

from typing import Any

from ..bottom_up import Copies
from .levels import FAR


class OnMesh(Copies):
    """Two copies of the visited bits of all places, on every device.

    A device computes the words of its own places and stores them on all devices. `here` and `there`
    are the offsets of the copy that is read and of the copy that is written; `far` is the offset of
    this device's words in a copy.
    """

    def __init__(self, k, c: Any, m, half):
        super().__init__(k, c, m, half)
        self.levels, all_words = m.levels, c.all_places // 32
        self.ends, self.far = c.all_places, k.device * (all_words // k.devices)
        self.here, self.there = (h * all_words for h in (half, half ^ 1))

    def old(self, w, mask):
        return self.k.load(self.bits, self.here + self.far + w, mask=mask)

    def put(self, w, word, mask):
        at = self.there + self.far + w
        changed = self.k.load(self.bits, at, mask=mask, other=0, cache="fresh") != word
        self.everywhere(at, word, mask & changed)

    def of_levels(self, w0):
        """Word w0 + lane of this device, one a lane: bits of the places that have a level."""
        k, m, lane = self.k, self.levels, self.k.lane
        places = [w0 * 32 + 128 * j + 4 * lane for j in range(8)]
        levels = [k.load_vec(m, v, 4, mask=v < self.c.n, other=FAR, cache="fresh") for v in places]
        mine = k.const(0)
        for j, four in enumerate(levels):
            bits = [k.where(level == FAR, 0, 1 << i) for i, level in enumerate(four)]
            word = k.union(bits) << ((lane & 7) * 4)
            for d in (1, 2, 4):  # each of eight lanes has four bits of a word
                word = word | k.shfl_xor(word, d)
            mine = k.where(k.shr(lane, 2) == j, k.shfl(word, (lane & 3) * 8), mine)
        return mine

    def everywhere(self, at, word, mask):
        """Stores a word in the copies of all devices."""
        for d in range(self.k.devices):
            self.k.store(self.k.on(self.bits, d), at, word, mask=mask)
