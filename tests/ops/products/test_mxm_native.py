"""On a CPU every loop of a product and of its derivative is compiled to a native function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

N, NSE = 40, 1600


def product(A):
    return jsp.mxm(A, A, nse=NSE)


def masked(A):
    return jsp.mxm(A, A, jsp.semirings.plus_pair, mask=jsp.structure(A), nse=NSE)


def slopes(A):
    return jax.grad(lambda d: jnp.sum(jsp.mxm(A.with_data(d), A, nse=NSE).data ** 2))(A.data)


@pytest.mark.parametrize("fn, least", [(product, 12), (masked, 5), (slopes, 16)])
def test_loops_are_native(fn, least):
    if jax.default_backend() != "cpu":
        pytest.skip("the loops are for CPUs")
    A = jsp.from_dense((np.random.default_rng(0).random((N, N)) < 0.2).astype(np.float32))
    text = jax.jit(fn).lower(A).compile().as_text()
    assert text.count('xla_cpu_small_call="true"') == text.count(" while(") >= least
