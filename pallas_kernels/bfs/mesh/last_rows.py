"""Where the places with edges end on each device, for `any_degree.py`: nobody looks further."""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false


class LastRows:
    """`end` of each device, a multiple of 32: rows from there on are empty.

    Rows come sorted by length, so what follows has no edge at all where the graph is symmetric:
    half of the vertices of R-MAT graphs. Any other order of the rows is right too, and gains less.
    """

    def __init__(self, k, c, m):
        self.k, self.c, self.m = k, c, m
        self.ends = k.shared(k.devices)

    def find(self, source, word):
        """One warp: adds the end of this device to a word of control; source is a place before."""
        k, c, indptr = self.k, self.c, self.m.indptr
        if not c.symmetric:  # a row without entries may be a column with some
            k.reduce("add", self.m.control, word, c.n, mask=k.lane == 0)
            return
        entries = k.load(indptr, c.n, cache="nc")

        def split(low, high):
            """The first row after which there are no entries lies in low .. high, by 32 guesses."""
            step = (high - low + 31) // 32
            guess = k.minimum(low + k.lane * step, high)
            none = k.ballot(k.load(indptr, guess, cache="nc") == entries)
            at = k.where(none == 0, 32, k.ctz(k.where(none == 0, 1, none)))
            found = k.minimum(low + at * step, high)
            return k.where(at == 0, low, k.minimum(low + (at - 1) * step + 1, high)), found

        _, end = k.while_(lambda low, high: low < high, split, 0, c.n)
        end = (k.maximum(end, source + 1) + 31) & -32
        k.reduce("add", self.m.control, word, end, mask=k.lane == 0)

    def fill(self, barrier, j):
        """After a meeting whose word j tells the end of each device; that of this one."""
        k = self.k
        mine = k.thread < k.devices
        end = k.load(barrier.heard, k.thread * barrier.words + j, mask=mine)
        k.store(self.ends, k.thread, end, mask=mine)
        k.sync()
        return self.of(k.device)

    def of(self, device):
        """The end of a device."""
        return self.k.load(self.ends, device)
