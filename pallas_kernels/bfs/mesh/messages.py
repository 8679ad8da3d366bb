"""The push side of `any_degree.py`: edges of the frontier, and messages to other devices."""

import functools

from ...frontier import put
from ...rows.flatten import flatten
from ...simt.typed import one_by_one
from ..top_down import append
from .places import FAR, SENT_TO

LONG = 512  # a received place with more edges than this is pushed by all warps of the CTA
STRIDES = 4  # strides of 32 edges whose loads are in flight together
SMALL = 2**14  # a frontier of fewer vertices skips the test before the atomic
LONG_ROWS = 256  # capacity of the list of long rows of a CTA
# words of `sums`, the shared sums of a CTA: vertices claimed here, their edges, messages sent,
# received places claimed. Words 0 and 3 belong to `Tail`.
NEW, EDGES, MESSAGES, CLAIMED = 1, 2, 5, 6


class Inbox:
    """Messages of all devices to this one: each is a place of this device that an edge of the
    sender reaches.

    The i-th message of device s is messages[s * places + i]. A device sends a place at most once,
    so `places` slots for each sender suffice. Messages low[s] .. high[s] - 1 of device s came in
    the last level (`low`, `high`: shared words).
    """

    def __init__(self, k, c, m):
        self.k, self.c, self.m = k, c, m
        self.low, self.high = k.shared(k.devices), k.shared(k.devices)
        # (start, end) of long rows, and their number
        self.long_rows, self.long_count = k.shared(2 * LONG_ROWS), k.shared(1)
        for words in (self.low, self.high):
            k.store(words, k.thread, 0, mask=k.thread < k.devices)
        k.sync()

    def receive(self, barrier):
        """Moves low and high on after a barrier: word 2 of a device's payload is the number of
        messages that it has sent to this one so far."""
        k = self.k
        mine = k.thread < k.devices
        k.store(self.low, k.thread, k.load(self.high, k.thread, mask=mine), mask=mine)
        word = k.load(barrier.received, k.thread * barrier.words + 2, mask=mine)
        k.store(self.high, k.thread, word, mask=mine)
        k.sync()

    def spans(self):
        """For each sender: (index of its first new message, number of new messages)."""
        k = self.k
        spans = []
        for s in range(k.devices):
            low = k.load(self.low, s)
            spans.append((low + s * self.c.n, k.load(self.high, s) - low))
        return spans

    def read(self, spans, i, valid, level):
        """Claims `level` for the place of new message i: levels[place] = min(levels[place], level).

        Returns (place, whether this lowered its level, i less the number of new messages).
        """
        k, m = self.k, self.m
        at, found = k.const(0), k.const(False, "i1")
        for first, count in spans:
            here = k.below(i, count)
            at, found, i = k.where(here, first + i, at), found | here, i - count
            i = k.where(found, -1, i)
        v = k.load(m.messages, at, mask=valid & found, cache="fresh")
        won = k.atomic("min", m.levels, v, level, mask=valid & found) > level
        return v, won & valid & found, i

    def claim_all(self, level):
        """Claims `level` for the places of all new messages; their edges are not read. Adds the
        number of claims to word CLAIMED of `sums`."""
        k, spans = self.k, self.spans()

        def message(i, valid, count):
            return count + k.cast(self.read(spans, i, valid, level)[1], "i32")

        total = sum((count for _, count in spans), k.const(0))
        (claimed,) = k.distribute(total, k.warps, message, 0)
        k.reduce("add", self.m.sums, CLAIMED, claimed, mask=claimed != 0)

    def send(self, places, devices, masks):
        """Sends several places to their devices; all lanes of the warp take part.

        Control word SENT_TO + d counts the messages sent to device d. One atomic a warp and
        device reserves their slots, because atomics on one word take 1.7 ns each.
        """
        k, c, m = self.k, self.c, self.m
        for d in range(k.devices):

            def store(at, place, mask, d=d):
                k.store(k.on(m.messages, d), k.device * c.n + at, place, mask=mask)

            put(k, masks & (devices == d), (m.control, c.slots + SENT_TO + d), store, places)


class Push:
    """A push level: follows the edges of the queue and of the received places. An edge to a place
    of this device claims the next level there, one to another device becomes a message; where
    `queue`, the claimed places make the next queue."""

    def __init__(self, k, c, m, s, tail, queue, inbox):
        self.k, self.c, self.m, self.s = k, c, m, s
        self.tail, self.queue, self.inbox = tail, queue, inbox
        self.small = s.vertices < SMALL

    def run(self):
        k, m, inbox = self.k, self.m, self.inbox
        k.store(inbox.long_count, 0, 0, mask=k.thread == 0)
        k.sync()
        spans = inbox.spans()
        messages = sum((count for _, count in spans), k.const(0))

        def item(i, valid, claimed, *counts):
            start, size, won = self._item(spans, messages, i, valid)
            counts = flatten(k, start, size, (), self._edges, *counts, unroll=STRIDES)
            return claimed + k.cast(won, "i32"), *counts

        claimed, *counts = k.distribute(messages + self.s.ranges, k.warps, item, 0, 0, 0, 0)
        k.sync()
        long_count = k.minimum(k.load(inbox.long_count, 0), LONG_ROWS)
        counts = k.for_(0, long_count, 1, self._long_row, *counts)
        for word, count in zip((CLAIMED, NEW, EDGES, MESSAGES), (claimed, *counts), strict=True):
            k.add_sum(m.sums, word, count)

    def _item(self, spans, messages, i, valid):
        """Item i is new message i, or range i - messages of the queue.

        Returns (index of its first edge, number of edges, whether it is a message whose place was
        claimed). The row of a place that was claimed before counts as empty, and so does a long row
        that is put into the list of the CTA.
        """
        k, c, m, inbox = self.k, self.c, self.m, self.inbox
        v, won, j = inbox.read(spans, i, valid, self.s.level)
        queued = valid & (i >= messages)
        at = (self.s.cur * c.capacity + j) * 4
        begin, end, *_ = k.load_vec(m.queue, at, 4, mask=queued, cache="fresh")
        start, stop = k.row(m.indptr, v)  # in flight together with the claim
        size = k.where(won, stop - start, 0)
        place = k.atomic("add", inbox.long_count, 0, 1, mask=size > LONG)
        listed = (size > LONG) & (place < LONG_ROWS)
        k.store_vec(inbox.long_rows, place * 2, (start, stop), mask=listed)
        size = k.where(listed, 0, size)
        return k.where(queued, begin, start), k.where(queued, end - begin, size), won

    def _long_row(self, i, *counts):
        """All warps of the CTA push the edges of long row i."""
        k = self.k
        start, end = k.load_vec(self.inbox.long_rows, i * 2, 2)

        def stretch(at, *counts):
            at = k.several(STRIDES, lambda i: at + i * k.threads + k.lane)
            return self._edges(at, at < end, *counts)

        return k.for_(start + k.warp * 32, end, STRIDES * k.threads, stretch, *counts)

    def _edges(self, places, valid, found, edges, sent_count):
        """Follows the edges at `places`. Counts the places claimed here, their edges, and the
        messages sent."""
        k, c, m, level = self.k, self.c, self.m, self.s.level + 1
        targets = k.load(m.indices, places, mask=valid, other=c.all_places, cache="nc")
        valid, devices = valid & k.below(targets, c.all_places), targets // c.n
        places = targets - devices * c.n
        new = valid & (devices == k.device)
        remote = valid & ~new
        words, bits = k.shr(targets, 5), k.bit(targets)

        def unvisited(levels, sent):
            """Local targets with a higher level than this one, and remote ones not yet sent."""
            return new & (levels > level), remote & (sent & bits == 0)

        # local and remote accesses are in flight together; a small frontier skips these loads,
        # because the atomics below answer the same question, one access earlier
        known = k.load(m.levels, places, mask=new & ~self.small, other=FAR)
        sent = k.load(m.sent, words, mask=remote & ~self.small)
        new, remote = unvisited(known, sent)
        start, end = k.row(m.indptr, places, new)
        known = k.atomic("min", m.levels, places, level, mask=new)
        sent = k.atomic("or", m.sent, words, bits, mask=remote)
        new, remote = unvisited(known, sent)
        for row in one_by_one(new, start, end, places):
            put = functools.partial(append, k, c.span, self.tail, *row)
            k.if_(self.queue & k.any(row[0]), put)
        k.if_(k.any(remote), lambda: self.inbox.send(places, devices, remote))
        found = k.total(k.cast(new, "i32"), found)
        edges = k.total(k.where(new, end - start, 0), edges)
        return found, edges, k.total(k.cast(remote, "i32"), sent_count)
