"""Scalar functions of JAX as code of a kernel, primitive by primitive."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Literal

KINDS = {"float32": "f32", "int32": "i32", "bool": "i1"}
_WORDS = KINDS | {"bool": "i32"}
_SCALARS = {"float32[]", "int32[]", "bool[]"}
_BINARY = {"add", "sub", "mul", "div", "max", "min", "and", "or", "xor"}
_FLOAT = {"div"}  # the kernels' integer division is unsigned
_COMPARE = {"eq", "ne", "lt", "le", "gt", "ge"}
NESTED = {"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call"}
_SIMPLE = {  # name -> code on the operands
    "neg": lambda k, x: -x,
    "not": lambda k, x: ~x,
    "add_any": lambda k, x, y: x + y,
    "abs": lambda k, x: (
        k.bits(k.bits(x, "i32") & 0x7FFFFFFF, "f32") if x.kind == "f32" else k.maximum(x, -x)
    ),
    "square": lambda k, x: x * x,
    "one_minus_square": lambda k, x: 1.0 - x * x,
    "sqrt": lambda k, x: k.sqrt(x),
    "is_finite": lambda k, x: k.maximum(x, -x) < float("inf"),
    "clamp": lambda k, low, x, high: k.minimum(k.maximum(x, low), high),
    "select_n": lambda k, which, x, y: k.where(which, y, x),
    "copy": lambda k, x: x,
    "reshard": lambda k, x: x,  # JAX 0.12 moves constants to the mesh that it lowers for
    "stop_gradient": lambda k, x: x,
    "broadcast_in_dim": lambda k, x: x,
}
# exp and log split their argument as k ln 2 + r; ln 2 is a sum whose first part times k is exact.
_LOG2E, _LN2 = math.log2(math.e), (0.693145751953125, 1.428606765330187e-06)
_ONE, _TWO_THIRDS, _EXPONENT = 0x3F800000, 0x3F2AAAAB, -(1 << 23)  # bits of float32
_ROUND, _ROUND_BITS = 1.5 * 2**23, 0x4B400000  # added and subtracted, it leaves an integer
# (log(1 + f) - f + f^2 / 2) / f^3 for |f| <= 1/3, and (expm1(r) - r) / r^2 for |r| <= ln(2) / 2:
# least largest relative errors of the functions, 2^-24.6 and 2^-26.
_OF_LOG = (0.33333266, -0.25004238, 0.20007919, -0.16472326, 0.1404232, -0.15122186, 0.13820181)
_OF_EXPM1 = (0.49999998, 0.16666539, 0.04166722, 0.00836718, 0.00138824)


def _polynomial(x, coefficients):
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = x * total + c
    return total


def _split(k, x):
    """(n, r) with x = n log 2 + r, n an integer; |x| < 2^21."""
    near = x * _LOG2E + _ROUND
    n = near - _ROUND
    return k.bits(near, "i32") - _ROUND_BITS, (x - n * _LN2[0]) - n * _LN2[1]


def _two_to(k, n):
    return k.bits((n << 23) + _ONE, "f32")


def _exp(k, x):
    n, r = _split(k, k.minimum(k.maximum(x, -104.0), 89.0))
    half = n >> 1
    return k.exp2(r * _LOG2E) * _two_to(k, half) * _two_to(k, n - half)


def _expm1(k, x):
    n, r = _split(k, k.minimum(k.maximum(x, -18.0), 89.0))
    scale = _two_to(k, n - 1)
    y = r + r * r * _polynomial(r, _OF_EXPM1)
    y = (scale * y + (scale - 0.5)) * 2.0
    return k.where(x == 0, x, y)


def _log_of(k, u, rest=None, exponent=None):
    """log(u + rest) + exponent log 2, where rest is less than the last bit of u."""
    bits = k.bits(u, "i32")
    power = (bits - _TWO_THIRDS) & _EXPONENT
    n, f = k.cast(power >> 23, "f32"), k.bits(bits - power, "f32") - 1.0
    n = n if exponent is None else n + exponent
    f = f if rest is None else f + rest * k.bits(k.maximum(_ONE - power, 0), "f32")
    square = f * f
    y = f * square * _polynomial(f, _OF_LOG) - square * 0.5
    y = ((n * _LN2[1] + y) + f) + n * _LN2[0]
    below = k.where(u == 0, k.const(-math.inf, "f32"), math.nan)
    return k.where(u > 0, k.where(u < math.inf, y, u), below)


def _log(k, x):
    small = x < 2.0**-126
    exponent = k.where(small, k.const(-23.0, "f32"), 0.0)
    return _log_of(k, k.where(small, x * 2.0**23, x), exponent=exponent)


def _log1p(k, x):
    u = x + 1.0
    y = _log_of(k, u, rest=k.where(u < 2.0**25, x - (u - 1.0), 0.0))
    return k.where(x == 0, x, y)


def _tanh(k, x):
    e = _expm1(k, k.minimum(k.maximum(x, -10.0), 10.0) * 2.0)
    return k.operate("div", e, e + 2.0)


def _inverse(k, x):
    return k.operate("div", 1.0, x)


_NEARLY = {  # right to some 2^-21
    "exp": _exp,
    "exp2": lambda k, x: k.exp2(x),
    "expm1": _expm1,
    "log": _log,
    "log1p": _log1p,
    "tanh": _tanh,
    "logistic": lambda k, x: _inverse(k, _exp(k, -x) + 1.0),
    "rsqrt": lambda k, x: _inverse(k, k.sqrt(x)),
}
_OTHER = {*_SIMPLE, *_NEARLY, "convert_element_type", "integer_pow"}


def trace(fn, *dtypes):
    """The closed jaxpr of a function of scalars. Literals of Python, under x64 of 64 bits until
    they are converted, have 32 where the result is the same."""
    scalars = [jax.ShapeDtypeStruct((), d) for d in dtypes]
    closed = jax.make_jaxpr(fn)(*scalars)
    ends = closed.jaxpr.constvars + closed.jaxpr.outvars
    narrow = all(map(_narrows, closed.eqns)) and not any(map(_is_wide, ends))
    if narrow and jnp.result_type(float) == np.float64:
        with jax.enable_x64(False):
            return jax.make_jaxpr(fn)(*scalars)
    return closed


def _is_wide(v):
    return v.aval.dtype.itemsize == 8


def _narrows(eqn):
    """Whether all that an equation does with 64 bits is to choose among literals or to convert them
    to 32: a number is rounded once, whether before it is chosen or after."""
    name, values = eqn.primitive.name, (*eqn.invars, *eqn.outvars)
    literals: Any = [v for v in eqn.invars if isinstance(v, Literal)]
    if any(v.aval.dtype.kind in "iu" and abs(int(v.val)) >= 2**31 for v in literals):
        return False
    if name in NESTED:
        return all(map(_narrows, inner(eqn).jaxpr.eqns))
    if name == "convert_element_type" and _is_wide(eqn.invars[0]):
        return eqn.outvars[0].aval.dtype.kind == "f" or eqn.invars[0].aval.dtype.kind == "i"
    return name == "select_n" or not any(map(_is_wide, values))


@dataclasses.dataclass(frozen=True)
class ScalarSemiring:
    """The algebra of a product in a kernel: `combine` of `mul(a, x)`, closed jaxprs of scalars.

    combine(term, term) -> term is associative and commutative, with its `identity`.
    """

    mul: ClosedJaxpr
    combine: ClosedJaxpr
    identity: Any

    @classmethod
    def of(cls, mul, combine, identity, a, x=None, term=None):
        """The semiring of Python functions: mul of dtypes (a, x), combine of `term`; None: a."""
        return cls(trace(mul, a, x or a), trace(combine, term or a, term or a), identity)

    @property
    def dtype(self):
        """The dtype of terms."""
        return self.combine.out_avals[0].dtype

    def neutral(self, k):
        """The identity as a value of a kernel `k`."""
        return k.const(self.identity, KINDS[self.dtype.name])


@dataclasses.dataclass(frozen=True)
class TupleSemiring:
    """A `ScalarSemiring` whose values are tuples: closed jaxprs that take them leaf by leaf.

    mul(*a, *x) -> term; combine(*term, *term) -> term is associative, with its `identity`.
    """

    mul: ClosedJaxpr
    combine: ClosedJaxpr
    identity: tuple[Any, ...]

    @property
    def dtypes(self):
        """The dtypes of the leaves of terms."""
        return tuple(v.dtype for v in self.combine.out_avals)

    def neutral(self, k):
        """The identity as words of a kernel `k`."""
        pairs = zip(self.identity, self.dtypes, strict=True)
        return tuple(k.const(i, _WORDS[d.name]) for i, d in pairs)


def refuse(fn, *dtypes):
    """Why a kernel cannot compute `fn` of scalars of these dtypes, or None.

    What it computes is right bit for bit, but for the functions of `_NEARLY`.
    """
    for dtype in dtypes:
        if jnp.dtype(dtype).name not in KINDS:
            return f"kernels compute in float32, int32 and bool, not {jnp.dtype(dtype).name}"
    closed = trace(fn, *dtypes)
    if len(closed.jaxpr.outvars) != 1:
        return "it has several results"
    return refuse_traced(closed)


def refuse_traced(closed):
    """Why a kernel cannot compute a traced function, or None; see `refuse`."""
    if not all(map(_is_number, closed.consts)):
        return "it captures arrays"
    for eqn in closed.jaxpr.eqns:
        name = eqn.primitive.name
        reason = refuse_traced(inner(eqn)) if name in NESTED else lacks(eqn)
        if reason is not None:
            return reason
        for v in (*eqn.invars, *eqn.outvars):
            if v.aval.str_short() not in _SCALARS:
                return f"`{name}` works on {v.aval.str_short()}"
    return None


def is_near(closed):
    """Whether a traced function has one that kernels compute nearly, in many instructions."""
    names = ((eqn.primitive.name, eqn) for eqn in closed.jaxpr.eqns)
    return any(n in _NEARLY or (n in NESTED and is_near(inner(eqn))) for n, eqn in names)


def _is_number(const):
    """Whether it is a known scalar: JAX makes some of constants while it folds them."""
    known = not isinstance(const, Tracer)
    return known and np.ndim(const) == 0 and np.asarray(const).dtype.name in KINDS


def lacks(eqn):
    """Why a kernel cannot do what an equation does to each element, or None."""
    name = eqn.primitive.name
    if name not in _BINARY | _COMPARE | _OTHER:
        return f"kernels have no `{name}`"
    if name == "integer_pow" and eqn.params["y"] < 1:
        return f"kernels have no `integer_pow` to {eqn.params['y']}"
    if name == "select_n" and eqn.invars[0].aval.dtype != np.bool_:
        return "kernels select by truth values alone"
    if name in _FLOAT and eqn.outvars[0].aval.dtype != np.float32:
        return f"kernels have `{name}` of float32 alone"
    return None


def inner(eqn):
    """The closed jaxpr of an equation of NESTED."""
    found = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr", eqn.params.get("fun_jaxpr")))
    return found if hasattr(found, "jaxpr") else ClosedJaxpr(found, ())


def evaluate(k, closed, *values, known=None):
    """The result of a traced function on values of a kernel `k`; known: by `hoist`."""
    return _results(k, closed, values, known or {})[0]


def evaluate_words(k, closed, *words):
    """All results of a traced function of words; truth values are words 0 and 1."""
    pairs = zip(words, closed.in_avals, strict=True)
    values = [w != 0 if aval.dtype == np.bool_ and w is not None else w for w, aval in pairs]
    found = zip(_results(k, closed, values, {}), closed.out_avals, strict=True)
    return tuple(k.cast(v, "i32") if aval.dtype == np.bool_ else v for v, aval in found)


def _results(k, closed, values, known):
    known = dict(zip(closed.jaxpr.invars, values, strict=True)) | _constants(k, closed) | known
    return results_of(k, closed, run(k, closed, known, _apply))


def run(k, closed, known, apply):
    """`known`, values by variable, with what follows from them; apply(k, equation, operands) gives
    the results of an equation."""
    for eqn in closed.jaxpr.eqns:
        ready = all(isinstance(v, Literal) or v in known for v in eqn.invars)
        if ready and eqn.outvars[0] not in known:
            results = apply(k, eqn, [_read(k, known, v) for v in eqn.invars])
            known.update(zip(eqn.outvars, results, strict=True))
    return known


def results_of(k, closed, known):
    """The values of what a function returns."""
    return [_read(k, known, v) for v in closed.jaxpr.outvars]


def uses(closed, position):
    """Whether the argument of a traced function at this position matters."""
    var = closed.jaxpr.invars[position]
    read = [v for eqn in closed.jaxpr.eqns for v in eqn.invars]
    return any(v is var for v in (*read, *closed.jaxpr.outvars))


def hoist(k, closed, *values):
    """Evaluates all that depends only on the values that are not None, ahead of a loop."""
    pairs = zip(closed.jaxpr.invars, values, strict=True)
    known = {var: value for var, value in pairs if value is not None} | _constants(k, closed)
    return run(k, closed, known, _apply)


def _constants(k, closed):
    """What a function captures, as values of a kernel `k`."""
    arrays = map(np.asarray, closed.consts)
    consts = [k.const(x.item(), KINDS[x.dtype.name]) for x in arrays]
    return dict(zip(closed.jaxpr.constvars, consts, strict=True))


def _read(k, known, v):
    """The value of a variable, or of a literal."""
    if not isinstance(v, Literal):
        return known[v]
    aval: Any = v.aval
    value = np.asarray(v.val, aval.dtype)
    return k.const(value.item(), KINDS[value.dtype.name])


def _apply(k, eqn, operands):
    """All results of an equation."""
    if eqn.primitive.name in NESTED:
        return _results(k, inner(eqn), operands, {})
    return [scalar(k, eqn, operands)]


def scalar(k, eqn, operands):
    """The result of an equation that acts on each element, of scalars."""
    name = eqn.primitive.name
    if name in _BINARY:
        return k.operate(name, *operands)
    if name in _COMPARE:
        return k.relate(name, *operands)
    if name == "integer_pow":
        return _power(operands[0], eqn.params["y"])
    if name == "convert_element_type":
        kind = KINDS[eqn.outvars[0].aval.dtype.name]
        if kind == "i1":
            return operands[0] != k.const(0, operands[0].kind)
        return k.cast(operands[0], kind)
    return (_NEARLY | _SIMPLE)[name](k, *operands)


def _power(x, exponent):
    """x to a positive power by squaring, the order of products that JAX takes."""
    result = None
    while True:
        if exponent & 1:
            result = x if result is None else result * x
        exponent >>= 1
        if not exponent:
            return result
        x = x * x
