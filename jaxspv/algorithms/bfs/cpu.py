"""BFS one vertex at a time: the traversal for a CPU, which XLA compiles to native loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from pallas_kernels.layouts.adjacency import Adjacency

from ..._core.native_loops import is_negative, read, write
from .direction import pull_is_cheaper
from .parents import smallest_parents_cpu

# A level may be worth pulling once it holds one vertex in NARROW; below that its edges are not
# even counted, and levels follow each other within one loop.
NARROW = 64
BLOCK = 4  # edges that are skipped together where all lead to vertices already reached


class State(NamedTuple):
    """State between levels. `queue[head:tail]` is the frontier, all of one level.

    Attributes:
        head, tail: int32; `queue[:tail]` is everything reached, in order of discovery.
        depth: int32, the level of the frontier.
        edges: int32, out-edges of the frontier where it is wide enough to ask, else 0.
        queue: (n + 1,) int32; slot n takes the writes that do not count.
        levels: (n,) int32, complete up to the frontier.
        parents: (n,) int32, or None where no tree is wanted. A vertex is marked as reached by its
            parent, and without a tree by its level.
    """

    head: Array
    tail: Array
    depth: Array
    edges: Array
    queue: Array
    levels: Array
    parents: Array | None

    @property
    def marks(self) -> Array:
        """The array that is negative where a vertex is unreached."""
        return self.levels if self.parents is None else self.parents

    def marked(self, marks: Array) -> State:
        """The state with other marks."""
        return self._replace(**{"levels" if self.parents is None else "parents": marks})


def bfs_cpu(
    graph: Adjacency,
    source: Array,
    stop: Callable[[Array, Array, Array], Any] | None,
    parents: bool,
    deterministic: bool,
) -> tuple[Array, Array | None, Array]:
    """Levels, parents and the number of levels; arguments as in `search`, in-edges or None.

    A queue in order of discovery. Narrow levels are pushed: every out-edge of every vertex. A wide
    level is pulled where that is cheaper by `direction`: every unreached vertex looks for
    one in-neighbour in the frontier. Each loop is of the kind that `native_loops` describes.

    Cost: O(n + m) time in all, O(n) memory; about 5 ns an edge and 20 ns a vertex in cache.
    Source: Beamer, Asanovic, Patterson, "Direction-optimizing breadth-first search", SC 2012.
    """
    tree = parents and not deterministic
    n, out, inn = graph.n, graph[:2], None if graph.in_indices is None else graph[2:]
    root = jnp.clip(source, 0, n - 1)

    def going(s: State):
        size = s.tail - s.head
        more = size > 0
        return more if stop is None else more & ~jnp.asarray(stop(s.depth, s.levels, size))

    def step(s: State):
        pull = pull_is_cheaper(s.edges, s.tail, n, out[1].shape[0]) if inn else jnp.bool_(False)
        found = _push(s, out, root, pull, through=stop is None, pulls=inn is not None)
        if inn:
            found = _pull(found, inn, root, pull)
        return _enter_level(found, out[0], inn is not None)

    end = lax.while_loop(going, step, _start(n, source, tree))
    found = end.parents
    if parents and deterministic:
        found = smallest_parents_cpu(*out, source, end.levels)
    return end.levels, found, end.depth + (end.tail > end.head)


def _start(n: int, source: Array, parents: bool) -> State:
    valid = (source >= 0) & (source < n)
    at = jnp.where(valid, source, n)
    nothing = jnp.full(n, -1, jnp.int32)
    levels = nothing.at[at].set(0, mode="drop")
    tree = nothing.at[at].set(source, mode="drop") if parents else None
    queue = jnp.zeros(n + 1, jnp.int32).at[0].set(at)
    zero = jnp.int32(0)
    return State(zero, valid.astype(jnp.int32), zero, zero, queue, levels, tree)


def _mark(marks, vertex, new, value, root, tree):
    """Marks `vertex` if `new` is 1; otherwise repeats the mark of the root."""
    home = root if tree else jnp.int32(0)
    return write(marks, jnp.where(new > 0, vertex, root), jnp.where(new > 0, value, home))


def _push(s: State, out, root, skip, through: bool, pulls: bool) -> State:
    """Pushes one level unless `skip`; with `through`, also the levels after it while narrow."""
    indptr, indices = out
    n = s.levels.shape[0]
    tree = s.parents is not None
    degree = indices.shape[0] / n
    unroll, skip_blocks = 2 if degree < 4 else 4, degree >= 8

    def going(c):
        head, tail, end, *_ = c
        if not through:
            return head < end
        if not pulls:
            return head < tail
        return (head < end) | ((head < tail) & (tail - head < n // NARROW))

    def pop(c):
        head, tail, end, depth, u, queue, levels, parents, _ = c
        level_done = head == end
        depth, end = depth + level_done, jnp.where(level_done, tail, end)
        if tree:
            levels = write(levels, u, depth)
        marks = parents if tree else levels
        first, last = read(indptr, u), read(indptr, u + 1)
        value = u if tree else depth + 1

        def visit(c):
            e, tail, queue, marks = c
            if skip_blocks:
                e = _skip_reached(indices, marks, e, last)
            for k in range(unroll):
                v = read(indices, e + k)
                new = is_negative(read(marks, v)) * (e + k < last)
                marks = _mark(marks, v, new, value, root, tree)
                queue = write(queue, tail, v)
                tail = tail + new
            return e + unroll, tail, queue, marks

        _, tail, queue, marks = lax.while_loop(
            lambda c: c[0] < last, visit, (first, tail, queue, marks)
        )
        levels, parents = (levels, marks) if tree else (marks, None)
        touched = _touch_ahead(out, queue, head)
        return head + 1, tail, end, depth, read(queue, head + 1), queue, levels, parents, touched

    head = jnp.where(skip, s.tail, s.head)
    carry = (head, s.tail, s.tail, s.depth, read(s.queue, head), s.queue, s.levels, s.parents)
    touched = jnp.int32(0)
    _, tail, end, depth, _, queue, levels, parents, touched = lax.while_loop(
        going, pop, (*carry, touched)
    )
    # Adds 0, which only the reader knows: without a use the prefetches would be left out.
    depth = depth + is_negative(touched)
    return State(end, tail, depth, s.edges, queue, levels, parents)


def _skip_reached(indices: Array, marks: Array, e: Array, last: Array) -> Array:
    """The first block of edges at or after `e` that may lead to an unreached vertex, or the end."""

    def all_reached(c):
        (e,) = c
        least = read(marks, read(indices, e))
        for k in range(1, BLOCK):
            least = jnp.minimum(least, read(marks, read(indices, e + k)))
        return (e < last) & (least >= 0)

    return lax.while_loop(all_reached, lambda c: (c[0] + BLOCK,), (e,))[0]


def _touch_ahead(out, queue: Array, head: Array) -> Array:
    """Prefetches what later vertices of the queue need; returns a number >= 0.

    Up to a fifth faster where the graph does not fit into it: the reads of one vertex depend on
    each other, those of several do not. Entries beyond the tail are read in vain.
    """
    indptr, indices = out
    row = read(indptr, read(queue, head + 8))
    edge = read(indices, read(indptr, read(queue, head + 4)))
    return jnp.maximum(row, edge & 0xFFFF)


def _pull(s: State, inn, root, active) -> State:
    """If `active`: every unreached vertex takes a parent among those of level `depth`."""
    indptr, indices = inn
    n = s.levels.shape[0]
    unroll = 2
    tree, depth = s.parents is not None, s.depth

    def scan(c):
        v, tail, queue, marks = c
        first, last = read(indptr, v), read(indptr, v + 1)
        first = last - (last - first) * is_negative(read(marks, v))

        def probe(c):
            e, _ = c
            found = jnp.int32(-1)
            for k in reversed(range(unroll)):
                u = read(indices, e + k)
                hit = read(s.levels if tree else marks, u) == depth
                found = jnp.where(hit & (e + k < last), u, found)
            return e + unroll, found

        _, u = lax.while_loop(lambda c: (c[0] < last) & (c[1] < 0), probe, (first, jnp.int32(-1)))
        new = 1 - is_negative(u)
        marks = _mark(marks, v, new, u if tree else depth + 1, root, tree)
        return v + 1, tail + new, write(queue, tail, v), marks

    begin = jnp.where(active, 0, n).astype(jnp.int32)
    _, tail, queue, marks = lax.while_loop(
        lambda c: c[0] < n, scan, (begin, s.tail, s.queue, s.marks)
    )
    return s._replace(tail=tail, queue=queue).marked(marks)


def _enter_level(s: State, indptr: Array, pulls: bool) -> State:
    """Makes the new entries of the queue the frontier: writes their levels, counts their edges."""
    depth, tree = s.depth + 1, s.parents is not None
    if not tree and not pulls:
        return s._replace(depth=depth)

    def enter(c):
        i, edges, levels = c
        u = read(s.queue, i)
        if tree:
            levels = write(levels, u, depth)
        return i + 1, edges + read(indptr, u + 1) - read(indptr, u), levels

    _, edges, levels = lax.while_loop(
        lambda c: c[0] < s.tail, enter, (s.head, jnp.int32(0), s.levels)
    )
    return s._replace(depth=depth, edges=edges, levels=levels)
