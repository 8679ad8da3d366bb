"""The places of set bits in ascending order, by all warps of a grid."""

from typing import Any

from ..simt.primitives import Simt
from ..simt.typed import Array, Operand, Value


def set_bits(
    k: Simt, bits: Any, other: Operand, control: Array, at: int, shared: tuple[Array, Array]
) -> Value:
    """Writes the indices of the set bits of an array of words, in order, then `other`; returns ok.

    bits: has `array` and `words` (how many are read), `found` and `capacity` (the result). Control
    words at .. at + CTAs - 1 must be zero and serve once; shared: arrays of 32 and 4 words.
    """
    counts, sums = shared
    warps = k.threads // 32
    each = -(-bits.words // (32 * k.ctas * warps)) * 32  # words of a warp
    first = (k.cta * warps + k.warp) * each
    stop = k.minimum(first + each, bits.words)

    def word(i):
        return k.load(bits.array, i + k.lane, mask=i + k.lane < stop, cache="fresh")

    k.store(counts, k.thread, 0, mask=k.thread < 32)
    k.sync()
    (many,) = k.for_(first, stop, 32, lambda i, many: many + k.popc(word(i)), 0)
    many = k.warp_sum(many)
    k.store(counts, k.warp, many, mask=k.lane == 0)
    k.sync()
    upto, here = k.warp_scan(k.load(counts, k.lane))
    ok, before, total = k.sums_of_ctas(control, at, here, sums)

    def put(i, place):
        mine = word(i)
        upto, many = k.warp_scan(k.popc(mine))

        def bit(j, place):
            k.store(bits.found, place, (i + k.lane) * 32 + j, mask=place < bits.capacity)
            return place + 1

        k.each_bit(mine, bit, place + upto - k.popc(mine))
        return place + many

    k.for_(first, stop, 32, put, before + k.shfl(upto, k.warp) - many)
    k.spread(bits.capacity, lambda i: k.store(bits.found, i, other, mask=i >= total))
    return ok
