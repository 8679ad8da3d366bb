"""The kernel of strong components, interpreted, against SciPy: cycles, chains, long rows."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csgraph

from pallas_kernels.rows import worklist
from pallas_kernels.simt.device import Grid
from pallas_kernels.strong import strong
from pallas_kernels.tuning import Constants, using
from tests.kernels.bfs.test_bfs_kernel import GRAPHS, NATIVE, random_graph
from tests.kernels.test_lowering import lower, ring
from tests.kernels.warps_apart import gridded

strong = gridded(strong)


def both_ways(indptr, indices):
    """Out-edges, then in-edges, as rows of one matrix."""
    n = len(indptr) - 1
    a = sp.csr_array((np.ones(len(indices), np.int8), indices, indptr), shape=(n, n))
    back = a.T.tocsr()
    ends = np.concatenate([indptr, back.indptr + indptr[-1]])
    return ends.astype(np.int32), np.concatenate([indices, back.indices]).astype(np.int32)


def check(graph, out):
    """The partition of SciPy, each part named by its least vertex."""
    labels, status = map(np.asarray, out)
    indptr, indices = graph
    n = len(indptr) - 1
    assert status == 0
    a = sp.csr_array((np.ones(len(indices), np.int8), indices, indptr), shape=(n, n))
    _, part = csgraph.connected_components(a, connection="strong")
    _, least, number = np.unique(part, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(labels, least[number])


def run(graph, pivot=0, ctas=2, threads=64):
    f = functools.partial(strong, grid=Grid(ctas, threads, True))
    check(graph, jax.jit(f)(*map(jnp.asarray, both_ways(*graph)), jnp.int32(pivot)))


def directed(n, edges, seed, shuffled=True):
    """A random directed graph with sparse strong components of all sizes."""
    rng = np.random.default_rng(seed)
    tail, head = rng.integers(0, n, (2, edges))
    chain = np.arange(n - 1)
    tail, head = np.append(tail, chain[: n // 2]), np.append(head, chain[: n // 2] + 1)
    if shuffled:
        order = rng.permutation(n)
        tail, head = order[tail], order[head]
    a = sp.coo_array((np.ones(len(tail), np.int8), (tail, head)), shape=(n, n)).tocsr()
    return a.indptr.astype(np.int32), a.indices.astype(np.int32)


@pytest.mark.parametrize("name", ["one vertex", "no edges", "loops", "star with a tail", "random"])
def test_strong(name):
    run(GRAPHS[name], ctas=3)


@pytest.mark.parametrize("solo", [0, 5, 128])
@pytest.mark.parametrize("edges", [100, 300, 500])
def test_components_of_all_sizes(edges, solo):
    with using(Constants(solo_pieces=solo)):
        run(directed(300, edges, edges), pivot=7)


def test_a_long_cycle_and_a_long_path():
    order = np.random.default_rng(0).permutation(200)
    a = sp.coo_array((np.ones(200, np.int8), (order, np.roll(order, 1))), shape=(200, 200)).tocsr()
    graph = a.indptr.astype(np.int32), a.indices.astype(np.int32)
    run(graph, pivot=3)
    chain = np.arange(200, dtype=np.int32)
    run((np.append(chain, 199).astype(np.int32), chain[1:]), pivot=100)


@pytest.mark.parametrize(
    "piece, solo, capacity", [(1, 20, 32), (4, 300, 2048), (16, 0, 8), (2, 16, 16)]
)
def test_rows_in_pieces(monkeypatch, piece, solo, capacity):
    monkeypatch.setattr(worklist, "PIECE", piece)
    monkeypatch.setattr(worklist, "CAPACITY", capacity)
    monkeypatch.setattr(worklist, "TABLE", capacity // 2)
    with using(Constants(solo_pieces=solo)):
        run(random_graph(90, 1500, 4))
        run(directed(90, 260, 5))


def test_one_launch():
    graph = both_ways(*ring(256))
    text = lower(lambda a, b, p: strong(a, b, p), *map(jnp.asarray, graph), jnp.int32(0))
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
def test_native():
    graphs = [*NATIVE.values(), *(directed(20_000, e, e) for e in (9_000, 25_000, 60_000))]
    for graph in graphs:
        program = jax.jit(strong)
        arrays = tuple(map(jnp.asarray, both_ways(*graph)))
        for pivot in range(0, len(graph[0]) - 1, max((len(graph[0]) - 1) // 8, 1)):
            check(graph, program(*arrays, jnp.int32(pivot)))
