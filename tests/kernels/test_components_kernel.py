"""The components kernel, interpreted, against SciPy: every vertex, directed and symmetric."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from pallas_kernels.components import one_gpu as module
from pallas_kernels.components.one_gpu import components
from pallas_kernels.simt.device import Grid
from tests.kernels.bfs.test_bfs_kernel import GRAPHS, NATIVE, random_graph
from tests.kernels.test_lowering import lower, ring
from tests.kernels.warps_apart import gridded

components = gridded(components)

SMALL = Grid(2, 64, True)


def expected(indptr, indices):
    """The least vertex of each weak component."""
    n = len(indptr) - 1
    a = sp.csr_array((np.ones(len(indices), np.int8), indices, indptr), shape=(n, n))
    count, which = sp.csgraph.connected_components(a, connection="weak")
    least = np.full(count, n)
    np.minimum.at(least, which, np.arange(n))
    return least[which]


def check(graph, out):
    labels, status, count = out
    assert status == 0
    right = expected(*graph)
    np.testing.assert_array_equal(labels, right)
    assert count == len(np.unique(right))


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("ctas", [1, 3])
@pytest.mark.parametrize("name", GRAPHS)
def test_components(name, ctas, thin):
    f = jax.jit(functools.partial(components, thin=thin, grid=Grid(ctas, 64, True)))
    check(GRAPHS[name], f(*map(jnp.asarray, GRAPHS[name])))


def test_rows_that_are_out_of_order():
    graph = random_graph(500, 600, 2)
    degree = np.diff(graph[0])
    rows = np.repeat(np.arange(500), degree)
    order = np.lexsort((np.random.default_rng(0).random(len(rows)), rows))
    shuffled = graph[0], graph[1][order]
    check(graph, components(*map(jnp.asarray, shuffled), grid=SMALL))


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("edges", [100, 250, 2000])
def test_directed(edges, thin):
    graph = random_graph(300, edges, edges, symmetric=False)
    options = {"symmetric": False, "grid": SMALL, "thin": thin}
    check(graph, components(*map(jnp.asarray, graph), **options))


@pytest.mark.parametrize("capacity", [64, 1])
def test_long_rows(monkeypatch, capacity):
    monkeypatch.setattr(module, "LONG", 8)
    monkeypatch.setattr(module, "LISTED", capacity)
    for symmetric in (True, False):
        graph = random_graph(90, 1500, 4, symmetric=symmetric)
        options = {"symmetric": symmetric, "grid": SMALL}
        check(graph, components(*map(jnp.asarray, graph), **options))


def test_one_launch():
    text = lower(lambda a, b: components(a, b), *map(jnp.asarray, ring(256)))
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("name", NATIVE)
def test_native(name, thin):
    f = jax.jit(functools.partial(components, thin=thin))
    for _ in range(20):
        check(NATIVE[name], f(*map(jnp.asarray, NATIVE[name])))


@pytest.mark.gpu
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("edges", [2000, 60000, 10**6])
def test_native_large(edges, symmetric):
    graph = random_graph(100_000, edges, 1, symmetric=symmetric)
    f = jax.jit(functools.partial(components, symmetric=symmetric))
    for _ in range(5):
        check(graph, f(*map(jnp.asarray, graph)))
