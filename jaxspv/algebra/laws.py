"""Whether a user's monoid of numbers keeps its laws: tried on samples, without a program of XLA.

The operator is traced on two numbers, and NumPy computes what the trace shows. Many operators are
made for some numbers only, hypot for those that are not negative, noisy or for probabilities: so a
law is broken where it is on each of `DOMAINS`. An operator that NumPy does not follow, or that
gives NaN, is trusted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from .monoid import value_of
from .operators import BinaryOp

_random = np.random.default_rng(0)
_floats, _integers = _random.normal(0, 2, (3, 16)), _random.integers(-9, 10, (3, 16))
DOMAINS = (  # dtype, and triples of numbers; truth values where the identity is one
    (np.float32, _floats),
    (np.float32, np.abs(_floats)),
    (np.float32, _random.random((3, 16))),
    (np.int32, _integers),
    (np.int32, np.abs(_integers)),
    (np.int32, np.indices((3, 3, 3)).reshape(3, 27)),
    (np.bool_, np.indices((2, 2, 2)).reshape(3, 8)),
)
_SAME_NAME = "abs cbrt ceil cos exp exp2 expm1 floor log log1p sign sin sqrt square tan tanh"
_NUMPY: dict[str, Callable[..., Any]] = {name: getattr(np, name) for name in _SAME_NAME.split()}
_NUMPY |= {"add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply}
_NUMPY |= {"neg": np.negative, "max": np.maximum, "min": np.minimum, "pow": np.power}
_NUMPY |= {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal}
_NUMPY |= {"gt": np.greater, "ge": np.greater_equal, "is_finite": np.isfinite}
_NUMPY |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert}
_NUMPY |= {"rem": np.fmod, "atan2": np.arctan2, "logistic": lambda x: 1 / (1 + np.exp(-x))}
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "custom_jvp_call": "call_jaxpr"}
_OF_ONE_NUMBER = ("broadcast_in_dim", "copy", "reshape", "squeeze")


def broken_law(op: BinaryOp, identity: Any) -> str | None:
    """The first law of a monoid of numbers that does not hold, as a sentence; None: on one of the
    domains all hold."""
    return (_first_broken if jax.tree.leaves(op) else _cached)(op, identity)


def _first_broken(op: BinaryOp, identity: Any) -> str | None:
    broken, traced = None, {}
    for dtype, triples in DOMAINS if isinstance(identity, (bool, np.bool_)) else DOMAINS[:-1]:
        try:
            if dtype not in traced:
                number = jax.ShapeDtypeStruct((), dtype)
                traced[dtype] = jax.make_jaxpr(op)(number, number)
            with np.errstate(all="ignore"):
                one = value_of(identity, dtype)[()]
                found = _broken_on(traced[dtype], one, *triples.astype(dtype))
        except Exception:  # whatever a function of the user raises, or what NumPy does not follow
            continue
        if found is None:
            return None
        broken = broken or found
    return broken


_cached = functools.lru_cache(256)(_first_broken)


def _broken_on(traced: Any, e: Any, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> str | None:
    def op(a, b):
        (value,) = _computed(traced.jaxpr, traced.consts, np.broadcast_arrays(a, b))
        if value.dtype != x.dtype:
            raise TypeError(value.dtype)
        return np.broadcast_to(value, x.shape)

    for text, found, want in (("{e}, {x}", op(e, x), x), ("{x}, {e}", op(x, e), x)):
        for at in _differing(found, want):
            operands = text.format(e=e, x=x[at])
            return f"`identity` joined with a value is another value: op({operands}) is {found[at]}"
    left, right = op(op(x, y), z), op(x, op(y, z))
    for at in _differing(left, right):
        return (
            f"`op` is not associative: with (x, y, z) = ({x[at]}, {y[at]}, {z[at]}) "
            f"op(op(x, y), z) is {left[at]}, op(x, op(y, z)) is {right[at]}"
        )
    return None


def _differing(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.flatnonzero(~np.isclose(x, y, 1e-3, 1e-4) & (x == x) & (y == y))


def _computed(jaxpr: Any, consts: Any, operands: Any) -> list[np.ndarray]:
    """What a jaxpr of numbers gives for arrays of them; KeyError where NumPy does not follow."""
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *operands), strict=True))

    def read(v):
        return np.asarray(v.val, v.aval.dtype) if hasattr(v, "val") else values[v]

    for eqn in jaxpr.eqns:
        name, params, given = eqn.primitive.name, eqn.params, [read(v) for v in eqn.invars]
        kinds = [v.aval.dtype for v in eqn.outvars]
        if any(v.aval.shape for v in (*eqn.invars, *eqn.outvars)):
            raise KeyError(name)
        if name in _CALLS:
            inner = params[_CALLS[name]]
            found = _computed(inner.jaxpr, inner.consts, given)
        elif name == "cond":
            cases = [_computed(b.jaxpr, b.consts, given[1:]) for b in params["branches"]]
            case = np.clip(given[0], 0, len(cases) - 1)
            found = [np.choose(case, each) for each in zip(*cases, strict=True)]
        elif name == "select_n":
            found = [np.choose(given[0].astype(int), given[1:])]
        elif name == "div" and kinds[0].kind == "f":
            found = [given[0] / given[1]]
        elif name == "integer_pow":
            found = [given[0] ** params["y"]]
        elif name in _OF_ONE_NUMBER or name == "convert_element_type":
            found = given
        else:
            found = [_NUMPY[name](*given)]
        values |= zip(eqn.outvars, map(np.asarray, found, kinds), strict=True)
    return [np.asarray(read(v)) for v in jaxpr.outvars]
