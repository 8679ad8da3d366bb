"""Tables of the heads of one row in shared memory, made and read by a team: a CTA or a warp.

A table has a bit for each vertex where these fit (Bisson, Fatica, "High performance exact triangle
counting on GPUs", IEEE TPDS 28, 2017), else a word for each head, by a hash (Pandey et al., "TRUST:
triangle counting reloaded on GPUs", IEEE TPDS 32, 2021).
"""

from typing import Any, NamedTuple

SPARE = 8  # words of a hash table for each head, while they are few
EMPTY = -1
MIX = 0x9E3779B1


class Table(NamedTuple):
    """The hash table of a row: its words but one, and the shift of a hash."""

    last: Any
    shift: Any


class Tables:
    """The tables of one team; `heads` are of global memory.

    threads, warps: (number of this one, of all) in the team. sync: waits for all of them. table:
    (words of shared memory, the first of the table, logarithm of its words at most); None for the
    logarithm: a bit for each vertex.
    """

    def __init__(self, k: Any, heads: Any, threads: Any, warps: Any, sync: Any, table: Any):
        self.k, self.heads, self.threads, self.warps, self.sync = k, heads, threads, warps, sync
        self.words, self.at, self.log = table
        # heads that go through the table together, at most
        self.most = 2**31 - 1 if self.log is None else 1 << (self.log - 1)

    def _each(self, size, f):
        """f(i) for i = 0 .. size - 1, then a barrier of the team."""
        thread, threads = self.threads
        self.k.for_(thread, size, threads, f)
        self.sync()

    def clear(self, words):
        """Clears the bits of all vertices."""
        self._each(words, lambda i: self.k.store(self.words, self.at + i, 0))

    def fill(self, begin, size) -> Table:
        """Makes the table of some heads."""
        k = self.k

        def set_bit(e):
            w = k.load(self.heads, begin + e, cache="nc")
            k.reduce("or", self.words, self.at + k.shr(w, 5), k.bit(w))

        if self.log is None:
            self._each(size, set_bit)
            return Table(k.const(0), k.const(0))
        log = k.shr(k.bits(k.cast(size * SPARE, "f32"), "i32"), 23) - 126  # 2^log > size SPARE
        log = k.minimum(log, self.log)
        table = Table((k.const(1) << log) - 1, 32 - log)
        self._each(table.last + 1, lambda i: k.store(self.words, self.at + i, EMPTY))

        def insert(e):
            w = k.load(self.heads, begin + e, cache="nc")

            def put(slot):
                return k.atomic_cas(self.words, self.at + slot, EMPTY, w)

            def next_(slot, before, tries):
                slot = (slot + 1) & table.last
                return slot, put(slot), tries + 1

            def going(slot, before, tries):
                return (before != EMPTY) & (before != w) & (tries <= table.last)

            slot = k.shr(w * MIX, table.shift)
            k.while_(going, next_, slot, put(slot), 0)

        self._each(size, insert)
        return table

    def empty(self, begin, size):
        """Takes the bits of these heads away; a hash table is emptied when it is made."""
        k = self.k
        if self.log is not None:
            return

        def one(e):
            w = k.load(self.heads, begin + e, cache="nc")
            k.store(self.words, self.at + k.shr(w, 5), 0)

        self._each(size, one)

    def has(self, heads, valid, table: Table):
        """Whether each of these vertices is in the table. Called by whole warps, whose lanes search
        a hash table until all are through, so that they stay together."""
        k = self.k
        if self.log is None:
            words = k.load(self.words, self.at + k.shr(heads, 5), mask=valid)
            return (k.shr(words, heads & 31) & 1) != 0

        def read(slots, masks):
            return k.load(self.words, self.at + slots, mask=masks, other=EMPTY)

        def searching(words):
            return (words != heads) & (words != EMPTY)

        def going(tries, slots, words):
            return k.any(searching(words)) & (tries <= table.last)

        def next_(tries, slots, words):
            some, slots = searching(words), (slots + 1) & table.last
            return tries + 1, slots, k.where(some, read(slots, some), words)

        slots = k.shr(heads * MIX, table.shift)
        return k.while_(going, next_, 0, slots, read(slots, valid))[2] == heads
