"""Rows by class of weight: the layout against its definition, searches against Dijkstra."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels.layouts.lengths import CLASSES, by_weight, prepare_sssp, revalue
from pallas_kernels.simt import interpret
from pallas_kernels.sssp.api import sssp
from pallas_kernels.sssp.problem import Config, Rule
from tests.kernels import warps_apart
from tests.kernels.bfs.test_bfs_kernel import random_graph
from tests.kernels.sssp.test_sssp_kernel import (
    GRAPHS,
    MAX,
    SMALL,
    check,
    infinity,
    search,
    symmetric_weights,
)
from tests.kernels.test_lowering import lower

N = 60
DENSE = random_graph(N, 700, 7)
MODES = {
    "as chosen": {},
    "CTAs": {"ctas": 3, "span": 32},
    "full buffers": {"near_buffer": 4, "far_buffer": 4},
    "the pull comes first": {"rest": 0},
    "the ceiling rises": {"rest": 30, "few": 1},
    "no edge is enough": {"rest": 30, "few": 0},
}


def lengths(graph, dtype, seed=0):
    """Equal in both directions, of many magnitudes, some 0."""
    i = np.repeat(np.arange(len(graph[0]) - 1), np.diff(graph[0]))
    low, high = np.minimum(i, graph[1]), np.maximum(i, graph[1])
    table = np.random.default_rng(seed).random((len(graph[0]) - 1,) * 2)[low, high]
    if dtype == np.int32:
        return (64 * table**3).astype(np.int32)
    return np.where(table < 0.1, 0, 10 ** (6 * table - 3)).astype(np.float32)


def two_components():
    """A dense graph, another one that it does not reach, a path, and vertices without edges."""
    indptr, indices = DENSE
    far = [*range(2 * N + 1, 2 * N + 9), 2 * N]
    path = np.array([[2 * N + i, v] for i, v in enumerate(far)]).T
    path = np.concatenate([path, path[::-1]], 1)
    i = np.repeat(np.arange(N), np.diff(indptr))
    tails = np.concatenate([i, i + N, path[0], [5, 2 * N + 4]])
    heads = np.concatenate([indices, indices + N, path[1], [2 * N + 4, 5]])
    order = np.argsort(tails, kind="stable")
    counts = np.bincount(tails, minlength=2 * N + 12)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), heads[order].astype(np.int32)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_layout(dtype, monkeypatch):
    monkeypatch.setattr("pallas_kernels.layouts.lengths.ORDERED_MEAN", 8)
    monkeypatch.setattr("pallas_kernels.layouts.lengths.ORDERED_LEAST", 8)
    graph, weights = DENSE, lengths(DENSE, dtype)
    spare = np.pad(graph[1], (0, 9), constant_values=N), np.pad(weights, (0, 9))
    found = by_weight(graph[0], *spare)
    on_device = by_weight(*map(jnp.asarray, (graph[0], *spare)))
    jax.tree.map(np.testing.assert_array_equal, found, on_device)
    assert prepare_sssp(*graph, weights, symmetric=True).keys() == found.keys()
    assert not prepare_sssp(*graph, weights)
    least, parts, slots = found["least"], found["parts"], found["slots"]
    assert least[0] == 0 and (np.diff(least) >= 0).all() and parts[-1] == graph[0][-1]
    np.testing.assert_array_equal(parts[::CLASSES], graph[0])
    np.testing.assert_array_equal(np.sort(slots), np.arange(len(spare[0])))
    np.testing.assert_array_equal(spare[0][slots], found["indices"])
    np.testing.assert_array_equal(spare[1][slots], found["weights"])
    for row in range(N * CLASSES):
        inside = found["weights"][parts[row] : parts[row + 1]]
        j = row % CLASSES
        assert (inside >= least[j]).all()
        assert j == CLASSES - 1 or (inside < least[j + 1]).all()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_search(mode, dtype):
    for seed, graph in enumerate((DENSE, two_components())):
        weights = lengths(graph, dtype, seed)
        prepared = by_weight(*graph, weights)
        runs = (3, 0), (0.5, N - 2), (100, 2 * N + 3), (infinity(dtype), 7)
        for delta, source in runs[seed : 4 - seed]:
            if delta == 0.5 and dtype == np.int32:
                delta = 1
            config = SMALL | MODES[mode]
            source = min(source, len(graph[0]) - 2)
            out = search(graph, weights, source, delta, config, prepared, symmetric=True)
            check(graph, weights, source, out)


@pytest.mark.parametrize("name", GRAPHS)
def test_every_graph(name):
    graph = GRAPHS[name]
    weights = symmetric_weights(graph, np.float32)
    for source in (0, -1, len(graph[0]) // 2):
        prepared = by_weight(*graph, weights)
        out = search(graph, weights, source, 5, SMALL | {"ctas": 2}, prepared, symmetric=True)
        check(graph, weights, source, out)


@pytest.mark.parametrize("kind", ["by weight", "symmetric", "directed"])
@pytest.mark.parametrize("weights", ["even", "half zero"])
def test_warps_that_run_apart_find_the_same(monkeypatch, kind, weights):
    """Records of parents that are overtaken included: those vertices search for theirs."""
    symmetric = kind != "directed"
    config = Config(**SMALL | {"ctas": 2, "near_buffer": 4, "unroll": 1, "taken": 1})
    for seed in range(8):
        monkeypatch.setattr(interpret, "run", warps_apart.seeded(seed))
        graph = random_graph(40, 250, seed, symmetric=symmetric)
        dtype = (np.float32, np.int32)[seed % 2]
        values = symmetric_weights(graph, dtype)
        if weights == "half zero":
            values[values % 2 == 0] = 0
        prepared = by_weight(*graph, values) if kind == "by weight" else {}
        delta = np.asarray((10, 30)[seed // 4], dtype)
        rule = Rule(symmetric=symmetric)
        out = sssp((*graph, values), 7, delta, prepared=prepared, rule=rule, config=config)
        check(graph, values, 7, out)


def test_long_edges_are_not_looked_at():
    """Three of four edges are longer than the ceiling; the kernel would find length 0 there."""
    graph = random_graph(60, 1500, 5)
    weights = symmetric_weights(graph, np.float32)
    weights[weights > 16] = 1000
    prepared = by_weight(*graph, weights)
    hidden = prepared["weights"] == 1000
    assert hidden.mean() > 0.7
    blind = prepared | {"weights": np.where(hidden, np.float32(0), prepared["weights"])}
    out = search(graph, weights, 3, 60, SMALL, blind, symmetric=True, parents=False)
    assert check(graph, weights, 3, out) > 1
    plain = prepared | {"least": np.zeros_like(prepared["least"])}
    plain["weights"] = blind["weights"]
    out = search(graph, weights, 3, 60, SMALL, plain, symmetric=True, parents=False)
    assert (np.asarray(out[0]) == 0).all()


@pytest.mark.parametrize("before", [np.float32, np.int32])
def test_new_weights_need_no_new_order(before):
    graph, config = DENSE, Config(**SMALL)
    prepared = by_weight(*graph, lengths(graph, before))
    arrays = tuple(map(jnp.asarray, graph))
    rule = Rule(symmetric=True)
    run = jax.jit(
        lambda p, w: sssp((*arrays, w), 3, 9.0, prepared=revalue(p, w), rule=rule, config=config)
    )
    for seed in (1, 2):
        weights = lengths(graph, np.float32, seed)
        check(graph, weights, 3, run(prepared, jnp.asarray(weights)))


def test_integers_clamp_at_infinity():
    graph = DENSE
    weights = np.where(symmetric_weights(graph, np.int32) % 3, MAX // 3, MAX - 5).astype(np.int32)
    prepared = by_weight(*graph, weights)
    for delta in (1, MAX // 2, MAX):
        out = search(graph, weights, 9, delta, SMALL, prepared, symmetric=True)
        check(graph, weights, 9, out)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.int32])
def test_one_launch(dtype):
    weights = lengths(DENSE, np.dtype(dtype))
    prepared = jax.tree.map(jnp.asarray, by_weight(*DENSE, weights))
    text = lower(
        lambda a, b, w, s, p: sssp((a, b, w), s, 3, prepared=p, rule=Rule(symmetric=True)),
        *map(jnp.asarray, (*DENSE, weights)), jnp.int32(0), prepared,
    )  # fmt: skip
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_native(dtype):
    for seed, graph in enumerate((DENSE, two_components(), random_graph(3000, 60000, 1))):
        weights = lengths(graph, dtype, seed)
        prepared = by_weight(*graph, weights)
        rule, n = Rule(symmetric=True), len(graph[0]) - 1
        run = jax.jit(lambda *a, rule=rule: sssp(a[:3], *a[3:5], prepared=a[5], rule=rule))
        for source in range(-1, n + 1, max(1, n // 8)):
            for delta in (1, 7, infinity(dtype)):
                last = jnp.int32(source), jnp.asarray(delta, dtype), prepared
                check(graph, weights, source, run(*graph, weights, *last))
