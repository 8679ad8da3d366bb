"""Semirings: `add` joins what reaches one place, `mul` extends a path by an edge.

To add one, add a line at the end of this file; `ALL` (and so every test) picks it up.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jax.typing import DTypeLike

from . import monoids, operators
from ._pytree import pytree_dataclass, static
from .monoids import Monoid, monoid
from .operators import BinaryOp, as_binary

Domain = Callable[[np.dtype], tuple[Any, Any] | None]


@pytree_dataclass
class Semiring:
    """`C[i, j] = add over k of mul(A[i, k], B[k, j])`.

    A pytree: functions are static, parameters of its operators are leaves. Build one with
    `semiring(add, mul)`, once, at module level: a new function object means a new compilation.

    Attributes:
        add: the monoid that joins.
        mul: the operator that extends.
        name: `add_mul`, as in python-graphblas.
        laws: which of "annihilation" (`mul(add.identity, x) == add.identity` on both sides) and
            "distributivity" hold on `domain`.
        domain: function from dtype to the closed interval `(low, high)` on which `laws` hold; None
            in place of the interval where the semiring is not for that dtype.
    """

    add: Monoid
    mul: BinaryOp
    name: str = static(default="user")
    laws: frozenset[str] = static(default=frozenset())
    domain: Domain | None = static(default=None)

    def __repr__(self) -> str:
        return f"Semiring({self.name})"

    def zero(self, dtype: DTypeLike) -> np.ndarray:
        """What stands for a missing entry when a result is made dense: the identity of `add`."""
        return self.add.identity_of(dtype)


def semiring(
    add: Monoid | BinaryOp | Callable[..., Any],
    mul: BinaryOp | Callable[..., Any],
    *,
    name: str | None = None,
) -> Semiring:
    """A semiring of your own from any JAX-traceable functions.

    Args:
        add: a `Monoid`, or a well-known function such as `jnp.minimum`.
        mul: a `BinaryOp`, or a function of two arrays.
        name: shown in messages; `add_mul` by default.

    >>> import jax.numpy as jnp
    >>> semiring(jnp.maximum, jnp.minimum)
    Semiring(max_minimum)
    """
    joined = add if isinstance(add, Monoid) else monoid(add)
    extend = as_binary(mul)
    return Semiring(joined, extend, name or f"{joined.name}_{extend.name}")


def _everything(dtype: np.dtype):
    if dtype == np.bool_:
        return False, True
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.min, info.max
    return -np.inf, np.inf


def _numbers(dtype: np.dtype):
    """Modular for integers, moderate for floats (sums of products must not overflow)."""
    return _everything(dtype) if dtype.kind in "biu" else (-1e3, 1e3)


def _lengths(dtype: np.dtype):
    """Path lengths: from 0 up to and including infinity."""
    return (False, True) if dtype == np.bool_ else (0, _everything(dtype)[1])


def _gains(dtype: np.dtype):
    """Path gains: from -infinity up to 0; unsigned numbers have no -infinity."""
    if dtype.kind in "ub":
        return None
    return _everything(dtype)[0], 0


def _probabilities(dtype: np.dtype):
    return (0, 1) if dtype.kind != "b" else (False, True)


def _truth(dtype: np.dtype):
    return (False, True) if dtype == np.bool_ else None


def _logs(dtype: np.dtype):
    return (-50, 50) if dtype.kind == "f" else None


def _builtin(add, mul, name, laws="ad", domain: Domain = _everything):
    names = {"a": "annihilation", "d": "distributivity"}
    return Semiring(add, mul, name, frozenset(names[c] for c in laws), domain)


_o, _m = operators, monoids
plus_times = _builtin(_m.plus, _o.times, "plus_times", "ad", _numbers)
min_plus = _builtin(_m.min_, _o.min_extend, "min_plus", "ad", _lengths)
max_plus = _builtin(_m.max_, _o.max_extend, "max_plus", "ad", _gains)
max_times = _builtin(_m.max_, _o.times, "max_times", "d", _probabilities)
min_times = _builtin(_m.min_, _o.times, "min_times", "d", _probabilities)
min_max = _builtin(_m.min_, _o.maximum, "min_max")
max_min = _builtin(_m.max_, _o.minimum, "max_min")
or_and = _builtin(_m.lor, _o.land, "or_and", "ad", _truth)
and_or = _builtin(_m.land, _o.lor, "and_or", "ad", _truth)
xor_and = _builtin(_m.lxor, _o.land, "xor_and", "ad", _truth)
xnor_or = _builtin(_m.lxnor, _o.lor, "xnor_or", "ad", _truth)
plus_pair = _builtin(_m.plus, _o.pair, "plus_pair", "")
plus_first = _builtin(_m.plus, _o.first, "plus_first", "")
plus_second = _builtin(_m.plus, _o.second, "plus_second", "")
plus_min = _builtin(_m.plus, _o.minimum, "plus_min", "")
plus_plus = _builtin(_m.plus, _o.plus, "plus_plus", "")
min_first = _builtin(_m.min_, _o.first, "min_first", "d")
min_second = _builtin(_m.min_, _o.second, "min_second", "d")
max_first = _builtin(_m.max_, _o.first, "max_first", "d")
max_second = _builtin(_m.max_, _o.second, "max_second", "d")
any_pair = _builtin(_m.any_, _o.pair, "any_pair", "d")
any_first = _builtin(_m.any_, _o.first, "any_first", "d")
any_second = _builtin(_m.any_, _o.second, "any_second", "d")
any_firsti = _builtin(_m.any_, _o.firsti, "any_firsti", "")
any_secondi = _builtin(_m.any_, _o.secondi, "any_secondi", "")
min_firsti = _builtin(_m.min_, _o.firsti, "min_firsti", "")
min_secondi = _builtin(_m.min_, _o.secondi, "min_secondi", "")
log_plus = _builtin(_m.logaddexp, _o.plus, "log_plus", "ad", _logs)

ALL: tuple[Semiring, ...] = tuple(v for v in list(globals().values()) if isinstance(v, Semiring))
