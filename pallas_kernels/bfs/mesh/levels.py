"""The end of `any_degree.py`: levels of all vertices on every device, and how many there are."""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

import functools
import operator

FAR = 2**31 - 1  # the level of who is not reached
AT_ONCE = 4  # fours of levels a thread asks for together
BYTE = 255  # the same in a byte, by which searches of fewer levels are told


def finish(k, c, m, vertices, barrier, s, ends):
    """(ok, levels): -1 for FAR, told where letters were, of which none are left; one meeting.

    A byte a place, or a word where the search was deep, goes to every device: of the places before
    its `ends`.
    """
    shallow = s.level < BYTE
    mine = ends.of(k.device)

    step = k.ctas * k.threads

    def settle(j, most):
        at = [j + i * step for i in range(AT_ONCE)]
        valid = [k.below(i, k.shr(mine, 2)) for i in at]
        levels = [
            k.load_vec(m.levels, 4 * i, 4, mask=mask, other=FAR, cache="fresh")
            for i, mask in zip(at, valid, strict=True)
        ]
        for i, mask, four in zip(at, valid, levels, strict=True):
            four = [k.where(level == FAR, -1, level) for level in four]
            most = functools.reduce(k.maximum, [level + 1 for level in four], most)
            if c.own:
                k.store_vec(m.levels, 4 * i, four, mask=mask)
            bytes_ = [(level & BYTE) << (8 * b) for b, level in enumerate(four)]
            word = functools.reduce(operator.or_, bytes_)
            for d in range(k.devices):
                at = k.shr(vertices.first, 2) + i
                k.store(k.on(m.letters, d), at, word, mask=mask & shallow)
            deep = mask & ~shallow
            k.if_(deep, lambda i=i, four=four: vertices.broadcast(m.letters, 4 * i, *four))
        return most

    worker = k.cta * k.threads + k.thread
    (most,) = k.for_(worker, k.shr(mine, 2), AT_ONCE * step, settle, 0)
    beyond = k.shr(mine, 2)
    if c.own:
        k.spread(c.n // 4 - beyond, lambda j: k.store_vec(m.levels, 4 * (beyond + j), [-1] * 4))
    most = k.warp_fold(k.maximum, most)
    k.reduce("max", m.control, c.deepest, most, mask=k.lane == 0)

    def tell(device):
        del device
        return (k.load(m.control, c.deepest, cache="fresh"),) + (0,) * (barrier.words - 1)

    ok = s.ok & barrier.device_barrier(s.turn, tell)
    deep = barrier.word(0, 0)
    for d in range(1, k.devices):
        deep = k.maximum(deep, barrier.word(d, 0))

    def level(place):
        device = place // c.n
        valid = place - device * c.n < ends.of(device)
        at = k.where(shallow, k.shr(place, 2), place)
        word = k.load(m.letters, at, mask=valid, other=-1, cache="fresh")
        byte = k.shr(word, (place & 3) << 3) & BYTE
        return k.where(shallow, k.where(byte == BYTE, -1, byte), word)

    vertices.give(m.whole, level)
    return ok, deep
