"""The push kernel of fixpoint, interpreted: against a loop over the edges, for every order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels.fixpoint.push import fixpoint_push, keys_of, values_of
from pallas_kernels.layouts.lengths import prepare_sssp
from pallas_kernels.sssp.problem import Config
from tests.kernels.bfs.test_bfs_kernel import GRAPHS, random_graph
from tests.kernels.test_lowering import lower, ring

SMALL = Config(
    ctas=2, threads=64, interpret=True, hops=3, span=4, unroll=2, near_buffer=16, far_buffer=32
)
JOIN = {"min": np.minimum, "max": np.maximum}  # of booleans: and, or
ALGEBRA = {  # add, mul in NumPy, mul in JAX, dtype of x, of A, range of A
    "min plus": ("min", np.add, jnp.add, np.float32, np.float32, (0, 9)),
    "min plus, integers": ("min", np.add, jnp.add, np.int32, np.int32, (0, 9)),
    "widest path": ("max", np.minimum, jnp.minimum, np.float32, np.float32, (-9, 9)),
    "bottleneck": ("min", np.maximum, jnp.maximum, np.int32, np.int32, (-9, 9)),
    "most likely": ("max", np.multiply, jnp.multiply, np.float32, np.float32, (0, 1)),
    "reachable": ("max", np.logical_and, jnp.logical_and, bool, bool, (0, 2)),
    "all": ("min", np.logical_or, jnp.logical_or, bool, bool, (0, 2)),
    "capped": (
        "min",
        lambda x, a: np.maximum(x + a, 5),
        lambda x, a: jnp.maximum(x + a, 5),
        np.float32,
        np.int32,
        (0, 3),
    ),
}


def identity(add, dtype):
    if dtype is bool:
        return add == "min"
    info = np.finfo(dtype) if dtype is np.float32 else np.iinfo(dtype)
    top = np.inf if dtype is np.float32 else info.max
    return top if add == "min" else (-np.inf if dtype is np.float32 else info.min)


def oracle(graph, data, x0, add, mul, missing):
    """Until nothing changes: every edge of every element that is there."""
    indptr, indices = graph
    x = x0.copy()
    tail = np.repeat(np.arange(len(x)), np.diff(indptr))
    while True:
        new = x.copy()
        live = x[tail] != missing
        terms = mul(x[tail[live]], data[live]).astype(x.dtype)
        JOIN[add].at(new, indices[live], terms)
        if (new == x).all():
            return x
        x = new


@pytest.mark.parametrize("low_degree", [True, False])
@pytest.mark.parametrize("name", ALGEBRA)
def test_every_order_against_a_loop(name, low_degree):
    add, mul, traced, dtype, data_dtype, (low, high) = ALGEBRA[name]
    rng = np.random.default_rng(0)
    graph = random_graph(90, 220, 1)
    m = len(graph[1])
    data = rng.uniform(low, high, m) if data_dtype is np.float32 else rng.integers(low, high, m)
    data = data.astype(data_dtype)
    missing = identity(add, dtype)
    x0 = np.full(90, missing, dtype)
    x0[[3, 40]] = [1, 2] if dtype is not bool else [not missing] * 2
    prepared = {}
    if low_degree:
        words = data.astype(np.int32) if data_dtype is bool else data
        prepared = jax.tree.map(jnp.asarray, prepare_sssp(*graph, words, renumber=True))
        assert "adjacency" in prepared
    x, rounds, status = fixpoint_push(
        (*map(jnp.asarray, graph), jnp.asarray(data)),
        jnp.asarray(x0),
        add=add,
        mul=traced,
        prepared=prepared,
        config=SMALL,
    )
    assert int(status) == 0 and int(rounds) > 0
    np.testing.assert_array_equal(x, oracle(graph, data, x0, add, mul, missing))


@pytest.mark.parametrize("delta", [None, 4.0])
@pytest.mark.parametrize("name", sorted(g for g in GRAPHS if len(GRAPHS[g][1])))
def test_every_graph_in_buckets_and_without(name, delta):
    graph = GRAPHS[name]
    n, m = len(graph[0]) - 1, len(graph[1])
    data = np.random.default_rng(1).integers(1, 9, m).astype(np.float32)
    x0 = np.full(n, np.inf, np.float32)
    x0[:: max(1, n // 3)] = 0.5
    x, _, status = fixpoint_push(
        (*map(jnp.asarray, graph), jnp.asarray(data)),
        jnp.asarray(x0),
        add="min",
        mul=jnp.add,
        delta=None if delta is None else jnp.float32(delta),
        config=SMALL,
    )
    assert int(status) == 0
    np.testing.assert_array_equal(x, oracle(graph, data, x0, "min", np.add, np.inf))


@pytest.mark.parametrize("add", ["min", "max"])
def test_keys_keep_the_order(add):
    x = jnp.array([-np.inf, -2.5, -1e-30, 0, 1e-30, 3, np.inf], jnp.float32)
    keys = np.asarray(keys_of(x, add))
    assert (np.diff(keys) > 0).all() if add == "min" else (np.diff(keys) < 0).all()
    np.testing.assert_array_equal(values_of(jnp.asarray(keys), add, x.dtype), x)
    i = jnp.array([np.iinfo(np.int32).min, -1, 0, 7, np.iinfo(np.int32).max], jnp.int32)
    np.testing.assert_array_equal(values_of(keys_of(i, add), add, i.dtype), i)


def test_an_unknown_order_is_refused():
    with pytest.raises(TypeError, match="no order"):
        graph = *map(jnp.asarray, ring(8)), jnp.ones(16)
        fixpoint_push(graph, jnp.zeros(8), add="add", mul=jnp.add)


@pytest.mark.parametrize("low_degree", [True, False])
def test_it_is_one_launch(low_degree):
    graph = ring(256)
    data = np.ones(512, np.float32)
    prepared = prepare_sssp(*graph, data, renumber=True) if low_degree else {}
    text = lower(
        lambda a, b, d, x, p: fixpoint_push((a, b, d), x, add="max", mul=jnp.minimum, prepared=p),
        *map(jnp.asarray, graph),
        jnp.asarray(data),
        jnp.zeros(256),
        jax.tree.map(jnp.asarray, prepared),
    )
    assert text.count("custom_call @mosaic_gpu") == 1
