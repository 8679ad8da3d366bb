"""The C++ kernels of products of matrices and of conversions, against NumPy and SciPy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv.native import bind

pytestmark = pytest.mark.fast
N = 30
ADD = {"plus": np.add, "min": np.minimum, "max": np.maximum}
MUL = {
    "times": np.multiply,
    "plus": np.add,
    "first": lambda x, y: x + 0 * y,
    "second": lambda x, y: y + 0 * x,
    "pair": lambda x, y: np.ones_like(x * y),
    "min": np.minimum,
    "max": np.maximum,
}
SEMIRINGS = ["plus_times", "plus_first", "plus_second", "plus_pair", "min_plus", "max_plus"]
SEMIRINGS += ["min_max", "max_min", "min_first", "max_second"]


@pytest.fixture(autouse=True, scope="module")
def compiled():
    if reason := bind.refused():
        pytest.skip(reason)


def _matrix(seed, dtype=np.float32, shape=(N, N), density=0.2):
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 9, shape).astype(dtype)
    valid = rng.random(shape) < density
    dense = np.where(valid, values, np.zeros((), dtype))
    return jsp.from_scipy(sp.csr_array(dense)), dense


def _product(semiring, a, b):
    """(values, where there are any) of stored entries that meet, all pairs one by one."""
    add, mul = semiring.split("_")
    values, valid = (
        np.zeros((a.shape[0], b.shape[1]), a.dtype),
        np.zeros((a.shape[0], b.shape[1]), bool),
    )
    for i, k in zip(*np.nonzero(a), strict=True):
        for j in np.flatnonzero(b[k]):
            term = MUL[mul](a[i, k], b[k, j])
            values[i, j] = ADD[add](values[i, j], term) if valid[i, j] else term
            valid[i, j] = True
    return values, valid


def _pattern(C):
    return np.asarray(C.with_data(np.ones(C.nse, np.float32)).todense()) > 0


@pytest.mark.parametrize("semiring", SEMIRINGS)
def test_products_of_sparse_matrices(semiring):
    A, a = _matrix(0)
    B, b = _matrix(1)
    M, m = _matrix(2)
    values, valid = _product(semiring, a, b)
    for mask, allowed in (
        (None, True),
        (jsp.structure(M), m > 0),
        (~jsp.structure(M), m == 0),
        (M.with_data(M.data - 1), m > 1),
        (~jsp.Mask(M.with_data(M.data - 1)), m <= 1),
    ):
        C = jsp.mxm(A, B, semiring, mask=mask)
        assert "not cpu/gustavson" not in str(jsp.explain(jsp.mxm, A, B, semiring, mask=mask))
        np.testing.assert_array_equal(_pattern(C), valid & allowed)
        np.testing.assert_allclose(C.todense(), np.where(valid & allowed, values, 0), rtol=1e-6)
        assert C.sorted and C.check_invariants() is not None and not C.overflow


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "bool"])
def test_products_in_other_dtypes(dtype):
    with jax.enable_x64(dtype in ("float64", "int64")):
        A, a = _matrix(0, dtype)
        semiring = jsp.semirings.lor_land if dtype == "bool" else "plus_times"
        C = jsp.mxm(A, A, semiring)
        assert C.dtype == dtype
        want = a.astype(np.int64) @ a.astype(np.int64)
        np.testing.assert_array_equal(C.todense(), want.astype(dtype))


@pytest.mark.parametrize("extent", [400, 70_000])
def test_rows_of_every_number_of_columns_are_in_order(extent):
    """Few are ordered by rank, more by bits or by a sort, where they lie far apart."""
    rng = np.random.default_rng(8)
    rows = [rng.permutation(extent)[:k] for k in range(260)]
    ptr = np.append(0, np.cumsum([len(row) for row in rows]))
    S = sp.csr_array((rng.integers(1, 9, ptr[-1]).astype(np.float32), np.concatenate(rows), ptr))
    L = sp.eye_array(260, format="csr", dtype=np.float32) + sp.eye_array(260, k=-7)
    C = jsp.mxm(*map(jsp.from_scipy, (L.astype(np.float32).tocsr(), S)))
    want = (L @ S).astype(np.float32).tocsr()
    want.sort_indices()
    np.testing.assert_array_equal(C.indptr, want.indptr)
    np.testing.assert_array_equal(C.indices[: want.nnz], want.indices)
    np.testing.assert_array_equal(C.data[: want.nnz], want.data)


def test_columns_far_apart_and_long_rows_are_in_order():
    rng = np.random.default_rng(3)
    S = sp.random_array((50, 100_000), density=0.002, rng=rng, format="csr", dtype=np.float32)
    S = sp.vstack([S, sp.csr_array(np.ones((1, 100_000), np.float32))]).tocsr()
    L = sp.random_array((40, 51), density=0.2, rng=rng, format="csr", dtype=np.float32)
    C = jsp.mxm(jsp.from_scipy(L), jsp.from_scipy(S))
    want = (L @ S).tocsr()
    want.sort_indices()
    np.testing.assert_array_equal(C.indptr, want.indptr)
    np.testing.assert_array_equal(C.indices[: want.nnz], want.indices)
    np.testing.assert_allclose(C.data[: want.nnz], want.data, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_neither_threads_nor_capacity_change_a_sum(dtype):
    """Rows of few products and of many, which are held a part at a time, in one matrix."""
    rng = np.random.default_rng(4)
    S = sp.random_array((3000, 3000), density=1e-3, rng=rng, format="csr")
    S += sp.vstack([sp.random_array((40, 3000), density=0.3, rng=rng), S[40:]])
    S.data = (rng.standard_normal(S.nnz) * 1000).astype(dtype)
    A, found = jsp.from_scipy(S.astype(dtype)), []
    try:
        for threads in (1, 2, 3):
            jsp.config.set_num_threads(threads)
            found.append(jsp.mxm(A, A))
            found.append(jsp.mxm(A, A, nse=int(found[0].count)))
    finally:
        jsp.config.set_num_threads(0)
    for C in found:
        np.testing.assert_array_equal(C.trim().data, found[0].trim().data)
        np.testing.assert_array_equal(C.trim().indices, found[0].trim().indices)
    want = (S @ S).toarray()
    np.testing.assert_allclose(found[0].todense(), want, rtol=1e-4, atol=1e-6 * abs(want).max())


def test_a_product_without_room_is_cut_and_says_so():
    A, a = _matrix(0)
    cut = jax.jit(lambda A: jsp.mxm(A, A, nse=20))(A)
    assert bool(cut.overflow) and int(cut.count) == 20
    dense, whole = np.asarray(cut.todense()), a @ a
    np.testing.assert_array_equal(dense[dense != 0], whole[dense != 0])


@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "max_min", "plus_second"])
@pytest.mark.parametrize("columns", [1, 5, 39])
def test_products_with_dense_matrices(semiring, columns):
    A, a = _matrix(0)
    x = np.random.default_rng(5).integers(1, 9, (N, columns)).astype(np.float32)
    assert "cpu/native" in str(jsp.explain(jsp.mxm, A, x, semiring))
    values, valid = _product(semiring, a, x)
    empty = {"plus": 0, "min": np.inf, "max": -np.inf}[semiring.split("_")[0]]
    np.testing.assert_allclose(jsp.mxm(A, x, semiring), np.where(valid, values, empty), rtol=1e-6)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ["plus_times", "min_plus", "max_first"])
@pytest.mark.parametrize("k", [1, 15, 83])
def test_entries_listed_by_column(k, name, threads):
    """Against the same entries by row: each term in the same order; NaN spreads, a row is empty."""
    rng = np.random.default_rng(k)
    S = sp.random_array((60, 300), density=0.1, rng=rng, dtype=np.float32).tocsc()
    S = sp.csc_array(S * (np.arange(60) != 7)[:, None])
    S.eliminate_zeros()
    X = rng.random((300, k), np.float32)
    X[5, 0] = np.nan
    by_row = jsp.mxm(jsp.from_scipy(S.tocsr()), X, name)
    try:
        jsp.config.set_num_threads(threads)
        found = jsp.mxm(jsp.from_scipy(S), X, name)
    finally:
        jsp.config.set_num_threads(0)
    np.testing.assert_array_equal(found, by_row)
    if name == "plus_times":
        met = np.where(np.arange(k) == 0, S[:, [5]].toarray() != 0, False)  # terms that are NaN
        want = np.where(met, np.nan, S.toarray() @ np.nan_to_num(X))
        np.testing.assert_allclose(found, want, rtol=1e-5)


def test_long_rows_listed_by_column_are_added_up_in_double():
    n = 20_000  # more than 2^14
    data = np.full(n, 0.1, np.float32)
    A = jsp.from_scipy(sp.csc_array((data, np.zeros(n, int), np.arange(n + 1)), shape=(2, n)))
    found = jsp.mxm(A, np.ones((n, 3), np.float32))
    np.testing.assert_allclose(found, [[n * float(data[0])] * 3, [0] * 3], rtol=1e-7)


def test_long_rows_are_added_up_in_double():
    n = 1 << 16
    A = jsp.from_scipy(sp.csr_array(np.ones((1, n), np.float32)))
    x = np.full((n, 3), 1e-4, np.float32)
    x[0] = 1e4
    want = np.float32(x.astype(np.float64).sum(0))
    np.testing.assert_array_equal(A @ x, want[None])


def test_gradients_and_vmap_of_products():
    A, a = _matrix(0)
    x = np.random.default_rng(6).random((N, 4)).astype(np.float32)
    grad = jax.grad(lambda d: jnp.sum(jsp.mxm(A.with_data(d), A, nse=900).data))(A.data)
    col = np.nonzero(a)[1]
    np.testing.assert_allclose(grad, a.sum(1)[col], rtol=1e-5)
    of_x = jax.grad(lambda x: jnp.sum((A @ x) ** 2))(x)
    np.testing.assert_allclose(of_x, 2 * a.T @ (a @ x), rtol=1e-4)
    both = jnp.stack([A.data, 2 * A.data])
    several = jax.vmap(lambda d: jsp.mxm(A.with_data(d), A, nse=900).todense())(both)
    np.testing.assert_allclose(several, np.stack([a @ a, 2 * a @ a]), rtol=1e-5)
    several = jax.vmap(lambda d: A.with_data(d) @ x)(both)
    np.testing.assert_allclose(several, np.stack([a @ x, 2 * a @ x]), rtol=1e-5)


def test_conversions_keep_every_entry_in_order():
    S = sp.random_array((40, 70), density=0.1, rng=np.random.default_rng(7), format="csr")
    S = S.astype(np.float32)
    A = jsp.from_scipy(S)
    transposed = A.T.asformat("csr")
    assert "cpu/native" in str(jsp.explain(lambda A: A.T.asformat("csr"), A))
    want = S.T.tocsr()
    want.sort_indices()
    for ours, theirs in ((transposed.indptr, want.indptr), (transposed.indices, want.indices)):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(transposed.data, want.data)
    np.testing.assert_array_equal(A.rowcol()[0], S.tocoo().row)


@pytest.mark.parametrize(
    "rows", [slice(0, 0), slice(0, 40), slice(3, 4), slice(7, 31), slice(40, 50)]
)
def test_slices_of_rows(rows):
    S = sp.random_array((40, 700), density=0.1, rng=np.random.default_rng(7), format="csr")
    A = jsp.from_scipy(S.astype(np.float32))
    part = A[rows]
    part.check_invariants()
    want = S[rows].astype(np.float32)
    assert part.shape == want.shape and part.nnz == want.nnz
    np.testing.assert_array_equal(part.todense(), want.toarray())
    traced = jax.jit(lambda A: A[rows])(A)
    np.testing.assert_array_equal(traced.todense(), want.toarray())


BROKEN = [("indices", value) for value in (-1, N, 2**31 - 1, -(2**31))]
BROKEN += [("indptr", value) for value in (-1, 2**31 - 1, -(2**31))]


@pytest.mark.parametrize(("where", "value"), BROKEN)
def test_broken_operands_are_refused_and_nothing_outside_is_read(where, value):
    A, _ = _matrix(0)
    x = jnp.ones((N, 2), jnp.float32)
    run = jax.jit(lambda A: (jsp.mxm(A, A, nse=900).data, A @ x))
    broken = dataclasses.replace(A, **{where: jnp.asarray(getattr(A, where)).at[5].set(value)})
    with pytest.raises(Exception, match="out of range"):
        jax.block_until_ready(run(broken))


@pytest.mark.parametrize("masked", [False, True])
def test_long_sums_round_once(masked):
    """3,000 products an entry, joined in float64: within a unit of float32 of the exact sum."""
    S = np.random.default_rng(0).uniform(990, 1010, (5, 3000)).astype(np.float32)
    A = jsp.from_dense(S)
    mask = jsp.structure(jsp.from_dense(np.ones((5, 5), np.float32))) if masked else None
    found = jsp.mxm(A, A.T, mask=mask, method="gustavson").todense()
    want = S.astype(np.float64) @ S.T.astype(np.float64)
    np.testing.assert_allclose(np.asarray(found, np.float64), want, rtol=2 * 2.0**-23)


OPERATORS = {
    "plus": np.add,
    "minus": np.subtract,
    "times": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "first": lambda x, y: x,
    "second": lambda x, y: y,
    "truediv": np.divide,
}


def _merged(rule, op, A, B):
    operator = getattr(jsp.operators, op)
    if rule == "union":
        return jsp.ewise_union(A, B, operator, 2, 3)
    return (jsp.ewise_add if rule == "add" else jsp.ewise_mult)(A, B, operator)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("rule", ["add", "union", "mult"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, bool], ids=lambda d: d.__name__)
def test_rows_are_merged(rule, op, dtype):
    if (dtype is bool and op == "minus") or (dtype is not np.float32 and op == "truediv"):
        pytest.skip("no difference of booleans in NumPy, no division of integers in C++")
    (A, a), (B, b) = (_matrix(seed, dtype, (7, N)) for seed in (5, 6))
    in_a, in_b = _pattern(A), _pattern(B)
    lack_a, lack_b = np.asarray(2, dtype), np.asarray(3, dtype)
    both = OPERATORS[op](np.where(in_a, a, lack_a), np.where(in_b, b, lack_b))
    want = both if rule == "union" else np.where(in_a & in_b, both, np.where(in_a, a, b))
    places = in_a & in_b if rule == "mult" else in_a | in_b
    for X, Y, turn in ((A, B, lambda x: x), (A.T, B.T, np.transpose)):
        C = _merged(rule, op, X, Y)
        assert C.format == X.format and C.dtype == dtype and int(C.count) == places.sum()
        C.check_invariants()
        np.testing.assert_array_equal(turn(_pattern(C)), places)
        np.testing.assert_array_equal(turn(np.asarray(C.todense())), np.where(places, want, 0))
        D = jax.jit(_merged, static_argnums=(0, 1))(rule, op, X, Y)
        assert D.nse == (min(A.nse, B.nse) if rule == "mult" else min(A.nse + B.nse, 7 * N))
        np.testing.assert_array_equal(D.todense(), C.todense())
    x, y = (jsp.vector_from_dense(jnp.asarray(v[0]), nse=N + 3) for v in (a, b))
    for run in (_merged, jax.jit(_merged, static_argnums=(0, 1))):
        z = run(rule, op, x, y)
        assert z.dtype == dtype and int(z.count) == places[0].sum()
        z.check_invariants()
        np.testing.assert_array_equal(z.structure(), places[0])
        np.testing.assert_array_equal(z.structure(complement=True), ~places[0])
        np.testing.assert_array_equal(z.todense(), np.where(places, want, 0)[0])


def test_merged_rows_keep_nan_and_signs_of_zero():
    A = jsp.from_dense([[np.nan, 1.0, -0.0, np.inf]]).with_data(
        np.array([np.nan, 1, np.inf], np.float32)
    )
    B = A.with_data(np.array([1, np.nan, -np.inf], np.float32))
    for op in ("plus", "minus", "min", "max"):
        C = jsp.ewise_add(A, B, getattr(jsp.operators, op))
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(C.data[:3], OPERATORS[op](A.data, B.data))
    zero = A.with_data(np.full(3, -0.0, np.float32))
    nothing = jsp.from_dense(np.zeros((1, 4), np.float32))
    assert np.signbit((zero + nothing).data[:3]).all()


@pytest.mark.parametrize("rule", ["add", "union", "mult"])
@pytest.mark.parametrize("op", ["plus", "minus", "times", "min", "truediv"])
def test_gradients_of_merged_rows(rule, op):
    (A, a), (B, b) = (_matrix(seed, shape=(7, N)) for seed in (5, 6))
    weights = np.random.default_rng(0).random((7, N)).astype(np.float32)

    def total(x, y, A, B):
        return jnp.sum(_merged(rule, op, A.with_data(x), B.with_data(y)).todense() * weights)

    for k in (0, 1):
        slope = jax.grad(total, k)
        got, want = slope(A.data, B.data, A, B), slope(A.data, B.data, A.tocoo(), B.tocoo())
        np.testing.assert_allclose(got, want, rtol=1e-6)
        assert np.abs(got).sum() > 0
    x, y = (jsp.vector_from_dense(jnp.asarray(v[0])) for v in (a, b))
    in_a, in_b = a[0] > 0, b[0] > 0

    def dense(data):
        u = jnp.where(in_a, jnp.zeros(N).at[x.indices].set(data), 2)
        v = jnp.where(in_b, b[0], 3)
        z = jnp.where(u <= v, u, v) if op == "min" else getattr(jsp.operators, op)(u, v)
        z = z if rule == "union" else jnp.where(in_a & in_b, z, jnp.where(in_a, u, v))
        return jnp.sum(jnp.where(in_a & in_b if rule == "mult" else in_a | in_b, z, 0) * weights[0])

    got = jax.grad(lambda d: _merged(rule, op, x.with_data(d), y).todense() @ weights[0])(x.data)
    np.testing.assert_allclose(got, jax.grad(dense)(x.data), rtol=1e-6)


def test_merged_rows_under_vmap():
    (A, _), (B, _) = (_matrix(seed, shape=(7, N)) for seed in (5, 6))
    data = jnp.stack([A.data, 2 * A.data])
    many = jax.vmap(lambda d: jsp.ewise_add(A.with_data(d), B).todense())(data)
    np.testing.assert_array_equal(many[0], (A + B).todense())
    np.testing.assert_array_equal(many[1], (A.with_data(2 * A.data) + B).todense())
