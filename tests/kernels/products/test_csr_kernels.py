"""The kernels over the rows of a CSR, interpreted and on a GPU, against loops in NumPy."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv._core.compat import KERNELS_FROM, jax_version
from jaxspv._core.platforms import using
from jaxspv.ops.products.row_layouts import layout as bins
from jaxspv.ops.products.row_layouts.layout import grouped as grouped_rows
from jaxspv.ops.products.spmv import gpu as spmv_gpu
from jaxspv.ops.products.spmv import jvp as pull_back
from pallas_kernels.products import spmv_vjp as kernels
from pallas_kernels.products.spmv import SHAPES, csr_spmv
from pallas_kernels.products.spmv_vjp import csr_vjp
from pallas_kernels.rows import lanes
from pallas_kernels.rows.lanes import Lanes
from pallas_kernels.rows.stream import Stream
from pallas_kernels.simt.device import Grid
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring, trace, uses
from tests.kernels.test_lowering import lower
from tests.kernels.warps_apart import gridded

csr_spmv, csr_vjp = map(gridded, (csr_spmv, csr_vjp))

HOST = {"grid": Grid(ctas=3, threads=64, interpret=True)}
COLUMNS, PADDING = 37, 5
ROWS = {
    "short": [3, 0, 1, 4, 2, 0, 0, 7, 1, 1, 5, 2, 0, 3, 6, 1, 8, 0],
    "a hub": [2, 0, 1, 3, 400, 0, 1, 2],
    "one row": [500],
    "hubs": [0, 0, 150, 3, 170, 0, 0, 90],
    "empty rows": [0] * 40,
    "one entry": [0] * 9 + [1],
}
TIMES, PLUS = (lambda a, b: a * b), (lambda a, b: a + b)
SEMIRINGS = {  # mul and add, as the kernel takes them; add in NumPy, its identity
    "plus_times": (TIMES, PLUS, np.add, {"f": 0.0, "i": 0}),
    "min_plus": (PLUS, jnp.minimum, np.minimum, {"f": np.inf, "i": 2**31 - 1}),
    "max_times": (TIMES, jnp.maximum, np.maximum, {"f": -np.inf, "i": -(2**31)}),
    "plus_first": (lambda a, x: a, PLUS, np.add, {"f": 0.0, "i": 0}),
    "plus_second": (lambda a, x: x, PLUS, np.add, {"f": 0.0, "i": 0}),
}


def matrix(lengths, dtype, seed=0):
    """(indptr, indices, data) with small integers, and padding that nobody may read."""
    rng = np.random.default_rng(seed)
    indptr = np.append(0, np.cumsum(lengths)).astype(np.int32)
    slots = indptr[-1] + PADDING
    indices = rng.integers(0, COLUMNS, slots).astype(np.int32)
    data = rng.integers(-8, 9, slots).astype(dtype)
    indices[indptr[-1] :] = COLUMNS
    data[indptr[-1] :] = np.nan if dtype == np.float32 else 99
    return indptr, indices, data


def by_definition(indptr, indices, data, x, mul, add, identity):
    y = np.full(len(indptr) - 1, identity, data.dtype)
    for i in range(len(y)):
        for e in range(indptr[i], indptr[i + 1]):
            y[i] = add(y[i], mul(data[e], x[indices[e]]))
    return y


def product(A, x, name, **options):
    mul, combine, _, identity = SEMIRINGS[name]
    dtype = A[2].dtype
    return csr_spmv(
        *map(jnp.asarray, A),
        jnp.asarray(x),
        semiring=ScalarSemiring.of(mul, combine, identity[dtype.kind], dtype),
        **(options or HOST),
    )


def check(A, x, name, **options):
    mul, _, add, identity = SEMIRINGS[name]
    want = by_definition(*A, x, mul, add, identity[A[2].dtype.kind])
    np.testing.assert_array_equal(product(A, x, name, **options), want)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("rows", ROWS)
def test_products(rows, dtype):
    A, x = matrix(ROWS[rows], dtype), np.arange(-5, 32).astype(dtype)
    for name in SEMIRINGS:
        check(A, x, name)


@pytest.mark.parametrize(
    "shape", [Lanes(1, 4, 2, True), Lanes(32, 3, 1, True), Stream(1), Stream(3)]
)
@pytest.mark.parametrize("grid", [(1, 32), (1, 128), (40, 32)])
def test_shapes_and_ctas(shape, grid):
    x = np.arange(COLUMNS, dtype=np.float32)
    for rows in ("hubs", "short"):
        A = matrix(ROWS[rows], np.float32)
        check(A, x, "plus_times", shape=shape, grid=Grid(*grid, interpret=True))


def test_more_parts_of_a_row_than_are_joined_together():
    A = matrix([2, 900, 3], np.float32)
    x = np.ones(COLUMNS, np.float32)
    check(A, x, "plus_times", grid=Grid(30, 32, interpret=True))


def grouped(rows, width, dtype):
    """The same with `width` entries for each of the groups that `rows` counts, and as a CSR."""
    rng, count = np.random.default_rng(width), sum(ROWS[rows])
    ends = np.append(0, np.cumsum(ROWS[rows])).astype(np.int32)
    first = width * rng.integers(0, COLUMNS // width, count + PADDING).astype(np.int32)
    first[count:] = COLUMNS
    data = rng.integers(-8, 9, width * (count + PADDING)).astype(dtype)
    each = (first[:, None] + np.arange(width, dtype=np.int32)).ravel()
    return (ends, first, data), (width * ends, each, data)


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("rows", ROWS)
def test_products_of_groups(rows, width):
    for dtype, names in ((np.float32, list(SEMIRINGS)), (np.int32, ["min_plus"])):
        A, each = grouped(rows, width, dtype)
        x = np.arange(-5, 32).astype(dtype)
        for name in names:
            mul, _, add, identity = SEMIRINGS[name]
            want = by_definition(*each, x, mul, add, identity[np.dtype(dtype).kind])
            np.testing.assert_array_equal(product(A, x, name, width=width, **HOST), want)


@pytest.mark.gpu
@pytest.mark.parametrize("width", [2, 4])
def test_native_groups_equal_the_entries(width):
    pattern = random_matrix(3000, 4000, 60000, hub=11, dtype=np.float32)
    A = sp.csr_array(sp.kron(pattern, np.ones((3, width), np.float32), format="csr"))
    A.sort_indices()
    x = np.random.default_rng(0).integers(-4, 5, A.shape[1]).astype(np.float32)
    M = jsp.from_scipy(A)
    G = grouped_rows(M)
    assert G is not None and G.width == width
    for name in ("plus_times", "min_plus", "max_second", "plus_pair"):
        semiring = getattr(jsp.semirings, name)
        rows = bins.Rows(bins.build(M.indptr, M.indices, M.shape), M.data, None, None, G)
        y = spmv_gpu._groups(semiring, M, jnp.asarray(x), rows, flip=False)
        np.testing.assert_array_equal(y, jsp.mxv(M, x, semiring, backend="xla"))


def test_extremes_and_columns_out_of_range():
    """inf and NaN stay in their row; an entry beyond the columns adds nothing."""
    indptr, indices = np.array([0, 2, 3, 4, 5], np.int32), np.array([0, 1, 2, 2, 37], np.int32)
    data = np.array([np.inf, 1, np.nan, 2, 7], np.float32)
    y = product((indptr, indices, data), np.ones(COLUMNS, np.float32), "plus_times")
    np.testing.assert_array_equal(y, [np.inf, np.nan, 2, 0])


def slopes(A, w, x, data, **options):
    def given(v):
        return None if v is None else jnp.asarray(v)

    return csr_vjp(
        *map(jnp.asarray, A[:2]),
        jnp.asarray(w),
        COLUMNS,
        x=given(x),
        data=given(data),
        **(options or HOST),
    )


@pytest.mark.parametrize("values,vector", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("rows", ROWS)
def test_derivatives(rows, values, vector):
    A = indptr, indices, data = matrix(ROWS[rows], np.float32)
    x = np.arange(-5, 32).astype(np.float32)
    w = np.arange(-3, len(indptr) - 4).astype(np.float32)
    by_values, by_vector = slopes(A, w, x if values else None, data if vector else None)
    assert (by_values is None, by_vector is None) == (not values, not vector)
    row, inside = np.repeat(np.arange(len(w)), np.diff(indptr)), slice(indptr[-1])
    if by_values is not None:
        want = np.append(w[row] * x[indices[inside]], np.zeros(PADDING))
        np.testing.assert_array_equal(by_values, want)
    if by_vector is not None:
        terms = w[row] * data[inside]
        want = np.bincount(indices[inside], weights=terms, minlength=COLUMNS)
        np.testing.assert_array_equal(by_vector, want)


def test_pieces_of_a_long_row(monkeypatch):
    monkeypatch.setattr(lanes, "TURNS", 1)
    A = matrix([5, 0, 9, 70, 33, 1, 0, 2], np.float32)
    x, w = np.arange(COLUMNS, dtype=np.float32), np.arange(8, dtype=np.float32)
    check(A, x, "plus_times", shape=Lanes(4, 2, 1), **HOST)
    row = np.repeat(np.arange(8), np.diff(A[0]))
    monkeypatch.setattr(kernels, "SHAPES", ((np.inf, Lanes(4, 2, 1)),))
    by_values, _ = slopes(A, w, x, None)
    np.testing.assert_array_equal(by_values[:-PADDING], w[row] * x[A[1][:-PADDING]])


def test_which_arguments_matter():
    f = np.float32
    assert [uses(trace(fn, f, f), j) for fn in (TIMES, lambda a, x: x) for j in (0, 1)] == [
        True,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("hot", [4, COLUMNS])
def test_columns_by_degree(monkeypatch, hot):
    """The most used columns come first, where CTAs keep their sums."""
    A = indptr, indices, data = matrix(ROWS["hubs"], np.float32)
    M = dataclasses.replace(
        jsp.from_dense(np.ones((8, COLUMNS), np.float32)),
        indptr=jnp.asarray(indptr),
        indices=jnp.asarray(indices),
        data=jnp.asarray(data),
    )
    layout = bins.build(indptr, indices, (8, COLUMNS), by_degree=True)
    ranks = bins._ranks(layout.order, M.indices)
    assert (np.asarray(ranks)[-PADDING:] == COLUMNS).all()
    rows = bins.Rows(layout, layout.arrange(M.data[: indptr[-1]]), None, ranks)
    monkeypatch.setattr(spmv_gpu, "csr_spmv", functools.partial(csr_spmv, **HOST))
    monkeypatch.setattr(kernels, "csr_vjp", functools.partial(csr_vjp, **HOST))
    monkeypatch.setattr(kernels, "HOT", (hot, hot))
    x, w = np.arange(COLUMNS, dtype=np.float32), np.arange(8, dtype=np.float32)
    y = spmv_gpu._merge_path(jsp.semirings.plus_times, M, jnp.asarray(x), rows, flip=False)
    np.testing.assert_array_equal(y, by_definition(*A, x, TIMES, np.add, 0))
    operands = M.indptr, M.indices, *map(jnp.asarray, (w, x, data))
    ranked = None, (ranks, layout.order)
    by_values, by_vector = pull_back._by_kernel(*operands, *ranked, n_cols=COLUMNS)
    row, inside = np.repeat(np.arange(8), np.diff(indptr)), slice(indptr[-1])
    np.testing.assert_array_equal(by_values[inside], w[row] * x[indices[inside]])
    terms = w[row] * data[inside]
    want = np.bincount(indices[inside], weights=terms, minlength=COLUMNS)
    np.testing.assert_array_equal(by_vector, want)


def test_which_columns_are_scattered():
    n = 2**17
    near = np.sort(np.arange(n)[:, None] + np.arange(6), 1) % n
    far = np.random.default_rng(0).permutation(near.ravel())
    sectors = [float(bins._sectors(jnp.asarray(a.ravel()), a.size)) for a in (near, far)]
    assert sectors[0] < 24 < sectors[1]


SQUARE = sp.csr_array(np.array([[0, 2, 0, 3.5], [0, 0, 0, 0], [1, 0.5, 4, 7], [0, 0, 6, 0]], "f"))


needs_kernels = pytest.mark.skipif(
    jax_version() < KERNELS_FROM, reason="the kernels need a newer JAX"
)


def launches(f, *operands):
    return lower(f, *operands).count("custom_call @mosaic_gpu")


@needs_kernels
@pytest.mark.parametrize("prepared", [False, True])
def test_what_runs_on_a_gpu(prepared, monkeypatch):
    monkeypatch.setattr(bins, "on_gpu", lambda *_: True)
    A, x = jsp.from_scipy(SQUARE), jnp.ones(4)
    M = jsp.prepare(A, for_=("mxv", "vxm")) if prepared else A

    def gradient(data, x, backend=None):
        def loss(data, x):
            return jnp.tanh(jsp.mxv(M.with_data(data), x, backend=backend)).sum()

        return jax.value_and_grad(loss, (0, 1))(data, x)

    assert launches(gradient, A.data, x) == 2
    assert launches(jax.vmap(gradient, (None, 0)), A.data, jnp.ones((3, 4))) == 1  # the product
    # values at rest stay in the bins of a prepared graph
    at_rest = M if prepared else A.asformat("csc")
    assert launches(lambda x: jsp.vxm(x, at_rest), x) == (not prepared)
    if prepared:
        rows = dataclasses.replace(M.layouts["vxm"], direct=True)
        far = dataclasses.replace(M, layouts={"vxm": rows})
        assert launches(lambda x: jsp.vxm(x, far), x) == 1
    assert launches(lambda d, x: jsp.mxv(M.with_data(d), x), A.data, x) == 1
    arranged = jax.tree.map(lambda leaf: leaf, M.with_data(A.data))
    assert launches(lambda M, x: jsp.mxv(M, x), arranged, x) == (not prepared)
    assert launches(functools.partial(gradient, backend="xla"), A.data, x) == 0
    with using("xla"):
        assert launches(lambda *operands: gradient(*operands), A.data, x) == 0


@needs_kernels
def test_prepared_groups_are_one_launch(monkeypatch):
    monkeypatch.setattr(bins, "on_gpu", lambda *_: True)
    A = jsp.from_scipy(sp.kron(SQUARE, np.ones((2, 2), np.float32), format="csr"))
    G, x = jsp.prepare(A, for_="mxv"), jnp.ones(A.shape[1])
    rows = dataclasses.replace(G.layouts["mxv"], groups=grouped_rows(A))
    G = dataclasses.replace(G, layouts={"mxv": rows})
    assert jsp.explain("mxv", G, x).on("cuda").name == "groups"
    assert launches(lambda G, x: jsp.mxv(G, x), G, x) == 1


@needs_kernels
def test_values_of_diagonals_that_move_are_read_from_the_matrix():
    A = jsp.from_scipy(
        sp.csr_array(
            sp.diags_array(np.ones((3, 20000)), offsets=[-1, 0, 7], shape=(20000, 20000))
        ).astype(np.float32)
    )
    G, x = jsp.prepare(A, for_="mxv"), jnp.ones(A.shape[1])

    def loss(data, x):
        return jnp.sum(jsp.mxv(G.with_data(data), x) ** 2)

    assert launches(lambda G, x: jsp.mxv(G, x), G, x) == 0
    assert launches(loss, A.data, x) == 1
    assert launches(jax.grad(loss, (0, 1)), A.data, x) == 2


@needs_kernels
def test_what_does_not_run_on_a_gpu():
    A, x = jsp.from_scipy(SQUARE), jnp.ones(4)
    assert "merge_path" in str(jsp.explain("mxv", A, x, jsp.semirings.min_plus)).splitlines()[0]
    assert "merge_path" in str(jsp.explain("mxv", A, x, "log_plus")).splitlines()[0]
    for semiring, reason in (("or_and", "bool"), ("any_secondi", "position")):
        plan = jsp.explain("mxv", A, x, getattr(jsp.semirings, semiring))
        assert plan.on("cuda").backend == "xla" and reason in str(plan)
    half = A.with_data(A.data.astype(jnp.float16))
    assert "not float16" in str(jsp.explain("mxv", half, x.astype(jnp.float16)))
    plan = jsp.explain("mxv", jsp.from_scipy(SQUARE, format="coo"), x)
    assert plan.on("cuda").backend == plan.on("cpu").backend == "xla"


def random_matrix(m, n, entries, hub, dtype, seed=3):
    """Duplicates joined; row and column `hub` full of entries."""
    rng = np.random.default_rng(seed)
    row = np.concatenate([rng.integers(0, m, entries), np.full(n, hub), np.arange(m)])
    col = np.concatenate([rng.integers(0, n, entries), np.arange(n), np.full(m, hub)])
    A = sp.coo_array((np.ones(len(row)), (row, col)), shape=(m, n)).tocsr()
    A.sum_duplicates()
    A.data = rng.integers(-8, 9, A.nnz).astype(dtype)
    return A


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("shape", [(30, 50, 90), (20000, 30000, 60000), (9000, 7000, 500000)])
def test_native_products_equal_those_of_xla(shape, dtype):
    A = random_matrix(*shape, hub=11, dtype=dtype)
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, shape[1]).astype(dtype)
    u = rng.integers(-4, 5, shape[0]).astype(dtype)
    M = jsp.from_scipy(A)
    for name in ("plus_times", "min_plus", "max_times", "max_min", "plus_pair", "min_first"):
        semiring = getattr(jsp.semirings, name)
        assert jsp.explain("mxv", M, x, semiring).chosen[0].name == "merge_path"
        y, z = jsp.mxv(M, x, semiring), jsp.vxm(u, M.asformat("csc"), semiring)
        np.testing.assert_array_equal(y, jsp.mxv(M, x, semiring, backend="xla"))
        np.testing.assert_array_equal(z, jsp.vxm(u, M, semiring, backend="xla"))
    np.testing.assert_array_equal(jsp.mxv(M, x), A @ x)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_native_grids(shape):
    for ctas, threads in ((1, 128), (7, 1024), (132, 512), (2000, 256)):
        for rows in ("hubs", "short", "one row"):
            x = np.arange(COLUMNS, dtype=np.float32)
            A = matrix(ROWS[rows] * 3, np.float32)
            check(A, x, "plus_times", shape=shape, grid=Grid(ctas, threads))


@pytest.mark.gpu
@pytest.mark.parametrize("prepared", [False, True])
def test_native_gradients(prepared):
    A = random_matrix(5000, 5000, 100000, 11, np.float32)
    M = jsp.from_scipy(A)
    M = jsp.prepare(M, for_=("mxv", "vxm")) if prepared else M
    rng = np.random.default_rng(0)
    x, w = rng.random(5000, np.float32), rng.random(5000, np.float32)

    @functools.partial(jax.jit, static_argnums=3)
    def slope(M, data, x, by):
        return jax.grad(lambda d, x: jnp.vdot(w, jsp.mxv(M.with_data(d), x)), by)(data, x)

    row = np.repeat(np.arange(5000), np.diff(A.indptr))
    by_values = w[row].astype(np.float64) * x[A.indices]
    by_vector = A.astype(np.float64).T @ w
    for by, want in ((0, [by_values]), (1, [by_vector]), ((0, 1), [by_values, by_vector])):
        found = jax.tree.leaves(slope(M, jnp.asarray(A.data), jnp.asarray(x), by))
        for got, exact in zip(found, want, strict=True):
            np.testing.assert_allclose(got, exact, rtol=1e-4, atol=1e-2)
