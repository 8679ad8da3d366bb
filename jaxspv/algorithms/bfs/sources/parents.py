"""Levels and parents of multi-source BFS on a CPU, from the levels' binary digits."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ...._core.native_loops import read_natural as read

# Bits of a level where levels at the ends of an edge differ by 1 at most (symmetric graphs), and
# where they do not: one more, and XLA would no longer compile `parents_of` to native code.
BITS_NEAR, BITS = 7, 6
TOGETHER = 128  # vertices whose parents are turned from rows of sources into columns in cache
LONG_ROWS = 16  # mean degree from which stretches of edges without a parent are skipped


def levels_of(planes: Array, seen: Array, count: int) -> Array:
    """(count, n) int32 from the levels in binary, (bits, n); -1 where unreached."""
    source = jnp.arange(count, dtype=jnp.uint32)[:, None]

    def bit(words):
        return ((words >> source) & np.uint32(1)).astype(jnp.int32)

    level = sum(bit(plane) << j for j, plane in enumerate(planes))
    return jnp.where(bit(seen) != 0, level, -1)


def parents_of(
    in_indptr: Array, in_indices: Array, planes: Array, seen: Array, sources: Array, near: bool
) -> Array:
    """(sources, n) int32: the first in-neighbour one level nearer to each source.

    One pass over the in-edges, for all sources together: levels are compared bit by bit, a word for
    each bit of the level. A vertex is done when every source has its parent. near: the levels of
    the two endpoints of an edge differ by at most 1 (symmetric graphs), so that two bits suffice.

    The parents of a vertex are one row of numbers from 1, which an edge is or-ed into where its
    word has a bit: a vector instruction instead of a branch for every parent. Rows of `TOGETHER`
    vertices are turned into columns while they are in cache.
    """
    n, count = seen.shape[0], sources.shape[0]
    size, lane = min(TOGETHER, n), np.arange(count, dtype=np.uint32)
    beyond = functools.reduce(jnp.bitwise_or, list(planes))  # not the source itself
    own, wanted = seen & ~beyond, seen & beyond
    of_row = _row_of_parents(in_indptr, in_indices, planes, seen, wanted, count, near)

    def some(c):
        b, tree = c
        begin = jnp.minimum(b * size, n - size)
        vertex = begin + jnp.arange(1, size + 1, dtype=jnp.int32)[:, None]
        themselves = lax.dynamic_slice(own, (begin,), (size,))[:, None] >> lane
        rows = jnp.where(themselves & np.uint32(1) != 0, vertex, 0).reshape(-1)
        _, rows = lax.while_loop(
            lambda c: c[0] < size,
            lambda c: (c[0] + 1, of_row(begin + c[0], c[0], c[1])),
            (jnp.int32(0), rows),
        )
        return b + 1, lax.dynamic_update_slice(
            tree, rows.reshape(size, count).T - 1, (jnp.int32(0), begin)
        )

    first = (jnp.int32(0), jnp.zeros((count, n), jnp.int32))
    return lax.while_loop(lambda c: c[0] * size < n, some, first)[1]


def _row_of_parents(in_indptr, in_indices, planes, seen, wanted, count, near):
    """A function (v, i, rows) -> rows with the parents of vertex v, plus 1, in row i."""
    lane = np.arange(count, dtype=np.uint32)
    # As many edges in one iteration as XLA compiles to native code.
    block, skips = (4, in_indices.shape[0] > LONG_ROWS * seen.shape[0]) if near else (2, False)
    # The words of a vertex are adjacent. Unreached vertices have the highest level.
    words = planes[:2] if near else planes | ~seen
    width = words.shape[0]
    words = words.T.reshape(-1)

    def nearer(u, above):
        same = [read(words, u * width + j) ^ word for j, word in enumerate(above)]
        return functools.reduce(jnp.bitwise_and, same)

    def row(v, i, rows):
        last, at = read(in_indptr, v + 1), (i * count).astype(jnp.uint32)
        above, borrow = [], ~np.uint32(0)
        for j in range(width):
            word = read(words, v * width + j)
            above.append(~(word ^ borrow))
            borrow = borrow & ~word

        def nothing(e, left):
            ahead = [nearer(read(in_indices, e + k), above) for k in range(block)]
            ahead = functools.reduce(jnp.bitwise_or, ahead)
            return (e + block <= last) & (left & ahead == 0)

        def edges(c):
            e, left, rows = c
            if skips:
                e, left = lax.while_loop(
                    lambda c: nothing(*c), lambda c: (c[0] + block, c[1]), (e, left)
                )
            row = lax.dynamic_slice(rows, (at,), (count,), allow_negative_indices=False)
            for k in range(block):
                u = read(in_indices, e + k)
                here = jnp.where(e + k < last, left & nearer(u, above), np.uint32(0))
                left = left & ~here
                bit = ((here >> lane) & np.uint32(1)).astype(jnp.int32)
                row = row | ((u + 1) & -bit)
            rows = lax.dynamic_update_slice(rows, row, (at,), allow_negative_indices=False)
            return e + block, left, rows

        first = (read(in_indptr, v), read(wanted, v), rows)
        return lax.while_loop(lambda c: (c[0] < last) & (c[1] != 0), edges, first)[2]

    return row
