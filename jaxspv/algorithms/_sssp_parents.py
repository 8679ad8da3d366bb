"""The tree of shortest paths from the distances: breadth-first over the tight edges."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from ._lengths import extend, infinity
from ._scalar import load, store

UNROLL = 4


def parents_sequential(
    indptr: Array, indices: Array, weights: Array, length: Array, source: Array
) -> Array:
    """For each reached vertex its tight predecessor of smallest (hops, id); see `sssp_parents_xla`.

    One edge at a time, in native code on CPU. A vertex enters the queue once, in the order of hops,
    so the hops of a popped vertex are final.
    """
    n = indptr.shape[0] - 1
    top = infinity(length.dtype)
    never = jnp.int32(n)
    inside = (source >= 0) & (source < n)
    vertex = jnp.arange(n, dtype=jnp.int32)

    def scan(c):
        e, end, u, head, tail, queue, hops, parents = c
        take = e >= end
        u = jnp.where(take, load(queue, head), u)
        e = jnp.where(take, load(indptr, u), e)
        end = jnp.where(take, load(indptr, u + 1), end)

        def tight(e):
            reach = extend(load(length, u), load(weights, e))
            return reach == load(length, load(indices, e))

        def nothing_to_do(e):
            found = e >= end
            for j in range(UNROLL):
                found |= tight(e + j)
            return ~found

        e = lax.while_loop(nothing_to_do, lambda e: e + UNROLL, e)
        stop = jnp.minimum(e + UNROLL, end)

        def claim(c):
            e, v, value, tail, queue, hops, parents = c
            hops = store(hops, v, jnp.minimum(load(hops, v), value))
            v = load(indices, e)
            level = load(hops, u) + 1
            good = tight(e) & (load(length, v) < top) & (load(hops, v) >= level)
            new = good & (load(hops, v) == never)
            parents = store(parents, v, jnp.minimum(load(parents, v), jnp.where(good, u, n)))
            queue = store(queue, tail, v)
            value = jnp.where(good, level, never)
            return e + 1, v, value, tail + new.astype(jnp.int32), queue, hops, parents

        e, v, value, tail, queue, hops, parents = lax.while_loop(
            lambda c: c[0] < stop, claim, (e, jnp.int32(0), never, tail, queue, hops, parents)
        )
        hops = store(hops, v, jnp.minimum(load(hops, v), value))
        return e, end, u, head + take.astype(jnp.int32), tail, queue, hops, parents

    zero = jnp.int32(0)
    first = (
        zero, zero, zero, zero, inside.astype(jnp.int32),
        jnp.full(n + 1, jnp.where(inside, source, 0), jnp.int32),
        jnp.where(vertex == source, 0, never), jnp.where(vertex == source, source, never),
    )
    c = lax.while_loop(lambda c: (c[0] < c[1]) | (c[3] < c[4]), scan, first)
    return jnp.where(c[-1] < n, c[-1], -1)
