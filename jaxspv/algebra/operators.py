"""Unary and binary operators: named scalar functions, with parameters that are pytree leaves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core.pytree import Algebraic, named, pytree_dataclass, static
from ..shapes import ArrayLike, Int, Shaped
from .functions import OnNumbers, check_function, lifted, shape_of, traceable

Position = Literal["firsti", "firstj", "secondi", "secondj"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class _Operator(Algebraic):
    """The base of operators: a function, its name, and parameters that it takes last."""

    fn: Callable[..., Any] = static()
    name: str = static(default="user")
    params: tuple[Any, ...] = ()

    def __post_init__(self):
        """Sees to it that the function can be traced anywhere."""
        fn, captured = lifted(traceable(self.fn))
        object.__setattr__(self, "fn", fn)
        object.__setattr__(self, "params", (*self.params, *captured))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


@pytree_dataclass
class UnaryOp(_Operator):
    """`z = fn(x, *params)`, element by element; `fn` is static, `params` are leaves.

    >>> import jax.numpy as jnp
    >>> scale = UnaryOp(lambda x, a: a * x, "scale", params=(jnp.float32(2.0),))
    >>> float(scale(3.0))
    6.0
    """

    def __call__(self, x: Any) -> Array:
        return self.fn(x, *self.params)


@pytree_dataclass
class BinaryOp(_Operator):
    """`z = fn(x, y, *params)`, element by element; `fn` is static, `params` are leaves.

    Attributes:
        fn: any JAX-traceable element-wise function of two arrays of one shape.
        name: shown in messages.
        params: pytree leaves (a temperature, say), passed after the operands.
        overflow: `overflow(x, y)` is true where the result does not fit its dtype and was clamped;
            None where nothing is ever clamped.
        position: for the positional operators of GraphBLAS, the index that is the result:
            for `c[i, j] += a[i, k] * b[k, j]`, `firsti` gives i, `firstj` and `secondi` give k,
            `secondj` gives j. `fn` is then not called.
        index_dtype: of positional results, "int32" or "int64"; operations on operands with int64
            indices set it.

    >>> import jax.numpy as jnp
    >>> hypot = BinaryOp(jnp.hypot, "hypot")
    >>> hypot, float(hypot(3.0, 4.0))
    (BinaryOp(hypot), 5.0)
    """

    overflow: Callable[..., Any] | None = static(default=None)
    position: Position | None = static(default=None)
    index_dtype: str = static(default="int32")

    def __call__(self, x: Any, y: Any) -> Array:
        if self.position is not None:
            raise TypeError(f"`{self.name}` is positional: it needs indices, not values.")
        return self.fn(x, y, *self.params)

    def at(
        self,
        x: Shaped[ArrayLike, "*terms"],
        y: Shaped[ArrayLike, "*terms"],
        i: Int[ArrayLike, "*terms"],
        k: Int[ArrayLike, "*terms"],
        j: Int[ArrayLike, "*terms"],
    ) -> Shaped[Array, "*terms"]:
        """The product of `a[i, k] = x` and `b[k, j] = y`, positional operators included."""
        if self.position is None:
            return self(x, y)
        index = {"firsti": i, "firstj": k, "secondi": k, "secondj": j}[self.position]
        return jnp.broadcast_to(
            jnp.asarray(index, self.index_dtype), jnp.broadcast_shapes(jnp.shape(x), jnp.shape(y))
        )


@pytree_dataclass
class IndexUnaryOp(_Operator):
    """`z = fn(x, i, j, thunk, *params)` of an entry's value, row and column (0 for vectors).

    >>> import jax.numpy as jnp
    >>> near = IndexUnaryOp(lambda x, i, j, width: abs(i - j) <= width, "near")
    >>> bool(near(jnp.float32(2.0), 3, 4, 1))
    True
    """

    def __call__(self, x: Any, i: Any, j: Any, thunk: Any = 0) -> Array:
        return self.fn(x, i, j, thunk, *self.params)


def element_by_element(op: BinaryOp, name: str) -> BinaryOp:
    """`op`, if it gives one number for two; mapped over arrays where it does not take these.

    A constant, and a function with a `lax.cond`, so serve as well.

    Raises:
        TypeError: it joins tuples, vectors or matrices, or gives them.
    """
    if op.position is not None or op.fn in _BUILT_IN:
        return op
    reason, on_arrays = "", False
    for dtype in (np.float32, np.int32, np.bool_, np.complex64):
        number, array = (jax.ShapeDtypeStruct(shape, dtype) for shape in ((), (5, 3)))
        on_arrays |= shape_of(op, array) == array.shape
        found = shape_of(op, number)
        if isinstance(found, str):  # it does not take this dtype
            reason = reason or f"it raises {found}"
        elif found != ():
            reason = f"for two numbers it makes {found}"
            break
        elif on_arrays:
            return op
        else:
            return dataclasses.replace(op, fn=OnNumbers(op.fn))
    else:
        if on_arrays:
            return op
    raise TypeError(
        f"`{name}` must work element by element, on one number of each operand (for tuples or "
        f"vectors give a monoid whose identity is one); got {op!r}: {reason}."
    )


def as_binary(op: Any, name: str = "op") -> BinaryOp:
    """`op` itself, that of a monoid, the operator of a name, or a function of two arrays as one.

    Raises:
        TypeError: it takes one operand, or is no operator at all.
        ValueError: no operator has that name.
    """
    op = getattr(op, "op", op)  # of a Monoid
    if isinstance(op, BinaryOp):
        return op
    if isinstance(op, str):
        known = {o.name: o for o in globals().values() if isinstance(o, BinaryOp)}
        if op not in known:
            raise ValueError(f"`{name}` must be one of {sorted(known)}; got {op!r}.")
        return known[op]
    if isinstance(op, (UnaryOp, IndexUnaryOp)):
        raise TypeError(f"`{name}` must be an operator of two operands; got {op!r}.")
    if not callable(op):
        raise TypeError(f"`{name}` must be a BinaryOp or a function of two arrays; got {op!r}.")
    check_function(name, op, 2, "two arrays")
    return BinaryOp(op, getattr(op, "__name__", "user"))


def _extend(top: bool) -> BinaryOp:
    """Addition of path lengths; for integers the largest (or smallest) value is infinity, which
    absorbs, and finite sums are clamped. Infinity is that of the common dtype: operands of a
    narrower integer dtype have none."""

    def summed(x, y, dtype):
        """x + y as it wraps, infinity, where the sum is that, too large and too small."""
        x, y = jnp.asarray(x, dtype), jnp.asarray(y, dtype)
        total, info = x + y, jnp.iinfo(dtype)
        infinity = jnp.asarray(info.max if top else info.min, dtype)
        absorbed = (x == infinity) | (y == infinity)
        return total, infinity, absorbed, (y > 0) & (total < x), (y < 0) & (total > x)

    def add(x, y):
        dtype = jnp.result_type(x, y)
        if not top and dtype.kind in "bu":
            raise TypeError(f"max_plus has no -infinity in {dtype}: use a signed or float dtype.")
        if not jnp.issubdtype(dtype, jnp.integer):
            return jnp.add(x, y)
        total, infinity, absorbed, above, below = summed(x, y, dtype)
        high, low = (jnp.asarray(v, dtype) for v in (jnp.iinfo(dtype).max, jnp.iinfo(dtype).min))
        return jnp.where(absorbed, infinity, jnp.where(above, high, jnp.where(below, low, total)))

    def overflow(x, y):
        """Where the sum of two finite lengths is no finite length."""
        dtype = jnp.result_type(x, y)
        if not jnp.issubdtype(dtype, jnp.integer):
            return jnp.zeros(jnp.broadcast_shapes(jnp.shape(x), jnp.shape(y)), bool)
        total, infinity, absorbed, above, below = summed(x, y, dtype)
        return (above | below | (total == infinity)) & ~absorbed

    return BinaryOp(add, "min_extend" if top else "max_extend", overflow=overflow)


def _one_like(x, y):
    return jnp.ones(jnp.broadcast_shapes(jnp.shape(x), jnp.shape(y)), jnp.result_type(x, y))


def _first(x, y):
    return jnp.broadcast_to(x, jnp.broadcast_shapes(jnp.shape(x), jnp.shape(y)))


def _second(x, y):
    return jnp.broadcast_to(y, jnp.broadcast_shapes(jnp.shape(x), jnp.shape(y)))


def _logaddexp(x, y):
    """`log(exp x + exp y)`, whose derivative at (-inf, -inf) is 0 and not NaN."""
    nothing = (x == -jnp.inf) & (y == -jnp.inf)
    total = jnp.logaddexp(*(jnp.where(nothing, jnp.zeros_like(v), v) for v in (x, y)))
    return jnp.where(nothing, jnp.full_like(total, -jnp.inf), total)


def _reversed(fn):
    return lambda x, y: fn(y, x)


def _positional(*_):
    raise TypeError("positional operators are evaluated by `BinaryOp.at`.")


# GraphBLAS C API 2.1, sections 3.5.1 and 3.5.2, and extensions under python-graphblas' names.
plus = BinaryOp(jnp.add, "plus")
minus = BinaryOp(jnp.subtract, "minus")
rminus = BinaryOp(_reversed(jnp.subtract), "rminus")
times = BinaryOp(jnp.multiply, "times")
truediv = BinaryOp(jnp.true_divide, "truediv")
rtruediv = BinaryOp(_reversed(jnp.true_divide), "rtruediv")
floordiv = BinaryOp(jnp.floor_divide, "floordiv")
pow_ = BinaryOp(jnp.power, "pow")
minimum = BinaryOp(jnp.minimum, "min")
maximum = BinaryOp(jnp.maximum, "max")
first = BinaryOp(_first, "first")
second = BinaryOp(_second, "second")
pair = BinaryOp(_one_like, "pair")
any_ = BinaryOp(_first, "any")
lor = BinaryOp(jnp.logical_or, "lor")
land = BinaryOp(jnp.logical_and, "land")
lxor = BinaryOp(jnp.logical_xor, "lxor")
lxnor = BinaryOp(lambda x, y: ~jnp.logical_xor(x, y), "lxnor")
eq = BinaryOp(jnp.equal, "eq")
ne = BinaryOp(jnp.not_equal, "ne")
lt = BinaryOp(jnp.less, "lt")
le = BinaryOp(jnp.less_equal, "le")
gt = BinaryOp(jnp.greater, "gt")
ge = BinaryOp(jnp.greater_equal, "ge")
band = BinaryOp(jnp.bitwise_and, "band")
bor = BinaryOp(jnp.bitwise_or, "bor")
bxor = BinaryOp(jnp.bitwise_xor, "bxor")
bxnor = BinaryOp(lambda x, y: ~jnp.bitwise_xor(x, y), "bxnor")
atan2 = BinaryOp(jnp.arctan2, "atan2")
hypot = BinaryOp(jnp.hypot, "hypot")
fmod = BinaryOp(jnp.fmod, "fmod")
remainder = BinaryOp(jnp.remainder, "remainder")
copysign = BinaryOp(jnp.copysign, "copysign")
ldexp = BinaryOp(jnp.ldexp, "ldexp")
logaddexp = BinaryOp(_logaddexp, "logaddexp")
min_extend = _extend(top=True)
max_extend = _extend(top=False)
firsti = BinaryOp(_positional, "firsti", position="firsti")
firstj = BinaryOp(_positional, "firstj", position="firstj")
secondi = BinaryOp(_positional, "secondi", position="secondi")
secondj = BinaryOp(_positional, "secondj", position="secondj")

identity = UnaryOp(jnp.asarray, "identity")
ainv = UnaryOp(jnp.negative, "ainv")
minv = UnaryOp(jnp.reciprocal, "minv")
lnot = UnaryOp(jnp.logical_not, "lnot")
bnot = UnaryOp(jnp.bitwise_not, "bnot")
absolute = UnaryOp(jnp.abs, "abs")
one = UnaryOp(jnp.ones_like, "one")
signum = UnaryOp(jnp.sign, "signum")
sqrt = UnaryOp(jnp.sqrt, "sqrt")
cbrt = UnaryOp(jnp.cbrt, "cbrt")
exp = UnaryOp(jnp.exp, "exp")
exp2 = UnaryOp(jnp.exp2, "exp2")
expm1 = UnaryOp(jnp.expm1, "expm1")
log = UnaryOp(jnp.log, "log")
log2 = UnaryOp(jnp.log2, "log2")
log10 = UnaryOp(jnp.log10, "log10")
log1p = UnaryOp(jnp.log1p, "log1p")
sin = UnaryOp(jnp.sin, "sin")
cos = UnaryOp(jnp.cos, "cos")
tan = UnaryOp(jnp.tan, "tan")
asin = UnaryOp(jnp.arcsin, "asin")
acos = UnaryOp(jnp.arccos, "acos")
atan = UnaryOp(jnp.arctan, "atan")
sinh = UnaryOp(jnp.sinh, "sinh")
cosh = UnaryOp(jnp.cosh, "cosh")
tanh = UnaryOp(jnp.tanh, "tanh")
erf = UnaryOp(lambda x: jax.scipy.special.erf(x), "erf")  # imported when it runs
lgamma = UnaryOp(lambda x: jax.scipy.special.gammaln(x), "lgamma")
ceil = UnaryOp(jnp.ceil, "ceil")
floor = UnaryOp(jnp.floor, "floor")
trunc = UnaryOp(jnp.trunc, "trunc")
round_ = UnaryOp(jnp.round, "round")
isinf = UnaryOp(jnp.isinf, "isinf")
isnan = UnaryOp(jnp.isnan, "isnan")
isfinite = UnaryOp(jnp.isfinite, "isfinite")

# GraphBLAS C API 2.1, section 3.5.3.
rowindex = IndexUnaryOp(lambda x, i, j, s: i + s, "rowindex")
colindex = IndexUnaryOp(lambda x, i, j, s: j + s, "colindex")
diagindex = IndexUnaryOp(lambda x, i, j, s: j - i + s, "diagindex")
tril = IndexUnaryOp(lambda x, i, j, s: j - i <= s, "tril")
triu = IndexUnaryOp(lambda x, i, j, s: j - i >= s, "triu")
diag = IndexUnaryOp(lambda x, i, j, s: j - i == s, "diag")
offdiag = IndexUnaryOp(lambda x, i, j, s: j - i != s, "offdiag")
rowle = IndexUnaryOp(lambda x, i, j, s: i <= s, "rowle")
rowgt = IndexUnaryOp(lambda x, i, j, s: i > s, "rowgt")
colle = IndexUnaryOp(lambda x, i, j, s: j <= s, "colle")
colgt = IndexUnaryOp(lambda x, i, j, s: j > s, "colgt")
valueeq = IndexUnaryOp(lambda x, i, j, s: x == s, "valueeq")
valuene = IndexUnaryOp(lambda x, i, j, s: x != s, "valuene")
valuelt = IndexUnaryOp(lambda x, i, j, s: x < s, "valuelt")
valuele = IndexUnaryOp(lambda x, i, j, s: x <= s, "valuele")
valuegt = IndexUnaryOp(lambda x, i, j, s: x > s, "valuegt")
valuege = IndexUnaryOp(lambda x, i, j, s: x >= s, "valuege")

_BUILT_IN = {v.fn for v in list(globals().values()) if isinstance(v, BinaryOp)}
named(__name__, globals())
INDEX_UNARY = tuple(v for v in list(globals().values()) if isinstance(v, IndexUnaryOp))
UNARY = tuple(v for v in list(globals().values()) if isinstance(v, UnaryOp))
BINARY = tuple(v for v in list(globals().values()) if isinstance(v, BinaryOp))
# Names of python-graphblas; nothing above calls Python's functions of these names.
abs, round, oneb = absolute, round_, pair
any, max, min, pow = any_, maximum, minimum, pow_
__all__ = [
    "BINARY",
    "INDEX_UNARY",
    "UNARY",
    "BinaryOp",
    "IndexUnaryOp",
    "Position",
    "UnaryOp",
    "as_binary",
]
