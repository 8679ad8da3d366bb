"""Public functions whose operands' types may bring their own: graphs spread over devices do."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])


def overloadable(fn: _F) -> _F:
    """Decorator of a public function: an operand whose type has `__jaxspv_functions__`, a table
    of functions by name, answers for itself. Asked are the first two operands and the named ones.
    """

    @functools.wraps(fn)
    def call(*args, **kwargs):
        for operand in (*args[:2], *kwargs.values()):
            own = getattr(type(operand), "__jaxspv_functions__", None)
            if own is not None and fn.__name__ in own:
                return own[fn.__name__](*args, **kwargs)
        return fn(*args, **kwargs)

    return cast(_F, call)
