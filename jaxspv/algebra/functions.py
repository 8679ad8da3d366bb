"""Functions of the user: what they capture of a trace, and which of them do the same.

A form is traced when a program is lowered, when the traced values around the call are gone: so an
operator takes those that its function captures as operands. A lambda is a new object at every turn
of a loop, and a program is compiled for each function: so equal ones stand for each other.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

NUMBERS = (bool, int, float, complex, str, type(None))
# Packages whose modules and functions stay what they are.
STABLE = ("jax", "jaxlib", "jaxspv", "math", "numpy", "operator", "scipy")
_EMPTY = object()  # what an empty cell of a closure holds
_SEEN: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()


def _closed(fn: types.FunctionType) -> tuple[Any, ...]:
    """What the cells of its closure hold."""

    def content(cell):
        try:
            return cell.cell_contents
        except ValueError:
            return _EMPTY

    return tuple(map(content, fn.__closure__ or ()))


@dataclasses.dataclass(frozen=True)
class Lifted:
    """A function whose captured traced values are its last arguments.

    Attributes:
        fn: the function as it was made, code: its code.
        cells: the places of these values in its closure, defaults: in its default arguments.
        others: by identity, what else it captures.
    """

    fn: Any = dataclasses.field(compare=False)
    code: Any
    cells: tuple[int, ...]
    defaults: tuple[int, ...]
    others: tuple[int, ...]

    def __call__(self, *args: Any) -> Any:
        count = len(args) - len(self.cells) - len(self.defaults)
        given, fn = iter(args[count:]), self.fn
        closure: list[Any] = list(fn.__closure__ or ())
        defaults = list(fn.__defaults__ or ())
        for place in self.cells:
            closure[place] = types.CellType(next(given))
        for place in self.defaults:
            defaults[place] = next(given)
        parts = fn.__globals__, fn.__name__, tuple(defaults), tuple(closure)
        again = types.FunctionType(self.code, *parts)
        again.__kwdefaults__ = fn.__kwdefaults__
        return again(*args[:count])


def lifted(fn: Callable[..., Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """`fn` without the traced values that it captures, and these values; `fn(*args)` is then
    `lifted(*args, *values)`."""
    if isinstance(fn, functools.partial):
        inner, first, named = fn.func, fn.args, fn.keywords
        found = lifted(lambda *args: inner(*first, *args, **named))
        return found if found[1] else (fn, ())
    if not isinstance(fn, types.FunctionType):
        return fn, ()
    values: list[Any] = []
    others: list[int] = []
    places: list[tuple[int, ...]] = []
    for captured in (_closed(fn), fn.__defaults__ or ()):
        leaves = [jax.tree.leaves(value) for value in captured]
        traced = [any(isinstance(leaf, Tracer) for leaf in each) for each in leaves]
        places.append(tuple(k for k, flag in enumerate(traced) if flag))
        for value, flag in zip(captured, traced, strict=True):
            values.append(value) if flag else others.append(id(value))
    cells, defaults = places
    run = Lifted(fn, fn.__code__, cells, defaults, tuple(others)) if values else fn
    return run, tuple(values)


class _Unknown(Exception):
    """A function depends on something that may change."""


def canonical(fn: Any) -> Any:
    """`fn`, or a function made before that is known to do the same.

    They have one code, and all that it reads has one value: numbers, strings and what the packages
    `STABLE` offer. A function that reads anything else, such as an array, stands for itself.
    """
    try:
        return _SEEN.setdefault(_key_of(fn), fn)
    except _Unknown:
        return fn


def traceable(fn: Any) -> Any:
    """`fn`, or one that does the same; of a NumPy ufunc, which cannot be traced, the function of
    its name in `jax.numpy`.

    Raises:
        TypeError: it is no function, or a ufunc without such a name.
    """
    if isinstance(fn, np.ufunc):
        fn = getattr(jnp, fn.__name__, None) or fn
    if not callable(fn) or isinstance(fn, np.ufunc):
        raise TypeError(f"an operator needs a function of JAX arrays; got {fn!r}.")
    return canonical(fn)


def _key_of(fn: Any) -> Any:
    if not isinstance(fn, types.FunctionType) or fn.__dict__:
        raise _Unknown
    code = fn.__code__
    if any(isinstance(const, types.CodeType) for const in code.co_consts):
        raise _Unknown
    named = [(name, fn.__globals__[name]) for name in code.co_names if name in fn.__globals__]
    named += sorted((fn.__kwdefaults__ or {}).items())
    return code, _value(_closed(fn)), _value(fn.__defaults__ or ()), _value(tuple(named))


def _value(value: Any) -> Any:
    """A hashable key of a value; equal keys mean the same value."""
    if type(value) in NUMBERS:
        return type(value), repr(value)  # -0.0 is not 0.0
    if type(value) is tuple:
        return tuple(map(_value, value))
    if isinstance(value, types.ModuleType):
        module, found = value.__name__, sys.modules.get(value.__name__)
    elif isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
        module = str(value.__module__)
        found = getattr(sys.modules.get(module), value.__qualname__, None)
    else:
        raise _Unknown
    if found is not value or module.partition(".")[0] not in STABLE:
        raise _Unknown
    return value


def takes(fn: Any, count: int, *, unknown: bool = True) -> bool:
    """Whether a function can be called with `count` arguments; `unknown` where it does not say."""
    code = fn.__code__ if isinstance(fn, types.FunctionType) else None
    if code is not None and (code.co_argcount, code.co_kwonlyargcount) == (count, 0):
        return True  # without the 10 us of a signature
    try:
        inspect.signature(fn).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return unknown
    return True


def check_function(name: str, fn: Any, count: int, of: str) -> None:
    """TypeError where the argument `name` is no function of `count` arguments, in words `of`."""
    if not callable(fn) or not takes(fn, count):
        why = "which takes another number of arguments" if callable(fn) else "which is no function"
        raise TypeError(f"`{name}` must be a function of {of}; got {fn!r}, {why}.")


@dataclasses.dataclass(frozen=True)
class OnNumbers:
    """A function of two numbers, mapped over arrays of one shape."""

    fn: Callable[..., Any]

    def __call__(self, x: Any, y: Any, *params: Any) -> jax.Array:
        return jnp.asarray(jnp.vectorize(lambda a, b: self.fn(a, b, *params))(x, y))


def shape_of(op: Callable[..., Any], operand: Any) -> Any:
    """The shape that `op` gives of two operands, what else it makes, or the error as a string."""
    try:
        found = jax.eval_shape(op, operand, operand)
    except Exception as error:  # whatever a function of the user raises
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return getattr(found, "shape", found)
