"""The derivatives of a product with a CSR: values, padding, vmap, temporaries on a CPU."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv._core.platforms import without_kernels
from jaxspv.ops.products.spmv.vjp import csr_vjp

DENSE = np.array([[0, 2, 0, 3.5], [0, 0, 0, 0], [1, 0.5, 4, 7], [0, 0, 6, 0]], np.float32)


def padded():
    """Two slots too many, with NaN in them, and their column at the extent."""
    A = jsp.from_dense(DENSE)
    return dataclasses.replace(
        A,
        data=jnp.pad(A.data, (0, 2), constant_values=jnp.nan),
        indices=jnp.pad(A.indices, (0, 2), constant_values=4),
    )


@pytest.mark.parametrize("stored_rows", [False, True])
@pytest.mark.parametrize("values,vector", [(True, True), (True, False), (False, True)])
def test_both_cotangents(values, vector, stored_rows):
    A = padded()
    w, x = jnp.array([1.0, 2, 3, 4]), jnp.array([5.0, 6, 7, 8])
    by_values, by_vector = csr_vjp(
        A.indptr,
        A.indices,
        w,
        4,
        x=x if values else None,
        data=A.data if vector else None,
        rows=A.rowcol()[0] if stored_rows else None,
    )
    assert (by_values is None, by_vector is None) == (not values, not vector)
    if by_values is not None:
        want = np.outer(w, x)[np.nonzero(DENSE)]
        np.testing.assert_allclose(by_values, [*want, 0, 0])
    if by_vector is not None:
        np.testing.assert_allclose(by_vector, DENSE.T @ np.asarray(w))


def test_a_batch_of_weights():
    A = padded()
    weights = jnp.arange(8.0).reshape(2, 4)
    gradients = jax.jit(jax.vmap(lambda w: csr_vjp(A.indptr, A.indices, w, 4, data=A.data)[1]))(
        weights
    )
    np.testing.assert_allclose(gradients, np.asarray(weights) @ DENSE)


def slopes_by_both(A, x):
    return jax.value_and_grad(
        lambda data, x: jnp.tanh(jsp.mxv(A.with_data(data), x)).sum(), (0, 1)
    )(A.data, x)


def test_scatters_run_natively_with_few_temporaries_on_cpu():
    """Without C++: products take rows, terms and sums in double.

    JAX 0.10.2 makes a loop of a scatter, which must be native; newer versions have no loop here.
    """
    if jax.default_backend() != "cpu":
        pytest.skip("it looks at a program for CPUs")
    rng = np.random.default_rng(0)
    A = jsp.from_dense(np.where(rng.random((300, 300)) < 0.2, 1.0, 0.0).astype(np.float32))
    x = jnp.ones(300)
    with without_kernels():
        compiled = jax.jit(slopes_by_both).lower(A, x).compile()
    text = compiled.as_text()
    assert " scatter(" in text or " while(" in text
    assert text.count('xla_cpu_small_call="true"') == text.count(" while(")
    memory = compiled.memory_analysis()
    assert memory.temp_size_in_bytes < 6 * 4 * A.nse  # less than six arrays of the entries
