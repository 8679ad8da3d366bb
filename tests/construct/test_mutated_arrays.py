"""NumPy arrays that are written again while the device is still busy with earlier work."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

N, EDGES = 40, 4096
ROW, COL = np.random.default_rng(0).integers(0, N, (2, EDGES))
VALUES = np.arange(EDGES, 0, -1).astype(np.float32)
BUSY, OPERAND = jax.jit(lambda x: x @ x @ x @ x), jnp.ones((500, 500))


def aligned(array):
    """A copy that XLA may share the memory of."""
    memory = np.zeros(array.nbytes + 64, np.uint8)
    first = -memory.ctypes.data % 64
    copy = memory[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def overwritten(call, array):
    """`call(array)`, where the array is overwritten before the device gets to it."""
    jax.block_until_ready((call(array), BUSY(OPERAND)))  # compiled
    given, waiting = aligned(array), [BUSY(OPERAND) for _ in range(6)]
    found = call(given)
    given[:] = 7
    jax.block_until_ready(waiting)
    return found


def test_values_of_edges():
    least = np.full((N, N), np.inf)
    np.minimum.at(least, (ROW, COL), VALUES)
    make = functools.partial(jsp.from_edges, ROW, COL, shape=(N, N), dup=jsp.monoids.min_)
    np.testing.assert_array_equal(overwritten(make, VALUES).todense(np.inf), least)


def test_slots_of_edges():
    A, values = jsp.from_edges(np.arange(EDGES), np.arange(EDGES)), jnp.asarray(VALUES)
    slots = np.arange(EDGES, dtype=np.int32)[::-1]
    B = overwritten(lambda slots: A.with_edge_data(slots, values), slots)
    np.testing.assert_array_equal(B.data, VALUES[::-1])


def test_starts_of_walks_and_nodes_of_samples():
    ring = jsp.from_edges(np.arange(EDGES), (np.arange(EDGES) + 1) % EDGES)
    key, nodes = jax.random.key(0), np.arange(EDGES, dtype=np.int32)
    walks = overwritten(lambda nodes: jsp.learning.random_walk(key, ring, nodes, 1), nodes)
    np.testing.assert_array_equal(walks, np.stack([nodes, (nodes + 1) % EDGES], 1))
    found = overwritten(lambda nodes: jsp.learning.sample_neighbors(key, ring, nodes, 1), nodes)
    np.testing.assert_array_equal(found.nodes[0][:, 0], (nodes + 1) % EDGES)
