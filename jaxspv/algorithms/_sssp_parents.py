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
    never = jnp.int32(n + 1)
    inside = (source >= 0) & (source < n)
    vertex = jnp.arange(n, dtype=jnp.int32)

    def scan(c):
        e, end, u, length_u, level, head, tail, queue, hops, parents = c
        take = e >= end
        first = load(queue, head)
        u = jnp.where(take, first, u)
        e = jnp.where(take, load(indptr, first), e)
        end = jnp.where(take, load(indptr, first + 1), end)
        length_u = jnp.where(take, load(length, first), length_u)
        level = jnp.where(take, load(hops, first) + 1, level)

        def tight(e, v):
            return extend(length_u, load(weights, e)) == load(length, v)

        def nothing_to_do(e):
            found = e >= end
            for j in range(UNROLL):
                v = load(indices, e + j)
                found |= tight(e + j, v) & (load(hops, v) >= level)
            return ~found

        e = lax.while_loop(nothing_to_do, lambda e: e + UNROLL, e)
        stop = jnp.minimum(e + UNROLL, end)

        def claim(c):
            e, previous, value, tail, queue, hops, parents = c
            hops = store(hops, previous, jnp.minimum(load(hops, previous), value))
            v = load(indices, e)
            found = tight(e, v) & (load(length, v) < top)
            new = found & (load(hops, v) == never)
            better = found & (load(hops, v) == level) & (u < load(parents, v))
            parents = store(parents, v, jnp.where(new | better, u, load(parents, v)))
            queue = store(queue, tail, v)
            return (
                e + 1, v, jnp.where(new, level, never), tail + new.astype(jnp.int32),
                queue, hops, parents,
            )

        e, previous, value, tail, queue, hops, parents = lax.while_loop(
            lambda c: c[0] < stop, claim, (e, jnp.int32(0), never, tail, queue, hops, parents)
        )
        hops = store(hops, previous, jnp.minimum(load(hops, previous), value))
        return e, end, u, length_u, level, head + take.astype(jnp.int32), tail, queue, hops, parents

    zero = jnp.int32(0)
    first = (
        zero, zero, zero, jnp.zeros_like(top), zero, zero, inside.astype(jnp.int32),
        jnp.full(n + 1, jnp.where(inside, source, 0), jnp.int32),
        jnp.where(vertex == source, 0, never), jnp.where(vertex == source, source, -1),
    )
    return lax.while_loop(lambda c: (c[0] < c[1]) | (c[5] < c[6]), scan, first)[-1]
