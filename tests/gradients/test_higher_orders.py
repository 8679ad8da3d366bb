"""Forward over reverse over forward, and every other order, of a product: as the dense one has."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

DENSE = np.array([[0.5, 2, 0, 0], [0, 0, 0, 0], [3, 0, 0.25, 1]])
DIRECTIONS = [(0.3, 0.7), (-1.0, 0.2), (0.5, 2.0)]


def derivative(mode, f, scales):
    """Of f(data, x) in a direction, forward or by reverse, in the arguments that `mode` names."""
    where = [("data", "x").index(name) for name in mode.split()[1:]]

    def forward(*args):
        def part(*chosen):
            full = list(args)
            for k, value in zip(where, chosen, strict=True):
                full[k] = value
            return f(*full)

        directions = tuple(scales[k] * jnp.cos(args[k]) for k in where)
        return jax.jvp(part, tuple(args[k] for k in where), directions)[1]

    def reverse(*args):
        gradients = jax.grad(f, tuple(where))(*args)
        return sum(
            jnp.vdot(s, scales[k] * jnp.cos(args[k])) for s, k in zip(gradients, where, strict=True)
        )

    return forward if mode.startswith("forward") else reverse


QUICK = [
    ("forward x", "reverse data"),
    ("reverse x", "reverse x", "reverse x"),
    ("forward data", "reverse x", "forward x"),
]
LONG = [
    ("forward data x", "reverse data x"),
    ("reverse data x", "forward x", "reverse data x"),
    ("reverse data", "reverse data x", "reverse x"),
]
CASES = [("csr", modes) for modes in QUICK] + [("csc", QUICK[0])]
CASES += [
    pytest.param(name, modes, marks=pytest.mark.slow)
    for name in ("csr", "csc")
    for modes in QUICK + LONG
    if (name, modes) not in CASES
]


@pytest.mark.parametrize("name,modes", CASES)
def test_derivatives_of_a_product_compose_in_any_order(name, modes):
    with jax.enable_x64():
        A = jsp.from_dense(DENSE, format=name)
        row, col = A.rowcol()
        x = jnp.asarray([1.0, -2.0, 0.5, 3.0])

        def ours(data, x):
            return jnp.sum(jnp.sin(jsp.mxv(A.with_data(data), x)) ** 2)

        def dense(data, x):
            return jnp.sum(jnp.sin(jnp.zeros(DENSE.shape).at[row, col].set(data) @ x) ** 2)

        for mode, scales in zip(modes, DIRECTIONS, strict=False):
            ours, dense = derivative(mode, ours, scales), derivative(mode, dense, scales)
        np.testing.assert_allclose(ours(A.data, x), dense(A.data, x), rtol=1e-9)


@pytest.mark.fast
@pytest.mark.parametrize("name", ["softmax", "normalize", "modularity"])
def test_reverse_over_reverse_of_sums_in_double(name):
    square = np.float32([[0, 2, 1, 0], [2, 0, 0, 3], [1, 0, 0, 1], [0, 3, 1, 0]])
    A = jsp.from_dense(square)
    row, col = A.rowcol()
    one = jnp.array([[1.0, 1, 0, 0], [0, 0, 1, 1]])

    def ours(data):
        M = A.with_data(data)
        if name == "modularity":
            return jsp.modularity(M, jnp.array([0, 0, 1, 1]))
        return jnp.sum(getattr(jsp.learning, name)(M).data ** 2)

    def dense(data):
        D = jnp.zeros(square.shape).at[row, col].set(data)
        k = D.sum(1)
        if name == "modularity":
            return jnp.trace(one @ D @ one.T) / k.sum() - jnp.sum((one @ k / k.sum()) ** 2)
        if name == "softmax":
            M = jnp.full(square.shape, -jnp.inf).at[row, col].set(data)
            return jnp.sum(jax.nn.softmax(M, axis=1) ** 2)
        return jnp.sum((D / jnp.sqrt(k[:, None] * D.sum(0))) ** 2)

    got, want = (jax.jacrev(jax.jacrev(f))(A.data) for f in (ours, dense))
    np.testing.assert_allclose((got + got.T) / 2, (want + want.T) / 2, rtol=1e-4, atol=1e-5)
