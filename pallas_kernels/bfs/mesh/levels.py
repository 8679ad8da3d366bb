"""The end of a search on a mesh: all devices get all levels, and how many there are."""

import functools

from ...simt.typed import one_by_one

FAR = 2**31 - 1  # the level of a vertex that is not reached
UNROLL = 4  # groups of four levels whose loads a thread has in flight together
BYTE = 255  # FAR in a byte; levels of a search of fewer levels are sent as bytes


def finish(k, c, m, vertices, barrier, s, last_rows):
    """Replaces FAR by -1 and broadcasts the levels into m.messages (every device has read the
    messages before); then writes `whole` by vertex. Returns (ok, number of levels). One device
    barrier.

    Each place takes a byte, or a word where the search has 255 levels or more. Only places before
    `last_rows` are sent. Control word c.deepest holds the largest level + 1 of this device; it
    travels as the first word of the barrier's payload.
    """
    shallow = s.level < BYTE
    end = last_rows.of(k.device)

    step = k.ctas * k.threads

    def send(j, most):
        at = k.several(UNROLL, lambda i: j + i * step)
        valid = k.below(at, k.shr(end, 2))
        levels = k.load_vec(m.levels, 4 * at, 4, mask=valid, other=FAR, cache="fresh")
        for i, mask, four in one_by_one(at, valid, levels):
            four = [k.where(level == FAR, -1, level) for level in four]
            most = functools.reduce(k.maximum, [level + 1 for level in four], most)
            if c.local_levels:
                k.store_vec(m.levels, 4 * i, four, mask=mask)
            bytes_ = [(level & BYTE) << (8 * b) for b, level in enumerate(four)]
            word = k.union(bytes_)
            for d in range(k.devices):
                at = k.shr(vertices.first, 2) + i
                k.store(k.on(m.messages, d), at, word, mask=mask & shallow)
            deep = mask & ~shallow
            k.if_(deep, lambda i=i, four=four: vertices.broadcast(m.messages, 4 * i, *four))
        return most

    worker = k.cta * k.threads + k.thread
    (most,) = k.for_(worker, k.shr(end, 2), UNROLL * step, send, 0)
    beyond = k.shr(end, 2)
    if c.local_levels:
        k.spread(c.n // 4 - beyond, lambda j: k.store_vec(m.levels, 4 * (beyond + j), [-1] * 4))
    most = k.warp_fold(k.maximum, most)
    k.reduce("max", m.control, c.deepest, most, mask=k.lane == 0)

    def payload(device):
        return (k.load(m.control, c.deepest, cache="fresh"),) + (0,) * (barrier.words - 1)

    ok = s.ok & barrier.device_barrier(s.turn, payload)
    deep = functools.reduce(k.maximum, (barrier.word(d, 0) for d in range(k.devices)))

    def level(place):
        device = place // c.n
        valid = place - device * c.n < last_rows.of(device)
        at = k.where(shallow, k.shr(place, 2), place)
        word = k.load(m.messages, at, mask=valid, other=-1, cache="fresh")
        byte = k.shr(word, (place & 3) << 3) & BYTE
        return k.where(shallow, k.where(byte == BYTE, -1, byte), word)

    vertices.write_by_vertex(m.whole, level)
    return ok, deep
