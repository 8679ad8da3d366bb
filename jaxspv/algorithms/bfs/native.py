"""Breadth-first search on CPUs in C++: direction-optimizing, and many sources by words of bits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...graph import Graph
from ...native import bind
from ...until import Until

KINDS = ("reached", "unchanged", "max_iterations", "or", "and")  # by their numbers in `until.h`


def search(
    graph: Graph, source: Array, until: Until | None, *, parents: bool, deterministic: bool
) -> tuple[Array, Array | None, Array]:
    """`xla.search` in C++: levels, parents or None, the number of levels."""
    inn = graph.out if graph.symmetric else graph.inn
    out, n = graph.out, graph.n
    back = out if inn is None else inn
    numbers = jax.ShapeDtypeStruct((n,), jnp.int32)
    tree = numbers if parents else jax.ShapeDtypeStruct((0,), jnp.int32)
    operands = out.indptr, out.indices, back.indptr, back.indices
    levels, found, count = bind.call(
        "bfs",
        (numbers, tree, jax.ShapeDtypeStruct((), jnp.int32)),
        *operands,
        jnp.asarray(source, jnp.int32),
        _as_numbers(until),
        pulls=inn is not None,
        deterministic=deterministic,
    )
    return levels, found if parents else None, count


def search_sources(
    graph: Graph, sources: Array, *, parents: bool, deterministic: bool
) -> tuple[Array, Array | None]:
    """Levels and parents or None from each source, (count, n)."""
    out, rows = graph.out, jax.ShapeDtypeStruct((sources.shape[0], graph.n), jnp.int32)
    tree = rows if parents else jax.ShapeDtypeStruct((0, 0), jnp.int32)
    operands = out.indptr, out.indices, sources.astype(jnp.int32)
    levels, found = bind.call("bfs_sources", (rows, tree), *operands, deterministic=deterministic)
    return levels, found if parents else None


def _as_numbers(until: Until | None) -> Array | np.ndarray:
    """(k, 2) int32: a condition in postfix order, as pairs of a kind and a value."""
    if until is None:
        return np.zeros((0, 2), np.int32)
    rows = [(KINDS.index(kind), 0 if v is None else v) for kind, v in until.postfix()]
    return jnp.stack([jnp.stack([jnp.asarray(v, jnp.int32) for v in row]) for row in rows])
