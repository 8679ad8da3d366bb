"""Louvain on every platform: half of the vertices move at once, edges sorted by community."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ...graph import Graph
from ..common.edges import ends_of

SWEEPS, LEVELS = 64, 32
PATIENCE = 4  # sweeps without a larger modularity
LEAST = 1e-6  # a level must raise the modularity by this


class _Edges(NamedTuple):
    """Between communities of the level before, which keep the number of one of their vertices."""

    tail: Array
    head: Array
    weight: Array


def at_once(graph: Graph, weights: Array, resolution: Array) -> tuple[Array, Array]:
    """(n,) a vertex that names the community of each, and the number of levels.

    Communities keep the slots of their edges, so that nothing changes its shape: an edge of a later
    level joins the names of two communities, several may join the same two, and names without
    edges do nothing.
    """
    n = graph.n
    tail, head = ends_of(graph)
    vertex = jnp.arange(n, dtype=jnp.int32)

    def level(state):
        member, quality, number, _ = state
        rename = member.at[jnp.stack([tail, head])].get(mode="fill", fill_value=n)
        group, best = _moved(n, _Edges(rename[0], rename[1], weights), resolution)
        better = best > quality + LEAST
        member = jnp.where(better, group.at[member].get(mode="clip"), member)
        return member, jnp.maximum(quality, best), number + better, better

    start = (vertex, jnp.float32(-np.inf), jnp.int32(0), jnp.bool_(True))
    member, _, number, _ = lax.while_loop(lambda s: s[3] & (s[2] < LEVELS), level, start)
    return member, number


def _moved(n: int, edges: _Edges, resolution: Array) -> tuple[Array, Array]:
    """(n,) the best communities that sweeps found, each named by a vertex; their modularity."""
    vertex = jnp.arange(n, dtype=jnp.int32)
    k = jnp.zeros(n, jnp.float32).at[edges.tail].add(edges.weight, mode="drop")
    total = jnp.sum(edges.weight)
    per = jnp.where(total > 0, 1 / jnp.where(total > 0, total, 1), 0)

    def quality(group):
        ends = (group.at[v].get(mode="fill", fill_value=n) for v in edges[:2])
        start, end = ends
        inside = jnp.sum(jnp.where(start == end, edges.weight, 0))
        sums = jnp.zeros(n, jnp.float32).at[group].add(k)
        return inside * per - resolution * jnp.sum((sums * per) ** 2)

    def sweep(state):
        group, best, most, number, idle = state
        sums = jnp.zeros(n, jnp.float32).at[group].add(k)
        size = jnp.zeros(n, jnp.int32).at[group].add(jnp.where(k > 0, 1, 0))
        gain, target = _best_moves(n, edges, group, sums, k, resolution * per)
        # Two lone vertices that want each other would change places for ever.
        lone = (size[group] == 1) & (size.at[target].get(mode="clip") == 1)
        mixed = vertex * np.uint32(2654435761) + number.astype(jnp.uint32) * np.uint32(40503)
        chance = ((mixed ^ (mixed >> 15)) * np.uint32(2246822519)) >> 31
        moves = (gain > 0) & ~(lone & (target > group)) & (chance == 0)
        group = jnp.where(moves, target, group)
        now = quality(group)
        better = now > most
        best = jnp.where(better, group, best)
        return group, best, jnp.maximum(most, now), number + 1, jnp.where(better, 0, idle + 1)

    first = (vertex, vertex, quality(vertex), jnp.int32(0), jnp.int32(0))
    going = lambda s: (s[3] < SWEEPS) & (s[4] < PATIENCE)  # noqa: E731
    _, best, most, _, _ = lax.while_loop(going, sweep, first)
    return best, most


def _best_moves(n, edges: _Edges, group, sums, k, factor) -> tuple[Array, Array]:
    """(n,) what the best move of each vertex gains over staying, and its community."""
    to = group.at[edges.head].get(mode="fill", fill_value=n)
    weight = jnp.where(edges.tail == edges.head, 0, edges.weight)
    v, c, w = _by_vertex_and_group(edges.tail, to, weight)
    new = jnp.append(True, (v[1:] != v[:-1]) | (c[1:] != c[:-1]))
    run = jnp.cumsum(new, dtype=jnp.int32) - 1
    beside = jnp.zeros(v.shape[0], jnp.float32).at[run].add(w)[run]
    mine = k.at[v].get(mode="fill", fill_value=0)
    own = group.at[v].get(mode="fill", fill_value=n)
    there = sums.at[c].get(mode="fill", fill_value=0) - jnp.where(c == own, mine, 0)
    value = jnp.where(v < n, beside - factor * mine * there, -jnp.inf)
    stay = -factor * k * (sums[group] - k)  # where no neighbour is of the same community
    stay = stay.at[jnp.where(c == own, v, n)].max(value, mode="drop")
    most = jnp.full(n, -jnp.inf, jnp.float32)
    most = most.at[jnp.where(c != own, v, n)].max(value, mode="drop")
    wins = (c != own) & (value == most.at[v].get(mode="fill", fill_value=jnp.inf))
    target = jnp.full(n, n, jnp.int32).at[jnp.where(wins, v, n)].min(c, mode="drop")
    return jnp.where(target < n, most - stay, -jnp.inf), target


def _by_vertex_and_group(tail: Array, to: Array, weight: Array) -> tuple[Array, Array, Array]:
    """The edges in order of (tail, to): two stable sorts by one key, as a GPU is quickest at."""
    slot = jnp.arange(tail.shape[0], dtype=jnp.int32)
    for key in (to, tail):
        slot = lax.sort((key[slot].astype(jnp.uint32), slot), num_keys=1, is_stable=True)[1]
    return tail[slot], to[slot], weight[slot]
