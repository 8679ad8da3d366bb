"""Breadth-first search without kernels: arrays in, arrays out; by vertices or by levels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import jax.numpy as jnp
from jax import Array

from pallas_kernels.layouts.adjacency import Adjacency

from .cpu import bfs_cpu
from .xla import bfs_xla

Stop = Callable[[Array, Array, Array], Any]


def search(
    form: Literal["cpu", "xla"],
    graph: Adjacency,
    source: Array,
    *,
    symmetric: bool = False,
    stop: Stop | None = None,
    parents: bool = True,
    deterministic: bool = False,
) -> tuple[Array, Array | None, Array]:
    """Breadth-first search along the edges u -> indices[e], indptr[u] <= e < indptr[u + 1].

    `levels[v] = min over paths source -> v of the number of edges`.

    Args:
        graph: indptr (n + 1,) and indices (nse,) int32, slots at or after indptr[n] are padding of
            any value; the same of the transposed graph, to pull from wide levels, or None.
        source: () int32; out of range, negative too: nothing is reached.
        symmetric: the graph is its own transpose, static: pulled from without another.
        stop: `stop(level, levels, frontier_size)`, asked for every level when it is complete, the
            source's (level 0) first; true ends the search there.
        parents: whether to compute them, static.
        deterministic: of several possible parents take the smallest, static.
        form: "cpu" (one vertex after the other, in native loops) or "xla" (one level after the
            other), static.

    Returns:
        levels (n,) int32, -1 where unreached; parents (n,) int32, -1 where unreached, the source
        its own, or None; num_levels () int32, levels that hold a vertex.

    Cost: O(n + nse) time in all, a level in proportion to the edges of its frontier (pushed) or to
        n and the edges probed (pulled).
    """
    source = jnp.asarray(source, jnp.int32)
    if graph.n == 0 or graph.indices.shape[0] == 0:
        return _no_edges(graph.n, source, parents)
    run = bfs_cpu if form == "cpu" else bfs_xla
    return run(graph.in_both_directions(symmetric), source, stop, parents, deterministic)


def _no_edges(n: int, source: Array, parents: bool) -> tuple[Array, Array | None, Array]:
    at_source = jnp.arange(n, dtype=jnp.int32) == source
    valid = (source >= 0) & (source < n)
    levels = jnp.where(at_source, 0, -1).astype(jnp.int32)
    tree = jnp.where(at_source, source, -1).astype(jnp.int32) if parents else None
    return levels, tree, valid.astype(jnp.int32)
