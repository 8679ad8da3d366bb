"""On a CPU every loop of a product and of its derivative is compiled to a native function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv.native import bind

N, NSE = 40, 1600
MINE = jsp.Semiring(jsp.monoids.plus, jsp.operators.BinaryOp(lambda x, y: x * y + 1, "mine"))


def product(A):
    return jsp.mxm(A, A, MINE, nse=NSE)


def masked(A):
    return jsp.mxm(A, A, MINE, mask=jsp.structure(A), nse=NSE)


def slopes(A):
    return jax.grad(lambda d: jnp.sum(jsp.mxm(A.with_data(d), A, nse=NSE).data ** 2))(A.data)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="the loops are for CPUs")
@pytest.mark.parametrize("fn, least", [(product, 5), (masked, 5), (slopes, 4)])
def test_loops_are_native(fn, least):
    if reason := bind.refused():
        pytest.skip(reason)
    A = jsp.from_dense((np.random.default_rng(0).random((N, N)) < 0.2).astype(np.float32))
    text = jax.jit(fn).lower(A).compile().as_text()
    assert text.count('xla_cpu_small_call="true"') == text.count(" while(") >= least


def test_a_clamped_sum_counts_where_the_mask_asks_for_it():
    """The loop makes products that the mask leaves out, too: those may not set `overflow`."""
    top = np.iinfo(np.int32).max
    A = jsp.from_edges([0, 0], [0, 1], np.array([1, top - 3], np.int32), shape=(2, 2))
    B = jsp.from_edges([0, 1], [0, 1], np.array([1, 9], np.int32), shape=(2, 2))
    for cell, over in ((0, False), (1, True)):
        mask = jsp.structure(jsp.from_edges([0], [cell], shape=(2, 2)))
        for method in ("gustavson", "sort"):
            if method == "gustavson" and bind.refused():
                continue
            C = jsp.mxm(A, B, jsp.semirings.min_plus, mask=mask, method=method)
            assert int(C.count) == 1 and bool(C.overflow) == over, (cell, method)


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


@pytest.mark.long
@pytest.mark.skipif(bind.refused() is not None, reason="without the C++ kernels")
def test_a_product_of_too_many_entries_is_refused_before_all_are_counted():
    leaves = np.arange(1, 1_000_000, dtype=np.int32)  # the square of a star: 10^12 entries
    A = jsp.from_edges(np.r_[0 * leaves, leaves], np.r_[leaves, 0 * leaves])
    with pytest.raises(ValueError, match="2\\^31 entries or more"):
        jsp.mxm(A, A)
