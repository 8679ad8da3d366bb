"""The kernel of Louvain's moves, interpreted, against the same turns one vertex after the other."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels.communities import looking, louvain
from pallas_kernels.communities.louvain import moves
from pallas_kernels.simt.device import Grid
from tests.kernels.bfs.test_bfs_kernel import GRAPHS, NATIVE
from tests.kernels.test_independent_kernel import random_of, undirected
from tests.kernels.test_lowering import gpus, lower, ring
from tests.kernels.warps_apart import DEFAULT_GRID, gridded

moves = gridded(moves)

SMALL = Grid(ctas=2, threads=64, interpret=True)
M32 = 2**32 - 1


def drawn(v, turn):
    x = (v * 0x9E3779B1 + turn * 0x85EBCA6B) & M32
    x = ((x ^ x >> 15) * 0x2C1B3C6D) & M32
    return ((x ^ x >> 13) >> 7) % looking.PARTS == 0


def expected(indptr, indices, weights, strength, factor):
    """Turns until few vertices move; sums in float32 where the kernel has them."""
    n = len(strength)
    group, due, moved = np.arange(n), np.diff(indptr) > 0, 0
    few = due.sum() // louvain.ENOUGH
    for turn in range(louvain.TURNS):
        sums, size = np.zeros(n, np.int64), np.bincount(group, minlength=n)
        np.add.at(sums, group, strength)
        found = []
        for v in range(n):
            row = slice(indptr[v], indptr[v + 1])
            own = group[v]
            if not due[v] or not drawn(v, turn):
                continue
            due[v] = False
            beside = {}
            for head, w in zip(indices[row], weights[row], strict=True):
                to = int(group[head])
                if head != v:
                    beside[to] = beside.get(to, 0) + int(w)
            pull = factor * np.float32(strength[v])
            stay = np.float32(beside.pop(int(own), 0))
            stay -= pull * np.float32(sums[own] - strength[v])
            values = {c: np.float32(w) - pull * np.float32(sums[c]) for c, w in beside.items()}
            if not values:
                continue
            best = min(values, key=lambda c: (-values[c], c))
            lone = size[own] == size[best] == 1 and best > own
            if values[best] > stay and not lone:
                found.append((v, best))
        for v, to in found:
            group[v] = to
            due[indices[indptr[v] : indptr[v + 1]]] = True
        moved += len(found)
        if (turn + 1) % louvain.patience(n) == 0:
            if moved <= few:
                break
            moved = 0
    return group


def check(graph, seed, grid=DEFAULT_GRID, most=5):
    """With weights of powers of two, so that float32 is exact whatever is fused."""
    indptr, indices = graph
    tails = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    low, high = np.minimum(tails, indices), np.maximum(tails, indices)
    weights = ((low * 7919 + high * 104729 + seed) % most + 1).astype(np.int32)
    strength = np.bincount(tails, weights, len(indptr) - 1).astype(np.int32)
    factor = np.float32(2.0 ** -np.ceil(np.log2(strength.sum() + 1)))
    operands = [jnp.asarray(a) for a in (indptr, indices, weights, strength)]
    f = jax.jit(functools.partial(moves, grid=grid))
    group, status = f(*operands, jnp.asarray(factor))
    assert status == 0
    np.testing.assert_array_equal(group, expected(indptr, indices, weights, strength, factor))


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs(monkeypatch, name):
    monkeypatch.setattr(louvain, "TURNS", 24)
    check(undirected(name), 0, SMALL)


@pytest.mark.parametrize("row, slots", [(32, 64), (8, 32), (40, 64)])
def test_tables_of_warps_and_of_ctas(monkeypatch, row, slots):
    """Rows by tables of warps, by CTAs, and those whose communities are looked at in shares."""
    monkeypatch.setattr(louvain, "TURNS", 16)
    for file in (louvain, looking):
        monkeypatch.setattr(file, "ROW", row)
        monkeypatch.setattr(file, "SLOTS", slots)
    check(random_of(150, 3000, 1), 1, SMALL)


@pytest.mark.parametrize("edges", [40, 300])
def test_loops_and_lonely_vertices(monkeypatch, edges):
    monkeypatch.setattr(louvain, "TURNS", 24)
    check(random_of(150, edges, edges), 1, SMALL)


@pytest.mark.parametrize("n", [3, 5, 7, 32])
def test_a_complete_graph_is_one_community(n):
    """By hand: any move into the largest community gains. No vertex is left where it began because
    the first turns did not draw it."""
    heads = [v for u in range(n) for v in range(n) if u != v]
    operands = np.arange(n + 1) * (n - 1), heads, np.ones(len(heads)), np.full(n, n - 1)
    operands = [jnp.asarray(a, jnp.int32) for a in operands]
    group, status = moves(*operands, jnp.float32(1 / len(heads)), grid=SMALL)
    assert status == 0
    assert len(np.unique(group)) == 1


@pytest.mark.parametrize("kind", ["A100-SXM4-80GB", "H100 80GB HBM3", "H200", "B200"])
def test_one_launch(kind):
    graph = [jnp.asarray(a) for a in ring(256)]
    degrees = jnp.full(256, 2, jnp.int32)
    operands = *graph, graph[1], degrees, jnp.float32(0.5)
    text = lower(lambda *a: moves(*a), *operands, mesh=gpus(1, kind))
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*NATIVE, "random", "dense"])
def test_native(name):
    made = {"random": (20000, 200000, 1), "dense": (1500, 400000, 2)}
    graph = random_of(*made[name]) if name in made else undirected(name, NATIVE)
    for seed in range(2):
        check(graph, seed)
