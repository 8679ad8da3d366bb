"""A sparse matrix as a parameter of a Flax module: it trains, its pattern stays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

linen = pytest.importorskip("flax.linen")
optax = pytest.importorskip("optax")


class Propagate(linen.Module):
    """y = tanh(A x + b), A a parameter."""

    start: jsp.CSR

    @linen.compact
    def __call__(self, x):
        A = self.param("A", lambda key: self.start)
        b = self.param("b", linen.initializers.zeros, (self.start.shape[0],))
        return jnp.tanh(jsp.mxv(A, x) + b)


def test_a_matrix_is_a_parameter_and_trains():
    A = jsp.from_dense(np.array([[0, 0.5, 0], [0.2, 0, 0.1]], np.float32))
    x, want = jnp.array([1.0, -1.0, 2.0]), jnp.array([0.3, -0.4])
    layer = Propagate(A)
    params = layer.init(jax.random.key(0), x)["params"]
    assert isinstance(params["A"], jsp.CSR)
    optimiser = optax.sgd(0.1)
    state = optimiser.init({"A": params["A"].data, "b": params["b"]})

    @jax.jit
    def step(params, state):
        def loss(params):
            return jnp.sum((layer.apply({"params": params}, x) - want) ** 2)

        value, slopes = jsp.value_and_grad(loss)(params)
        slopes = {"A": slopes["A"].data, "b": slopes["b"]}
        updates, state = optimiser.update(slopes, state)
        data = optax.apply_updates(params["A"].data, updates["A"])
        b = optax.apply_updates(params["b"], updates["b"])
        return {"A": params["A"].with_data(data), "b": b}, state, value

    losses = []
    for _ in range(30):
        params, state, value = step(params, state)
        losses.append(float(value))
    assert losses[-1] < 1e-3 * losses[0]
    trained = params["A"]
    np.testing.assert_array_equal(trained.indices, A.indices)
    np.testing.assert_array_equal(trained.indptr, A.indptr)
    assert (np.asarray(trained.data) != np.asarray(A.data)).all()
