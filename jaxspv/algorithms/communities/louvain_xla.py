"""Louvain on every platform: half of the vertices move together, edges sorted by community."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ...graph import Graph
from ..common.edges import endpoints_of

SWEEPS, LEVELS = 64, 32
# a level ends after PATIENCE sweeps in a row that raise the modularity by at most ENOUGH
PATIENCE = 2
ENOUGH = 1e-4
LEAST = 1e-6  # the levels end with one that raises the modularity by at most this
SHARES = (4, 32)  # arrays shrink once edges are at most a fourth, then a thirty-second
MIN_CAPACITY = 2**16  # with fewer edges, arrays never shrink


class Edges(NamedTuple):
    """Edges between the communities of the last level; one of its vertices names a community."""

    tail: Array
    head: Array
    weight: Array


def vectorised(
    graph: Graph, weights: Array, resolution: Array, moved: Callable | None = None
) -> tuple[Array, Array, Array]:
    """(n,) the community of each vertex, named by one of its vertices; number of levels; a status.

    After each level, parallel edges between two communities become one; once few edges are left,
    later levels run in smaller arrays. `moved(n, edges, resolution)`: (n,) the communities of a
    level, their modularity, a status.
    """
    moved = moved or _moved
    n, nse = graph.n, graph.nse
    edges = Edges(*endpoints_of(graph), weights)
    capacities = [nse, *(nse // share for share in SHARES)] if nse >= MIN_CAPACITY else [nse]
    vertex = jnp.arange(n, dtype=jnp.int32)
    state = vertex, jnp.float32(-np.inf), jnp.int32(0), jnp.bool_(True), jnp.int32(nse)
    state = *state, jnp.int32(0)
    for capacity, less in zip(capacities, [*capacities[1:], -1], strict=True):
        edges = Edges(edges.tail[:capacity], edges.head[:capacity], edges.weight[:capacity])

        def level(carry):
            (member, quality, number, _, _, status), edges = carry
            group, best, failed = moved(n, edges, resolution)
            better = best > quality + LEAST
            member = jnp.where(better, group.at[member].get(mode="clip"), member)
            edges, count = _joined(n, edges, group)
            state = member, jnp.maximum(quality, best), number + better, better, count
            return (*state, status | failed), edges

        def going(carry, less=less):
            _, _, number, better, count, status = carry[0]
            return better & (status == 0) & (number < LEVELS) & (count > less)

        state, edges = lax.while_loop(going, level, (state, edges))
    return state[0], state[2], state[5]


def _joined(n: int, edges: Edges, group: Array) -> tuple[Edges, Array]:
    """The edges between groups, one for each pair, at the front of the arrays; their number."""
    tail, head = (group.at[v].get(mode="fill", fill_value=n) for v in edges[:2])
    tail, head, weight = _by_vertex_and_group(tail, head, edges.weight)
    new = jnp.append(True, (tail[1:] != tail[:-1]) | (head[1:] != head[:-1])) & (tail < n)
    run = jnp.where(tail < n, jnp.cumsum(new, dtype=jnp.int32) - 1, tail.shape[0])
    place = jnp.where(new, run, tail.shape[0])
    nothing = jnp.full(tail.shape, n, jnp.int32)
    if jnp.issubdtype(weight.dtype, jnp.integer):
        before = jnp.cumsum(weight, dtype=weight.dtype)
        starts = jnp.full_like(weight, before[-1]).at[place].set(before - weight, mode="drop")
        weight = jnp.diff(starts, append=before[-1:])
    else:
        weight = jnp.zeros_like(weight).at[run].add(weight, mode="drop")
    joined = Edges(
        nothing.at[place].set(tail, mode="drop"), nothing.at[place].set(head, mode="drop"), weight
    )
    return joined, jnp.sum(new, dtype=jnp.int32)


def share(total: Array) -> Array:
    """1 / the sum of all weights, 0 if that is 0."""
    return jnp.where(total > 0, 1 / jnp.where(total > 0, total, 1), 0).astype(jnp.float32)


def quality_of(
    n: int, edges: Edges, group: Array, k: Array, per: Array, resolution: Array
) -> Array:
    """The modularity of communities of the vertices of a level; k: (n,) their sums of weights, per:
    the `share` of all."""
    start, end = (group.at[v].get(mode="fill", fill_value=n) for v in edges[:2])
    inside = jnp.sum(jnp.where(start == end, edges.weight, 0))
    sums = jnp.zeros(n, k.dtype).at[group].add(k)
    return inside * per - resolution * jnp.sum((sums * per) ** 2)


def _moved(n: int, edges: Edges, resolution: Array) -> tuple[Array, Array, Array]:
    """(n,) the best communities that the sweeps found, named by a vertex; their modularity; 0."""
    vertex = jnp.arange(n, dtype=jnp.int32)
    k = jnp.zeros(n, edges.weight.dtype).at[edges.tail].add(edges.weight, mode="drop")
    per = share(jnp.sum(edges.weight))

    def sweep(state):
        group, best, most, number, idle = state
        sums = jnp.zeros(n, jnp.float32).at[group].add(k)
        size = jnp.zeros(n, jnp.int32).at[group].add(jnp.where(k > 0, 1, 0))
        gain, target = _best_moves(n, edges, group, sums, k, resolution * per)
        # Two vertices, each alone in its community, would swap communities forever.
        lone = (size[group] == 1) & (size.at[target].get(mode="clip") == 1)
        mixed = vertex * np.int32(-1640531535) + number * np.int32(40503)  # int32 under x64, too
        chance = ((mixed ^ (mixed >> 15)) * np.int32(-2048144777)) >> 31
        wants = (gain > 0) & ~(lone & (target > group))
        moves = wants & (chance == 0)
        group = jnp.where(moves, target, group)
        now = quality_of(n, edges, group, k, per, resolution)
        best = jnp.where(now > most, group, best)
        waits = jnp.any(wants) & ~jnp.any(moves)  # all that would move were left out by chance
        idle = jnp.where(now > most + ENOUGH, 0, idle + ~waits)
        return group, best, jnp.maximum(most, now), number + 1, idle

    start = quality_of(n, edges, vertex, k, per, resolution)
    first = (vertex, vertex, start, jnp.int32(0), jnp.int32(0))
    going = lambda s: (s[3] < SWEEPS) & (s[4] < PATIENCE)  # noqa: E731
    _, best, most, _, _ = lax.while_loop(going, sweep, first)
    return best, most, jnp.int32(0)


def _best_moves(n, edges: Edges, group, sums, k, factor) -> tuple[Array, Array]:
    """(n,) the gain of the best move of each vertex over staying; the community that it moves
    to."""
    to = group.at[edges.head].get(mode="fill", fill_value=n)
    weight = jnp.where(edges.tail == edges.head, 0, edges.weight)
    v, c, w = _by_vertex_and_group(edges.tail, to, weight)
    new = jnp.append(True, (v[1:] != v[:-1]) | (c[1:] != c[:-1]))
    run = jnp.cumsum(new, dtype=jnp.int32) - 1
    weight_to = jnp.zeros(v.shape[0], jnp.float32).at[run].add(w)[run]
    mine = k.at[v].get(mode="fill", fill_value=0)
    own = group.at[v].get(mode="fill", fill_value=n)
    others = sums.at[c].get(mode="fill", fill_value=0) - jnp.where(c == own, mine, 0)
    value = jnp.where(v < n, weight_to - factor * mine * others, -jnp.inf)
    stay = -factor * k * (sums[group] - k)  # if no neighbour is in the same community
    stay = stay.at[jnp.where(c == own, v, n)].max(value, mode="drop")
    most = jnp.full(n, -jnp.inf, jnp.float32)
    most = most.at[jnp.where(c != own, v, n)].max(value, mode="drop")
    wins = (c != own) & (value == most.at[v].get(mode="fill", fill_value=jnp.inf))
    target = jnp.full(n, n, jnp.int32).at[jnp.where(wins, v, n)].min(c, mode="drop")
    return jnp.where(target < n, most - stay, -jnp.inf), target


def _by_vertex_and_group(tail: Array, to: Array, weight: Array) -> tuple[Array, Array, Array]:
    """The edges sorted by (tail, to): two stable sorts by one key, which are fastest on a GPU."""
    slot = jnp.arange(tail.shape[0], dtype=jnp.int32)
    for key in (to, tail):
        slot = lax.sort((key[slot].astype(jnp.uint32), slot), num_keys=1, is_stable=True)[1]
    return tail[slot], to[slot], weight[slot]
