"""BFS on the XLA backend: arrays in, arrays out; the form of the traversal by platform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from ..._core.batching import sequential
from .cpu import bfs_sequential
from .xla import bfs_level_synchronous

Stop = Callable[[Array, Array, Array], Any]
Form = Literal["sequential", "level_synchronous"]
FORMS: dict[Form, Callable[..., tuple[Array, Array | None, Array]]] = {
    "sequential": bfs_sequential,
    "level_synchronous": bfs_level_synchronous,
}


def bfs_xla(
    indptr: Array,
    indices: Array,
    source: Array,
    *,
    in_indptr: Array | None = None,
    in_indices: Array | None = None,
    symmetric: bool = False,
    stop: Stop | None = None,
    parents: bool = True,
    deterministic: bool = False,
    form: Form | None = None,
) -> tuple[Array, Array | None, Array]:
    """Breadth-first search along the edges u -> indices[e], indptr[u] <= e < indptr[u + 1].

    `levels[v] = min over paths source -> v of the number of edges`.

    Args:
        indptr: (n + 1,) int32.
        indices: (nse,) int32; slots at or after indptr[n] are padding of any value.
        source: () int32; out of range, negative too: nothing is reached.
        in_indptr, in_indices: the same of the transposed graph, to pull from wide levels.
        symmetric: the graph is its own transpose, static; pulls over `indptr` and `indices`.
        stop: `stop(level, levels, frontier_size)`, asked for every level when it is complete, the
            source's (level 0) first; true ends the search there.
        parents: whether to compute them, static.
        deterministic: of several possible parents take the smallest, static.
        form: static; None: "sequential" on a CPU, else "level_synchronous", by the platform that
            is lowered for.

    Returns:
        levels (n,) int32, -1 where unreached; parents (n,) int32, -1 where unreached, the source
        its own, or None; num_levels () int32, levels that hold a vertex.

    Under vmap the searches run one after the other.

    Cost: O(n + nse) time in all, a level in proportion to the edges of its frontier (pushed) or to
        n and the edges probed (pulled).
    """
    n = indptr.shape[0] - 1
    source = jnp.asarray(source, jnp.int32)
    if n == 0 or indices.shape[0] == 0:
        return _no_edges(n, source, parents)
    if symmetric:
        in_indptr, in_indices = indptr, indices
    stop_of, constants = _closed(stop, n)

    def search(*operands):
        *graph, constants = operands
        more = (stop_of(constants), parents, deterministic)
        if form is not None:
            return FORMS[form](*operands[:-1], *more)
        return lax.platform_dependent(
            *graph,
            cpu=lambda *graph: FORMS["sequential"](*graph, *more),
            default=lambda *graph: FORMS["level_synchronous"](*graph, *more),
        )

    # One source after the other: lanes in step would each pay for every step of any lane.
    graph = (indptr, indices, source, in_indptr, in_indices)
    return sequential(search)(*graph, constants)


def _closed(stop: Stop | None, n: int) -> tuple[Callable[[Any], Stop | None], list[Any]]:
    """(`constants -> stop`, the values that `stop` closes over), so that those can be batched."""
    if stop is None:
        return lambda _: None, []
    number = jax.ShapeDtypeStruct((), jnp.int32)
    closed = jax.make_jaxpr(stop)(number, jax.ShapeDtypeStruct((n,), jnp.int32), number)

    def with_constants(constants):
        fn = jaxpr_as_fun(ClosedJaxpr(closed.jaxpr, constants))
        return lambda *progress: fn(*progress)[0]

    return with_constants, closed.consts


def _no_edges(n: int, source: Array, parents: bool) -> tuple[Array, Array | None, Array]:
    at_source = jnp.arange(n, dtype=jnp.int32) == source
    valid = (source >= 0) & (source < n)
    levels = jnp.where(at_source, 0, -1).astype(jnp.int32)
    tree = jnp.where(at_source, source, -1).astype(jnp.int32) if parents else None
    return levels, tree, valid.astype(jnp.int32)
