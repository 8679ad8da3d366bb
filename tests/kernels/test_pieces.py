"""Rows in pieces that are dealt: every row once, whole, by sums that do not depend on the deal."""

import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels.rows.lanes import Lanes
from pallas_kernels.rows.merge_path import ByLength
from pallas_kernels.rows.pieces import RowsInPieces
from pallas_kernels.rows.stream import Stream
from pallas_kernels.simt.launch import launch

ROWS = {
    "short": [3, 0, 1, 4, 2, 0, 0, 7, 1, 1, 5, 2, 0, 3, 6, 1, 8, 0],
    "falling": [150, 90, 33, 20, 9, 9, 8, 8, 5, 4, 3, 2, 2, 1, 1, 1, *[0] * 40],
    "a hub": [2, 0, 1, 3, 900, 0, 1, 2],
    "hubs": [0, 0, 150, 3, 170, 0, 0, 90],
    "one row": [500],
    "empty rows": [0] * 40,
}
SHAPE = ByLength(((2, Lanes(2, 3, 1, True)), (20, Stream(2)), (0, Lanes(8, 2, 1))))


class _Sums(RowsInPieces):
    def terms(self, fetched, places, masks, owners):
        return self.k.where(masks, self.k.cast(fetched[0], "f32"), 0.0)

    def combine(self, a, b):
        return a + b


def summed(indptr, words, each, ctas, cost=1, shape=SHAPE):
    """(y of each row, how often it was taken, [entries, rows] as sums over rows) of two walks."""
    n, pieces = len(indptr) - 1, each * ctas

    def kernel(k, m):
        rows = _Sums(k, m, pieces, n, [m.words], shape, k.const(0.0, "f32"), cost)
        rows.find()
        k.spread(n, lambda r: k.store(m.taken, r, 0))
        k.grid_barrier(m.control)

        def row(r, y):
            k.store(m.y, r, y)
            k.reduce("add", m.taken, r, 1)
            return y, 1

        for _ in range(2):
            _, entries, count = rows.each_row(row, k.const(0.0, "f32"), k.const(0))
            k.grid_barrier(m.control)
        first = k.cta * k.threads + k.thread
        k.store(m.entries, first, entries)
        k.store(m.count, first, count)

    size = ctas * 64
    out = launch(
        kernel,
        {"indptr": jnp.asarray(indptr), "words": jnp.asarray(words)},
        {
            **{"y": (n, jnp.float32), "taken": n, "entries": (size, jnp.float32), "count": size},
            **RowsInPieces.workspace(n, pieces, 2, jnp.float32),
        },
        ctas=ctas,
        threads=64,
        shared_words=shape.shared_words(64),
        name="sums_of_rows",
        interpret=True,
    )
    return out["y"], out["taken"], [out["entries"].sum(), out["count"].sum()]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("each,ctas,cost", [(2, 3, 1), (7, 2, 4), (70, 2, 1)])
def test_every_row_once_and_whole(rows, each, ctas, cost):
    indptr = np.append(0, np.cumsum(ROWS[rows])).astype(np.int32)
    words = np.random.default_rng(0).integers(0, 9, indptr[-1] + 3).astype(np.int32)
    words[indptr[-1] :] = 1000
    y, taken, totals = summed(indptr, words, each, ctas, cost)
    want = np.add.reduceat(np.append(words[: indptr[-1]], 0), indptr[:-1])
    want[np.diff(indptr) == 0] = 0
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(taken, 2)
    np.testing.assert_array_equal(totals, [want.sum(), len(want)])
