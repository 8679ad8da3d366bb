"""Integers of NumPy that 32 bits or a narrow dtype cannot hold: the right answer, or an error."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

KEY = jax.random.key(0)
DENSE = np.array([[0, 1], [3, 0]], np.int32)
A, V = jsp.from_dense(DENSE), jsp.vector_from_entries([0], [1], 2)
WIDE = np.array([2**32 + 5, 1])  # 5 and 1 in 32 bits
BOTH = np.stack([WIDE, WIDE])
EDGES, LARGE = A.astype("float32"), np.full((2, 2), 1e300)
UNTYPED: Any = jsp

DENSE_OPERANDS: list[tuple[Callable[[], Any], str]] = [
    (lambda: UNTYPED.apply(WIDE, jsp.operators.abs), "A"),
    (lambda: jsp.select(WIDE, jsp.operators.valuegt, 2), "A"),
    (lambda: jsp.reduce(WIDE), "A"),
    (lambda: jsp.diag(WIDE), "A"),
    (lambda: jsp.extract(WIDE, [0, 1]), "A"),
    (lambda: jsp.ewise_add(V, WIDE), "B"),
    (lambda: jsp.mxv(A, WIDE), "x"),
    (lambda: jsp.vxm(WIDE, A), "x"),
    (lambda: jsp.mxm(A, BOTH), "B"),
    (lambda: A @ BOTH, "other"),
    (lambda: BOTH @ A, "other"),
    (lambda: A * BOTH, "other"),
    (lambda: jsp.assign(V, WIDE), "value"),
    (lambda: jsp.apply(V, jsp.operators.abs, out=WIDE), "out"),
    (lambda: jsp.where(np.array([True, False]), V, WIDE), "B"),
    (lambda: jsp.sddmm(A, BOTH, BOTH), "X"),
    (lambda: jsp.fixpoint(A, WIDE, "min_plus"), "x0"),
    (lambda: jsp.closure(A, start=WIDE), "start"),
    (lambda: A @ LARGE[0], "x"),
    (lambda: jsp.learning.attention(EDGES, LARGE, LARGE, LARGE), "V"),
    (lambda: jsp.automata.automaton([0, 1], [1, 2], [0, 0], data=WIDE, final=[2]), "data"),
    (lambda: jax.jit(lambda: jsp.mxv(A, WIDE))(), "x"),
]


@pytest.mark.parametrize(("call", "name"), DENSE_OPERANDS)
def test_dense_operands_are_not_cut(call, name):
    with jax.enable_x64(False), pytest.raises(ValueError, match=f"`{name}`: values of .* do not"):
        call()


def test_dense_operands_of_64_bits_serve_where_they_fit():
    np.testing.assert_array_equal(A @ np.array([-(2**29), 2**31 - 1]), [2**31 - 1, -3 * 2**29])
    np.testing.assert_array_equal((A * np.array([2.0, -1.0])).todense(), DENSE * [2.0, -1.0])
    with jax.enable_x64(True):
        np.testing.assert_array_equal(A @ WIDE, DENSE.astype(np.int64) @ WIDE)


def test_diagonals_by_small_integers_of_numpy():
    dense = np.arange(25.0).reshape(5, 5)
    B = jsp.from_dense(dense)
    for k in (np.uint8(1), np.int8(-2), np.uint8(200), np.int64(-5)):
        np.testing.assert_array_equal(B.diagonal(k), np.diagonal(dense, int(k)))
    np.fill_diagonal(dense[:, 3:], 7)
    np.testing.assert_array_equal(B.setdiag(7, np.uint8(3)).todense(), dense)
    for k in (1.5, np.inf, [1], None):
        with pytest.raises(TypeError, match="`k` must be an integer"):
            UNTYPED.from_dense(dense).diagonal(k)


@pytest.mark.parametrize("values", [0.5, 2**32, [1, 2**32 + 1], 1j, np.datetime64("2020-01-01")])
def test_setdiag_does_not_cut(values):
    with pytest.raises((TypeError, ValueError), match="`values`"):
        A.setdiag(values)


def test_setdiag_looks_at_masks():
    with pytest.raises(ValueError, match="`values` has masked places"):
        A.setdiag(np.ma.masked_array([1, 2], mask=[True, False]))


def test_sizes_of_small_integers_of_numpy():
    rows, cols = np.uint8(20), np.uint8(30)  # 600 vertices, 88 in 8 bits
    grid = UNTYPED.generators.grid2d(KEY, rows, cols)
    assert grid.shape == (600, 600)
    assert int(grid.count) == 2 * (20 * 29 + 19 * 30)
    full = UNTYPED.generators.erdos_renyi(KEY, np.uint8(30), p=1.0)
    assert int(full.count) == 30 * 29
    few = UNTYPED.generators.erdos_renyi(KEY, np.int8(100), m=np.int16(50), directed=True)
    assert int(few.count) == 50
    made = UNTYPED.generators.rmat(KEY, np.int8(9), np.int8(4))  # 2,048 edges, 0 in 8 bits
    np.testing.assert_array_equal(made.todense(), UNTYPED.generators.rmat(KEY, 9, 4).todense())


ODDS: list[tuple[Callable[[], Any], str]] = [
    (lambda: jsp.generators.rmat(KEY, 3, a=np.nan), "`a`"),
    (lambda: jsp.generators.rmat(KEY, 3, c=np.nan), "`c`"),
    (lambda: UNTYPED.generators.rmat(KEY, 3, b=np.uint8(200)), "`b`"),
    (lambda: UNTYPED.generators.rmat(KEY, 3, a=[0.5]), "`a`"),
    (lambda: UNTYPED.generators.erdos_renyi(KEY, 9, p="x"), "`p`"),
    (lambda: UNTYPED.generators.erdos_renyi(KEY, 9, m=[3]), "`m`"),
    (lambda: UNTYPED.generators.erdos_renyi(KEY, 9, m=1.5), "`m`"),
    (lambda: UNTYPED.generators.grid2d(KEY, 3, drop=[0.1]), "`drop`"),
    (lambda: UNTYPED.k_core(jsp.generators.grid2d(KEY, 2), [1, 2]), "`k`"),
    (lambda: UNTYPED.k_truss(jsp.generators.grid2d(KEY, 2), [3]), "`k`"),
    (lambda: UNTYPED.diameter(jsp.generators.grid2d(KEY, 2), max_searches=-1), "`max_searches`"),
    (lambda: UNTYPED.diameter(jsp.generators.grid2d(KEY, 2), max_searches=1.5), "`max_searches`"),
    (lambda: UNTYPED.select(A, jsp.operators.valuegt, [1, 2]), "`thunk`"),
    (lambda: jsp.soft_sssp(EDGES, 0, np.inf), "`temperature`"),
]


@pytest.mark.parametrize(("call", "name"), ODDS)
def test_numbers_out_of_range_are_named(call, name):
    with pytest.raises((TypeError, ValueError), match=name):
        call()


@pytest.mark.parametrize("backend", [None, "xla"])
@pytest.mark.parametrize("weights", [np.array([2**30] * 3, "i"), np.array([2**25, 0.5, 0.5], "f")])
def test_weighted_betweenness_says_where_distances_do_not_fit(weights, backend):
    """0 -> 1 -> 2 -> 3 and back: lengths beyond int32, or weights that vanish beside 2^25."""
    dense = np.diag(weights, 1)
    path = jsp.from_dense(dense + dense.T)
    found = jsp.betweenness_centrality(path, weighted=True, backend=backend)
    assert found.overflow
    with pytest.raises(ValueError, match="overflow: a result did not fit"):
        jsp.check(found)
    small = path.with_data(np.ones(6, path.dtype))
    fine = jsp.betweenness_centrality(small, weighted=True, backend=backend, normalized=False)
    assert not fine.overflow
    np.testing.assert_allclose(fine.scores, [0, 2, 2, 0])
    nothing = jsp.from_dense(np.zeros((3, 3)), nse=0)
    alone = jsp.betweenness_centrality(nothing, weighted=True, backend=backend)
    np.testing.assert_array_equal(alone.scores, [0, 0, 0])


@pytest.mark.parametrize("n", [-1, np.int8(-2)])
def test_integers_have_no_negative_powers(n):
    with pytest.raises(ValueError, match="integers have no powers of -"):
        _ = A**n
    np.testing.assert_allclose(A.power(n, float).data, np.array([1.0, 3.0]) ** int(n), rtol=1e-6)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
def test_numbers_of_numpy_have_their_dtype(kind, dtype, x64):
    """Python's numbers take the dtype of the entries; those of NumPy are promoted, as in JAX."""
    with jax.enable_x64(x64):
        x, third = jnp.array([0.3, 1.0], dtype), kind(0.3)
        v = jsp.vector_from_dense(x, fill=7)
        assert (v * third).dtype == (x * third).dtype
        np.testing.assert_array_equal((v > third).todense(), x > third)
        chosen = jsp.select(v, jsp.operators.valuegt, third)
        np.testing.assert_array_equal(
            chosen.indices[: int(chosen.count)], jnp.flatnonzero(x > third)
        )
