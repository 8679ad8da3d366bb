"""Sparse vectors, sampled products and PageRank in C++ against NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.formats.vector import vector_from_dense
from jaxspv.native import bind

pytestmark = [
    pytest.mark.fast,
    pytest.mark.skipif(bind.refused() is not None, reason=str(bind.refused())),
]
RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((30, 41)) < 0.2, RNG.integers(1, 9, (30, 41)), 0)


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("masked", [False, True])
def test_products_with_sparse_vectors_hold_the_rows_that_are_met(form, dtype, masked):
    A = jsp.from_dense(DENSE.astype(dtype)).asformat(form)
    x = np.where(RNG.random(41) < 0.3, RNG.integers(1, 9, 41), 0).astype(dtype)
    mask = RNG.random(30) < 0.5 if masked else None
    v = vector_from_dense(jnp.asarray(x))
    assert jsp.explain(jsp.mxv, A, v, mask=mask).on("cpu").name == "native"
    y = jsp.mxv(A, v, mask=mask)
    met = ((DENSE != 0) & (x != 0)).any(axis=1) & (True if mask is None else mask)
    np.testing.assert_array_equal(y.todense(), np.where(met, DENSE @ x, 0))
    np.testing.assert_array_equal(y.indices[: int(y.count)], np.flatnonzero(met))


def test_sparse_vectors_of_lengths_of_paths_by_least_sums():
    A = jsp.from_dense(DENSE.astype(np.float32))
    x = np.where(RNG.random(41) < 0.3, RNG.integers(1, 9, 41), 0).astype(np.float32)
    y = jsp.mxv(A, vector_from_dense(jnp.asarray(x)), jsp.semirings.min_plus)
    sums = np.where((DENSE != 0) & (x != 0), DENSE + x, np.inf).min(axis=1)
    np.testing.assert_array_equal(y.data[: int(y.count)], sums[np.isfinite(sums)])


@pytest.mark.parametrize("k", [1, 7, 8, 70])
def test_sampled_products_are_dot_products(k):
    A = jsp.from_dense(DENSE.astype(np.float32))
    X, Y = (RNG.random((n, k)).astype(np.float32) for n in DENSE.shape)
    assert "cpu/native" in str(jsp.explain(jsp.sddmm, A, X, Y)).splitlines()[0]
    got = jsp.sddmm(A, X, Y).todense()
    np.testing.assert_allclose(got, np.where(DENSE, X @ Y.T, 0), rtol=1e-5)


@pytest.mark.parametrize("symmetric", [False, True])
def test_pagerank_solves_its_equation(symmetric):
    A = DENSE[:, :30].astype(np.float32)
    A[3] = 0  # dangles
    A = A + A.T if symmetric else A
    G = jsp.prepare(jsp.from_dense(A), for_=("bfs",))
    assert G.symmetric == symmetric
    x = np.asarray(jsp.pagerank(G, tol=1e-7, method="native").scores, float)
    out = A.sum(axis=1)
    share = np.divide(x, out, out=np.zeros(30), where=out > 0)
    want = 0.85 * (share @ A + x[out == 0].sum() / 30) + 0.15 / 30
    np.testing.assert_allclose(x, want, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_logical_monoids_take_truth_values(dtype):
    """Not the least or the largest of the numbers: -1 or 0 is true, -1 and 0 is not."""
    values = np.array([-1, 0]).astype(dtype)
    A = jsp.from_edges([0, 0], [0, 1], values, shape=(1, 2), format="csr")
    x = jsp.vector_from_entries([0, 1], values, 2)
    for name, wanted in (("lor_first", True), ("lor_second", True), ("land_second", False)):
        for M in (A, A.asformat("csc")):
            for y in (jsp.mxv(M, x, name), jsp.vxm(x, M.T, name), jsp.mxm(M, A.T, name)):
                assert y.dtype == bool and y.data.tolist()[:1] == [wanted]
