"""Ranges of different lengths, shared evenly by the lanes of a warp or by the warps of a grid."""

from collections.abc import Callable
from typing import Any

from ..simt.primitives import Simt
from ..simt.typed import Array, Body, Operand, Value

UNROLL = 4  # strides of 32 places whose loads are in flight together
LONG = 512  # a range longer than this is cut into pieces for other warps
PIECE = 256


def flatten(
    k: Simt,
    start: Value,
    size: Value,
    payload: tuple[Value, ...],
    f: Body,
    *carry: Operand,
    unroll: int = UNROLL,
) -> tuple[Value, ...]:
    """carry = f(places, valid, *payload, *carry) for places start .. start + size - 1 of each lane.

    Called by all 32 lanes, whose ranges together are shared evenly by the lanes. `f` gets `unroll`
    places side by side, masks that are false beyond the last place, and the payload (int32) of the
    lanes whose ranges hold them.
    """
    upto, total = k.warp_scan(size)
    before = upto - size
    shift = start - before

    def stride(e0, *carry):
        def one(u):
            e = e0 + 32 * u + k.lane
            owner = k.owner(before, e)
            return k.shfl(shift, owner) + e, e < total, *(k.shfl(p, owner) for p in payload)

        places, valid, *payloads = k.several(unroll, one)
        return f(places, valid, *payloads, *carry)

    return k.for_(0, total, 32 * unroll, stride, *carry)


def warps_before(k: Simt, shared: Array, total: Value, first: int = 0) -> tuple[Value, Value]:
    """A number of each warp of a CTA, added up: (those of the warps before this one, all).

    Called by all threads. `shared`: from word `first` on, one for each warp, that no thread reads
    any more.
    """
    k.store(shared, first + k.warp, total, mask=k.lane == 0)
    k.sync()
    upto, whole = k.warp_scan(k.load(shared, first + k.lane, mask=k.lane < k.threads // 32))
    return k.shfl(upto, k.warp) - total, whole


class Ranges:
    """Ranges i = 0 .. count - 1 of places, spread over all warps; long ones in pieces.

    `read(i, mask)` gives (start, end, payload) of range i. `pieces`: an int32 array of `capacity`
    pieces of 4 words; `control[word]` counts them.
    """

    def __init__(
        self,
        k: Simt,
        count: Any,
        read: Callable[[Value, Value], tuple[Value, Value, Value]],
        pieces: Array,
        capacity: int,
        control: Array,
        word: int,
        unroll: int = UNROLL,
    ):
        self.k, self.count, self.read, self.unroll = k, count, read, unroll
        self.pieces, self.capacity, self.control, self.word = pieces, capacity, control, word

    def cut(self) -> None:
        """Lists the pieces of long ranges; a grid barrier must lie between this and `run`."""
        k = self.k

        def some(i, valid):
            start, end, payload = self.read(i, valid)
            size = k.where(valid & (end - start > LONG), end - start, 0)

            def append():
                parts = (size + (PIECE - 1)) // PIECE
                at = k.atomic("add", self.control, self.word, parts, mask=size > 0)

                def store(j):
                    low = start + j * PIECE
                    piece = low, k.minimum(low + PIECE, end), payload, 0
                    fits = at + j < self.capacity
                    k.store_vec(self.pieces, (at + j) * 4, piece, mask=fits)

                k.for_(0, parts, 1, store)

            k.if_(size > 0, append)

        k.distribute(self.count, k.warps, some)

    def run(self, pieces: Value, f: Body) -> None:
        """`flatten` over all ranges; `pieces` is the count read at the barrier."""
        k = self.k

        def short(i, valid):
            start, end, payload = self.read(i, valid)
            size = k.where(valid & (end - start <= LONG), end - start, 0)
            flatten(k, start, size, (payload,), f, unroll=self.unroll)

        def long(i, valid):
            start, end, payload, _ = k.load_vec(self.pieces, i * 4, 4, mask=valid, cache="fresh")
            flatten(k, start, k.where(valid, end - start, 0), (payload,), f, unroll=self.unroll)

        k.distribute(self.count, k.warps, short)
        k.distribute(k.minimum(pieces, self.capacity), k.warps, long)


def piece_capacity(places: int) -> int:
    """The most pieces that long ranges can make, over `places` places in all."""
    return places // PIECE + places // LONG + 1


class Flat:
    """A shape of `merge_path.CsrRows`: entries of 32 rows side by side, all lanes present.

    The job has `edges(places, valid, *row)`, which gets what `flatten` gives its function.
    """

    def shared_words(self, threads: int, words: int = 1) -> int:
        return 0

    def walk_of(self, job: Any) -> Callable[[Value, Value], None]:
        k = job.k

        def walk(first, stop):
            def rows(base):
                r = base + k.lane
                begin, end = k.row(job.indptr, r, r < stop)
                begin, end = k.maximum(begin, job.low), k.minimum(end, job.high)
                row = job.row(r, r < stop)
                valid = (r < stop) & job.wanted(row)
                size = k.where(valid, k.maximum(end - begin, 0), 0)
                flatten(k, begin, size, row, job.edges)

            k.for_(first, stop, 32, rows)

        return walk
