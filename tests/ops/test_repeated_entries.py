"""A place that a matrix lists twice holds the sum, whichever product and semiring read it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.formats import base

RNG = np.random.default_rng(3)
ROW, COL = RNG.integers(0, 4, 30), RNG.integers(0, 5, 30)  # of 20 places
VALUES = RNG.integers(-4, 5, 30).astype(np.float32)
ORDER = np.lexsort((COL, ROW))
PADDED = [
    np.r_[x[ORDER], [fill] * 3].astype(x.dtype)
    for x, fill in ((ROW, 4), (COL, 5), (VALUES, np.nan))
]
TWICE = jsp.COO(
    jnp.asarray(PADDED[2]), *map(jnp.asarray, np.int32(PADDED[:2])), jnp.asarray(False), (4, 5),
    unique=False,
)  # fmt: skip
ONCE = jsp.from_edges(ROW, COL, VALUES, shape=(4, 5))
X, Y = jnp.arange(5.0), jnp.arange(4.0)
V = jsp.vector_from_entries([0, 3], [2.0, -1.0], 5)
PRODUCTS = {
    "mxv": lambda A, s: jsp.mxv(A, X, s),
    "vxm": lambda A, s: jsp.vxm(Y, A, s),
    "sparse": lambda A, s: jsp.mxv(A, V, s).todense(),
    "mxm": lambda A, s: jsp.mxm(A, A.T, s, nse=16).todense(),
    "array": lambda A, s: jsp.mxm(A, jnp.stack([X, 2 * X], 1), s),
    "array on the left": lambda A, s: jsp.mxm(jnp.stack([Y, 2 * Y]), A, s),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("semiring", ["max_plus", "plus_pair", "min_times", "plus_times"])
@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_products(name, semiring, format):
    ring = getattr(jsp.semirings, semiring)
    want = PRODUCTS[name](ONCE, ring)
    A = TWICE.asformat(format)
    assert not A.unique
    np.testing.assert_allclose(PRODUCTS[name](A, ring), want, rtol=1e-6)


def test_under_jit_and_differentiated():
    ring = jsp.semirings.max_plus
    np.testing.assert_array_equal(
        jax.jit(lambda A: jsp.mxv(A, X, ring))(TWICE), jsp.mxv(ONCE, X, ring)
    )
    data = TWICE.data
    slope = jax.grad(lambda d: jsp.mxv(TWICE.with_data(d), X, ring).sum())(data)
    whole = jax.grad(lambda d: jsp.mxv(ONCE.with_data(d), X, ring).sum())(ONCE.data)
    row, col = (np.asarray(x) for x in ONCE.rowcol())
    place = {pair: w for pair, w in zip(zip(row, col, strict=True), np.asarray(whole), strict=True)}
    for i, j, w in zip(ROW[ORDER], COL[ORDER], np.asarray(slope), strict=False):
        assert place[i, j] == w


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.int8, bool])
def test_dense_where_places_have_no_number(monkeypatch, dtype):
    """As of a matrix with 2^31 places and more."""
    arrays = jnp.ones(3, dtype), jnp.array([1, 0, 1]), jnp.array([2, 1, 2]), jnp.asarray(False)
    A = jsp.COO(*arrays, (2, 3), False, False)
    want = A.todense(fill=0)
    monkeypatch.setattr(base, "LIMIT", 5)
    found = A.todense(fill=0)
    assert found.dtype == want.dtype and found.tolist() == want.tolist()
    assert float(found[1, 2]) == (1 if dtype is bool else 2)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_extremes_count_a_repeated_place_once(format, axis):
    """A column with one place listed as often as it has rows still lacks the others."""
    dense = np.zeros((2, 3), np.float32)
    np.add.at(dense, ([0, 0, 1, 1], [0, 0, 2, 2]), [1, 2, -3, -4])
    pairs = jnp.array([0, 0, 1, 1]), jnp.array([0, 0, 2, 2])
    A = jsp.COO(
        jnp.array([1.0, 2.0, -3.0, -4.0]), *pairs, jnp.array(False), (2, 3), unique=False
    ).asformat(format)
    for way in (lambda f: f, jax.jit):
        np.testing.assert_array_equal(way(lambda A: A.min(axis=axis))(A), dense.min(axis))
        np.testing.assert_array_equal(way(lambda A: A.max(axis=axis))(A), dense.max(axis))
