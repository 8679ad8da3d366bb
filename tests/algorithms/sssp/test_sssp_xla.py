"""search and shortest_path_tree against heaps, rounds and definitions in plain Python."""

import functools
import heapq

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import garbage, precision

from jaxspv._core.operation import Operation
from jaxspv.algorithms.sssp import xla
from jaxspv.algorithms.sssp.api import SSSP
from jaxspv.algorithms.sssp.tree import shortest_path_tree
from jaxspv.algorithms.sssp.xla import OutEdges

FORM = pytest.mark.parametrize("form", ("cpu", "xla"))
DTYPES = (np.float32, np.int32, np.uint8, np.float64)
N, CAPACITY = 30, 200  # of the random graphs: one compilation serves all of them


def search(*graph, **how):
    return SSSP(*xla.search(*graph, **how), jnp.int32(0))


def infinity(dtype):
    return np.array(np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max, dtype)


def add(x, w, dtype):
    """The sum of two lengths in the dtype; integers: infinity absorbs, the rest is clamped."""
    if np.dtype(dtype).kind == "f":
        return np.add(x, w, dtype=dtype)
    top = infinity(dtype)
    if top in (x, w):
        return top
    return np.array(np.clip(int(x) + int(w), np.iinfo(dtype).min, top), dtype)


def rows_of(indptr):
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def dijkstra_by_heap(indptr, indices, weights, source):
    """Distances in the arithmetic of the weights' dtype."""
    dtype = weights.dtype
    distance = np.full(len(indptr) - 1, infinity(dtype))
    distance[source] = 0
    heap, done = [(distance[source], source)], set()
    while heap:
        d, u = heapq.heappop(heap)
        if u in done:
            continue
        done.add(u)
        for e in range(indptr[u], indptr[u + 1]):
            v, nd = int(indices[e]), add(d, weights[e], dtype)
            if nd < distance[v]:
                distance[v] = nd
                heapq.heappush(heap, (nd, v))
    return distance


def rounds_of_relaxation(indptr, indices, weights, source):
    """Distances, or None where a negative cycle can be reached: n rounds over all edges."""
    n, dtype = len(indptr) - 1, weights.dtype
    distance = np.full(n, infinity(dtype))
    distance[source] = 0
    for _ in range(n):
        before = distance.copy()
        for u, v, w in zip(rows_of(indptr), indices, weights, strict=True):
            distance[v] = min(distance[v], add(distance[u], w, dtype))
        if (before == distance).all():
            return distance
    return None


def tight_edges(indptr, indices, weights, distance):
    top = infinity(distance.dtype)
    for u, v, w in zip(rows_of(indptr), indices, weights, strict=True):
        if distance[v] != top and add(distance[u], w, distance.dtype) == distance[v]:
            yield int(u), int(v)


def parents_by_hops(indptr, indices, weights, distance, source):
    """Of the tight predecessors the smallest (hops, id); breadth first."""
    before, after = {}, {}
    for u, v in tight_edges(indptr, indices, weights, distance):
        before.setdefault(v, []).append(u)
        after.setdefault(u, []).append(v)
    hops, level = {source: 0}, [source]
    while level:
        following = []
        for u in level:
            for v in after.get(u, ()):
                if v not in hops:
                    hops[v] = hops[u] + 1
                    following.append(v)
        level = following
    parents = np.full(len(distance), -1)
    for v in hops:
        parents[v] = v if v == source else min((hops[u], u) for u in before[v] if u in hops)[1]
    return parents


def check_tree(indptr, indices, weights, distance, parents, source):
    """Every parent is a tight predecessor and every reached vertex hangs on the source."""
    tight = set(tight_edges(indptr, indices, weights, distance))
    reached = distance != infinity(distance.dtype)
    assert ((parents >= 0) == reached).all()
    assert parents[source] == source
    for v in np.flatnonzero(reached):
        path = {v}
        while v != source:
            assert (parents[v], v) in tight
            v = parents[v]
            assert v not in path, "a cycle of parents"
            path.add(v)


def graph(rng, m, weights, n=N, capacity=CAPACITY):
    """(indptr, indices, weights) without duplicates, and the same with garbage as padding."""
    edges = np.unique(rng.integers(0, n * n, m))
    values = np.asarray(weights(len(edges)))
    indptr = np.searchsorted(edges // n, np.arange(n + 1)).astype(np.int32)
    indices = (edges % n).astype(np.int32)
    spare = capacity - len(edges)
    padding = rng.choice(np.array([-1, 0, n, 2**31 - 1, -(2**31)], np.int32), spare)
    padded = np.r_[indices, padding], np.r_[values, np.full(spare, garbage(values.dtype))]
    return (indptr, indices, values), (indptr, *padded)


def in_turn(form, run):
    """`run` as an operation has it: under vmap one lane after the other."""
    op = Operation("search of a test")
    op.register("search", backend=form, batched="map")(run)
    return op


@functools.cache
def compiled(form, bucketed=True):
    def run(indptr, indices, weights, source, delta):
        delta = delta if bucketed else None
        graph = indptr, indices, weights
        result = search(OutEdges(*graph), source, delta=delta)
        edges = OutEdges(*graph)
        backend = None if form == "cpu" else form  # C++ where it takes the dtype
        tree = shortest_path_tree(edges, result.distances, source, backend=backend)
        return result, tree

    return jax.jit(run)


def solve(arrays, source, delta=None, form="cpu"):
    arrays = [jnp.asarray(a) for a in arrays]
    bucketed = delta is not None
    delta = jnp.asarray(delta if bucketed else 1, arrays[2].dtype)
    result, tree = compiled(form, bucketed=bucketed)(*arrays, jnp.int32(source), delta)
    return jax.tree.map(np.asarray, (result, tree))


@FORM
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@given(seed=st.integers(0, 10**6))
def test_equals_dijkstra_bit_by_bit(form, dtype, seed):
    rng = np.random.default_rng(seed)
    top = rng.choice([1, 9, 60])

    def weights(m):
        if np.dtype(dtype).kind == "f" and top > 1:
            return (rng.random(m) * 10.0 ** rng.integers(-4, 5, m)).astype(dtype)
        return rng.integers(0, top + 1, m).astype(dtype)

    bare, padded = graph(rng, rng.integers(0, CAPACITY), weights)
    source = int(rng.integers(N))
    expected = dijkstra_by_heap(*bare, source)
    hops = parents_by_hops(*bare, expected, source)
    with precision(dtype):
        for delta in (None, infinity(dtype), 1, 40):
            result, tree = solve(padded, source, delta, form)
            assert result.distances.dtype == dtype
            np.testing.assert_array_equal(result.distances, expected)
            np.testing.assert_array_equal(tree, hops)
            check_tree(*bare, expected, result.parents, source)
            assert result.converged and (not result.overflow or dtype == np.uint8)


@FORM
@pytest.mark.parametrize("dtype", [np.float32, np.int32], ids=lambda d: np.dtype(d).name)
@given(seed=st.integers(0, 10**6))
def test_negative_weights(form, dtype, seed):
    rng = np.random.default_rng(seed)
    low = rng.choice([-9, -2, -1])
    bare, padded = graph(rng, rng.integers(1, 90), lambda m: rng.integers(low, 20, m).astype(dtype))
    source = int(rng.integers(N))
    expected = rounds_of_relaxation(*bare, source)
    for delta in (None, infinity(dtype)):
        result, tree = solve(padded, source, delta, form)
        assert result.converged == (expected is not None)
        if expected is not None:
            np.testing.assert_array_equal(result.distances, expected)
            np.testing.assert_array_equal(tree, parents_by_hops(*bare, expected, source))
            check_tree(*bare, expected, result.parents, source)


@FORM
@pytest.mark.parametrize("weight", [-1.0, 0.0])
def test_a_long_cycle_is_negative_or_not(form, weight):
    n = 300
    i = np.arange(n)
    weights = np.where(i == 7, weight, 0).astype(np.float32)
    result, _ = solve(
        (np.r_[i, n].astype(np.int32), ((i + 1) % n).astype(np.int32), weights), 0, form=form
    )
    assert result.converged == (weight >= 0)
    assert result.steps <= 3 * n


@FORM
def test_a_negative_loop(form):
    arrays = np.array([0, 2, 2], np.int32), np.array([0, 1], np.int32), np.float32([-1, 1])
    assert not solve(arrays, 0, form=form)[0].converged
    assert solve(arrays, 1, form=form)[0].converged


@FORM
@pytest.mark.parametrize("delta", [None, np.float32(1)])
def test_absorbed_and_zero_weights_give_a_tree(form, delta):
    """0.5 is lost beside 2^25: all edges among 1..n-1, in both directions, are tight."""
    n, rng = N, np.random.default_rng(0)
    inner = rng.permutation(np.arange(1, n))
    u = np.r_[0, inner[:-1], inner[1:], inner]
    v = np.r_[inner[0], inner[1:], inner[:-1], inner]
    w = np.r_[2.0**25, np.full(n - 2, 0.5), np.zeros(n - 2), np.full(n - 1, 0.25)]
    order = np.lexsort((v, u))
    indptr = np.searchsorted(u[order], np.arange(n + 1)).astype(np.int32)
    arrays = indptr, v[order].astype(np.int32), w[order].astype(np.float32)
    result, tree = solve(arrays, 0, delta, form)
    np.testing.assert_array_equal(result.distances, np.r_[0, np.full(n - 1, 2.0**25)])
    check_tree(*arrays, result.distances, result.parents, 0)
    np.testing.assert_array_equal(tree, parents_by_hops(*arrays, result.distances, 0))


@FORM
@pytest.mark.parametrize("delta", [None, 2**30])
def test_integer_sums_clamp_and_infinity_absorbs(form, delta):
    top = 2**31 - 1
    indptr, indices = np.array([0, 1, 2, 2], np.int32), np.array([1, 2], np.int32)

    def run(*weights):
        return solve((indptr, indices, np.array(weights, np.int32)), 0, delta, form)

    for weights, distances, overflow in (
        ((top - 2, 1), [0, top - 2, top - 1], False),
        ((top - 2, 5), [0, top - 2, top], True),
        ((5, top), [0, 5, top], True),
        ((top, 5), [0, top, top], True),
    ):
        result, tree = run(*weights)
        np.testing.assert_array_equal(result.distances, distances)
        assert result.overflow == overflow
        np.testing.assert_array_equal(tree >= 0, result.distances < top)
    if delta is None:
        result, _ = run(-(2**31), -1)
        np.testing.assert_array_equal(result.distances, [0, -(2**31), -(2**31)])
        assert result.overflow


@FORM
@pytest.mark.parametrize("weight,delta", [(np.float32(1e9), 1e-3), (np.int32(2**28), 1)])
def test_buckets_widen_while_they_stay_empty(form, weight, delta):
    """1e9 absorbs the width, and 2^28 / 1 buckets would take minutes."""
    arrays = np.array([0, 1, 2, 2], np.int32), np.array([1, 2], np.int32), np.repeat(weight, 2)
    result, _ = solve(arrays, 0, delta, form)
    np.testing.assert_array_equal(result.distances, weight * np.arange(3, dtype=weight.dtype))


@FORM
@pytest.mark.parametrize("n,slots", [(0, 0), (0, 3), (1, 0), (1, 3), (4, 0)])
def test_no_edges(form, n, slots):
    arrays = np.zeros(n + 1, np.int32), np.full(slots, 9, np.int32), np.full(slots, np.nan, "f4")
    for delta in (None, np.float32(1)) if n else (None,):
        result, tree = solve(arrays, 0, delta, form)
        np.testing.assert_array_equal(result.distances, np.where(np.arange(n) == 0, 0, np.inf))
        np.testing.assert_array_equal(result.parents, np.where(np.arange(n) == 0, 0, -1))
        np.testing.assert_array_equal(tree, result.parents)
        assert result.converged and not result.overflow


@FORM
@pytest.mark.parametrize("source", [-1, N, -(2**31), 2**31 - 1])
def test_a_source_out_of_range_reaches_nothing(form, source):
    rng = np.random.default_rng(0)
    _, padded = graph(rng, 150, lambda m: rng.random(m).astype(np.float32))
    for delta in (None, np.float32(0.3)):
        result, tree = solve(padded, source, delta, form)
        assert np.isinf(result.distances).all()
        assert (result.parents == -1).all() and (tree == -1).all() and result.converged


@FORM
def test_stop_settles_what_is_below_the_threshold(form):
    rng = np.random.default_rng(3)
    bare, padded = graph(rng, 120, lambda m: rng.integers(1, 50, m).astype(np.float32))
    full = dijkstra_by_heap(*bare, 0)
    arrays = [jnp.asarray(a) for a in padded]

    @jax.jit
    def run(target):
        def stop(step, distances, threshold, waiting):
            return distances[target] < threshold

        return search(OutEdges(*arrays), 0, delta=5.0, stop=stop)

    cut = 0
    for target in range(N):
        result = run(target)
        known = full <= full[target]
        np.testing.assert_array_equal(result.distances[known], full[known])
        exact = np.isfinite(result.distances)
        np.testing.assert_array_equal(result.distances[exact], full[exact])
        assert result.converged
        cut += (~exact & np.isfinite(full)).any()
    assert cut > N // 4
    batched = jax.vmap(in_turn(form, run))(jnp.arange(N))
    np.testing.assert_array_equal(batched.distances[4], run(4).distances)


@FORM
def test_too_few_steps_do_not_converge(form):
    rng = np.random.default_rng(4)
    bare, padded = graph(rng, 120, lambda m: rng.integers(1, 50, m).astype(np.float32))
    full = dijkstra_by_heap(*bare, 0)
    arrays = [jnp.asarray(a) for a in padded]
    for delta in (None, 5.0):
        run = jax.jit(lambda k: search(OutEdges(*arrays), 0, delta=delta, max_steps=k))
        for k in (0, 1, 2):
            assert not (result := run(k)).converged and result.steps == k
            assert (np.asarray(result.distances) >= full).all()


@FORM
def test_vmap_over_sources(form):
    rng = np.random.default_rng(5)
    bare, padded = graph(rng, 120, lambda m: rng.random(m).astype(np.float32))
    run = functools.partial(compiled(form), *map(jnp.asarray, padded))
    result, tree = jax.vmap(in_turn(form, lambda s: run(s, jnp.float32(0.2))))(
        jnp.arange(-1, N + 1)
    )
    assert np.isinf(result.distances[jnp.array([0, -1])]).all()
    for s in range(N):
        expected = dijkstra_by_heap(*bare, s)
        np.testing.assert_array_equal(result.distances[s + 1], expected)
        np.testing.assert_array_equal(tree[s + 1], parents_by_hops(*bare, expected, s))


def test_one_compilation_serves_all_sources_and_graphs_of_a_shape():
    run = jax.jit(
        chex.assert_max_traces(lambda *a: search(OutEdges(*a[:3]), a[3], delta=a[4]), n=1)
    )
    for seed in range(3):
        rng = np.random.default_rng(seed)
        _, padded = graph(rng, 100, lambda m: rng.random(m).astype(np.float32))
        run(*map(jnp.asarray, padded), jnp.int32(seed), jnp.float32(0.1 + seed))


def shapes(n, nse, dtype):
    s = jax.ShapeDtypeStruct
    return s((n + 1,), np.int32), s((nse,), np.int32), s((nse,), dtype), s((), np.int32)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_lowers_for_cuda_and_tpu(dtype):
    args = *shapes(1000, 5000, dtype), jax.ShapeDtypeStruct((), dtype)
    for platform in ("cuda", "tpu"):
        for bucketed in (True, False):
            traced = compiled("xla", bucketed=bucketed).trace(*args)
            assert "custom_call" not in traced.lower(lowering_platforms=(platform,)).as_text()
