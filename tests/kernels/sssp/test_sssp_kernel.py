"""The SSSP kernels, interpreted, against Dijkstra with a heap: bit for bit, in every mode."""

import functools
import heapq

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.dev.stress import default_delta
from pallas_kernels.layouts.lengths import later, prepare_sssp, revalue
from pallas_kernels.sssp import rounds
from pallas_kernels.sssp.api import default_config, sssp
from pallas_kernels.sssp.problem import Config, Rule
from tests.kernels.bfs.test_bfs_kernel import GRAPHS, NATIVE, random_graph
from tests.kernels.test_lowering import lower, ring

MAX = np.iinfo(np.int32).max


def infinity(dtype):
    return np.float32(np.inf) if dtype == np.float32 else np.int32(MAX)


def oracle(indptr, indices, weights, source):
    """Dijkstra in the arithmetic of the weights: rounded sums, or clamped integers."""
    n, dtype = len(indptr) - 1, weights.dtype
    distances = np.full(n, infinity(dtype), dtype)
    if not 0 <= source < n:
        return distances
    distances[source], heap = 0, [(dtype.type(0), source)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > distances[u]:
            continue
        for e in range(indptr[u], indptr[u + 1]):
            total = (
                d + weights[e]
                if dtype == np.float32
                else np.int32(min(int(d) + int(weights[e]), MAX))
            )
            if total < distances[indices[e]]:
                distances[indices[e]] = total
                heapq.heappush(heap, (total, int(indices[e])))
    return distances


def weights_of(graph, dtype, seed=0):
    """Weights 0..63 (integers) or of many magnitudes (floats), with zeros and equal ones."""
    rng = np.random.default_rng(seed)
    if dtype == np.int32:
        return rng.integers(0, 64, len(graph[1])).astype(np.int32)
    w = rng.random(len(graph[1])) * 10.0 ** rng.integers(-3, 3, len(graph[1]))
    return np.where(rng.random(len(w)) < 0.1, 0, w).astype(np.float32)


SMALL = {"ctas": 1, "threads": 64, "interpret": True, "hops": 3, "span": 4, "unroll": 2,
         "near_buffer": 16, "far_buffer": 32, "small_round": 0}  # fmt: skip
NARROW = {
    "one CTA": SMALL,
    "ctas": SMALL | {"ctas": 3},
    "a quad at a time": SMALL | {"together": 1},
    "one hop": SMALL | {"hops": 1, "ctas": 2},
    "many hops": SMALL | {"hops": 50, "ctas": 2},
    "hops at times": SMALL | {"hop_most": 6},
    "tails": SMALL | {"tail": 2, "ctas": 2, "hops": 1},
    "no tails": SMALL | {"tail": 0, "ctas": 2},
}
ANY_DEGREE = {
    "mixed": SMALL,
    "ctas": SMALL | {"ctas": 3},
    "few edges": SMALL | {"ctas": 2, "small_round": 1, "taken": 2},
    "few edges always": SMALL | {"small_round": 1000},
    "full buffers": SMALL | {"near_buffer": 4, "far_buffer": 4, "ctas": 2},
    "large buffers": SMALL | {"near_buffer": 512, "far_buffer": 512, "span": 32, "unroll": 4},
}


def search(graph, weights, source, delta, config, prepared, **options):
    targets = options.pop("targets", None)
    rule = Rule(weights.dtype == np.float32, **{"parents": True} | options)
    how = {"targets": targets, "rule": rule, "config": Config(**config)}
    f = jax.jit(lambda *operands, prepared: sssp(*operands, prepared=prepared, **how))
    whole, prepared = jax.tree.map(jnp.asarray, ((*graph, weights), prepared))
    return f(whole, jnp.int32(source), jnp.asarray(delta, weights.dtype), prepared=prepared)


def check(graph, weights, source, out):
    distances, parents, steps, status, *_ = out
    assert status == 0 and distances.dtype == weights.dtype
    np.testing.assert_array_equal(np.asarray(distances), oracle(*graph, weights, source))
    if parents is not None:
        check_parents(*graph, weights, source, np.asarray(distances), np.asarray(parents))
    return int(steps)


def check_parents(indptr, indices, weights, source, distances, parents):
    """Each parent is a tight predecessor, -1 stands where unreached, and all lead to the source."""
    n, top = len(indptr) - 1, infinity(weights.dtype)
    tail, heads = np.repeat(np.arange(n), np.diff(indptr)), np.asarray(indices)
    with np.errstate(over="ignore"):
        total = distances[tail] + weights
    tight = (total == distances[heads]) & (distances[heads] != top)
    edges = np.unique(tail[tight] * n + heads[tight])
    reached = distances != top
    np.testing.assert_array_equal(parents >= 0, reached)
    if not 0 <= source < n:
        return
    assert parents[source] == source
    child = np.flatnonzero(reached & (np.arange(n) != source))
    assert np.isin(parents[child].astype(np.int64) * n + child, edges).all()
    jump = np.where(reached, parents, source)
    for _ in range(n.bit_length()):
        jump = jump[jump]
    assert (jump == source).all()


@pytest.mark.parametrize("mode", NARROW)
@pytest.mark.parametrize("name", GRAPHS)
def test_low_degree(name, mode):
    graph = GRAPHS[name]
    n = len(graph[0]) - 1
    runs = ((np.float32, False, 20, 0), (np.int32, True, 60, n // 2),
            (np.float32, True, np.inf, n // 2))  # fmt: skip
    for dtype, renumber, delta, source in runs[: 3 if mode == "ctas" else 2]:
        weights = weights_of(graph, dtype)
        prepared = prepare_sssp(*graph, weights, renumber=renumber)
        if not prepared:
            pytest.skip("no fixed-width adjacency")
        check(graph, weights, source, search(graph, weights, source, delta, NARROW[mode], prepared))


def test_tails_of_buckets_take_fewer_rounds():
    graph = GRAPHS["grid"]
    weights = np.random.default_rng(3).integers(1, 64, len(graph[1])).astype(np.int32)
    prepared = prepare_sssp(*graph, weights)
    rounds = {}
    for tail in (0, 2):
        config = SMALL | {"tail": tail, "hops": 1}
        out = search(graph, weights, 0, 40, config, prepared)
        rounds[tail] = check(graph, weights, 0, out)
    assert rounds[2] < 0.9 * rounds[0], rounds


@pytest.mark.parametrize("mode", ANY_DEGREE)
@pytest.mark.parametrize("name", GRAPHS)
def test_any_degree(name, mode):
    graph = GRAPHS[name]
    n = len(graph[0]) - 1
    runs = (np.float32, 20, 0), (np.int32, 30, n // 2), (np.int32, MAX, 0)
    for dtype, delta, source in runs[: 3 if mode == "ctas" else 2]:
        weights = weights_of(graph, dtype)
        check(graph, weights, source, search(graph, weights, source, delta, ANY_DEGREE[mode], {}))


@pytest.mark.parametrize("kind", ["low_degree", "any_degree"])
def test_directed_and_every_delta(kind):
    graph = random_graph(200, 700, 3, symmetric=False)
    for dtype in (np.float32, np.int32):
        weights = weights_of(graph, dtype, 1)
        prepared = prepare_sssp(*graph, weights) if kind == "low_degree" else {}
        steps = [
            check(graph, weights, 5, search(graph, weights, 5, delta, SMALL, prepared))
            for delta in (infinity(dtype), 64, 1)
        ]
        assert steps[0] <= steps[1] <= steps[2]


def test_rounds_of_few_edges_are_joined(monkeypatch):
    """Fewer rounds, and none fewer once it has ended."""
    graph = GRAPHS["random"]
    weights = symmetric_weights(graph, np.int32)
    few = SMALL | {"small_round": 40, "small_far": 0}

    def steps(config):
        return check(graph, weights, 1, search(graph, weights, 1, 4, config, {}))

    apart = steps(SMALL)
    assert steps(few) < apart
    monkeypatch.setattr(rounds, "ROUNDS", 0)
    monkeypatch.setattr("pallas_kernels.sssp.api.later", lambda n, entries: 0)
    assert steps(few) == apart


def test_few_vertices_in_far_widen_buckets():
    graph = random_graph(200, 400, 3)
    weights = symmetric_weights(graph, np.float32)
    steps = []
    for small_far in (0, 100):
        config = SMALL | {"small_round": 1000, "small_far": small_far}
        out = search(graph, weights, 1, 2, config, {})
        check(graph, weights, 1, out)
        steps.append(int(out[2]))
    assert steps[1] < steps[0]


def test_width_of_long_searches():
    """16 / mean degree of the mean weight, as far as powers of two allow."""
    for degree in (2, 10, 20, 33, 50, 80, 1000):
        width = min(max(4 / degree, 0.2), 3) * 2 ** later(1000, 1000 * degree)
        assert width <= max(16 / degree, 0.2) * 1.01
        assert width >= min(16 / degree, 0.8) / 2
    assert later(10, 0) == 2


@pytest.mark.parametrize("kind", ["low_degree", "any_degree"])
@pytest.mark.parametrize("delta", [1, 100, MAX])
def test_integers_clamp_at_infinity(kind, delta):
    graph = GRAPHS["path"]
    weights = np.full(len(graph[1]), MAX // 20, np.int32)
    weights[5], weights[160:162] = MAX, MAX - 1
    prepared = prepare_sssp(*graph, weights) if kind == "low_degree" else {}
    for source in (0, 1, 60, 80):
        check(graph, weights, source, search(graph, weights, source, delta, SMALL, prepared))


@pytest.mark.parametrize("kind", ["low_degree", "any_degree"])
def test_floats_that_absorb_or_overflow(kind):
    graph = GRAPHS["path"]
    weights = np.full(len(graph[1]), 0.25, np.float32)
    weights[10], weights[100], weights[200] = 2.0**25, 3e38, np.inf
    prepared = prepare_sssp(*graph, weights) if kind == "low_degree" else {}
    for delta in (
        0.0,
        1e-30,
        0.3,
        np.inf,
    ):  # 0 and 1e-30 are absorbed at 2^25: the bound rises all the same
        check(graph, weights, 0, search(graph, weights, 0, delta, SMALL, prepared))


@pytest.mark.parametrize("name", ["grid", "dense"])
@pytest.mark.parametrize("source", [-1, 10**6, -(2**31)])
def test_source_out_of_range(name, source):
    graph = GRAPHS[name]
    weights = weights_of(graph, np.float32)
    check(
        graph,
        weights,
        source,
        search(graph, weights, source, 20, SMALL, prepare_sssp(*graph, weights, renumber=True)),
    )


@pytest.mark.parametrize("renumber", [False, True])
def test_new_weights_by_a_gather(renumber):
    graph = GRAPHS["degree up to 20"]
    prepared = prepare_sssp(*graph, weights_of(graph, np.float32), renumber=renumber)
    f = jax.jit(
        lambda p, w: sssp((*map(jnp.asarray, graph), w), 3, jnp.float32(9),
                          prepared=revalue(p, w), config=Config(**SMALL))
    )  # fmt: skip
    for seed in (1, 2):
        weights = weights_of(graph, np.float32, seed)
        check(graph, weights, 3, f(prepared, jnp.asarray(weights)))


def test_a_scan_of_searches():
    graph = GRAPHS["random"]
    weights = weights_of(graph, np.int32)

    def one(source, _):
        d, *_ = sssp(tuple(map(jnp.asarray, (*graph, weights))), source, 20, config=Config(**SMALL))
        return jnp.argmax(jnp.where(d == MAX, -1, d)).astype(jnp.int32), d

    _, rows = jax.jit(lambda s: jax.lax.scan(one, s, length=3))(jnp.int32(0))
    source = 0
    for row in np.asarray(rows):
        np.testing.assert_array_equal(row, oracle(*graph, weights, source))
        source = int(np.where(row == MAX, -1, row).argmax())


def test_vmap_is_refused():
    graph, weights = GRAPHS["path"], weights_of(GRAPHS["path"], np.float32)
    arrays = list(map(jnp.asarray, (*graph, weights)))
    with pytest.raises(NotImplementedError, match="grid barrier"):
        jax.vmap(lambda s: sssp(arrays, s, 1.0, config=Config(**SMALL))[0])(jnp.arange(3))


def symmetric_weights(graph, dtype):
    """The same weight, 1..64, in both directions."""
    i = np.repeat(np.arange(len(graph[0]) - 1, dtype=np.int64), np.diff(graph[0]))
    low, high = np.minimum(i, graph[1]), np.maximum(i, graph[1])
    return ((low * 2654435761 + high * 40503) % 64 + 1).astype(dtype)


@pytest.mark.parametrize("kind", ["low_degree", "renumbered", "any_degree"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_targets_settle_what_is_as_near(kind, dtype):
    graph = GRAPHS["grid"]
    weights, n = symmetric_weights(graph, dtype), len(graph[0]) - 1
    prepared = {}
    if kind != "any_degree":
        prepared = prepare_sssp(*graph, weights, renumber=kind == "renumbered")
    right = oracle(*graph, weights, 0)
    whole = search(graph, weights, 0, 40, SMALL, prepared)
    for targets, join in (([n // 3], min), ([n // 5, n // 2], min), ([n // 5, n // 2], max)):

        def limit(labels, infinity, minimum, maximum, join=join):
            device_barrier = minimum if join is min else maximum
            return functools.reduce(device_barrier, labels)

        out = search(
            graph, weights, 0, 40, SMALL, prepared, targets=jnp.asarray(targets), limit=limit
        )
        distances, parents, steps, status = out
        most = join(right[targets])
        near = right <= most
        assert status == 0 and near.any() and not near.all()
        np.testing.assert_array_equal(np.asarray(distances)[near], right[near])
        assert (np.asarray(distances) >= right).all() and steps < whole[2]
        for v in np.flatnonzero(near)[1:]:
            parent = int(parents[v])
            row = slice(graph[0][parent], graph[0][parent + 1])
            step = weights[row][np.asarray(graph[1][row]) == v]
            assert right[parent] + step.min() == right[v]


def test_default_delta():
    graph = ring(64)
    assert default_delta(graph[0], np.full(128, 5, np.int32)) == 40960  # 16384 * 5 / 2
    assert default_delta(graph[0], np.full(128, 0.5, np.float32)) == 4096.0
    assert default_delta(graph[0], np.full(128, 10**9, np.int32)) == MAX
    assert default_delta(graph[0], np.full(128, MAX, np.int32)) == 1
    assert default_delta(*GRAPHS["star with a tail"]) > 1  # a hub: any degree
    dense = np.arange(0, 100 * 300 + 1, 300), np.full(100 * 300, 5.0, np.float32)
    assert default_delta(*dense) == 1  # a fifth of the mean weight
    assert default_delta(graph[0], np.zeros(128, np.float32)) == 1


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.int32])
@pytest.mark.parametrize("kind", ["low_degree", "renumbered", "any_degree"])
def test_one_launch(kind, dtype):
    graph = ring(256)
    weights = np.ones(512, np.dtype(dtype))
    prepared = (
        {} if kind == "any_degree" else prepare_sssp(*graph, weights, renumber=kind == "renumbered")
    )
    config = default_config(256, 512, low_degree=kind != "any_degree")
    text = lower(
        lambda a, b, w, s, p: sssp((a, b, w), s, 3, prepared=p, config=config),
        *map(jnp.asarray, (*graph, weights)), jnp.int32(0), jax.tree.map(jnp.asarray, prepared),
    )  # fmt: skip
    assert text.count("custom_call @mosaic_gpu") == 1


DIRECTED = random_graph(300, 1200, 6, symmetric=False)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("name", [*NATIVE, "directed"])
def test_native(name, dtype):
    """Sums of many magnitudes, weights of 0 in half of the edges, zeros everywhere."""
    graph = DIRECTED if name == "directed" else NATIVE[name]
    n = len(graph[0]) - 1
    half = symmetric_weights(graph, dtype)
    half[half % 2 == 0] = 0
    absorbed = {np.float32: np.where(half, np.float32(2.0**25), np.float32(0.5)), np.int32: half}
    values = (weights_of(graph, dtype), half, absorbed[dtype], np.zeros_like(half))
    forms = [{}, prepare_sssp(*graph, half), prepare_sssp(*graph, half, renumber=True)]
    if name == "any degree":
        forms = [{}, None]  # None: promised to be symmetric
    for form in forms:
        rule = Rule(symmetric=form is None)
        run = jax.jit(lambda *a, rule=rule: sssp(a[:3], *a[3:5], prepared=a[5], rule=rule))
        for weights in values[1:] if form is None else values:
            prepared = revalue(form or {}, weights)
            for source in range(-1, n + 1, max(1, n // 8)):
                for delta in (7, infinity(dtype)):
                    last = (jnp.int32(source), jnp.asarray(delta, dtype), prepared)
                    check(graph, weights, source, run(*graph, weights, *last))
