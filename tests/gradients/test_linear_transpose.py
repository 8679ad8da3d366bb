"""Products are linear for JAX: `jax.linear_transpose`, and solvers that transpose an operator."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.sparse import linalg

import jaxspv as jsp

DRAW = np.random.default_rng(0)
DENSE = (DRAW.random((6, 6)) < 0.5) * DRAW.random((6, 6)).astype(np.float32)
WIDE = (DRAW.random((5, 8)) < 0.5) * DRAW.random((5, 8)).astype(np.float32)


def transposed(fn, like, w):
    return jax.linear_transpose(fn, jax.ShapeDtypeStruct(like, w.dtype))(w)[0]


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("made", ["csr", "csc", "coo", "ell", "prepared"])
def test_products_transpose(made, dtype):
    D = DENSE if made == "prepared" else WIDE
    A = jsp.from_dense(D)
    A = jsp.prepare(A, for_=("mxv", "vxm")) if made == "prepared" else A.asformat(made)
    (m, n), close = D.shape, {"rtol": 1e-5, "atol": 1e-6}
    w, W, x = (jnp.asarray(DRAW.random(s), dtype) for s in [(m,), (m, 3), (n,)])
    np.testing.assert_allclose(transposed(lambda x: A @ x, (n,), w), D.T @ w, **close)
    np.testing.assert_allclose(transposed(lambda X: A @ X, (n, 3), W), D.T @ W, **close)
    np.testing.assert_allclose(transposed(lambda v: v @ A, (m,), x), D @ x, **close)
    each = jax.vmap(lambda x: A @ x, 1, 1)
    np.testing.assert_allclose(jax.jit(lambda W: transposed(each, (n, 3), W))(W), D.T @ W, **close)


def test_values_transpose():
    A, x, w = jsp.from_dense(WIDE), jnp.arange(8.0), jnp.arange(5.0)
    of_values = transposed(lambda d: A.with_data(d) @ x, A.data.shape, w)
    want = np.outer(w, x) * (WIDE != 0)
    np.testing.assert_allclose(A.with_data(of_values).todense(), want, rtol=1e-6)


def test_other_semirings_are_not_linear():
    A = jsp.from_dense(DENSE)
    with pytest.raises(NotImplementedError, match="not linear"):
        transposed(lambda x: jsp.mxv(A, x, "min_plus"), (6,), jnp.ones(6))


@pytest.mark.parametrize("solver", [linalg.cg, linalg.bicgstab, linalg.gmres])
def test_solvers_and_their_gradients(solver):
    D = DENSE @ DENSE.T + 3 * np.eye(6, dtype=np.float32)
    A, b = jsp.from_dense(D), jnp.arange(6.0)

    def entry(A, b):
        return solver(lambda x: A @ x, b, tol=1e-6)[0][2]

    by_A, by_b = jsp.grad(entry, argnums=(0, 1))(A, b)
    want = jax.grad(lambda D, b: jnp.linalg.solve(D, b)[2], argnums=(0, 1))(jnp.asarray(D), b)
    np.testing.assert_allclose(entry(A, b), jnp.linalg.solve(D, b)[2], rtol=1e-3)
    np.testing.assert_allclose(
        A.with_data(by_A.data).todense(), want[0] * (D != 0), rtol=2e-3, atol=1e-4
    )
    np.testing.assert_allclose(by_b, want[1], rtol=2e-3, atol=1e-4)
