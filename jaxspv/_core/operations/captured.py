"""Functions of the user that capture traced values: what they capture becomes their parameters.

A form is traced when a program is lowered, when the traced values around the call are gone. So an
operator that is made of such a function takes them as operands.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from typing import Any

import jax
from jax.core import Tracer


@dataclasses.dataclass(frozen=True, eq=False)
class Lifted:
    """A function whose captured values of these places are its last arguments.

    Attributes:
        fn: the function as it was made.
        cells: the places of its closure, defaults: of its default arguments.
    """

    fn: Any
    cells: tuple[int, ...]
    defaults: tuple[int, ...]

    def __call__(self, *args: Any) -> Any:
        count = len(args) - len(self.cells) - len(self.defaults)
        given = iter(args[count:])
        closure: list[Any] = list(self.fn.__closure__ or ())
        for place in self.cells:
            closure[place] = types.CellType(next(given))
        defaults = list(self.fn.__defaults__ or ())
        for place in self.defaults:
            defaults[place] = next(given)
        fn, name = self.fn, self.fn.__name__
        parts = fn.__globals__, name, tuple(defaults), tuple(closure)
        again = types.FunctionType(fn.__code__, *parts)
        again.__kwdefaults__ = fn.__kwdefaults__
        return again(*args[:count])

    def _key(self) -> Any:
        cells = enumerate(self.fn.__closure__ or ())
        others = [id(c.cell_contents) for k, c in cells if k not in self.cells]
        rest = enumerate(self.fn.__defaults__ or ())
        others += [id(v) for k, v in rest if k not in self.defaults]
        return self.fn.__code__, self.cells, self.defaults, tuple(others)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lifted) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def lifted(fn: Callable[..., Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """`fn` without the traced values that it captures, and these values; `fn(*args)` is then
    `lifted(*args, *values)`."""
    if not isinstance(fn, types.FunctionType):
        return fn, ()
    cells = {k: c.cell_contents for k, c in enumerate(fn.__closure__ or ()) if _is_filled(c)}
    cells = {k: v for k, v in cells.items() if _is_traced(v)}
    defaults = {k: v for k, v in enumerate(fn.__defaults__ or ()) if _is_traced(v)}
    if not cells and not defaults:
        return fn, ()
    return Lifted(fn, tuple(cells), tuple(defaults)), (*cells.values(), *defaults.values())


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - raises
    except ValueError:
        return False
    return True


def _is_traced(value: Any) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value))
