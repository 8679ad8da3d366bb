"""The class of semirings, and `semiring`, which makes one of any functions."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from .._core.forms import ON_TUPLES
from .._core.pytree import Algebraic, pytree_dataclass, static
from .._core.tuples import Constant
from ..shapes import Shaped
from .monoids import Monoid, as_monoid
from .operators import BinaryOp, as_binary, element_by_element

Domain = Callable[[np.dtype], tuple[Any, Any] | None]
Law = Literal["annihilation", "distributivity"]


@pytree_dataclass
class Semiring(Algebraic):
    """`C[i, j] = add over k of mul(A[i, k], B[k, j])`.

    A pytree: functions are static, parameters of its operators are leaves. Build one with
    `semiring(add, mul)`, once, at module level: a new function means a new compilation, unless all
    that it reads are numbers and functions of JAX and NumPy.

    Attributes:
        add: the monoid that combines.
        mul: the operator that extends.
        name: `add_mul`, as in python-graphblas.
        annihilation: where `mul(zero, x) == mul(x, zero) == zero` with `zero` the identity of
            `add`: a function from dtype to the closed interval `(low, high)` of all x for which it
            holds, or to None where it does not; None: nowhere.
        distributivity: where `mul` distributes over `add` from both sides, in the same form; exact
            but for sums of floats, which round.
        one: the identity of `mul`, a `Constant`, or None where it is not stated.
        star: `star(a) = one + a + a a + ...` of a value, infinite or NaN where that diverges, or
            None.
        lift: of tuples `lift(weights)`, the values of edges of these weights, or None.

    >>> import jaxspv as jsp
    >>> jsp.semirings.max_times.add, jsp.semirings.max_times.mul
    (Monoid(max), BinaryOp(times))
    """

    add: Monoid
    mul: BinaryOp
    name: str = static(default="user")
    annihilation: Domain | None = static(default=None)
    distributivity: Domain | None = static(default=None)
    one: Constant | None = static(default=None)
    star: Callable[..., Any] | None = static(default=None)
    lift: Callable[..., Any] | None = static(default=None)

    def __post_init__(self):
        object.__setattr__(self, "add", as_monoid(self.add))
        mul = as_binary(self.mul, "mul")
        if not self.add.of_tuples:
            mul = element_by_element(mul, "mul")
        object.__setattr__(self, "mul", mul)

    def __repr__(self) -> str:
        return f"Semiring({self.name})"

    @property
    def __jaxspv_functions__(self) -> dict[str, Any] | None:
        return ON_TUPLES if self.add.of_tuples else None

    def domain(self, law: Law, dtype: DTypeLike) -> tuple[Any, Any] | None:
        """The closed interval of the numbers for which a law holds in `dtype`, or None.

        >>> from jaxspv import semirings
        >>> semirings.min_plus.domain("distributivity", np.int8)
        (-128, 127)
        """
        stated = getattr(self, law)
        if stated is None or not self.add.accepts(dtype):
            return None
        return stated(np.dtype(dtype))

    def zero(self, dtype: DTypeLike) -> Shaped[np.ndarray, ""]:
        """The value of a missing entry when a result is made dense: the identity of `add`."""
        return self.add.identity_of(dtype)


def semiring(
    add: Monoid | BinaryOp | Callable[..., Any],
    mul: BinaryOp | Callable[..., Any],
    *,
    name: str | None = None,
    one: Any = None,
    star: Callable[..., Any] | None = None,
) -> Semiring:
    """A semiring of your own from any JAX-traceable functions.

    Args:
        add: a `Monoid`, or a well-known function such as `jnp.minimum`.
        mul: a `BinaryOp`, or a function of two arrays.
        name: shown in messages; `add_mul` by default.
        one: the identity of `mul`, which a `closure` from one vertex starts with.
        star: `star(a) = one + a + a a + ...`, for a `closure` on graphs with cycles.

    Where the values of `add` are tuples, `mul` is a function of two single values; it may take an
    edge's value of another structure, so long as it gives one of `add`.

    Raises:
        TypeError: `add` or `mul` is no function of two operands, element by element.
        ValueError: `add` is a function whose identity is not known: make it a `monoid`.

    >>> import jax.numpy as jnp
    >>> semiring(jnp.maximum, jnp.minimum)
    Semiring(max_minimum)
    """
    joined, extend = as_monoid(add), as_binary(mul, "mul")
    unit = None if one is None else Constant(one)
    return Semiring(joined, extend, name or f"{joined.name}_{extend.name}", one=unit, star=star)


def along_paths(semiring: Semiring, dtype: DTypeLike, both: bool = False) -> Semiring:
    """The semiring with a `mul` that keeps the zero of its first operand, or of each of both.

    Of `times` under min or max, where zero means that no path comes: infinity times 0 is a NaN, and
    the largest integer times 2 wraps. Any other semiring as it is.
    """
    multiplies = semiring.mul.fn is jnp.multiply and not semiring.add.of_tuples
    if not multiplies or not semiring.add.selective or np.dtype(dtype) == np.bool_:
        return semiring
    zero = semiring.add.identity_of(dtype).item()
    return dataclasses.replace(semiring, mul=_times(zero, both)) if zero else semiring


@functools.cache
def _times(zero: Any, both: bool) -> BinaryOp:
    def times(x, y):
        x, y = jnp.asarray(x), jnp.asarray(y)
        none = x == jnp.asarray(zero, x.dtype)
        none = none | (y == jnp.asarray(zero, y.dtype)) if both else none
        product = jnp.where(none, 1, x) * jnp.where(none, 1, y)  # also in a derivative no NaN
        return jnp.where(none, jnp.asarray(zero, product.dtype), product)

    return BinaryOp(times, "times")


# ---- Of semirings whose values are tuples ----


def made(name: str, add: Any, mul: Any, zero: Any, one: Any, lift: Any, **more: Any) -> Semiring:
    """A semiring of functions of two values, with its zero and one."""
    idempotent = more.pop("idempotent", False)
    forms = {form: more.pop(form, None) for form in ("by_segments", "whole")}
    adds = Monoid(
        BinaryOp(add, f"{name} sum"), Constant(zero), name=name, idempotent=idempotent, **forms
    )
    mul = mul if isinstance(mul, BinaryOp) else BinaryOp(mul, f"{name} product")
    return Semiring(adds, mul, name, one=Constant(one), lift=lift, **more)


def one_of(semiring: Semiring) -> Any:
    """The identity of `mul`, stated or by the name of a well-known operator.

    Raises:
        ValueError: it is not known.
    """
    if semiring.one is not None:
        return semiring.one.value
    known = {"plus": 0.0, "min_extend": 0.0, "max_extend": 0.0, "times": 1.0}
    known |= {"min": np.inf, "max": -np.inf, "land": True}
    if semiring.mul.name not in known:
        raise ValueError(f"the identity of `mul` of {semiring!r} is not known: give `one`.")
    return known[semiring.mul.name]


def check_semiring(name: str, part: Any) -> None:
    if not isinstance(part, Semiring):
        raise TypeError(f"`{name}` must be a Semiring, `semirings.min_plus` say; got {part!r}.")


def check_integer(name: str, value: Any, least: int) -> None:
    if not isinstance(value, (int, np.integer)):
        raise TypeError(f"`{name}` must be an integer; got {value!r}.")
    if value < least:
        raise ValueError(f"`{name}` must be {least} or more; got {value}.")
