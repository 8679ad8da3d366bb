"""SparseVector: construction, capacity and overflow, inert padding, pytree behaviour, errors."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import DTYPES, bounds, garbage, precision, samples

import jaxspv as jsp
from jaxspv.formats.vector import compact, from_present

pytestmark = pytest.mark.fast
N = 9


def vector(entries, n=N, spare=3, dtype=np.float32, fill=None):
    """A SparseVector from a dict index -> value, made by NumPy, with `fill` in its padding."""
    keys = sorted(entries)
    pad = garbage(dtype) if fill is None else fill
    return jsp.SparseVector(
        jnp.asarray(np.array([entries[k] for k in keys] + [pad] * spare, dtype)),
        jnp.asarray(np.array(keys + [n] * spare, np.int32)),
        jnp.int32(len(keys)),
        jnp.asarray(False),
        (n,),
    )


def check(x, entries, nse, overflow=False):
    """x holds exactly these entries, ascending, and its padding is at the extent."""
    count = len(entries)
    assert (x.nse, int(x.count), bool(x.overflow)) == (nse, count, overflow)
    assert x.indices.dtype == jnp.int32
    assert x.indices[:count].tolist() == sorted(entries)
    assert (np.asarray(x.indices[count:]) == x.shape[0]).all()
    np.testing.assert_array_equal(x.data[:count], [entries[k] for k in sorted(entries)])


NUMBERS = st.integers(-4, 4).map(float)
ENTRIES = st.dictionaries(st.integers(0, N - 1), NUMBERS)


@given(ENTRIES)
def test_dense_and_structure(entries):
    x = vector(entries, spare=N - len(entries))
    dense, stored = np.zeros(N, np.float32), np.zeros(N, bool)
    for k, v in entries.items():
        dense[k], stored[k] = v, True
    np.testing.assert_array_equal(x.todense(), dense)
    np.testing.assert_array_equal(x.todense(np.inf), np.where(stored, dense, np.inf))
    np.testing.assert_array_equal(x.structure(), stored)
    np.testing.assert_array_equal(x.valid(), np.arange(N) < len(entries))
    np.testing.assert_array_equal(x.astype(jnp.int8).todense(), dense.astype(np.int8))
    check(from_present(jnp.asarray(dense), jnp.asarray(stored)), entries, N)
    check(jsp.vector_from_dense(dense, fill=np.nan), dict(enumerate(dense.tolist())), N)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_and_what_padding_holds(dtype):
    with precision(dtype):
        values = samples(dtype, *bounds(dtype), 4).tolist()
        entries = dict(zip((7, 0, 3, 4), values, strict=True))
        want = oracles.dense([0] * 4, list(entries), np.array(values, dtype), (1, N))[0]
        for fill in (garbage(dtype), bounds(dtype)[0]):
            x = vector(entries, dtype=dtype, fill=fill)
            assert x.dtype == x.todense().dtype == dtype
            np.testing.assert_array_equal(x.todense(), want)
            check(x.resized(9), entries, 9)
            check(jax.jit(lambda x: x.resized(5))(x), entries, 5)


EDGES = st.lists(st.tuples(st.integers(-2, N + 1), NUMBERS), min_size=7, max_size=7)
DUPS = ("plus", "min_", "max_", "times", "any_", "logaddexp")


@jax.jit
def joined(indices, values):
    return {
        name: jsp.vector_from_entries(indices, values, N, dup=getattr(jsp.monoids, name))
        for name in DUPS
    }


@given(EDGES)
def test_equal_indices_are_joined_and_foreign_ones_dropped_under_jit(pairs):
    indices, values = (np.array(c) for c in zip(*pairs, strict=True))
    inside = (indices >= 0) & (indices < N)
    values = np.where(inside, values, np.nan).astype(np.float32)
    for name, x in joined(jnp.asarray(indices), jnp.asarray(values)).items():
        groups = {k: values[indices == k] for k in indices[inside].tolist()}
        want = {k: oracles.fold(name.rstrip("_"), v) for k, v in groups.items()}
        assert x.indices[: len(want)].tolist() == sorted(want)
        got = np.asarray(x.data[: len(want)], np.float64)
        np.testing.assert_allclose(got, [float(want[k]) for k in sorted(want)], rtol=1e-5)
        assert int(x.count) == len(want) and x.nse == 7
        assert (np.asarray(x.indices[len(want) :]) == N).all()


def test_a_list_of_entries():
    check(jsp.vector_from_entries([5, 2, 5], [1.0, 2.0, 3.0], N), {2: 2, 5: 4}, 3)
    check(jsp.vector_from_entries([5, 2, 5], 1.5, N, nse=2), {2: 1.5, 5: 3}, 2)
    check(jsp.vector_from_entries([5], [0.0], N, nse=4), {5: 0}, 4)
    check(jsp.vector_from_entries([], [], N), {}, 0)
    check(jsp.vector_from_entries([], [], 0, nse=2), {}, 2)
    assert jsp.vector_from_entries([], [], 0, nse=2).todense().shape == (0,)
    check(jsp.vector_from_entries(np.int64(3), [7], N), {3: 7}, 1)
    ors = jsp.vector_from_entries([1, 1], [False, True], N, dup=jsp.monoids.lor)
    assert ors.dtype == bool and ors.data[:1].tolist() == [True]


def test_a_list_of_entries_is_checked():
    for indices, wrong in (([0, N], N), ([-1, 0], -1)):
        with pytest.raises(ValueError, match=rf"`indices` must lie in \[0, 9\); got {wrong}"):
            jsp.vector_from_entries(indices, [1.0, 1.0], N)
    with pytest.raises(TypeError, match="`indices` must be integers; got float64"):
        jsp.vector_from_entries([0.5], [1.0], N)
    with pytest.raises(ValueError, match="`nse` must be at least 2 to hold the result; got 1"):
        jsp.vector_from_entries([3, 4], [1.0, 1.0], N, nse=1)
    with pytest.raises(ValueError, match="`values` must have shape"):
        jsp.vector_from_entries([3, 4], [1.0, 1.0, 2.0], N)
    with pytest.raises(ValueError, match="`indices` must be one-dim"):
        jsp.vector_from_entries([[3, 4]], [1.0, 1.0], N)
    with pytest.raises(ValueError, match="got 4294967299"):  # 3, were it narrowed first
        jsp.vector_from_entries(np.array([2**32 + 3]), [1.0], N)
    with pytest.raises(TypeError, match="`n` must be a non-negative integer; got 2.5"):
        jsp.vector_from_entries([0], [1.0], 2.5)


def test_from_a_dense_vector():
    dense = np.array([0, 2, np.nan, 0, np.inf], np.float32)
    check(jsp.vector_from_dense(dense), {1: 2, 2: np.nan, 4: np.inf}, 3)
    check(jsp.vector_from_dense(dense, fill=np.nan), {0: 0, 1: 2, 3: 0, 4: np.inf}, 4)
    check(jsp.vector_from_dense(dense, fill=np.inf, nse=5), {0: 0, 1: 2, 2: np.nan, 3: 0}, 5)
    check(jsp.vector_from_dense([True, False]), {0: True}, 1)
    check(jsp.vector_from_dense(np.arange(3), fill=np.nan), {0: 0, 1: 1, 2: 2}, 3)
    for n in (0, 4):
        check(jsp.vector_from_dense(np.zeros(n, np.float32)), {}, 0)
        check(jsp.vector_from_dense(np.zeros(n, np.float32), nse=2), {}, 2)
    with pytest.raises(ValueError, match="one-dimensional; got shape \\(2, 2\\)"):
        jsp.vector_from_dense(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="`nse` must be given under jit"):
        jax.jit(jsp.vector_from_dense)(dense)
    with pytest.raises(ValueError, match="`nse` must be at least 3"):
        jsp.vector_from_dense(dense, nse=2)


@given(st.lists(st.booleans(), min_size=N, max_size=N))
def test_stream_compaction(present):
    want = np.flatnonzero(present).tolist()
    for nse in (0, 3, N):
        positions, count = compact(jnp.asarray(present), nse)
        assert int(count) == len(want)
        assert positions.tolist() == (want + [N] * N)[:nse]


def test_overflow_is_an_error_or_a_sticky_flag():
    entries = {1: 1.0, 4: 2.0, 6: 3.0}
    x = vector(entries, spare=2)
    with pytest.raises(ValueError, match="`nse` must be at least 3 to hold the result; got 2"):
        x.resized(2)
    cut = jax.jit(lambda x: x.resized(2))(x)
    check(cut, {1: 1.0, 4: 2.0}, 2, overflow=True)
    wide = cut.resized(6)
    check(wide, {1: 1.0, 4: 2.0}, 6, overflow=True)
    with pytest.raises(ValueError, match="overflow"):
        jsp.check(wide)
    none = jax.jit(lambda x: x.resized(0))(x)
    check(none, {}, 0, overflow=True)
    assert none.todense().tolist() == [0] * N
    values, present = jnp.arange(4.0), jnp.array([True, False, True, True])
    with pytest.raises(ValueError, match="at least 3"):
        from_present(values, present, 2)
    part = jax.jit(lambda v, p: from_present(v, p, 2))(values, present)
    check(part, {0: 0, 2: 2}, 2, overflow=True)


def test_capacity_does_not_show():
    entries = {0: -1.0, 8: 2.5}
    small, large = vector(entries, spare=0), vector(entries, spare=6)
    for method in ("todense", "structure"):
        np.testing.assert_array_equal(getattr(small, method)(), getattr(large, method)())


def test_attributes_and_with_data():
    x = vector({2: 1.0, 3: 2.0})
    assert (x.shape, x.ndim, x.nse, int(x.nnz), x.sorted, x.unique) == ((9,), 1, 5, 2, True, True)
    assert repr(x) == "SparseVector(float32[5], shape=(9,))"
    assert x.with_data(jnp.arange(5)).todense().tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 0]
    for wrong in ((4,), (6,), (), (2, 5)):
        with pytest.raises(ValueError, match=r"`data` must have shape \(5,\)"):
            x.with_data(jnp.zeros(wrong))
    assert (~x).allowed().tolist() == [True, True, False, False, *[True] * 5]


def test_pytree():
    x = vector({2: 1.0, 3: 2.0})
    leaves, tree = jax.tree.flatten(x)
    for fill in (None, object(), 0, jax.ShapeDtypeStruct((3,), jnp.int8)):
        y = jax.tree.unflatten(tree, [fill] * len(leaves))
        assert y.shape == (9,) and "SparseVector(" in repr(y)
    seen = []
    jax.jit(lambda x: seen.append(repr(x)))(x)
    assert seen == [repr(x)]
    dx = jsp.grad(lambda x: (x.todense() ** 2).sum())(x)
    assert dx.data.tolist() == [2, 4, 0, 0, 0] and dx.indices is None and repr(dx) == repr(x)
    assert dx.with_data(x.data).nse == dx.astype(jnp.float16).nse == 5
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), x)
    np.testing.assert_array_equal(jax.vmap(lambda x: x.todense())(batch)[1], x.todense())
    for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert jax.tree.structure(again) == tree
        check(again, {2: 1.0, 3: 2.0}, 5)


def _unsorted(indices, data, n, unique):
    """A vector in its caller's order, with padding that holds NaN."""
    slots = len(indices) + 2
    data = jnp.full(slots, jnp.nan).at[: len(data)].set(jnp.asarray(data, jnp.float32))
    places = jnp.full(slots, n, jnp.int32).at[: len(indices)].set(jnp.asarray(indices, jnp.int32))
    count, overflow = jnp.int32(len(indices)), jnp.asarray(False)
    return jsp.SparseVector(data, places, count, overflow, (n,), False, unique)


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "tiled"])
def test_products_read_vectors_in_any_order(format, unique):
    dense = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [0.0, 0.0, 7.0]], np.float32)
    A = jsp.from_dense(dense, format=format)
    indices = [2, 0, 1] if unique else [2, 0, 2]
    x = _unsorted(indices, [10.0, 20.0, 30.0], 3, unique)
    at = np.zeros(3, np.float32)
    np.add.at(at, indices, [10.0, 20.0, 30.0])
    np.testing.assert_array_equal(x.todense(), at)
    np.testing.assert_array_equal(jsp.TiledVector.from_sparse(x).todense(), at)
    for method in ("auto", "row", "dense", *(("scatter", "sort", "merge") * (format == "csc"))):
        y = jsp.mxv(A, x, method=method)
        np.testing.assert_array_equal(y.todense(), dense @ at)
        cut = jax.jit(lambda A, x, m=method: jsp.mxv(A, x, method=m, nse=1))(A, x)
        assert bool(cut.overflow)
    slope = jax.grad(lambda d: jsp.mxv(A, x.with_data(d)).todense().sum())(x.data)
    np.testing.assert_array_equal(slope[:3], dense.sum(0)[indices])
    np.testing.assert_array_equal(slope[3:], 0)


def test_columns_that_are_not_sorted_are_not_merged():
    A = jsp.from_dense(np.ones((3, 2), np.float32), format="csc")
    swapped = jsp.CSC(A.data, A.indices[::-1], A.indptr, A.overflow, A.shape, False, True)
    x = jsp.vector_from_entries([0, 1], [1.0, 2.0], 2)
    assert jsp.mxv(swapped, x).todense().tolist() == [3.0] * 3
    with pytest.raises(NotImplementedError, match="not sorted"):
        jsp.mxv(swapped, x, method="merge")
