"""Public functions whose operands may bring their own: graphs on a mesh, values of tuples."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])

ON_TUPLES: dict[str, Callable[..., Any]] = {}  # the functions on values that are tuples


def overloadable(fn: _F) -> _F:
    """Decorator of a public function: an operand that has `__jaxspv_functions__`, a table of
    functions by name, answers for itself. Asked are the first three operands and the named ones.
    """

    @functools.wraps(fn)
    def call(*args, **kwargs):
        for operand in (*args[:3], *kwargs.values()):
            own = getattr(operand, "__jaxspv_functions__", None)
            if own is not None and fn.__name__ in own:
                return own[fn.__name__](*args, **kwargs)
        return fn(*args, **kwargs)

    return cast(_F, call)
