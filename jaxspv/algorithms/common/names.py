"""Errors for names: of vertices where numbers are expected, of arguments in other libraries."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

_F = TypeVar("_F", bound=Callable[..., Any])


def refuse_names(argument: str, value: Any) -> None:
    """Raises an error if a vertex is given by its name.

    Raises:
        TypeError: it is text, or a list or array of texts.
    """
    if isinstance(value, np.ndarray):
        listed = value.ravel()[:1].tolist() if value.dtype.kind in "USO" else []
    else:
        listed = value if isinstance(value, (list, tuple)) else [value]
    name = next((name for name in listed if isinstance(name, (str, bytes))), None)
    if name is not None:
        raise TypeError(
            f"`{argument}` must be an integer vertex; got {name!r}. The labels of a graph give the "
            f"vertex of a name: labels.vertex({name!r})."
        )


def elsewhere(**here: str) -> Callable[[_F], _F]:
    """Decorator: an argument named as in other libraries raises an error with jaxspv's name."""

    def decorate(fn: _F) -> _F:
        @functools.wraps(fn)
        def call(*args, **kwargs):
            if not here.keys().isdisjoint(kwargs):
                name = next(name for name in kwargs if name in here)
                raise TypeError(
                    f"{fn.__name__}() has no argument `{name}`: it is called `{here[name]}` here."
                )
            return fn(*args, **kwargs)

        return cast(_F, call)

    return decorate
