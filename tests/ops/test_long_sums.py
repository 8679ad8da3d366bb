"""Long sums of sparse products in float32: as near to float64 as one rounding."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

TERMS = 30_000
ROW = jnp.asarray(np.random.default_rng(0).uniform(990, 1010, TERMS).astype(np.float32))
WANT = np.asarray(ROW, np.float64).sum()
PLACES = np.arange(TERMS, dtype=np.int32)


def row():
    return jsp.from_edges(np.ones_like(PLACES), PLACES, ROW, shape=(3, TERMS))


def near(total):
    np.testing.assert_allclose(float(total), WANT, rtol=1.2e-7)


@pytest.mark.parametrize("method", ["scatter", "sort"])
def test_sparse_vectors(method):
    arrays = jnp.ones(TERMS), jnp.asarray(PLACES), jnp.int32(TERMS), jnp.asarray(False)
    x = jsp.SparseVector(*arrays, (TERMS,))
    near(jsp.mxv(row().asformat("csc"), x, method=method).data[0])


@pytest.mark.parametrize("method", ["dense", "sort", "dot"])
def test_sparse_matrices(method):
    B = jsp.from_edges(PLACES, np.ones_like(PLACES), np.ones(TERMS, np.float32), shape=(TERMS, 3))
    mask = jsp.structure(jsp.from_edges([1, 2], [1, 0], shape=(3, 3))) if method == "dot" else None
    B = B.asformat("csc") if method == "dot" else B
    near(jsp.mxm(row(), B, mask=mask, method=method, backend="xla").data[0])


def test_dense_matrices_of_columns():
    X = jnp.ones((TERMS, 2))
    near(jsp.mxm(row().asformat("csc"), X, backend="xla")[1, 1])
