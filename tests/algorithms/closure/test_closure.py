"""`closure`: its ways agree with one another and with the inverse of a matrix, and refuse."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jaxspv as jsp

S = jsp.semirings


def acyclic(seed, n=9, dense=0.4):
    """A random acyclic matrix whose vertices are in no order, and its float64 array."""
    rng = np.random.default_rng(seed)
    D = np.triu(rng.random((n, n)) < dense, 1) * rng.uniform(0.2, 0.9, (n, n))
    order = rng.permutation(n)
    return jsp.from_dense(D[np.ix_(order, order)].astype(np.float32)), D[np.ix_(order, order)]


def layers(steps, states):
    """A chain of complete layers, whose plan has rows that share their sources."""
    n = steps * states
    D = np.kron(np.eye(steps, k=1), np.ones((states, states)))
    D *= np.random.default_rng(0).uniform(0.1, 0.3, (n, n))
    return jsp.from_dense(D.astype(np.float32)), D


def hubs(n=60):
    """A sparse graph whose vertices all lead to two of them: its pieces are cut by edges."""
    D = np.triu(np.random.default_rng(0).random((n, n)) < 1 / n, 1)
    D[: n // 2, n // 2] = D[:-1, -1] = True
    return jsp.from_dense((D * 0.2).astype(np.float32)), D * 0.2


def star(a):
    return 1 / (1 - a)


def eliminated(A):
    """The closure by elimination of an acyclic graph, whose pattern is traced."""
    run = jax.jit(lambda A, x0: jsp.closure(A, "plus_times", start=x0, star=star).x)
    return lambda w, x0: run(A.with_data(w), x0)


WAYS = {
    "levels": {},
    "elimination": {"star": star},
    "steps": {"until": jsp.until.max_iterations(12)},
    "until unchanged": {"until": jsp.until.unchanged()},
    "until small": {"until": jsp.until.residual(1e-9) | jsp.until.max_iterations(100)},
}
GRAPHS = [acyclic(0), acyclic(2, dense=0.05), layers(4, 3), hubs()]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("graph", range(len(GRAPHS)))
def test_ways_agree_on_acyclic_graphs(way, graph):
    A, D = GRAPHS[graph]
    n = len(D)
    want = np.linalg.inv(np.eye(n) - D)

    def call(A, start):
        return jsp.closure(A, "plus_times", start=start, **WAYS[way])

    call = jax.jit(call, static_argnums=1) if way == "elimination" else call  # else: levels
    found = call(A, 2)
    np.testing.assert_allclose(found.x, want[2], 1e-5, 1e-7)
    assert bool(found.converged) == (way != "steps")
    np.testing.assert_allclose(call(A, None).x, want.sum(0), 1e-5)
    x0 = np.linspace(-1, 1, n).astype(np.float32)
    found = jax.jit(lambda w: jsp.closure(A.with_data(w), "plus_times", start=x0, **WAYS[way]).x)
    np.testing.assert_allclose(found(A.data), x0 @ want, 1e-4, 1e-5)
    lanes = jax.vmap(found)(jnp.stack([A.data, 0 * A.data]))
    np.testing.assert_allclose(lanes[1], x0, 1e-6)


@pytest.mark.parametrize("way, graph", [("levels", 2), ("levels", 3), *((w, 0) for w in WAYS)])
def test_gradients(way, graph):
    A, D = GRAPHS[graph]
    with jax.enable_x64(True):
        A = A.with_data(A.data.astype(np.float64))
        x0 = jnp.linspace(0.5, 1, len(D))

        def f(w, x0):
            return jsp.closure(A.with_data(w), "plus_times", start=x0, **WAYS[way]).x

        if way == "elimination":  # of a traced pattern: else levels serve
            f = eliminated(A)

        modes = ["fwd", "rev"]
        check_grads(jax.jit(f), (A.data, x0), 1, modes, eps=1e-5, rtol=1e-4, atol=1e-5)
        if "until " not in way:
            check_grads(lambda w: f(w, x0), (A.data,), 2, eps=1e-4, rtol=1e-3, atol=1e-4)


def test_graphs_with_cycles():
    rng = np.random.default_rng(3)
    D = rng.uniform(0, 0.15, (6, 6))
    A = jsp.from_dense(D.astype(np.float32))
    want = np.linalg.inv(np.eye(6) - D)[1]
    for way in ({}, {"star": star}, {"until": jsp.until.residual(1e-8)}):
        np.testing.assert_allclose(jsp.closure(A, "plus_times", start=1, **way).x, want, 1e-5)

        def total(w, way=way):
            return jsp.closure(A.with_data(w), "plus_times", start=1, **way).x.sum()

        def dense(w):
            return jnp.linalg.inv(jnp.eye(6) - A.with_data(w).todense())[1].sum()

        np.testing.assert_allclose(jax.grad(total)(A.data), jax.grad(dense)(A.data), 1e-4)
    for semiring, M in (("plus_max", A), ("plus_times", A.astype(np.int32))):
        with pytest.raises(ValueError, match="has cycles, and the addition"):
            jsp.closure(M, semiring, start=jnp.ones(6, M.dtype))
        with pytest.raises(ValueError, match="traced pattern"):
            jax.jit(lambda M, s=semiring: jsp.closure(M, s, start=jnp.ones(6, M.dtype)).x)(M)
    stopped = jsp.closure(A, "plus_times", start=1, until=jsp.until.residual(0.0) | jsp.until.max_iterations(2))  # fmt: skip  # noqa: E501
    assert not bool(stopped.converged) and int(stopped.iterations) == 2


def cyclic(seed, signed=False, n=7):
    """A random matrix with cycles, over which sums converge."""
    rng = np.random.default_rng(seed)
    D = rng.uniform(-0.3 if signed else 0.05, 0.3, (n, n)) * (rng.random((n, n)) < 0.6)
    assert np.abs(np.linalg.eigvals(np.abs(D))).max() < 0.9
    return D


@pytest.mark.parametrize("signed", [True, False])
def test_the_star_of_plus_times(signed):
    D = cyclic(0, signed)
    A, want = jsp.from_dense(D), np.linalg.inv(np.eye(7) - D)
    found = jax.jit(lambda A: jsp.closure(A, "plus_times", start=2))(A)
    np.testing.assert_allclose(found.x, want[2], 1e-5, 1e-6)
    np.testing.assert_allclose(jsp.closure(A, "plus_times").x, want.sum(0), 1e-5, 1e-6)
    assert bool(found.converged)
    turned = D * np.exp(1j * np.arange(7))
    found = jsp.closure(jsp.from_dense(turned), "plus_times", start=2).x
    np.testing.assert_allclose(found, np.linalg.inv(np.eye(7) - turned)[2], 1e-5, 1e-6)


def test_the_star_of_log_plus():
    D = cyclic(1)
    A = jsp.from_dense(D)
    with np.errstate(divide="ignore"):
        want = np.log(np.linalg.inv(np.eye(7) - D)[2])
    found = jsp.closure(A.with_data(jnp.log(A.data)), "log_plus", start=2)
    np.testing.assert_allclose(found.x, want, 1e-5, 1e-5)
    assert bool(found.converged)
    shares = jax.grad(lambda w: jsp.closure(A.with_data(w), "log_plus", start=2).x[3])(
        jnp.log(A.data)
    )  # how often paths from 2 to 3 take each edge
    inverse = np.linalg.inv(np.eye(7) - D)
    row, col = (np.asarray(v) for v in A.rowcol())
    times = inverse[2, row] * D[row, col] * inverse[col, 3] / inverse[2, 3]
    np.testing.assert_allclose(shares, times, 1e-4, 1e-6)


@pytest.mark.parametrize("semiring", ["plus_times", "log_plus"])
def test_gradients_of_stars(semiring):
    with jax.enable_x64(True):
        A = jsp.from_dense(cyclic(2))
        w = jnp.log(A.data) if semiring == "log_plus" else A.data

        def f(w, x0):
            return jsp.closure(A.with_data(w), semiring, start=x0).x

        x0 = jnp.linspace(0.5, 1, 7)
        check_grads(jax.jit(f), (w, x0), 2, ["fwd", "rev"], eps=1e-4, rtol=1e-3, atol=1e-4)


def test_sums_that_diverge_are_infinite_where_they_reach():
    """0 -> 1 <-> 2 with a cycle of weight 2 x 1/2 = 1, and 3 -> 3."""
    A = jsp.from_edges([0, 1, 2, 3], [1, 2, 1, 3], [0.5, 2.0, 0.5, 0.5], shape=(5, 5))
    logs = A.with_data(jnp.log(A.data))
    for M, semiring, zero, one, two in (
        (A, "plus_times", 0, 1, 2),
        (logs, "log_plus", -np.inf, 0, np.log(2)),
    ):
        found = jsp.closure(M, semiring, start=0)
        assert found.x.tolist() == [one, np.inf, np.inf, zero, zero]
        assert not bool(found.converged)
        found = jsp.closure(M, semiring, start=3)
        np.testing.assert_allclose(found.x, [zero, zero, zero, two, zero], 1e-6)
        assert bool(found.converged)
    alternating = jsp.from_edges([0], [0], [-2.0], shape=(1, 1))
    found = jsp.closure(alternating, "plus_times", start=0)
    assert np.isnan(found.x[0]) and not bool(found.converged)
    solved = jsp.closure(alternating, "plus_times", start=0, star=star)
    np.testing.assert_allclose(solved.x, [1 / 3], 1e-6)


def test_shortest_paths_with_ids_on_a_cycle():
    A = jsp.from_edges([0, 0, 1, 2], [1, 2, 2, 0], [1.0, 5.0, 1.0, 1.0], shape=(3, 3)).trim()
    s = S.argmin_plus()
    found = jsp.closure(A.with_data(s.lift(A.data)), s, start=0)
    assert found.x[0].tolist() == [0, 1, 2] and bool(found.converged)
    slots = {(int(i), int(j)): k for k, (i, j) in enumerate(zip(*A.rowcol(), strict=True))}
    assert found.x[1].tolist() == [2**31 - 1, slots[0, 1], slots[1, 2]]

    def far(w):
        return jsp.closure(A.with_data(s.lift(w)), s, start=0).x[0][2]

    grad = jax.grad(far)(A.data)
    assert {k: float(grad[v]) for k, v in slots.items()} == {
        (0, 1): 1.0, (1, 2): 1.0, (2, 0): 0.0, (0, 2): 0.0
    }  # fmt: skip


def test_fixpoints_of_tuples_are_closures():
    A = jsp.from_edges([0, 0, 1, 2], [1, 2, 2, 0], [1.0, 5.0, 1.0, 1.0], shape=(3, 3)).trim()
    s = S.argmin_plus()
    T, none = A.with_data(s.lift(A.data)), 2**31 - 1
    x0 = jnp.array([0, np.inf, np.inf]), jnp.full(3, none)
    found = jsp.fixpoint(T, x0, s, monotone=True)
    assert found.x[0].tolist() == [0, 1, 2] and bool(found.converged) and int(found.status) == 0
    one = jsp.fixpoint(T, x0, s, closure=True, until=jsp.until.max_iterations(1))
    assert one.x[0].tolist() == [0, 1, 5] and int(one.iterations) == 1
    for wrong in ({}, {"monotone": True, "update": jnp.minimum}, {"sums": {"s": jnp.abs}}):
        with pytest.raises(ValueError, match="call `vxm` in"):
            jsp.fixpoint(T, x0, s, **wrong)


def test_the_likeliest_proofs_on_a_cycle():
    logs = np.log(np.array([0.9, 0.5, 0.4], np.float32))
    A = jsp.from_edges([0, 0, 1, 2], [1, 2, 2, 0], shape=(3, 3)).trim()
    row, col = (v.tolist() for v in A.rowcol())
    fact = np.array([{(0, 1): 0, (1, 2): 1, (2, 0): 1, (0, 2): 2}[e] for e in zip(row, col, strict=True)])  # fmt: skip  # noqa: E501

    def levels(logs):
        s = S.top_k_proofs(3, logs)
        return jsp.closure(A.with_data(s.lift(fact, logs)), s, start=0).x[0]

    found = np.exp(levels(logs))
    np.testing.assert_allclose(found[2], [0.45, 0.4, 0.2], 1e-5)  # {0, 1}, {2}, {1, 2}
    np.testing.assert_allclose(found[0][0], 1)
    grad = jax.grad(lambda v: jnp.exp(levels(v)[2]).sum())(jnp.asarray(logs))
    np.testing.assert_allclose(grad, [0.45, 0.65, 0.6], 1e-5)


def test_a_chain_by_all_its_paths():
    """Marginals are the gradient of the log sum; k best and entropy are those of the list."""
    rng = np.random.default_rng(4)
    steps, states = 4, 3
    A, _ = layers(steps, states)
    row, col = (np.asarray(v) for v in A.rowcol())
    w = rng.normal(size=A.nse).astype(np.float32)
    slot = {e: k for k, e in enumerate(zip(row.tolist(), col.tolist(), strict=True))}
    paths = [
        [
            slot[t * states + a, (t + 1) * states + b]
            for t, (a, b) in enumerate(itertools.pairwise(p))
        ]
        for p in itertools.product(range(states), repeat=steps)
    ]
    weight = np.array([w[p].sum(dtype=float) for p in paths])
    level = np.log(np.exp(weight).sum())
    share = np.exp(weight - level)
    first, last = np.arange(steps * states) < states, np.arange(steps * states) >= 9

    def closed(s, w, lift):
        one, zero = (jax.tree.map(np.asarray, v) for v in (s.one.value, s.add.identity.value))
        x0 = jax.tree.map(
            lambda o, z: jnp.asarray(
                np.where(first.reshape(-1, *(1,) * o.ndim), o, z),
                jnp.float32 if o.dtype.kind == "f" else o.dtype,
            ),
            one,
            zero,
        )
        x = jsp.closure(A.with_data(lift(w)), s, start=x0).x
        return s.add.reduce(jax.tree.map(lambda v: v[last], x), 0)

    entropy = S.entropy()
    total, spread = closed(entropy, w, entropy.lift)
    np.testing.assert_allclose([total, spread], [level, -(share * np.log(share)).sum()], 1e-5)
    marginals = jax.grad(lambda w: closed(entropy, w, entropy.lift)[0])(jnp.asarray(w))
    want = np.zeros(A.nse)
    for p, q in zip(paths, share, strict=True):
        want[p] += q
    np.testing.assert_allclose(marginals, want, 1e-4)
    best = S.k_best(5)
    costs = closed(best, -w, best.lift)[0]
    np.testing.assert_allclose(-costs, np.sort(weight)[::-1][:5], 1e-5)


def test_what_is_refused():
    A, _ = GRAPHS[0]
    with pytest.raises(ValueError, match="must be square"):
        jsp.closure(jsp.from_dense(np.ones((2, 3))))
    with pytest.raises(ValueError, match=r"vertex in \[0, 9\)"):
        jsp.closure(A, start=9)
    with pytest.raises(ValueError, match="leaves of shape"):
        jsp.closure(A, start=jnp.zeros(4))
    with pytest.raises(ValueError, match="understands unchanged"):
        jsp.closure(A, until=jsp.until.reached(1))
    large = jsp.from_edges([0, 1], [1, 0], [0.1, 0.1], shape=(3000, 3000))
    with pytest.raises(ValueError, match="2048 vertices at most"):
        jsp.closure(large, "plus_times", star=star)
    with pytest.raises(ValueError, match="is not known: give `one`"):
        jsp.closure(A, "min_first", start=0)
    assert jsp.closure(jsp.from_edges([], [], shape=(0, 0))).x.shape == (0,)
    lone = jsp.from_edges([], [], shape=(3, 3))
    assert jsp.closure(lone, "plus_times", start=1).x.tolist() == [0, 1, 0]


def test_dtypes_are_those_of_a_sum():
    A, D = GRAPHS[0]
    reached = jsp.closure(A, "or_and", start=2).x
    assert reached.dtype == bool
    np.testing.assert_array_equal(reached, np.linalg.inv(np.eye(9) - D)[2] > 0)
    assert jsp.closure(A.asformat("bittiled"), "or_and", start=2).x.tolist() == reached.tolist()
    s, lengths = S.argmin_plus(), jnp.arange(1, A.nse + 1)
    whole = jsp.closure(A.with_data(s.lift(lengths)), s, start=2).x
    real = jsp.closure(A.with_data(s.lift(lengths.astype(jnp.float32))), s, start=2).x
    jax.tree.map(np.testing.assert_array_equal, whole, real)
    with pytest.raises(TypeError, match=r"dtypes of `x0 \+ x0 A`, \['float32'\]; got \['int32'\]"):
        jsp.closure(A, start=jnp.zeros(9, jnp.int32))
    with pytest.raises(ValueError, match="an integer, or x0 itself; got 1.5"):
        jsp.closure(A, start=1.5)


def test_values_that_do_not_fit_are_told():
    A, _ = GRAPHS[0]
    s = S.k_best(2)
    for call in (
        lambda: jsp.closure(A, s, start=0),
        lambda: jsp.vxm(tuple(v[:, :2] for v in (jnp.ones((9, 2)),) * 3), A, s),
        lambda: jsp.mxm(A, A, s),
        lambda: jsp.automata.automaton([0, 0], [1, 1], [1, 1], final=1).total(s),
    ):
        with pytest.raises(TypeError, match=r"`mul` of .* does not take values .* Its `lift`"):
            call()
    with pytest.raises(TypeError, match=r"`mul` of Semiring\(min_plus\) does not take values"):
        jsp.closure(A.with_data((A.data, A.data)), start=0)
    with pytest.raises(TypeError, match=r"does not take values \(float32.* and float32"):
        jsp.ewise_add(A.with_data((A.data, A.data)), A, S.argmin_plus().add)
    with pytest.raises(TypeError, match="the monoid `plus` takes numbers"):
        jsp.reduce(A.with_data((A.data, A.data)), "plus")
    total = jsp.monoid(lambda a, b: (a[0] + b[0],), (0.0,))
    pairs = jsp.semiring(total, lambda a, b: (jnp.stack([a[0], b[0]]),), one=(1.0,))
    with pytest.raises(TypeError, match=r"`mul` must give shapes as those of x"):
        jsp.closure(A.with_data((A.data,)), pairs, start=0)
    spread = S.expectation()
    with pytest.raises(ValueError, match="needs an idempotent addition"):
        x0 = jnp.zeros(9), jnp.zeros(9)
        jsp.fixpoint(A.with_data(spread.lift(A.data, A.data)), x0, spread, monotone=True)


def test_graphs_take_tuples_as_their_matrix_does():
    A, _ = GRAPHS[0]
    s = S.argmin_plus()
    G = jsp.prepare(A, for_=("mxv", "fixpoint"))
    want = jsp.closure(A.with_data(s.lift(A.data)), s, start=2).x
    found = jsp.closure(G.with_data(s.lift(G.data)), s, start=2).x
    jax.tree.map(np.testing.assert_array_equal, found, want)
    np.testing.assert_array_equal(jsp.closure(G, start=2).x, want[0])


def test_sharded_graphs_are_refused_with_the_way_out():
    A, _ = GRAPHS[0]
    s, x0 = S.argmin_plus(), (jnp.zeros(9), jnp.arange(9, dtype=jnp.int32))
    G, T = (jsp.shard(M, jax.make_mesh((1,), ("d",))) for M in (A, A.with_data(s.lift(A.data))))
    for call in (
        lambda: jsp.closure(G, start=0),
        lambda: jsp.fixpoint(G, x0, s, monotone=True),
        lambda: jsp.fixpoint(G, x0[0], "min_plus", monotone=True),
        lambda: jsp.ewise_add(G, G, s.add),
        lambda: jsp.closure(T, s, start=0),
        lambda: jsp.fixpoint(T, x0, s, monotone=True),
        lambda: jsp.ewise_add(T, T, s.add),
        lambda: jsp.reduce(T, s.add),
        lambda: jsp.bfs(T, 0),
    ):
        with pytest.raises((TypeError, ValueError, NotImplementedError), match=r"`unshard\(\)`"):
            call()


def test_lanes_of_a_chain_with_their_gradients():
    """Edges in the order of the pieces: lanes are read piece by piece."""
    A, _ = layers(5, 3)

    def total(w):
        return jsp.closure(A.with_data(w), "log_plus", start=1).x[-3:].max()

    w = jnp.asarray(np.random.default_rng(0).normal(size=(2, 2, A.nse)), jnp.float32)
    one = [[jax.value_and_grad(total)(v) for v in u] for u in w]
    for order in (
        jax.vmap(jax.vmap(jax.value_and_grad(total))),
        lambda w: jax.vmap(jax.value_and_grad(lambda u: jax.vmap(total)(u).sum()))(w),
    ):
        found = jax.jit(order)(w)
        slopes = np.array([[v[1] for v in u] for u in one])
        np.testing.assert_allclose(found[1], slopes, 1e-5, 1e-6)
    dots = jax.vmap(lambda v: jax.jvp(total, (v,), (jnp.ones_like(v),))[1])(w[0])
    np.testing.assert_allclose(dots, slopes[0].sum(1), 1e-5)
    np.testing.assert_allclose(jax.hessian(total)(w[0, 0]).sum(), 0, atol=1e-4)
