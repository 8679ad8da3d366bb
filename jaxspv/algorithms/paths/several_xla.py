"""The k shortest paths on every platform: a search passes over the edges."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ...formats import CSR
from ...graph import Graph
from ...until import reached
from ..common.edges import endpoints_of
from ..sssp.api import sssp
from ..sssp.layout import traced_delta
from ..sssp.xla import extend, infinity


class Found(NamedTuple):
    """Paths, best first or in no order; slots without one have distance infinity.

    Attributes:
        distances: (k,).
        vertices: (k, n) int32; n behind the end.
        hops: (k,) int32.
        left: (k,) int32, the place of the vertex where it leaves the path it came from.
    """

    distances: Array
    vertices: Array
    hops: Array
    left: Array

    def put(self, slot: Any, path: Found) -> Found:
        """With one path in a slot."""
        return Found(*(a.at[slot].set(b, mode="drop") for a, b in zip(self, path, strict=True)))

    def at(self, slot: Any) -> Found:
        """The path of a slot."""
        return Found(*(a[slot] for a in self))


def searches(A: CSR, source: Array, target: Array, *, k: int) -> tuple[Array, ...]:
    """A search passes over the edges."""
    n, inf = A.shape[0], infinity(A.dtype)
    none = Found(
        jnp.full(k, inf),
        jnp.full((k, n), n, jnp.int32),
        jnp.full(k, -1, jnp.int32),
        jnp.zeros(k, jnp.int32),
    )
    if n == 0 or A.nse == 0:
        path = none.at(0)
        path = path._replace(vertices=path.vertices.at[0].set(source))
        path = path._replace(distances=jnp.zeros_like(inf), hops=jnp.int32(0))
        found = none.put(jnp.where((source == target) & (source < n), 0, k), path)
        return _result(A, found, jnp.full((k, n), A.nse, jnp.int32))
    leave = Leaving(A, target)
    nowhere = none.at(0)
    start = nowhere._replace(vertices=nowhere.vertices.at[0].set(source), hops=jnp.int32(1))

    def following(state):
        number, last, found, waiting = state
        known = Known.of(last, found)
        following = leave.places(known)

        def vertex(state):
            place, waiting = state
            path = leave(known, place)
            worst = jnp.argmax(waiting.distances)
            better = path.distances < waiting.distances[worst]
            return following[place + 1], waiting.put(jnp.where(better, worst, k), path)

        first = following[last.left], waiting
        _, waiting = lax.while_loop(lambda s: s[0] < last.hops, vertex, first)
        best = jnp.argmin(waiting.distances)
        new = waiting.at(best)
        return number + 1, new, found.put(number, new), waiting.put(best, nowhere)

    state = lax.while_loop(
        lambda s: (s[0] < k) & (s[1].hops >= 0), following, (jnp.int32(0), start, none, none)
    )
    found = state[2]
    slots = lax.map(lambda path: leave.slots(*path), (found.vertices, found.hops))
    return _result(A, found, slots)


def _result(A: CSR, found: Found, slots: Array) -> tuple[Array, ...]:
    distances = jnp.where(found.hops >= 0, total(A.data, slots), infinity(A.dtype))
    count = jnp.sum(found.hops >= 0, dtype=jnp.int32)
    return distances, found.vertices, found.hops, count, slots


def total(weights: Array, slots: Array) -> Array:
    """The sums of the weights in slots, over the last axis; slots behind the end count 0."""
    if not weights.shape[0]:
        return jnp.zeros(slots.shape[:-1], weights.dtype)
    return clamped_sum(weights.at[slots].get(mode="fill", fill_value=0))


def clamped_sum(lengths: Array) -> Array:
    """Sums over the last axis; those of integers are clamped."""
    if jnp.issubdtype(lengths.dtype, jnp.floating):
        return jnp.sum(lengths, axis=-1)
    return lax.reduce(lengths, jnp.zeros((), lengths.dtype), extend, (lengths.ndim - 1,))


class Known(NamedTuple):
    """A path, and what the known paths have in common with it.

    Attributes:
        path: the path that is left.
        position: (n,) int32, the place of each vertex on it, n for none.
        vertices: (k, n) of the known paths.
        alike: (k,) int32, how many of their first vertices are those of the path.
    """

    path: Found
    position: Array
    vertices: Array
    alike: Array

    @staticmethod
    def of(path: Found, found: Found) -> Known:
        n = path.vertices.shape[0]
        number = jnp.arange(n, dtype=jnp.int32)
        position = jnp.full(n, n, jnp.int32).at[path.vertices].set(number, mode="drop")
        other = found.vertices != path.vertices
        alike = jnp.where(jnp.any(other, axis=1), jnp.argmax(other, axis=1), n).astype(jnp.int32)
        return Known(path, position, found.vertices, alike)

    def taken(self, place: Array) -> Array:
        """(k,) the vertices to which known paths with the same beginning go next; n for none."""
        n = self.position.shape[0]
        following = self.vertices[:, jnp.minimum(place + 1, n - 1)]
        return jnp.where(self.alike > place, following, n)


class Leaving:
    """The shortest path that leaves another one at a vertex.

    Attributes:
        h: (n,) distances to the target.
        reduced: (nse,) `w(u, v) + h(v) - h(u)`, infinity where v does not lead to the target.
    """

    def __init__(self, A: CSR, target: Array):
        self.A, self.target = A, target
        self.tail, self.head = endpoints_of(Graph(A))
        self.delta, self.far = traced_delta(A.indptr, A.data), infinity(A.dtype)
        back = Graph(A.T.asformat("csr"))
        h = sssp(back, target, delta=self.delta, parents=False).distances
        before, after = (h.at[v].get(mode="fill", fill_value=0) for v in (self.tail, self.head))
        length = extend(A.data, after)
        led = (before < self.far) & (length < self.far)
        reduced = jnp.where(led, length, 0) - jnp.where(led, before, 0)
        self.reduced = jnp.where(led, jnp.maximum(reduced, 0), self.far)

    def places(self, known: Known) -> Array:
        """(n + 1,) from each place on the first whose vertex has an edge to search."""
        n, at = known.position.shape[0], known.position.at[self.tail].get(mode="fill", fill_value=0)
        ahead = known.position.at[self.head].get(mode="fill", fill_value=0) > at

        def open_(row, free):
            following = known.vertices[row].at[at + 1].get(mode="fill", fill_value=n)
            return free & ~((known.alike[row] > at) & (following == self.head))

        free = lax.fori_loop(0, known.alike.shape[0], open_, ahead & (self.reduced < self.far))
        end = known.position.at[self.target].get(mode="fill", fill_value=n)  # is there already
        place = jnp.full(n + 1, n, jnp.int32).at[end].set(end)
        return lax.cummin(place.at[jnp.where(free, at, n + 1)].set(at, mode="drop"), reverse=True)

    def __call__(self, known: Known, place: Array) -> Found:
        """The shortest path that begins with `path[:place + 1]` and then leaves all known paths."""
        n, tail, head, path = self.A.shape[0], self.tail, self.head, known.path
        spur = path.vertices[place]
        passed = known.position < place
        closed = jnp.zeros(n, bool).at[known.taken(place)].set(True, mode="drop")

        def at(flags):
            return flags.at[head].get(mode="fill", fill_value=False)

        shut = at(passed) | ((tail == spur) & at(closed))
        lengths = jnp.where(shut, self.far, self.reduced)
        graph = Graph(dataclasses.replace(self.A, data=lengths))
        tree = sssp(graph, spur, until=reached(self.target), delta=self.delta)
        valid = jnp.any((jnp.arange(n) == self.target) & (tree.distances < self.far))
        vertices, hops = self._joined(path, place, tree.parents, valid)
        length = total(self.A.data, self.slots(vertices, hops))
        distance = jnp.where(valid, length, self.far)
        return Found(distance, vertices, hops, place)

    def _joined(self, path, place, parents, valid):
        """The path up to `place` and the branch of the tree from there to the target."""
        n = self.A.shape[0]
        spur = path.vertices[place]

        def up(c):
            at, length, branch = c
            return parents[at], length + 1, branch.at[n - 1 - length].set(at)

        start = jnp.where(valid, self.target, spur), jnp.int32(0), jnp.full(n, n, jnp.int32)
        _, length, branch = lax.while_loop(lambda c: (c[0] != spur) & (c[1] < n), up, start)
        number = jnp.arange(n, dtype=jnp.int32)
        # Vertex i + 1 of the branch, from the spur on, is in slot n - length + i.
        behind = branch.at[n - length + number - place - 1].get(mode="fill", fill_value=n)
        vertices = jnp.where(number <= place, path.vertices, behind)
        vertices = jnp.where(number <= place + length, vertices, n)
        hops = place + length
        return jnp.where(valid, vertices, n), jnp.where(valid, hops, -1)

    def slots(self, vertices: Array, hops: Array) -> Array:
        """(n,) slots of the edges of a path, the lightest of parallel ones; nse behind its end."""
        n = self.A.shape[0]
        number = jnp.arange(n, dtype=jnp.int32)
        inside = number < hops
        following = (
            jnp.full(n, n, jnp.int32)
            .at[jnp.where(inside, vertices, n)]
            .set(jnp.append(vertices[1:], n), mode="drop")
        )
        here = following.at[self.tail].get(mode="fill", fill_value=n) == self.head
        here &= self.tail < n
        tail, nse = jnp.where(here, self.tail, n), self.A.nse
        least = jnp.full(n, self.far).at[tail].min(self.A.data, mode="drop")
        here &= self.A.data == least.at[tail].get(mode="fill", fill_value=0)
        slot = jnp.full(n, nse, jnp.int32)
        slot = slot.at[jnp.where(here, tail, n)].min(jnp.arange(nse, dtype=jnp.int32), mode="drop")
        return slot.at[jnp.where(inside, vertices, n)].get(mode="fill", fill_value=nse)
