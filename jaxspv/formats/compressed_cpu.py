"""Matrices by row or by column for native loops on a CPU: conversions by counting sorts."""

from __future__ import annotations

from typing import Any, NamedTuple

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
    data: Any


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
    O(nse + extents). Padding gets the extent of the first axis for an index. `A.data` may be None.
    """
    extent, nse = A.indptr.shape[0] - 1, A.indices.shape[0]
    if nse == 0 or minor == 0:
        return Compressed(jnp.zeros(minor + 1, jnp.int32), A.indices, A.data)
    values = () if A.data is None else (A.data,)

    def count(c):
        e, ends = c
        j = read(A.indices, e) + 2
        return e + 1, write(ends, j, read(ends, j) + 1)

    start = (A.indptr[0], jnp.zeros(minor + 2, jnp.int32))
    _, ends = lax.while_loop(lambda c: c[0] < A.indptr[-1], count, start)

    def row(c):
        i, e, *state = c
        last = read(A.indptr, i + 1)

        def entry(c):
            e, place, *arrays = c
            new = (i if major is None else read(major, e), *(read(v, e) for v in values))

            def put(c):  # one turn, so that the place is read once
                _, j, at, place, *arrays = c
                arrays = (write(a, at, v) for a, v in zip(arrays, new, strict=True))
                return jnp.bool_(False), j, at, write(place, j, at + 1), *arrays

            j = read(A.indices, e) + 1
            first = (jnp.bool_(True), j, read(place, j), place, *arrays)
            return e + 1, *lax.while_loop(lambda c: c[0], put, first)[3:]

        return i + 1, *lax.while_loop(lambda c: c[0] < last, entry, (e, *state))

    fill = jnp.full(nse, extent if major is None else LARGEST, jnp.int32)
    place = jnp.cumsum(ends, dtype=jnp.int32)
    state = (jnp.int32(0), A.indptr[0], place, fill, *map(jnp.zeros_like, values))
    _, _, place, indices, *data = lax.while_loop(lambda c: c[0] < extent, row, state)
    return Compressed(place[: minor + 1], indices, data[0] if values else A.data)
