"""Rows of a CSR times many vectors: a group of lanes takes one entry for all columns.

Rows and entries are shared evenly by merge path (`merge_path.py`), one piece for each group of
lanes. A group streams its entries, loading one block ahead, and combines them into the current row,
which ends at its row offset. If several groups share a row, each stores its part, and the last of
them to arrive combines the parts.
"""

import dataclasses
import functools
import operator
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from ..simt.primitives import CONTROL_WORDS
from ..simt.scalar_jaxpr import ScalarSemiring, evaluate, uses
from ..simt.typed import Several, one_by_one
from .folds import Fold, LogSum
from .merge_path import place, search

NARROW = {"bfloat16": "bf16", "float16": "f16"}  # two in a word; terms are float32
AHEAD = 4  # pieces of one row whose parts are loaded together


@dataclasses.dataclass(frozen=True)
class Tile:
    """How a warp divides the columns.

    lanes: lanes of a group, which takes one entry, a power of two up to 32. words: 32-bit words of
    a row of x that a lane loads together: 1, 2, 4. unroll: entries of a group in flight together, a
    power of two. waves: number of CTAs over the number that is resident.
    """

    lanes: int
    words: int
    unroll: int = 4
    waves: int = 2


def lanes_for(width: int, words: int) -> int:
    """The lanes of a group for rows of `width` words, `words` a lane."""
    return min(32, 1 << max(-(-width // words) - 1, 0).bit_length())


def as_words(x):
    """Floats of 16 bits as words of two: the last axis, a zero behind an odd number."""
    if x.shape[-1] % 2:
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, 1)])
    return lax.bitcast_convert_type(x.reshape(*x.shape[:-1], -1, 2), jnp.uint32)


class Halves(NamedTuple):
    """The 16-bit floats in the words of x, y and data; None: their words are 32-bit values."""

    x: str | None = None
    y: str | None = None
    data: str | None = None


@dataclasses.dataclass(frozen=True)
class Job:
    """The static parameters of one launch.

    width: words of a row of x. ctas: CTAs of one tile of columns. mixed: CTAs alternate between
    pieces from both ends of the path, for rows sorted by length: so long rows, which mostly read,
    and short ones, which mostly write, are in flight together.
    """

    n: int
    width: int
    columns: int
    ctas: int
    tile: Tile
    semiring: ScalarSemiring
    halves: Halves = Halves()
    log_sum: bool = False
    mixed: bool = False


class Product:
    """One launch: the piece of the path that belongs to the group of this lane."""

    def __init__(self, k, g, job):
        self.k, self.g, self.job = k, g, job
        tile = job.tile
        self.size = tile.words * (2 if job.halves.x else 1)  # columns of a lane
        self.fold = LogSum(k, self.size) if job.log_sum else Fold(k, job.semiring, self.size)
        self.member, self.leader = k.lane & (tile.lanes - 1), k.lane & -tile.lanes
        part = k.cta // job.ctas
        self.groups = job.ctas * (k.threads // tile.lanes)
        self.group = self._group(k.cta - part * job.ctas)
        self.before = part * self.groups  # groups of the tiles of columns before
        self.column = (part * tile.lanes + self.member) * tile.words
        self.inside = self.column < job.width

    def _group(self, cta):
        """The piece of this lane's group, in one of the CTAs of a tile of columns."""
        k, job = self.k, self.job
        if job.mixed:
            half = cta >> 1
            cta = k.where((cta & 1) == 1, job.ctas - 1 - half, half)
        return cta * (k.threads // job.tile.lanes) + k.thread // job.tile.lanes

    def run(self):
        k, n = self.k, self.job.n
        total = k.load(self.g.indptr, n, cache="nc") + n
        self.piece = (total + (self.groups - 1)) // self.groups
        (self.first, self.low, begin), (self.last, self.high, open_from) = self._bounds(total)
        self.continued = self.low > begin
        acc = self._entries()
        reaches = self.high > open_from  # the last row continues in the next piece
        through = self.continued & (self.first == self.last)
        for slot, mask in ((0, reaches & through), (1, reaches & ~through)):
            self._store_part(slot, acc, mask)
        self._settle((self.first, self.continued), (self.last, reaches & ~through))

    def _bounds(self, total):
        """(row, entry, first entry of that row) where this piece begins and where the next does."""
        k, job, many = self.k, self.job, 32 // self.job.tile.lanes
        indptr, n = self.g.indptr, job.n
        own = k.minimum(self.group * self.piece, total)
        start = k.shfl(own, 0)
        stop = k.minimum(k.shfl(self.group, 0) * self.piece + many * self.piece, total)
        near, far = search(k, indptr, n, (start, stop))
        if many > 1:  # the groups of a warp share the rows between

            def halve(a, b):
                middle = (a + b + 1) >> 1
                passed = middle + k.load(indptr, middle, cache="nc") <= own
                return k.where(passed, middle, a), k.where(passed, b, middle - 1)

            row, _ = k.while_(lambda a, b: a < b, halve, near, far)
        else:
            row = near
        mine, behind = place(k, indptr, n, row, own), place(k, indptr, n, far, stop)
        if many == 1:
            return mine, behind
        outer = k.lane >= 32 - job.tile.lanes
        after = [k.shfl(v, (k.lane + job.tile.lanes) & 31) for v in mine]
        return mine, tuple(k.where(outer, b, a) for a, b in zip(after, behind, strict=True))

    def _entries(self):
        """Streams the entries of the piece; returns the combined terms of the row open at its
        end."""
        k, tile = self.k, self.job.tile
        held = max(1, tile.unroll // tile.lanes)  # entries of a block that a lane fetches
        block, unroll = held * tile.lanes, tile.unroll
        base = self.low & -block
        longest = k.warp_fold(k.maximum, self.high - base)
        ends = [self._end(self.first + j) for j in range(2)]
        state = [self.first, *ends, *self.fold.start()]
        fields = 2 if uses(self.job.semiring.mul, 0) else 1

        def body(offset, *carry):
            fetched, state = carry[:fields], carry[fields:]
            ahead = self._fetch(base + offset + block, held)
            clean = k.all(functools.reduce(operator.and_, fetched[0] >= 0, k.const(True, "i1")))
            if held > 1 or block == unroll:
                state = self._batch(base + offset, fetched, 0, clean, state)
            else:
                some = lambda b, *s: self._batch(base + offset, fetched, b, clean, s)  # noqa: E731
                state = k.for_(0, block, unroll, some, *state)
            return (*ahead, *state)

        carry = [*self._fetch(base, held), *state]
        state = k.for_(0, longest, block, body, *carry)[fields:]
        state = k.while_(lambda r, *s: r < self.last, self._flush, *state)
        return state[3:]

    def _end(self, r):
        return self.k.load(self.g.indptr, r + 1, mask=r < self.job.n, cache="nc")

    def _fetch(self, at, held):
        """Columns (-1 beyond the piece) and values of a block of entries, spread over the group."""
        k, lanes = self.k, self.job.tile.lanes
        places = Several(at + self.member + j * lanes for j in range(held))
        masks = (places >= self.low) & (places < self.high)
        cache = "stream" if lanes >= 8 else "nc"
        found = self._row_of(k.load(self.g.indices, places, mask=masks, other=-1, cache=cache))
        if not uses(self.job.semiring.mul, 0):
            return (found,)
        if not self.job.halves.data:
            return found, k.load(self.g.data, places, mask=masks, cache=cache)
        words = k.load(self.g.data, places >> 1, mask=masks, cache=cache)
        return found, k.where((places & 1) == 0, *k.unpack(words, self.job.halves.data))

    def _row_of(self, j):
        """Which row of x column j stands for, by `names` if there are such; -1: none."""
        k, names = self.k, self.g.names
        if names is not None:
            j = k.load(names, j, mask=k.below(j, names.size), other=-1, cache="nc")
        return k.where(k.below(j, self.job.columns), j, -1)

    def _batch(self, base, fetched, b, clean, state):
        """Combines `unroll` entries from base + b on, after loading their rows of x together."""
        k, job, unroll = self.k, self.job, self.job.tile.unroll
        index, *data = (self._shared(f, b) for f in fetched)
        valid = index >= 0
        x = self._row(index, valid & self.inside)
        data, at = data[0] if data else None, base + b
        r, end = state[:2]
        quick = k.all((end >= at + unroll) | (r >= self.last)) & clean

        def terms(a, v):
            return [evaluate(k, job.semiring.mul, a, u) for u in v]

        each = one_by_one(data, x, valid)

        def whole():
            return tuple(self.fold.more(state[3:], [terms(a, v) for a, v, _ in each]))

        def cut():
            s = state
            for j, (a, v, t) in enumerate(each):
                s = k.while_(
                    lambda r, end, *_, e=at + j: (end == e) & (r < self.last), self._flush, *s
                )
                acc = self.fold.more(s[3:], [terms(a, v)])
                s = [*s[:3], *(k.where(t, u, o) for u, o in zip(acc, s[3:], strict=True))]
            return tuple(s)

        acc = k.if_(quick, whole, *state[3:])
        return k.if_(~quick, cut, *state[:3], *acc)

    def _shared(self, values, b):
        """The values of `unroll` entries of a block, from number b on, in all lanes of a group."""
        k, lanes = self.k, self.job.tile.lanes
        return Several(
            k.shfl(values[j // lanes if len(values) > 1 else 0], self.leader + b + j % lanes)
            for j in range(self.job.tile.unroll)
        )

    def _row(self, j, mask):
        """This lane's columns of row j of x; None if the product does not use them."""
        k, job = self.k, self.job
        if not uses(job.semiring.mul, 1):
            return [None] * self.size
        at = j * job.width + self.column
        words = k.load_vec(self.g.x, at, job.tile.words, mask=mask, cache="nc")
        if not job.halves.x:
            return words
        return [v for w in words for v in k.unpack(w, job.halves.x)]

    def _flush(self, r, end, later, *acc):
        """Row r ends: stores it; the part of a row that began in the piece before goes to
        `parts`."""
        head = self.continued & (r == self.first)
        self._store(r, acc, ~head)
        self._store_part(0, acc, head)
        return r + 1, later, self._end(r + 2), *self.fold.start()

    def _store(self, r, acc, mask):
        k, job = self.k, self.job
        at, acc = r * job.width + self.column, self.fold.result(acc)
        if job.halves.y:
            acc = [k.pack(a, b, job.halves.y) for a, b in zip(acc[::2], acc[1::2], strict=True)]
        elif job.halves.x:
            at = at * 2
        for j in range(0, len(acc), 4):
            k.store_vec(self.g.y, at + j, acc[j : j + 4], mask=mask & self.inside)

    def _slots(self, group, slot):
        """Indices in `parts` of this lane's columns of a part: slot 0 for the first row of a group,
        slot 1 for its last."""
        at = ((self.before + group) * 2 + slot) * self.job.tile.lanes + self.member
        step, held = min(4, self.size), self.fold.held
        return [at * held + j for j in range(0, held, step)], step

    def _store_part(self, slot, acc, mask):
        at, step = self._slots(self.group, slot)
        for j, p in enumerate(at):
            part = acc[j * step : (j + 1) * step]
            self.k.store_vec(self.g.parts, p, part, mask=mask & self.inside)

    def _load_part(self, group, slot, mask):
        k = self.k
        at, step = self._slots(group, slot)
        found = []
        for p in at:  # vectors have no form that reads past the L1 cache
            found += [k.load(self.g.parts, p + i, mask=mask, cache="fresh") for i in range(step)]
        return found

    def _settle(self, *rows):
        """Combines the parts of shared rows: the last group of a row to arrive does it. A control
        word for each group counts arrivals at the row that begins there."""
        k, g = self.k, self.g
        k.fence()
        k.sync_warp()
        spans, counts = [], []
        for r, mask in rows:
            begin, end = (k.load(g.indptr, r + j, mask=mask, cache="nc") for j in range(2))
            head, tail = (r + begin) // self.piece, (r + end - 1) // self.piece
            at = CONTROL_WORDS + self.before + head
            one = mask & (self.member == 0)
            counts.append(k.atomic("add", g.control, at, 1, mask=one))
            spans.append((head, tail))
        k.fence()
        for (r, mask), (head, tail), count in zip(rows, spans, counts, strict=True):
            last = mask & (k.shfl(count, self.leader) == tail - head) & self.inside
            k.if_(last, lambda r=r, head=head, tail=tail: self._combine(r, head, tail))

    def _combine(self, r, head, tail):
        k = self.k

        def some(p, *acc):
            for j in range(AHEAD):
                valid = p + j <= tail
                part = self._load_part(p + j, 0, valid)
                both = self.fold.joined(acc, part)
                acc = [k.where(valid, b, a) for a, b in zip(acc, both, strict=True)]
            return tuple(acc)

        acc = self._load_part(head, 1, None)
        acc = k.for_(head + 1, tail + 1, AHEAD, some, *acc)
        self._store(r, acc, k.const(True, "i1"))
