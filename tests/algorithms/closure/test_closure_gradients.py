"""Gradients of closures of irregular acyclic graphs against those of dense sums over paths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jaxspv as jsp
from jaxspv.algorithms.closure.pieces import plan
from jaxspv.ops.tuples.operations import as_tuples

N = 13


def irregular(seed, dense=0.4, room=5):
    """A random acyclic graph in no order, with room for more entries; its levels are uneven."""
    rng = np.random.default_rng(seed)
    at = np.argwhere(np.triu(rng.random((N, N)) < dense, 1))
    row, col = rng.permutation(N)[at].T
    A = jsp.from_edges(row, col, np.ones(len(row), np.float32), shape=(N, N), nse=len(row) + room)
    found = plan(as_tuples("A", A))
    assert found is not None and found[0].first is not None  # what is tested is taken
    return A


def dense_of(A, absent):
    row, col = A.rowcol()
    return lambda w: jnp.full((N, N), absent, w.dtype).at[row, col].set(w, mode="drop")


def sums(A):
    return lambda w, x0: jsp.closure(A.with_data(w), "plus_times", start=x0).x


def logs(A):
    return lambda w, x0: jsp.closure(A.with_data(w), "log_plus", start=x0).x


def dense_sums(A):
    return lambda w, x0: x0 @ jnp.linalg.inv(jnp.eye(N) - dense_of(A, 0.0)(w))


def dense_logs(A):
    """By the sums of exponentials: no vertex is without paths."""
    return lambda w, x0: jnp.log(dense_sums(A)(jnp.exp(w), jnp.exp(x0)))


def weights(A, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(2, A.nse)) / 2)


@pytest.mark.parametrize("ours, dense", [(sums, dense_sums), (logs, dense_logs)])
def test_irregular_graphs(ours, dense):
    with jax.enable_x64(True):
        A = irregular(0)
        w, x0 = weights(A), jnp.linspace(-1, 1, N)
        f, g = (jax.jit(lambda w, x0, h=h: jnp.sin(h(A)(w, x0))) for h in (ours, dense))
        np.testing.assert_allclose(f(w[0], x0), g(w[0], x0), 1e-10)
        for mode in (jax.jacrev, jax.jacfwd):
            found, want = (jax.jit(jax.vmap(mode(h, (0, 1)), (0, None)))(w, x0) for h in (f, g))
            for a, b in zip(found, want, strict=True):
                np.testing.assert_allclose(a, b, 1e-9, 1e-12)
        check_grads(f, (w[0], x0), 2, ["fwd", "rev"], eps=1e-4, rtol=1e-3, atol=1e-4)


def test_what_no_path_reaches_and_what_weighs_nothing():
    """Shares are finite numbers, also of edges between vertices without paths."""
    A = irregular(2, dense=0.25)
    w = weights(A)[0].astype(np.float32).at[::4].set(-jnp.inf)
    row, col = (np.asarray(v)[: int(A.count)] for v in A.rowcol())
    for start in range(N):
        x0 = jnp.where(jnp.arange(N) == start, 0.0, -jnp.inf)
        total = jax.value_and_grad(lambda w, x0=x0: jnp.exp(logs(A)(w, x0)).sum())
        value, slopes = total(w)
        D = np.zeros((N, N))
        D[row, col] = np.exp(w[: len(row)])
        paths = np.linalg.inv(np.eye(N) - D)
        np.testing.assert_allclose(value, paths[start].sum(), 1e-5)
        want = paths[start, row] * D[row, col] * paths[col].sum(1)
        np.testing.assert_allclose(slopes[: len(row)], want, 1e-4, 1e-6)
        assert not np.any(slopes[len(row) :])


def test_parameters_of_a_semiring_and_another_order_of_edges():
    A = irregular(3)
    w = weights(A)[0].astype(np.float32)
    scaled = jsp.semiring(jnp.add, jsp.BinaryOp(lambda x, a, rate: rate * x * a, "scaled", (0.5,)))

    def total(rate, w):
        s = jax.tree.map(lambda _: rate, scaled)
        return jsp.closure(A.with_data(w), s, start=jnp.ones(N)).x.sum()

    def dense(rate, w):
        return dense_sums(A)(rate * w, jnp.ones(N)).sum()

    found, want = (jax.grad(f, (0, 1))(0.7, w) for f in (total, dense))
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)
    B = A.with_data(w).asformat("csc")
    found, want = (jax.grad(lambda d, h=h: h(B)(d, jnp.ones(N)).sum()) for h in (sums, dense_sums))
    np.testing.assert_allclose(found(B.data), want(B.data), 1e-4, 1e-5)


@pytest.mark.parametrize("name", ["max_times", "min_times"])
def test_vertices_that_no_path_reaches_bring_no_nan(name):
    """Infinity times a cotangent of 0 is a NaN: the likeliest path from 0, where 2 is not reached;
    against the derivative by hand, of 1 + a + ab in the edges a = (0, 1), b = (1, 3)."""
    B = jsp.from_edges([0, 1, 2, 2], [1, 3, 1, 3], np.ones(4, np.float32), shape=(4, 4))
    w = jnp.array([0.5, 0.75, 0.25, 0.125])
    semiring = getattr(jsp.semirings, name)
    s, zero = jsp.semirings.dual(semiring), semiring.add.identity_of(np.float32).item()
    start = np.array([1, *[zero] * 3], np.float32)
    rest = jsp.from_edges(range(4), [0] * 4, jnp.array([zero, 2.0, zero, zero]), shape=(4, 1))
    twice = jnp.stack([rest.todense()[:, 0], jnp.full(4, zero)], 1)
    until = jsp.until

    def finite(f):
        return lambda w: jnp.where(jnp.isfinite(x := f(B.with_data(w))), x, 0).sum()

    paths = [1.75, 0.5, 0, 0]
    for f, derivative in [
        (lambda A: jsp.closure(A, semiring, start=0).x, paths),
        (lambda A: jsp.closure(A, semiring, start=0, until=until.max_iterations(3)).x, paths),
        (lambda A: jsp.closure(A, semiring, start=0, until=until.unchanged()).x, paths),
        (lambda A: jsp.closure(A.with_data(s.lift(A.data, w)), s, start=0).x[0], paths),
        (lambda A: jsp.vxm(start, A, semiring), [1.0, 0, 0, 0]),
        (lambda A: jsp.mxv(A, twice[:, 0], semiring), [2.0, 0, 2.0, 0]),
        (lambda A: jsp.mxm(A, twice, semiring), [2.0, 0, 2.0, 0]),
        (lambda A: jsp.mxm(A, rest, semiring).todense(), [2.0, 0, 2.0, 0]),
    ]:
        np.testing.assert_allclose(jax.grad(finite(f))(w), derivative)
        forward = jax.jvp(finite(f), (w,), (jnp.ones(4),))[1]
        np.testing.assert_allclose(forward, sum(derivative))


@pytest.mark.parametrize("until", [None, jsp.until.max_iterations(3), jsp.until.unchanged()])
def test_edges_of_weight_zero_that_no_path_takes(until):
    """Infinity times 0 is a NaN, times -1 the other infinity: neither may pass for a path."""
    for values in (0.0, -1.0):
        edges = jnp.array([0.5, 0.75, values, values])
        A = jsp.from_edges([0, 1, 2, 2], [1, 3, 1, 3], edges, shape=(4, 4))
        most = jsp.closure(A, "max_times", start=0, until=until).x
        least = jsp.closure(A, "min_times", start=0, until=until).x
        np.testing.assert_array_equal(most, [1, 0.5, -np.inf, 0.375])
        np.testing.assert_array_equal(least, [1, 0.5, np.inf, 0.375])
