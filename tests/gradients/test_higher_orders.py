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
