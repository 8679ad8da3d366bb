"""Louvain on a CPU: vertices move one after the other, in native loops."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ..._core.native_loops import each, is_negative, once, read, write

SWEEPS, LEVELS = 64, 32
# A move must raise the modularity by this share of the weight of all edges: sums of floats round.
LEAST = 1e-7


class _Level(NamedTuple):
    """A graph of communities.

    Attributes:
        n: int32, its vertices; slots beyond are unused.
        indptr, indices, weights: its edges, both directions, loops counted twice.
        member: (n of the graph,) the vertex of this level that contains each vertex of the graph.
        number: int32, levels so far.
        going: whether the last level joined anything.
    """

    n: Array
    indptr: Array
    indices: Array
    weights: Array
    member: Array
    number: Array
    going: Array


def sequential(
    indptr: Array, indices: Array, weights: Array, resolution: Array
) -> tuple[Array, Array]:
    """(n,) a number for the community of each vertex, and the number of levels."""
    n = indptr.shape[0] - 1

    def level(s: _Level) -> _Level:
        group = _moved(s, resolution)
        return _joined(s, group)

    start = _Level(
        jnp.int32(n),
        indptr,
        indices,
        weights,
        jnp.arange(n, dtype=jnp.int32),
        jnp.int32(0),
        jnp.bool_(True),
    )
    end = lax.while_loop(lambda s: s.going & (s.number < LEVELS), level, start)
    return end.member, end.number - 1


def _moved(s: _Level, resolution: Array) -> Array:
    """(n,) the community of each vertex after sweeps over all of them, each named by a vertex.

    `due[v]` is the sweep that visits v next: the one after a neighbour has moved.
    """
    size = s.member.shape[0]

    def strength(v, k, total, between):
        def edge(e, sum_, between):
            weight = read(s.weights, e)
            between = write(between, e, jnp.where(read(s.indices, e) == v, 0, weight))
            return sum_ + weight, between

        ends = read(s.indptr, v), read(s.indptr, v + 1)
        sum_, between = each(*ends, edge, jnp.float32(0), between)
        return write(k, v, sum_), total + sum_, between

    zeros = jnp.zeros(size, jnp.float32)
    k, total, between = each(0, s.n, strength, zeros, jnp.float32(0), jnp.zeros_like(s.weights))
    factor = resolution / jnp.where(total > 0, total, 1)
    least = LEAST * total

    def sweep(c):
        group, inside, weight_to, due, _, number = c

        def following(v, due):
            """The first vertex from v on that is due."""
            return lax.while_loop(lambda v: (v < s.n) & (read(due, v) < number), lambda v: v + 1, v)

        def vertex(c):
            v, own, group, inside, weight_to, due = c
            mine, first, last = read(k, v), read(s.indptr, v), read(s.indptr, v + 1)
            pull = factor * mine

            def note(e, most, best, weight_to):
                other = read(group, read(s.indices, e))
                sum_ = read(weight_to, other) + read(between, e)

                def put(other, sum_, most, best, weight_to):
                    # Weights are >= 0, so the last gain computed for a community is its largest.
                    gain = jnp.where(other == own, -jnp.inf, sum_ - pull * read(inside, other))
                    best = jnp.where(gain > most, other, best)
                    return other, sum_, jnp.maximum(gain, most), best, write(weight_to, other, sum_)

                return once(True, put, other, sum_, most, best, weight_to)[2:]

            most, best, weight_to = each(first, last, note, jnp.float32(-jnp.inf), own, weight_to)
            stay = read(weight_to, own) - pull * (read(inside, own) - mine)
            best = jnp.where(most > stay + least, best, own)
            # Orders this loop after the one before, whose input it overwrites: `best` is never < 0.
            start = first + is_negative(best)

            def leave(c):
                e, weight_to, due = c
                u = read(s.indices, e)
                weight_to = write(weight_to, read(group, u), jnp.float32(0))
                # Writes that are not wanted go to the slot after the last.
                due = write(due, jnp.where(best == own, size, u), number + (u <= v))
                return e + 1, weight_to, due

            done, weight_to, due = lax.while_loop(
                lambda c: c[0] < last, leave, (start, weight_to, due)
            )
            group = write(group, v + is_negative(done), best)
            less, more = read(inside, own) - mine, read(inside, best) + mine

            def shift(less, more, inside):
                return less, more, write(write(inside, own, less), best, more)

            inside = once(best != own, shift, less, more, inside)[2]
            v = following(v + 1, due)
            # Read here: within one iteration a read and a write would have no order.
            return v, read(group, v), group, inside, weight_to, due

        v = following(jnp.int32(0), due)
        start = v, read(group, v), group, inside, weight_to, due
        _, _, new, *state = lax.while_loop(lambda c: c[0] < s.n, vertex, start)
        return new, *state, jnp.any(new != group), number + 1

    vertices = jnp.arange(size, dtype=jnp.int32)
    start = (vertices, k, zeros, jnp.zeros(size + 1, jnp.int32), jnp.bool_(True), jnp.int32(0))
    return lax.while_loop(lambda c: c[4] & (c[5] < SWEEPS), sweep, start)[0]


def _joined(s: _Level, group: Array) -> _Level:
    """The graph whose vertices are the communities, numbered in order of their names."""
    size, nse = s.member.shape[0], s.indices.shape[0]
    vertex = jnp.arange(size, dtype=jnp.int32)
    used = jnp.zeros(size, jnp.int32).at[jnp.where(vertex < s.n, group, size)].set(1, mode="drop")
    number = jnp.cumsum(used, dtype=jnp.int32) - 1
    count = number[-1] + 1
    group = jnp.where(vertex < s.n, number[group], size)
    order = jnp.argsort(group, stable=True).astype(jnp.int32)
    ends = jnp.cumsum(jnp.zeros(size, jnp.int32).at[group].add(1, mode="drop"), dtype=jnp.int32)

    def community(c, at, top, place, mark, indptr, indices, weights):
        last = read(ends, c)

        def vertex(i, top, place, mark, indices, weights):
            v = read(order, i)

            def edge(e, top, place, mark, indices, weights):
                d, weight = read(group, read(s.indices, e)), read(s.weights, e)
                known = read(mark, d) == c
                slot = jnp.where(known, read(place, d), top)
                before = jnp.where(known, read(weights, slot), 0)

                def put(d, slot, sum_, top, place, mark, indices, weights):
                    place, mark = write(place, d, slot), write(mark, d, c)
                    indices, weights = write(indices, slot, d), write(weights, slot, sum_)
                    return d, slot, sum_, top, place, mark, indices, weights

                found = (d, slot, before + weight, top + ~known)
                return once(True, put, *found, place, mark, indices, weights)[3:]

            edges = read(s.indptr, v), read(s.indptr, v + 1)
            return each(*edges, edge, top, place, mark, indices, weights)

        state = each(at, last, vertex, top, place, mark, indices, weights)
        return last, *state[:3], write(indptr, c + 1, state[0]), *state[3:]

    words = jnp.full(size, -1, jnp.int32)
    empty = (jnp.zeros(size + 1, jnp.int32), jnp.zeros(nse, jnp.int32), jnp.zeros(nse, jnp.float32))
    _, _, _, _, indptr, indices, weights = each(
        0, count, community, 0, jnp.int32(0), words, words, *empty
    )
    member = group[s.member]
    return _Level(count, indptr, indices, weights, member, s.number + 1, count < s.n)
