"""PageRank on the XLA backend against NetworkX and a dense power iteration."""

import functools
import itertools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import jaxspv as jsp
from jaxspv.algorithms.pagerank.xla import pagerank_xla

RUN = jax.jit(lambda inn, *args, **kwargs: pagerank_xla(lambda z: inn @ z, *args, **kwargs))


def random_graph(seed, n=60, density=0.06, weighted=True):
    """Directed, with self loops, dangling vertices and, if weighted, one row of explicit zeros."""
    rng = np.random.default_rng(seed)
    a = (rng.random((n, n)) < density) * (rng.integers(1, 6, (n, n)) if weighted else 1)
    a[rng.choice(n, 6, replace=False)] = 0
    matrix = scipy.sparse.csr_matrix(a.astype(np.float64))
    if weighted:
        matrix.data[matrix.indptr[n // 2] : matrix.indptr[n // 2 + 1]] = 0
    return matrix


def arrays(matrix, dtype, weighted=True):
    inn = jsp.from_scipy(matrix.T.tocsr()).astype(dtype)
    return inn if weighted else inn.with_data(jnp.ones_like(inn.data))


def dense_power_iteration(a, p, x, damping, iterations):
    strength = a.sum(1)
    rows = np.divide(a, strength[:, None], out=np.zeros_like(a), where=strength[:, None] > 0)
    for _ in range(iterations):
        x = damping * (x @ rows + x[strength == 0].sum() * p) + (1 - damping) * p
    return x


def solve(matrix, dtype, p, weighted=True, **kwargs):
    operands = arrays(matrix, dtype, weighted)
    strength = jnp.asarray(matrix.sum(1)).reshape(-1)
    return RUN(operands, strength, jnp.asarray(p, dtype), **kwargs)


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    with jax.enable_x64(request.param == np.float64):
        yield request.param


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_networkx(weighted, seed, dtype):
    matrix = random_graph(seed, weighted=weighted)
    n = matrix.shape[0]
    matrix.eliminate_zeros()
    graph = nx.from_scipy_sparse_array(matrix, create_using=nx.DiGraph)
    preference = np.random.default_rng(seed).random(n) + 0.1
    p = preference / preference.sum()
    tol = 1e-10 if dtype == np.float64 else 1e-6
    expected = nx.pagerank(
        graph, alpha=0.8, personalization=dict(enumerate(preference)), tol=tol / n, max_iter=500
    )
    scores, iterations, converged = solve(
        matrix, dtype, p, weighted, damping=0.8, tol=tol, max_iterations=500
    )
    assert scores.dtype == dtype and converged and 5 < iterations < 200
    np.testing.assert_allclose(scores, [expected[i] for i in range(n)], atol=5 * tol, rtol=0)


@pytest.mark.parametrize("iterations", [0, 1, 7])
def test_each_iteration_is_a_step_of_the_formula(iterations, dtype):
    matrix = random_graph(5)
    n = matrix.shape[0]
    p = np.random.default_rng(0).random(n)
    p /= p.sum()
    scores, count, converged = solve(
        matrix, dtype, p, damping=0.85, tol=0.0, max_iterations=iterations
    )
    expected = dense_power_iteration(matrix.toarray(), p, p, 0.85, iterations)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(scores, expected, rtol=20 * eps, atol=20 * eps)
    assert count == iterations and not converged


def test_stopping_rule():
    matrix = random_graph(6)
    n = matrix.shape[0]
    p = np.full(n, 1 / n, np.float32)
    run = functools.partial(solve, matrix, np.float32, p, damping=0.85)
    scores, k, converged = run(tol=1e-4, max_iterations=100)
    steps = [dense_power_iteration(matrix.toarray(), p, p, 0.85, i) for i in range(int(k) + 1)]
    changes = [np.abs(b - a).sum() for a, b in itertools.pairwise(steps)]
    assert converged and changes[-1] <= 1e-4 < changes[-2]
    _, at_least, converged = run(tol=1e-4, max_iterations=100, min_iterations=int(k) + 5)
    assert at_least == k + 5 and converged
    _, stopped, converged = run(tol=1e-4, max_iterations=int(k) - 1)
    assert stopped == k - 1 and not converged


def test_columns_stop_on_their_own():
    matrix = random_graph(7)
    n = matrix.shape[0]
    p = np.full((n, 2), 1 / n, np.float32)
    p[:, 1] = np.eye(n, dtype=np.float32)[4]
    kwargs = dict(damping=0.85, tol=1e-5, max_iterations=100)
    scores, iterations, converged = solve(matrix, np.float32, p, **kwargs)
    assert scores.shape == (n, 2) and converged.all() and iterations[0] != iterations[1]
    for column in range(2):
        own = p[:, column]
        alone, count, _ = solve(matrix, np.float32, own, **kwargs)
        assert count == iterations[column]
        np.testing.assert_allclose(scores[:, column], alone, atol=1e-6)


def test_all_vertices_dangling():
    matrix = scipy.sparse.csr_matrix((5, 5))
    p = np.full(5, 0.2, np.float32)
    scores, iterations, converged = solve(
        matrix, np.float32, p, damping=0.85, tol=1e-6, max_iterations=10
    )
    np.testing.assert_allclose(scores, p, rtol=1e-6)
    assert iterations == 1 and converged


@pytest.mark.parametrize("form", ["push", "pull"])
def test_hubs_of_many_equal_shares(form):
    """The hub's equation and a leaf's, solved by hand: h = d k l + c, l = d h / k + c."""
    k, d = 100_000, 0.85
    hub, leaf = np.zeros(k, int), np.arange(1, k + 1)
    A = jsp.from_edges(np.r_[hub, leaf], np.r_[leaf, hub], shape=(k + 1, k + 1))
    G = jsp.prepare(A, for_="pagerank") if form == "pull" else A
    scores = np.asarray(jsp.pagerank(G, backend="xla", method=form).scores, np.float64)
    c = (1 - d) / (k + 1)
    h = (d * k * c + c) / (1 - d * d)
    np.testing.assert_allclose(scores[0], h, rtol=2e-5)
    np.testing.assert_allclose(scores[1:], d * h / k + c, rtol=2e-5)


@pytest.mark.parametrize("size", [3e38, 1.2e-38])
@pytest.mark.parametrize("compile", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_personalization_of_any_size(compile, size):
    A = jsp.from_edges([0, 0, 1, 2], [1, 2, 2, 0], shape=(3, 3))
    run = compile(lambda p: jsp.pagerank(A, personalization=p).scores)
    np.testing.assert_allclose(run(jnp.full(3, size)), run(jnp.ones(3)), rtol=1e-6)
    with pytest.raises(ValueError, match="zero everywhere"):
        jsp.pagerank(A, personalization=np.full(3, 1e-42))
