"""The push side of `bfs.py`: edges of the frontier, and letters to the devices of other places."""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

from ..bfs.top_down import append
from ..rows.flatten import flatten

LONG = 512  # edges of a mailed place that one warp pushes; more are shared by the CTA
LATER = 256  # such places a CTA keeps
NEW, EDGES, MAILED, OPENED = 1, 2, 5, 6  # words of sums; 0 and 3 are those of a Tail


class Inbox:
    """Letters of all devices to this one; low .. high - 1 of each came in the last level.

    Device s stores place number i that it mails here at letters[s * places + i]; it mails a place
    once, so there is room for all.
    """

    def __init__(self, k, c, m):
        self.k, self.c, self.m = k, c, m
        self.low, self.high = k.shared(k.devices), k.shared(k.devices)
        self.later, self.many = k.shared(2 * LATER), k.shared(1)
        for words in (self.low, self.high):
            k.store(words, k.thread, 0, mask=k.thread < k.devices)
        k.sync()

    def fill(self, barrier):
        """After a meeting whose third word tells how many letters there are by now."""
        k = self.k
        mine = k.thread < k.devices
        k.store(self.low, k.thread, k.load(self.high, k.thread, mask=mine), mask=mine)
        word = k.load(barrier.heard, k.thread * barrier.words + 2, mask=mine)
        k.store(self.high, k.thread, word, mask=mine)
        k.sync()

    def each(self, level, f, *carry):
        """carry = f(place, whether this letter was the first to reach it, *carry), all lanes of a
        warp present; claims `level` for each."""
        k, m = self.k, self.m
        warps = k.warp * k.ctas + k.cta, k.ctas * k.threads // 32
        for s in range(k.devices):
            low = k.load(self.low, s)
            first = low + s * self.c.n

            def letters(i, there, *carry, first=first):
                v = k.load(m.letters, first + i, mask=there, cache="fresh")
                won = k.atomic("min", m.levels, v, level, mask=there) > level
                return f(v, there & won, *carry)

            carry = k.deal(k.load(self.high, s) - low, warps, letters, *carry)
        return tuple(carry)

    def open(self, level):
        """Claims `level` for every place that was mailed; the edges are not looked at."""
        k = self.k
        opened, *_ = self.each(level, lambda v, won, count: count + k.cast(won, "i32"), 0)
        k.reduce("add", self.m.sums, OPENED, opened, mask=opened != 0)

    def send(self, place, device, mask):
        """Mails places to their devices; all lanes of the warp take part."""
        k, c, m = self.k, self.c, self.m
        for d in range(k.devices):
            votes = k.ballot(mask & (device == d))

            def some(d=d, votes=votes):
                count = c.mailed + d
                base = k.atomic("add", m.control, count, k.popc(votes), mask=k.lane == 0)
                at = k.device * c.n + k.shfl(base, 0) + k.lanes_below(votes)
                k.store(k.on(m.letters, d), at, place, mask=mask & (device == d))

            k.if_(votes != 0, some)


def push(k, c, m, s, warps, tail, queue, inbox):
    """Pushes the edges of the letters and of the queue: levels, letters, and (where `queue`) the
    next queue.
    """
    level = s.level + 1

    def edge(places, payloads, there, found, edges, mailed):
        (at,), (there,) = places, there
        del payloads
        v = k.load(m.indices, at, mask=there, other=c.everyone, cache="nc")
        there = there & k.below(v, c.everyone)
        device = v // c.n
        place, here = v - device * c.n, there & (device == k.device)
        new = here & (k.load(m.levels, place, mask=here) > level)
        start, end = k.row(m.indptr, place, new)
        new = new & (k.atomic("min", m.levels, place, level, mask=new) > level)
        k.if_(queue, lambda: append(k, c.span, tail, new, start, end, place))
        away = there & ~here
        word = k.shr(v, 5)
        away = away & (k.load(m.sent, word, mask=away, other=-1) & k.bit(v) == 0)
        away = away & (k.atomic("or", m.sent, word, k.bit(v), mask=away) & k.bit(v) == 0)
        k.if_(k.any(away), lambda: inbox.send(place, device, away))
        size = k.where(new, end - start, 0)
        return found + k.cast(new, "i32"), edges + size, mailed + k.cast(away, "i32")

    def chunk(i, mine, *counts):
        at = (s.cur * c.capacity + i) * 4
        start, end, _, _ = k.load_vec(m.queue, at, 4, mask=mine, cache="fresh")
        return flatten(k, start, end - start, (), edge, *counts, unroll=1)

    later, many = inbox.later, inbox.many
    k.store(many, 0, 0, mask=k.thread == 0)
    k.sync()

    def letter(v, won, opened, *counts):
        start, end = k.row(m.indptr, v, won)
        size = k.where(won, end - start, 0)
        at = k.atomic("add", many, 0, 1, mask=size > LONG)
        kept = (size > LONG) & (at < LATER)
        k.store_vec(later, at * 2, (start, end), mask=kept)
        size = k.where(kept, 0, size)
        return opened + k.cast(won, "i32"), *flatten(k, start, size, (), edge, *counts, unroll=1)

    def shared(i, *counts):
        """All warps of the CTA push the edges of one place."""
        start, end = k.load_vec(later, i * 2, 2)

        def stretch(at, *counts):
            return edge([at + k.lane], [()], [at + k.lane < end], *counts)

        return k.for_(start + k.warp * 32, end, k.threads, stretch, *counts)

    opened, *counts = inbox.each(s.level, letter, 0, 0, 0, 0)
    counts = k.deal(s.ranges, warps, chunk, *counts)
    k.sync()
    counts = k.for_(0, k.minimum(k.load(many, 0), LATER), 1, shared, *counts)
    for word, count in zip((OPENED, NEW, EDGES, MAILED), (opened, *counts), strict=True):
        total = k.warp_sum(count)
        k.reduce("add", m.sums, word, total, mask=(k.lane == 0) & (total != 0))
