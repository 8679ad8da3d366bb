"""Levels of Louvain where half of the vertices move at a time: a launch each, or by sorts."""

from __future__ import annotations

import functools
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
MOST = 2**30  # the sum of all weights, as integers


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
    later levels run in smaller arrays. `moved(n, edges, k, per, factor)`: (n,) the communities of a
    level, a status; k: (n,) the sums of weights of vertices, per: 1 over that of all, factor: the
    resolution over it.
    """
    moved = moved or _moved
    n, nse = graph.n, graph.nse
    edges = Edges(*endpoints_of(graph), weights)
    capacities = [nse, *(nse // share for share in SHARES)] if nse >= MIN_CAPACITY else [nse]
    vertex = jnp.arange(n, dtype=jnp.int32)
    k, total = _sums_of_rows(n, graph.out.indptr, edges), jnp.sum(weights)
    per = jnp.where(total > 0, 1 / jnp.where(total > 0, total, 1), 0).astype(jnp.float32)
    factor = resolution * per
    state = vertex, jnp.float32(-np.inf), jnp.int32(0), jnp.bool_(True), jnp.int32(nse)
    state = *state, jnp.int32(0), k
    for capacity, less in zip(capacities, [*capacities[1:], -1], strict=True):
        edges = Edges(edges.tail[:capacity], edges.head[:capacity], edges.weight[:capacity])

        def level(carry):
            (member, quality, number, _, _, _, k), edges = carry
            group, status = moved(n, edges, k, per, factor)
            edges, count = _joined(n, edges, group)
            k = _sums(k, group)
            best = _quality(edges, k, per, factor)
            better = best > quality + LEAST
            member = jnp.where(better, group.at[member].get(mode="clip"), member)
            return (member, best, number + better, better, count, status, k), edges

        def going(carry, less=less):
            _, _, number, better, count, status, _ = carry[0]
            return better & (status == 0) & (number < LEVELS) & (count > less)

        state, edges = lax.while_loop(going, level, (state, edges))
    return state[0], state[2], state[5]


def _sums_of_rows(n: int, indptr: Array, edges: Edges) -> Array:
    """(n,) the sum of the weights of each row. Of integers, which are exact, as differences of sums
    up to a place: scatters to sorted places are slow on a GPU."""
    if jnp.issubdtype(edges.weight.dtype, jnp.integer):
        return jnp.diff(_sums_before(edges.weight)[indptr])
    return jnp.zeros(n, edges.weight.dtype).at[edges.tail].add(edges.weight, mode="drop")


def _sums_before(weight: Array) -> Array:
    """The sum before each place, and that of all."""
    return jnp.append(jnp.zeros(1, weight.dtype), jnp.cumsum(weight, dtype=weight.dtype))


def _sums(k: Array, group: Array) -> Array:
    """(n,) the sum of k over each community."""
    return jnp.zeros_like(k).at[group].add(k)


def _between(n: int, edges: Edges, group: Array) -> Edges:
    """The edges between the groups of their vertices."""
    tail, head = (group.at[v].get(mode="fill", fill_value=n) for v in edges[:2])
    return Edges(tail, head, edges.weight)


def _joined(n: int, edges: Edges, group: Array) -> tuple[Edges, Array]:
    """The edges between groups, one for each pair, at the front of the arrays; their number."""
    tail, head, weight = _by_vertex_and_group(n, _between(n, edges, group))
    nse = tail.shape[0]
    new = jnp.append(True, (tail[1:] != tail[:-1]) | (head[1:] != head[:-1])) & (tail < n)
    run = jnp.cumsum(new, dtype=jnp.int32)
    place, slot = jnp.where(new, run - 1, nse), jnp.arange(nse, dtype=jnp.int32)
    first = jnp.full(nse, nse, jnp.int32).at[place].set(slot, mode="drop")
    if jnp.issubdtype(weight.dtype, jnp.integer):
        weight = jnp.diff(_sums_before(weight)[jnp.append(first, nse)])
    else:
        weight = jnp.zeros_like(weight).at[run - 1].add(weight)  # that of padding is 0
    tail, head = (v.at[first].get(mode="fill", fill_value=n) for v in (tail, head))
    return Edges(tail, head, weight), run[-1]


def _quality(edges: Edges, sums: Array, per: Array, factor: Array) -> Array:
    """The modularity of communities: of the edges between them and their sums of weights."""
    inside = jnp.sum(jnp.where(edges.tail == edges.head, edges.weight, 0))
    return inside * per - factor * jnp.sum(sums * (sums * per))


def _moved(n: int, edges: Edges, k: Array, per: Array, factor: Array) -> tuple[Array, Array]:
    """(n,) the best communities that the sweeps found, named by a vertex; 0."""
    vertex = jnp.arange(n, dtype=jnp.int32)

    def sweep(state):
        group, best, most, number, idle = state
        sums = _sums(k, group)
        size = jnp.zeros(n, jnp.int32).at[group].add(jnp.where(k > 0, 1, 0))
        gain, target = _best_moves(n, edges, group, sums, k, factor)
        # Two vertices, each alone in its community, would swap communities forever.
        lone = (size[group] == 1) & (size.at[target].get(mode="clip") == 1)
        mixed = vertex * np.int32(-1640531535) + number * np.int32(40503)  # int32 under x64, too
        chance = ((mixed ^ (mixed >> 15)) * np.int32(-2048144777)) >> 31
        wants = (gain > 0) & ~(lone & (target > group))
        moves = wants & (chance == 0)
        group = jnp.where(moves, target, group)
        now = _quality(_between(n, edges, group), _sums(k, group), per, factor)
        best = jnp.where(now > most, group, best)
        waits = jnp.any(wants) & ~jnp.any(moves)  # all that would move were left out by chance
        idle = jnp.where(now > most + ENOUGH, 0, idle + ~waits)
        return group, best, jnp.maximum(most, now), number + 1, idle

    first = (vertex, vertex, _quality(edges, k, per, factor), jnp.int32(0), jnp.int32(0))
    going = lambda s: (s[3] < SWEEPS) & (s[4] < PATIENCE)  # noqa: E731
    return lax.while_loop(going, sweep, first)[1], jnp.int32(0)


def _best_moves(n, edges: Edges, group, sums, k, factor) -> tuple[Array, Array]:
    """(n,) the gain of the best move of each vertex over staying; the community that it moves
    to."""
    to = group.at[edges.head].get(mode="fill", fill_value=n)
    weight = jnp.where(edges.tail == edges.head, 0, edges.weight)
    v, c, w = _by_vertex_and_group(n, Edges(edges.tail, to, weight))
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


def _by_vertex_and_group(n: int, edges: Edges) -> Edges:
    """The edges sorted by (tail, head): two stable sorts by one key, which are fastest on a GPU.

    Keys of 16 bits: XLA calls CUB for them, and compiles sorts of few keys of 32 bits.
    """
    tail, head, weight = edges
    key = jnp.uint16 if n < 2**16 else jnp.uint32
    slot = jnp.arange(tail.shape[0], dtype=jnp.int32)
    sort = functools.partial(lax.sort, num_keys=1, is_stable=True)
    slot = sort((head.astype(key), slot))[1]
    tail, slot = sort((tail[slot].astype(key), slot))
    return Edges(tail.astype(jnp.int32), head[slot], weight[slot])


def in_kernels(graph: Graph, weights: Array, resolution: Array) -> tuple[Array, Array, Array]:
    """As `vectorised`; weights become integers, so that the order of additions does not matter."""
    return vectorised(graph, _integers(weights), resolution, _moved_in_kernel)


def _integers(weights: Array) -> Array:
    """int32 in proportion to float32 weights: themselves if they are integers of a small sum."""
    total = jnp.sum(weights)
    whole = jnp.all(weights == jnp.round(weights)) & (total < MOST)
    scale = jnp.where(whole | (total == 0), 1, MOST / jnp.where(total == 0, 1, total))
    return jnp.round(weights * scale).astype(jnp.int32)


def _moved_in_kernel(
    n: int, edges: Edges, k: Array, per: Array, factor: Array
) -> tuple[Array, Array]:
    """(n,) communities, each named by a vertex; the status of the kernel."""
    from pallas_kernels.communities.louvain import moves

    del per
    bounds = jnp.arange(n + 1, dtype=jnp.int32)
    indptr = jnp.searchsorted(edges.tail, bounds, method="scan_unrolled")
    return moves(indptr, edges.head, edges.weight, k, factor)
