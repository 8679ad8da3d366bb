"""Sparse products on a GPU: each of its methods, eager and under jit, against SciPy."""

import jax
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp

pytestmark = pytest.mark.gpu
M, L, N = 300, 70_000, 200  # wide enough for inner indices beyond 16 bits


def integers(m, n, entries, seed):
    """A matrix of small integers, whose products and sums float32 holds exactly."""
    rng = np.random.default_rng(seed)
    place = rng.permutation(m * 97)[:entries]
    row, col = place % m, (place // m * 719) % n
    values = rng.integers(1, 9, entries).astype(np.float32)
    return sp.csr_array((values, (row, col)), shape=(m, n))


FIRST, SECOND = integers(M, L, 4_000, 0), integers(N, L, 3_000, 1).T.tocsr()
MASK = integers(M, N, 900, 2)


def same(C, want):
    """C holds exactly the entries of a SciPy matrix."""
    got, want = C.to_scipy(), sp.csr_array(want)
    want.sort_indices()
    assert not bool(C.overflow) and int(C.count) == want.nnz
    np.testing.assert_array_equal(got.indptr, want.indptr)
    np.testing.assert_array_equal(got.indices, want.indices)
    np.testing.assert_array_equal(got.data, want.data)


@pytest.mark.parametrize(
    "method, chunk", [("auto", None), ("rows", None), ("sort", 500), ("dense", 500)]
)
def test_products(method, chunk):
    A, B = jsp.from_scipy(FIRST), jsp.from_scipy(SECOND)
    want = FIRST @ SECOND
    eager = jsp.mxm(A, B, method=method, chunk=chunk)
    assert (
        eager.data.devices().pop().platform == "gpu"
        and eager.nse >= int(eager.count) == want.nnz > 100
    )
    same(eager, want)
    if chunk is not None:
        return  # one of them under jit is enough: compiling takes most of the time
    program = jax.jit(lambda A, B: jsp.mxm(A, B, nse=want.nnz + 3, method=method, chunk=chunk))
    same(program(A, B), want)


@pytest.mark.parametrize("method", ["dot", "sort", "rows"])
def test_masked_products(method):
    A, B, mask = (jsp.from_scipy(S) for S in (FIRST, SECOND, MASK))
    whole, inside = FIRST @ SECOND, (FIRST @ SECOND).multiply(MASK != 0)
    assert 0 < inside.nnz < whole.nnz
    same(jsp.mxm(A, B, mask=jsp.structure(mask), method=method), inside)
    if method != "dot":
        same(jsp.mxm(A, B, mask=~jsp.structure(mask), method=method), whole - inside)


def test_min_plus_and_a_square_beyond_32_bit_places():
    n = 70_000  # (n + 1)^2 > 2^32: places are sorted by two keys
    rng = np.random.default_rng(3)
    row, col = rng.integers(0, n, (2, 5_000))
    row[:2_500] = col[2_500:]  # so that paths of two edges exist
    S = sp.csr_array((np.ones(5_000, np.float32), (row, col)), shape=(n, n))
    S.sum_duplicates()
    A = jsp.from_scipy(S)
    same(jsp.mxm(A, A), S @ S)
    paths = jsp.mxm(
        A.with_data(A.data * 0 + 1), A.with_data(A.data * 0 + 2), jsp.semirings.min_plus
    )
    assert int(paths.count) == (S @ S).nnz and (np.asarray(paths.trim().data) == 3).all()


def test_gradients_are_those_of_dot_products():
    A, B = jsp.from_scipy(FIRST), jsp.from_scipy(SECOND)
    want = sp.csr_array(FIRST @ SECOND)
    want.sort_indices()
    weights = want.copy()
    weights.data = np.random.default_rng(7).integers(-4, 5, want.nnz).astype(np.float32)

    @jax.jit
    def gradients(a, b, w):
        def loss(a, b):
            C = jsp.mxm(A.with_data(a), B.with_data(b), nse=want.nnz)
            return (C.data * w).sum()

        return jax.grad(loss, (0, 1))(a, b)

    found = gradients(A.data, B.data, weights.data)
    for got, S, whole in (
        (found[0], A.to_scipy(), weights @ SECOND.T),
        (found[1], B.to_scipy(), FIRST.T @ weights),
    ):
        row, col = S.tocoo().coords
        np.testing.assert_array_equal(got, np.asarray(sp.csr_array(whole)[row, col]).ravel())
