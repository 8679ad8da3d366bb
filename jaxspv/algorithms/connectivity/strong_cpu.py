"""Strong components on a CPU: one depth-first search in native loops."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ..._core.native_loops import read, write


class _Search(NamedTuple):
    """The state of the depth-first search.

    Attributes:
        v: int32, the vertex it stands at; -1: it is over.
        edge: int32, the next edge of v.
        least: int32, the smallest number of an open vertex that v is known to reach.
        own: int32, the number of v; numbers ascend from 1 in order of discovery.
        back: int32, the vertex that v was discovered from; -1: none.
        number: int32, the largest number given.
        top: int32, open vertices, `stack[:top]`.
        low: (n + 2,) `least` of a vertex that was left; 0: not discovered; n + 2: its component is
            closed, which is larger than any number. Slot n + 1 takes writes that do not count.
        numbers, up, edges, stack: (n + 2,) `own`, `back` and `edge` of those left, open vertices.
        labels: (n + 2,) the root of the component of each.
    """

    v: Array
    edge: Array
    least: Array
    own: Array
    back: Array
    number: Array
    top: Array
    low: Array
    numbers: Array
    up: Array
    edges: Array
    stack: Array
    labels: Array


def strong_components_cpu(indptr: Array, indices: Array) -> Array:
    """(n,) int32: the smallest vertex of the strong component of each.

    A vertex that is left with `least == own` is the root of a component: all that was opened since.
    The search starts at a vertex n with an edge to each, so that it is one loop.

    Cost: O(n + edges) time, seven words a vertex and a copy of the edges.
    """
    n, nse = indptr.shape[0] - 1, indices.shape[0]
    vertex = jnp.arange(n, dtype=jnp.int32)
    if n == 0:
        return vertex
    edges = _Edges(
        jnp.append(indptr[:-1], jnp.int32(nse)),
        jnp.append(indptr[1:], jnp.int32(nse + n)),
        jnp.concatenate([indices, vertex]),
    )
    one, words = jnp.int32(1), jnp.zeros(n + 2, jnp.int32)
    first = words.at[n].set(1)
    start = _Search(
        *(one * n, one * nse, one, one, one * -1, one, one),
        *(first, first, words.at[n].set(-1), words, words.at[0].set(n), words),
    )
    end = lax.while_loop(lambda s: s.v >= 0, lambda s: _step(s, edges), start)
    labels = end.labels[:n]
    return jnp.full(n, n, jnp.int32).at[labels].min(vertex)[labels]


class _Edges(NamedTuple):
    """Slots `indices[begin[v] : end[v]]` hold the heads of the edges of v."""

    begin: Array
    end: Array
    indices: Array


def _step(s: _Search, edges: _Edges) -> _Search:
    """Looks along the edges of v: goes down to a new vertex, or leaves v."""
    nowhere = s.labels.shape[0] - 1
    last = read(edges.end, s.v)

    def look(c):
        e, least, _ = c
        reached = read(s.low, read(edges.indices, e))
        known = reached > 0
        return e + known, jnp.where(known, jnp.minimum(least, reached), least), known

    edge, least, known = lax.while_loop(
        lambda c: (c[0] < last) & c[2], look, (s.edge, s.least, jnp.bool_(True))
    )
    head = read(edges.indices, edge)
    place = jnp.where(known, nowhere, head)
    number = s.number + ~known
    left = write(s.low, s.v, least)
    top, low, labels = _closed(s, left, known & (least == s.own))
    s = s._replace(
        number=number,
        top=top + ~known,
        low=write(low, place, number),
        numbers=write(s.numbers, place, number),
        up=write(s.up, place, s.v),
        edges=write(s.edges, s.v, edge),
        stack=write(s.stack, top, place),
        labels=labels,
    )
    v = jnp.where(known, s.back, head)
    return s._replace(
        v=v,
        edge=jnp.where(known, read(s.edges, v), read(edges.begin, v)),
        least=read(s.low, v),
        own=read(s.numbers, v),
        back=read(s.up, v),
    )


def _closed(s: _Search, low: Array, root: Array) -> tuple[Array, Array, Array]:
    """(top, low, labels); if v is a root, the open vertices from v on become its component."""
    closed = jnp.int32(s.labels.shape[0])  # beyond every number

    def pop(c):
        _, top, low, labels = c
        w = read(s.stack, top - 1)
        return w != s.v, top - 1, write(low, w, closed), write(labels, w, s.v)

    return lax.while_loop(lambda c: c[0], pop, (root, s.top, low, s.labels))[1:]
