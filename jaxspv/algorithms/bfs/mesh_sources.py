"""Breadth-first search from up to 32 sources together on a sharded graph: a bit a source."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

from ...formats.csr import sort_by
from ...ops.products.spmv.xla import csr_spmv
from ...sharding.exchange import Local, mine


def search_words(local: Local, sources: Array) -> Array:
    """(count, r) levels of a piece from every source; one traversal, in which a word travels where
    for one source it is a bit.

    Each level joins the words of all in-neighbours by `or`: along the rows where the pattern is
    symmetric, else along columns, sorted once.
    """
    count = sources.shape[0]
    number = jnp.arange(count, dtype=jnp.uint32)[:, None]
    joined = _joined(local)
    levels = jnp.stack([jnp.where(mine(local, sources[k]), 0, -1) for k in range(count)])

    def going(c):
        return c[-1] > 0

    def level(c):
        depth, words, seen, levels, _ = c
        words = joined(words) & ~seen
        levels = jnp.where((words >> number) & 1 != 0, depth + 1, levels)
        return depth + 1, words, seen | words, levels, _some(local, words)

    first = jnp.where(levels == 0, jnp.uint32(1) << number, jnp.uint32(0))
    words = jnp.sum(first, axis=0, dtype=jnp.uint32)
    start = jnp.int32(0), words, words, levels.astype(jnp.int32), _some(local, words)
    return lax.while_loop(going, level, start)[3]


def _some(local: Local, words: Array) -> Array:
    return local.total(jnp.any(words != 0).astype(jnp.int32))


def _joined(local: Local) -> Callable[[Array], Array]:
    """The union of the in-neighbours' words, for each vertex of this device."""
    block = local.block

    def over(indptr, indices, words):
        how = {"mul": lambda _, word: word, "combine": lax.bitwise_or, "identity": 0}
        return csr_spmv(indptr, indices, 1, words, scatter=None, **how)

    if local.symmetric:
        return lambda words: local.fold_rows_of_words(
            over(block.indptr, block.indices, local.along_cols(words))
        )
    row, col = block.rowcol()
    rows, cols = local.part.block_shape
    ends, slots = sort_by(jnp.where(row < rows, col, cols), cols)
    return lambda words: local.fold_cols_of_words(over(ends, row[slots], local.along_rows(words)))
