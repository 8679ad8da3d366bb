"""BFS from several sources at once without kernels: a bit a source, 32 sources a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array, lax

from ...formats.base import search_rows
from ...formats.compressed_cpu import Compressed, transpose
from ...ops.mxv.rows.xla import csr_spmv
from .forms import search
from .multi_source_cpu import SOURCES, bfs_sources_cpu
from .multi_source_parents import BITS, BITS_NEAR, levels_of, parents_of


def search_sources(
    form: Literal["cpu", "xla"],
    indptr: Array,
    indices: Array,
    sources: Array,
    *,
    in_indptr: Array | None = None,
    in_indices: Array | None = None,
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
    n = indptr.shape[0] - 1
    if symmetric:
        in_indptr, in_indices = indptr, indices
    run = _cpu if form == "cpu" else _dense
    if n == 0 or indices.shape[0] == 0:
        run = _each_alone

    def some(sources):
        graph = (indptr, indices, sources, in_indptr, in_indices)
        return run(*graph, parents, deterministic, symmetric)

    return in_words(some, sources, n)


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
        result = jax.tree.map(lambda v: v.reshape(-1, n)[:count] if v.ndim == 3 else v, result)
    return jax.tree.map(
        lambda v: jnp.broadcast_to(jnp.max(v), (count,)) if v.ndim < 2 else v, result
    )


def _each_alone(indptr, indices, sources, in_indptr, in_indices, parents, deterministic, symmetric):
    del symmetric

    def one(source):
        return search(
            "cpu",
            indptr,
            indices,
            source,
            in_indptr=in_indptr,
            in_indices=in_indices,
            parents=parents,
            deterministic=deterministic,
        )[:2]

    return lax.map(one, sources)


def _cpu(indptr, indices, sources, in_indptr, in_indices, parents, deterministic, symmetric):
    if in_indptr is None and parents and not deterministic:
        inn = transpose(Compressed(indptr, indices, None), indptr.shape[0] - 1)
        in_indptr, in_indices = inn.indptr, inn.indices
    graph = (indptr, indices, sources, in_indptr, in_indices)
    planes, seen, complete = bfs_sources_cpu(*graph, bits=BITS_NEAR if symmetric else BITS)

    def together(planes, seen):
        levels = levels_of(planes, seen, sources.shape[0])
        if not parents:
            return levels, None
        if deterministic:
            return levels, all_smallest_parents(indptr, indices, sources, levels)
        assert in_indptr is not None and in_indices is not None
        return levels, parents_of(in_indptr, in_indices, planes, seen, sources, symmetric)

    def apart(planes, seen):
        return _each_alone(*graph, parents, deterministic, symmetric)

    return lax.cond(complete, together, apart, planes, seen)


def _dense(indptr, indices, sources, in_indptr, in_indices, parents, deterministic, symmetric):
    """Every level joins the words of all in-neighbours by `or`: O(nse) a level, no atomics."""
    del deterministic, symmetric  # the parents are the smallest in any case
    n, count = indptr.shape[0] - 1, sources.shape[0]
    if in_indptr is None:
        in_indptr, in_indices = _transposed(indptr, indices)
    number = jnp.arange(count, dtype=jnp.int32)[:, None]
    levels = jnp.where(jnp.arange(n, dtype=jnp.int32) == sources[:, None], 0, -1)
    bit = jnp.uint32(1) << number.astype(jnp.uint32)

    def step(c):
        depth, words, seen, levels = c
        words = csr_spmv(
            in_indptr,
            in_indices,
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
    tree = all_smallest_parents(indptr, indices, sources, levels) if parents else None
    return levels, tree


def all_smallest_parents(indptr, indices, sources, levels):
    return lax.map(lambda c: smallest_parents(indptr, indices, *c), (sources, levels))


def smallest_parents(indptr: Array, indices: Array, source: Array, levels: Array) -> Array:
    """Of the in-neighbours one level nearer to the source the one of smallest id. O(nse)."""
    n, nse = levels.shape[0], indices.shape[0]
    tail = search_rows(indptr, nse)
    above, below = (jnp.take(levels, v, mode="clip") for v in (tail, indices))
    tight = (tail < n) & (above >= 0) & (below == above + 1)
    best = jnp.full(n, n, jnp.int32).at[jnp.where(tight, indices, n)].min(tail, mode="drop")
    vertex = jnp.arange(n, dtype=jnp.int32)
    best = jnp.where((vertex == source) & (levels == 0), source, best)
    return jnp.where(levels >= 0, best, -1)


def _transposed(indptr: Array, indices: Array) -> tuple[Array, Array]:
    """The CSR arrays of the transpose, by a sort."""
    n = indptr.shape[0] - 1
    tail = search_rows(indptr, indices.shape[0])
    head, tail = lax.sort((jnp.where(tail < n, indices, n), tail), num_keys=1)
    first = jnp.searchsorted(head, jnp.arange(n + 1, dtype=jnp.int32))
    return first.astype(jnp.int32), tail
