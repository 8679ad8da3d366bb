"""The tree of shortest paths from the distances: breadth-first over the tight edges.

An edge u -> v of weight w is tight where `d[v] = d[u] + w` and v is reached. Zero weights, and
weights that a float sum absorbs, make cycles of tight edges: so a parent is chosen by hops, the
number of tight edges from the source, which rise along every chosen edge.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from ...common.frontier import Edges, Queue, append, one_of_each
from ..xla import OutEdges, extend, for_edges, infinity


def _first_hops(graph: OutEdges, source: Array) -> tuple[Array, Array]:
    """Hops (n where unknown) and parents (n where unknown) before the first level."""
    at_source = jnp.arange(graph.n, dtype=jnp.int32) == source
    hops = jnp.where(at_source, 0, graph.n).astype(jnp.int32)
    return hops, jnp.where(at_source, source, graph.n).astype(jnp.int32)


def parents_xla(graph: OutEdges, length: Array, source: Array) -> Array:
    """For each reached vertex its tight predecessor of smallest (hops, id), a level of hops at a
    time; see `xla`."""
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
