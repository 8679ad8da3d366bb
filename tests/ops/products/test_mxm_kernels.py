"""What the kernels of sparse products get and give, interpreted, beside SuiteSparse:GraphBLAS."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from graphblas_reference import gb

import jaxspv as jsp
from jaxspv.formats.csr import sorted_csr
from jaxspv.ops.products.mxm import gpu
from jaxspv.ops.products.mxm.call import checked, sorted_mask
from pallas_kernels.simt.device import Grid, launching

M, L, N, CAPACITY = 20, 30, 40, 800
CASES = [
    ("plus_times", np.float32),
    ("min_plus", np.float32),
    ("max_times", np.int32),
    ("lor_land", np.bool_),
    ("lxor_land", np.bool_),
    ("plus_pair", np.int32),
    ("any_pair", np.float32),
    ("min_secondi", np.int32),
    ("max_firsti", np.float32),
    ("times_plus", np.float32),
]


def matrix(m, n, density, seed, dtype):
    A = sp.random_array((m, n), density=density, rng=np.random.default_rng(seed), format="csr")
    A.data = np.random.default_rng(seed).integers(1, 5, A.nnz).astype(dtype)
    return A


LISTED = matrix(M, N, 0.3, 3, np.int32)
LISTED.data = np.arange(LISTED.nnz, dtype=np.int32) % 3  # explicit zeros among them
MASKS = {
    "none": lambda M, structure: None,
    "structure": lambda M, structure: structure(M),
    "not structure": lambda M, structure: ~structure(M),
    "value": lambda M, structure: jsp.Mask(M) if isinstance(M, jsp.CSR) else M.V,
    "not value": lambda M, structure: ~(jsp.Mask(M) if isinstance(M, jsp.CSR) else M.V),
}


def ours(A):
    """With padding."""
    return jsp.from_scipy(A, nse=A.nnz + 5)


def theirs(A):
    rows, cols = A.tocoo().coords
    return gb.Matrix.from_coo(rows, cols, A.data, nrows=A.shape[0], ncols=A.shape[1])


@pytest.fixture(autouse=True)
def on_the_host():
    with launching(Grid(2, 64, interpret=True)):
        yield


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name, dtype", CASES)
def test_kernels_give_what_graphblas_gives(name, dtype, mask):
    A, B = matrix(M, L, 0.3, 1, dtype), matrix(L, N, 0.5, 2, dtype)
    call = checked(
        ours(A), ours(B), getattr(jsp.semirings, name), MASKS[mask](ours(LISTED), jsp.structure)
    )
    assert gpu.no_rows(*call.operands) is None
    known = gb.semiring.ss if name[-1] == "i" else gb.semiring
    product = getattr(known, name)(theirs(A) @ theirs(B))
    rows, cols, values = product.new(mask=MASKS[mask](theirs(LISTED), lambda M: M.S)).to_coo()
    first, wanted = sorted_csr(call.A), sorted_mask(call.mask)
    how = {"nse": CAPACITY}
    results = [gpu.multiply_by_rows(call.semiring, first, sorted_csr(call.B), wanted, **how)]
    if mask in ("structure", "value"):  # which list places
        assert wanted is not None
        columns = sorted_csr(call.B.T).T
        results.append(gpu.multiply_places(call.semiring, first, columns, wanted, **how))
    for r in results:
        count = int(r.total)
        assert count == len(values) > 50
        np.testing.assert_array_equal(np.repeat(np.arange(M), np.diff(r.indptr)), rows)
        np.testing.assert_array_equal(r.indices[:count], cols)
        assert (np.asarray(r.indices[count:]) == N).all()
        np.testing.assert_allclose(r.data[:count], values, rtol=1e-5)


def test_logarithms_of_sums():
    A, B = matrix(M, L, 0.3, 1, np.float32), matrix(L, N, 0.5, 2, np.float32)
    call = checked(ours(A), ours(B), jsp.semirings.log_plus, jsp.structure(ours(LISTED)))
    assert gpu.no_rows(*call.operands) is None
    a, b = (np.where(S.toarray() == 0, -np.inf, S.toarray()) for S in (A, B))
    places = np.logaddexp.reduce(a[:, :, None] + b, axis=1)
    first, wanted = sorted_csr(call.A), sorted_mask(call.mask)
    how = {"nse": CAPACITY}
    for r in (
        gpu.multiply_by_rows(call.semiring, first, sorted_csr(call.B), wanted, **how),
        gpu.multiply_places(call.semiring, first, sorted_csr(call.B.T).T, wanted, **how),
    ):
        count = int(r.total)
        rows = np.repeat(np.arange(M), np.diff(r.indptr))
        assert count == (np.isfinite(places) & listed()).sum() > 50
        np.testing.assert_allclose(r.data[:count], places[rows, r.indices[:count]], rtol=1e-6)


def listed():
    """Which places LISTED has, explicit zeros among them."""
    rows, cols = LISTED.tocoo().coords
    places = np.zeros(LISTED.shape, bool)
    places[rows, cols] = True
    return places


def test_what_the_kernels_do_not_serve_is_told():
    A = ours(matrix(5, 5, 0.5, 0, np.float32))

    def reason(A, semiring, mask=None):
        return str(gpu.no_rows(*checked(A, A, semiring, mask).operands))

    s = jsp.semirings
    assert reason(A, s.plus_times) == "None"
    assert "mask is an array" in reason(A, s.plus_times, jnp.ones((5, 5), bool))
    assert "not int8" in reason(A.astype(jnp.int8), s.plus_times)
    assert "overflow" in reason(A.astype(jnp.int32), s.min_plus)
    assert "in any order" in reason(A, s.any_first)
    assert "`atan2`" in reason(A, jsp.semiring(jsp.monoids.plus, jsp.operators.atan2))


def test_derivatives_by_kernels():
    rng = np.random.default_rng(5)
    first, second = matrix(M, L, 0.3, 1, np.float32), matrix(L, N, 0.5, 2, np.float32)
    A, B = ours(first), ours(second)
    C = jsp.mxm(A, B, mask=jsp.structure(ours(LISTED)), nse=CAPACITY)
    places, w = C.to_scipy(), rng.standard_normal(CAPACITY).astype(np.float32)
    weights = sp.csr_array((w[: places.nnz], places.indices, places.indptr), shape=places.shape)
    along = gpu.product_along(A, B, C)
    np.testing.assert_allclose(along[: places.nnz], places.data, rtol=1e-5)
    assert not along[places.nnz :].any()
    by_a, by_b = gpu.cotangents(A, B, C, jnp.asarray(w), (True, True))
    for found, S, whole in ((by_a, first, weights @ second.T), (by_b, second, first.T @ weights)):
        row, col = S.tocoo().coords
        np.testing.assert_allclose(found[: S.nnz], whole.toarray()[row, col], rtol=1e-4, atol=1e-4)
        assert not found[S.nnz :].any()
    (alone,) = gpu.cotangents(A, B, C, jnp.asarray(w), (False, True))
    np.testing.assert_array_equal(alone, by_b)
