"""Indices and limits of 64 bits: what is out of range stays out of range, traced or not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

BEYOND = 2**32 + 1  # 1, when its upper half is cut off


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


WIDE = pytest.mark.parametrize("dtype", ["int64", "uint64"])


@WIDE
def test_traced_indices_of_vectors_and_edges_do_not_wrap(dtype):
    index = jnp.asarray([0, BEYOND], dtype)
    x = jax.jit(lambda i: jsp.vector_from_entries(i, jnp.ones(2), 4))(index)
    assert x.structure().tolist() == [True, False, False, False]
    A = jax.jit(lambda i: jsp.from_edges(i, i, shape=(4, 4)))(index)
    assert A.todense().nonzero()[0].tolist() == [0]
    bits = jax.jit(lambda i: jsp.BitVector.from_indices(i, 4).todense())(index)
    assert bits.tolist() == [True, False, False, False]


@WIDE
def test_traced_indices_of_elements_do_not_wrap(dtype):
    index = jnp.asarray(BEYOND, dtype)
    x = jsp.vector_from_entries([0, 1], [5.0, 7.0], 4)
    A = jsp.from_dense(np.arange(1.0, 17).reshape(4, 4))
    assert jax.jit(lambda i: jsp.graphblas.get_element(x, i))(index) == 0
    assert jax.jit(lambda i: jsp.graphblas.get_element(A, i, 0))(index) == 0
    assert jax.jit(lambda i: jsp.extract(A, i[None]).nnz)(index) == 0
    for change in (
        lambda i: jsp.graphblas.set_element(A, -1.0, i, 0),
        lambda i: jsp.assign(A, -1.0, i[None], 0),
        lambda i: jsp.graphblas.remove_element(A, i, 0),
    ):
        np.testing.assert_array_equal(jax.jit(change)(index).todense(), A.todense())


@WIDE
def test_eager_indices_beyond_the_extent_are_refused(dtype):
    index = jnp.asarray(BEYOND, dtype)
    x = jsp.vector_from_entries([0, 1], [5.0, 7.0], 4)
    with pytest.raises(ValueError, match="must lie in"):
        jsp.vector_from_entries(index[None], 1.0, 4)
    with pytest.raises(ValueError, match="must lie in"):
        jsp.from_edges(index[None], index[None], shape=(4, 4))
    with pytest.raises(IndexError, match="must lie in"):
        jsp.graphblas.get_element(x, index)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32"])
def test_narrow_and_unsigned_indices_meet_long_axes(dtype):
    index = jnp.asarray([3, 100 if dtype == "int8" else 200], dtype)
    expected = np.zeros(1000, bool)
    expected[np.asarray(index).astype(int)] = True
    x = jax.jit(lambda i: jsp.vector_from_entries(i, jnp.ones(2), 1000))(index)
    np.testing.assert_array_equal(x.structure(), expected)
    last = jnp.asarray(2**32 - 1, jnp.uint32)  # not "the last one"
    assert jax.jit(lambda i: jsp.graphblas.get_element(x, i))(last) == 0


def path(n=6):
    return jsp.from_edges(np.arange(n - 1), np.arange(1, n), jnp.ones(n - 1), shape=(n, n))


@pytest.mark.parametrize("k", [2**31, BEYOND, np.int64(BEYOND), np.uint64(BEYOND)], ids=str)
def test_limits_beyond_int32_are_no_limits(k):
    A = path()
    assert jsp.bfs(A, 0, until=jsp.until.max_iterations(k)).levels.tolist() == [0, 1, 2, 3, 4, 5]
    assert jsp.sssp(A, 0, until=jsp.until.max_iterations(k)).distances.tolist() == [
        0,
        1,
        2,
        3,
        4,
        5,
    ]
    assert jsp.sssp(A, 0, max_steps=k).converged
    full = jsp.pagerank(A, tol=0.0, max_iterations=200)
    np.testing.assert_allclose(jsp.pagerank(A, tol=0.0, max_iterations=k).scores, full.scores)
    assert jsp.soft_sssp(A, 0, 0.1, max_iterations=k).converged
    traced = jax.jit(lambda k: jsp.bfs(A, 0, until=jsp.until.max_iterations(k)).levels)(
        jnp.asarray(k)
    )
    assert traced.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("call", [
    lambda k: jsp.until.max_iterations(k),
    lambda k: jsp.until.residual(1e-3, min_iterations=k),
    lambda k: jsp.pagerank(path(), max_iterations=k),
    lambda k: jsp.sssp(path(), 0, max_steps=k),
    lambda k: jsp.soft_sssp(path(), 0, 0.1, max_iterations=k),
])  # fmt: skip
def test_limits_that_are_none_are_refused(call):
    with pytest.raises(ValueError, match="must not be negative; got -1"):
        call(-1)
    with pytest.raises(TypeError, match=r"must be an integer; got 2\.5"):
        call(2.5)


@pytest.mark.parametrize("algorithm", [jsp.bfs, jsp.sssp])
def test_a_target_out_of_range(algorithm):
    A = path()
    with pytest.raises(ValueError, match=r"vertex in \[0, 6\); got 7"):
        algorithm(A, 0, until=jsp.until.reached(7))
    for node in (-1, 6, BEYOND, 2):
        found = jax.jit(lambda t: algorithm(A, 0, until=jsp.until.reached(t))[0])(jnp.asarray(node))
        whole = [0, 1, 2, -1, -1, -1] if algorithm is jsp.bfs else [0, 1, 2, *[np.inf] * 3]
        assert found.tolist() == (whole if node == 2 else [0, 1, 2, 3, 4, 5])


def test_dense_arrays_beyond_what_xla_counts_are_refused():
    """They ended the process."""
    wide = jsp.from_edges([0], [1], shape=(2**40, 2**40), format="coo")
    for x in (wide, jsp.vector_from_entries([1], [1.0], 2**61)):
        with pytest.raises(ValueError, match="2.63 bytes"):
            x.todense()
        with pytest.raises(ValueError, match="2.63 bytes"):
            jax.jit(lambda x: x.todense())(x)


def test_extents_beyond_int64_are_refused():
    wide = jsp.from_edges([0], [1], shape=(2**40, 2**40), format="coo")
    for call in (
        lambda: jsp.kron(wide, wide),
        lambda: jsp.from_edges([0], [0], shape=(2**63, 3), format="coo"),
        lambda: jsp.vector_from_entries([0], [1.0], 2**63),
    ):
        with pytest.raises(ValueError, match="do not reach a size of"):
            call()
