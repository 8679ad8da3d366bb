"""The kernel for BFS from 32 sources, interpreted, lowered, native: every source against SciPy."""

import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from pallas_kernels.bfs.multi_source import bfs_sources
from pallas_kernels.layouts.adjacency import Adjacency
from pallas_kernels.simt.device import Grid
from tests.kernels.bfs.test_bfs_kernel import GRAPHS, NATIVE, check, random_graph
from tests.kernels.test_lowering import lower, ring
from tests.kernels.warps_apart import gridded

bfs_sources = gridded(bfs_sources)

module = importlib.import_module("pallas_kernels.bfs.multi_source")
SMALL = Grid(2, 64, interpret=True)


def verify(graph, sources, out):
    levels, parents, status = out
    for k, source in enumerate(np.asarray(sources).tolist()):
        tree = None if parents is None else parents[k]
        depth = int(np.asarray(levels[k]).max()) + 1
        check(*graph, source, levels[k], tree, depth, status)


def some_sources(graph, count, seed=0):
    n = len(graph[0]) - 1
    chosen = np.random.default_rng(seed).integers(0, n, count)
    return np.concatenate([chosen[:-2], [-1, n]]) if count > 3 else chosen


@pytest.mark.parametrize("ctas", [1, 3])
@pytest.mark.parametrize("name", GRAPHS)
def test_every_graph(name, ctas):
    graph = GRAPHS[name]
    sources = some_sources(graph, 32)
    f = jax.jit(functools.partial(bfs_sources, grid=SMALL._replace(ctas=ctas)))
    verify(graph, sources, f(Adjacency(*map(jnp.asarray, graph)), jnp.asarray(sources, jnp.int32)))


@pytest.mark.parametrize("alpha", [0.0, 1e9])
def test_push_alone_and_pull_alone_with_long_rows(monkeypatch, alpha):
    monkeypatch.setattr(module, "LONG", 8)
    monkeypatch.setattr(module, "SPAN", 4)
    graph = random_graph(90, 1500, 4)
    sources = some_sources(graph, 32)
    f = jax.jit(functools.partial(bfs_sources, alpha=alpha, grid=SMALL))
    verify(graph, sources, f(Adjacency(*map(jnp.asarray, graph)), jnp.asarray(sources, jnp.int32)))


@pytest.mark.parametrize("count", [1, 5])
def test_directed_with_and_without_in_edges(count):
    graph = random_graph(200, 900, 5, symmetric=False)
    back = random_graph(200, 900, 5, symmetric=False)
    n = 200
    rows = np.repeat(np.arange(n), np.diff(back[0]))
    order = np.argsort(back[1], kind="stable")
    in_indptr = np.concatenate([[0], np.cumsum(np.bincount(back[1], minlength=n))])
    inn = jnp.asarray(in_indptr, jnp.int32), jnp.asarray(rows[order], jnp.int32)
    sources = some_sources(graph, count)
    arrays, starts = Adjacency(*map(jnp.asarray, graph)), jnp.asarray(sources, jnp.int32)
    options = {"symmetric": False, "grid": SMALL}
    verify(graph, sources, bfs_sources(arrays, starts, **options))
    out = bfs_sources(Adjacency(*arrays[:2], *inn), starts, parents=False, **options)
    verify(graph, sources, out)


def test_more_sources_than_bits_are_refused():
    with pytest.raises(ValueError, match="sources has 33 entries"):
        bfs_sources(Adjacency(*map(jnp.asarray, ring(8))), jnp.zeros(33, jnp.int32))


@pytest.mark.parametrize("parents", [False, True])
def test_one_launch(parents):
    search = functools.partial(bfs_sources, parents=parents)
    text = lower(search, Adjacency(*map(jnp.asarray, ring(256))), jnp.arange(32, dtype=jnp.int32))
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("name", NATIVE)
def test_native(name):
    graph = NATIVE[name]
    f = jax.jit(bfs_sources)
    for seed in range(5):
        sources = some_sources(graph, 32, seed)
        verify(
            graph, sources, f(Adjacency(*map(jnp.asarray, graph)), jnp.asarray(sources, jnp.int32))
        )


@pytest.mark.gpu
@pytest.mark.parametrize("alpha", [0.0, 1.5, 1e9])
@pytest.mark.parametrize("edges", [60_000, 300_000])
def test_native_large(edges, alpha):
    graph = random_graph(30_000, edges, 1)
    f = jax.jit(functools.partial(bfs_sources, alpha=alpha))
    sources = np.random.default_rng(0).integers(0, 30_000, 32)
    A = sp.csr_array((np.ones(len(graph[1])), graph[1], graph[0]), shape=(30_000, 30_000))
    want = sp.csgraph.dijkstra(A, unweighted=True, indices=sources)
    want = np.where(np.isinf(want), -1, want).astype(np.int32)
    tails = np.repeat(np.arange(30_000), np.diff(graph[0]))
    edge_keys = np.unique(tails * np.int64(30_000) + graph[1])
    for _ in range(3):
        levels, parents, status = f(
            Adjacency(*map(jnp.asarray, graph)), jnp.asarray(sources, jnp.int32)
        )
        np.testing.assert_array_equal(levels, want)
        assert status == 0
        for k, tree in enumerate(np.asarray(parents)):
            assert ((tree >= 0) == (want[k] >= 0)).all() and tree[sources[k]] == sources[k]
            child = np.flatnonzero(want[k] > 0)
            assert np.isin(tree[child] * np.int64(30_000) + child, edge_keys).all()
            assert (want[k][tree[child]] == want[k][child] - 1).all()
