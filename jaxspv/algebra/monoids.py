"""Monoids: `monoid`, which makes one of any function, and those that have names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._core.pytree import is_concrete, named
from .._core.tuples import Constant, commutes, differing_law, random_values
from ..shapes import Number
from . import operators
from .laws import broken_law
from .monoid import Monoid
from .operators import BinaryOp, as_binary, element_by_element

_ARRAYS = np.ndarray, Array


def monoid(
    op: BinaryOp | Callable[..., Any],
    identity: Any = None,
    terminal: Number | None = None,
    *,
    name: str | None = None,
    idempotent: bool = False,
    selective: bool = False,
    check: bool = True,
) -> Monoid:
    """A monoid of a `BinaryOp` or of any JAX-traceable function of two arrays.

    Well-known functions (`jnp.add`, `jnp.minimum`, `lax.max`, `jnp.logical_or`, ...) get the
    hardware's reduction; any other operator gets a segmented scan, slower and always right.

    Args:
        op: associative and commutative.
        identity: number, or function from dtype to number; `inf` is the largest value of an
            integer dtype. It may be left out where `op` is one of the well-known functions. Or a
            pytree of numbers and arrays, such as `(jnp.inf, -1)`: values are then such pytrees,
            `op` joins two of them and need not commute.
        terminal: a value that ends a reduction early, or None.
        name: shown in messages.
        idempotent: declares `op(x, x) == x`, which a monotone `fixpoint` asks for.
        selective: declares that the result is one of the operands (the shorter of two words, the
            point nearer to some place). A reduction is then differentiated through the first term
            that wins, in a gather, not through a scan of `op`. Implies `idempotent`.
        check: tries on random values whether `identity` fits and `op` is associative: of numbers
            without compilation, and it is enough that it is so for some of them (integers,
            probabilities, those that are not negative, ...). Of tuples also whether `op` commutes,
            which sums on a mesh ask for; without `check` they look when they come to it.

    Raises:
        TypeError: `op` is not callable, or not element by element; `identity` or `terminal` is no
            number.
        ValueError: `identity` is needed and missing; a law does not hold on samples.

    >>> import jax.numpy as jnp
    >>> monoid(jnp.maximum).identity_of(jnp.int8)
    array(-128, dtype=int8)
    """
    leaf = identity is None or jax.tree.structure(identity) == jax.tree.structure(0)
    if np.ndim(identity) if isinstance(identity, _ARRAYS) else not leaf:
        return _of_tuples(as_binary(op), identity, name, idempotent or selective, check)
    binary = element_by_element(as_binary(op), "op")
    identity, terminal = _number("identity", identity), _number("terminal", terminal)
    known = _KNOWN.get(binary.fn)
    if known is not None and (identity is None or identity == known.identity):
        end = known.terminal if terminal is None else terminal
        return dataclasses.replace(known, terminal=end, name=name or known.name)
    if identity is None:
        raise ValueError(f"`identity` is needed: `{binary.name}` is not a well-known operator.")
    _refuse(broken_law(binary, identity) if check else None)
    laws: dict[str, Any] = {"idempotent": idempotent or selective, "selective": selective}
    return Monoid(binary, identity, terminal, name=name or binary.name, **laws)


def _of_tuples(op: BinaryOp, identity: Any, name: Any, idempotent: bool, check: bool) -> Monoid:
    constant = Constant(identity)
    try:
        jax.eval_shape(op, constant.value, constant.value)
    except Exception as error:
        raise TypeError(
            f"`op` must join two tuples or vectors like {identity!r}; {op!r} raises "
            f"{type(error).__name__}: {error}.".splitlines()[0]
        ) from error
    ordered = None
    if check:
        samples = random_values(constant.value)
        _refuse(differing_law(op, constant.value, samples))
        ordered = not commutes(op, samples)
    return Monoid(op, constant, name=name or op.name, idempotent=idempotent, ordered=ordered)


def _refuse(broken: str | None) -> None:
    if broken:
        raise ValueError(f"{broken} (random values were tried; `check=False` trusts you).")


def _number(name: str, value: Any) -> Any:
    """A number, a function or None as it is; an array of one number as a Python number."""
    if isinstance(value, _ARRAYS) and value.ndim == 0 and is_concrete(value):
        return np.asarray(value).item()
    known = value is None or callable(value)
    if not known and not isinstance(value, (int, float, complex, np.generic)):
        raise TypeError(
            f"`{name}` must be a number, or a function from a dtype to one; got {value!r}. Only an "
            "`identity` may be one of tuples or vectors."
        )
    return value


def as_monoid(add: Any, name: str = "add") -> Monoid:
    """`add` itself, or the monoid of a name, an operator or a function that is well known.

    Raises:
        TypeError: it is no operator of two operands.
        ValueError: it is none of the well-known ones, so that its identity is not known.
    """
    if isinstance(add, Monoid):
        return add
    if isinstance(add, str):
        named = {m.name: m for m in ALL}
        if add not in named:
            raise ValueError(f"`{name}` must be one of {sorted(named)}; got {add!r}.")
        return named[add]
    binary = as_binary(add, name)
    if binary.fn not in _KNOWN:
        raise ValueError(
            f"`{name}` must be a Monoid or well known; make one of {binary.name!r} by "
            "`jaxspv.monoid(op, identity)`."
        )
    return monoid(binary)


def _zero_unless_float(dtype: np.dtype) -> int | None:
    """0 ends a product, but 0 times infinity is NaN."""
    return 0 if dtype.kind in "biu" else None


_selects: dict[str, Any] = {"idempotent": True, "selective": True}
plus = Monoid(operators.plus, 0, None, "add", "plus", "biufc")
times = Monoid(operators.times, 1, _zero_unless_float, "multiply", "times", "biufc")
min_ = Monoid(operators.minimum, np.inf, -np.inf, "min", "min", **_selects)
max_ = Monoid(operators.maximum, -np.inf, np.inf, "max", "max", **_selects)
any_ = Monoid(operators.any_, None, None, "any", "any", "biufc", **_selects)
lor = Monoid(operators.lor, False, True, "or", "lor", "b", **_selects)
land = Monoid(operators.land, True, False, "and", "land", "b", **_selects)
lxor = Monoid(operators.lxor, False, None, "xor", "lxor", "b")
lxnor = Monoid(operators.lxnor, True, None, "xnor", "lxnor", "b")
bor = Monoid(operators.bor, 0, -1, None, "bor", "biu", idempotent=True)
band = Monoid(operators.band, -1, 0, None, "band", "biu", idempotent=True)
bxor = Monoid(operators.bxor, 0, None, None, "bxor", "biu")
bxnor = Monoid(operators.bxnor, -1, None, None, "bxnor", "biu")
logaddexp = Monoid(operators.logaddexp, -np.inf, None, "logaddexp", "logaddexp", "f")

named(__name__, globals())
ALL: tuple[Monoid, ...] = tuple(v for v in list(globals().values()) if isinstance(v, Monoid))
_KNOWN: dict[Any, Monoid] = {m.op.fn: m for m in ALL}
_KNOWN |= {lax.add: plus, lax.mul: times, lax.min: min_, lax.max: max_, jnp.logaddexp: logaddexp}
# Names of python-graphblas; nothing above calls Python's functions of these names.
any, eq, max, min = any_, lxnor, max_, min_
