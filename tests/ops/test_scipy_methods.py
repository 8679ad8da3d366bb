"""SciPy's methods against SciPy on random matrices, element by element and in what is stored."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp

DTYPES = [np.float32, np.int32, bool]
SHAPES = [(5, 7), (6, 6), (1, 4)]


def random(seed, shape=(5, 7), dtype=np.float32):
    """A matrix of small numbers, zeros stored and explicit ones among them."""
    rng = np.random.default_rng(seed)
    dense = (rng.integers(-3, 4, shape) * (rng.random(shape) < 0.5)).astype(dtype)
    return sp.csr_array(dense), jsp.from_scipy(sp.csr_array(dense))


def dense(x):
    return np.asarray(x.toarray() if hasattr(x, "toarray") else x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_joins_over_axes(shape, dtype):
    S, A = random(0, shape, dtype)
    for name in ("sum", "mean", "min", "max"):
        for axis in (None, 0, 1, -1):
            want, got = (getattr(matrix, name)(axis=axis) for matrix in (S, A))
            np.testing.assert_allclose(dense(got), dense(want), rtol=1e-6, err_msg=name)
    for want, got in zip(S.nonzero(), A.nonzero(), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32], ids=str)
def test_eager_answers_are_those_of_a_program(format, dtype):
    for seed, shape in enumerate((*SHAPES, (9, 2))):
        S, A = random(seed, shape, dtype)
        A, D = A.asformat(format), dense(S)
        for f in (
            *(lambda A, n=n: getattr(A, n)() for n in ("sum", "mean", "min", "max", "toarray")),
            *(lambda A, k=k: A.diagonal(k) for k in (0, 1, -1)),
        ):
            got, traced = f(A), jax.jit(f)(A)
            assert got.dtype == traced.dtype and got.shape == traced.shape
            np.testing.assert_allclose(got, traced, rtol=1e-6)
            np.testing.assert_allclose(got, dense(f(S)), rtol=1e-6)
        np.testing.assert_array_equal(A.nonzero(), np.nonzero(D))
        np.testing.assert_array_equal(A.todense(fill=7), np.where(dense(A.astype(bool)), D, 7))


def test_eager_answers_of_nothing_and_of_nan():
    nothing = jsp.from_scipy(sp.csr_array((4, 3), dtype=np.float32))
    assert (nothing.sum(), nothing.max(), nothing.min()) == (0, 0, 0)
    assert nothing.diagonal().tolist() == [0, 0, 0] and not nothing.toarray().any()
    A = jsp.from_dense([[np.nan, -1.0]])
    assert all(np.isnan(float(f())) for f in (A.sum, A.max, A.min))
    big = jsp.from_scipy(sp.csr_array(np.full((1, 2), 2**30, np.int32)))
    assert int((big + big).max()) == int(jax.jit(lambda A: (A + A).max())(big)) == -(2**31)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_sums_of_small_integers_do_not_wrap_around(dtype):
    most = np.iinfo(dtype).max
    A = jsp.from_scipy(sp.csr_array(np.full((3, 4), most, dtype)))
    assert int(A.sum()) == 12 * most and A.sum(axis=1).tolist() == [4 * most] * 3
    assert A.sum(axis=0).dtype.kind == np.dtype(dtype).kind and A.sum(dtype=dtype).dtype == dtype


def test_functions_of_numpy_call_the_methods():
    S, A = random(3)
    for f in (np.sum, np.mean, np.min, np.max):
        np.testing.assert_allclose(f(A), f(S), rtol=1e-6)
        np.testing.assert_allclose(f(A, axis=0), dense(f(S, axis=0)), rtol=1e-6)
        with pytest.raises(ValueError, match="`out` must be None"):
            f(A, axis=0, out=np.zeros(7))


EXPRESSIONS = """
A > 0 | A < 0 | A != 0 | A > 1 | A >= 1 | A <= -1 | A != B | A < B | A > B | A > D | A <= D
A ** 2 | abs(A) | A.power(3) | A.multiply(2) | A.multiply(B) | A.multiply(D)
A.dot(B.T) | A.dot(2) | A.dot(D.T) | A.copy() | A.astype(float32)
A.tocsr() | A.tocsc() | A.tocoo()
A.diagonal() | A.diagonal(-2) | A.diagonal(3)"""


@pytest.mark.parametrize(
    "text", [e.strip() for e in EXPRESSIONS.strip().replace("\n", "|").split("|")]
)
def test_element_by_element(text):
    (S, A), (T, B) = random(1), random(2)
    D, float32 = T.toarray() + 1, np.float32
    want = eval(text, {"A": S, "B": T, "D": D, "float32": float32})
    got = eval(text, {"A": A, "B": B, "D": D, "float32": float32})
    np.testing.assert_array_equal(dense(got), dense(want))
    assert dense(got).dtype == dense(want).dtype
    if hasattr(want, "nnz") and dense(want).dtype == bool:
        assert int(got.nnz) == want.nnz  # what is false is not stored


@pytest.mark.parametrize("k", [-4, -2, 0, 3])
@pytest.mark.parametrize("values", [2.0, [1.0, 0.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]], ids=str)
def test_setdiag(k, values):
    S, A = random(3)
    S = S.tolil()
    S.setdiag(values, k)
    got = A.setdiag(values, k)
    np.testing.assert_array_equal(got.toarray(), S.toarray())
    assert got.format == A.format and A.shape == got.shape


@pytest.mark.long
@pytest.mark.parametrize("format", ["tiled", "bittiled"])
def test_other_formats(format):
    """Words of bits hold no values: of them, the pattern."""
    S, A = random(6)
    A = A.asformat(format)
    if format == "bittiled":
        S = sp.csr_array(S != 0)
    for name in ("sum", "mean", "min", "max"):
        for axis in (None, 1):
            want, got = (getattr(matrix, name)(axis=axis) for matrix in (S, A))
            np.testing.assert_allclose(dense(got), dense(want), rtol=1e-6, err_msg=name)
    for do in (
        lambda M: M.astype(np.float32),
        lambda M: M.dot(np.ones(7, np.float32)),
        lambda M: M.multiply(2),
        lambda M: M.diagonal(1),
        lambda M: M.tocsr(),
        abs,
    ):
        np.testing.assert_allclose(dense(do(A)), dense(do(S)), rtol=1e-6)
    for want, got in zip(S.nonzero(), A.nonzero(), strict=True):
        np.testing.assert_array_equal(got, want)


def test_vectors():
    x = jsp.vector_from_entries([1, 3], [-2.0, 5.0], 6)
    y = jsp.vector_from_entries([3, 4], [4.0, 1.0], 6)
    assert float(x.sum()) == 3.0 and float(x.mean()) == 0.5
    assert (float(x.min()), float(x.max()), float(y.min())) == (-2.0, 5.0, 0.0)
    assert float(x.dot(y)) == 20.0 and float(x.dot(y.toarray())) == 20.0
    assert x.nonzero()[0].tolist() == [1, 3]
    assert (x > y).todense().tolist() == [False, False, False, True, False, False]


def test_full_and_empty():
    full, none = jsp.from_dense(jnp.full((2, 2), 3.0)), jsp.from_edges([], [], shape=(2, 3))
    assert float(full.min()) == 3.0 and full.min(axis=0).tolist() == [3.0, 3.0]
    assert float(none.max()) == 0.0 and none.sum(axis=0).tolist() == [0.0] * 3
    with pytest.raises(ValueError, match="of no places"):
        jsp.from_edges([], [], shape=(0, 3)).min()


def test_inside_jit_and_grad():
    _, A = random(4)

    @jax.jit
    def of(A):
        return A.sum(), A.max(axis=1), A.mean(axis=0), (A > 0).sum(), A.setdiag(1.0).sum()

    for got, want in zip(of(A), of.__wrapped__(A), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    slope = jax.grad(lambda data: A.with_data(data).mean())(A.data)
    np.testing.assert_allclose(slope, np.full(A.nse, 1 / 35), rtol=1e-6)


def test_refusals():
    _, A = random(5)
    for wrong in (lambda: A <= 0, lambda: A >= A, lambda: A != 1):
        with pytest.raises(TypeError, match="missing entries satisfy"):
            wrong()
    with pytest.raises(TypeError, match="length of a CSR is ambiguous"):
        len(A)
    with pytest.raises(ValueError, match="would be dense"):
        A.power(0)
    with pytest.raises(ValueError, match="`axis` must be None or an axis of 2; got 2"):
        A.sum(axis=2)
    with pytest.raises(ValueError, match="`k` must be a diagonal"):
        A.setdiag(1.0, 7)
    with pytest.raises(ValueError, match="needs concrete values"):
        jax.jit(lambda A: A.nonzero())(A)
    with pytest.raises(ValueError, match="must be concrete"):
        jax.jit(lambda A, s: s < A)(A, 1.0)
    assert (A != "text") is True


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "float32"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_means_of_a_dtype_are_taken_before_they_are_rounded(dtype, axis):
    """As by `jnp.mean`: no value is cut to an integer before the sum."""
    D = np.array([[0, 1.75, 2.75], [3.75, 0, 5.5]], np.float32)
    for values in (D, D.astype(np.int32), D.astype(np.uint8)):
        got = jsp.from_dense(values).mean(axis=axis, dtype=dtype)
        wanted = (values.astype(np.float64).mean(axis=axis)).astype(dtype)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-3)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32])
def test_a_matrix_times_an_array_has_the_dtype_of_numpy(dtype):
    stored, array = np.array([[True, False], [True, True]]), np.array([[1, 1], [0, 1]], dtype)
    got = [(jsp.from_dense(stored) * array), array * jsp.from_dense(stored)]
    for product in got:
        assert product.dtype == (stored * array).dtype
        np.testing.assert_array_equal(product.todense(), stored * array)
