"""The kernel of spanning forests, interpreted, against Kruskal: ties, paths, loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels.simt import interpret
from pallas_kernels.simt.device import Grid
from pallas_kernels.trees import forest as module
from pallas_kernels.trees.forest import spanning_forest
from tests.kernels import warps_apart
from tests.kernels.bfs.test_bfs_kernel import GRAPHS, NATIVE
from tests.kernels.test_independent_kernel import random_of, undirected
from tests.kernels.test_lowering import gpus, lower, ring
from tests.kernels.warps_apart import DEFAULT_GRID, gridded

spanning_forest = gridded(spanning_forest)

SMALL = Grid(2, 64, True)


def tails_of(indptr):
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def expected(indptr, indices, keys):
    """Kruskal's algorithm: by key, then by slot, an edge that joins two trees is taken."""
    tails, parent, taken = tails_of(indptr), list(range(len(indptr) - 1)), []

    def root(v):
        while parent[v] != v:
            parent[v] = v = parent[parent[v]]
        return v

    slots = np.flatnonzero(tails < indices)
    for slot in slots[np.lexsort((slots, keys[slots]))].tolist():
        ends = root(int(tails[slot])), root(int(indices[slot]))
        if ends[0] != ends[1]:
            parent[max(ends)] = min(ends)
            taken.append(slot)
    slots = np.full(len(indptr) - 2, len(indices))
    slots[: len(taken)] = sorted(taken)
    return slots


def keys_of(graph, most, seed):
    """Random keys, those of the lower triangle others than of the upper: they do not count."""
    return np.random.default_rng(seed).integers(-most, most, len(graph[1]), dtype=np.int32)


def check(graph, keys, grid=DEFAULT_GRID):
    operands = [jnp.asarray(a) for a in (*graph, keys)]
    f = jax.jit(lambda *operands: spanning_forest(*operands, grid=grid))
    slots, tails, status = f(*operands)
    assert status == 0
    want = expected(*graph, keys)
    np.testing.assert_array_equal(slots, want)
    np.testing.assert_array_equal(tails, np.append(tails_of(graph[0]), len(graph[0]) - 1)[want])


def check_all(graph, seed, grid=DEFAULT_GRID):
    for most in (1, 3, 2**31 - 1):  # all equal or nearly, many ties, none
        check(graph, keys_of(graph, most, seed), grid)
    signed = np.array([-np.inf, -1.5, -1e-40, -0.0, 0.0, 1e-40, 2.5, np.inf], np.float32)
    check(graph, np.random.default_rng(seed).choice(signed, len(graph[1])), grid)


@pytest.mark.parametrize("name", [name for name in GRAPHS if len(GRAPHS[name][0]) > 2])
def test_graphs(name):
    check_all(undirected(name), 0, SMALL)


@pytest.mark.parametrize("light", [0.01, 0.5, 4])
@pytest.mark.parametrize("edges", [40, 300, 3000])
def test_light_edges_first(monkeypatch, edges, light):
    """Of a share of the edges, of nearly none, of all; with loops and vertices without edges."""
    monkeypatch.setattr(module, "LIGHT", light)
    check_all(random_of(150, edges, edges), 1, SMALL)


@pytest.mark.parametrize("light", [0.1, 4])
def test_chains(monkeypatch, light):
    """Keys that ascend along a path, so that all its vertices hang below each other at once."""
    monkeypatch.setattr(module, "LIGHT", light)
    n = 400
    graph = undirected("path", {"path": (np.r_[np.arange(n), n - 1], np.arange(1, n))})
    up = np.minimum(tails_of(graph[0]), graph[1]).astype(np.int32)
    for keys in (up, -up, np.r_[np.int32(2**31 - 1), up[1:]]):
        check(graph, keys, SMALL)


@pytest.mark.parametrize("light", [4, 0.5])
def test_warps_that_run_apart_find_the_same(monkeypatch, light):
    monkeypatch.setattr(interpret, "run", warps_apart.run)
    monkeypatch.setattr(module, "LIGHT", light)
    graph = random_of(60, 200, 0)
    check(graph, keys_of(graph, 5, 0), Grid(2, 32, True))


@pytest.mark.parametrize("kind", ["A100-SXM4-80GB", "H100 80GB HBM3", "H200", "B200"])
def test_one_launch(kind):
    graph = [jnp.asarray(a) for a in ring(256)]
    text = lower(lambda *a: spanning_forest(*a), *graph, graph[1], mesh=gpus(1, kind))
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*NATIVE, "random", "dense"])
def test_native(name):
    made = {"random": (20000, 200000, 1), "dense": (1500, 400000, 2)}
    graph = random_of(*made[name]) if name in made else undirected(name, NATIVE)
    for seed in range(3):
        check_all(graph, seed)
