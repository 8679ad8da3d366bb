"""fixpoint: loops in NumPy, SciPy's Bellman-Ford and NetworkX as oracles; layers; gradients."""

import functools
import importlib.util
import pathlib

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import oracles
import pytest
import scipy.sparse as sp
import scipy.sparse.csgraph as csgraph
from fixpoint_cases import N, rank, start, weighted

import jaxspv as jsp
from jaxspv._core.eager.programs import PROGRAMS

METHODS = ("dense", "frontier")
EXAMPLE = pathlib.Path(__file__).parents[3] / "examples/fixpoint.py"


def loop(S, x0, add, mul, update, steps):
    """`steps` of the definition, entry by entry."""
    x = np.array(x0)
    for i in range(steps):
        terms = [[] for _ in x]
        for u, v, a in zip(*sp.coo_array(S).coords, sp.coo_array(S).data, strict=True):
            terms[v].append(mul(x[u], a))
        y = np.array([oracles.fold(add, np.array(t, x.dtype)) for t in terms])
        x = update(x, y, i).astype(x.dtype)
    return x


@pytest.mark.fast
@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_shortest_paths_are_those_of_scipy(method, prepared):
    S, A = weighted()
    G = jsp.prepare(A, for_="fixpoint") if prepared else A
    for source in (0, 7):
        found = jsp.fixpoint(G, start(source), jsp.semirings.min_plus, monotone=True, method=method)
        np.testing.assert_array_equal(found.x, csgraph.bellman_ford(S, indices=source))
        assert bool(found.converged) and int(found.status) == 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", ["path", "star", "grid"])
def test_levels_on_graphs_of_few_and_of_many_edges_a_step(shape, method):
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(40, 40))
    graph = {"path": nx.path_graph(300), "star": nx.star_graph(2000), "grid": grid}[shape]
    A = jsp.from_networkx(graph)
    n = A.shape[0]
    x0 = start(1, n, np.int32)
    A = A.with_data(jnp.ones(A.nse, jnp.int32))
    found = jsp.fixpoint(A, x0, jsp.semirings.min_plus, monotone=True, method=method)
    levels = nx.single_source_shortest_path_length(graph, 1)
    assert found.x.tolist() == [levels[v] for v in range(n)]
    assert int(found.iterations) == max(levels.values()) + 1


@pytest.mark.parametrize("method", METHODS)
def test_a_monotone_update_with_the_number_of_the_step(method):
    """Levels by any term that arrives; the update of a reached vertex keeps it."""
    S, A = weighted(seed=4)
    far = np.iinfo(np.int32).max

    def update(old, y, i, sums):
        return jnp.where((old == far) & (y != far), i + 1, old)

    found = jsp.fixpoint(
        A,
        start(5, dtype=np.int32),
        jsp.semirings.min_first,
        update=update,
        monotone=True,
        method=method,
    )
    hops = csgraph.shortest_path(S, unweighted=True, indices=5)
    np.testing.assert_array_equal(found.x, np.where(np.isinf(hops), far, hops))


@pytest.mark.parametrize("method", METHODS)
def test_a_missing_element_passes_nothing_on(method):
    """min_second would bring the weight of every edge, also from elements that are not there."""
    A = jsp.from_edges([0, 1, 3], [1, 2, 2], np.float32([5, 7, 1]), shape=(4, 4))
    found = jsp.fixpoint(A, start(0, 4), jsp.semirings.min_second, monotone=True, method=method)
    assert found.x.tolist() == [0, 5, 7, np.inf]
    found = jsp.fixpoint(A, start(0, 4, np.int32), jsp.semirings.min_secondi, monotone=True)
    assert found.x.tolist() == [0, 0, 1, np.iinfo(np.int32).max]


@pytest.mark.parametrize("method", METHODS)
def test_reachability_of_booleans(method):
    S, A = weighted(seed=1, m=60)
    B = A.with_data(jnp.ones(A.nse, bool))
    x0 = jnp.zeros(N, bool).at[3].set(True)
    found = jsp.fixpoint(B, x0, jsp.semirings.or_and, monotone=True, method=method)
    order = csgraph.breadth_first_order(S, 3, return_predecessors=False)
    assert np.flatnonzero(found.x).tolist() == sorted(order.tolist())


@pytest.mark.parametrize(
    "name,mul,dtype",
    [
        ("plus_times", np.multiply, np.int32),
        ("max_plus", np.add, np.float32),
        ("min_max", np.maximum, np.int32),
        ("plus_second", lambda x, a: a, np.float32),
    ],
)
def test_a_loop_is_its_definition(name, mul, dtype):
    S, A = weighted(seed=2, m=90, high=3)
    A, S = A.with_data(A.data.astype(dtype)), S.astype(dtype)
    x0 = jnp.asarray(np.random.default_rng(0).integers(0, 5, N), dtype)
    extra = jnp.arange(N, dtype=dtype)

    def update(old, y, i, e, sums):
        return jnp.where(y > 50, old, y) + e % 3 - i.astype(dtype) + sums["odd"].astype(dtype)

    def expected(old, y, i):
        return np.where(y > 50, old, y) + np.asarray(extra) % 3 - i + (old > 2).sum()

    found = jsp.fixpoint(
        A,
        x0,
        getattr(jsp.semirings, name),
        update=update,
        operands=(extra,),
        sums={"odd": lambda x, e: x > 2},
        until=jsp.until.max_iterations(3),
    )
    with np.errstate(all="ignore"):
        x = loop(S, x0, name.split("_")[0], mul, expected, 3)
    np.testing.assert_allclose(found.x, x, rtol=1e-6)
    assert int(found.iterations) == 3 and not found.converged


def test_a_monoid_of_the_user():
    """Sums of squares: no scatter, no atomic."""
    S, A = weighted(seed=3, high=3)
    norm = jsp.monoid(lambda x, y: jnp.sqrt(x * x + y * y), 0.0)
    semiring = jsp.semiring(norm, jnp.multiply)
    x0 = jnp.ones(N)
    found = jsp.fixpoint(A, x0, semiring, until=jsp.until.max_iterations(2))
    squares = S.copy()
    squares.data **= 2
    x = np.ones(N)
    for _ in range(2):
        x = np.sqrt(squares.T @ x**2)
    np.testing.assert_allclose(found.x, x, rtol=1e-4)


@pytest.mark.fast
def test_pagerank_is_that_of_networkx():
    S, A = weighted(m=70)
    found = rank(A)
    expected = nx.pagerank(nx.from_scipy_sparse_array(S, create_using=nx.DiGraph), tol=1e-10)
    np.testing.assert_allclose(found.x, [expected[v] for v in range(N)], atol=1e-6)
    assert bool(found.converged) and 10 < int(found.iterations) < 200


@pytest.mark.parametrize("method", METHODS)
def test_conditions(method):
    A = jsp.from_edges(np.arange(9), np.arange(1, 10), shape=(10, 10))
    run = functools.partial(
        jsp.fixpoint, A, start(0, 10), jsp.semirings.min_plus, monotone=True, method=method
    )
    found = run(until=jsp.until.reached(4))
    assert (int(found.iterations), bool(found.converged)) == (4, True)
    assert found.x.tolist() == [0, 1, 2, 3, 4] + [np.inf] * 5
    found = run(until=jsp.until.reached(4) | jsp.until.max_iterations(2))
    assert (int(found.iterations), bool(found.converged)) == (2, False)
    found = run(until=jsp.until.reached(4) & jsp.until.max_iterations(6))
    assert (int(found.iterations), bool(found.converged)) == (6, False)
    assert int(run(until=jsp.until.max_iterations(0)).iterations) == 0
    found = run(until=jsp.until.reached(0))  # never: it differs from the start nowhere
    assert (int(found.iterations), bool(found.converged)) == (10, True)
    assert int(run().iterations) == 10


def test_residual_waits_for_its_minimum():
    _, A = weighted(m=70)
    few = int(rank(A, until=jsp.until.residual(1e-2)).iterations)
    assert few < 15 == int(rank(A, until=jsp.until.residual(1e-2, 15)).iterations)


@pytest.mark.parametrize("method", METHODS)
def test_under_jit_vmap_and_scan(method):
    S, A = weighted()
    G = jsp.prepare(A, for_="fixpoint")
    expected = csgraph.bellman_ford(S, indices=[0, 7, 9])

    def distances(G, s):
        x0 = jnp.full(N, jnp.inf).at[s].set(0)
        return jsp.fixpoint(G, x0, jsp.semirings.min_plus, monotone=True, method=method)

    sources = jnp.array([0, 7, 9])
    each = jax.vmap(distances, (None, 0))(G, sources)
    np.testing.assert_array_equal(each.x, expected)
    scanned = jax.jit(lambda G: jax.lax.scan(lambda c, s: (c, distances(G, s)), 0, sources)[1])(G)
    np.testing.assert_array_equal(scanned.x, expected)
    np.testing.assert_array_equal(each.iterations, scanned.iterations)
    dampings = jnp.array([0.3, 0.85])
    both = jax.vmap(lambda d: rank(A, d))(dampings)
    for lane, d in enumerate(dampings):
        alone = rank(A, d)
        assert abs(int(alone.iterations) - int(both.iterations[lane])) <= 1  # by rounding
        np.testing.assert_allclose(both.x[lane], alone.x, atol=1e-7)


def test_padding_changes_nothing():
    _, A = weighted()
    pad = jnp.full(5, np.nan, np.float32)
    B = jsp.CSR(
        jnp.append(A.data, pad),
        jnp.append(A.indices, jnp.full(5, N, jnp.int32)),
        A.indptr,
        A.overflow,
        A.shape,
    )
    for method in METHODS:
        run = functools.partial(
            jsp.fixpoint, x0=start(0), semiring=jsp.semirings.min_plus, monotone=True, method=method
        )
        np.testing.assert_array_equal(run(B).x, run(A).x)

    def total(A):
        paths = jsp.fixpoint(A, start(0), jsp.semirings.min_plus, monotone=True).x
        return jnp.where(jnp.isfinite(paths), paths, 0).sum()

    gradients = jsp.grad(total)(B).data
    np.testing.assert_array_equal(gradients[: A.nse], jsp.grad(total)(A).data)
    assert not gradients[A.nse :].any()


def test_the_same_lambda_is_compiled_once():
    S, A = weighted()

    def run(shift):
        return jsp.fixpoint(
            A,
            jnp.zeros(N),
            update=lambda x, y, i, sums: y * 0 + shift,
            until=jsp.until.max_iterations(1),
        )

    shift = jnp.float32(2)
    run(shift)
    before = PROGRAMS.traces.total()
    assert before > 0
    assert run(shift + 1).x[0] == 3
    assert PROGRAMS.traces.total() == before
    other = jsp.fixpoint(
        A, jnp.zeros(N), update=lambda x, y, i, sums: y * 0 + 2, until=jsp.until.max_iterations(1)
    )
    assert other.x[0] == 2


def test_errors_say_what_is_wrong():
    _, A = weighted()
    x0 = jnp.zeros(N)
    for wrong, kind, words in [
        (dict(x0=jnp.zeros(3)), ValueError, "`x0` must have shape"),
        (dict(x0=jnp.zeros(N, jnp.int32)), TypeError, "must keep the dtype"),
        (dict(semiring="plus"), ValueError, "`semiring`"),
        (dict(semiring=3), TypeError, "`semiring`"),
        (dict(operands=(jnp.zeros(3),)), ValueError, r"`operands\[0\]`"),
        (dict(operands=3), TypeError, "`operands`"),
        (dict(sums={"s": 3}), TypeError, "`sums"),
        (dict(sums={"s": lambda x: x[:3]}), ValueError, "element-wise"),
        (dict(until=3), TypeError, "`until`"),
        (dict(monotone=True), ValueError, "idempotent"),
        (dict(A=3), TypeError, "sparse matrix"),
    ]:
        with pytest.raises(kind, match=words):
            jsp.fixpoint(**{"A": A, "x0": x0, **wrong})


def test_explain_names_what_stands_in_the_way():
    _, A = weighted()
    explain = functools.partial(jsp.explain, "fixpoint", A, start(0), jsp.semirings.min_plus)
    assert "cpu/frontier" in str(explain(monotone=True)).splitlines()[0]
    text = str(explain(monotone=True, update=lambda x, y, i, sums: jnp.minimum(x, jnp.sort(y))))
    assert "xla/dense" in text.splitlines()[0] and "`sort`" in text
    assert "not declared monotone" in str(explain())


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("fixpoint_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_does_what_it_says(example):
    levels, scores = example.main()
    graph = nx.karate_club_graph()
    hops = nx.single_source_shortest_path_length(graph, 0)
    assert levels.tolist() == [hops[v] for v in range(34)]
    expected = nx.pagerank(graph, weight=None, tol=1e-8)
    np.testing.assert_allclose(scores, [expected[v] for v in range(34)], atol=1e-5)
    S, A = weighted()
    np.testing.assert_array_equal(example.sssp_distances(A, 3), csgraph.bellman_ford(S, indices=3))
