"""BFS from several sources together without kernels: a bit a source, 32 sources a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array, lax

from pallas_kernels.layouts.adjacency import Adjacency

from ....formats.base import search_rows
from ....formats.convert.counting_sort import Compressed, transpose
from ....formats.csr import sort_by
from ....ops.products.spmv.xla import csr_spmv
from ..forms import search
from ..parents import smallest_parents, smallest_parents_cpu
from .cpu import SOURCES, bfs_sources_cpu
from .parents import BITS, BITS_NEAR, levels_of, parents_of


def search_sources(
    form: Literal["cpu", "xla"],
    graph: Adjacency,
    sources: Array,
    *,
    symmetric: bool = False,
    parents: bool = True,
    deterministic: bool = False,
) -> tuple[Array, Array | None]:
    """Breadth-first search from every one of `sources`; see `search` for the arguments.

    Args:
        form: "cpu" (native loops over words, and one source after the other where the search is
            deep) or "xla" (each level looks at all edges), static.
        sources: (count,) int32; out of range, negative too: nothing is reached from there.

    Returns:
        levels (count, n) int32, -1 where unreached; parents the same, or None.

    Words of 32 sources are worked off one after the other.
    """
    graph = graph.in_both_directions(symmetric)
    run = _cpu if form == "cpu" else _xla
    if graph.n == 0 or graph.indices.shape[0] == 0:
        run = _each_alone

    def some(sources):
        return run(graph, sources, parents, deterministic, symmetric)

    return in_words(some, sources, graph.n)


def in_words(search: Callable[[Array], Any], sources: Array, n: int) -> Any:
    """`search(sources)` where it takes at most 32 of them: words of 32 after each other.

    A leaf of the result has a row for each source, or is one number for all of a word.
    """
    count = sources.shape[0]
    if 0 < count <= SOURCES:
        result = search(sources)
    else:
        words = max(-(-count // SOURCES), 1)
        padded = jnp.pad(sources, (0, words * SOURCES - count), constant_values=n)
        result = lax.map(search, padded.reshape(words, SOURCES))
        result = jax.tree.map(lambda v: lax.collapse(v, 0, 2)[:count] if v.ndim == 3 else v, result)
    return jax.tree.map(
        lambda v: jnp.broadcast_to(jnp.max(v), (count,)) if v.ndim < 2 else v, result
    )


def _each_alone(graph, sources, parents, deterministic, symmetric):
    del symmetric
    how = {"parents": parents, "deterministic": deterministic}
    return lax.map(lambda source: search("cpu", graph, source, **how)[:2], sources)


def _cpu(graph, sources, parents, deterministic, symmetric):
    if graph.in_indices is None and parents and not deterministic:
        inn = transpose(Compressed(graph.indptr, graph.indices, None), graph.n)
        graph = graph._replace(in_indptr=inn.indptr, in_indices=inn.indices)
    bits = BITS_NEAR if symmetric else BITS
    planes, seen, complete = bfs_sources_cpu(graph, sources, bits)

    def together(planes, seen):
        levels = levels_of(planes, seen, sources.shape[0])
        if not parents:
            return levels, None
        if deterministic:
            return levels, of_each(smallest_parents_cpu, graph, sources, levels)
        inn = graph.in_indptr, graph.in_indices
        return levels, parents_of(*inn, planes, seen, sources, symmetric)

    def one_by_one(planes, seen):
        return _each_alone(graph, sources, parents, deterministic, symmetric)

    return lax.cond(complete, together, one_by_one, planes, seen)


def _xla(graph, sources, parents, deterministic, symmetric):
    """Every level combines the words of all in-neighbours by `or`: O(nse) a level, no atomics."""
    del deterministic, symmetric  # the parents are the smallest in any case
    n, count = graph.n, sources.shape[0]
    if graph.in_indices is None:
        tail = search_rows(graph.indptr, graph.indices.shape[0])
        ends, slots = sort_by(jnp.where(tail < n, graph.indices, n), n)
        graph = graph._replace(in_indptr=ends, in_indices=tail[slots])
    number = jnp.arange(count, dtype=jnp.int32)[:, None]
    levels = jnp.where(jnp.arange(n, dtype=jnp.int32) == sources[:, None], 0, -1)
    bit = jnp.uint32(1) << number.astype(jnp.uint32)

    def step(c):
        depth, words, seen, levels = c
        words = csr_spmv(
            graph.in_indptr,
            graph.in_indices,
            1,
            words,
            mul=lambda _, word: word,
            combine=lax.bitwise_or,
            identity=0,
            scatter=None,
        )
        words = words & ~seen
        levels = jnp.where(words & bit != 0, depth + 1, levels)
        return depth + 1, words, seen | words, levels

    words = jnp.sum(jnp.where(levels == 0, bit, 0), axis=0, dtype=jnp.uint32)
    first = (jnp.int32(0), words, words, levels)
    levels = lax.while_loop(lambda c: jnp.any(c[1] != 0), step, first)[-1]
    tree = of_each(smallest_parents, graph, sources, levels) if parents else None
    return levels, tree


def of_each(rule: Callable[..., Array], graph: Adjacency, sources: Array, levels: Array) -> Array:
    """The parents of every source by a rule of `parents`."""
    return lax.map(lambda c: rule(*graph[:2], *c), (sources, levels))
