"""Louvain on a GPU: the moves of a level in one launch, levels joined as on every platform."""

from __future__ import annotations

import functools

import jax.numpy as jnp
from jax import Array

from pallas_kernels.communities.louvain import moves

from ...graph import Graph
from .louvain_xla import Edges, quality_of, strengths, vectorised

MOST = 2**30  # the sum of all weights, as integers


def in_kernels(
    graph: Graph, weights: Array, resolution: Array, **how: bool
) -> tuple[Array, Array, Array]:
    """As `vectorised`; weights become integers, so that the order of additions does not matter."""
    return vectorised(graph, _integers(weights), resolution, functools.partial(_moved, **how))


def _integers(weights: Array) -> Array:
    """int32 in proportion to float32 weights: themselves if they are integers of a small sum."""
    total = jnp.sum(weights)
    whole = jnp.all(weights == jnp.round(weights)) & (total < MOST)
    scale = jnp.where(whole | (total == 0), 1, MOST / jnp.where(total == 0, 1, total))
    return jnp.round(weights * scale).astype(jnp.int32)


def _moved(n: int, edges: Edges, resolution: Array, **how) -> tuple[Array, Array, Array]:
    """(n,) communities, each named by a vertex; their modularity; the status of the kernel."""
    strength, per = strengths(n, edges)
    length = jnp.zeros(n, jnp.int32).at[edges.tail].add(1, mode="drop")
    indptr = jnp.append(jnp.int32(0), jnp.cumsum(length, dtype=jnp.int32))
    group, status = moves(indptr, edges.head, edges.weight, strength, resolution * per, **how)
    return group, quality_of(n, edges, group, resolution), status
