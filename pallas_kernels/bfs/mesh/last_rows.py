"""Index of the last non-empty row on each device, so that scans of `any_degree.py` stop there."""


class LastRows:
    """`ends[d]` of each device d, a multiple of 32: its rows from there on are empty.

    Rows are sorted by falling length. In a symmetric graph the vertices of empty rows have no edge
    at all: half of the vertices of R-MAT graphs. Any other order of the rows gives right results
    too, and saves less.
    """

    def __init__(self, k, c, m):
        self.k, self.c, self.m = k, c, m
        self.ends = k.shared(k.devices)

    def find(self, source, word):
        """Called by one warp: adds the end of this device to a control word, which is 0 before. The
        end lies after place `source`, if that is not negative."""
        k, c, indptr = self.k, self.c, self.m.indptr
        if not c.symmetric:  # a vertex of an empty row may have edges into it
            k.reduce("add", self.m.control, word, c.n, mask=k.lane == 0)
            return
        entries = k.load(indptr, c.n, cache="nc")

        def split(low, high):
            """Narrows low .. high, where the empty rows at the end begin, by 32 guesses."""
            step = (high - low + 31) // 32
            guess = k.minimum(low + k.lane * step, high)
            none = k.ballot(k.load(indptr, guess, cache="nc") == entries)
            at = k.where(none == 0, 32, k.ctz(k.where(none == 0, 1, none)))
            found = k.minimum(low + at * step, high)
            return k.where(at == 0, low, k.minimum(low + (at - 1) * step + 1, high)), found

        _, end = k.while_(lambda low, high: low < high, split, 0, c.n)
        end = (k.maximum(end, source + 1) + 31) & -32
        k.reduce("add", self.m.control, word, end, mask=k.lane == 0)

    def receive(self, barrier, j):
        """Takes word j of each device's payload at the last barrier as its end; returns the end of
        this device."""
        k = self.k
        mine = k.thread < k.devices
        end = k.load(barrier.received, k.thread * barrier.words + j, mask=mine)
        k.store(self.ends, k.thread, end, mask=mine)
        k.sync()
        return self.of(k.device)

    def of(self, device):
        """The end of a device."""
        return self.k.load(self.ends, device)
