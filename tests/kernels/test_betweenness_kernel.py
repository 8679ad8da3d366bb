"""The betweenness kernel, interpreted, against NetworkX: chains, hubs, parts, many paths."""

import functools
import itertools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from pallas_kernels import betweenness as module
from pallas_kernels.betweenness import betweenness
from pallas_kernels.simt.device import Grid
from tests.kernels.test_lowering import lower, ring
from tests.kernels.warps_apart import gridded

betweenness = gridded(betweenness)


def rows_of(g):
    """(indptr, indices) of the out-edges, then of the in-edges."""
    A = nx.to_scipy_sparse_array(g, weight=None, format="csr")
    return [x.astype(np.int32) for M in (A, A.T.tocsr()) for x in (M.indptr, M.indices)]


def expected(g, sources, endpoints):
    """What passes each vertex: over the shortest paths of NetworkX, counted pair by pair."""
    passed = np.zeros(len(g))
    for s in sources:
        for t in nx.single_source_shortest_path_length(g, s):
            paths = [] if s == t else list(nx.all_shortest_paths(g, s, t))
            for path in paths:
                inner = path if endpoints else path[1:-1]
                passed[inner] += 1 / len(paths)
    return passed


def run(g, sources, endpoints=False, ctas=2, threads=64):
    grid = Grid(ctas, threads, interpret=True)
    f = jax.jit(functools.partial(betweenness, endpoints=endpoints, grid=grid))
    passed, infinite = f(*map(jnp.asarray, rows_of(g)), jnp.asarray(sources, jnp.int32))
    inside = [s for s in sources if s < len(g)]
    np.testing.assert_allclose(passed, expected(g, inside, endpoints), rtol=1e-5, atol=1e-5)
    assert not bool(infinite)


GRAPHS = {
    "one vertex": nx.empty_graph(1),
    "no edges": nx.empty_graph(40),
    "path": nx.path_graph(70),
    "star": nx.star_graph(100),
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 6)),
    "parts": nx.gnp_random_graph(60, 0.03, seed=1),
    "directed": nx.gnp_random_graph(60, 0.04, seed=2, directed=True),
    "loops": nx.Graph([(0, 0), (0, 1), (1, 2), (2, 2), (2, 3), (3, 0)]),
}


@pytest.mark.parametrize("endpoints", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_betweenness(name, endpoints):
    g = GRAPHS[name]
    run(g, sorted({0, len(g) // 3, len(g) - 1}), endpoints, ctas=3)


@pytest.mark.parametrize("words", [1, 2**28])
def test_more_sources_than_blocks(monkeypatch, words):
    """Some of them no vertices."""
    monkeypatch.setattr(module, "MOST_WORDS", words)
    run(GRAPHS["parts"], [5, 99, 60, 0, 7, 8, 31])


def test_long_rows(monkeypatch):
    monkeypatch.setattr(module, "LONG", 3)
    for name in ("star", "grid", "directed"):
        run(GRAPHS[name], [0, 4, 11])


def test_more_paths_than_float32_holds():
    """Layers of eight vertices, all joined to the next: 8^43 paths exceed 2^128."""
    layers = np.arange(8 * 46).reshape(46, 8)
    g = nx.empty_graph(layers.size)
    g.add_edges_from((a, b) for one, two in itertools.pairwise(layers) for a in one for b in two)
    arrays = *map(jnp.asarray, rows_of(g)), jnp.zeros(1, jnp.int32)
    assert bool(betweenness(*arrays, grid=Grid(threads=64, interpret=True))[1])


def test_one_launch():
    graph = [*map(jnp.asarray, ring(256))] * 2
    text = lower(lambda *given: betweenness(*given), *graph, jnp.arange(9, dtype=jnp.int32))
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
def test_native():
    for name in GRAPHS:
        g = GRAPHS[name]
        f, sources = jax.jit(betweenness), np.arange(len(g), dtype=np.int32)
        arrays = *map(jnp.asarray, rows_of(g)), jnp.asarray(sources)
        first = f(*arrays)[0]
        np.testing.assert_allclose(first, expected(g, sources, False), rtol=1e-4, atol=1e-4)
        for _ in range(10):
            np.testing.assert_array_equal(f(*arrays)[0], first)
