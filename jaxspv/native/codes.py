"""The built-in semirings by the numbers that the kernels know them by (`semirings.h`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from ..algebra import operators
from . import bind

ADD = {"add": 0, "min": 1, "max": 2}  # of `Monoid.atomic`
TIMES, FIRST, SECOND, PAIR, MIN_EXTEND, MAX_EXTEND, LOWER, UPPER = range(8)
MUL: dict[Callable[..., Any], int] = {
    jnp.multiply: TIMES,
    operators.first.fn: FIRST,
    operators.second.fn: SECOND,
    operators.pair.fn: PAIR,
    operators.min_extend.fn: MIN_EXTEND,
    operators.max_extend.fn: MAX_EXTEND,
    jnp.minimum: LOWER,
    jnp.maximum: UPPER,
    jnp.logical_and: LOWER,
    jnp.logical_or: UPPER,
}
FLIPPED = {FIRST: SECOND, SECOND: FIRST}
SELECTING = {1: (LOWER, UPPER, MIN_EXTEND), 2: (LOWER, UPPER, MAX_EXTEND)}  # added to those of all
DTYPES = ("float32", "float64", "int32", "int64", "bool")


def refused(semiring: Any, dtype: Any, flip: bool = False) -> str | None:
    """Why no kernel serves a semiring on values of a dtype, None where they have several."""
    if dtype is None or codes(semiring, dtype, flip) is None:
        return "it takes built-in semirings on float32, float64, int32, int64 or bool, all alike"
    return bind.refused()


def codes(semiring: Any, dtype: Any, flip: bool = False) -> Any:
    """The attributes `add` and `mul` of a semiring on values of a dtype; None: not compiled.

    Args:
        semiring: with `add`, a monoid, and `mul`, an operator.
        dtype: of both operands and the result.
        flip: the operands of `mul` change places.
    """
    dtype = jnp.dtype(dtype)
    truth = dtype.name == "bool"
    if dtype.name not in DTYPES or semiring.mul.position is not None:
        return None
    add = ADD.get(str(semiring.add.atomic(dtype)))
    mul = MUL.get(semiring.mul.fn)
    # They make truth values of anything.
    logical = semiring.add.dtypes == "b" or semiring.mul.fn in (jnp.logical_and, jnp.logical_or)
    if add is None or mul is None or (logical and not truth):
        return None
    mul = FLIPPED.get(mul, mul) if flip else mul
    few = (FIRST, SECOND, PAIR) if truth else (TIMES, FIRST, SECOND, PAIR)
    if truth and (add == ADD["add"] or mul in (MIN_EXTEND, MAX_EXTEND)):
        return None
    return {"add": add, "mul": mul} if mul in (*few, *SELECTING.get(add, ())) else None
