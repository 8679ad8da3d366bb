"""Where the rows with entries end, as a search over several GPUs finds it, interpreted."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels.bfs.mesh.places import LastRows
from pallas_kernels.simt.launch import launch

PLACES = 5024


def found(degrees, source, symmetric=True):
    c = types.SimpleNamespace(n=PLACES, symmetric=symmetric)

    def kernel(k, m):
        LastRows(k, c, m).find(k.load(m.source, 0), 40)
        k.sync()
        k.store(m.end, 0, k.load(m.control, 40, cache="fresh"), mask=k.thread == 0)

    indptr = jnp.asarray(np.append(0, np.cumsum(degrees)), jnp.int32)
    operands = {"indptr": indptr, "source": jnp.full(1, source, jnp.int32)}
    how = {"ctas": 1, "threads": 32, "shared_words": 64, "name": "ends", "interpret": True}
    return int(jax.jit(lambda x: launch(kernel, x, {"end": 1}, **how)["end"][0])(operands))


@pytest.mark.parametrize("rows", [0, 1, 31, 32, 33, 1000, 4992, 4993, PLACES])
def test_rows_of_falling_lengths_end_where_they_are_empty(rows):
    degrees = np.where(np.arange(PLACES) < rows, 9 - np.arange(PLACES) // 600, 0)
    assert found(degrees, -1) == -(-rows // 32) * 32


def test_no_row_with_entries_and_no_source_lies_beyond():
    gaps = np.arange(PLACES) % 7 == 3
    gaps[4000:] = False
    assert found(gaps, -1) == -(-(np.flatnonzero(gaps)[-1] + 1) // 32) * 32
    assert found(np.zeros(PLACES, int), 4500) == 4512
    assert found(np.arange(PLACES) < 64, -1, symmetric=False) == PLACES
