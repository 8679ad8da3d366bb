"""Products at given places, interpreted, against loops in NumPy."""

import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels.simt.device import Grid
from pallas_kernels.spgemm.dots import spgemm_dots
from pallas_kernels.spgemm.job import Algebra
from tests.kernels.spgemm.test_spgemm_kernel import ALGEBRAS, TIMES, leaves, matrix, semiring
from tests.kernels.test_lowering import lower
from tests.kernels.warps_apart import gridded

spgemm_dots = gridded(spgemm_dots)


def expected(A, B, row, column, mul, combine):
    """Values and whether there is one, place by place; those of B by columns."""
    values, valid = [], []
    for i, j in zip(row, column, strict=True):
        found = None
        if 0 <= i < A.shape[0] and 0 <= j < B.shape[1]:
            for s in range(A.indptr[i], A.indptr[i + 1]):
                k = A.indices[s]
                for t in range(B.indptr[j], B.indptr[j + 1]):
                    if B.indices[t] == k:
                        term = mul(A.data[s], B.data[t], i, k, j)
                        found = term if found is None else combine(found, term)
        values.append(found or 0)
        valid.append(found is not None)
    return np.array(values), np.array(valid)


@pytest.mark.parametrize("name", ALGEBRAS)
def test_is_the_definition(name):
    mul, combine, identity, add, dtype = ALGEBRAS[name]
    A = matrix(20, 60, 200, 3, 4, dtype)
    B = matrix(30, 60, 250, 4, 7, dtype).T  # CSC
    rng = np.random.default_rng(0)
    row, column = rng.integers(0, 22, 150), rng.integers(-1, 31, 150)  # some out of range
    values, valid = expected(A, B, row, column, mul, combine)
    assert 30 < valid.sum() < 140
    places = jnp.asarray(row, jnp.int32), jnp.asarray(column, jnp.int32)
    how = {"grid": Grid(2, 64, interpret=True)}
    algebra = Algebra(semiring(mul, combine, identity, dtype), add)
    got, found = spgemm_dots(leaves(A, 3), leaves(B.T, 2), *places, algebra=algebra, **how)
    np.testing.assert_array_equal(found != 0, valid)
    np.testing.assert_allclose(np.asarray(got)[valid], values[valid], rtol=1e-5)


def test_is_one_launch():
    A, places = leaves(matrix(300, 300, 2000)), jnp.zeros(700, jnp.int32)
    algebra = Algebra(semiring(TIMES, operator.add, 0.0), "add")
    text = lower(lambda A, p: spgemm_dots(A, A, p, p, algebra=algebra), A, places)
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
def test_native():
    A, B = matrix(4000, 4000, 60000, 1, 7), matrix(4000, 4000, 60000, 2, 9).T
    M = matrix(4000, 4000, 50000, 3)
    row, column = (jnp.asarray(v, jnp.int32) for v in M.tocoo().coords)
    pattern = M.copy()
    pattern.data[:] = 1
    want = (A @ B).tocsr().multiply(pattern).tocsr()
    for add in ("add", None):
        algebra = Algebra(semiring(TIMES, operator.add, 0.0), add)
        product = jax.jit(lambda *v, algebra=algebra: spgemm_dots(*v, algebra=algebra))
        values, valid = map(np.asarray, product(leaves(A), leaves(B.T), row, column))
        assert int(valid.sum()) == want.nnz
        np.testing.assert_allclose(
            values[valid != 0], want[M.tocoo().coords][valid != 0], rtol=1e-5
        )
