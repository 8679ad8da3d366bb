"""bfs, sssp and pagerank as users call them: padding, shapes, conditions, errors, compilations."""

import dataclasses
import itertools
import re

import chex
import jax
import jax.numpy as jnp
import jax.test_util
import networkx as nx
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv import verify

PURPOSES = ("bfs", "sssp", "pagerank")


def directed(n=40, m=120, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 9, m).astype(np.float32)
    return jsp.from_edges(rng.integers(0, n, m), rng.integers(0, n, m), weights, shape=(n, n))


def with_padding(A, extra, value):
    """The same CSR with `extra` slots of capacity, whatever is in them."""
    pad = ((0, extra),)
    return dataclasses.replace(
        A,
        data=jnp.pad(A.data, pad, constant_values=value),
        indices=jnp.pad(A.indices, pad, constant_values=A.shape[1]),
    )


def same(left, right):
    chex.assert_trees_all_equal(left, right)


@pytest.mark.fast
@pytest.mark.parametrize("value", [np.nan, np.finfo(np.float32).max])
def test_padding_changes_nothing(value):
    A = directed()
    B = with_padding(A, 9, value)
    for make in (lambda A: A, lambda A: jsp.prepare(A, for_=PURPOSES)):
        G, H = make(A), make(B)
        same(jsp.bfs(G, 3), jsp.bfs(H, 3))
        same(jsp.sssp(G, 3), jsp.sssp(H, 3))
        np.testing.assert_allclose(jsp.pagerank(G).scores, jsp.pagerank(H).scores, rtol=1e-5)
    same(B @ jnp.ones(40), A @ jnp.ones(40))

    def total(A):
        d = jsp.sssp(A, 3).distances
        return jnp.where(jnp.isfinite(d), d, 0).sum() + jsp.pagerank(A).scores[:5].sum()

    gradients = jsp.grad(total)(B).data
    np.testing.assert_allclose(gradients[: A.nse], jsp.grad(total)(A).data, rtol=1e-4, atol=1e-6)
    assert (gradients[A.nse :] == 0).all()


@pytest.mark.fast
def test_a_directed_path_in_both_directions():
    n = 6
    valid = jsp.from_edges(np.arange(n - 1), np.arange(1, n), shape=(n, n))
    back = jsp.from_edges(np.arange(1, n), np.arange(n - 1), shape=(n, n))
    for A, far in ((valid, n - 1), (back, 0)):
        for G in (A, A.asformat("csc"), A.asformat("coo"), jsp.prepare(A, for_=PURPOSES)):
            near = n - 1 - far
            order = np.abs(np.arange(n) - near)
            assert jsp.bfs(G, near).levels.tolist() == order.tolist()
            assert jsp.bfs(G, far).levels.tolist() == np.where(np.arange(n) == far, 0, -1).tolist()
            assert jsp.sssp(G, near).distances.tolist() == order.tolist()
            assert int(jsp.pagerank(G).scores.argmax()) == far


@pytest.mark.parametrize(
    "weights,dtype",
    [*itertools.product(("zero", "loops"), (np.float32, np.int32)), ("absorbed", np.float32)],
)
def test_parents_are_a_tree_where_edges_add_nothing(weights, dtype):
    rng = np.random.default_rng(1)
    n, m = 30, 150
    row, col = rng.integers(0, n, m), rng.integers(0, n, m)
    w = rng.choice([0, 0, 0, 1], m).astype(dtype)
    if weights == "absorbed":
        w = np.where(w == 0, 0.5, 2.0**25).astype(dtype)
    if weights == "loops":
        row, col, w = (np.r_[a, b] for a, b in ((row, range(n)), (col, range(n)), (w, [0] * n)))
        w = w.astype(dtype)
    A = jsp.from_edges(row, col, w, shape=(n, n), dup=jsp.monoids.min_)
    for G in (A, jsp.prepare(A, for_="sssp")):
        for source in range(5):
            result = jsp.sssp(G, source, deterministic=source % 2 == 0)
            top = np.inf if dtype == np.float32 else np.iinfo(dtype).max
            verify.tree(A, source, result.parents, np.asarray(result.distances) != top)
            tight(A, result)


def tight(A, result):
    """Every parent p of v has d[p] + w = d[v] in the arithmetic of the weights."""
    dense = np.full(A.shape, np.nan)
    row, col = (np.asarray(i) for i in A.rowcol())
    dense[row, col] = np.asarray(A.data)
    d, parents = np.asarray(result.distances), np.asarray(result.parents)
    for v, p in enumerate(parents):
        if p >= 0 and p != v:
            assert d[p] + d.dtype.type(dense[p, v]) == d[v]


def test_methods_and_formats_agree_bit_for_bit():
    A = directed(60, 300, 2)
    G = jsp.prepare(A, for_="sssp")
    want = jsp.sssp(A, 0, method="bellman_ford", deterministic=True)
    for result in (
        jsp.sssp(G, 0, deterministic=True),
        jsp.sssp(A, 0, delta=1.5, deterministic=True),
        jsp.sssp(A.asformat("coo"), 0, deterministic=True),
        jax.jit(lambda G: jsp.sssp(G, 0, delta=0.25, deterministic=True))(G),
    ):
        np.testing.assert_array_equal(result.distances, want.distances)
        np.testing.assert_array_equal(result.parents, want.parents)


def test_one_compilation_for_all_sources_and_all_graphs_of_a_shape():
    @jax.jit
    @chex.assert_max_traces(n=1)
    def run(G, source):
        return jsp.bfs(G, source).levels, jsp.sssp(G, source).distances

    for seed in range(3):
        rng = np.random.default_rng(seed)
        A = jsp.from_edges(rng.integers(0, 20, 50), rng.integers(0, 20, 50), shape=(20, 20), nse=50)
        G = jsp.prepare(A, for_=("bfs", "sssp"), symmetric=False)
        for source in range(4):
            levels, _ = run(G, source)
            np.testing.assert_array_equal(levels, verify.levels_of(A, source))


def test_conditions_of_bfs():
    A = jsp.from_networkx(nx.path_graph(8))
    for G in (A, jsp.prepare(A, for_="bfs")):

        def last(until, G=G):
            return int(jsp.bfs(G, 0, until=until).levels.max())

        assert last(jsp.until.reached(3)) == 3
        assert last(jsp.until.max_iterations(2)) == 2
        assert last(jsp.until.reached(5) | jsp.until.max_iterations(4)) == 4
        assert last(jsp.until.reached(3) & jsp.until.reached(5)) == 5
        assert last(jsp.until.unchanged()) == 7
        jitted = jax.jit(lambda G, v: jsp.bfs(G, 0, until=jsp.until.reached(v)).levels.max())
        assert int(jitted(G, 6)) == 6


def test_conditions_of_sssp_settle_exactly_what_is_nearer():
    A = directed(50, 250, 3)
    full = np.asarray(jsp.sssp(A, 0).distances)
    target = int(np.argsort(np.where(np.isfinite(full), full, -1))[-10])
    want = np.where(full <= full[target], full, np.inf)
    for G in (A, jsp.prepare(A, for_="sssp")):
        got = jsp.sssp(G, 0, until=jsp.until.reached(target))
        np.testing.assert_array_equal(got.distances, want)
        verify.tree(A, 0, got.parents, np.isfinite(want))


def test_an_array_of_sources_and_vmap():
    A = directed()
    G = jsp.prepare(A, for_=("bfs", "sssp"))
    sources = jnp.array([0, 7, 3])
    levels = jsp.bfs(G, sources).levels
    mapped = jax.jit(jax.vmap(lambda s: jsp.sssp(G, s).distances))(sources)
    for k, s in enumerate(sources.tolist()):
        np.testing.assert_array_equal(levels[k], verify.levels_of(A, s))
        np.testing.assert_array_equal(mapped[k], jsp.sssp(A, s).distances)


def test_negative_edges_and_cycles():
    A = jsp.from_edges([0, 1, 0], [1, 2, 2], [4.0, -3.0, 2.0], shape=(3, 3))
    assert jsp.sssp(A, 0).distances.tolist() == [0, 4, 1]
    assert jsp.sssp(jsp.prepare(A, for_="sssp"), 0).distances.tolist() == [0, 4, 1]
    cycle = jsp.from_edges([0, 1, 2], [1, 2, 1], [1.0, -3.0, 2.0], shape=(3, 3))
    for G in (cycle, jsp.prepare(cycle, for_="sssp")):
        for call in (lambda G: jsp.sssp(G, 0), lambda G: jsp.sssp(G, [2, 0], parents=False)):
            with pytest.raises(jsp.NegativeCycleError, match="sssp: a cycle of negative length"):
                call(G)
            result = jax.jit(call)(G)
            assert not result.converged.all()
            with pytest.raises(ValueError, match="a negative cycle is reachable"):
                jsp.check(result)
        with pytest.raises(jsp.NegativeCycleError):
            jsp.all_pairs_shortest_path_length(G, weighted=True)
        assert not bool(jsp.sssp(G, 0, max_steps=2).converged)
    with pytest.raises(ValueError, match="negative weights need method='bellman_ford'"):
        jsp.sssp(A, 0, delta=1.0)


def test_integer_lengths_clamp_and_tell():
    top = np.iinfo(np.int32).max
    A = jsp.from_edges([0, 1], [1, 2], np.array([top - 5, 9], np.int32), shape=(4, 4))
    result = jsp.sssp(A, 0)
    assert result.distances.tolist() == [0, top - 5, top, top]
    assert bool(result.overflow)
    assert not bool(jsp.sssp(A, 1).overflow)
    for run in (lambda f: f, jax.jit):
        pairs = run(lambda A: jsp.all_pairs_shortest_path_length(A, weighted=True))(A)
        np.testing.assert_array_equal(pairs.lengths[0], result.distances)
        with pytest.raises(ValueError, match="overflow"):
            jsp.check(pairs)
    jsp.check(jsp.all_pairs_shortest_path_length(A))


@pytest.mark.parametrize(
    "method", ["native", "delta_stepping", "bellman_ford", "relaxation", "sharded"]
)
def test_a_weight_that_is_the_largest_integer(method):
    """It counts as infinity, and `overflow` says where that may have made a length wrong."""
    top = np.iinfo(np.int32).max
    A = jsp.from_edges([0, 1, 0], [1, 2, 2], np.zeros(3, np.int32), shape=(3, 3))
    for weights, distances, overflow in (
        ((5, top, 9), [0, 5, 9], False),
        ((5, 6, top), [0, 5, 11], False),
        ((5, top, top), [0, 5, top], True),
        ((top, 1, 9), [0, top, 9], True),
        ((-5, top, top - 6), [0, -5, top - 6], False),
        ((-5, top, top - 2), [0, -5, top - 2], True),
    ):
        if min(weights) < 0 and method == "delta_stepping":
            continue
        B = A.with_edge_data(np.array(weights, np.int32))
        if method == "sharded":
            found = jsp.sssp(jsp.shard(B, jax.make_mesh((1,), ("x",))), 0)
        else:
            found = jsp.sssp(B, 0, method=method)
        assert found.distances.tolist() == distances
        assert bool(found.overflow) == overflow, weights


def test_pagerank_against_networkx():
    G = nx.gnp_random_graph(60, 0.05, seed=4, directed=True)
    p = {v: float(v % 3) for v in G}
    A = jsp.from_networkx(G)
    want = nx.pagerank(G, tol=1e-9, personalization=p, dangling=p)
    for H in (A, jsp.prepare(A, for_="pagerank")):
        got = jsp.pagerank(H, tol=1e-7, personalization=jnp.asarray(list(p.values())))
        np.testing.assert_allclose(got.scores, list(want.values()), atol=1e-6)
        assert bool(got.converged)
        few = jsp.pagerank(H, tol=1e-7, max_iterations=2)
        assert int(few.iterations) == 2 and not bool(few.converged)
        assert int(jsp.pagerank(H, tol=1.0, min_iterations=5).iterations) == 5


@pytest.mark.fast
def test_bad_input_is_named():
    A = directed()
    wide = jsp.from_dense(np.ones((2, 3), np.float32))
    for algorithm in (jsp.bfs, jsp.sssp):
        with pytest.raises(ValueError, match=r"`source` must lie in \[0, 40\); got 40"):
            algorithm(A, 40)
        with pytest.raises(ValueError, match=r"`source` must lie in \[0, 40\); got -1"):
            algorithm(A, -1)
        with pytest.raises(TypeError, match="`source` must be an integer"):
            algorithm(A, 0.5)
        with pytest.raises(ValueError, match=r"square matrix; got shape \(2, 3\)"):
            algorithm(wide, 0)
        with pytest.raises(TypeError, match="needs a sparse matrix or a Graph"):
            algorithm(np.eye(3), 0)
        with pytest.raises(ValueError, match="understands .*; got residual"):
            algorithm(A, 0, until=jsp.until.residual(1e-3))
        with pytest.raises(TypeError, match="`until` must be made of"):
            algorithm(A, 0, until=3)
    nan = A.with_data(A.data.at[4].set(jnp.nan))
    with pytest.raises(ValueError, match="NaN; the one in slot 4"):
        jsp.sssp(nan, 0)
    with pytest.raises(ValueError, match="NaN; the one in slot 4"):
        jsp.prepare(nan, for_="sssp")
    with pytest.raises(ValueError, match="`delta` must be positive"):
        jsp.sssp(A, 0, delta=0.0)
    negative = A.with_data(A.data.at[2].set(-1.0))
    for make in (lambda: jsp.pagerank(negative), lambda: jsp.prepare(negative, for_="pagerank")):
        with pytest.raises(ValueError, match="must be finite and >= 0; slot 2"):
            make()
    with pytest.raises(ValueError, match="`damping` must lie in"):
        jsp.pagerank(A, 1.5)
    with pytest.raises(ValueError, match="`personalization` must have shape"):
        jsp.pagerank(A, personalization=jnp.ones(3))
    with pytest.raises(ValueError, match="`for_` must be among"):
        jsp.prepare(A, for_="flight")
    with pytest.raises(ValueError, match="outside of jit"):
        jax.jit(lambda A: jsp.prepare(A).out.data)(A)


@pytest.mark.fast
def test_a_source_out_of_range_under_jit_reaches_nothing():
    A = directed()
    for G in (A, jsp.prepare(A, for_=("bfs", "sssp"))):
        levels = jax.jit(lambda G, s: jsp.bfs(G, s))
        lengths = jax.jit(lambda G, s: jsp.sssp(G, s))
        for s in (-1, 40, 2**31 - 1, -(2**31)):
            assert (levels(G, s).levels == -1).all() and (levels(G, s).parents == -1).all()
            assert jnp.isinf(lengths(G, s).distances).all()


def test_gradients_of_the_algorithms_against_differences():
    A = directed(25, 90, 5)
    with jax.enable_x64():
        A = A.astype(jnp.float64)

        def paths(data):
            d = jsp.sssp(A.with_data(data), 0, parents=False).distances
            return jnp.where(jnp.isfinite(d), d, 0) @ jnp.arange(25.0)

        def ranks(data, p):
            result = jsp.pagerank(
                A.with_data(data), tol=1e-13, max_iterations=1000, personalization=p
            )
            return result.scores @ jnp.arange(25.0)

        rng = np.random.default_rng(0)
        data = A.data + jnp.asarray(rng.uniform(0, 0.4, A.nse))  # away from ties
        jax.test_util.check_grads(paths, (data,), order=1, eps=1e-6)
        p = jnp.asarray(rng.uniform(0.5, 1, 25))
        jax.test_util.check_grads(ranks, (data, p), order=1, eps=1e-5)


def test_nothing_leaves_the_device_and_nothing_is_called_back():
    A = directed()
    G = jsp.prepare(A, for_=PURPOSES)
    run = jax.jit(lambda G, s: (jsp.bfs(G, s), jsp.sssp(G, s), jsp.pagerank(G)))
    source = jnp.int32(0)
    text = run.lower(G, source).compile().as_text()
    targets = re.findall(r'custom_call_target="([^"]*)"', text)
    assert "callback" not in text and all(name.startswith("jaxspv_") for name in targets)
    jax.block_until_ready(run(G, source))
    with jax.transfer_guard("disallow"):
        jax.block_until_ready(run(G, source))


def test_explain_tells_what_prepare_would_gain():
    A = directed()
    assert "prepare(A, for_='bfs')" in str(jsp.explain("bfs", A))
    G = jsp.prepare(A, for_=PURPOSES)
    plan = str(jsp.explain(jsp.sssp, G))
    assert any(f"cpu/{form} on CPUs" in plan for form in ("native", "delta_stepping"))
    assert "xla/pull" in str(jsp.explain("pagerank", G))
    with pytest.raises(ValueError, match="`op` must be a function or the name of one"):
        jsp.explain("teleport", G)


def test_bfloat16_weights_prepare_and_refuse_nan():
    lengths = jnp.array([1, 2, 5, 1], jnp.bfloat16)
    A = jsp.from_edges([0, 1, 0, 2], [1, 2, 2, 3], lengths, shape=(5, 5))
    for graph in (A, jsp.prepare(A, for_=("sssp", "bfs"))):
        distances = jsp.sssp(graph, 0).distances
        assert distances.dtype == jnp.bfloat16
        assert distances.astype(float).tolist() == [0, 1, 3, 4, np.inf]
    with pytest.raises(ValueError, match="NaN"):
        jsp.sssp(A.with_data(A.data.at[0].set(jnp.nan)), 0)


def test_boolean_edges_have_length_one():
    A = jsp.from_edges([0, 1, 0, 2], [1, 2, 2, 3], np.ones(4, bool), shape=(5, 5))
    for graph in (A, jsp.prepare(A, for_=("sssp", "bfs"))):
        distances = jsp.sssp(graph, 0).distances
        assert distances.dtype == jnp.int32
        assert distances[:4].tolist() == jsp.bfs(graph, 0).levels[:4].tolist() == [0, 1, 1, 2]
        assert distances[4] == np.iinfo(np.int32).max
