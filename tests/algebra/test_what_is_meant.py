"""Operators and monoids as arguments: what can be meant is taken, the rest refused by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

pytestmark = pytest.mark.fast
X = jsp.vector_from_entries([0, 2], [1.0, 5.0], 4)
A = jsp.from_dense(np.array([[1.0, 2.0], [0.0, 4.0]], np.float32))
UNARY = jsp.operators.ainv


@pytest.mark.parametrize(
    "dup", [jsp.monoids.max_, jnp.maximum, np.maximum, "max", jsp.operators.maximum]
)
def test_monoids(dup):
    twice = jsp.from_edges([0, 0], [1, 1], [3.0, 7.0], shape=(2, 2), dup=dup)
    assert twice.data.tolist() == [7.0]
    assert jsp.vector_from_entries([1, 1], [3.0, 7.0], 3, dup=dup).data[0] == 7
    assert A.with_edge_data([0, 0, 1], [3.0, 7.0, 1.0], dup=dup).data[0] == 7
    assert float(jsp.reduce(A, dup)) == 4
    own = jsp.Semiring(dup, np.multiply)
    assert jsp.mxv(A, jnp.ones(2), own).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("dup", [UNARY, "maximal", 3, lambda x, y: x * y + 1])
def test_what_is_no_monoid(dup):
    for call in (
        lambda: jsp.from_edges([0, 0], [1, 1], [3.0, 7.0], shape=(2, 2), dup=dup),
        lambda: jsp.vector_from_entries([1, 1], [3.0, 7.0], 3, dup=dup),
        lambda: A.with_edge_data([0, 0, 1], [3.0, 7.0, 1.0], dup=dup),
        lambda: jsp.reduce(A, dup),
        lambda: jsp.Semiring(dup, jnp.multiply),
    ):
        with pytest.raises((TypeError, ValueError), match="`(add|dup)` must be"):
            call()


def test_operators():
    assert jsp.apply(X, np.negative).todense().tolist() == [-1.0, 0.0, -5.0, 0.0]
    assert jsp.apply(X, np.subtract, left=10.0).todense().tolist() == [9.0, 0.0, 5.0, 0.0]
    assert jsp.apply(X, lambda x: 1).todense().tolist() == [1, 0, 1, 0]
    assert jsp.ewise_mult(X, X, np.multiply).todense().tolist() == [1.0, 0.0, 25.0, 0.0]
    assert jsp.ewise_add(X, X, "plus").todense().tolist() == [2.0, 0.0, 10.0, 0.0]
    assert jax.jit(lambda x: jsp.apply(x, np.exp).data)(X).shape == (2,)
    with pytest.raises(TypeError, match="element by element"):
        jsp.apply(X, jnp.sum)
    with pytest.raises(TypeError, match="two operands"):
        jsp.ewise_mult(X, X, UNARY)
    with pytest.raises(TypeError, match="two operands"):
        jsp.Semiring(jsp.monoids.plus, UNARY)
    with pytest.raises(TypeError, match="two operands"):
        jsp.apply(X, UNARY, out=X, accum=UNARY)
    with pytest.raises(ValueError, match="`mul` must be one of"):
        jsp.Semiring(jsp.monoids.plus, "tims")
    with pytest.raises(TypeError, match="needs a function"):
        jsp.BinaryOp("plus")


@pytest.mark.parametrize("axis", [1.0, True, 2, "rows"])
def test_axes(axis):
    with pytest.raises(ValueError, match="`axis` must be None, or 0 or 1"):
        jsp.reduce(A, axis=axis)


def test_graphs():
    with pytest.raises(TypeError, match="must be a NetworkX graph; got 'x'"):
        jsp.from_networkx("x")
