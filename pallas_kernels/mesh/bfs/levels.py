"""The end of `any_degree.py`: levels of all vertices on every device, and how many there are."""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

import functools
import operator

FAR = 2**31 - 1  # the level of who is not reached
BYTE = 255  # the same in a byte, by which searches of fewer levels are told


def finish(k, c, m, vertices, barrier, s):
    """(ok, levels): -1 for FAR, told where letters were, of which none are left; one meeting.

    A byte a place, or a word where the search was deep, goes to every device.
    """
    shallow = s.level < BYTE

    def settle(j, most):
        four = [
            k.where(level == FAR, -1, level)
            for level in k.load_vec(m.levels, 4 * j, 4, cache="fresh")
        ]
        k.store_vec(m.levels, 4 * j, four)
        word = functools.reduce(
            operator.or_, [(level & BYTE) << (8 * i) for i, level in enumerate(four)]
        )
        at = k.shr(vertices.first, 2) + j
        for d in range(k.devices):
            k.store(k.on(m.letters, d), at, word, mask=shallow)
        k.if_(~shallow, lambda: vertices.tell_all(m.letters, 4 * j, *four))
        return k.maximum(most, functools.reduce(k.maximum, four) + 1)

    (most,) = k.spread(c.n // 4, settle, 0)
    most = k.warp_fold(k.maximum, most)
    k.reduce("max", m.control, c.deepest, most, mask=k.lane == 0)

    def tell(device):
        del device
        return (k.load(m.control, c.deepest, cache="fresh"),) + (0,) * (barrier.words - 1)

    ok = s.ok & barrier.meet(s.turn, tell)
    deep = barrier.word(0, 0)
    for d in range(1, k.devices):
        deep = k.maximum(deep, barrier.word(d, 0))

    def level(place):
        word = k.load(m.letters, k.where(shallow, k.shr(place, 2), place), cache="fresh")
        byte = k.shr(word, (place & 3) << 3) & BYTE
        return k.where(shallow, k.where(byte == BYTE, -1, byte), word)

    vertices.give(m.whole, level)
    return ok, deep
