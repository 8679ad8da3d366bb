"""The tree of shortest paths from the distances: breadth-first over the tight edges.

An edge u -> v of weight w is tight where `d[v] = d[u] + w` and v is reached. Zero weights, and
weights that a float sum absorbs, make cycles of tight edges: so a parent is chosen by hops, the
number of tight edges from the source, which rise along every chosen edge.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ...._core.native_loops import read, write
from ...common.frontier import Edges, Queue, append, one_of_each
from ..xla import OutEdges, extend, for_edges, infinity

UNROLL = 4  # edges looked at together; most are not tight


def _first_hops(graph: OutEdges, source: Array) -> tuple[Array, Array]:
    """Hops (n where unknown) and parents (n where unknown) before the first level."""
    at_source = jnp.arange(graph.n, dtype=jnp.int32) == source
    hops = jnp.where(at_source, 0, graph.n).astype(jnp.int32)
    return hops, jnp.where(at_source, source, graph.n).astype(jnp.int32)


def parents_cpu(graph: OutEdges, length: Array, source: Array) -> Array:
    """For each reached vertex its tight predecessor of smallest (hops, id), one edge at a time."""
    n = graph.n
    hops, parents = _first_hops(graph, source)
    inside = (source >= 0) & (source < n)
    queue = jnp.full(n + 1, jnp.where(inside, source, 0), jnp.int32)
    parents = _breadth_first(graph, length, queue, inside.astype(jnp.int32), hops, parents)
    return jnp.where(parents < n, parents, -1)


def adopted_cpu(graph: OutEdges, length: Array, orphan: Array, known: Array) -> Array:
    """For each orphan the slot of a tight edge from a vertex as near as itself, the one of smallest
    (edges from a known vertex over such edges, slot); nse where there is none."""
    n, nse = graph.n, graph.indices.shape[0]
    place = jnp.where(known, jnp.cumsum(known, dtype=jnp.int32) - 1, n + 1)
    vertex = jnp.arange(n, dtype=jnp.int32)
    queue = jnp.zeros(n + 1, jnp.int32).at[place].set(vertex, mode="drop")
    hops = jnp.where(orphan, n, 0).astype(jnp.int32)
    tail, none = jnp.sum(known, dtype=jnp.int32), jnp.full(n, nse, jnp.int32)
    return _breadth_first(graph, length, queue, tail, hops, none, adopt=True)


def _breadth_first(graph, length, queue, tail, hops, best, *, adopt=False):
    """best[v] of every v whose hops are n at the start: the least tail of the tight edges into it
    from the level before; with `adopt` the least slot of those between vertices of one distance.

    A vertex enters the queue once, in the order of hops, so the hops of a popped one are final.
    """
    n, nothing = graph.n, graph.indices.shape[0] if adopt else graph.n
    top = infinity(length.dtype)

    def scan(c):
        e, end, u, head, tail, queue, hops, best = c
        take = e >= end
        u = jnp.where(take, read(queue, head), u)
        e = jnp.where(take, read(graph.indptr, u), e)
        end = jnp.where(take, read(graph.indptr, u + 1), end)
        length_u, level = read(length, u), read(hops, u) + 1

        def tight(e):
            reach = extend(length_u, read(graph.weights, e))
            fits = reach == read(length, read(graph.indices, e))
            return fits & (reach == length_u) if adopt else fits

        def nothing_to_do(e):
            found = e >= end
            for j in range(UNROLL):
                found |= tight(e + j)
            return ~found

        e = lax.while_loop(nothing_to_do, lambda e: e + UNROLL, e)
        stop = jnp.minimum(e + UNROLL, end)

        def claim(c):
            e, tail, queue, hops, best = c
            v = read(graph.indices, e)
            known = read(hops, v)
            good = tight(e) & (read(length, v) < top) & (known >= level)
            what = good.astype(jnp.uint32) + (good & (known == n)).astype(jnp.uint32)
            what = lax.div(what * np.uint32(3), np.uint32(3))  # XLA does not repeat a division
            hops = write(hops, v, jnp.where(what > 0, level, read(hops, v)))
            name = jnp.where(what > 0, e if adopt else u, nothing)
            best = write(best, v, jnp.minimum(read(best, v), name))
            return e + 1, tail + (what > 1).astype(jnp.int32), write(queue, tail, v), hops, best

        _, tail, queue, hops, best = lax.while_loop(
            lambda c: c[0] < stop, claim, (e, tail, queue, hops, best)
        )
        return stop, end, u, head + take.astype(jnp.int32), tail, queue, hops, best

    zero = jnp.int32(0)
    first = (zero, zero, zero, zero, tail, queue, hops, best)
    return lax.while_loop(lambda c: (c[0] < c[1]) | (c[3] < c[4]), scan, first)[-1]


def parents_xla(graph: OutEdges, length: Array, source: Array) -> Array:
    """The same a level of hops at a time; see `xla`."""
    n = graph.n
    top = infinity(length.dtype)
    inside = ((source >= 0) & (source < n)).astype(jnp.int32)
    queue = Queue(jnp.full(n, source, jnp.int32), jnp.int32(0), inside)
    hops, parents = _first_hops(graph, source)

    def level(c):
        depth, queue, hops, parents, claims = c

        def visit(c, edges: Edges):
            queue, hops, parents, claims = c
            v = jnp.where(edges.valid, graph.indices.at[edges.slot].get(mode="clip"), 0)
            weight = graph.weights.at[edges.slot].get(mode="clip")
            tight = (extend(length[edges.tail], weight) == length[v]) & (length[v] < top)
            good = edges.valid & tight & (hops[v] > depth)
            claims, keep = one_of_each(claims, v, good & (hops[v] == n))
            parents = parents.at[jnp.where(good, v, n)].min(edges.tail, mode="drop")
            hops = hops.at[jnp.where(good, v, n)].set(depth + 1, mode="drop")
            return append(queue, v, keep), hops, parents, claims

        carry = for_edges(graph, queue, (queue, hops, parents, claims), visit)
        return depth + 1, carry[0]._replace(head=queue.tail), *carry[1:]

    first = (jnp.int32(0), queue, hops, parents, jnp.zeros(n, jnp.int32))
    parents = lax.while_loop(lambda c: c[1].head < c[1].tail, level, first)[-2]
    return jnp.where(parents < n, parents, -1)
