"""soft_sssp: sums over walks by matrix inversion, its limit, its gradients, low temperatures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jaxspv as jsp


def graph(n=12, m=30, seed=0):
    """Random, with an unreachable vertex (n - 1), padding of NaN, lengths in [1, 3)."""
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, n - 1, m), rng.integers(0, n - 1, m)
    A = jsp.from_edges(
        row, col, rng.uniform(1, 3, m), shape=(n, n), nse=m + 3, dup=jsp.monoids.min_
    )
    return A.with_data(jnp.where(A.rowcol()[0] < n, A.data, jnp.nan))


def walks(A, T):
    """-T log (I - exp(-A / T))^-1 in float64: the Neumann series sums over all walks."""
    K = np.zeros(A.shape)
    row, col = (np.asarray(i) for i in A.rowcol())
    stored = row < A.shape[0]
    K[row[stored], col[stored]] = np.exp(-np.asarray(A.data, np.float64)[stored] / T)
    assert np.abs(np.linalg.eigvals(K)).max() < 1
    with np.errstate(divide="ignore"):
        return -T * np.log(np.maximum(np.linalg.inv(np.eye(len(K)) - K), 0))


@pytest.mark.parametrize("T", [0.1, 0.5, 1.0])
def test_equals_the_sum_over_all_walks(T):
    A = graph()
    got = jsp.soft_sssp(A, jnp.arange(4), T)
    np.testing.assert_allclose(got.distances, walks(A, T)[:4], rtol=1e-4, atol=1e-5)
    assert got.converged.all()


def test_the_limit_is_sssp_in_value_and_gradient():
    A = graph()
    reached = jnp.isfinite(jsp.sssp(A, 0).distances)

    def total(search):
        return lambda w: jnp.where(reached, search(A.with_data(w)).distances, 0).sum()

    hard = jax.value_and_grad(total(lambda A: jsp.sssp(A, 0)))(A.data)
    for T in (1e-3, 1e-6, 1e-20):
        value, slope = jax.value_and_grad(total(lambda A, T=T: jsp.soft_sssp(A, 0, T)))(A.data)
        np.testing.assert_allclose(value, hard[0], rtol=1e-5)
        np.testing.assert_allclose(slope, hard[1], atol=1e-4)  # finite, also in the padding


@pytest.mark.slow
def test_gradients_in_both_modes_and_twice():
    A = graph(8, 16, 1)
    with jax.enable_x64():
        A = A.astype(jnp.float64)
        data = jnp.where(jnp.isnan(A.data), 1.0, A.data)

        def loss(w, T):
            d = jsp.soft_sssp(A.with_data(w), 0, T).distances
            return jnp.sum(jnp.where(jnp.isfinite(d), d, 0) ** 2)

        check_grads(jax.jit(loss), (data, jnp.float64(0.4)), order=2, eps=1e-5)


def test_gradient_is_the_expected_number_of_crossings():
    """On a graph without cycles: edge marginals; those out of the source sum to 1."""
    A = jsp.from_edges([0, 0, 1, 1, 2, 3], [1, 2, 2, 3, 3, 4], shape=(5, 5)).astype(jnp.float32)
    w = jnp.asarray([1.0, 1.5, 2.0, 1.0, 0.5, 1.0])
    row, _ = A.rowcol()
    value, pull = jax.vjp(lambda w: jsp.soft_sssp(A.with_data(w), 0, 0.3).distances[4], w)
    (marginal,) = pull(1.0)
    np.testing.assert_allclose(marginal[row == 0].sum(), 1, rtol=1e-5)
    np.testing.assert_allclose(marginal[row == 3], 1, rtol=1e-5)
    by_path = {}  # every path 0 -> 4 written out
    for path in ((0, 1, 3, 4), (0, 2, 3, 4), (0, 1, 2, 3, 4)):
        at = {(int(r), int(c)): k for k, (r, c) in enumerate(zip(*A.rowcol(), strict=True))}
        slots = [at[e] for e in zip(path, path[1:], strict=False)]
        by_path[tuple(slots)] = np.exp(-float(w[np.array(slots)].sum()) / 0.3)
    total = sum(by_path.values())
    np.testing.assert_allclose(value, -0.3 * np.log(total), rtol=1e-5)
    want = [sum(p for s, p in by_path.items() if k in s) / total for k in range(6)]
    np.testing.assert_allclose(marginal, want, rtol=1e-4)


def test_divergence_is_told_and_batches_agree_with_single_runs():
    A = graph()
    assert not jsp.soft_sssp(A, 0, 50.0, max_iterations=100).converged
    both = jax.vmap(lambda T: jsp.soft_sssp(A, 0, T).distances)(jnp.asarray([0.1, 1.0]))
    for k, T in enumerate((0.1, 1.0)):
        np.testing.assert_allclose(both[k], jsp.soft_sssp(A, 0, T).distances, rtol=1e-6)
    per_source = jax.jacobian(lambda w: jsp.soft_sssp(A.with_data(w), jnp.arange(3), 0.3).distances)
    one = jax.jacobian(lambda w: jsp.soft_sssp(A.with_data(w), 1, 0.3).distances)
    np.testing.assert_allclose(per_source(A.data)[1], one(A.data), atol=1e-5)


@pytest.mark.parametrize("T", [0, -1.0, float("nan")])
def test_bad_temperature(T):
    with pytest.raises(ValueError, match="`temperature` must be positive"):
        jsp.soft_sssp(graph(), 0, T)


def test_a_length_of_minus_infinity_is_refused_or_flagged():
    A = jsp.from_edges([0, 1], [1, 2], [1.0, -jnp.inf], shape=(3, 3))
    with pytest.raises(ValueError, match="above -inf"):
        jsp.soft_sssp(A, 0, 0.1)
    assert not jax.jit(lambda A: jsp.soft_sssp(A, 0, 0.1))(A).converged
