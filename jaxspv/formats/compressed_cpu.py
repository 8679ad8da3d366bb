"""Matrices by row or by column for native loops on a CPU: conversions by counting sorts."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._core.native_loops import read, write
from .base import SparseMatrix
from .coo import COO
from .csr import CSC, CSR, compress

LARGEST = np.int32(np.iinfo(np.int32).max)


class Compressed(NamedTuple):
    """Entries by row or by column: (extent + 1,) offsets, (nse,) minor indices, (nse,) values."""

    indptr: Array
    indices: Array
    data: Array


def by_rows(A: SparseMatrix) -> Compressed:
    """The entries of A by row, in ascending order of column where A is sorted."""
    if isinstance(A, CSR):
        return Compressed(A.indptr, A.indices, A.data)
    if isinstance(A, CSC):
        return transpose(Compressed(A.indptr, A.indices, A.data), A.shape[0])
    coo = A if isinstance(A, COO) else A.to_coo()
    m, n = coo.shape
    if coo.sorted:
        return Compressed(compress(coo.row, m), coo.col, coo.data)
    # By column, then by row: stable, so rows end up sorted.
    whole = Compressed(jnp.stack([jnp.int32(0), coo.count]), coo.col, coo.data)
    if n == 0 or m == 0:
        return Compressed(jnp.zeros(m + 1, jnp.int32), coo.col, coo.data)
    columns = transpose(whole, n, major=coo.row)
    return transpose(columns, m)


def by_columns(A: SparseMatrix) -> Compressed:
    """The entries of A by column, in ascending order of row."""
    if isinstance(A, CSC):
        return Compressed(A.indptr, A.indices, A.data)
    return transpose(by_rows(A), A.shape[1])


def transpose(A: Compressed, minor: int, major: Array | None = None) -> Compressed:
    """The same entries compressed along the other axis, of extent `minor`, by a counting sort.

    `major`: the index of each slot along the first axis, where `A.indptr` does not tell it. Stable,
    O(nse + extents). Padding gets the extent of the first axis for an index.
    """
    extent, nse = A.indptr.shape[0] - 1, A.indices.shape[0]
    if nse == 0 or minor == 0:
        return Compressed(jnp.zeros(minor + 1, jnp.int32), A.indices, A.data)

    def count(c):
        e, ends = c
        j = read(A.indices, e) + 1
        return e + 1, write(ends, j, read(ends, j) + 1)

    start = (jnp.int32(0), jnp.zeros(minor + 1, jnp.int32))
    _, ends = lax.while_loop(lambda c: c[0] < A.indptr[-1], count, start)
    indptr = jnp.cumsum(ends, dtype=jnp.int32)

    def row(c):
        i, e, place, indices, data = c
        last = read(A.indptr, i + 1)

        def entry(c):
            e, place, indices, data = c
            j = read(A.indices, e)
            place = write(place, j, read(place, j) + 1)
            p = read(place, j) - 1
            owner = i if major is None else read(major, e)
            return e + 1, place, write(indices, p, owner), write(data, p, read(A.data, e))

        state = lax.while_loop(lambda c: c[0] < last, entry, (e, place, indices, data))
        return i + 1, *state

    fill = jnp.full(nse, extent if major is None else LARGEST, jnp.int32)
    state = (jnp.int32(0), A.indptr[0], indptr, fill, jnp.zeros_like(A.data))
    _, _, _, indices, data = lax.while_loop(lambda c: c[0] < extent, row, state)
    return Compressed(indptr, indices, data)
