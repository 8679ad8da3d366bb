"""`A[i, j]` eagerly: every kind of index against NumPy, rows and columns compressed."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv.formats import base


def indices(extent, rng):
    slices = [slice(None), slice(1, 4), slice(None, None, -1), slice(5, 1, -2), slice(2, 2)]
    if not extent:
        return slices
    lists = [[0], rng.integers(0, extent, 6), np.array([-1, 0, 0]), rng.random(extent) < 0.5]
    return [*slices, slice(0, None, 3), 0, -1, *lists]


@pytest.mark.parametrize("shape", [(7, 9), (1, 5), (0, 4), (5, 0)])
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_every_pair_of_indices(shape, format):
    rng = np.random.default_rng(sum(shape))
    S = sp.random(*shape, density=0.3, random_state=rng, dtype=np.float32)
    A, D = jsp.from_scipy(S).asformat(format), S.toarray()
    for i, j in itertools.product(indices(shape[0], rng), indices(shape[1], rng)):
        kinds = {type(k) for k in (i, j)}
        if slice not in kinds:
            continue  # elements and pairs have programs
        got = A[i, j].check_invariants()
        assert np.array_equal(
            got.todense(), D[i][:, j] if np.ndim(i) or D[i].ndim == 2 else D[i][j]
        )
        assert got.index_dtype == A.index_dtype
        assert got.ndim == 1 or got.format == format


def test_dtypes_that_scipy_does_not_know():
    A = jsp.from_dense(jnp.arange(12, dtype=jnp.bfloat16).reshape(3, 4))
    assert A[::-1, [2, 0]].dtype == jnp.bfloat16
    assert A[::-1, [2, 0]].todense().tolist() == [[10, 8], [6, 4], [2, 0]]


ROWS = slice(1, 3)


@pytest.mark.parametrize(
    "index",
    [
        *[(..., 0), (0, ...), (..., 0, 1), (1, ..., 2), (1, 2, ...), (ROWS, ...), (..., [1, 2])],
        *[(...,), (), (..., ROWS, 1), (..., ...), (ROWS, ..., ROWS, ...), (..., 0, 1, 2)],
    ],
)
def test_dots_stand_for_the_indices_that_are_left_out(index):
    """As in NumPy, of a matrix and of a vector."""
    D = np.arange(12, dtype=np.float32).reshape(3, 4)
    for ours, dense in (jsp.from_dense(D), D), (jsp.vector_from_dense(D[1]), D[1]):
        try:
            wanted = dense[index]
        except IndexError:
            with pytest.raises(IndexError, match="can be one|two indices|one index"):
                ours[index]
            continue
        got = ours[index]
        assert np.array_equal(got.todense() if np.ndim(wanted) else got, wanted)


def test_products_with_arrays_of_more_places_than_int32_counts():
    """Nothing in the program has a place for each of them in one axis: its number would wrap."""
    A = jsp.from_edges([49_999], [44_999], shape=(50_000, 45_000))
    array = jax.ShapeDtypeStruct(A.shape, np.int8)
    for multiply in (lambda x: (A * x).data, lambda x: (x * A).data):
        assert "2250000000" not in str(jax.make_jaxpr(multiply)(array))


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "ell"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool"])
def test_pairs_in_rows_of_every_length(format, dtype):
    D = np.triu(np.arange(1, 1 + 40 * 70).reshape(40, 70) % 251, 3)[::-1] * (np.arange(70) % 5 > 0)
    S = sp.csr_array(D.astype(np.float32))
    A = jsp.from_scipy(S).astype(dtype).asformat(format)
    i, j = (k.ravel() for k in np.indices(D.shape))
    order = np.random.default_rng(0).permutation(i.size)
    i, j = i[order] - 40, j[order]  # from the end
    want = D[i, j] != 0 if dtype == "bool" else D[i, j]
    assert np.array_equal(A[i, j].astype(np.float32), want)
    assert np.array_equal(A[i, [69]].astype(np.float32), A.todense().astype(np.float32)[i, 69])
    assert A[i, j].dtype == A[i[:0], j[:0]].dtype == A.dtype and A[i[:0], j[:0]].shape == (0,)
    inside = jax.jit(lambda A, i, j: A[i, j])(A, i, j)
    assert np.array_equal(inside, A[i, j])
    empty = (
        jsp.from_scipy(0 * S).trim() if format == "coo" else jsp.from_edges([], [], shape=(40, 70))
    )
    assert not empty[i, j].any()


def test_counts_of_results_are_donated_together():
    """No two are one buffer, and later calls have new ones."""
    A = jsp.from_dense(np.eye(5, dtype=np.float32))
    following = jax.jit(lambda u, v: (u + 1, v + 2), donate_argnums=(0, 1))
    for _ in range(2):
        assert following(A[2].count, A[3].count) == (2, 3)


def test_dense_copies_where_numpy_finds_no_memory(monkeypatch):
    def refused(*_):
        raise MemoryError

    A = jsp.from_dense(np.eye(3, dtype=np.float32))
    assert np.signbit(A.todense(-0.0)).sum() == 6
    monkeypatch.setattr(base, "zeros", refused)
    assert np.array_equal(A.todense(), np.eye(3))


def test_arrays_of_scipy_stay_the_callers():
    S = sp.random_array((300, 400), density=0.5, format="csr", dtype=np.float32)
    want = S.toarray()
    A = jsp.from_scipy(S)
    S.data[:], S.indices[:], S.indptr[:] = 7, 7, 7
    assert np.array_equal(A.todense(), want) and np.array_equal(A.to_scipy().toarray(), want)
    with pytest.raises(ValueError, match="must lie in"):
        jsp.from_scipy(broken(5))
    with pytest.raises(ValueError, match="must lie in"):
        jsp.from_scipy(broken(-1))


def broken(column):
    """A CSR of 3 columns whose indices were written to after it was made."""
    S = sp.csr_array(np.eye(3, dtype=np.float32))
    S.indices[1] = column
    return S


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "ell"])
def test_a_number_at_the_places_of_a_mask(format):
    rng = np.random.default_rng(3)
    dense = ((rng.random((6, 7)) < 0.4) * rng.integers(1, 9, (6, 7))).astype(np.float32)
    places, part = rng.random((6, 7)) < 0.4, np.zeros((6, 7), bool)
    part[np.ix_([1, 4], [0, 2, 3])] = True
    C, M = jsp.from_dense(dense).asformat(format), jsp.from_dense(places.astype(np.int32))
    by_value = M.with_data(jnp.arange(M.nse) % 2)
    true = np.asarray(by_value.todense()).astype(bool)
    for mask, at in ((jsp.structure(M), places), (by_value, true)):
        for run in (jsp.assign, jax.jit(jsp.assign)):
            got = run(C, 7, mask=mask)
            assert got.dtype == C.dtype
            np.testing.assert_array_equal(got.todense(), np.where(at, 7, dense))
            got.check_invariants()
        got = jsp.assign(C, 7, [4, 1], [0, 3, 2], mask=mask)
        np.testing.assert_array_equal(got.todense(), np.where(at & part, 7, dense))

    def total(data, value):
        new = jsp.assign(C.with_data(data), value, mask=jsp.structure(M)).todense()
        return jnp.sum(new * new) / 2

    by_data, by_number = jax.grad(total, (0, 1))(C.data, 7.0)
    left = C.with_data(by_data).todense()
    np.testing.assert_array_equal(left, np.where(places, 0, dense))
    assert by_number == 7 * places.sum()
