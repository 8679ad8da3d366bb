"""Groups of control words that rotate: each turn of a kernel's loop counts in its own group."""

from ..simt.primitives import Simt
from ..simt.typed import Array, Operand, Value

GROUPS = 4  # a power of two


class Rotation:
    """GROUPS groups of `words` control words from `first` on; turn t uses group t mod GROUPS.

    A turn ends with a grid barrier. All CTAs read its group at this barrier, and may still read it
    until they arrive at the next one. So turn t clears the group of turn t + 2: it was last read
    before the barrier that began turn t, and is next written after the one that ends turn t + 1.
    """

    def __init__(self, k: Simt, control: Array, first: int, words: int):
        self.k, self.control, self.first, self.words = k, control, first, words

    def group(self, turn: Value) -> Value:
        """Index of the first control word of a turn."""
        return self.first + (turn & (GROUPS - 1)) * self.words

    def clear(self, turn: Value) -> None:
        """Clears the group of turn + 2: called by all threads, at turn `turn`."""
        k = self.k
        mine = (k.cta == 0) & (k.thread < self.words)
        k.store(self.control, self.group(turn + 2) + k.thread, 0, mask=mine)


def report(k: Simt, control: Array, first: int, words: tuple[Operand, ...]) -> None:
    """What a CTA that worked alone reports to all: control words from `first` on."""
    for j, word in enumerate(words):
        k.store(control, first + j, word, mask=k.thread == 0)
