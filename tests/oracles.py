"""Definitions in plain NumPy and Python loops; nothing of the library's code."""

import numpy as np

LOW, HIGH = "lowest", "highest"


def extreme(which, dtype):
    """The smallest or the largest number of a dtype; floats have infinities."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return which == HIGH
    if dtype.kind in "iu":
        return np.iinfo(dtype).max if which == HIGH else np.iinfo(dtype).min
    return np.inf if which == HIGH else -np.inf


def _negated_xor(x, y):
    return ~np.bitwise_xor(x, y)


# name: (x, y) -> z, identity. -1 is all bits set. GraphBLAS C API 2.1, table 3.7.
ADD = {
    "plus": (np.add, 0),
    "times": (np.multiply, 1),
    "min": (np.minimum, HIGH),
    "max": (np.maximum, LOW),
    "any": (lambda x, y: x, 0),
    "lor": (np.logical_or, False),
    "land": (np.logical_and, True),
    "lxor": (np.logical_xor, False),
    "lxnor": (np.equal, True),
    "bor": (np.bitwise_or, 0),
    "band": (np.bitwise_and, -1),
    "bxor": (np.bitwise_xor, 0),
    "bxnor": (_negated_xor, -1),
    "logaddexp": (np.logaddexp, LOW),
}


def identity(name, dtype):
    """The identity of a monoid, by name."""
    value = ADD[name][1]
    return np.array(extreme(value, dtype) if value in (LOW, HIGH) else value).astype(dtype)


def fold(name, terms):
    """The terms joined from left to right; the identity if there are none.

    Floats that round are joined in float64, which the caller compares within a tolerance.
    """
    terms = np.asarray(terms)
    add, dtype = ADD[name][0], terms.dtype
    if dtype.kind not in "biu" and name in ("plus", "times", "logaddexp"):
        terms = terms.astype(np.float64)
    if not terms.size:
        return identity(name, dtype)
    total = terms[0]
    with np.errstate(all="ignore"):
        for term in terms[1:]:
            total = np.asarray(add(total, term)).astype(terms.dtype)
    return total


def segments(name, terms, ids, count):
    """Fold of the terms of each segment; segments outside [0, count) are left out."""
    return [fold(name, terms[ids == s]) for s in range(count)]


def running(name, terms, ids):
    """At each place the fold of its run of equal ids so far."""
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])[: ids.size])
    first = [starts[starts <= k].max() for k in range(ids.size)]
    return [fold(name, terms[f : k + 1]) for k, f in enumerate(first)]


def product(a, b, add, mul):
    """C[i, j] = add over stored pairs k of mul(A[i, k], B[k, j], i, k, j); pairs in order of k.

    `a`, `b`: (values, stored) dense arrays. Returns (values as objects, stored): what is not stored
    is absent, whatever the values are.
    """
    (a_values, a_stored), (b_values, b_stored) = a, b
    m, n = a_values.shape[0], b_values.shape[1]
    values, stored = np.zeros((m, n), object), np.zeros((m, n), bool)
    for i, k, j in np.ndindex(m, a_values.shape[1], n):
        if a_stored[i, k] and b_stored[k, j]:
            term = mul(a_values[i, k], b_values[k, j], i, k, j)
            values[i, j] = add(values[i, j], term) if stored[i, j] else term
            stored[i, j] = True
    return values, stored


def dense(row, col, data, shape, fill=0):
    """The dense matrix of distinct triplets."""
    values = np.full(shape, fill, np.asarray(data).dtype)
    for i, j, v in zip(row, col, data, strict=True):
        values[i, j] = v
    return values
