"""Closeness and harmonic centrality: how near a vertex is to those that reach it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.eager.programs import one_program
from ..._core.operation import Operation, typed
from ..._core.platforms import Backend
from ..._core.pytree import result_tuple
from ..._core.reductions import rounded
from ...algebra.monoids import plus
from ...graph import Graph, as_graph
from ...native import bind
from ...shapes import Float, Int, Matrix
from ..bfs.api import many as bfs_of_sources
from ..common.derivatives import constant
from ..common.edges import vertices_of

SOURCES = 32  # of a search: the bits of a word
CARRY = 24  # bits of the lower part of a sum of levels


@result_tuple
class Closeness(NamedTuple):
    """The result of `closeness_centrality`.

    Attributes:
        scores: (n,) float32.
        harmonic: (n,) float32, the sums of 1 / distance.
        reached: (n,) int32, vertices that each is reached from, itself among them.
    """

    scores: Float[Array, " n"]
    harmonic: Float[Array, " n"]
    reached: Int[Array, " n"]


def closeness_centrality(
    G: Matrix,
    *,
    wf_improved: bool = True,
    backend: Backend | None = None,
    method: str | None = None,
) -> Closeness:
    """`scores[v] = (r - 1) / sum over u of d(u, v)`, of the r vertices u that reach v (v too).

    Distances are numbers of edges, towards v as in NetworkX; for those from v pass the transpose.
    Breadth-first searches from all vertices, 32 together, add their levels to what they reach.

    Args:
        G: a `Graph` from `prepare(A, for_="bfs")` or a square sparse matrix, A[i, j] the edge
            i -> j.
        wf_improved: times (r - 1) / (n - 1), by Wasserman and Faust, which makes components of
            different sizes comparable.
        backend: "cpu", "xla" or None.
        method: as for `bfs` of several sources.

    Returns:
        `Closeness(scores, harmonic, reached)`: `harmonic[v] = sum over u != v of 1 / d(u, v)`. A
        vertex that nothing else reaches has 0; a ghost of `pad` too.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: n / 32 searches from 32 sources, O(32 n) memory.

    Source: Freeman, "Centrality in social networks: conceptual clarification", Social Networks 1,
    1979; Marchiori, Latora, "Harmony in the small-world", Physica A 285, 2000.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2], [1, 0, 2, 1], shape=(3, 3))
    >>> [round(float(c), 3) for c in jsp.closeness_centrality(A).scores]
    [0.667, 1.0, 0.667]
    """
    graph = as_graph(G, "closeness_centrality", ("bfs",))
    return one_program(_closeness, graph, wf_improved=wf_improved, backend=backend, method=method)


def _closeness(graph: Graph, *, wf_improved: bool, **how: Any) -> Closeness:
    high, low, harmonic, reached = op(graph, **how)
    total = high.astype(jnp.float32) * 2**CARRY + low
    others = (reached - 1).astype(jnp.float32)
    scores = jnp.where(total > 0, others / jnp.where(total > 0, total, 1), 0)
    if wf_improved:
        scores = scores * others / jnp.maximum(vertices_of(graph) - 1, 1)
    return Closeness(scores, harmonic, reached)


def _types(graph):
    total = typed(jnp.int32, graph.n)
    return total, total, typed(jnp.float32, graph.n), total


op = Operation("closeness_centrality", constant, types=_types)


@op.register("native", backend="cpu", refuse=bind.refused)
def _native(graph):
    """Searches from 64 vertices together, in C++."""
    total, _, harmonic, _ = _types(graph)
    results = total, total, harmonic, total
    return tuple(bind.call("closeness", results, graph.out.indptr, graph.out.indices))


@op.register("words")
def _words(graph):
    """A word of sources after the other; sums of levels in two parts, as they pass 2^31."""
    n = graph.n
    words = -(-n // SOURCES)
    sources = np.minimum(np.arange(words * SOURCES, dtype=np.int32), n).reshape(words, SOURCES)

    def search(total, sources):
        high, low, harmonic, reached = total
        levels = bfs_of_sources(graph, sources, parents=False, deterministic=False).levels
        low = low + jnp.sum(jnp.maximum(levels, 0), axis=0, dtype=jnp.int32)
        inverse = jnp.where(levels > 0, 1 / jnp.maximum(levels, 1).astype(jnp.float32), 0)
        harmonic = joined(harmonic, jnp.sum(inverse, axis=0))
        reached = reached + jnp.sum(levels >= 0, axis=0, dtype=jnp.int32)
        return (high + (low >> CARRY), low & (2**CARRY - 1), harmonic, reached), None

    zero = jnp.zeros(n, jnp.int32)
    wide, joined = plus.one_by_one(jnp.float32)
    start = (zero, zero, rounded(jnp.zeros(n, jnp.float32), wide), zero)
    high, low, harmonic, reached = lax.scan(search, start, jnp.asarray(sources))[0]
    return high, low, rounded(harmonic, jnp.float32), reached
