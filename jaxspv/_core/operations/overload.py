"""Functions that types of operands override: graphs spread over devices bring their own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])


def overloadable(fn: _F) -> _F:
    """Decorator of a public function: a call with an operand of a type that `overload` named goes
    to what was registered for it. Asked are the first two positional operands and the named ones.
    """
    table: dict[type, Callable[..., Any]] = {}

    @functools.wraps(fn)
    def call(*args, **kwargs):
        for operand in (*args[:2], *kwargs.values()):
            own = table.get(type(operand))
            if own is not None:
                return own(*args, **kwargs)
        return fn(*args, **kwargs)

    call.overloads = table  # pyright: ignore[reportAttributeAccessIssue]
    return cast(_F, call)


def overload(fn: Callable[..., Any], kind: type) -> Callable[[_F], _F]:
    """Decorator: what `fn`, which is `overloadable`, does with operands of this type."""

    def add(own: _F) -> _F:
        fn.overloads[kind] = own  # pyright: ignore[reportFunctionMemberAccess]
        return own

    return add
