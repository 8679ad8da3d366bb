"""Semirings: `add` combines what reaches one place, `mul` extends a path by an edge.

The names are those of python-graphblas, which has some 240: any monoid with any operator. Here are
those that LAGraph's algorithms and the C API's tables use, with their laws; for another, such as
`max_land`, write `semiring(monoids.max, operators.land)`.

To add one, add a line at the end of this file; `ALL` (and so every test) picks it up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from .._core.pytree import named
from . import monoids, operators
from .derived import dual as dual
from .derived import entropy as entropy
from .derived import expectation as expectation
from .derived import polynomials as polynomials
from .derived import top_k_proofs as top_k_proofs
from .derived import variance as variance
from .families import argmin_plus as argmin_plus
from .families import counting as counting
from .families import k_best as k_best
from .families import lexicographic as lexicographic
from .monoids import Monoid
from .operators import BinaryOp
from .semiring import Domain, Semiring
from .semiring import semiring as semiring


def _all(dtype: np.dtype) -> tuple[Any, Any] | None:
    """Every number but NaN."""
    if dtype == np.bool_:
        return False, True
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.min, info.max
    return (-np.inf, np.inf) if jnp.issubdtype(dtype, jnp.floating) else None


def _on(kinds: str, floats: Callable[[Any], tuple[Any, Any]] | None = None) -> Domain:
    """Every number of a dtype of these kinds, and floats in the interval `floats(finfo)`."""

    def domain(dtype: np.dtype):
        if jnp.issubdtype(dtype, jnp.floating):
            return floats(jnp.finfo(dtype)) if floats else None
        return _all(dtype) if dtype.kind in kinds else None

    return domain


def _factors(dtype: np.dtype) -> tuple[Any, Any] | None:
    """What multiplies monotonically: not negative, and integers whose products do not wrap."""
    if dtype.kind in "iu":
        return 0, math.isqrt(np.iinfo(dtype).max)
    return _on("b", lambda f: (0, f.max))(dtype)


def _s(add: Monoid, mul: BinaryOp, a=None, d=None, name: Any = None, star: Any = None):
    return Semiring(add, mul, name or f"{add.name}_{mul.name}", a, d, star=star)


def _each(add: Monoid, *operators: BinaryOp, **laws: Any) -> tuple[Semiring, ...]:
    """Semirings of one addition and the same laws."""
    return tuple(_s(add, mul, **laws) for mul in operators)


def _geometric(a):
    """`1 + a + a^2 + ...`: infinite from 1 on, NaN where it is neither that nor converges."""
    ends, beyond = jnp.abs(a) < 1, jnp.where(a == abs(a), jnp.inf, jnp.nan)
    return jnp.where(ends, 1 / (1 - jnp.where(ends, a, 0)), beyond)


def _log_geometric(a):
    """The logarithm of the sum of `exp(k a)`, infinite from 0 on."""
    ends = a < 0
    return jnp.where(ends, -jnp.log(-jnp.expm1(jnp.where(ends, a, -1))), a * 0 + jnp.inf)


_bool = _on("b")
_no_bottom = _on("biu", lambda f: (f.min, np.inf))  # infinity minus infinity is NaN
_no_top = _on("i", lambda f: (-np.inf, f.max))
_finite = _on("biu", lambda f: (f.min, f.max))
_half_exponent = _on("biu", lambda f: (-(float(f.max) ** 0.5) / 2, float(f.max) ** 0.5 / 2))
_positive = _on("", lambda f: (f.smallest_normal, np.inf))
_positive_or_unsigned = _on("bu", lambda f: (f.smallest_normal, np.inf))

_o, _m = operators, monoids
_quotients = _o.minus, _o.truediv
_places = _o.firsti, _o.firstj, _o.secondi, _o.secondj

min_first, min_second, min_min = _each(_m.min_, _o.first, _o.second, _o.minimum, d=_all)
min_pair = _s(_m.min_, _o.pair, a=_bool, d=_all)
min_max = _s(_m.min_, _o.maximum, a=_all, d=_all)
min_plus = _s(_m.min_, _o.min_extend, a=_no_bottom, d=_no_bottom, name="min_plus")
min_times = _s(_m.min_, _o.times, a=_positive, d=_factors)
min_minus, min_truediv = _each(_m.min_, *_quotients)
min_firsti, min_firstj, min_secondi, min_secondj = _each(_m.min_, *_places)

max_first, max_second, max_pair = _each(_m.max_, _o.first, _o.second, _o.pair, d=_all)
max_max = _s(_m.max_, _o.maximum, d=_all)
max_min = _s(_m.max_, _o.minimum, a=_all, d=_all)
max_plus = _s(_m.max_, _o.max_extend, a=_no_top, d=_no_top, name="max_plus")
max_times = _s(_m.max_, _o.times, a=_positive_or_unsigned, d=_factors)
max_minus, max_truediv = _each(_m.max_, *_quotients)
max_firsti, max_firstj, max_secondi, max_secondj = _each(_m.max_, *_places)

plus_first, plus_second, plus_pair = _each(_m.plus, _o.first, _o.second, _o.pair, d=_bool)
plus_max, plus_plus = _each(_m.plus, _o.maximum, _o.plus, d=_bool)
plus_min = _s(_m.plus, _o.minimum, a=_on("bu"), d=_bool)
plus_times = _s(_m.plus, _o.times, a=_finite, d=_half_exponent, star=_geometric)
plus_minus, plus_truediv = _each(_m.plus, *_quotients)
plus_firsti, plus_firstj, plus_secondi, plus_secondj = _each(_m.plus, *_places)

times_first, times_second = _each(_m.times, _o.first, _o.second, d=_bool)
times_min, times_times = _each(_m.times, _o.minimum, _o.times, d=_bool)
times_pair = _s(_m.times, _o.pair, a=_all, d=_all)
times_max, times_plus = _each(_m.times, _o.maximum, _o.plus, a=_bool, d=_bool)
times_minus, times_truediv = _each(_m.times, *_quotients)
times_firsti, times_firstj, times_secondi, times_secondj = _each(_m.times, *_places)

any_first, any_second, any_pair = _each(_m.any_, _o.first, _o.second, _o.pair, d=_all)
any_min, any_max, any_plus = _each(_m.any_, _o.minimum, _o.maximum, _o.plus, d=_all)
any_times, any_truediv = _each(_m.any_, _o.times, _o.truediv, d=_all)
any_minus = _s(_m.any_, _o.minus, d=_on("iu", lambda f: (-np.inf, np.inf)))
any_firsti, any_firstj, any_secondi, any_secondj = _each(_m.any_, *_places)

lor_first, lor_second = _each(_m.lor, _o.first, _o.second, d=_all)
lor_pair, lor_lor = _each(_m.lor, _o.pair, _o.lor, d=_all)
or_and = _s(_m.lor, _o.land, a=_all, d=_all, name="or_and")
lor_lxor, lor_lxnor = _each(_m.lor, _o.lxor, _o.lxnor)
land_first, land_second, land_land = _each(_m.land, _o.first, _o.second, _o.land, d=_all)
land_pair, land_lor = _each(_m.land, _o.pair, _o.lor, a=_all, d=_all)
land_lxor, land_lxnor = _each(_m.land, _o.lxor, _o.lxnor)
lxor_first, lxor_second, lxor_pair = _each(_m.lxor, _o.first, _o.second, _o.pair)
lxor_lor, lxor_lxor, lxor_lxnor = _each(_m.lxor, _o.lor, _o.lxor, _o.lxnor)
lxor_land = _s(_m.lxor, _o.land, a=_all, d=_all)
lxnor_first, lxnor_second, lxnor_land = _each(_m.lxnor, _o.first, _o.second, _o.land)
lxnor_lxor, lxnor_lxnor = _each(_m.lxnor, _o.lxor, _o.lxnor)
lxnor_pair, lxnor_lor = _each(_m.lxnor, _o.pair, _o.lor, a=_all, d=_all)

bor_bor = _s(_m.bor, _o.bor, d=_all)
bor_band = _s(_m.bor, _o.band, a=_all, d=_all)
bor_bxor, bor_bxnor = _each(_m.bor, _o.bxor, _o.bxnor)
band_bor = _s(_m.band, _o.bor, a=_all, d=_all)
band_band = _s(_m.band, _o.band, d=_all)
band_bxor, band_bxnor = _each(_m.band, _o.bxor, _o.bxnor)
bxor_band = _s(_m.bxor, _o.band, a=_all, d=_all)
bxor_bor, bxor_bxor, bxor_bxnor = _each(_m.bxor, _o.bor, _o.bxor, _o.bxnor)
bxnor_bor = _s(_m.bxnor, _o.bor, a=_all, d=_all)
bxnor_band, bxnor_bxor, bxnor_bxnor = _each(_m.bxnor, _o.band, _o.bxor, _o.bxnor)

log_plus = _s(_m.logaddexp, _o.plus, a=_no_top, d=_no_top, name="log_plus", star=_log_geometric)

lor_land = or_and  # python-graphblas' name

named(__name__, globals())
_NAMED = {name: v for name, v in globals().items() if isinstance(v, Semiring)}
ALL: tuple[Semiring, ...] = tuple(dict.fromkeys(_NAMED.values()))
CORE = (  # one of each kind, for tests that are too slow for ALL
    *(plus_times, min_plus, max_plus, max_times, min_max, max_min, or_and, plus_pair, any_pair),
    *(any_secondi, min_first, min_second, log_plus),
)


def as_semiring(semiring: Semiring | str) -> Semiring:
    """A semiring as it is, or the one of a name.

    Raises:
        TypeError: it is neither.
        ValueError: there is none of that name.

    >>> as_semiring("min_plus") is min_plus
    True
    """
    if isinstance(semiring, Semiring):
        return semiring
    if not isinstance(semiring, str):
        raise TypeError(f"`semiring` must be a Semiring; got {type(semiring).__name__}.")
    if semiring not in _NAMED:
        raise ValueError(
            f"`semiring` must be one of `jaxspv.semirings`, such as 'min_plus'; got {semiring!r}."
        )
    return _NAMED[semiring]
