"""Ranges of many lengths shared evenly by the lanes of a warp, and by the warps of a grid."""

UNROLL = 4  # strides of 32 places whose loads are in flight together
LONG = 512  # a range longer than this is cut into pieces for other warps
PIECE = 256


def flatten(k, start, size, payload, f, unroll=UNROLL):
    """f(places, payloads, there): for the places start .. start + size - 1 of every lane's range.

    Called with all 32 lanes. `f` gets lists of `unroll` values: a place, the payload of the lane
    whose range holds it (a tuple of int32), and whether it exists; every lane gets its share.
    """
    upto, total = k.warp_scan(size)
    before = upto - size
    shift = start - before

    def stride(e0):
        places, payloads, there = [], [], []
        for u in range(unroll):
            e = e0 + 32 * u + k.lane
            owner = k.owner(before, e)
            places.append(k.shfl(shift, owner) + e)
            payloads.append(tuple(k.shfl(p, owner) for p in payload))
            there.append(e < total)
        f(places, payloads, there)

    k.for_(0, total, 32 * unroll, stride)


class Ranges:
    """Ranges i = 0 .. count - 1 of places, spread over all warps; long ones in pieces.

    `read(i, mask)` gives (start, end, payload) of a lane's range; `pieces` is an int32 array of
    4-word entries with room for `room` pieces and `control[word]` counts them.
    """

    def __init__(self, k, count, read, pieces, room, control, word, unroll=UNROLL):
        self.k, self.count, self.read, self.unroll = k, count, read, unroll
        self.pieces, self.room, self.control, self.word = pieces, room, control, word
        self.worker, self.workers = k.warp * k.ctas + k.cta, k.ctas * k.threads // 32

    def _spread(self, count, f):
        """f(i, there) for the items below count, up to 32 of them a warp at a time."""
        k = self.k
        each = k.minimum(k.maximum((count + (self.workers - 1)) // self.workers, 1), 32)

        def chunk(i0):
            f(i0 + k.lane, (k.lane < each) & (i0 + k.lane < count))

        k.for_(self.worker * each, count, self.workers * each, chunk)

    def cut(self):
        """Lists the pieces of long ranges; a grid barrier must lie between this and `run`."""
        k = self.k

        def some(i, there):
            start, end, payload = self.read(i, there)
            size = k.where(there & (end - start > LONG), end - start, 0)

            def append():
                parts = (size + (PIECE - 1)) // PIECE
                at = k.atomic("add", self.control, self.word, parts, mask=size > 0)

                def store(j):
                    low = start + j * PIECE
                    high = k.minimum(low + PIECE, end)
                    k.store_vec(
                        self.pieces, (at + j) * 4, (low, high, payload, 0), mask=at + j < self.room
                    )

                k.for_(0, parts, 1, store)

            k.if_(size > 0, append)

        self._spread(self.count, some)

    def run(self, pieces, f):
        """`flatten` over all ranges; `pieces` is the count read at the barrier."""
        k = self.k

        def short(i, there):
            start, end, payload = self.read(i, there)
            size = k.where(there & (end - start <= LONG), end - start, 0)
            flatten(k, start, size, (payload,), f, self.unroll)

        def long(i, there):
            start, end, payload, _ = k.load_vec(self.pieces, i * 4, 4, mask=there, cache="fresh")
            flatten(k, start, k.where(there, end - start, 0), (payload,), f, self.unroll)

        self._spread(self.count, short)
        self._spread(k.minimum(pieces, self.room), long)


def piece_room(places):
    """Pieces that long ranges over so many places can make."""
    return places // PIECE + places // LONG + 1
