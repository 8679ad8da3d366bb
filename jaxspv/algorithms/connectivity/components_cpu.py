"""Weak components on a CPU: sets of vertices that edges join, in native loops."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from ..._core.native_loops import each, read, write


def components_cpu(indptr: Array, indices: Array) -> Array:
    """(n,) int32: the smallest vertex of the weak component of each.

    Union-find: every vertex points to one of its set that is no larger, a root to itself. An edge
    makes the larger of its two roots point to the smaller; then the path from its head to the root
    is compressed.

    Cost: O((n + edges) log n) time at worst, by path compression; a few nanoseconds an edge.
    Source: Tarjan, van Leeuwen, "Worst-case analysis of set union algorithms", J. ACM 1984.
    """
    n = indptr.shape[0] - 1
    vertex = jnp.arange(n, dtype=jnp.int32)
    if n == 0 or indices.shape[0] == 0:
        return vertex

    def row(u, up):
        def edge(e, mine, up):
            v = read(indices, e)
            theirs = _root(up, v)
            low = jnp.minimum(mine, theirs)
            up = write(up, jnp.maximum(mine, theirs), low)
            return low, _shortened(up, v, low)

        mine = _root(up, u)
        low, up = each(read(indptr, u), read(indptr, u + 1), edge, mine, up)
        return _shortened(up, u, low)

    (up,) = each(0, n, lambda u, up: (row(u, up),), vertex)

    def settle(v, up):
        # What v points to is smaller, or v itself, and points to its root already.
        return (write(up, v, read(up, read(up, v))),)

    return each(0, n, settle, up)[0]


def _root(up: Array, v: Array) -> Array:
    def climb(c):
        _, above = c
        return above, read(up, above)

    return lax.while_loop(lambda c: c[0] != c[1], climb, (v, read(up, v)))[0]


def _shortened(up: Array, v: Array, root: Array) -> Array:
    """All on the way from v point to `root`."""

    def climb(c):
        at, above, up = c
        up = write(up, at, root)
        return above, read(up, above), up

    return lax.while_loop(lambda c: c[1] != root, climb, (v, read(up, v), up))[2]
