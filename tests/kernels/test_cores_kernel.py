"""The core kernel, interpreted, against peeling in NumPy: chains, dense parts, loops, long rows."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from pallas_kernels import cores as module
from pallas_kernels.cores import cores
from pallas_kernels.rows import worklist
from pallas_kernels.simt.device import Grid
from pallas_kernels.tuning import Constants, using
from tests.kernels.bfs.test_bfs_kernel import GRAPHS, NATIVE, random_graph
from tests.kernels.test_lowering import lower, ring
from tests.kernels.warps_apart import gridded

cores = gridded(cores)


def expected(indptr, indices):
    """Core numbers: vertices of degree <= k go, for k = 0, 1, ..., while there are any."""
    n = len(indptr) - 1
    rows = np.repeat(np.arange(n), np.diff(indptr))
    to, of = rows[rows != indices], indices[rows != indices]
    a = sp.csr_array((np.ones(len(to), np.int32), (to, of)), shape=(n, n))
    degree, want, left, k = a.sum(axis=1).astype(int), np.zeros(n, int), np.ones(n, bool), 0
    while left.any():
        gone = left & (degree <= k)
        k += not gone.any()
        want[gone], left[gone] = k, False
        degree = degree - a.T @ gone.astype(int)
    return want


def check(graph, out):
    found, largest, status = out
    assert status == 0
    right = expected(*graph)
    np.testing.assert_array_equal(found, right)
    assert largest == right.max()


def run(graph, ctas=2, threads=64):
    f = functools.partial(cores, grid=Grid(ctas, threads, True))
    check(graph, jax.jit(f)(*map(jnp.asarray, graph)))


def of(rows, cols, n):
    """The symmetric pattern of these edges as a CSR."""
    a = sp.coo_array((np.ones(len(rows), bool), (rows, cols)), shape=(n, n)).tocsr()
    a = sp.csr_array(a + a.T)
    return a.indptr.astype(np.int32), a.indices.astype(np.int32)


@pytest.mark.parametrize("ctas", [1, 3])
@pytest.mark.parametrize("name", GRAPHS)
def test_cores(name, ctas):
    indptr, indices = GRAPHS[name]
    n = len(indptr) - 1
    rows = np.repeat(np.arange(n), np.diff(indptr))
    run(of(rows, indices, n), ctas)


def test_a_chain_falls_within_one_level():
    """A path with its vertices out of order: each falls after its neighbour."""
    order = np.random.default_rng(0).permutation(300)
    run(of(order[:-1], order[1:], 300))


def test_self_loops_do_not_count():
    rng = np.random.default_rng(1)
    run(of(*rng.integers(0, 40, (2, 200)), 40))


@pytest.mark.parametrize("stack, solo", [(1, 0), (4, 20), (4, 300)])
@pytest.mark.parametrize("piece, capacity", [(3, 512), (16, 20)])
def test_rows_in_pieces_and_small_stacks(monkeypatch, stack, solo, piece, capacity):
    monkeypatch.setattr(worklist, "PIECE", piece)
    monkeypatch.setattr(worklist, "CAPACITY", capacity)
    monkeypatch.setattr(module, "STACK", stack)
    rows = np.concatenate([np.zeros(60, int), np.arange(1, 60)])
    cols = np.concatenate([np.arange(1, 61), np.arange(2, 61)])
    with using(Constants(solo_pieces=solo)):
        run(random_graph(90, 1500, 4))
        run(of(rows, cols, 61))  # a wheel


@pytest.mark.parametrize("solo", [0, 6, 300])
@pytest.mark.parametrize("left, edges", [(25, 10**6), (300, 10**6), (300, 250), (0, 10**6)])
def test_levels_by_one_cta(monkeypatch, left, edges, solo):
    """All levels, some or none, with pieces beyond what is kept in shared memory."""
    monkeypatch.setattr(worklist, "CAPACITY", 16)
    monkeypatch.setattr(worklist, "PIECE", 4)
    monkeypatch.setattr(module, "LEFT", left)
    monkeypatch.setattr(module, "EDGES", edges)
    with using(Constants(solo_pieces=solo)):
        run(random_graph(90, 1500, 4))
        run(cliques(12))


def cliques(largest):
    """Cliques of 3 to `largest` vertices, two of each size, joined by a path through all."""
    sizes = np.repeat(np.arange(3, largest + 1), 2)
    first = np.cumsum(sizes) - sizes
    rows, cols = np.concatenate(
        [np.triu_indices(s, 1) + f for s, f in zip(sizes, first, strict=True)], axis=1
    )
    return of(np.r_[rows, first[:-1]], np.r_[cols, first[1:]], sizes.sum())


def test_one_launch():
    text = lower(lambda a, b: cores(a, b), *map(jnp.asarray, ring(256)))
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("name", NATIVE)
def test_native(name):
    indptr, indices = NATIVE[name]
    n = len(indptr) - 1
    graph = of(np.repeat(np.arange(n), np.diff(indptr)), indices, n)
    for _ in range(20):
        check(graph, jax.jit(cores)(*map(jnp.asarray, graph)))
