"""Operations under jit, vmap and differentiation; sizes, errors, elements and NumPy's forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from jax.test_util import check_grads

import jaxspv as jsp
from jaxspv.algebra import monoids, operators

DENSE = np.array([[1.0, 0, 2, 0], [0, 3, 0, 0], [4, 0, 5, 6]], np.float32)
OTHER = np.array([[0, 7.0, 2, 0], [0, 3, 1, 0], [0, 0, 8, 9]], np.float32)
A, B = jsp.from_dense(DENSE), jsp.from_dense(OTHER)
X = jsp.vector_from_entries([0, 2], [1.0, 2.0], 4)
Y = jsp.vector_from_entries([2, 3], [5.0, 7.0], 4)

FUNCTIONS = {  # of two matrices with traced values
    "ewise_add": lambda A, B: jsp.ewise_add(A, B, operators.minus),
    "ewise_add min": lambda A, B: jsp.ewise_add(A, B, operators.minimum),
    "ewise_mult": lambda A, B: jsp.ewise_mult(A, B, operators.truediv),
    "ewise_union": lambda A, B: jsp.ewise_union(A, B, operators.truediv, 2, 3),
    "apply": lambda A, B: jsp.apply(jsp.apply(A, operators.log), operators.pow_, left=2.0),
    "select": lambda A, B: jsp.select(A + B, operators.triu),
    "reduce": lambda A, B: jsp.reduce(A, monoids.max_, axis=0, out=jsp.reduce(B, axis=0)),
    "reduce times": lambda A, B: jsp.reduce(A + B, monoids.times, axis=1),
    "transpose": lambda A, B: jsp.transpose(A, out=B.T, accum=operators.times),
    "extract": lambda A, B: jsp.extract(A * B, jnp.array([2, 0, 2]), slice(None, None, -1)),
    "assign": lambda A, B: jsp.assign(A, jsp.extract(B, [0, 1], [2, 3]), [2, 1], [0, 3]),
    "subassign": lambda A, B: jsp.graphblas.subassign(
        A, B, accum=operators.times, mask=~jsp.structure(B), replace=True
    ),
    "kron": lambda A, B: jsp.kron(A, B),
    "diag": lambda A, B: jsp.diag(jsp.diag(A, 2), -1),
    "where": lambda A, B: jsp.where(jsp.structure(B), A, B),
    "sugar": lambda A, B: (A + B) * A - B / 2.0 + (-A) * jnp.ones((3, 1)),
}


LONG = ("reduce times", "sugar", "subassign", "where")  # to compile; what they do, others do too
NAMES = [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in FUNCTIONS]


def padded(M, data, extra=3, pad=np.nan):
    """The matrix in a greater capacity, garbage in padding."""
    return jsp.CSR(
        jnp.concatenate([data, jnp.full(extra, pad, data.dtype)]),
        jnp.concatenate([M.indices, jnp.full(extra, M.shape[1], jnp.int32)]),
        M.indptr,
        M.overflow,
        M.shape,
    )


def total(result):
    weights = jnp.arange(1.0, 1 + np.prod(result.shape)).reshape(result.shape)
    return jnp.sum(jnp.sin(result.todense()) * weights)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_and_padding(name):
    """Both modes agree with differences; NaN in padding changes neither values nor derivatives."""

    def f(a, b, pad=np.nan):
        return total(FUNCTIONS[name](padded(A, a, pad=pad), padded(B, b, pad=pad)))

    value = jax.jit(jax.value_and_grad(f, (0, 1)))
    a, b = A.data + 0.25, B.data
    check_grads(jax.jit(f), (a, b), order=1, modes=("fwd", "rev"), rtol=2e-2, atol=2e-2)
    for got, want in zip(
        jax.tree.leaves(value(a, b, np.nan)), jax.tree.leaves(value(a, b, 1.0)), strict=True
    ):
        assert np.isfinite(got).all()
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", NAMES)
def test_jit_and_vmap_agree_with_eager(name):
    f = FUNCTIONS[name]
    want = f(A, B).todense()
    np.testing.assert_allclose(jax.jit(f)(A, B).todense(), want, rtol=1e-6)
    batch = jax.vmap(lambda s: f(A.with_data(A.data * s), B).todense())(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(batch[0], want, rtol=1e-6)
    double = f(A.with_data(2 * A.data), B).todense()
    np.testing.assert_allclose(batch[1], double, rtol=1e-6)


@pytest.mark.parametrize("format", ["coo", "csr", "csc", "tiled"])
def test_every_format(format):
    M, N = A.asformat(format), B.asformat(format)
    results = {
        "sum": (M + N, DENSE + OTHER),
        "product": (M * N, DENSE * OTHER),
        "part": (M[[2, 0]][:, 1:], DENSE[[2, 0]][:, 1:]),
        "transpose": (jsp.transpose(M, mask=N.T), np.where(OTHER.T != 0, DENSE.T, 0)),
        "assign": (jsp.assign(M, 9.0, 1), np.where(np.arange(3)[:, None] == 1, 9, DENSE)),
        "kron": (jsp.kron(M, N), np.kron(DENSE, OTHER)),
    }
    for name, (got, want) in results.items():
        np.testing.assert_allclose(got.todense(), want, err_msg=name)
    assert (M + N).format == ("csr" if format == "tiled" else format)


def test_values_of_a_csc_stay_at_their_places():
    M, N = A.asformat("csc"), B.asformat("csc")
    column = np.arange(1.0, 4)[:, None]
    slope = jsp.grad(lambda M: jnp.sum((M * M).todense() * column))(M)
    results = (
        (-M, -DENSE),
        (jsp.apply(M, "ainv"), -DENSE),
        (jsp.apply(M, "rowindex", thunk=1), np.where(DENSE != 0, [[1], [2], [3]], 0)),
        (jsp.apply(M, operators.rowindex, thunk=1), np.where(DENSE != 0, [[1], [2], [3]], 0)),
        (jsp.apply(M, operators.ainv, mask=OTHER != 0), np.where(OTHER != 0, -DENSE, 0)),
        (jsp.apply(M, operators.ainv, out=N, accum=operators.plus), OTHER - DENSE),
        (M * column, DENSE * column),
        (M.with_data(slope.data), 2 * column * DENSE),
    )
    for number, (got, want) in enumerate(results):
        assert got.format == "csc"
        np.testing.assert_allclose(got.todense(), want, err_msg=str(number))


def test_ties_go_to_the_first_operand():
    x, y = jsp.vector_from_entries([1], [2.0], 3), jsp.vector_from_entries([1], [2.0], 3)
    for op in (operators.minimum, operators.maximum, monoids.min_):
        gx, gy = jsp.grad(lambda x, y: jsp.ewise_add(x, y, op).todense().sum(), (0, 1))(x, y)
        assert gx.data.tolist() == [1.0] and gy.data.tolist() == [0.0]
    M = jsp.from_dense([[3.0, 3.0]])
    assert jsp.grad(lambda M: jsp.reduce(M, monoids.min_))(M).data.tolist() == [1.0, 0.0]
    assert jsp.grad(lambda M: jsp.reduce(M, monoids.max_, axis=1).todense().sum())(
        M
    ).data.tolist() == [1.0, 0.0]


def test_eager_results_have_the_size_they_need():
    assert [(A + B).trim().nse, (A * B).trim().nse, A[1].trim().nse] == [8, 4, 1]
    assert jsp.ewise_add(A, B, nse=11).nse == 11
    with pytest.raises(ValueError, match="`nse` must be at least 8 to hold the result; got 4"):
        jsp.ewise_add(A, B, nse=4)
    for f in (lambda A, n: jsp.apply(A, jnp.sin, nse=n), lambda A, n: jsp.transpose(A, nse=n)):
        assert f(A, A.nse + 1).nse == A.nse + 1
        with pytest.raises(ValueError, match=f"`nse` must be at least {A.nse} to hold"):
            f(A, A.nse - 1)
    small = jax.jit(lambda A, B: jsp.ewise_add(A, B, nse=4))(A, B)
    assert small.nse == 4 and bool(small.overflow)
    assert bool((small + A).overflow)
    with pytest.raises(ValueError, match="overflow"):
        jsp.check(small)


def test_overflow_of_extract():
    rows = jnp.array([2, 2, 2])
    part = jax.jit(lambda A, rows: jsp.extract(A, rows, nse=8))(A, rows)
    assert bool(part.overflow) and part.nse == 8
    fits = jax.jit(lambda A, rows: jsp.extract(A, rows, nse=9))(A, rows)
    assert not bool(fits.overflow)
    np.testing.assert_array_equal(fits.todense(), DENSE[[2, 2, 2]])


def test_elements():
    assert float(A[2, 3]) == 6 and float(A[0, 1]) == 0 and float(A[-1, -1]) == 6
    assert bool(jsp.graphblas.has_element(A, 1, 1)) and not bool(jsp.graphblas.has_element(A, 1, 2))
    at = jax.jit(lambda i, j: jsp.graphblas.get_element(A, i, j, fill=-1))
    assert float(at(2, 2)) == 5 and float(at(0, 3)) == -1 and float(at(7, 0)) == -1
    bytes_ = A.astype(jnp.uint8)
    assert int(jsp.graphblas.get_element(bytes_, 0, 3, fill=-1)) == 255  # as `set_element` casts
    with pytest.raises(ValueError, match="`fill` must fit uint8"):
        jsp.graphblas.get_element(bytes_, 0, 3, fill=10**20)
    changed = jax.jit(lambda i: jsp.graphblas.set_element(A, 8.0, i, 1))(0)
    assert float(changed[0, 1]) == 8 and int(changed.count) == 7
    assert int(jsp.graphblas.remove_element(changed, 0, 1).count) == 6
    assert int(jax.jit(lambda i: jsp.graphblas.remove_element(A, i, 0))(9).count) == 6
    for f in (jsp.extract, jsp.graphblas.get_element, jsp.graphblas.remove_element):
        with pytest.raises(TypeError, match="a vector has one index; got `j` too"):
            f(A[0], 1, 2)
    row = jax.jit(lambda i: A[i])(2)
    np.testing.assert_array_equal(row.todense(), DENSE[2])
    np.testing.assert_array_equal(A[:, 2].todense(), DENSE[:, 2])
    assert float(X[2]) == 2 and X[1:].trim().indices.tolist() == [1]


def test_build_resize_dup():
    pairs = ([1, 0, 1], [0, 1, 0])
    kinds = {operators.first: 1, operators.second: 3, operators.minus: -2, monoids.plus: 4}
    for dup, want in kinds.items():
        assert float(jsp.graphblas.build(pairs, [1.0, 2.0, 3.0], (2, 2), dup=dup)[1, 0]) == want
    with pytest.raises(ValueError, match=r"`dup` is needed: the place \(1, 0\)"):
        jsp.graphblas.build(pairs, [1.0, 2.0, 3.0], (2, 2))
    with pytest.raises(ValueError, match=r"`dup` is needed: the place \(1,\)"):
        jsp.graphblas.build([1, 1], [1.0, 2.0], 3)
    assert jsp.graphblas.build([2, 0], [1.0, 2.0], 3).todense().tolist() == [2, 0, 1]
    np.testing.assert_array_equal(jsp.graphblas.resize(A, 2, 2).todense(), DENSE[:2, :2])
    np.testing.assert_array_equal(jsp.graphblas.resize(A, (4, 6)).todense()[:3, :4], DENSE)
    assert jsp.graphblas.resize(X, 1).trim().indices.tolist() == [0]
    assert jsp.graphblas.dup(A, jnp.int32).dtype == jnp.int32


def test_numpy_forms():
    np.testing.assert_allclose((A - B).todense(), DENSE - OTHER)
    np.testing.assert_allclose((2 * A).todense(), 2 * DENSE)
    np.testing.assert_allclose((A / 2).todense(), DENSE / 2)
    np.testing.assert_allclose((A * np.arange(4)).todense(), DENSE * np.arange(4))
    np.testing.assert_allclose(np.float32(3) * X.todense(), (np.float32(3) * X).todense())
    np.testing.assert_allclose(X + jnp.ones(4), X.todense() + 1)
    np.testing.assert_allclose(np.ones(4) - X, 1 - X.todense())
    assert (X - Y).todense().tolist() == [1, 0, -3, -7]
    assert jsp.where(jsp.structure(Y), X, Y).todense().tolist() == [0, 0, 2, 0]
    assert jsp.where([True, False, False, True], X).trim().indices.tolist() == [0]
    with pytest.raises(TypeError):
        A + 1
    ints = jsp.vector_from_entries([1], jnp.array([3], jnp.int8), 3)
    assert (2 * ints).dtype == jnp.int8 and (ints * 2.5).dtype == (jnp.int8(1) * 2.5).dtype


def test_user_defined_operators_with_traced_parameters():
    def f(t):
        scale = jsp.BinaryOp(lambda x, y, t: x * y * t, "scale", params=(t,))
        return jsp.ewise_mult(A, B, scale).todense().sum()

    assert float(jax.grad(f)(2.0)) == float((DENSE * OTHER).sum())
    last = jsp.monoid(lambda x, y: x + y + x * y, 0.0, name="last")
    assert float(jsp.reduce(jsp.from_dense([[1.0, 2.0]]), last)) == 5
    near = jsp.select(A, lambda x, i, j, width: abs(i - j) <= width, 1)
    np.testing.assert_array_equal(
        near.todense(), np.where(abs(np.subtract.outer(range(3), range(4))) <= 1, DENSE, 0)
    )


PAIRS = (
    ([0, 1], [1, 2]),
    ((0, 1), range(1, 3)),
    ([2, 0, 2], [-1, 3, -1]),
    (np.array([2, 1, 0]), [1]),
    ([0], jnp.array([0, 1, 2, 3])),
    (np.array([True, False, True]), [1, 2]),
)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "ell"])
def test_two_arrays_take_pairs_as_in_scipy(format):
    M, S = A.asformat(format), scipy.sparse.csr_array(DENSE)
    for i, j in PAIRS:
        want = S[np.asarray(i), np.asarray(j)]
        np.testing.assert_array_equal(M[i, j], want)
        np.testing.assert_array_equal(jax.jit(lambda M, i=i, j=j: M[i, j])(M), want)
    empty = M[np.array([], int), np.array([], int)]
    assert empty.shape == (0,) and empty.dtype == M.dtype
    for i, j in (([0, 2], [3, 1, 1]), ([1], [2])):
        outer = M[np.ix_(i, j)]
        np.testing.assert_array_equal(outer.todense(), S[np.ix_(i, j)].toarray())
        np.testing.assert_array_equal(
            M[jnp.ix_(*map(jnp.asarray, (i, j)))].todense(), DENSE[i][:, j]
        )
        np.testing.assert_array_equal(jsp.extract(M, i, j).todense(), DENSE[i][:, j])
    np.testing.assert_array_equal(M[[2, 0], 1:3].todense(), S[[2, 0], 1:3].toarray())
    np.testing.assert_array_equal(M[:, [3, 3, 0]].todense(), S[:, [3, 3, 0]].toarray())
    np.testing.assert_array_equal(M[[2, 0], 1].todense(), S[[2, 0], 1].toarray())


def test_pairs_of_repeated_entries_of_traced_indices_and_their_slopes():
    twice = jsp.COO(
        jnp.array([1.0, 2, 4]), jnp.array([0, 0, 2]), jnp.array([1, 1, 0]), jnp.asarray(False),
        (3, 4), unique=False,
    )  # fmt: skip
    i, j = jnp.array([0, 2, 1]), jnp.array([1, 0, 1])
    assert twice[i, j].tolist() == [3, 4, 0]
    assert jax.jit(lambda i, j: A[i, j])(i, j).tolist() == DENSE[i, j].tolist()
    weights = jnp.array([1.0, 10, 100])
    slope = jsp.grad(lambda A: jnp.sum(A[[0, 2, 2], [0, 3, 3]] * weights))(A)
    want = np.zeros(DENSE.shape)
    np.add.at(want, ([0, 2, 2], [0, 3, 3]), np.asarray(weights))
    row, col = A.rowcol()
    np.testing.assert_array_equal(slope.data, want[row, col])
    arrays = A.with_data(jnp.stack([A.data, -A.data], 1))
    np.testing.assert_array_equal(arrays[i, j], np.stack([DENSE[i, j], -DENSE[i, j]], 1))


def test_objects_never_change():
    for x in (A, A.asformat("coo"), jsp.vector_from_entries([1], [2.0], 3), jsp.Graph(A)):
        with pytest.raises(
            TypeError, match=r"never changes: `A = jsp.graphblas.set_element.*assign.*with_data"
        ):
            x[0, 1] = 3
        with pytest.raises(TypeError, match="never changes.*remove_element"):
            del x[0]


def test_bad_input_is_named():
    cases = [
        (lambda: jsp.ewise_add(A, A.T), ValueError, r"`B` must have the shape \(3, 4\)"),
        (lambda: jsp.ewise_add(A, 3.0), TypeError, "`B` must be a sparse matrix"),
        (lambda: jsp.apply(A, operators.plus), TypeError, "needs its other operand"),
        (lambda: jsp.apply(A, operators.plus, left=1, right=2), ValueError, "at most one"),
        (lambda: jsp.select(A, "trill"), TypeError, "`op` must be"),
        (lambda: jsp.reduce(A, axis=2), ValueError, "`axis` must be"),
        (lambda: jsp.reduce(A, mask=A), TypeError, "`mask` has no meaning"),
        (lambda: A[3], IndexError, r"`i` must lie in \[-3, 3\); got 3"),
        (lambda: A[[0, 9]], IndexError, "got 9"),
        (lambda: A[0, 1, 2], IndexError, "two indices"),
        (lambda: A[[0, 1], [0, 1, 2]], IndexError, r"one length; got 2 and 3.*np.ix_"),
        (lambda: A[[0, 1], [0, 4]], IndexError, r"`j` must lie in \[-4, 4\); got 4"),
        (lambda: A[[[0, 1]], [[0, 1]]], TypeError, r"1-D array of integers.*`A\[i.ravel\(\), j"),
        (lambda: A["x"], TypeError, "`i` must be an integer, a slice"),
        (
            lambda: A[np.ones(2, bool)],
            TypeError,
            r"`i` as booleans .* shape \(3,\); got shape \(2,\)",
        ),
        (lambda: A[DENSE > 0], TypeError, r"under a mask of a matrix are `A.todense\(\)\[mask\]`"),
        (lambda: jsp.assign(A, 1.0, [0, 0]), ValueError, "`i` must not hold an index twice"),
        (lambda: jsp.assign(A, B, [0, 1]), ValueError, r"or have shape \(2, 4\)"),
        (lambda: jsp.assign(A, 1.0, mask=A.T), ValueError, "`mask` must have shape"),
        (lambda: jsp.ewise_add(A, B, mask=A.T), ValueError, "`mask` must have the shape"),
        (lambda: jsp.ewise_add(A, B, out=A.T), ValueError, "`out` must have the shape"),
        (lambda: jsp.ewise_add(A, B, nse=-1), ValueError, "`nse` must be"),
        (lambda: jsp.ewise_add(A, B, replace=2), TypeError, "`replace` must be"),
        (lambda: jsp.diag(A, 1.5), TypeError, "`k` must be"),
        (lambda: jsp.diag(A, 9), ValueError, r"`k` must lie in \[-3, 4\]"),
        (lambda: jsp.graphblas.resize(A, 3), ValueError, "2 extents"),
    ]
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 2)])
def test_nothing_stored(shape):
    M = jsp.from_dense(jnp.zeros(shape))
    lower, transposed = jsp.select(M, operators.tril), jsp.transpose(M, out=M.T)
    for result in (M + M, M * M, -M, M[:], lower, transposed):
        assert int(result.count) == 0
    assert int(jsp.reduce(M, axis=1).count) == 0 and float(jsp.reduce(M)) == 0
    assert jsp.kron(M, A).shape == (3 * shape[0], 4 * shape[1])
    assert int(jsp.assign(M, 2.0).count) == shape[0] * shape[1]


def test_lists_where_arrays_are_meant():  # a DeprecationWarning of JAX, which is an error in tests
    D = np.array([[1.0, 0, 2], [0, 3, 0], [0, 0, 4]], np.float32)
    A, x, row = jsp.from_dense(D), [1.0, 2, 3], [5.0, 6, 7]
    np.testing.assert_array_equal(A @ x, D @ x)
    np.testing.assert_array_equal(x @ A, x @ D)
    D[0] = row
    np.testing.assert_array_equal(jsp.assign(A, row, 0).todense(), D)
