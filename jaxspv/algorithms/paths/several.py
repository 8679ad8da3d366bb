"""The k shortest paths between two vertices."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.compilation import one_program
from ..._core.operation import Operation, typed
from ..._core.platforms import Backend
from ..._core.pytree import is_concrete, result_tuple
from ...formats import CSR
from ...formats.csr import sorted_csr
from ...graph import Graph, as_graph
from ...native import bind
from ...shapes import Bool, Count, Int, Matrix, Num
from ...until import reached
from ..common.edges import endpoints_of
from ..common.sources import check_source
from ..common.weights import check_weights, with_real_weights
from ..sssp.api import sssp
from ..sssp.forms import traced_delta
from ..sssp.layout import with_lengths
from ..sssp.native import refuse_tree
from ..sssp.xla import extend, infinity


@result_tuple
class ShortestPaths(NamedTuple):
    """The result of `k_shortest_paths`.

    Attributes:
        distances: (k,) sums of the weights, ascending; where there are no more paths inf, or the
            largest integer.
        vertices: (k, n) int32, the vertices of each path, the source first; n behind the target.
        hops: (k,) int32, the edges of each path; -1 where there are no more.
        count: int32, the paths found.
        overflow: bool; fewer than k were found, and lengths of others may reach the largest
            integer: the greatest weights out of each vertex together do.
    """

    distances: Num[Array, " k"]
    vertices: Int[Array, "k n"]
    hops: Int[Array, " k"]
    count: Int[Array, ""]
    overflow: Bool[Array, ""]

    def path(self, number: int) -> Int[np.ndarray, " hops"]:
        """Vertices of path `number`, from 0 on, both ends included; empty: there is none.

        Raises:
            ValueError: the result is traced, or `number` is out of range.
        """
        if not is_concrete(self.vertices):
            raise ValueError("`path` needs concrete values: call it outside of jit.")
        k = self.hops.shape[0]
        if not 0 <= number < k:
            raise ValueError(f"`number` must lie in [0, {k}); got {number}.")
        return np.asarray(self.vertices)[number, : int(self.hops[number]) + 1]


def k_shortest_paths(
    G: Matrix,
    source: Count,
    target: Count,
    k: int,
    *,
    weighted: bool = True,
    backend: Backend | None = None,
    method: str | None = None,
) -> ShortestPaths:
    """The k shortest paths without a vertex twice, shortest first.

    Yen's algorithm: the next path leaves a known path at a spur vertex. A search from there avoids
    the vertices before it and the next edges of known paths with the same beginning. The searches
    use reduced weights `w(u, v) + h(v) - h(u)`, which are 0 along shortest paths; one search
    against the edges gives the distances h to the target. A path found this way is left
    only at the vertex where it left the path before it, or later: so none is found twice.

    Args:
        G: a `Graph` or a square sparse matrix of weights >= 0, A[i, j] the edge i -> j.
        source, target: vertices.
        k: how many, 1 or more.
        weighted: whether lengths are sums of weights, else numbers of edges.
        backend: "cpu", "xla" or None.
        method: "native" (C++, on a CPU), "searches" (elsewhere), or None for these.

    Returns:
        `ShortestPaths(distances, vertices, hops, count, overflow)`, in the dtype of the weights
        (booleans count as int32 ones, float16 and bfloat16 as float32). Ties are broken
        deterministically, in an unspecified order.

    Raises:
        TypeError: G is no graph, a vertex no integer.
        ValueError: G is not square, a concrete vertex is out of range, a concrete weight is
            negative or NaN, or k is no positive integer.

    Differentiable in the weights, both modes: 1 for each edge of a path.

    Cost: a search for each vertex of the paths found that has another way on, at most k n of them,
    mostly of few vertices, but in "searches" with a pass over the edges each. Memory: 2 k n
    numbers.

    Source: Yen, "Finding the k shortest loopless paths in a network", Management Science 17, 1971;
    Lawler, "A procedure for computing the k best solutions to discrete optimization problems",
    Management Science 18, 1972; "native" ends a search where the shortest way on is free: Feng,
    "Finding k shortest simple paths in directed graphs", Networks 64, 2014.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 0, 1, 2], [1, 2, 3, 3], [1.0, 2.0, 1.0, 1.0], shape=(4, 4))
    >>> found = jsp.k_shortest_paths(A, 0, 3, 3)
    >>> found.distances.tolist(), found.path(0).tolist(), found.path(1).tolist(), int(found.count)
    ([2.0, 3.0, inf], [0, 1, 3], [0, 2, 3], 2)
    """
    graph = as_graph(G, "k_shortest_paths", ())
    if weighted:
        graph = with_real_weights(graph, "k_shortest_paths")
    if not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"`k` must be a positive integer; got {k!r}.")
    source, target = (jnp.asarray(check_source(v, graph.n)) for v in (source, target))
    if source.ndim or target.ndim:
        raise ValueError("`source` and `target` must each be one vertex.")
    if weighted:
        check_weights(graph, infinite=True)
    A = sorted_csr(with_lengths(graph).out)
    if not weighted:
        A = dataclasses.replace(A, data=jnp.ones(A.nse, A.dtype))
    found = op(A, source, target, k=int(k), backend=backend, method=method)[:4]
    if jnp.issubdtype(A.dtype, jnp.floating):
        return ShortestPaths._make((*found, jnp.bool_(False)))
    return ShortestPaths._make((*found, one_program(_left_out, A, found[3], k=int(k))))


def _left_out(A: CSR, count: Array, *, k: int) -> Array:
    """The field `overflow` for integers: a path has one edge out of a vertex at most."""
    most = jnp.zeros(A.shape[0], A.dtype).at[A.rowcol()[0]].max(A.data, mode="drop")
    return (count < k) & (_sum(most) == infinity(A.dtype))


class _Found(NamedTuple):
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

    def put(self, slot: Any, path: _Found) -> _Found:
        """With one path in a slot."""
        return _Found(*(a.at[slot].set(b, mode="drop") for a, b in zip(self, path, strict=True)))

    def at(self, slot: Any) -> _Found:
        """The path of a slot."""
        return _Found(*(a[slot] for a in self))


def _types(A, source, target, *, k):
    each, number = typed(jnp.int32, k, A.shape[0]), typed(jnp.int32)
    return typed(A.dtype, k), each, typed(jnp.int32, k), number, each


def _tangent(primals, tangents, result, *, k):
    """The lengths follow the weights of the edges, which are in the slots of the result."""
    return _total(tangents[0].data, result[4]), *[None] * 4


# The fields of the result but for `overflow`, and (k, n) the slots of the edges of the paths.
op = Operation("k_shortest_paths", _tangent, types=_types)


@op.register("native", backend="cpu", refuse=lambda A, s, t, **_: refuse_tree(A, A.data, s))
def _native(A: CSR, source: Array, target: Array, *, k: int) -> tuple[Array, ...]:
    """A search visits few vertices, in C++."""
    operands = A.indptr, A.indices, A.data, source, target
    return bind.call("k_shortest_paths", _types(A, source, target, k=k), *operands)


@op.register("searches")
def _searches(A: CSR, source: Array, target: Array, *, k: int) -> tuple[Array, ...]:
    """A search passes over the edges."""
    n, inf = A.shape[0], infinity(A.dtype)
    none = _Found(
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
    leave = _Leaving(A, target)
    nowhere = none.at(0)
    start = nowhere._replace(vertices=nowhere.vertices.at[0].set(source), hops=jnp.int32(1))

    def following(state):
        number, last, found, waiting = state
        known = _Known.of(last, found)
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


def _result(A: CSR, found: _Found, slots: Array) -> tuple[Array, ...]:
    distances = jnp.where(found.hops >= 0, _total(A.data, slots), infinity(A.dtype))
    count = jnp.sum(found.hops >= 0, dtype=jnp.int32)
    return distances, found.vertices, found.hops, count, slots


def _total(weights: Array, slots: Array) -> Array:
    """The sums of the weights in slots, over the last axis; slots behind the end count 0."""
    if not weights.shape[0]:
        return jnp.zeros(slots.shape[:-1], weights.dtype)
    return _sum(weights.at[slots].get(mode="fill", fill_value=0))


def _sum(lengths: Array) -> Array:
    """Sums over the last axis; those of integers are clamped."""
    if jnp.issubdtype(lengths.dtype, jnp.floating):
        return jnp.sum(lengths, axis=-1)
    return lax.reduce(lengths, jnp.zeros((), lengths.dtype), extend, (lengths.ndim - 1,))


class _Known(NamedTuple):
    """A path, and what the known paths have in common with it.

    Attributes:
        path: the path that is left.
        position: (n,) int32, the place of each vertex on it, n for none.
        vertices: (k, n) of the known paths.
        alike: (k,) int32, how many of their first vertices are those of the path.
    """

    path: _Found
    position: Array
    vertices: Array
    alike: Array

    @staticmethod
    def of(path: _Found, found: _Found) -> _Known:
        n = path.vertices.shape[0]
        number = jnp.arange(n, dtype=jnp.int32)
        position = jnp.full(n, n, jnp.int32).at[path.vertices].set(number, mode="drop")
        other = found.vertices != path.vertices
        alike = jnp.where(jnp.any(other, axis=1), jnp.argmax(other, axis=1), n).astype(jnp.int32)
        return _Known(path, position, found.vertices, alike)

    def taken(self, place: Array) -> Array:
        """(k,) the vertices to which known paths with the same beginning go next; n for none."""
        n = self.position.shape[0]
        following = self.vertices[:, jnp.minimum(place + 1, n - 1)]
        return jnp.where(self.alike > place, following, n)


class _Leaving:
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

    def places(self, known: _Known) -> Array:
        """(n + 1,) from each place on the first whose vertex has an edge that a search may enter.

        Most vertices of a long path without detours have none. A pass over the edges for each path.
        """
        n, at = known.position.shape[0], known.position.at[self.tail].get(mode="fill", fill_value=0)
        ahead = known.position.at[self.head].get(mode="fill", fill_value=0) > at

        def open_(row, free):
            following = known.vertices[row].at[at + 1].get(mode="fill", fill_value=n)
            return free & ~((known.alike[row] > at) & (following == self.head))

        free = lax.fori_loop(0, known.alike.shape[0], open_, ahead & (self.reduced < self.far))
        end = known.position.at[self.target].get(mode="fill", fill_value=n)  # is there already
        place = jnp.full(n + 1, n, jnp.int32).at[end].set(end)
        return lax.cummin(place.at[jnp.where(free, at, n + 1)].set(at, mode="drop"), reverse=True)

    def __call__(self, known: _Known, place: Array) -> _Found:
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
        length = _total(self.A.data, self.slots(vertices, hops))
        distance = jnp.where(valid, length, self.far)
        return _Found(distance, vertices, hops, place)

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
