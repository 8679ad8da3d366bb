"""The gradient of every algorithm against finite differences on karate, minnesota and rome99."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graph_files import data_folder
from jax.test_util import check_grads

import jaxspv as jsp

GRAPHS = ("karate", "minnesota", "rome99")


def load(name):
    """The graph with lengths in [1, 3), all different: no two paths tie."""
    folder = data_folder()
    if name == "rome99" and folder is None:
        pytest.skip("rome99 lies in the data folder")
    path = folder / "rome99.mtx.gz" if name == "rome99" else jsp.bundled(name)
    A = jsp.read_mtx(path).asformat("csr")
    return A, jnp.asarray(np.random.default_rng(0).uniform(1, 3, A.nse))


def finite(values):
    return jnp.where(jnp.isfinite(values), values, 0)


def katz(A):
    """x = b + x A / 60, which contracts: no column of these graphs sums to 60."""
    n = A.shape[0]
    b = jnp.linspace(1, 2, n)
    return jsp.fixpoint(
        A, jnp.ones(n), update=lambda old, y, i, sums: b + y / 60, until=jsp.until.residual(1e-13)
    ).x


def nearest(A):
    """Distances by the monotone fixpoint of (min, +)."""
    x0 = jnp.where(jnp.arange(A.shape[0]) == 0, 0.0, jnp.inf)
    return finite(jsp.fixpoint(A, x0, jsp.semirings.min_plus, monotone=True).x)


LONG = {"tol": 1e-15, "max_iterations": 5000}
ALGORITHMS = {
    "sssp": lambda A: finite(jsp.sssp(A, 0).distances),
    "sssp of 3 sources": lambda A: finite(jsp.sssp(A, jnp.arange(3)).distances),
    "soft_sssp": lambda A: finite(jsp.soft_sssp(A, 0, 0.2, tol=1e-13).distances),
    "pagerank": lambda A: A.shape[0] * jsp.pagerank(A, tol=1e-13, max_iterations=500).scores,
    "katz_centrality": lambda A: jsp.katz_centrality(A, 0.005, **LONG).scores,
    "eigenvector_centrality": lambda A: jsp.eigenvector_centrality(A, **LONG).scores,
    "hits": lambda A: A.shape[0] * jnp.concatenate(jsp.hits(A, **LONG)[:2]),
    "k_shortest_paths": lambda A: jsp.k_shortest_paths(A, 0, 9, 3).distances,
    "astar": lambda A: jsp.astar(A, 0, 9, jnp.zeros(A.shape[0])).distance,
    "k_truss": lambda A: jsp.k_truss(A, 3).todense(),
    "fixpoint that contracts": katz,
    "monotone fixpoint": nearest,
    "mxv": lambda A: finite(jsp.mxv(A, jnp.ones(A.shape[1]), jsp.semirings.log_plus)),
}


SLOW = ("monotone fixpoint", "sssp of 3 sources", "k_shortest_paths", "k_truss")


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_gradients(algorithm, graph):
    if graph != "karate" and algorithm in SLOW and os.environ.get("JAXSPV_THOROUGH") != "1":
        pytest.skip("compiles for long: JAXSPV_THOROUGH=1 runs it")
    with jax.enable_x64():
        A, weights = load(graph)
        A = A.with_data(weights)
        rng = np.random.default_rng(1)
        way = jnp.asarray(rng.standard_normal(A.nse))
        out = jax.eval_shape(ALGORITHMS[algorithm], A).shape
        mix = jnp.asarray(rng.standard_normal(out))

        @jax.jit
        def loss(weights):
            return jnp.vdot(mix, ALGORITHMS[algorithm](A.with_data(weights)))

        eps = 1e-6
        difference = (loss(weights + eps * way) - loss(weights - eps * way)) / (2 * eps)
        reverse = jax.grad(loss)(weights)
        forward = jax.jvp(loss, (weights,), (way,))[1]
        assert abs(difference) > 1e-3  # it says something
        np.testing.assert_allclose(jnp.vdot(reverse, way), difference, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(forward, difference, rtol=1e-5, atol=1e-6)


def test_losses_over_unreached_vertices():
    """inf in the distances: zero gradients behind it, never NaN, also where the loss masks late."""
    A = jsp.from_edges([0, 1, 3], [1, 2, 4], [1.0, 2.0, 5.0], shape=(6, 6))
    for search in (jsp.sssp, lambda A, s: jsp.soft_sssp(A, s, 0.5)):

        def early(w, search=search):
            d = search(A.with_data(w), 0).distances
            return jnp.where(jnp.isfinite(d), d, 0).sum()

        def through(w, search=search):
            return jnp.exp(-search(A.with_data(w), 0).distances).sum()

        for loss in (early, through):
            slope = jax.grad(loss)(A.data)
            assert np.isfinite(slope).all() and slope[2] == 0 and (slope[:2] != 0).all()
            curved = jax.hessian(loss)(A.data)
            assert np.isfinite(curved).all() and (curved[2] == 0).all()


@pytest.mark.slow
def test_pagerank_twice_in_both_modes():
    """Also by the damping and the personalisation; vertex 5 dangles."""
    with jax.enable_x64():
        A = jsp.from_edges([0, 1, 2, 3, 0, 4], [1, 2, 0, 0, 5, 3], np.ones(6), shape=(6, 6))

        def loss(w, damping, p):
            scores = jsp.pagerank(A.with_data(w), damping, 1e-13, 500, p).scores
            return jnp.sum(jnp.sin(3 * scores))

        args = (jnp.linspace(1, 2, 6), jnp.float64(0.8), jnp.linspace(2, 1, 6))
        check_grads(loss, args, order=2, eps=1e-5)
