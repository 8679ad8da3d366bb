"""Names numbered by NumPy, many in one call: a hash table of texts without an object each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from ...shapes import Int, Shaped

LINE_END = ord("\n")
PADDING = 8  # bytes that must follow a text
SHORT = 24  # bytes of a name that its row of the table holds
WIDE = 512  # bytes of a name that arrays hash and compare; of the rest of a longer one Python does
_FIRST = np.array([(1 << 8 * k) - 1 for k in range(8)] + [2**64 - 1], np.uint64)  # k bytes
_HALF = np.uint64(32)


class Names:
    """Distinct names, numbered in the order in which they are first met.

    The table has open addressing: all names of a call look at their slots in one pass, those that
    found another name there at the next slots in a second, and so on. A slot holds the number of a
    name, whose row is the length and the first bytes; of a name that is longer than `SHORT` the
    last of these are replaced by a hash of all.
    """

    def __init__(self):
        self.count = 0
        self.key = np.uint64(int.from_bytes(os.urandom(8), "little") | 1)
        self.slots = np.full(1 << 12, -1, np.int32)
        self.rows = np.zeros((0, 4), np.uint64)
        self.starts = np.zeros(1, np.int64)  # of each name in `text`, and of the next one
        self.text = np.zeros(0, np.uint8)  # a line a name

    def since(self, first: int) -> list[str]:
        """The names from number `first` on."""
        whole = self.text[self.starts[first] : self.starts[self.count]].tobytes()
        return whole.decode(errors="surrogatepass").split("\n")[:-1]

    def of_texts(self, names: Sequence[str]) -> Int[np.ndarray, " k"] | None:
        """The numbers of names; None where one has a line end."""
        text = "\n".join([*names, ""]).encode(errors="surrogatepass")
        data = np.frombuffer(text + bytes(PADDING), np.uint8)
        ends = np.flatnonzero(data == LINE_END)
        if len(ends) != len(names):
            return None
        return self.numbers(data, np.append(0, ends[:-1] + 1)[: len(ends)], ends)

    def numbers(
        self,
        data: Shaped[np.ndarray, " bytes"],
        starts: Int[np.ndarray, " k"],
        ends: Int[np.ndarray, " k"],
    ) -> Int[np.ndarray, " k"]:
        """(k,) int32, the numbers of the names at these places; those that are new are added.

        Args:
            data: uint8, `PADDING` bytes longer than the last place. No name has a line end.
        """
        known, lengths = self.count, ends - starts
        most = known + len(starts)
        # Until those that are new are found, each name here has a row, and its place in the text.
        self._grow(most, self.starts[known] + len(data))
        self.text[self.starts[known] :][: len(data)] = data
        begin = np.append(self.starts[:known], starts + self.starts[known])
        self.rows[known:most] = self._rows(data, starts, lengths)
        if 4 * most > 3 * len(self.slots):
            self.slots = np.full(2 << most.bit_length(), -1, np.int32)
            self._placed(0, known, begin)
        found, slots = self._placed(known, most, begin)
        first = np.flatnonzero(found == np.arange(known, most))
        number = np.arange(known, known + len(first), dtype=np.int32)
        self.slots[slots[first]] = number
        self.rows[number] = self.rows[known + first]
        self._add(data, starts[first], lengths[first])
        new = found >= known
        found[new] = number[np.searchsorted(first, found[new] - known)]
        return found

    def _grow(self, names: int, size: int) -> None:
        """Capacity for rows and text, doubled."""
        if names > len(self.rows):
            self.rows = np.append(self.rows, np.zeros((2 * names, 4), np.uint64), 0)
            self.starts = np.append(self.starts, np.zeros(2 * names, np.int64))
        if size > len(self.text):
            self.text = np.append(self.text, np.zeros(2 * size, np.uint8))

    def _placed(self, begin: int, end: int, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the first names that equal those in [begin, end), and their slots."""
        found, slots = np.empty((2, end - begin), np.int32)
        todo, mask = np.arange(begin, end, dtype=np.int32), len(self.slots) - 1
        rows = self.rows[begin:end]
        slot = (self._mixed(*rows.T) & np.uint64(mask)).astype(np.int32)
        while len(todo):
            free = np.flatnonzero(self.slots.take(slot) < 0)[::-1]
            self.slots[slot[free]] = todo[free]  # of several the last one stays: the first
            held = self.slots.take(slot)
            others = self.rows.take(held, 0)
            same = rows[:, 0] == others[:, 0]
            for k in range(1, 4):
                same &= rows[:, k] == others[:, k]
            long = np.flatnonzero(same & (rows[:, 0] > SHORT))
            if len(long):
                one, other = starts[held[long]], starts[todo[long]]
                same[long] = self._equal(one, other, rows[long, 0])
            at = todo[same] - begin
            found[at], slots[at] = held[same], slot[same]
            rest = np.flatnonzero(~same)
            todo, rows, slot = todo[rest], rows.take(rest, 0), (slot[rest] + 1) & mask
        return found, slots

    def _mixed(self, *words: np.ndarray) -> np.ndarray:
        made = np.zeros(len(words[0]), np.uint64)
        for word in words:
            made = (made ^ word) * self.key
            made ^= made >> _HALF
        return made

    def _rows(self, data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        made = np.zeros((len(starts), 4), np.uint64)
        made[:, 0] = lengths
        for k, which, part in words(data, starts, lengths):
            if k < SHORT:
                made[which, 1 + k // 8] = part
            else:
                made[which, 3] = self._mixed(made[which, 3], part)
        for k in np.flatnonzero(lengths > WIDE):
            whole = hash(data[starts[k] :][: lengths[k]].tobytes())
            made[k, 3] ^= np.uint64(whole & (2**64 - 1))
        return made

    def _equal(self, one: np.ndarray, other: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Whether the names of these lengths that start at two places of `text` are equal.

        Their rows are, and so are all bytes before the last that a row holds.
        """
        lengths, same = lengths.astype(np.int64) - SHORT + 8, np.ones(len(one), bool)
        one, other = one + SHORT - 8, other + SHORT - 8
        pairs = (words(self.text, starts, lengths) for starts in (one, other))
        for (_, which, a), (_, _, b) in zip(*pairs, strict=True):
            same[which] &= a == b
        for k in np.flatnonzero(lengths > WIDE):
            a, b = (self.text[starts[k] :][: lengths[k]] for starts in (one, other))
            same[k] = np.array_equal(a, b)
        return same

    def _add(self, data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> None:
        count = self.count + len(starts)
        bounds = self.starts[self.count] + np.append(0, np.cumsum(lengths + 1))
        self.starts[self.count : count + 1] = bounds
        at = np.arange(bounds[0], bounds[-1])
        self.text[at] = data[at + np.repeat(starts - bounds[:-1], lengths + 1)]
        self.text[bounds[1:] - 1] = LINE_END
        self.count = count


def words(
    data: np.ndarray, starts: np.ndarray, lengths: np.ndarray
) -> Iterator[tuple[int, slice | np.ndarray, np.ndarray]]:
    """(k, which names are longer than k bytes, their eight bytes from k on) for each eighth k.

    Up to `WIDE`; what follows the end of a name is 0.
    """
    at = np.ndarray(len(data) - PADDING + 1, "<u8", data, strides=(1,))
    for k in range(0, min(int(lengths.max(initial=0)), WIDE), 8):
        every = bool((lengths > k).all())
        which = slice(None) if every else np.flatnonzero(lengths > k)
        yield k, which, at[starts[which] + k] & _FIRST[np.minimum(lengths[which] - k, 8)]
