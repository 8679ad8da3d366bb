"""`mxm` by every method against its definition, SciPy and SpMSpV row by row; masks, capacities."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from strategies import PROBLEMS
from test_mxv import NUMPY_ADD, NUMPY_MUL, SEMIRINGS, VALUES, dense_of

import jaxspv as jsp
from jaxspv._core.indices import bucketed
from jaxspv.formats import FORMATS, SparseMatrix
from jaxspv.native import bind
from jaxspv.ops.products.mxm import plan
from jaxspv.ops.products.mxm.plan import count_on_device, count_on_host, searches_on_host

UNSERVED = {"rows"} | ({"gustavson"} if bind.refused() else set())  # need a GPU, C++ kernels
ALL_METHODS = tuple(m for m in plan.methods() if m not in UNSERVED)
METHODS = tuple(m for m in ALL_METHODS if m != "dot")  # which needs a mask that lists places
M, L, N, CAPACITY = 5, 6, 7, 24  # one shape: one compilation for all examples


EVERYWHERE = jsp.structure(jsp.from_dense(np.ones((M, N), np.float32)))


def entries(m, n):
    cells = st.tuples(st.integers(0, m - 1), st.integers(0, n - 1))
    return st.dictionaries(cells, VALUES, max_size=16)


def matrix(cells, shape, name="csr", nse=CAPACITY):
    """A matrix of a capacity above its entries, NaN in the padding."""
    keys = sorted(cells)
    pad = nse - len(keys)
    coo = jsp.COO(
        jnp.asarray([cells[k] for k in keys] + [np.nan] * pad, jnp.float32),
        jnp.asarray([k[0] for k in keys] + [shape[0]] * pad, jnp.int32),
        jnp.asarray([k[1] for k in keys] + [shape[1]] * pad, jnp.int32),
        jnp.asarray(False),
        shape,
    )
    return coo.asformat(name)


def definition(a, b, semiring):
    """(values, stored) of the product of two dicts of entries."""
    add, mul = NUMPY_ADD[semiring.add.name], NUMPY_MUL[semiring.mul.name]
    with np.errstate(all="ignore"):
        return oracles.product(
            dense_of(a, (M, L)), dense_of(b, (L, N)), add, lambda x, y, i, k, j: mul(x, y, i, k)
        )


def same(C, values, stored):
    """C is canonical and holds exactly these values at exactly these places."""
    coo = C.to_coo()
    count = int(C.count)
    places = list(zip(*np.nonzero(stored), strict=True))
    row, col = np.asarray(coo.row), np.asarray(coo.col)
    assert not bool(C.overflow) and C.unique
    assert list(zip(row[:count], col[:count], strict=True)) == places
    assert (row[count:] == C.shape[0]).all() and (col[count:] == C.shape[1]).all()
    got = np.asarray(coo.data)[:count].astype(np.float64)
    want = [float(values[p]) for p in places]
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-5)


MANY = ("plus_times", "min_plus", "or_and", "any_secondi", "min_first", "log_plus", "user_eighth")


@pytest.mark.parametrize(
    "semiring",
    [s if s.name in MANY else pytest.param(s, marks=pytest.mark.slow) for s in SEMIRINGS],
    ids=repr,
)
def test_every_method_is_the_definition(semiring):
    @jax.jit
    def run(A, B):
        return [
            *(
                jsp.mxm(A, B, semiring, nse=M * N, method=method)
                for method in METHODS
                if method != "dense" or semiring.add.kind not in (None, "logaddexp")
            ),
            jsp.mxm(A, B, semiring, nse=M * N, method="sort", chunk=3),
            jsp.mxm(A, B, semiring, nse=M * N, method="dot", chunk=3, mask=EVERYWHERE),
        ]

    @given(entries(M, L), entries(L, N))
    def check(a, b):
        values, stored = definition(a, b, semiring)
        for C in run(matrix(a, (M, L)), matrix(b, (L, N))):
            same(C, values, stored)

    check()


@pytest.mark.parametrize(
    "first, second",
    [
        *((name, "csr") for name in sorted(FORMATS) if name != "csr"),
        ("coo", "coo"),
        ("csc", "csc"),
        ("csr", "csc"),
        ("csr", "csr"),
    ],
)
def test_every_format(first, second):
    rng = np.random.default_rng(0)
    a, b = (
        {divmod(int(c), n): float(c) for c in rng.permutation(m * n)[:12]}
        for m, n in ((M, L), (L, N))
    )
    values, stored = definition(a, b, jsp.semirings.min_first)
    A = matrix(a, (M, L)).asformat(first)
    B = matrix(b, (L, N)).asformat(second)
    C = jsp.mxm(A, B, jsp.semirings.min_first)
    same(C, values, stored)
    assert C.format == (first if first == second else "csr")


A_CELLS = {(0, 0): 2.0, (0, 3): -1.0, (1, 1): 0.5, (3, 0): 4.0, (3, 5): 1.0, (4, 3): 3.0}
B_CELLS = {(0, 0): 1.0, (0, 6): -2.0, (1, 2): 3.0, (3, 0): 5.0, (3, 1): 2.5, (5, 6): -0.5}
MASK_CELLS = {(0, 0): 0.0, (0, 1): 1.0, (1, 2): 1.0, (3, 6): 0.0, (2, 2): 1.0}


def masks_of(name):
    """(mask, where it allows) by structure, by value, dense, and their complements."""
    values, stored = dense_of(MASK_CELLS, (M, N))
    S = matrix(MASK_CELLS, (M, N), name)
    dense = jnp.asarray(values != 0)
    pairs = [(jsp.structure(S), stored), (S, values != 0), (dense, values != 0)]
    complements = [(~jsp.structure(mask), ~allowed) for mask, allowed in pairs[:1]]
    complements += [(~jsp.Mask(mask), ~allowed) for mask, allowed in pairs[1:]]
    return pairs + complements


@pytest.mark.parametrize("name", [pytest.param("csc", marks=pytest.mark.slow), "csr"])
def test_masks_keep_what_they_allow(name):
    A, B = matrix(A_CELLS, (M, L), name), matrix(B_CELLS, (L, N), name)
    values, stored = definition(A_CELLS, B_CELLS, jsp.semirings.plus_times)
    for mask, allowed in masks_of(name):
        keep = stored & allowed
        assert keep.any() and (stored & ~allowed).any()
        lists = isinstance(getattr(mask, "source", mask), SparseMatrix)
        lists &= not getattr(mask, "complement", False)
        for method in ALL_METHODS if lists else METHODS if name == "csr" else ("auto",):
            if method == "gustavson" and not isinstance(
                getattr(mask, "source", mask), SparseMatrix
            ):
                continue  # an array is a mask of XLA's forms alone
            C = jsp.mxm(A, B, mask=mask, method=method)
            same(C, values, keep)
            assert C.trim().nse == keep.sum()


def test_traced_masks_and_the_capacity_they_give():
    A, B = matrix(A_CELLS, (M, L)), matrix(B_CELLS, (L, N))
    values, stored = definition(A_CELLS, B_CELLS, jsp.semirings.plus_times)
    for mask, allowed in masks_of("csr"):
        C = jax.jit(lambda A, B, mask: jsp.mxm(A, B, mask=mask))(A, B, mask)
        same(C, values, stored & allowed)
        sparse = isinstance(getattr(mask, "source", mask), jsp.CSR)
        assert C.nse == (CAPACITY if sparse and not getattr(mask, "complement", False) else M * N)


@pytest.mark.parametrize("name", PROBLEMS)
def test_shapes_at_the_edge(name):
    p = PROBLEMS[name]
    A = matrix(
        dict(zip(zip(p.row, p.col, strict=True), p.data, strict=True)),
        p.shape,
        nse=len(p.data) + p.spare,
    )
    stored = p.dense[1]
    want = (stored.astype(int) @ stored.T.astype(int)) > 0
    for method in METHODS:
        C = jsp.mxm(A, A.T, jsp.semirings.any_pair, method=method)
        assert C.shape == want.shape and int(C.count) == C.trim().nse == want.sum()
        same(C, want.astype(float), want)


def test_a_capacity_too_small_is_an_error_or_a_flag():
    A = jsp.from_dense(np.ones((4, 4), np.float32))
    for kwargs in ({}, {"method": "sort", "chunk": 7}, {"method": "dense", "chunk": 7}):
        with pytest.raises(ValueError, match="`nse` must be at least 16 to hold .*; got 5"):
            jsp.mxm(A, A, nse=5, **kwargs)
        C = jax.jit(lambda A, kwargs=kwargs: jsp.mxm(A, A, nse=5, **kwargs))(A)
        whole = jax.default_backend() != "gpu" or kwargs  # there rows that do not fit are left out
        assert bool(C.overflow) and int(C.count) == (5 if whole else 4)
        with pytest.raises(ValueError, match="overflow"):
            jsp.check(C)
        roomy = jsp.mxm(A, A, nse=19, **kwargs)
        assert roomy.nse == 19 and int(roomy.count) == 16 and not bool(roomy.overflow)
        # Sticky: what was cut before stays known.
        assert bool(jsp.mxm(C, A, **kwargs).overflow)


def test_integer_sums_that_clamp_set_overflow():
    A = jsp.from_dense(np.array([[100, 0], [0, 1]], np.int8))
    for method in METHODS:
        C = jsp.mxm(A, A, jsp.semirings.min_plus, method=method)
        assert bool(C.overflow) and C.data.dtype == jnp.int8
        safe = jsp.mxm(A.astype(jnp.int32), A.astype(jnp.int32), jsp.semirings.min_plus)
        assert not bool(safe.overflow) and safe.trim().data.tolist() == [200, 2]


def test_products_beyond_2_to_the_32_are_counted():
    n = 70_000
    ones, none = np.arange(n), np.zeros(n, int)
    A = jsp.from_edges(ones, none, shape=(n, 1))
    lonely = jsp.structure(jsp.from_edges([5], [7], shape=(n, n)))
    found = jsp.explain("mxm", A, A.T, mask=lonely)
    assert {impl.name for impl in found.chosen} == {"dot"} and found.on("cpu").backend == "xla"
    assert count_on_host(A, A.T) == n * n and searches_on_host(A, A.T, lonely) == 1
    assert count_on_device(A, A.T, lonely) == (n * n, 1)  # as a GPU counts them
    C = jsp.mxm(A, A.T, mask=lonely)  # where all others would run for hours
    assert C.trim().data.tolist() == [1.0]


def test_sizes_are_rounded_to_few():
    sizes = [bucketed(k) for k in range(1, 3000)]
    assert all(k <= s <= max(4, 1.25 * k + 1) for k, s in enumerate(sizes, 1))
    assert len(set(sizes)) < 50


@pytest.mark.parametrize("method", METHODS)
def test_rows_are_spmspv(method):
    """Yang 2015: C = A B row by row is a product of a sparse vector, the row of A, with B."""
    rng = np.random.default_rng(3)
    A, B = (
        sp.random_array(s, density=0.3, rng=rng, dtype=np.float32).tocsr()
        for s in ((9, 11), (11, 8))
    )
    ours_b = jsp.from_scipy(B)
    C = jsp.mxm(jsp.from_scipy(A), ours_b, method=method)
    for i in range(9):
        row = A[[i]].tocoo()
        x = jsp.vector_from_entries(row.col, row.data, 11, nse=11)
        y = jsp.vxm(x, ours_b, nse=8)
        first, last = int(C.indptr[i]), int(C.indptr[i + 1])
        assert C.indices[first:last].tolist() == y.indices[: int(y.count)].tolist()
        np.testing.assert_allclose(C.data[first:last], y.data[: int(y.count)], rtol=1e-5)


def test_the_operator():
    rng = np.random.default_rng(0)
    A, B = (
        sp.random_array(s, density=0.3, rng=rng, dtype=np.float32).tocsr()
        for s in ((9, 11), (11, 8))
    )
    ours_a, ours_b = jsp.from_scipy(A), jsp.from_scipy(B)
    np.testing.assert_allclose((ours_a @ ours_b).todense(), (A @ B).todense(), rtol=1e-5)
    X = rng.random((11, 3), np.float32)
    np.testing.assert_allclose(ours_a @ X, A @ X, rtol=1e-5)
    np.testing.assert_allclose(jnp.asarray(X.T) @ ours_b, X.T @ B, rtol=1e-5)
    slope = jax.grad(lambda d: ((ours_a.with_data(d) @ X) ** 2).sum())(ours_a.data)
    want = 2 * (A @ X) @ X.T
    np.testing.assert_allclose(slope, want[A.nonzero()], rtol=1e-4)


def test_bad_calls_say_what_would_be_right():
    A = matrix(A_CELLS, (M, L))
    with pytest.raises(ValueError, match="`B` must have 6 rows"):
        jsp.mxm(A, A)
    with pytest.raises(TypeError, match="`B` must be a sparse matrix or a Graph"):
        jsp.mxm(A, [[1.0] * N] * L)
    with pytest.raises(TypeError, match="`semiring` must be a Semiring"):
        jsp.mxm(A, A.T, jnp.add)
    with pytest.raises(ValueError, match="`method` must be one of"):
        jsp.mxm(A, A.T, method="magic")
    with pytest.raises(ValueError, match="`chunk` must be a positive integer"):
        jsp.mxm(A, A.T, chunk=0)
    with pytest.raises(ValueError, match="`nse` must be a non-negative integer"):
        jsp.mxm(A, A.T, nse=-1)
    with pytest.raises(ValueError, match="`mask` must have the shape"):
        jsp.mxm(A, A.T, mask=A)
    wide = jsp.from_edges([0], [0], shape=(100_000, 1), nse=70_000)
    with pytest.raises(ValueError, match="`nse` must be given where patterns are traced"):
        jax.jit(lambda A: jsp.mxm(A, A.T))(wide)


def test_places_beyond_2_to_the_32():
    """Two keys are sorted where one of 32 bits cannot hold a place; hypersparse throughout."""
    rng = np.random.default_rng(1)
    n = 100_003
    some = rng.choice(n, 12, replace=False)
    row, col = rng.choice(some, (2, 60))
    A = jsp.from_edges(row, col, rng.random(60, np.float32), shape=(n, n))
    want = (A.to_scipy() @ A.to_scipy()).tocoo()
    want.sum_duplicates()
    for kwargs in ({}, {"method": "sort"}, {"method": "sort", "chunk": 16}):
        coo = jsp.mxm(A, A, **kwargs).trim().to_coo()
        order = np.lexsort((want.col, want.row))
        assert coo.row.tolist() == want.row[order].tolist()
        assert coo.col.tolist() == want.col[order].tolist()
        np.testing.assert_allclose(coo.data, want.data[order], rtol=1e-5)


def test_blocks_of_rows(monkeypatch):
    """Dense accumulators of two rows, steps that end inside a row and inside a block."""
    monkeypatch.setattr("jaxspv.ops.products.mxm.methods.CELLS", 2 * N)
    A, B = matrix(A_CELLS, (M, L)), matrix(B_CELLS, (L, N))
    mask = ~jsp.structure(matrix(MASK_CELLS, (M, N)))
    for semiring in (jsp.semirings.plus_times, jsp.semirings.any_first, jsp.semirings.lor_lor):
        _, stored = definition(A_CELLS, B_CELLS, jsp.semirings.plus_times)
        C = jsp.mxm(A, B, semiring, method="dense", chunk=2, mask=mask)
        want = jsp.mxm(A, B, semiring, method="sort", mask=mask)
        same(C, np.asarray(want.todense()), stored & (dense_of(MASK_CELLS, (M, N))[1] == 0))
