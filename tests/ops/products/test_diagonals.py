"""Products with what `prepare` arranges by diagonals or in groups, against SciPy and the CSR."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv.ops.products.row_layouts import diagonals
from jaxspv.ops.products.row_layouts import layout as rows_layout

OFFSETS = {
    "main": [0],
    "pair": [-3, 1],
    "five": [-17, -1, 0, 1, 17],
    "twenty": list(range(-10, 10)),
    "thirty-three": list(range(-40, 26, 2)),
    "a hundred": list(range(-50, 50)),
}


def banded(offsets, n=150, share=0.8, dtype=np.float32, m=None):
    """Entries on some diagonals, most of the places of each; row 7 and those from 140 on empty."""
    rng, m = np.random.default_rng(len(offsets)), m or n
    row = np.arange(m)[:, None] + np.zeros(len(offsets), int)
    col = row + np.asarray(offsets)
    valid = (col >= 0) & (col < n) & (rng.random(col.shape) < share) & (row != 7) & (row < 140)
    data = rng.integers(1, 9, col.shape).astype(dtype)
    return sp.csr_array((data[valid], (row[valid], col[valid])), shape=(m, n))


def arranged(S):
    A = jsp.from_scipy(S)
    D = diagonals.by_diagonals(A)
    assert D is not None
    return A, D


def fold(semiring, A, x, D):
    from jaxspv.ops.products.spmv.api import by_diagonals

    return jax.jit(lambda D, x: by_diagonals(semiring, A, x, D, flip=False))(D, x)


@pytest.fixture(autouse=True)
def lenient(monkeypatch):
    """The matrices here are small, and half of a wide band's places lie outside of them."""
    for name in ("FILLED", "FILLED_ON_CPU"):
        monkeypatch.setattr(diagonals, name, 0.2)
    monkeypatch.setattr(rows_layout, "LEAST", 0)


@pytest.mark.parametrize("name", OFFSETS)
def test_products_are_those_of_scipy(name):
    S = banded(OFFSETS[name])
    A, D = arranged(S)
    assert set(D.offsets) <= set(OFFSETS[name]) and list(D.offsets) == sorted(D.offsets)
    x = np.random.default_rng(1).integers(-9, 9, S.shape[1]).astype(np.float32)
    np.testing.assert_array_equal(fold(jsp.semirings.plus_times, A, x, D), S @ x)


@pytest.mark.parametrize("shape", [(150, 90), (90, 150)])
def test_matrices_that_are_not_square(shape):
    S = banded(OFFSETS["five"], n=shape[1], m=shape[0])
    A, D = arranged(S)
    x = np.arange(shape[1], dtype=np.float32)
    np.testing.assert_array_equal(fold(jsp.semirings.plus_times, A, x, D), S @ x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32"])
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "max_second", "any_pair"])
def test_a_prepared_graph_agrees_with_its_matrix(semiring, dtype):
    A = jsp.from_scipy(banded(OFFSETS["five"])).astype(dtype)
    G = jsp.prepare(A, for_=("mxv", "vxm"))
    assert isinstance(G.layouts["mxv"], diagonals.Diagonals)
    assert isinstance(G.layouts["vxm"], diagonals.Diagonals)
    x = (jnp.arange(150) % 4).astype(dtype)  # sums that 8 bits hold
    for product in (lambda M: jsp.mxv(M, x, semiring), lambda M: jsp.vxm(x, M, semiring)):
        np.testing.assert_array_equal(product(G), product(A))


def test_inf_and_nan_meet_stored_entries_alone():
    S = banded(OFFSETS["thirty-three"])
    A, D = arranged(S)
    x = np.ones(150, np.float32)
    x[20], x[90] = np.inf, np.nan
    got = fold(jsp.semirings.plus_times, A, x, D)
    dense = S.toarray()
    overlaps = np.stack([dense[:, 20] != 0, dense[:, 90] != 0])
    assert np.array_equal(np.isnan(got), overlaps[1])
    assert np.array_equal(np.isinf(got), overlaps[0] & ~overlaps[1])


@pytest.mark.parametrize("name", ["five", "a hundred"])
def test_values_that_change(name):
    A = jsp.from_scipy(banded(OFFSETS[name]))
    G, x = jsp.prepare(A, for_="mxv"), jnp.arange(150, dtype=jnp.float32)
    new = jnp.arange(A.nse, dtype=jnp.float32) % 13
    want = A.with_data(new) @ x
    np.testing.assert_array_equal(jsp.mxv(G.with_data(new), x), want)
    np.testing.assert_array_equal(jax.jit(lambda d: jsp.mxv(G.with_data(d), x))(new), want)


def test_derivatives_are_those_of_the_matrix():
    A = jsp.from_scipy(banded(OFFSETS["twenty"]))
    G, x = jsp.prepare(A, for_="mxv"), jnp.linspace(0, 1, 150)

    def loss(M):
        return lambda data, x: jnp.sum(jsp.mxv(M.with_data(data), x) ** 2)

    got, want = (jax.grad(loss(M), (0, 1))(A.data, x) for M in (G, A))
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4)
    directions = jnp.ones_like(A.data), jnp.ones_like(x)
    tangents = [jax.jvp(loss(M), (A.data, x), directions)[1] for M in (G, A)]
    np.testing.assert_allclose(*tangents, rtol=1e-4)


def test_vmap_over_vectors_and_over_values():
    A = jsp.from_scipy(banded(OFFSETS["five"]))
    G, X = jsp.prepare(A, for_="mxv"), jnp.arange(450, dtype=jnp.float32).reshape(3, 150)
    want = jnp.stack([A @ x for x in X])
    np.testing.assert_array_equal(jax.vmap(lambda x: jsp.mxv(G, x))(X), want)
    values = jnp.stack([A.data, 2 * A.data])
    moved = jax.vmap(lambda d: jsp.mxv(G.with_data(d), X[0]))(values)
    np.testing.assert_array_equal(moved, jnp.stack([want[0], 2 * want[0]]))


@pytest.mark.parametrize(
    "S",
    [
        sp.csr_array((5, 5), dtype=np.float32),
        sp.random_array((400, 400), density=0.02, rng=0, format="csr", dtype=np.float32),
        sp.csr_array(sp.diags_array([np.ones(50), np.ones(250)], offsets=[-250, 50])).tocsr(),
    ],
    ids=["empty", "scattered", "mostly holes"],
)
def test_other_matrices_are_left_in_bins(S, monkeypatch):
    for name in ("FILLED", "FILLED_ON_CPU"):
        monkeypatch.setattr(diagonals, name, 0.6)
    assert diagonals.by_diagonals(jsp.from_scipy(S.astype(np.float32))) is None


def test_explain_names_the_diagonals():
    G = jsp.prepare(jsp.from_scipy(banded(OFFSETS["five"])), for_="mxv")
    plan = jsp.explain("mxv", G, jnp.ones(150))
    assert {impl.name for impl in plan.chosen} == {"diagonals"}


def test_choose_format_tells_of_diagonals():
    choice = jsp.choose_format(jsp.from_scipy(banded(OFFSETS["five"])), "mxv")
    assert choice.rows is not None and choice.rows.diagonals == 5
    assert "5 diagonals hold all entries" in choice.reason
    scattered = sp.random_array((400, 400), density=0.02, rng=0, format="csr", dtype=np.float32)
    assert "diagonals" not in jsp.choose_format(jsp.from_scipy(scattered), "mxv").reason


def blocks(side, n=48):
    rng = np.random.default_rng(side)
    pattern = sp.random_array((n // side, n // side), density=0.3, rng=rng, format="csr")
    return sp.csr_array(sp.kron(pattern, np.ones((side, side), np.float32), format="csr"))


@pytest.mark.parametrize(("side", "width"), [(8, 4), (4, 4), (6, 2), (2, 2), (3, None), (1, None)])
def test_entries_that_come_in_groups(side, width):
    S = blocks(side)
    S.sort_indices()
    found = rows_layout.grouped(jsp.from_scipy(S).in_capacity(S.nnz + 5))
    assert (found and found.width) == width
    if found is not None:
        np.testing.assert_array_equal(found.indptr, S.indptr // width)
        np.testing.assert_array_equal(found.indices[: S.nnz // width], S.indices[::width])
