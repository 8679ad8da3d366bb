"""The kernels of independent sets and colours, interpreted, against one vertex after the other."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels.independent import in_order, waiting_colors
from pallas_kernels.independent.in_order import coloring
from pallas_kernels.independent.waiting import independent_set
from pallas_kernels.simt import interpret
from pallas_kernels.simt.device import Grid
from tests.kernels import warps_apart
from tests.kernels.bfs.test_bfs_kernel import GRAPHS, NATIVE
from tests.kernels.test_cores_kernel import of
from tests.kernels.test_lowering import lower, ring
from tests.kernels.warps_apart import gridded

coloring, independent_set = map(gridded, (coloring, independent_set))


def undirected(name, graphs=GRAPHS):
    indptr, indices = graphs[name]
    n = len(indptr) - 1
    return of(np.repeat(np.arange(n), np.diff(indptr)), indices, n)


def random_of(n, edges, seed):
    """With self loops and vertices without edges."""
    return of(*np.random.default_rng(seed).integers(0, n - 3, (2, edges)), n)


def expected_set(indptr, indices, priority):
    n = len(indptr) - 1
    near = np.zeros(n, bool)
    members = np.zeros(n, bool)
    for v in np.lexsort((np.arange(n), -priority.astype(np.int64))):
        if not near[v]:
            near[indices[indptr[v] : indptr[v + 1]]] = True
            members[v] = True
    return members


def expected_colors(indptr, indices, order):
    colors = np.full(len(indptr) - 1, -1)
    for v in order:
        seen = colors[indices[indptr[v] : indptr[v + 1]]]
        colors[v] = next(c for c in range(len(seen) + 1) if c not in seen)
    return colors


def check_set(graph, seed, **how):
    n = len(graph[0]) - 1
    rng = np.random.default_rng(seed)
    for most in (4, 2**31 - 1):  # with ties, and without
        priority = rng.integers(0, most, n).astype(np.int32)
        f = jax.jit(functools.partial(independent_set, **how))
        members, status = f(*map(jnp.asarray, graph), jnp.asarray(priority))
        assert status == 0
        np.testing.assert_array_equal(members, expected_set(*graph, priority))


def check_colors(graph, seed, **how):
    orders = {
        "any": np.random.default_rng(seed).permutation(len(graph[0]) - 1),
        "by degree": np.argsort(-np.diff(graph[0]), kind="stable"),
    }
    for order in orders.values():
        order = order.astype(np.int32)
        f = jax.jit(lambda *graph: coloring(*graph, **how))
        colors, status = f(*map(jnp.asarray, graph), jnp.asarray(order))
        assert status == 0
        np.testing.assert_array_equal(colors, expected_colors(*graph, order))


def check_waiting(graph, seed, **how):
    n = len(graph[0]) - 1
    rng = np.random.default_rng(seed)
    for most in (4, 2**31 - 1):
        priority = rng.integers(0, most, n).astype(np.int32)
        order = np.lexsort((np.arange(n), -priority.astype(np.int64)))
        f = jax.jit(functools.partial(gridded(waiting_colors.coloring), **how))
        colors, status, count = f(*map(jnp.asarray, graph), jnp.asarray(priority))
        assert status == 0 and count == max(colors) + 1
        np.testing.assert_array_equal(colors, expected_colors(*graph, order))


CHECKS = {"set": check_set, "colors in order": check_colors, "colors": check_waiting}
KERNELS = [independent_set, coloring, gridded(waiting_colors.coloring)]
SMALL = {"grid": Grid(ctas=2, threads=64, interpret=True)}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs(name, check):
    CHECKS[check](undirected(name), 0, **SMALL)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("edges", [40, 300, 3000])
def test_loops_dense_parts_and_lonely_vertices(edges, check):
    CHECKS[check](random_of(150, edges, edges), 1, **SMALL)


@pytest.mark.parametrize(
    "narrow, long, piece, window", [(4, 16, 8, 1024), (0, 9, 5, 32), (0, 10**6, 256, 32)]
)
def test_colours_of_rows_by_lanes_warps_and_pieces(monkeypatch, narrow, long, piece, window):
    for name, value in {"NARROW": narrow, "LONG": long, "PIECE": piece, "WINDOW": window}.items():
        monkeypatch.setattr(in_order, name, value)
    check_colors(random_of(150, 300, 1), 2, **SMALL)
    complete = np.triu_indices(70, 1)  # more colours than a window of 32 tells apart, twice
    for check in (check_colors, check_waiting):
        check(of(*complete, 70), 3, **SMALL)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("seed", range(3))
def test_warps_that_run_apart_find_the_same(monkeypatch, seed, check):
    monkeypatch.setattr(interpret, "run", warps_apart.run)
    monkeypatch.setattr(in_order, "NARROW", 3)
    monkeypatch.setattr(in_order, "LONG", 40)
    CHECKS[check](random_of(200, 1200, seed), seed, **SMALL)


def test_a_vertex_that_is_not_in_the_order_has_no_colour():
    graph = random_of(60, 200, 5)
    order = np.random.default_rng(0).permutation(60)[:50].astype(np.int32)
    filled = np.r_[order, np.full(10, 60, np.int32)]
    found, status = jax.jit(functools.partial(coloring, **SMALL))(
        *map(jnp.asarray, (*graph, filled))
    )
    assert status == 0
    np.testing.assert_array_equal(found, expected_colors(*graph, order))


@pytest.mark.parametrize("kernel", KERNELS)
def test_who_waits_too_long_gives_up(kernel):
    n = 600  # a path: the lanes of a warp take neighbours, who wait for each other
    path = of(np.arange(n - 1), np.arange(1, n), n)
    places = jnp.arange(n, dtype=jnp.int32)
    for limit, want in ((2, 1), (10**6, 0)):
        f = functools.partial(kernel, limit=limit, **SMALL)
        assert jax.jit(f)(*map(jnp.asarray, path), places)[1] == want


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_launch(kernel):
    vertices = jnp.arange(256, dtype=jnp.int32)
    text = lower(lambda *a: kernel(*a), *map(jnp.asarray, ring(256)), vertices)
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", [*NATIVE, "random", "dense"])
def test_native(name, check):
    made = {"random": (20000, 200000, 1), "dense": (1500, 400000, 2)}
    graph = random_of(*made[name]) if name in made else undirected(name, NATIVE)
    for seed in range(5):
        CHECKS[check](graph, seed)
