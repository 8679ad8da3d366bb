"""A warp sorts pairs (key, value) in its registers and combines those of equal keys.

Element lane * U + u of 32 U pairs is register u of a lane. The network is the bitonic one whose
comparators all point one way (Batcher, "Sorting networks and their applications", AFIPS 1968): the
order in which equal keys are combined depends on their places alone.
"""


def sort(k, keys, values):
    """Both lists in ascending order of the keys; 32 U pairs, U a power of two. All lanes."""
    keys, values = list(keys), list(values)
    width = len(keys)
    size = 2
    while size <= 32 * width:
        _exchange(k, keys, values, size - 1)
        stride = size // 4
        while stride:
            _exchange(k, keys, values, stride)
            stride //= 2
        size *= 2
    return keys, values


def _exchange(k, keys, values, flip):
    """Orders every pair of elements whose numbers differ in the bits of `flip`."""
    width = len(keys)
    inside, across = flip % width, flip // width
    if across:
        top = 1 << (across.bit_length() - 1)
        lower = k.lane & top == 0
        others = [
            (k.shfl_xor(keys[u ^ inside], across), k.shfl_xor(values[u ^ inside], across))
            for u in range(width)
        ]
        for u, (key, value) in enumerate(others):
            first = k.where(lower, k.minimum(keys[u], key), k.maximum(keys[u], key))
            values[u] = k.where(first == keys[u], values[u], value)
            keys[u] = first
        return
    for u in range(width):
        v = u ^ inside
        if u < v:
            swap = keys[v] < keys[u]
            low, high = k.minimum(keys[u], keys[v]), k.maximum(keys[u], keys[v])
            values[u], values[v] = (
                k.where(swap, values[v], values[u]),
                k.where(swap, values[u], values[v]),
            )
            keys[u], keys[v] = low, high


def combine_runs(k, combine, keys, values):
    """(values, last): of sorted pairs the values folded from the first of a key on, and whether a
    pair is the last of its key, where the value is that of all. All lanes."""
    keys, values = list(keys), list(values)
    for u in range(1, len(keys)):
        joined = combine(values[u - 1], values[u])
        values[u] = k.where(keys[u] == keys[u - 1], joined, values[u])
    tail, end = values[-1], keys[-1]
    for d in (1, 2, 4, 8, 16):  # equal keys are neighbours: what lies between is equal too
        same = (k.lane >= d) & (k.shfl_up(end, d) == end)
        tail = k.where(same, combine(k.shfl_up(tail, d), tail), tail)
    before, carry = k.shfl_up(end, 1), k.shfl_up(tail, 1)
    values = [
        k.where((k.lane > 0) & (before == key), combine(carry, value), value)
        for key, value in zip(keys, values, strict=True)
    ]
    after = k.shfl(keys[0], k.lane + 1)
    last = [a != b for a, b in zip(keys[:-1], keys[1:], strict=True)]
    last.append((k.lane == 31) | (keys[-1] != after))
    return values, last
