"""Rows of few products by warps: expanded into shared memory, sorted, combined.

A warp takes a stretch: consecutive rows. Those of similar numbers of products are processed
together, as many as the registers of the warp hold, each in its own slots. Their products are
flattened over the lanes and stored next to each other, with a mark for those that the mask forbids;
then they are sorted. Results are collected in shared memory and written together, to
save atomics on the counter of slots.

No hash table: a sort takes a few instructions a product, needs no atomics, serves any monoid, gives
the order that a CSR must have, and always sums in the same order.
"""

import dataclasses

import jax.numpy as jnp

from ..rows.flatten import flatten
from ..simt.launch import launch
from ..simt.typed import one_by_one
from .job import ALLOCATED, COUNTERS, LARGE, LISTS, MEDIUM, MIDDLE, OUT, Terms, stretches

QUEUE = 40  # control word: stretches taken


@dataclasses.dataclass(frozen=True)
class Warps:
    """ctas, threads: of a launch. stretch: rows that a warp processes in one step, at most 32.
    width: registers of a lane that are sorted. least: slots of the smallest rows. waiting: capacity
    of the buffer of entries that wait to be written, 0 for none."""

    ctas: int
    threads: int
    stretch: int
    width: int
    least: int
    waiting: int

    @property
    def most(self):
        """Products of a row at most."""
        return 32 * self.width

    @property
    def words(self):
        """Words of shared memory."""
        return self.threads // 32 * (2 * self.most + 2 * self.waiting + 32)


def rows_by_warps(job, operands, products, out, config, *, listed=None, bounds=()):
    """Computes the rows of out[listed], each of at most `config.most` products; returns the new
    `out`.

    listed None: the first of all launches, which takes all rows and lists those of more products:
    of at most bounds[0], of at most bounds[1], and of more.
    """
    if listed is None:
        more = {}
        made = {"start": job.rows, "count": job.rows, **dict.fromkeys(LISTS.values(), job.rows)}
        made |= {"indices": job.nse, "data": (job.nse, job.semiring.dtype)}
        kept = {"counters": jnp.zeros(COUNTERS, jnp.int32)}
    else:
        more, made, kept = {"listed": out[LISTS[listed]]}, {}, {name: out[name] for name in OUT}
    done = launch(
        lambda k, g: _Warps(k, g, job, config, listed, bounds).run(),
        {**operands, "products": products, **more},
        made,
        inout=kept,
        ctas=config.ctas,
        threads=config.threads,
        shared_words=config.words,
        name="spgemm_by_warps",
    )
    del done["control"]
    return (out or {}) | done


class _Warps:
    """One launch."""

    def __init__(self, k, g, job, config, listed, bounds):
        self.k, self.g, self.job, self.config = k, g, job, config
        self.terms, self.listed, self.bounds = Terms(k, g, job), listed, bounds
        warps, most, waiting = k.threads // 32, config.most, config.waiting
        self.keys, self.values = k.shared(warps * most), k.shared(warps * most, job.kind)
        self.base, self.out_base = k.warp * most, k.warp * (waiting or most)
        self.out_keys, self.out_values = self.keys, self.values
        if waiting:
            self.out_keys = k.shared(warps * waiting)
            self.out_values = k.shared(warps * waiting, job.kind)
        self.sizes = k.shared(k.threads)

    def run(self):
        k, stretch = self.k, self.config.stretch
        number = k.const(self.job.rows)
        if self.listed is not None:
            number = k.load(self.g.counters, self.listed)
        some = lambda first: self._stretch(first, number)  # noqa: E731
        stretches(k, (self.g.control, QUEUE), stretch, number, some)

    def _stretch(self, first, number):
        k, g, config = self.k, self.g, self.config
        row = first + k.lane
        valid = (k.lane < config.stretch) & (row < number)
        if self.listed is not None:
            row = k.load(g.listed, row, mask=valid, cache="nc")
        products = k.load(g.products, row, mask=valid, cache="nc")
        begin, end = k.row(g.a_indptr, row, valid)
        if self.listed is None:
            self._list(row, valid, products)
            valid = valid & (products > 0) & (products <= config.most)
        level = k.const(0)  # a row of this lane has least * 2 ** level slots
        size = config.least
        while size < config.most:
            level = level + k.cast(products > size, "i32")
            size *= 2

        # One batch: rows of one level, as many as fit; `left` are the lanes whose rows remain.
        def batch(left, filled, offset, count):
            alike = k.shfl(level, k.ctz(left))
            here = valid & (k.shr(left, k.lane) & 1 != 0)
            word = k.ballot(here & (level == alike))
            slot = k.lanes_below(word)
            here = here & (level == alike) & (slot < k.shr(config.most // config.least, alike))
            size = k.where(here, products, 0)
            upto, total = k.warp_scan(size)
            if config.waiting:
                full = filled + total > config.waiting
                k.if_(full, lambda: self._flush(row, filled, offset, count))
                filled, offset = k.where(full, 0, filled), k.where(full, -1, offset)
            span = k.const(config.least // config.width) << alike
            k.store(self.sizes, k.thread - k.lane + slot, size, mask=here)
            shift = self.base + slot * span * config.width - (upto - size)
            self._expand(row, begin, k.where(here, end, begin), shift)
            start, found, all_ = self._sorted(span, slot, k.popc(k.ballot(here)), filled)
            offset = k.where(here, filled + start, offset)
            count = k.where(here, found, count)
            filled = filled + all_
            if not config.waiting:
                self._flush(row, filled, offset, count)
                filled, offset = k.const(0), k.const(-1)
            return left & ~k.ballot(here), filled, offset, count

        _, filled, offset, count = k.while_(
            lambda left, *_: left != 0, batch, k.ballot(valid), 0, -1, 0
        )
        if config.waiting:
            k.if_(k.any(offset >= 0), lambda: self._flush(row, filled, offset, count))

    def _list(self, row, valid, products):
        """Settles rows without products, and lists those of too many."""
        k, g = self.k, self.g
        k.store(g.start, row, 0, mask=valid & (products == 0))
        k.store(g.count, row, 0, mask=valid & (products == 0))
        low = self.config.most
        for word, high in ((MIDDLE, self.bounds[0]), (MEDIUM, self.bounds[1]), (LARGE, None)):
            mine = valid & (products > low)
            if high is not None:
                mine = mine & (products <= high)
                low = max(low, high)
            at = k.atomic("add", g.counters, word, 1, mask=mine)
            k.store(getattr(g, LISTS[word]), at, row, mask=mine)

    def _expand(self, row, begin, end, shift):
        """Puts the products of all lanes' rows into their slots: number e of them at shift + e."""
        k, terms = self.k, self.terms
        names = [shift, *terms.bounds_of_mask(row, end > begin)]
        if terms.used[2]:
            names.append(row)

        def entries(entry, mask, *rest):
            *carried, done = rest
            start, length, payload = terms.entry(entry, mask)

            def put(places, valid, *rest):
                *payload, done = rest
                columns = terms.columns(places, valid)
                shifts, bounds, row, payload = terms.unpack(payload, k.const(0))
                kept = terms.allowed(bounds, columns, valid)
                values = terms.values(row, places, payload, columns, kept)
                for shift, column, value, t, may in one_by_one(
                    shifts, columns, values, valid, kept
                ):
                    word = k.ballot(t)
                    at = shift + done + k.lanes_below(word)
                    k.store(self.keys, at, k.where(may, column, self.job.columns), mask=t)
                    k.store(self.values, at, value, mask=t)
                    done = done + k.popc(word)
                return done

            return flatten(k, start, length, (*carried, *payload), put, done, unroll=4)

        flatten(k, begin, end - begin, tuple(names), entries, 0, unroll=1)
        k.sync_warp()

    def _sorted(self, span, slot, rows, filled):
        """Sorts and combines the slots of `rows` rows.

        Returns (start, count, total): where the entries of the row in this lane's `slot` begin
        among those of the warp, how many they are, and how many the warp has.
        """
        k, width = self.k, self.config.width
        mine = self.k.lane // span
        size = k.load(self.sizes, k.thread - k.lane + mine, mask=mine < rows)
        first = (k.lane & (span - 1)) * width
        keys, values = [], []
        for u in range(0, width, 4):
            at = self.base + k.lane * width + u
            keys += k.load_vec(self.keys, at, 4)
            values += k.load_vec(self.values, at, 4)
        keys = [k.where(first + u < size, x, self.job.columns) for u, x in enumerate(keys)]
        k.sync_warp()
        keys, values = sort(k, keys, values, span)
        values, last = combine_runs(k, self.terms.combine, keys, values, span)
        last = [e & (key < self.job.columns) for e, key in zip(last, keys, strict=True)]
        number = k.const(0)
        for e in last:
            number = number + k.cast(e, "i32")
        upto, total = k.warp_scan(number)
        at = self.out_base + filled + upto - number
        for key, value, e in zip(keys, values, last, strict=True):
            k.store(self.out_keys, at, key, mask=e)
            k.store(self.out_values, at, value, mask=e)
            at = at + k.cast(e, "i32")
        start = k.shfl(upto - number, slot * span)
        end = k.shfl(upto, slot * span + span - 1)
        return start, end - start, total

    def _flush(self, row, filled, offset, count):
        """Writes the buffered entries, if they fit; called by all lanes."""
        k, g, nse = self.k, self.g, self.job.nse
        k.sync_warp()
        at = k.reserve(g.counters, ALLOCATED, filled)
        fits = (at >= 0) & (at <= nse - filled)

        def write(j):
            k.store(g.indices, at + j, k.load(self.out_keys, self.out_base + j))
            k.store(g.data, at + j, k.load(self.out_values, self.out_base + j))

        k.for_(k.lane, k.where(fits, filled, 0), 32, write)
        k.store(g.start, row, k.where(fits, at + offset, -1), mask=offset >= 0)
        k.store(g.count, row, count, mask=offset >= 0)
        k.sync_warp()


def sort(k, keys, values, span):
    """Pairs of a warp in ascending order of the keys within each `span` lanes, a power of two.

    Register u of a lane is element lane * U + u of 32 U pairs; U is a power of two. The network is
    the bitonic one whose comparators all point one way (Batcher, "Sorting networks and their
    applications", AFIPS 1968): the order in which equal keys are combined depends on their places
    alone.
    """
    pairs, width = [*zip(keys, values, strict=True)], len(keys)
    size = 2
    while size <= width:
        _in_lane(k, pairs, size - 1)
        _halve(k, pairs, size // 4)
        size *= 2

    def merge(lanes, *flat):
        pairs = [*zip(flat[:width], flat[width:], strict=True)]
        pairs = _across(k, pairs, lanes - 1, k.shr(lanes, 1), transposed=True)

        def step(d, *flat):
            pairs = [*zip(flat[:width], flat[width:], strict=True)]
            return k.shr(d, 1), *_flat(_across(k, pairs, d, d))

        flat = k.while_(lambda d, *_: d > 0, step, k.shr(lanes, 2), *_flat(pairs))[1:]
        pairs = [*zip(flat[:width], flat[width:], strict=True)]
        _halve(k, pairs, width // 2)
        return lanes << 1, *_flat(pairs)

    flat = k.while_(lambda lanes, *_: lanes <= span, merge, 2, *_flat(pairs))[1:]
    return flat[:width], flat[width:]


def _flat(pairs):
    return *(key for key, _ in pairs), *(value for _, value in pairs)


def _halve(k, pairs, stride):
    while stride:
        _in_lane(k, pairs, stride)
        stride //= 2


def _in_lane(k, pairs, flip):
    """Orders every two registers whose numbers differ in the bits of `flip`."""
    for u in range(len(pairs)):
        v = u ^ flip
        if u < v:
            (a, x), (b, y) = pairs[u], pairs[v]
            swap = b < a
            pairs[u] = k.minimum(a, b), k.where(swap, y, x)
            pairs[v] = k.maximum(a, b), k.where(swap, x, y)


def _across(k, pairs, flip, top, transposed=False):
    """Orders every two lanes whose numbers differ in the bits of `flip`, the highest of which is
    `top`; turned: the registers of the other lane in reverse order."""
    lower, width, out = k.lane & top == 0, len(pairs), list(pairs)

    def kept(u, v):
        key, value = pairs[u]
        other, another = (k.shfl_xor(x, flip) for x in pairs[v])
        first = k.where(lower, k.minimum(key, other), k.maximum(key, other))
        return first, k.where(first == key, value, another)

    for u in range(width):
        out[u] = kept(u, width - 1 - u if transposed else u)
    return out


def combine_runs(k, combine, keys, values, span):
    """(values, last): of sorted pairs the values folded from the first of a key on, and whether a
    pair is the last of its key in its row, where the value is that of all. All lanes."""
    values, place = list(values), k.lane & (span - 1)
    for u in range(1, len(keys)):
        joined = combine(values[u - 1], values[u])
        values[u] = k.where(keys[u] == keys[u - 1], joined, values[u])
    tail, end = values[-1], keys[-1]
    for d in (1, 2, 4, 8, 16):  # equal keys are neighbours: what lies between is equal too
        same = (place >= d) & (k.shfl_up(end, d) == end)
        tail = k.where(same, combine(k.shfl_up(tail, d), tail), tail)
    before, carry = k.shfl_up(end, 1), k.shfl_up(tail, 1)
    values = [
        k.where((place > 0) & (before == key), combine(carry, value), value)
        for key, value in zip(keys, values, strict=True)
    ]
    after = k.shfl(keys[0], k.lane + 1)
    last = [a != b for a, b in zip(keys[:-1], keys[1:], strict=True)]
    last.append((place == span - 1) | (keys[-1] != after))
    return values, last
