"""A user's element-wise function as a jaxpr: hashable by its code, applicable at any size.

Like `pallas_kernels.simt.scalar_jaxpr` an interpreter of jaxprs, but for another target: JAX
operations on slices of any length here, instructions of one GPU thread there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from ...._core.loops import alike, axes_of

# Primitives that act on each element alone; `broadcast_in_dim` only from scalars.
ALONE = frozenset(
    "abs acos acosh add and asin asinh atan atan2 atanh bitcast_convert_type cbrt ceil clamp "
    "convert_element_type copy cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1 "
    "floor ge gt integer_pow is_finite le lgamma log log1p logistic lt max min mul ne neg "
    "nextafter not or population_count pow real rem round rsqrt select_n shift_left "
    "shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient sub tan "
    "tanh xor".split()
)
_NESTED = frozenset("jit pjit closed_call custom_jvp_call custom_vjp_call remat checkpoint".split())
MOST_NAMED = 60  # the most characters that the operations' names may take in an error


class Elementwise:
    """A function of vectors and scalars, without the arrays it captures.

    Two are equal where they and their derivatives do the same operations and call the same
    functions of the host, so that a lambda written anew in every call does not cause a new
    compilation.
    """

    def __init__(self, jaxpr: Any):
        self.jaxpr, self._pulled = jaxpr, _pulled(jaxpr)
        pulled: Any = self._pulled
        if hasattr(pulled, "jaxpr"):
            pulled = _key(pulled.jaxpr), tuple(map(id, pulled.consts))
        self._key = _key(jaxpr), pulled

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Elementwise) and self._key == other._key

    def __repr__(self) -> str:
        """Its operations, as `Elementwise(add min)`."""
        names = " ".join(eqn.primitive.name for eqn in self.jaxpr.eqns)
        return f"Elementwise({names if len(names) <= MOST_NAMED else names[:MOST_NAMED] + '...'})"

    def __call__(self, captured: Sequence[Any], *args: Any) -> Any:
        """The result at the shape it was traced for."""
        leaves = jax.tree.leaves(args)
        if axes_of([*captured, *leaves]):
            return _evaluate(self.jaxpr, captured, leaves, as_traced=True)
        (out,) = jaxpr_as_fun(ClosedJaxpr(self.jaxpr, tuple(captured)))(*leaves)
        return out

    @property
    def result(self) -> Any:
        """Shape and dtype of the result."""
        return self.jaxpr.outvars[0].aval

    def refuses(self) -> str | None:
        """The primitive that is not element-wise, or None."""
        return refuses(self.jaxpr)

    def at(self, captured: Sequence[Any], *args: Any) -> Any:
        """The result for some of the elements: arguments of one shape, or scalars. It is not to be
        differentiated: derivatives that functions define are for the shape of the trace."""
        return _evaluate(self.jaxpr, captured, jax.tree.leaves(args))


def trace(fn: Callable[..., Any], *args: Any) -> tuple[Elementwise, tuple[Any, ...]]:
    """`fn` traced on arguments like these, and the arrays that it captures.

    Of arguments that vary inside of a `shard_map` it takes the shapes: forms run without axes.
    Raises NotImplementedError: it captures an array that varies.
    """

    def bare(x):
        aval = jax.typeof(x)
        return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)

    closed = jax.make_jaxpr(fn)(*jax.tree.map(bare, args))
    if axes := axes_of(closed.consts):
        raise NotImplementedError(
            f"a function captures an array that varies along the mesh axes {sorted(axes)}: pass it "
            "as an operand, or use `check_vma=False`."
        )
    return Elementwise(closed.jaxpr), tuple(jnp.asarray(c) for c in closed.consts)


def inner_of(eqn: Any) -> tuple[Any, tuple[Any, ...]]:
    """The jaxpr of an equation that calls a function, and its constants."""
    names = ("jaxpr", "call_jaxpr", "fun_jaxpr")
    inner = next(eqn.params[name] for name in names if name in eqn.params)
    return (inner.jaxpr, tuple(inner.consts)) if hasattr(inner, "jaxpr") else (inner, ())


def refuses(jaxpr: Any) -> str | None:
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in _NESTED:
            reason = refuses(inner_of(eqn)[0])
        elif name == "broadcast_in_dim":
            reason = None if eqn.invars[0].aval.shape == () else name
        else:
            reason = None if name in ALONE else name
        if any(isinstance(v, Literal) and np.ndim(v.val) for v in eqn.invars):
            reason = reason or "an array constant"
        if reason is not None:
            return reason
    return None


def _evaluate(
    jaxpr: Any, captured: Sequence[Any], args: Sequence[Any], *, as_traced: bool = False
) -> Any:
    """Evaluates equation by equation; each gets operands that vary alike.

    Args:
        as_traced: at the shapes of the trace, without derivatives that functions define; else at
            any shape.

    Raises:
        NotImplementedError: `as_traced`, and a function defines its derivative.
    """
    known = dict(zip(jaxpr.constvars, captured, strict=True))
    known |= dict(zip(jaxpr.invars, args, strict=True))

    def read(v):
        if not isinstance(v, Literal):
            return known[v]
        aval: Any = v.aval
        return jnp.asarray(v.val, aval.dtype)

    for eqn in jaxpr.eqns:
        values = [read(v) for v in eqn.invars]
        name = eqn.primitive.name
        if name in _NESTED and not (as_traced and name.startswith("custom")):
            inner, consts = inner_of(eqn)
            out = _evaluate(inner, consts, values, as_traced=as_traced)
        elif name in _NESTED:
            raise NotImplementedError(
                "the derivative through a function with one of its own (`custom_jvp`, "
                "`custom_vjp`) is not known for values that vary: use `check_vma=False`."
            )
        elif as_traced:
            out = eqn.primitive.bind(*alike(values), **eqn.params)
            if eqn.primitive.multiple_results:
                known |= dict(zip(eqn.outvars, out, strict=True))
                continue
        elif eqn.primitive.name == "broadcast_in_dim":
            out = values[0]
        else:
            out = eqn.primitive.bind(*alike(jnp.broadcast_arrays(*values)), **eqn.params)
        known[eqn.outvars[0]] = out
    return read(jaxpr.outvars[0])


def _has_rules(jaxpr: Any) -> bool:
    """Whether a function in it defines its derivative."""

    def inside(eqn):
        parts = jax.tree.leaves([*eqn.params.values()], is_leaf=lambda v: hasattr(v, "eqns"))
        return any(_has_rules(part) for part in parts if hasattr(part, "eqns"))

    return any(eqn.primitive.name.startswith("custom") or inside(eqn) for eqn in jaxpr.eqns)


def _pulled(jaxpr: Any) -> Any:
    """How cotangents pass a function in which one defines its derivative, a closed jaxpr; None
    without such; what equals nothing else where it cannot be traced."""
    whole = (*jaxpr.constvars, *jaxpr.invars)
    live = [jnp.issubdtype(v.aval.dtype, jnp.inexact) for v in whole]
    result = jaxpr.outvars[0].aval
    if not (_has_rules(jaxpr) and any(live) and jnp.issubdtype(result.dtype, jnp.inexact)):
        return None

    def pull(cotangent, *values):
        def fn(*parts):
            given = iter(parts)
            full = [next(given) if on else v for v, on in zip(values, live, strict=True)]
            consts, args = full[: len(jaxpr.constvars)], full[len(jaxpr.constvars) :]
            return jaxpr_as_fun(ClosedJaxpr(jaxpr, tuple(consts)))(*args)[0]

        parts = [v for v, on in zip(values, live, strict=True) if on]
        return jax.vjp(fn, *parts)[1](cotangent)

    types = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in (result, *(v.aval for v in whole))]
    try:
        return jax.make_jaxpr(pull)(*types)
    except Exception:  # a rule of the user's: it speaks when it is used
        return object()


def _key(jaxpr: Any) -> Any:
    """A hashable description of a jaxpr: variables by number, parameters by their text."""
    number: dict[Any, int] = {}

    def name(v):
        if isinstance(v, Literal):
            value = np.asarray(v.val)
            return "literal", str(v.aval), value.tobytes()
        return number.setdefault(v, len(number)), str(v.aval)

    def params(eqn):
        for key, value in sorted(eqn.params.items()):
            if key in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
                inner, consts = inner_of(eqn)
                yield key, _key(inner), tuple(id(c) for c in consts)
            elif key == "callback":
                yield key, value
            elif not callable(value):  # derivative rules: see `_pulled`
                yield key, str(value)

    head = tuple(name(v) for v in (*jaxpr.constvars, *jaxpr.invars))

    def described(eqn):
        ends = tuple(map(name, eqn.invars)), tuple(map(name, eqn.outvars))
        return eqn.primitive.name, *ends, tuple(params(eqn))

    return head, tuple(map(described, jaxpr.eqns)), tuple(name(v) for v in jaxpr.outvars)
