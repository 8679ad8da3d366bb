"""A warp sorts pairs (key, value) in its registers and combines those of equal keys, row by row.

Element lane * U + u of 32 U pairs is register u of a lane. A row has `span` lanes, a power of two.
The network is the bitonic one whose comparators all point one way (Batcher, "Sorting networks and
their applications", AFIPS 1968): the order in which equal keys are combined depends on their places
alone.
"""


def sort(k, keys, values, span):
    """Both lists in ascending order of the keys within each `span` lanes; U is a power of two."""
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
