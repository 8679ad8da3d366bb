"""On a CPU every loop of a product and of its derivative is compiled to a native function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv._core.platforms import without_kernels

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
    with without_kernels():  # which serve before loops
        text = jax.jit(fn).lower(A).compile().as_text()
    assert text.count('xla_cpu_small_call="true"') == text.count(" while(") >= least


@pytest.mark.parametrize("n", [1 << 10, 33_000, (1 << 18) + 1, 700_000])
def test_columns_far_apart(n):
    """Rows whose columns are in all words, groups and blocks, or in few; some without entries."""
    rng = np.random.default_rng(n)
    row = np.concatenate([rng.integers(0, n, 400), np.full(60, n - 1), np.zeros(60, int)])
    col = np.concatenate([rng.choice(row, 400), rng.integers(0, n, 119), [n - 1]])
    S = sp.csr_array((np.ones(len(row), np.float32), (row, col)), shape=(n, n))
    S.sum_duplicates()
    want = sp.csr_array(S @ S)
    want.sort_indices()
    A = jsp.from_scipy(S)
    whole = jsp.mxm(A, A)
    whole.check_invariants()
    got = whole.to_scipy()
    np.testing.assert_array_equal(got.indptr, want.indptr)
    np.testing.assert_array_equal(got.indices, want.indices)
    np.testing.assert_array_equal(got.data, want.data)
    cut = jax.jit(lambda A: jsp.mxm(A, A, nse=want.nnz - 7))(A)
    assert bool(cut.overflow) and not bool(whole.overflow) and int(whole.count) == want.nnz
