"""The push side of `any_degree.py`: edges of the frontier, and letters to other devices."""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

import functools
import operator

from ...rows.flatten import flatten
from ..top_down import append
from .levels import FAR

LONG = 512  # edges of a mailed place that one warp pushes; more are shared by the CTA
STRIDES = 4  # of 32 edges that are under way together
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

    def read(self, spans, i, valid, level):
        """(place, whether this letter was the first to reach it and is there, i less the number of
        letters) of letter i; claims `level` for the place."""
        k, m = self.k, self.m
        at, mine = k.const(0), k.const(False, "i1")
        for first, count in spans:
            here = k.below(i, count)
            at, mine, i = k.where(here, first + i, at), mine | here, i - count
            i = k.where(mine, -1, i)
        v = k.load(m.letters, at, mask=valid & mine, cache="fresh")
        won = k.atomic("min", m.levels, v, level, mask=valid & mine) > level
        return v, won & valid & mine, i

    def open(self, level):
        """Claims `level` for every place that was mailed; the edges are not looked at."""
        k, spans = self.k, self.spans()

        def message(i, valid, count):
            return count + k.cast(self.read(spans, i, valid, level)[1], "i32")

        total = sum((count for _, count in spans), k.const(0))
        warps = k.warp * k.ctas + k.cta, k.ctas * k.threads // 32
        (opened,) = k.deal(total, warps, message, 0)
        k.reduce("add", self.m.sums, OPENED, opened, mask=opened != 0)

    def send(self, places, devices, masks):
        """Mails lists of places to their devices; all lanes of the warp take part.

        One atomic for all: those on one word take 1.7 ns each.
        """
        k, c, m = self.k, self.c, self.m
        for d in range(k.devices):
            mine = [mask & (device == d) for device, mask in zip(devices, masks, strict=True)]
            votes = [k.ballot(mask) for mask in mine]

            def some(d=d, mine=mine, votes=votes):
                total = sum((k.popc(vote) for vote in votes), k.const(0))
                base = k.atomic("add", m.control, c.mailed + d, total, mask=k.lane == 0)
                at = k.device * c.n + k.shfl(base, 0)
                for place, mask, vote in zip(places, mine, votes, strict=True):
                    k.store(k.on(m.letters, d), at + k.lanes_below(vote), place, mask=mask)
                    at = at + k.popc(vote)

            k.if_(functools.reduce(operator.or_, votes) != 0, some)


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

        def item(i, valid, opened, *counts):
            start, size, won = self._item(spans, letters, i, valid)
            counts = flatten(k, start, size, (), self._edges, *counts, unroll=STRIDES)
            return opened + k.cast(won, "i32"), *counts

        opened, *counts = k.deal(letters + self.s.ranges, warps, item, 0, 0, 0, 0)
        k.sync()
        many = k.minimum(k.load(inbox.many, 0), LATER)
        counts = k.for_(0, many, 1, self._shared, *counts)
        for word, count in zip((OPENED, NEW, EDGES, MAILED), (opened, *counts), strict=True):
            total = k.warp_sum(count)
            k.reduce("add", m.sums, word, total, mask=(k.lane == 0) & (total != 0))

    def _item(self, spans, letters, i, valid):
        """Where the edges of a letter or of a range of the queue begin, how many there are, whether
        it was a letter that came first."""
        k, c, m, inbox = self.k, self.c, self.m, self.inbox
        v, won, j = inbox.read(spans, i, valid, self.s.level)
        queued = valid & (i >= letters)
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
            at = [at + i * k.threads + k.lane for i in range(STRIDES)]
            return self._edges(at, [()] * STRIDES, [x < end for x in at], *counts)

        return k.for_(start + k.warp * 32, end, STRIDES * k.threads, stretch, *counts)

    def _edges(self, places, payloads, valid, found, edges, mailed):
        del payloads
        k, c, m, level = self.k, self.c, self.m, self.s.level + 1
        who = [
            k.load(m.indices, at, mask=mask, other=c.everyone, cache="nc")
            for at, mask in zip(places, valid, strict=True)
        ]
        valid = [mask & k.below(v, c.everyone) for v, mask in zip(who, valid, strict=True)]
        devices = [v // c.n for v in who]
        places = [v - device * c.n for v, device in zip(who, devices, strict=True)]
        new = [mask & (device == k.device) for device, mask in zip(devices, valid, strict=True)]
        away = [mask & ~here for mask, here in zip(valid, new, strict=True)]
        words, bits = [k.shr(v, 5) for v in who], [k.bit(v) for v in who]

        def first(known, sent):
            """Who has no level of those here, was not mailed of those away."""
            unknown = [here & (x > level) for here, x in zip(new, known, strict=True)]
            pairs = zip(away, sent, bits, strict=True)
            return unknown, [mask & (x & bit == 0) for mask, x, bit in pairs]

        # those near by and those far away are under way together; nobody is asked who is known
        # already where few are: the claim tells as much, one access earlier
        known = [
            k.load(m.levels, at, mask=here & ~self.few, other=FAR)
            for at, here in zip(places, new, strict=True)
        ]
        sent = k.loads(m.sent, words, [mask & ~self.few for mask in away])
        new, away = first(known, sent)
        rows = [k.row(m.indptr, at, mask) for at, mask in zip(places, new, strict=True)]
        known = k.atomics("min", m.levels, places, [level] * len(places), new)
        sent = k.atomics("or", m.sent, words, bits, away)
        new, away = first(known, sent)
        for mask, (start, end), at in zip(new, rows, places, strict=True):
            put = (self.tail, mask, start, end, at)
            k.if_(self.queue & k.any(mask), lambda put=put: append(k, c.span, *put))
            found = found + k.cast(mask, "i32")
            edges = edges + k.where(mask, end - start, 0)
        some = functools.reduce(operator.or_, away)
        k.if_(k.any(some), lambda: self.inbox.send(places, devices, away))
        return found, edges, sum((k.cast(mask, "i32") for mask in away), mailed)
