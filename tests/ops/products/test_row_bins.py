"""Row bins against dense NumPy: semirings, shapes, padding, poison values."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxspv as jsp
from jaxspv.ops.products.common.product import Fold
from jaxspv.ops.products.row_layouts import layout as bins
from jaxspv.ops.products.row_layouts.plan import GPU, Tuning
from jaxspv.ops.products.spmv import xla

TUNINGS = {
    "cheap launches": Tuning(16, 16, 2_000),
    "gpu": GPU,
    "three levels": Tuning(unroll=2, segment=3, launch=1),
    "row-major": Tuning(unroll=0, segment=8, launch=1),
}

SEMIRINGS = {
    "plus_times": (jnp.multiply, jnp.add, 0.0, np.multiply, np.add),
    "min_plus": (jnp.add, jnp.minimum, np.inf, np.add, np.minimum),
    "max_times": (jnp.multiply, jnp.maximum, -np.inf, np.multiply, np.maximum),
    "max_min": (jnp.minimum, jnp.maximum, -np.inf, np.minimum, np.maximum),
    "or_and": (jnp.logical_and, jnp.logical_or, False, np.logical_and, np.logical_or),
    "log_plus": (jnp.add, jnp.logaddexp, -np.inf, np.add, np.logaddexp),
}


def random_csr(rng, n_rows, n_cols, mean, dtype=np.float32):
    """CSR with empty rows and one long row; columns repeat (duplicates) and are not sorted."""
    length = rng.poisson(mean, n_rows) * (rng.random(n_rows) < 0.8)
    if n_rows:
        length[rng.integers(n_rows)] += 40
    indptr = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    indices = rng.integers(0, n_cols, indptr[-1]).astype(np.int32)
    data = rng.integers(-4, 5, indptr[-1]).astype(dtype)
    return indptr, indices, data


SPMV = jax.jit(bins.spmv, static_argnames="fold")
SUMS = Fold(jnp.multiply, jnp.add, 0)


def by_rows(indptr, indices, data, x, mul, add, identity):
    """y[i] = add over the entries of row i, one row after the other."""
    y = []
    for begin, end in zip(indptr[:-1], indptr[1:], strict=True):
        terms = [mul(data[k], x[indices[k]]) for k in range(begin, end)]
        y.append(functools.reduce(add, terms) if terms else identity)
    return np.array(y)


@pytest.mark.parametrize("tuning", TUNINGS.values(), ids=TUNINGS)
@pytest.mark.parametrize("name", SEMIRINGS)
def test_semirings(name, tuning):
    mul, add, identity, np_mul, np_add = SEMIRINGS[name]
    rng = np.random.default_rng(0)
    dtype = np.bool_ if name == "or_and" else np.float32
    indptr, indices, data = random_csr(rng, 37, 23, 5, dtype)
    x = rng.integers(-4, 5, 23).astype(dtype)
    layout = bins.build(indptr, indices, (37, 23), tuning=tuning)
    values = layout.arrange(jnp.asarray(data))
    y = SPMV(layout, values, x, Fold(mul, add, identity))
    expected = by_rows(indptr, indices, data, x, np_mul, np_add, identity)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    assert y.dtype == dtype


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_rows=st.integers(0, 30),
    n_cols=st.integers(1, 30),
    mean=st.integers(0, 12),
    spare=st.integers(0, 5),
    tuning=st.builds(Tuning, st.integers(0, 9), st.integers(2, 12), st.integers(0, 50)),
)
def test_random_shapes_capacity_and_tunings(seed, n_rows, n_cols, mean, spare, tuning):
    rng = np.random.default_rng(seed)
    indptr, indices, data = random_csr(rng, n_rows, n_cols, mean)
    indices_padded = np.concatenate([indices, np.full(spare, n_cols, np.int32)])
    data_padded = np.concatenate([data, np.full(spare, np.nan, np.float32)])
    layout = bins.build(indptr, indices_padded, (n_rows, n_cols), tuning=tuning)
    x = rng.integers(-4, 5, n_cols).astype(np.float32)
    values = layout.arrange(jnp.asarray(data_padded))
    y = SPMV(layout, values, x, SUMS)
    expected = scipy.sparse.csr_matrix((data, indices, indptr), (n_rows, n_cols)) @ x
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("tuning", TUNINGS.values(), ids=TUNINGS)
def test_values_of_one_row_do_not_reach_another(tuning):
    rng = np.random.default_rng(1)
    indptr, indices, data = random_csr(rng, 50, 40, 6)
    data[indptr[20] : indptr[21]] = np.inf
    data[indptr[30]] = np.nan
    x = rng.integers(1, 5, 40).astype(np.float32)
    layout = bins.build(indptr, indices, (50, 40), tuning=tuning)
    y = SPMV(layout, layout.arrange(jnp.asarray(data)), x, SUMS)
    expected = by_rows(indptr, indices, data, x, np.multiply, np.add, 0)
    np.testing.assert_array_equal(y, expected)
    assert np.isfinite(y).sum() >= 48


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, 1e38])
def test_padding_values_change_nothing(poison):
    rng = np.random.default_rng(2)
    indptr, indices, data = random_csr(rng, 60, 60, 9)
    x = rng.normal(size=60).astype(np.float32)
    layout = bins.build(indptr, indices, (60, 60), tuning=Tuning(4, 16, 10_000))
    values = layout.arrange(jnp.asarray(data))
    padding = layout.columns == 60
    assert padding.any()
    run = functools.partial(SPMV, fold=SUMS)
    poisoned = run(layout, jnp.where(padding, poison, values), x)
    np.testing.assert_array_equal(poisoned, run(layout, values, x))


def test_values_may_be_traced():
    rng = np.random.default_rng(6)
    indptr, indices, data = random_csr(rng, 40, 30, 7)
    layout = bins.build(indptr, indices, (40, 30), tuning=TUNINGS["three levels"])
    x = rng.integers(-4, 5, 30).astype(np.float32)

    @jax.jit
    def total(data):
        y = SPMV(layout, layout.arrange(data), x, SUMS)
        return y.sum()

    np.testing.assert_array_equal(jax.grad(total)(jnp.asarray(data)), x[indices])


@pytest.mark.parametrize("by_degree", [True, False])
@pytest.mark.parametrize("tuning", TUNINGS)
@pytest.mark.parametrize("kind", ["random", "long rows", "mesh", "empty"])
def test_every_kind_of_rows(kind, tuning, by_degree):
    rng = np.random.default_rng(7)
    length = {
        "random": rng.integers(0, 12, 60),
        "long rows": np.where(np.arange(60) % 9 == 0, 700, 1),
        "mesh": np.full(60, 4),
        "empty": np.zeros(60, int),
    }[kind]
    indptr = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    indices = np.append(rng.integers(0, 50, indptr[-1]), [50] * 9).astype(np.int32)
    data, x = rng.integers(-4, 5, len(indices)).astype(np.float32), rng.integers(-4, 5, 50)
    layout = bins.build(indptr, indices, (60, 50), by_degree=by_degree, tuning=TUNINGS[tuning])
    values = layout.arrange(jnp.asarray(data))
    y = SPMV(layout, values, x.astype(np.float32), SUMS)
    count = indptr[-1]
    want = scipy.sparse.csr_matrix((data[:count], indices[:count], indptr), (60, 50)) @ x
    np.testing.assert_array_equal(y, want)


def test_graphs_of_like_lengths_share_every_shape():
    found = []
    for seed in range(3):
        indptr, indices, _ = random_csr(np.random.default_rng(seed), 3000, 3000, 9)
        indices = np.append(indices, np.full(30_000 - len(indices), 3000)).astype(np.int32)
        layout = bins.build(indptr, indices, (3000, 3000))
        found.append((jax.tree.structure(layout), [a.shape for a in jax.tree.leaves(layout)]))
    assert found[0] == found[1] == found[2]


def test_columns_numbered_by_degree_change_no_result():
    rng = np.random.default_rng(11)
    indptr, indices, data = random_csr(rng, 60, 50, 9)
    x = rng.integers(-4, 5, 50).astype(np.float32)
    results = []
    for by_degree in (True, False):
        layout = bins.build(indptr, indices, (60, 50), by_degree=by_degree)
        assert (layout.order is not None) == by_degree
        results.append(SPMV(layout, layout.arrange(jnp.asarray(data)), x, SUMS))
    np.testing.assert_array_equal(*results)
    layout = bins.build(indptr, indices, (60, 50), by_degree=True)
    degree = np.bincount(indices, minlength=50)[layout.order]
    assert (np.diff(degree) <= 0).all()


@pytest.mark.parametrize("skewed", [True, False])
def test_only_long_skewed_graphs_are_renumbered(skewed):
    rng = np.random.default_rng(12)
    n = 140_000
    indices = rng.integers(0, n // 20 if skewed else n, 2 * n).astype(np.int32)
    indptr = np.arange(0, 2 * n + 1, 2)
    assert (bins.build(indptr, indices, (n, n)).order is not None) == skewed


def test_one_bin_in_the_order_of_the_rows_needs_no_place():
    length = np.full(2_000, 4)
    length[::50] = 0
    indptr = np.concatenate([[0], np.cumsum(length)])
    indices = np.random.default_rng(13).integers(0, 2_000, indptr[-1]).astype(np.int32)
    layout = bins.build(indptr, indices, (2_000, 2_000))
    assert layout.place is None
    values = layout.arrange(jnp.ones(len(indices)))
    count = SPMV(layout, values, jnp.zeros(2_000), Fold(lambda a, x: a, jnp.add, 0))
    np.testing.assert_array_equal(count, length)


@pytest.mark.parametrize("tuning", ["cheap launches", "gpu"])
def test_little_padding_on_a_power_law(tuning):
    rng, tuning = np.random.default_rng(8), TUNINGS[tuning]
    length = np.minimum(rng.zipf(1.7, 200_000), 30_000)
    indptr = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    indices = np.zeros(indptr[-1], np.int32)
    layout = bins.build(indptr, indices, (200_000, 1), tuning=tuning)
    spare = tuning.launch * len(layout.bins[0])
    assert layout.slots <= 1.25 * length.sum() + spare


CSR_SPMV = jax.jit(xla.csr_spmv, static_argnames=("how", "scatter"))
SCATTERS = {"plus_times": "add", "min_plus": "min", "max_times": "max"}


WAYS = [(name, "doubling") for name in SEMIRINGS]


@pytest.mark.parametrize(("name", "way"), WAYS + [(name, "scatter") for name in SCATTERS])
def test_bare_csr(name, way):
    mul, add, identity, np_mul, np_add = SEMIRINGS[name]
    rng = np.random.default_rng(9)
    dtype = np.bool_ if name == "or_and" else np.float32
    indptr, indices, data = random_csr(rng, 37, 23, 5, dtype)
    x = rng.integers(-4, 5, 23).astype(dtype)
    expected = by_rows(indptr, indices, data, x, np_mul, np_add, identity)
    data = np.concatenate([data, np.full(6, np.nan).astype(dtype)])
    indices = np.concatenate([indices, np.full(6, 23, np.int32)])
    scatter = SCATTERS[name] if way == "scatter" else None
    y = CSR_SPMV(indptr, indices, data, x, Fold(mul, add, identity), scatter=scatter)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    assert y.dtype == dtype


@pytest.mark.parametrize("scatter", ["add", None])
@pytest.mark.parametrize("n_rows", [0, 1, 5])
@pytest.mark.parametrize("nse", [0, 3, 70])
def test_bare_csr_small_shapes_and_batches(n_rows, nse, scatter):
    rng = np.random.default_rng(10)
    owner = np.sort(rng.integers(0, max(n_rows, 1), nse if n_rows else 0))
    indptr = np.searchsorted(owner, np.arange(n_rows + 1)).astype(np.int32)
    indices = rng.integers(0, 4, nse).astype(np.int32)
    data = rng.integers(1, 5, nse).astype(np.float32)
    x = rng.integers(1, 5, (4, 2)).astype(np.float32)
    y = CSR_SPMV(indptr, indices, data, x, SUMS, scatter=scatter)
    used = indptr[-1]
    expected = scipy.sparse.csr_matrix((data[:used], indices[:used], indptr), (n_rows, 4)) @ x
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(CSR_SPMV(indptr, indices, data, x[:, 0], SUMS), expected[:, 0])


def test_values_put_into_bins_are_perturbed_in_that_trace_alone(monkeypatch):
    """A product of the same trace then reads the rows themselves, where a kernel can."""
    monkeypatch.setattr("jaxspv.ops.products.row_layouts.layout.on_gpu", lambda *_: True)
    A = jsp.from_dense(np.eye(5, dtype=np.float32))
    G = jsp.prepare(A, for_="mxv")
    assert not G.layouts["mxv"].perturbed
    seen = []

    @jax.jit
    def run(data):
        rows = G.with_data(data).layouts["mxv"]
        again = jax.tree.map(lambda v: v, rows)
        seen.extend((rows.perturbed, rows.in_products().direct, again.in_products().direct))
        return rows.values

    run(A.data)
    assert seen == [True, True, False]
    assert not G.with_data(A.data).layouts["mxv"].perturbed
