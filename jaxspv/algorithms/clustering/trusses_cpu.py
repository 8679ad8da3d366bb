"""Trusses on a CPU: edges with too few triangles are removed one by one, in native loops."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from ..._core.native_loops import each, once, read, write
from ...formats import CSR


def peeled(A: CSR, k: Array) -> Array:
    """(nse,) bool: the entries of the k-truss of a symmetric pattern, rows sorted, no self loops.

    The triangles of each edge are counted once. An edge with fewer than k - 2 is removed: the other
    two edges of each of its triangles that is still complete have one triangle less, and may be
    removed for that.

    Cost: O(edges * smaller degree * log(larger degree)) at most.
    """
    names = _names(A)
    support = _support(A, names)
    row = A.rowcol()[0]
    least = jnp.maximum(k, 2) - 2
    slots = jnp.arange(A.nse, dtype=jnp.int32)
    first = (names == slots) & (support < least) & (row < A.shape[0])
    (queue,) = jnp.nonzero(first, size=A.nse, fill_value=A.nse)
    queue = jnp.append(queue.astype(jnp.int32), A.nse)  # the last place takes what is not queued

    def leave(c):
        i, end, queue, support, gone = c
        e = read(queue, i)
        u, v = read(row, e), read(A.indices, e)
        first, last = read(A.indptr, u), read(A.indptr, u + 1)

        def neighbor(f, end, queue, support, gone):
            w = read(A.indices, f)
            g = _find(A.indices, first, last, w)
            found = (g < last) & (read(A.indices, g) == w)
            one, two = read(names, f), read(names, g)
            valid = found & ~read(gone, one) & ~read(gone, two)

            def lower(edge, left, end, queue, support):
                leaves = left == least
                queue = write(queue, jnp.where(leaves, end, A.nse), edge)
                return edge, left, end + leaves, queue, write(support, edge, left - 1)

            for edge in (one, two):
                state = (edge, read(support, edge), end, queue, support)
                end, queue, support = once(valid, lower, *state)[2:]
            return end, queue, support, gone

        gone = write(gone, e, jnp.bool_(True))
        ends = read(A.indptr, v), read(A.indptr, v + 1)
        return i + 1, *each(*ends, neighbor, end, queue, support, gone)

    start = (jnp.int32(0), jnp.sum(first, dtype=jnp.int32), queue, support)
    state = (*start, jnp.zeros(A.nse, bool))
    gone = lax.while_loop(lambda c: c[0] < c[1], leave, state)[4]
    return (row < A.shape[0]) & ~gone[names]


def _find(indices: Array, first: Array, last: Array, w: Array) -> Array:
    """The first slot from `first` on that does not hold less than w."""

    def half(c):
        low, high = c
        middle = (low + high) // 2
        less = read(indices, middle) < w
        return jnp.where(less, middle + 1, low), jnp.where(less, high, middle)

    return lax.while_loop(lambda c: c[0] < c[1], half, (first, last))[0]


def _names(A: CSR) -> Array:
    """(nse,) int32: the slot that represents each edge, in the row of its larger degree."""
    n, indptr, indices = A.shape[0], A.indptr, A.indices

    def vertex(u, place, names):
        mine = read(indptr, u + 1) - read(indptr, u)

        def edge(e, place, names):
            v = read(indices, e)
            theirs = read(indptr, v + 1) - read(indptr, v)
            larger = (mine > theirs) | ((mine == theirs) & (u > v))

            def note(v, twin, place, names):  # rows are sorted: u comes next in that of v
                names = write(names, e, jnp.where(larger, e, twin))
                return v, twin, write(place, v, twin + 1), names

            return once(True, note, v, read(place, v), place, names)[2:]

        return each(read(indptr, u), read(indptr, u + 1), edge, place, names)

    return each(0, n, vertex, indptr[:-1], jnp.arange(A.nse, dtype=jnp.int32))[1]


def _support(A: CSR, names: Array) -> Array:
    """(nse,) int32: the triangles of each edge, at the entry that names it."""
    n, indptr, indices = A.shape[0], A.indptr, A.indices

    def vertex(u, mark, support):
        ends = read(indptr, u), read(indptr, u + 1)

        def note(e, mark):
            return (write(mark, read(indices, e), u),)

        (mark,) = each(*ends, note, mark)

        def edge(e, mark, support):
            v = read(indices, e)
            first, last = read(indptr, v), read(indptr, v + 1)
            first = jnp.where(read(names, e) == e, first, last)

            def closed(f, count):
                return (count + (read(mark, read(indices, f)) == u),)

            (count,) = each(first, last, closed, jnp.int32(0))
            return mark, write(support, e, count)

        return each(*ends, edge, mark, support)

    return each(0, n, vertex, jnp.full(n, -1, jnp.int32), jnp.zeros(A.nse, jnp.int32))[1]
