"""The push side of `any_degree.py`: edges of the frontier, and letters to other devices."""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

from ...bfs.top_down import append
from ...rows.flatten import flatten
from .levels import FAR

LONG = 512  # edges of a mailed place that one warp pushes; more are shared by the CTA
FEW = 2**14  # vertices of a frontier of few
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

    def spans(self):
        """[(where the new letters of a device begin, how many there are)]."""
        k = self.k
        spans = []
        for s in range(k.devices):
            low = k.load(self.low, s)
            spans.append((low + s * self.c.n, k.load(self.high, s) - low))
        return spans

    def read(self, spans, i, there, level):
        """(place, whether this letter was the first to reach it and is there, i less the number of
        letters) of letter i; claims `level` for the place."""
        k, m = self.k, self.m
        at, mine = k.const(0), k.const(False, "i1")
        for first, count in spans:
            here = k.below(i, count)
            at, mine, i = k.where(here, first + i, at), mine | here, i - count
            i = k.where(mine, -1, i)
        v = k.load(m.letters, at, mask=there & mine, cache="fresh")
        won = k.atomic("min", m.levels, v, level, mask=there & mine) > level
        return v, won & there & mine, i

    def open(self, level):
        """Claims `level` for every place that was mailed; the edges are not looked at."""
        k, spans = self.k, self.spans()

        def letter(i, there, count):
            return count + k.cast(self.read(spans, i, there, level)[1], "i32")

        total = sum((count for _, count in spans), k.const(0))
        warps = k.warp * k.ctas + k.cta, k.ctas * k.threads // 32
        (opened,) = k.deal(total, warps, letter, 0)
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


class Push:
    """A level: the edges of the letters and of the queue get levels or are mailed, and (where
    `queue`) make the next queue."""

    def __init__(self, k, c, m, s, tail, queue, inbox):
        self.k, self.c, self.m, self.s = k, c, m, s
        self.tail, self.queue, self.inbox = tail, queue, inbox
        self.few = s.vertices < FEW

    def run(self, warps):
        k, m, inbox = self.k, self.m, self.inbox
        k.store(inbox.many, 0, 0, mask=k.thread == 0)
        k.sync()
        spans = inbox.spans()
        letters = sum((count for _, count in spans), k.const(0))

        def item(i, there, opened, *counts):
            start, size, won = self._item(spans, letters, i, there)
            counts = flatten(k, start, size, (), self._edge, *counts, unroll=1)
            return opened + k.cast(won, "i32"), *counts

        opened, *counts = k.deal(letters + self.s.ranges, warps, item, 0, 0, 0, 0)
        k.sync()
        many = k.minimum(k.load(inbox.many, 0), LATER)
        counts = k.for_(0, many, 1, self._shared, *counts)
        for word, count in zip((OPENED, NEW, EDGES, MAILED), (opened, *counts), strict=True):
            total = k.warp_sum(count)
            k.reduce("add", m.sums, word, total, mask=(k.lane == 0) & (total != 0))

    def _item(self, spans, letters, i, there):
        """Where the edges of a letter or of a range of the queue begin, how many there are, whether
        it was a letter that came first."""
        k, c, m, inbox = self.k, self.c, self.m, self.inbox
        v, won, j = inbox.read(spans, i, there, self.s.level)
        queued = there & (i >= letters)
        at = (self.s.cur * c.capacity + j) * 4
        begin, end, *_ = k.load_vec(m.queue, at, 4, mask=queued, cache="fresh")
        start, stop = k.row(m.indptr, v)  # under way beside the claim
        size = k.where(won, stop - start, 0)
        place = k.atomic("add", inbox.many, 0, 1, mask=size > LONG)
        kept = (size > LONG) & (place < LATER)
        k.store_vec(inbox.later, place * 2, (start, stop), mask=kept)
        size = k.where(kept, 0, size)
        return k.where(queued, begin, start), k.where(queued, end - begin, size), won

    def _shared(self, i, *counts):
        """All warps of the CTA push the edges of one place."""
        k = self.k
        start, end = k.load_vec(self.inbox.later, i * 2, 2)

        def stretch(at, *counts):
            return self._edge([at + k.lane], [()], [at + k.lane < end], *counts)

        return k.for_(start + k.warp * 32, end, k.threads, stretch, *counts)

    def _edge(self, places, payloads, there, found, edges, mailed):
        del payloads
        k, c, m, (at,), (there,) = self.k, self.c, self.m, places, there
        level = self.s.level + 1
        v = k.load(m.indices, at, mask=there, other=c.everyone, cache="nc")
        there = there & k.below(v, c.everyone)
        device = v // c.n
        place, here = v - device * c.n, there & (device == k.device)
        away, word = there & ~here, k.shr(v, 5)
        # those near by and those far away are under way together; nobody is asked who is known
        # already where few are: the claim tells as much, one access earlier
        known = k.load(m.levels, place, mask=here & ~self.few, other=FAR)
        sent = k.load(m.sent, word, mask=away & ~self.few)
        new, away = here & (known > level), away & (sent & k.bit(v) == 0)
        start, end = k.row(m.indptr, place, new)
        known = k.atomic("min", m.levels, place, level, mask=new)
        sent = k.atomic("or", m.sent, word, k.bit(v), mask=away)
        new, away = new & (known > level), away & (sent & k.bit(v) == 0)
        put = (self.tail, new, start, end, place)
        k.if_(self.queue & k.any(new), lambda: append(k, c.span, *put))
        k.if_(k.any(away), lambda: self.inbox.send(place, device, away))
        size = k.where(new, end - start, 0)
        return found + k.cast(new, "i32"), edges + size, mailed + k.cast(away, "i32")
