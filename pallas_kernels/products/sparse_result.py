"""A sparse result under construction: values combined by atomics, places as bits, compaction."""

import jax.numpy as jnp

from ..rows.flatten import warps_before
from ..simt.typed import one_by_one

ATOMIC = ("add", "min", "max")


def accumulator_dtype(add, dtype):
    """The dtype of the words that atomics work on: floats under min and max go by their bits."""
    return jnp.dtype(dtype) if add == "add" else jnp.dtype(jnp.int32)


class SparseResult:
    """y of length m: `values` (m words), `bits` (m / 32 words), and at the end a sparse vector.

    add is one of ATOMIC; kind is "f32" or "i32". Floats under min and max are stored as integers of
    the same order; a NaN is the smallest of them under min and the largest under max, as jax.numpy
    propagates it.

    A CTA writes a stretch of `each` words of bits, counted when all products are combined.
    """

    def __init__(self, k, m, add, kind, values, bits, allowed=None):
        self.k, self.m, self.add, self.kind = k, m, add, kind
        self.values, self.bits, self.allowed = values, bits, allowed
        self.words = -(-m // 32)
        self.each = -(-self.words // k.ctas)

    def clear(self):
        """Sets all values to the identity and all bits to 0."""
        fill(self.k, self.values, 0, self.m, self.identity())
        fill(self.k, self.bits, 0, self.words, 0)

    def identity(self):
        """The word for the identity of the addition."""
        return {"add": 0, "min": 2**31 - 1, "max": -(2**31)}[self.add]

    def pad(self, indices, nse):
        """Padding in all of `indices` (nse of them), by all warps but the first of each CTA; a
        grid barrier before `compact`."""
        fill(self.k, indices, 0, nse, self.m, skip=32)

    def allowed_at(self, row, mask):
        """mask, and whether the mask of the product allows this row."""
        if self.allowed is None:
            return mask
        k = self.k
        word = k.load(self.allowed, k.shr(row, 5), mask=mask, cache="nc")
        return mask & (word & k.bit(row) != 0)

    def combine(self, rows, values, masks):
        """values[row] = add(values[row], value) and the bit of row, for one or several."""
        k = self.k
        # a stale word costs one more atomic, nothing else
        at, bit = k.shr(rows, 5), k.bit(rows)
        words = k.load(self.bits, at, mask=masks)
        k.reduce(self.add, self.values, rows, self.encode(values), mask=masks)
        k.reduce("or", self.bits, at, bit, mask=masks & (words & bit == 0))

    def word_kind(self):
        """The kind of the words that atomics work on."""
        return self.kind if self.add == "add" else "i32"

    def encode(self, v):
        """The word of a value."""
        k = self.k
        if self.kind == self.word_kind():
            return v
        word = k.bits(v, "i32")
        word = word ^ ((word >> 31) & 0x7FFFFFFF)
        return k.where(v != v, -(2**31) if self.add == "min" else 2**31 - 1, word)

    def decode(self, w):
        """The value of a word."""
        k = self.k
        if self.kind == self.word_kind():
            return w
        return k.bits(w ^ ((w >> 31) & 0x7FFFFFFF), "f32")

    def compact(self, control, at, shared, indices, data, nse):
        """Writes the entries in ascending order, after a grid barrier; returns (ok, count).

        shared: `shared_words(threads)` words; control words from `at` on, one a CTA, are for
        this. Each CTA writes its stretch of the bits behind those of the CTAs before.
        """
        k = self.k
        base = k.cta * self.each
        end = k.minimum(base + self.each, self.words)
        ok, before, count = k.sums_of_ctas(control, at, self._count(shared, base, end), shared)
        each = (end - base + (k.threads - 1)) // k.threads

        def block(b, running):
            return running + self._write(
                base + b * k.threads, end, running, shared, indices, data, nse
            )

        k.for_(0, k.maximum(each, 0), 1, block, before)
        return ok, count

    def _count(self, shared, base, end):
        """The entries of the stretch."""
        k = self.k
        k.store(shared, 32, 0, mask=k.thread == 0)
        k.sync()

        def count(i, n):
            return n + k.popc(k.load(self.bits, i, cache="fresh"))

        (mine,) = k.for_(base + k.thread, end, k.threads, count, 0)
        k.add_sum(shared, 32, mine)
        k.sync()
        return k.load(shared, 32)

    def _write(self, base, end, running, shared, indices, data, nse):
        """Entries of the words base .. base + threads - 1 from place `running` on; how many."""
        k, warps = self.k, self.k.threads // 32
        i = base + k.thread
        word = k.load(self.bits, i, mask=i < end, cache="fresh")
        upto, total = k.warp_scan(k.popc(word))
        k.sync()
        before, all_ = warps_before(k, shared, total)
        k.store(shared, HEAD + k.thread, word)
        k.store(shared, HEAD + k.threads + k.thread, running + before + upto - k.popc(word))
        k.sync()

        def some(j0):
            def one(u):
                j = j0 + u * warps
                valid = j < k.threads
                bits = k.load(shared, HEAD + j, mask=valid)
                at = k.load(shared, HEAD + k.threads + j, mask=valid) + k.lanes_below(bits)
                return (base + j) * 32 + k.lane, at, (k.shr(bits, k.lane) & 1 != 0) & (at < nse)

            rows, places, mine = k.several(4, one)
            values = self.decode(k.load(self.values, rows, mask=mine, cache="fresh"))
            for row, at, m, value in one_by_one(rows, places, mine, values):
                k.store(indices, at, row, mask=m)
                k.store(data, at, value, mask=m)

        k.for_(k.warp, k.minimum(end - base, k.threads), 4 * warps, some)
        return all_


HEAD = 36  # words of `shared` before the words and places of a stretch


def shared_words(threads):
    """Words of shared memory that `SparseResult.compact` needs."""
    return HEAD + 2 * threads


def fill(k, a, start, stop, value, skip=0):
    """a[start:stop] = value by the whole grid, without the first `skip` threads of each CTA;
    four words at a time where they are aligned."""
    start, stop = k.const(start), k.const(stop)
    first = k.minimum((start + 3) & ~3, stop)
    last = k.maximum(stop & ~3, first)
    width = k.threads - skip
    me = k.cta * width + k.thread - skip
    k.store(a, start + me, value, mask=start + me < first)
    k.store(a, last + me, value, mask=last + me < stop)
    step = 4 * k.ctas * width
    k.for_(first + 4 * me, last, step, lambda i: k.store_vec(a, i, [value] * 4))
