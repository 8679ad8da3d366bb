"""The kernel of rooted spanning trees, interpreted, against SciPy's components."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import csgraph

import jaxspv as jsp
from jaxspv import verify
from pallas_kernels.simt import interpret
from pallas_kernels.simt.device import Grid
from pallas_kernels.trees import clusters
from pallas_kernels.trees.rooted import spanning_tree
from tests.kernels import warps_apart
from tests.kernels.bfs.test_bfs_kernel import GRAPHS, NATIVE, csr, path, star_with_tail
from tests.kernels.test_independent_kernel import random_of, undirected
from tests.kernels.test_lowering import gpus, lower, ring
from tests.kernels.warps_apart import DEFAULT_GRID, gridded

spanning_tree = gridded(spanning_tree)

SMALL = Grid(2, 64, True)


def rmat():
    A = jsp.generators.rmat(jax.random.key(0), 7, 8).to_scipy()
    return A.indptr, A.indices


MORE = {
    "two": csr(2, [(0, 1)]),
    "two apart": csr(2, []),
    "long": path(500),
    "hub": star_with_tail(700),
    "random": random_of(150, 200, 0),  # with loops, some vertices without edges
    "rmat": rmat(),
}


def graph_of(name):
    return MORE[name] if name in MORE else undirected(name)


def check(graph, roots, grid=DEFAULT_GRID):
    """A tree from each root: parents are neighbours, lead to it, and reach its component."""
    operands = [jnp.asarray(a) for a in graph]
    n = len(graph[0]) - 1
    A = scipy.sparse.csr_array((np.ones(len(graph[1])), graph[1], graph[0]), shape=(n, n))
    labels = csgraph.connected_components(A)[1]
    f = jax.jit(lambda *operands: spanning_tree(*operands, grid=grid))
    for root in roots:
        parents, status, clusters = f(*operands, jnp.int32(root))
        assert status == 0
        assert parents[root] == root
        assert len(np.unique(labels)) <= clusters <= n
        verify.tree(A, root, parents, labels == labels[root])


@pytest.mark.parametrize("depth", [0, 64])
@pytest.mark.parametrize("name", [*GRAPHS, *MORE])
def test_trees(monkeypatch, name, depth):
    """All vertices are seeds, clusters are stars, or grow as usual."""
    monkeypatch.setattr(clusters, "DEPTH", depth)
    graph = graph_of(name)
    n = len(graph[0]) - 1
    check(graph, {0, n - 1}, SMALL)


@pytest.mark.parametrize("few", [1, 100])
@pytest.mark.parametrize("name", ["long", "hub", "random", "rmat"])
def test_small_queues(monkeypatch, name, few):
    """A warp's queue is full at times: what it has no room for is claimed later."""
    monkeypatch.setattr(clusters, "RING", 32 * clusters.UNROLL)
    monkeypatch.setattr(clusters, "FEW", few)
    check(graph_of(name), {3}, Grid(4, 32, True))


def test_no_root():
    indptr, indices = map(jnp.asarray, MORE["random"])
    parents, status, _ = spanning_tree(indptr, indices, jnp.int32(150), grid=SMALL)
    assert status == 0
    assert (parents == -1).all()


@pytest.mark.parametrize("name", ["random", "rmat", "long"])
def test_warps_that_run_apart_find_a_tree(monkeypatch, name):
    monkeypatch.setattr(interpret, "run", warps_apart.run)
    check(graph_of(name), {0}, Grid(2, 64, True))


@pytest.mark.parametrize("kind", ["A100-SXM4-80GB", "H100 80GB HBM3", "H200", "B200"])
def test_one_launch(kind):
    graph = [jnp.asarray(a) for a in ring(256)]
    text = lower(lambda *a: spanning_tree(*a), *graph, jnp.int32(0), mesh=gpus(1, kind))
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*NATIVE, *MORE, "large", "larger hub"])
def test_native(name):
    made = {"large": random_of(20000, 30000, 1), "larger hub": star_with_tail(100_000)}
    graph = undirected(name, NATIVE) if name in NATIVE else (MORE | made)[name]
    check(graph, {0, len(graph[0]) // 2})
