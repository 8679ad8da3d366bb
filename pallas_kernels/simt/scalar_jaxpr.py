"""Scalar functions of JAX as code of a kernel, primitive by primitive."""

import dataclasses
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
    "abs": lambda k, x: k.maximum(x, -x),
    "square": lambda k, x: x * x,
    "sqrt": lambda k, x: k.sqrt(x),
    "is_finite": lambda k, x: k.maximum(x, -x) < float("inf"),
    "clamp": lambda k, low, x, high: k.minimum(k.maximum(x, low), high),
    "select_n": lambda k, which, x, y: k.where(which, y, x),
    "copy": lambda k, x: x,
    "stop_gradient": lambda k, x: x,
    "broadcast_in_dim": lambda k, x: x,
}
_OTHER = {*_SIMPLE, "convert_element_type", "integer_pow"}


def trace(fn, *dtypes):
    """The closed jaxpr of a function of scalars."""
    return jax.make_jaxpr(fn)(*(jax.ShapeDtypeStruct((), d) for d in dtypes))


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
    """Why a kernel cannot compute `fn` of scalars of these dtypes bit for bit, or None."""
    for dtype in dtypes:
        if jnp.dtype(dtype).name not in KINDS:
            return f"kernels compute in float32, int32 and bool, not {jnp.dtype(dtype).name}"
    closed = trace(fn, *dtypes)
    if len(closed.jaxpr.outvars) != 1:
        return "it has several results"
    return refuse_traced(closed)


def refuse_traced(closed):
    """Why a kernel cannot compute a traced function bit for bit, or None."""
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
    for eqn in closed.jaxpr.eqns:
        if eqn.outvars[0] not in known:
            results = _apply(k, eqn, [_read(k, known, v) for v in eqn.invars])
            known.update(zip(eqn.outvars, results, strict=True))
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
    for eqn in closed.jaxpr.eqns:
        if all(isinstance(v, Literal) or v in known for v in eqn.invars):
            results = _apply(k, eqn, [_read(k, known, v) for v in eqn.invars])
            known.update(zip(eqn.outvars, results, strict=True))
    return known


def _constants(k, closed):
    """What a function captures, as values of a kernel `k`."""
    arrays = map(np.asarray, closed.consts)
    consts = [k.const(x.item(), KINDS[x.dtype.name]) for x in arrays]
    return dict(zip(closed.jaxpr.constvars, consts, strict=True))


def _read(k, known, v):
    return literal(k, v) if isinstance(v, Literal) else known[v]


def literal(k, v):
    """A literal of a jaxpr as a value of a kernel `k`."""
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
    return _SIMPLE[name](k, *operands)


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
