"""A sparse matrix in modules of Flax and Equinox: data, and its values a parameter when asked."""

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

        value, gradients = jsp.value_and_grad(loss)(params)
        gradients = {"A": gradients["A"].data, "b": gradients["b"]}
        updates, state = optimiser.update(gradients, state)
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


A = jsp.from_dense(np.array([[0, 0.5, 0], [0.2, 0, 0.1]], np.float32))
x, want = jnp.array([1.0, -1.0, 2.0]), jnp.array([0.3, -0.4])


def same_pattern(trained):
    np.testing.assert_array_equal(trained.indices, A.indices)
    np.testing.assert_array_equal(trained.indptr, A.indptr)


@pytest.mark.parametrize("learns", [False, True])
def test_nnx_a_matrix_is_data_and_its_values_a_parameter_when_asked(learns):
    nnx = pytest.importorskip("flax.nnx")

    class Layer(nnx.Module):
        def __init__(self):
            self.links = nnx.data(A)
            self.values = nnx.Param(A.data) if learns else None
            self.b = nnx.Param(jnp.zeros(A.shape[0]))

        def __call__(self, x):
            links = self.links.with_data(self.values[...]) if learns else self.links
            return jnp.tanh(links @ x + self.b[...])

    layer = Layer()
    rule = nnx.Optimizer(layer, optax.adam(0.1), wrt=nnx.Param)

    @nnx.jit
    def step(layer, rule):
        value, gradients = nnx.value_and_grad(lambda m: jnp.sum((m(x) - want) ** 2))(layer)
        rule.update(layer, gradients)
        return value

    losses = [float(step(layer, rule)) for _ in range(30)]
    assert losses[-1] < 0.05 * losses[0]
    same_pattern(layer.links)
    np.testing.assert_array_equal(layer.links.data, A.data)
    if learns:
        assert (np.asarray(layer.values[...]) != np.asarray(A.data)).all()


@pytest.mark.parametrize("learns", [False, True])
def test_equinox_takes_values_for_parameters_unless_told_otherwise(learns):
    eqx = pytest.importorskip("equinox")

    class Layer(eqx.Module):
        links: jsp.CSR
        b: jax.Array

        def __call__(self, x):
            return jnp.tanh(self.links @ x + self.b)

    layer = Layer(A, jnp.zeros(A.shape[0]))
    which = jax.tree.map(eqx.is_inexact_array, layer)
    assert which.links.data is True and which.links.indices is False
    which = eqx.tree_at(lambda m: m.links.data, which, learns)
    moving, fixed = eqx.partition(layer, which)
    rule = optax.adam(0.1)
    state = rule.init(moving)

    @jax.jit
    def step(moving, state):
        def loss(moving):
            return jnp.sum((eqx.combine(moving, fixed)(x) - want) ** 2)

        value, gradients = jax.value_and_grad(loss)(moving)
        move, state = rule.update(gradients, state, moving)
        return eqx.apply_updates(moving, move), state, value

    losses = []
    for _ in range(30):
        moving, state, value = step(moving, state)
        losses.append(float(value))
    assert losses[-1] < 0.05 * losses[0]
    trained = eqx.combine(moving, fixed)
    same_pattern(trained.links)
    assert (np.asarray(trained.links.data) != np.asarray(A.data)).all() == learns
