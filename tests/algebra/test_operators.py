"""Unary and binary operators: the list of the GraphBLAS C API against NumPy, dtypes, parameters."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.algebra import operators as o

pytestmark = pytest.mark.fast
X = np.array([-2.5, -1.0, -0.5, 0.25, 0.75, 3.0], np.float32)
Y = np.array([2.0, -0.5, 0.25, 3.0, -1.5, 2.0], np.float32)

NUMPY_UNARY = {
    "identity": lambda x: x,
    "ainv": np.negative,
    "minv": np.reciprocal,
    "abs": np.abs,
    "lnot": np.logical_not,
    "one": np.ones_like,
    "signum": np.sign,
    "sqrt": np.sqrt,
    "cbrt": np.cbrt,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
    "lgamma": np.vectorize(lambda x: math.lgamma(x) if x != round(x) or x > 0 else np.inf),
    "ceil": np.ceil,
    "floor": np.floor,
    "trunc": np.trunc,
    "round": np.round,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "isfinite": np.isfinite,
    "bnot": None,
}
NUMPY_BINARY = {
    "plus": np.add,
    "minus": np.subtract,
    "rminus": lambda x, y: y - x,
    "times": np.multiply,
    "truediv": np.divide,
    "rtruediv": lambda x, y: y / x,
    "floordiv": np.floor_divide,
    "pow": np.power,
    "min": np.minimum,
    "max": np.maximum,
    "first": lambda x, y: x,
    "second": lambda x, y: y,
    "pair": lambda x, y: np.ones_like(x),
    "any": lambda x, y: x,
    "lor": np.logical_or,
    "land": np.logical_and,
    "lxor": np.logical_xor,
    "lxnor": lambda x, y: (x != 0) == (y != 0),
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "fmod": np.fmod,
    "remainder": np.remainder,
    "copysign": np.copysign,
    "logaddexp": np.logaddexp,
    "min_extend": np.add,
    "max_extend": np.add,
    "band": None,
    "bor": None,
    "bxor": None,
    "bxnor": None,
    "ldexp": None,
}
NUMPY_INTEGER = {
    "band": lambda x, y: x & y,
    "bor": lambda x, y: x | y,
    "bxor": lambda x, y: x ^ y,
    "bxnor": lambda x, y: ~(x ^ y),
    "bnot": lambda x: ~x,
    "ldexp": lambda x, y: x * 2.0**y,
}


def test_unary_operators_are_numpys():
    got = jax.jit(lambda x: {u.name: u(x) for u in o.UNARY if NUMPY_UNARY[u.name]})(X)
    with np.errstate(all="ignore"):
        for name, value in got.items():
            want = NUMPY_UNARY[name](X)
            assert value.shape == X.shape
            np.testing.assert_allclose(value, want, rtol=2e-5, atol=1e-6, err_msg=name)


def test_binary_operators_are_numpys():
    got = jax.jit(lambda x, y: {b.name: b(x, y) for b in o.BINARY if NUMPY_BINARY.get(b.name)})(
        X, Y
    )
    with np.errstate(all="ignore"):
        for name, value in got.items():
            np.testing.assert_allclose(value, NUMPY_BINARY[name](X, Y), rtol=2e-5, err_msg=name)


def test_operators_on_integers():
    x, y = np.array([-7, 0, 5, 100], np.int8), np.array([3, 1, -1, 7], np.int8)
    for name, function in NUMPY_INTEGER.items():
        op = getattr(o, name)
        operands = (x,) if isinstance(op, o.UnaryOp) else (x, y)
        np.testing.assert_allclose(op(*map(jnp.asarray, operands)), function(*operands))


def test_every_operator_is_listed_once_and_has_an_oracle():
    assert {u.name for u in o.UNARY} == set(NUMPY_UNARY)
    positional = {b.name for b in o.BINARY if b.position}
    assert positional == {"firsti", "firstj", "secondi", "secondj"}
    assert {b.name for b in o.BINARY} - positional == set(NUMPY_BINARY)
    assert len(o.UNARY) == len(NUMPY_UNARY)
    assert len(o.BINARY) == len(NUMPY_BINARY) + 4


def test_operators_of_the_c_api_are_there():
    """GraphBLAS C API 2.1, tables 3.5 and 3.6 (GrB_DIV is truediv and floordiv, ONEB is pair)."""
    unary = "identity absolute ainv minv lnot bnot"
    binary = "lor land lxor lxnor eq ne gt lt ge le bor band bxor bxnor first second minimum "
    binary += "maximum plus minus times truediv floordiv pair"
    assert all(isinstance(getattr(o, name), o.UnaryOp) for name in unary.split())
    assert all(isinstance(getattr(o, name), o.BinaryOp) for name in binary.split())


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "float32"])
def test_selecting_operators_keep_the_dtype_and_broadcast(dtype):
    x, y = jnp.ones((3, 1), dtype), jnp.zeros(4, dtype)
    for op in (o.first, o.second, o.pair, o.any_, o.minimum, o.maximum, o.min_extend):
        assert op(x, y).dtype == dtype and op(x, y).shape == (3, 4)


def test_a_python_number_does_not_widen():
    for op in (o.pair, o.min_extend, o.max_extend, o.plus, o.minimum):
        assert op(jnp.ones(2, jnp.float16), 1.0).dtype == jnp.float16
        assert op(1, jnp.ones(2, jnp.int8)).dtype == jnp.int8


def test_logaddexp_of_nothing_has_no_slope():
    low = -jnp.inf
    slope = jax.vmap(jax.grad(lambda x, y: o.logaddexp(x, y), (0, 1)))
    x, y = slope(jnp.array([low, low, 1.0]), jnp.array([low, 0.0, 1.0]))
    np.testing.assert_array_equal([x[:2], y[:2]], [[0, 0], [0, 1]])
    np.testing.assert_allclose([x[2], y[2]], 0.5, rtol=1e-7)


def test_parameters_are_leaves_and_functions_are_static():
    scale = jsp.UnaryOp(_scaled, "scale", params=(jnp.float32(2),))
    shift = jsp.BinaryOp(_between, "between", params=(jnp.float32(0.25),))
    assert [len(jax.tree.leaves(op)) for op in (scale, shift, o.plus)] == [1, 1, 0]
    assert float(jax.jit(lambda op, x: op(x))(scale, 3.0)) == 6
    slope = jax.grad(lambda op: shift_of(op))(shift)
    assert float(slope.params[0]) == 4.0  # y - x
    emptied = jax.tree.map(lambda _: None, shift)
    assert emptied.params == (None,) and repr(emptied) == "BinaryOp(between)"
    assert repr(scale) == "UnaryOp(scale)"


def _scaled(x, factor):
    return factor * x


def _between(x, y, t):
    return (1 - t) * x + t * y


def shift_of(op):
    return op(1.0, 5.0)


def test_plain_functions_become_operators():
    assert o.as_binary(o.plus) is o.plus
    assert o.as_binary(jnp.hypot).name == "hypot"
    assert o.as_binary(lambda x, y: x).name == "<lambda>"
    with pytest.raises(TypeError, match="`op` must be a BinaryOp or a function of two arrays"):
        o.as_binary(3)  # pyright: ignore[reportArgumentType]


def test_a_partial_function_of_a_traced_value_is_an_operator():
    A = jsp.from_dense(np.array([[0.0, 2.0], [3.0, 0.0]], np.float32))

    def total(c):
        mul = functools.partial(lambda a, b, c: a * b * c, c=c)
        y = jsp.mxv(A, jnp.ones(2), jsp.semiring(jsp.monoids.plus, mul))
        return y.sum() + jsp.apply(A, functools.partial(jnp.multiply, c)).data.sum()

    assert jax.jit(total)(3.0) == total(3.0) == 30
    assert jax.grad(total)(3.0) == jax.jit(jax.grad(total))(3.0) == 10
    assert jax.vmap(total)(jnp.array([1.0, 2.0])).tolist() == [10, 20]
