"""Numbers that the dtype of the entries does not hold: compared exactly, or refused."""

import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

ROW, COL = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 0])
NUMBERS = (-(10**10), -(2**31) - 1, -129, -1, 0, 200, 300, 2**31, 3 * 10**9, 2**32 - 1, 10**10)


def matrix_of(dtype):
    most = np.iinfo(dtype).max if np.dtype(dtype).kind in "iu" else 7
    values = np.array([most, 3, 0, 1]).astype(dtype)
    return jsp.from_edges(ROW, COL, values, shape=(3, 2)), values


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "float32", "bool"])
def test_comparisons_with_any_integer_are_exact(dtype):
    A, values = matrix_of(dtype)
    exact = [v.item() for v in values]
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        predicate, compare = getattr(jsp.operators, f"value{name}"), getattr(operator, name)
        both = getattr(jsp.operators, name)
        for k in NUMBERS:
            want = [compare(v, k) for v in exact]
            left = jsp.select(A, predicate, k)
            assert sorted(left.data[: int(left.count)].tolist()) == sorted(
                v for v, taken in zip(exact, want, strict=True) if taken
            )
            assert jsp.apply(A, both, right=k).data.tolist() == want
            if not compare(0, k):
                true = compare(A, k) if name not in ("eq", "ne") else None
                assert true is None or int(true.nnz) == sum(want)


@pytest.mark.parametrize("k", [np.int32(-1), np.int8(-1), np.int64(2**40), np.uint32(2**32 - 1)])
def test_integers_of_numpy_are_compared_as_exactly(k):
    """JAX alone compares uint32 with int32 in int32, where 2^32 - 1 is -1."""
    A, values = matrix_of("uint32")
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        want = [getattr(operator, name)(int(v), int(k)) for v in values]
        assert jsp.apply(A, name, right=k).data.tolist() == want
        assert int(jsp.select(A, f"value{name}", k).count) == sum(want)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "uint8", "bool"])
def test_comparisons_of_integers_with_any_real_number_are_exact(dtype):
    """In float32 2^24 + 1 is 2^24, and so is 2^24 + 0.5."""
    near = [2**24, 2**24 + 1, 2**24 + 2, 2**31 - 1] if dtype[-2:] == "32" else [0, 1, 1, 0]
    exact = np.array(near).astype(dtype)
    A = jsp.from_edges(ROW, COL, exact, shape=(3, 2))
    reals = (0.5, 1.0, 2**24 + 0.5, 2.0**24, -0.5, 2.0**31 - 0.5, 255.5, 1e300, -np.inf, np.nan)
    for x in (*reals, np.float32(2**24), np.float64(2**24 + 0.5)):
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            compare = getattr(operator, name)
            want = [compare(int(v), float(x)) for v in exact]
            assert jsp.apply(A, name, right=x).data.tolist() == want, (name, x)
            swapped = [compare(float(x), int(v)) for v in exact]
            assert jsp.apply(A, name, left=x).data.tolist() == swapped, (name, x)
            assert int(jsp.select(A, f"value{name}", x).count) == sum(want), (name, x)


def test_diagonals_beyond_the_matrix_and_beyond_32_bits():
    A, _ = matrix_of("int32")
    for k in (-(2**40), -(2**31), -1, 0, 2**31 - 2, 2**31 - 1, 2**40):
        for name, holds in {
            "tril": COL <= ROW + k,
            "triu": COL >= ROW + k,
            "diag": COL == ROW + k,
            "offdiag": COL != ROW + k,
            "rowle": k >= ROW,
            "colgt": k < COL,
        }.items():
            assert int(jsp.select(A, getattr(jsp.operators, name), k).count) == holds.sum(), name


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_numbers_of_more_bits_than_an_int32(wrap):
    (U, u), (F, f), big = matrix_of("uint32"), matrix_of("float32"), 0xFFFF0001
    anded = wrap(lambda A: jsp.apply(A, jsp.operators.band, right=big).data)(U)
    np.testing.assert_array_equal(anded, u & np.uint32(big))
    scaled = wrap(lambda A: (A * 10**10).data)(F)
    np.testing.assert_allclose(scaled, f * 1e10, rtol=1e-6)
    written = wrap(lambda A: jsp.assign(A, big, [1], [1]).todense())(U)
    assert int(written[1, 1]) == big and int(written[0, 1]) == 3
    x, y = (jsp.vector_from_entries([k], jnp.array([1], jnp.uint32), 3) for k in (0, 2))
    union = wrap(lambda x, y: jsp.ewise_union(x, y, jsp.operators.bor, big - 1, big - 1).todense())
    assert union(x, y).tolist() == [big, 0, big]
    with pytest.raises(ValueError, match="`value` must fit int8; got"):
        wrap(lambda A: jsp.assign(A, 2**70, [1], [1]))(F.astype(jnp.int8))
    with pytest.raises(ValueError, match="`right` must fit"):
        wrap(lambda A: jsp.apply(A, jsp.operators.plus, right=2**70))(F.astype(jnp.int8))


def test_an_integer_of_numpy_that_32_bits_do_not_hold_is_refused():
    A, _ = matrix_of("int32")
    with jax.enable_x64(False), pytest.raises(ValueError, match="do not fit int32"):
        jsp.graphblas.set_element(A, np.int64(10**10), 0, 0)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_, np.float16])
@pytest.mark.parametrize("fill", [0.5, 300, -1, 10**12, 1e39, np.inf, np.nan, 1j, np.int64(300)])
def test_what_stands_for_no_entry_is_held_or_refused(dtype, fill):
    dense = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype)
    with np.errstate(all="ignore"):
        real = not isinstance(fill, complex)
        kept = real and (np.array(fill).astype(dtype) == fill or np.dtype(dtype).kind == "f")
        kept = kept and (np.isinf(fill) or not np.isinf(np.array(fill).astype(dtype)))
        beneath = np.array(fill if real else 0).astype(dtype)
    A = jsp.from_dense(dense)
    x = jsp.vector_from_dense(dense[0])
    calls = {
        "matrix": (lambda: A.todense(fill), np.where(dense, dense, beneath)),
        "traced": (lambda: jax.jit(lambda A: A.todense(fill))(A), np.where(dense, dense, beneath)),
        "vector": (lambda: x.todense(fill), np.where(dense[0], dense[0], beneath)),
        "aggregate": (
            lambda: jsp.learning.aggregate(A, "max", fill=fill),
            np.array([1, beneath, beneath], dtype),
        ),
        "loops": (
            lambda: jsp.learning.add_self_loops(A, fill).todense(),
            np.where(np.eye(3, dtype=bool), beneath, dense),
        ),
    }
    for name, (call, want) in calls.items():
        if kept:
            np.testing.assert_array_equal(call(), want, err_msg=name)
        else:
            with pytest.raises(ValueError, match=f"which {np.dtype(dtype)} does not"):
                call()


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_, np.float32])
@pytest.mark.parametrize("fill", [0.5, 300, 10**12, 1e39, np.inf, np.nan, 1, 0, 0.1])
def test_a_dense_matrix_keeps_what_is_not_the_fill(dtype, fill):
    dense = np.array([[0, 1], [1, 0]], dtype)
    dense = dense * dtype(0.1) if dtype is np.float32 else dense
    beneath = np.float64(np.float32(fill)) if dtype is np.float32 and fill == 0.1 else fill
    want = dense.astype(np.float64) != beneath
    stored = jsp.from_dense(dense, fill=fill)
    assert stored.count == want.sum()
    assert jsp.vector_from_dense(dense[0], fill=fill).count == want[0].sum()
    traced = jax.jit(lambda d: jsp.from_dense(d, fill=fill, nse=4).count)
    assert traced(dense) == want.sum()
