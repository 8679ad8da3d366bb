"""The launches of a sparse product, interpreted, against dense products in NumPy and SciPy."""

import dataclasses
import functools
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from pallas_kernels.simt.device import Grid
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring, trace
from pallas_kernels.spgemm import api
from pallas_kernels.spgemm.api import Tuning, spgemm_assemble, spgemm_rows
from pallas_kernels.spgemm.by_warps import Warps
from pallas_kernels.spgemm.job import Algebra, MaskRows
from tests.kernels.test_lowering import lower
from tests.kernels.warps_apart import gridded

SMALL = Tuning(
    few=Warps(1, 64, 32, 8, 16, 512),
    middle=Warps(1, 32, 2, 32, 512, 0),
    medium_threads=64,
    large_threads=128,
)
CUT = Tuning(
    few=Warps(1, 64, 8, 4, 8, 256),
    middle=Warps(1, 32, 2, 8, 128, 0),
    large=300,
    medium_threads=64,
    medium_capacity=256,
    large_threads=128,
    large_capacity=512,
    window=1024,
)
TIMES = lambda a, b, i, k, j: a * b  # noqa: E731
PLUS = lambda a, b, i, k, j: a + b  # noqa: E731


@pytest.fixture(autouse=True)
def long_stretches(monkeypatch):
    """Warps take as many rows at a time as their tuning says, of small matrices too."""
    monkeypatch.setattr(api, "SHARE", 1)


def matrix(m, n, entries, seed=0, hub=None, dtype=np.float32):
    """CSR with values 1 .. 8; row `hub` is full."""
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, m, entries), rng.integers(0, n, entries)
    if hub is not None:
        row, col = np.append(row, np.full(n, hub)), np.append(col, np.arange(n))
    A = sp.coo_array((np.ones(len(row)), (row, col)), shape=(m, n)).tocsr()
    A.sum_duplicates()
    A.data = rng.integers(1, 9, A.nnz).astype(dtype)
    return A


def leaves(A, padding=0):
    indices = np.append(A.indices, np.full(padding, A.shape[1]))
    data = np.append(A.data, np.full(padding, 77)).astype(A.data.dtype)
    indptr, indices = (jnp.asarray(v, jnp.int32) for v in (A.indptr, indices))
    return indptr, indices, jnp.asarray(data)


def semiring(mul, combine, identity, dtype=np.float32):
    i = jnp.int32
    return ScalarSemiring(trace(mul, dtype, dtype, i, i, i), trace(combine, dtype, dtype), identity)


@gridded
def spgemm(a, b, *, columns, nse, **how):
    rows = spgemm_rows(a, b, columns=columns, nse=nse, **how)
    indices, data = spgemm_assemble(rows, columns=columns, nse=nse)
    return rows.indptr, indices, data, rows.total


def run(A, B, nse, algebra, add=None, mask=None, padding=3, **how):
    how = {"tuning": SMALL, "grid": Grid(2, 64, True)} | how
    a, b = leaves(A, padding), leaves(B, padding)
    algebra = Algebra(algebra, add)
    return spgemm(a, b, columns=B.shape[1], nse=nse, algebra=algebra, mask=mask, **how)


def expected(A, B, mul, combine):
    """dict (i, j) -> value, in the order of k."""
    found = {}
    for i in range(A.shape[0]):
        for s in range(A.indptr[i], A.indptr[i + 1]):
            k = A.indices[s]
            for t in range(B.indptr[k], B.indptr[k + 1]):
                j = B.indices[t]
                term = mul(A.data[s], B.data[t], i, k, j)
                found[i, j] = combine(found[i, j], term) if (i, j) in found else term
    return found


def check(result, want, m, n, nse):
    """Equal to the dict `want`, rows ascending, padding in its place."""
    indptr, indices, data, total = (np.asarray(v) for v in result)
    assert int(total) == len(want) and indptr[-1] == len(want)
    rows = np.repeat(np.arange(m), np.diff(indptr))
    places = sorted(want)
    assert [*zip(rows.tolist(), indices[: len(want)].tolist(), strict=True)] == places
    np.testing.assert_allclose(data[: len(want)], [want[p] for p in places], rtol=1e-6)
    assert (indices[len(want) :] == n).all() and len(indices) == nse


@pytest.mark.parametrize("tuning", [SMALL, CUT], ids=["whole", "cut"])
@pytest.mark.parametrize(
    "shape", [(60, 50, 70, 300, 3), (30, 90, 2500, 400, 5), (9, 1, 3, 5, None)]
)
def test_is_the_product_of_scipy(shape, tuning):
    m, l, n, entries, hub = shape
    A, B = matrix(m, l, entries, 1, hub), matrix(l, n, 2 * entries, 2, hub)
    C = sp.csr_array(A @ B)
    C.sort_indices()
    want = {(i, j): v for i, j, v in zip(*C.tocoo().coords, C.tocoo().data, strict=True)}
    algebra = semiring(TIMES, operator.add, 0.0)
    check(run(A, B, C.nnz + 7, algebra, "add", tuning=tuning), want, m, n, C.nnz + 7)


ALGEBRAS = {
    "min_plus": (PLUS, jnp.minimum, 2**31 - 1, "min", np.int32),
    "max_times": (TIMES, jnp.maximum, -np.inf, "max", np.float32),
    "product_plus": (
        lambda a, b, i, k, j: a * 0.125 + b * 0.125,
        operator.mul,
        1.0,
        None,
        np.float32,
    ),
    "xor_times": (TIMES, operator.xor, 0, None, np.int32),
    "max_firstj": (lambda a, b, i, k, j: k, jnp.maximum, -(2**31), "max", np.int32),
    "min_place": (
        lambda a, b, i, k, j: a + 3 * i + 5 * j - k,
        jnp.minimum,
        2**31 - 1,
        "min",
        np.int32,
    ),
    "plus_pair": (lambda a, b, i, k, j: a * 0 + 1, operator.add, 0, "add", np.int32),
}


@pytest.mark.parametrize("name", ALGEBRAS)
def test_semirings(name):
    mul, combine, identity, add, dtype = ALGEBRAS[name]
    A, B = matrix(12, 30, 100, 3, 4, dtype), matrix(30, 90, 1000, 4, 7, dtype)
    want = expected(A, B, mul, combine)
    products = np.diff(B.indptr)[A.indices].sum()
    assert products > 1500  # rows for warps, for medium and for large CTAs
    tuning = dataclasses.replace(CUT, large=350)
    algebra = semiring(mul, combine, identity, dtype)
    check(run(A, B, 1200, algebra, add, tuning=tuning), want, 12, 90, 1200)


@pytest.mark.parametrize("complement", [False, True])
@pytest.mark.parametrize("by_value", [False, True])
def test_masks(complement, by_value):
    A, B, M = matrix(12, 30, 100, 3, 4), matrix(30, 90, 1000, 4, 7), matrix(12, 90, 300, 5, 4)
    valid = M.toarray() > 0
    flags = (np.arange(M.nnz) % 3 != 0).astype(np.int32)
    if by_value:
        valid[M.tocoo().coords[0][flags == 0], M.tocoo().coords[1][flags == 0]] = False
    want = {p: v for p, v in expected(A, B, TIMES, operator.add).items() if valid[p] != complement}
    indptr, indices, _ = leaves(M)
    mask = MaskRows(indptr, indices, jnp.asarray(flags) if by_value else None, complement)
    algebra = semiring(TIMES, operator.add, 0.0)
    result = run(A, B, 1200, algebra, "add", mask)
    check(result, want, 12, 90, 1200)


def test_a_capacity_too_small_leaves_rows_out_and_tells_the_size():
    A, B = matrix(40, 50, 150, 1, 3), matrix(50, 70, 600, 2, 7)
    want = expected(A, B, TIMES, operator.add)
    algebra = semiring(TIMES, operator.add, 0.0)
    for nse in (0, 1, 900):
        indptr, indices, data, total = map(np.asarray, run(A, B, nse, algebra, "add"))
        assert int(total) == len(want) and indptr[-1] <= nse and len(data) == nse
        rows = np.repeat(np.arange(40), np.diff(indptr))
        for i, j, v in zip(rows, indices, data, strict=False):
            assert v == want[i, j]
    assert indptr[-1] > 300  # the last of these capacities holds many rows


def test_no_entries():
    A, B = sp.csr_array((5, 4), dtype=np.float32), matrix(4, 6, 9)
    algebra = semiring(TIMES, operator.add, 0.0)
    check(run(A, B, 3, algebra, "add"), {}, 5, 6, 3)
    check(run(B, sp.csr_array((6, 3), dtype=np.float32), 0, algebra, "add"), {}, 4, 3, 0)


@pytest.mark.parametrize("masked", [False, True])
def test_launches(masked):
    A = matrix(300, 300, 2000)
    algebra = Algebra(semiring(TIMES, operator.add, 0.0), "add")

    def product(a):
        mask = MaskRows(*a[:2], None) if masked else None
        return spgemm(a, a, columns=300, nse=9000, algebra=algebra, mask=mask)

    text = lower(product, leaves(A))
    assert text.count("custom_call @mosaic_gpu") == 6


@pytest.mark.gpu
@pytest.mark.parametrize("tuning", [Tuning(), CUT], ids=["whole", "cut"])
def test_native(tuning):
    if tuning is CUT:
        warps = {"few": Warps(2, 128, 8, 4, 8, 256), "middle": Warps(2, 128, 2, 8, 128, 0)}
        tuning = dataclasses.replace(tuning, medium_threads=256, large_threads=256, **warps)
    for m, entries, hub in ((400, 3000, 5), (5000, 40000, 17), (3000, 90000, None)):
        A, B = matrix(m, m, entries, 1, hub), matrix(m, m, 2 * entries, 2, 7)
        C = sp.csr_array(A @ B)
        C.sort_indices()
        for add in ("add", None):
            algebra = Algebra(semiring(TIMES, operator.add, 0.0), add)
            product = functools.partial(
                spgemm, columns=m, nse=C.nnz + 5, algebra=algebra, tuning=tuning
            )
            for _ in range(2):
                indptr, indices, data, total = jax.jit(product)(leaves(A), leaves(B))
                assert int(total) == C.nnz
                np.testing.assert_array_equal(indptr, C.indptr)
                np.testing.assert_array_equal(indices[: C.nnz], C.indices)
                np.testing.assert_allclose(data[: C.nnz], C.data, rtol=1e-5)


@pytest.mark.gpu
def test_a_product_of_known_matrices_within_a_trace():
    """Its size is counted while tracing, by the kernel too."""
    M = matrix(500, 500, 4000, 1, 7)
    A, want = jsp.from_scipy(M), sp.csr_array(M @ M)
    found = jax.jit(lambda c: jsp.mxm(A, A, backend="pallas").todense().sum() * c)(2.0)
    np.testing.assert_allclose(found, 2 * want.sum(), rtol=1e-5)
    assert jsp.explain("mxm", A, A).on("cuda").backend == "pallas"
