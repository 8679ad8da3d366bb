"""Gradients of fixpoint: against PageRank, SSSP, a dense solve in float64, and by hand."""

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest
import scipy.sparse as sp
from fixpoint_cases import N, rank, weighted

import jaxspv as jsp


def test_gradients_of_a_contraction_are_those_of_pagerank():
    _, A = weighted(m=70)
    weights = jnp.asarray(np.random.default_rng(1).normal(size=N), jnp.float32)

    def ours(data, damping):
        return rank(A.with_data(data), damping).x @ weights

    def theirs(data, damping):
        kept = A.with_data(data)
        return jsp.pagerank(kept, damping, tol=1e-7, max_iterations=200).scores @ weights

    want = jax.jit(jax.grad(theirs, (0, 1)))(A.data, 0.85)
    for mode in (jax.jacrev, jax.jacfwd):
        found = jax.jit(mode(ours, (0, 1)))(A.data, 0.85)
        for f, g in zip(found, want, strict=True):
            np.testing.assert_allclose(f, g, rtol=1e-3, atol=2e-6)


def test_gradients_of_a_contraction_that_is_not_linear():
    """x = tanh(x A / 20 + b): against a solve of the linearised system in float64."""
    S, A = weighted(m=90)
    b = jnp.asarray(np.random.default_rng(2).normal(size=N), jnp.float32)
    M = S.todense().astype(np.float64) / 20

    def total(data, b):
        B = A.with_data(data / 20)
        step = lambda x, y, i, b, sums: jnp.tanh(y + b)  # noqa: E731
        until = jsp.until.residual(1e-6) | jsp.until.max_iterations(500)
        return jsp.fixpoint(B, jnp.zeros(N), update=step, operands=(b,), until=until).x.sum()

    x = np.zeros(N)
    for _ in range(3000):
        x = np.tanh(x @ M + np.asarray(b))
    slope = 1 - x**2
    adjoint = np.linalg.solve(np.eye(N) - M * slope[None, :], np.ones(N)) * slope
    by_data, by_b = jax.grad(total, (0, 1))(A.data, b)
    np.testing.assert_allclose(by_b, adjoint, rtol=1e-3, atol=1e-4)
    row, col = sp.coo_array(S).coords
    np.testing.assert_allclose(by_data, x[row] * adjoint[col] / 20, rtol=1e-3, atol=1e-4)
    jax.test_util.check_grads(lambda b: total(A.data, b), (b,), 1, eps=1e-2, rtol=2e-2)


@jax.custom_jvp
def scaled(y, w):
    return y * w


scaled.defjvp(lambda p, t: (p[0] * p[1], 7 * t[0] + 5 * t[1]))


@pytest.mark.parametrize("mode", [jax.jacrev, jax.jacfwd])
def test_derivatives_that_an_update_defines_hold_in_a_monotone_loop(mode):
    """Along 0 -> 1 -> 2 each step has the derivatives 7 by y and 5 by w."""
    A = jsp.from_edges([0, 1, 0], [1, 2, 2], [1.0, 1.0, 5.0], shape=(3, 3))

    def last(x0, w):
        step = lambda old, y, i, w, sums: jnp.minimum(old, scaled(y, w))  # noqa: E731
        return jsp.fixpoint(A, x0, "min_plus", monotone=True, update=step, operands=(w,)).x[2]

    by_x0, by_w = mode(last, (0, 1))(jnp.array([0, jnp.inf, jnp.inf]), jnp.ones(3))
    np.testing.assert_array_equal(by_x0, [49, 0, 0])
    np.testing.assert_array_equal(by_w, [0, 35, 5])


def test_gradients_of_a_monotone_loop_are_those_of_sssp():
    _, A = weighted(seed=6)
    weights = jnp.asarray(np.random.default_rng(1).normal(size=N), jnp.float32)
    data = A.data + jnp.asarray(np.random.default_rng(3).random(A.nse), jnp.float32)

    def weigh(d):
        return jnp.where(jnp.isfinite(d), d * weights, 0).sum()

    def ours(data, at):
        x0 = jnp.full(N, jnp.inf).at[2].set(at)
        return weigh(jsp.fixpoint(A.with_data(data), x0, jsp.semirings.min_plus, monotone=True).x)

    def theirs(data):
        return weigh(jsp.sssp(A.with_data(data), 2).distances)

    for mode in (jax.grad, jax.jacfwd):
        found, at = mode(ours, (0, 1))(data, 0.0)
        np.testing.assert_allclose(found, jax.grad(theirs)(data), atol=1e-6)
        reached = np.isfinite(jsp.sssp(A.with_data(data), 2).distances)
        np.testing.assert_allclose(at, weights[reached].sum(), rtol=1e-5)


def test_gradients_of_the_widest_product():
    """max_times with a gain at each vertex: the factors along the tree, zero weights included."""
    A = jsp.from_edges([0, 1, 0, 2], [1, 2, 2, 1], [0.5, 0.8, 0.3, 1.0], shape=(4, 4))
    x0 = jnp.full(4, -jnp.inf).at[0].set(2.0)

    def total(data, x0):
        x = jsp.fixpoint(A.with_data(data), x0, jsp.semirings.max_times, monotone=True).x
        return jnp.where(jnp.isfinite(x), x, 0).sum()

    by_data, by_x0 = jax.grad(total, (0, 1))(A.data, x0)
    # slots: 0->1, 0->2, 1->2, 2->1; x = (2, 1, 0.8), 2 is reached through 1
    np.testing.assert_allclose(by_data[:4], [2 * 1.8, 0, 1.0, 0], rtol=1e-6)  # and a spare slot
    np.testing.assert_allclose(by_x0[0], 1 + 0.5 + 0.4, rtol=1e-6)


def surrogate(slope):
    """tanh, whose derivative is said to be a constant."""
    fn = jax.custom_vjp(jnp.tanh)
    fn.defvjp(lambda v: (jnp.tanh(v), None), lambda _, g: (g * slope,))
    return fn


@pytest.mark.parametrize("slope", [1.0, 10.0])  # equal but for what no primitive shows
def test_functions_that_differ_in_their_derivatives_or_callbacks_alone(slope):
    A = jsp.from_edges([0, 1, 2], [1, 2, 0], [0.5, 0.4, 0.3], shape=(3, 3))
    fn, D = surrogate(slope), np.asarray(A.todense())

    def total(b):
        update = lambda old, y, i, b, sums: fn(0.1 * y) + b  # noqa: E731
        return jsp.fixpoint(A, jnp.ones(3), update=update, operands=(b,)).x.sum()

    want = np.linalg.solve((np.eye(3) - 0.1 * slope * D).T, np.ones(3)).sum()
    np.testing.assert_allclose(jax.grad(total)(0.2), want, rtol=1e-4)

    def on_host(old, y, *_):
        shape = jax.ShapeDtypeStruct(y.shape, y.dtype)
        scaled = lambda v: v * np.asarray(slope / 20, v.dtype)  # noqa: E731
        return 1 + jax.pure_callback(scaled, shape, y, vmap_method="expand_dims")

    want = np.linalg.solve((np.eye(3) - slope / 20 * D).T, np.ones(3))
    np.testing.assert_allclose(jsp.fixpoint(A, jnp.ones(3), update=on_host).x, want, rtol=1e-5)
