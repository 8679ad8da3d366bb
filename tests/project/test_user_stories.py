"""What users want to write, with the acceptance line of each story as its test."""

import functools

import chex
import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp

# ---- Eccentricities: jit and vmap of a search ----


def test_bfs_from_64_sources_of_rmat_16_compiles_once_and_stays_on_the_device():
    A = jsp.generators.rmat(jax.random.key(0), 16, edge_factor=8)
    G = jsp.prepare(A, for_="bfs")

    @jax.jit
    @chex.assert_max_traces(n=1)
    def eccentricity(G, sources):
        levels = jax.vmap(lambda s: jsp.bfs(G, s).levels)(sources)
        return levels, levels.max(axis=1)

    degree = np.diff(np.asarray(G.out.indptr))
    sources = np.random.default_rng(0).choice(np.flatnonzero(degree), 64, replace=False)
    at = jax.device_put(sources.astype(np.int32))
    other = jax.device_put(np.flip(sources).astype(np.int32))
    with jax.transfer_guard("disallow"):
        levels, far = jax.block_until_ready(eccentricity(G, at))
        again, _ = jax.block_until_ready(eccentricity(G, other))
    np.testing.assert_array_equal(np.flip(again, 0), levels)
    want = sp.csgraph.dijkstra(A.to_scipy(), unweighted=True, indices=sources)
    want = np.where(np.isinf(want), -1, want).astype(np.int32)
    np.testing.assert_array_equal(levels, want)
    np.testing.assert_array_equal(far, want.max(1))


# ---- Road costs from observed travel times ----


def town(dtype):
    """A grid of 25 crossings and one that no road leads to; two features of each road."""
    road = jsp.generators.grid2d(jax.random.key(0), 5, drop=0.0)
    row, col = (np.asarray(i) for i in road.rowcol())
    A = jsp.from_edges(row, col, np.zeros(len(row)), shape=(26, 26)).astype(dtype)
    features = np.random.default_rng(0).uniform(0, 1, (A.nse, 3))
    return A, jnp.asarray(features, dtype)


def travel(A, features, theta, origins):
    costs = A.with_data(jax.nn.softplus(features @ theta))
    return jsp.sssp(costs, origins).distances


@pytest.mark.parametrize("dtype,rtol", [("float32", 1e-3), ("float64", 1e-6)])
def test_slopes_of_travel_times_match_differences(dtype, rtol):
    with jax.enable_x64(dtype == "float64"):
        A, features = town(dtype)
        origins = jnp.asarray([0, 7, 12])

        @jax.jit
        def loss(theta):
            d = travel(A, features, theta, origins)
            return jnp.mean((d[jnp.arange(3), jnp.asarray([24, 20, 3])] - 3.0) ** 2)

        theta = jnp.asarray([0.3, -0.2, 0.8], dtype)
        slope = jax.grad(loss)(theta)
        eps = 1e-2 if dtype == "float32" else 1e-6
        steps = eps * jnp.eye(3, dtype=dtype)
        want = jnp.stack([(loss(theta + h) - loss(theta - h)) / (2 * eps) for h in steps])
        np.testing.assert_allclose(slope, want, rtol=rtol, atol=rtol)


def test_learning_road_costs_with_optax_falls_tenfold_in_200_steps():
    optax = pytest.importorskip("optax")
    A, features = town("float32")
    origins = jnp.arange(6)
    observed = travel(A, features, jnp.asarray([1.5, -1.0, 0.5]), origins)
    assert np.isinf(observed[:, 25]).all()  # no road leads there
    rule = optax.adam(3e-2)

    def loss(theta):
        d = travel(A, features, theta, origins)
        reached = jnp.isfinite(observed)
        return jnp.mean((jnp.where(reached, d, 0) - jnp.where(reached, observed, 0)) ** 2)

    @jax.jit
    def step(theta, state):
        value, slope = jax.value_and_grad(loss)(theta)
        move, state = rule.update(slope, state)
        return optax.apply_updates(theta, move), state, value, slope

    theta = jnp.zeros(3)
    state, first = rule.init(theta), None
    for _ in range(200):
        theta, state, value, slope = step(theta, state)
        first = float(value) if first is None else first
        assert np.isfinite(slope).all()
    assert float(value) < first / 10


# ---- Soft paths on a graph without cycles ----


def gibbs(row, col, w, start, goal, temperature):
    """-t log sum exp(-length / t) over all paths, listed; the share of each edge among them."""
    ends, paths = [(start, ())], []
    while ends:
        v, path = ends.pop()
        paths += [path] if v == goal else []
        ends += [(col[e], (*path, e)) for e in np.flatnonzero(row == v)]
    weight = np.array([np.exp(-w[list(path)].sum() / temperature) for path in paths])
    share = np.zeros(len(w))
    for path, of in zip(paths, weight / weight.sum(), strict=True):
        share[list(path)] += of
    return -temperature * np.log(weight.sum()), share


def test_soft_paths_have_edge_marginals_for_slopes():
    rng = np.random.default_rng(0)
    pairs = np.array(
        [(i, j) for i in range(12) for j in range(i + 1, 12) if rng.random() < 0.5 or j == i + 1]
    )
    dag = jsp.from_edges(*pairs.T, shape=(12, 12)).astype(jnp.float32)
    w = jnp.asarray(rng.uniform(0.5, 2, dag.nse), jnp.float32)
    row, col = (np.asarray(i) for i in dag.rowcol())

    def cost(w, temperature=0.1):
        return jsp.soft_sssp(dag.with_data(w), 0, temperature).distances[11]

    value, pull = jax.vjp(cost, w)
    (marginal,) = pull(1.0)
    want, share = gibbs(row, col, np.asarray(w, np.float64), 0, 11, 0.1)
    np.testing.assert_allclose(value, want, rtol=1e-5)
    np.testing.assert_allclose(marginal, share, atol=1e-5)
    flow = np.zeros(12)
    np.add.at(flow, col, np.asarray(marginal))
    np.add.at(flow, row, -np.asarray(marginal))
    np.testing.assert_allclose(marginal[row == 0].sum(), 1, rtol=1e-5)
    np.testing.assert_allclose(flow[1:11], 0, atol=1e-5)  # what comes in goes out
    cold, slope = jax.value_and_grad(cost)(w, 1e-3)
    hard, path = jax.value_and_grad(lambda w: jsp.sssp(dag.with_data(w), 0).distances[11])(w)
    np.testing.assert_allclose(cold, hard, rtol=1e-4)
    np.testing.assert_allclose(slope, path, atol=1e-3)
    for temperature in (1e-2, 1e-4, 1e-8):
        assert np.isfinite(jax.grad(cost)(w, temperature)).all()


# ---- PageRank inside a model ----


def web():
    graph = nx.gnp_random_graph(40, 0.1, seed=1, directed=True)
    for _, _, data in graph.edges(data=True):
        data["weight"] = 1.0
    return graph, jsp.from_networkx(graph)


def test_pagerank_equals_networkx_in_a_model_and_in_batches():
    graph, A = web()
    want = nx.pagerank(graph, tol=1e-10)
    got = jsp.pagerank(A, tol=1e-7).scores
    np.testing.assert_allclose(got, [want[v] for v in graph], atol=1e-6)
    starts = jnp.asarray(np.random.default_rng(0).random((3, 40)), jnp.float32)
    both = jax.jit(jax.vmap(lambda p: jsp.pagerank(A, personalization=p).scores))(starts)
    for k in range(3):
        shares = dict(zip(graph, np.asarray(starts[k]).tolist(), strict=True))
        one = nx.pagerank(graph, personalization=shares, tol=1e-10)
        np.testing.assert_allclose(both[k], [one[v] for v in graph], atol=2e-6)

    def good(w):
        return -jnp.log(jsp.pagerank(A.with_data(jnp.exp(w)), tol=1e-8).scores[:3]).sum()

    w = jnp.linspace(-1, 1, A.nse)
    way = jnp.cos(jnp.arange(A.nse) * 1.0)
    forward = jax.jvp(good, (w,), (way,))[1]
    np.testing.assert_allclose(jnp.vdot(jax.grad(good)(w), way), forward, rtol=1e-4)
    difference = (good(w + 1e-2 * way) - good(w - 1e-2 * way)) / 2e-2
    np.testing.assert_allclose(forward, difference, rtol=1e-2)


def test_programs_may_close_over_a_graph():
    _, A = web()
    assert jax.jit(lambda s: jsp.sssp(A, s).distances)(0)[0] == 0
    assert jax.jit(lambda d: jsp.pagerank(A, d).scores)(0.5).shape == (40,)


def test_memory_of_the_slope_of_pagerank_does_not_grow_with_the_iterations():
    _, A = web()

    def bytes_of(iterations):
        slope = jax.grad(
            lambda d: jsp.pagerank(A.with_data(d), tol=0, max_iterations=iterations).scores[0]
        )
        return jax.jit(slope).lower(A.data).compile().memory_analysis().temp_size_in_bytes

    assert bytes_of(10) == bytes_of(1000)


def test_pagerank_trains_an_equinox_model():
    equinox = pytest.importorskip("equinox")
    optax = pytest.importorskip("optax")
    _, A = web()
    x = jnp.asarray(np.random.default_rng(0).standard_normal((A.nse, 4)), jnp.float32)

    class Rank(equinox.Module):
        mlp: equinox.nn.MLP

        def __call__(self, A, x):
            w = jax.vmap(self.mlp)(x).squeeze(-1)
            return jsp.pagerank(A.with_data(jnp.exp(w))).scores

    model = Rank(equinox.nn.MLP(4, 1, 8, 1, key=jax.random.key(0)))
    good = jnp.asarray([3, 5])
    rule = optax.adam(0.05)

    @equinox.filter_jit
    def step(model, state):
        loss = lambda model: -jnp.log(model(A, x)[good]).sum()  # noqa: E731
        value, slope = equinox.filter_value_and_grad(loss)(model)
        move, state = rule.update(slope, state)
        return equinox.apply_updates(model, move), state, value

    state, values = rule.init(equinox.filter(model, equinox.is_array)), []
    for _ in range(30):
        model, state, value = step(model, state)
        values.append(float(value))
    assert np.isfinite(values).all() and values[-1] < values[0] - 0.3


# ---- A layer of a graph network with attention ----


def attention(A, h, Wq, Wk):
    """Per row softmax of the scores on A's pattern, times h."""
    row, col = A.rowcol()
    q, k = h @ Wq, h @ Wk
    scores = A.with_data(
        A.data
        * jnp.sum(jnp.take(q, row, 0, mode="clip") * jnp.take(k, col, 0, mode="clip"), axis=1)
    )
    total = jsp.mxv(scores, jnp.zeros(A.shape[1]), jsp.semirings.log_plus)
    total = jnp.where(jnp.isfinite(total), total, 0)  # rows without entries
    weights = A.with_data(jnp.exp(scores.data - jnp.take(total, row, mode="clip")))
    return jax.vmap(lambda column: weights @ column, 1, 1)(h)


def dense_attention(D, h, Wq, Wk):
    scores = jnp.where(D != 0, D * ((h @ Wq) @ (h @ Wk).T), -jnp.inf)
    empty = (D == 0).all(1, keepdims=True)
    return jnp.where(empty, 0, jax.nn.softmax(jnp.where(empty, 0, scores), axis=1)) @ h


def test_attention_layer_equals_the_dense_one_with_its_slopes_padded_or_not():
    rng = np.random.default_rng(0)
    D = np.where(rng.random((9, 9)) < 0.3, rng.uniform(0.5, 2, (9, 9)), 0).astype(np.float32)
    D[4] = 0
    A = jsp.from_dense(D)
    wide = jsp.from_edges(*np.nonzero(D), D[D != 0], shape=D.shape, nse=A.nse + 7)
    hs = jnp.asarray(rng.standard_normal((3, 9, 4)), jnp.float32)
    Wq, Wk = (jnp.asarray(rng.standard_normal((4, 2)), jnp.float32) for _ in range(2))
    batch = jax.jit(jax.vmap(attention, (None, 0, None, None)))
    want = jax.jit(jax.vmap(dense_attention, (None, 0, None, None)))(jnp.asarray(D), hs, Wq, Wk)
    np.testing.assert_allclose(batch(A, hs, Wq, Wk), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(batch(wide, hs, Wq, Wk), batch(A, hs, Wq, Wk), rtol=1e-5)

    def loss(layer, M):
        return lambda values, h, Wq, Wk: jnp.sum(jnp.sin(layer(M(values), h, Wq, Wk)))

    args = (hs[0], Wq, Wk)
    every = (0, 1, 2, 3)
    ours = jax.jit(jax.grad(loss(attention, A.with_data), every))(A.data, *args)
    dense = jax.jit(jax.grad(loss(dense_attention, lambda D: D), every))(jnp.asarray(D), *args)
    row, col = A.rowcol()
    np.testing.assert_allclose(ours[0], dense[0][row, col], rtol=1e-3, atol=1e-5)
    for a, b in zip(ours[1:], dense[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    padded = jax.jit(jax.grad(loss(attention, wide.with_data)))(wide.data, *args)
    np.testing.assert_allclose(padded[: A.nse], ours[0], rtol=1e-5)
    assert (padded[A.nse :] == 0).all()


def test_attention_layer_trains_with_optax():
    optax = pytest.importorskip("optax")
    A = jsp.generators.erdos_renyi(jax.random.key(0), 30, m=120)
    h = jax.random.normal(jax.random.key(1), (30, 4))
    goal = attention(A, h, *jax.random.normal(jax.random.key(2), (2, 4, 4)))
    weights = tuple(0.1 * jax.random.normal(jax.random.key(3), (2, 4, 4)))
    rule = optax.adam(0.05)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(weights, state):
        loss = lambda w: jnp.mean((attention(A, h, *w) - goal) ** 2)  # noqa: E731
        value, slope = jax.value_and_grad(loss)(weights)
        move, state = rule.update(slope, state)
        return optax.apply_updates(weights, move), state, value

    state, values = rule.init(weights), []
    for _ in range(100):
        weights, state, value = step(weights, state)
        values.append(float(value))
    assert values[-1] < values[0] / 3


def test_attention_layer_trains_as_a_module_of_flax_nnx():
    nnx = pytest.importorskip("flax.nnx")
    optax = pytest.importorskip("optax")
    A = jsp.generators.erdos_renyi(jax.random.key(0), 20, m=60)
    h = jax.random.normal(jax.random.key(1), (20, 3))
    goal = attention(A, h, *jax.random.normal(jax.random.key(2), (2, 3, 3)))

    class Layer(nnx.Module):
        def __init__(self, A):
            Wq, Wk = 0.1 * jax.random.normal(jax.random.key(3), (2, 3, 3))
            self.values, self.Wq, self.Wk = nnx.Param(A.data), nnx.Param(Wq), nnx.Param(Wk)

        def __call__(self, A, h):
            return attention(A.with_data(self.values[...]), h, self.Wq[...], self.Wk[...])

    model, rule = Layer(A), optax.adam(0.05)

    @nnx.jit
    def step(model, A, state):
        loss = lambda model: jnp.mean((model(A, h) - goal) ** 2)  # noqa: E731
        value, slope = nnx.value_and_grad(loss)(model)
        params = nnx.state(model, nnx.Param)
        move, state = rule.update(slope, state, params)
        nnx.update(model, optax.apply_updates(params, move))
        return state, value

    state, values = rule.init(nnx.state(model, nnx.Param)), []
    for _ in range(60):
        state, value = step(model, A, state)
        values.append(float(value))
    assert values[-1] < values[0] / 3
    assert (model.values[...] != A.data).any()


# ---- A semiring of one's own and a masked product ----

widest = jsp.Semiring(add=jsp.monoids.max_, mul=jnp.minimum)  # the identity is the monoid's


@pytest.mark.long
def test_widest_ways_of_two_edges_and_triangles_under_a_mask():
    graph = nx.gnp_random_graph(40, 0.15, seed=2)
    A = jsp.from_networkx(graph)
    values = jax.random.uniform(jax.random.key(0), (A.nse,))
    D = np.asarray(A.with_data(values).todense())
    two = np.minimum(D[:, :, None], D[None]).max(1)  # absent: 0, below every value

    @jax.jit
    def capacities(values):
        B = A.with_data(values)
        return jsp.mxm(B, B, widest, nse=40 * 40)

    found = capacities(values)
    assert not found.overflow
    np.testing.assert_array_equal(found.todense(), two)
    batch = jax.vmap(lambda v: capacities(v).sum())(jnp.stack([values, 2 * values]))
    np.testing.assert_allclose(batch, [two.sum(), 2 * two.sum()], rtol=1e-5)
    slope = jax.grad(lambda v: capacities(v).sum())(values)
    np.testing.assert_allclose(slope.sum(), found.count, rtol=1e-6)  # each from one edge
    L = jsp.select(A, jsp.operators.tril, -1)
    closed = jsp.mxm(L, L.T, jsp.semirings.plus_pair, mask=jsp.structure(L))
    assert float(closed.sum()) == sum(nx.triangles(graph).values()) / 3
    assert closed.nse <= L.nse  # never the whole product


# ---- NetworkX unchanged: tests/networkx_backend/test_dispatch.py ----
# ---- Ways through a search, looked at; over devices: docs/devices.md, run on 1 and 4 of them ----


@pytest.mark.long
def test_ways_through_a_search_give_the_same_levels_and_can_be_looked_at():
    figure = pytest.importorskip("matplotlib.figure")
    A = jsp.generators.rmat(jax.random.key(0), 7, 8)
    bits, want = A.asformat("bittiled"), jsp.bfs(A, 0, format="csr").levels
    for ways in (("push_csc",), ("push_csc", "push_csr", "pull_csc")):
        got = jsp.bfs(bits, 0, rule=jsp.TileRule(kernels=ways)).levels
        np.testing.assert_array_equal(got, want)
    left, right = figure.Figure().subplots(1, 2)
    bars = [int(bar.get_height()) for bar in jsp.plot.frontier(A, 0, left).patches]
    assert bars == np.bincount(want[want >= 0]).tolist()
    assert "tiles" in jsp.plot.tiles(A, right, nt=32).get_title()
    assert "bfs" in str(jsp.explain("bfs", A, 0))
