"""The table of functions, and what every call runs in: precision, the cache of programs."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import types
from collections.abc import Callable
from typing import Any

import jax
import networkx as nx
from networkx.utils import backends

from .._core.eager.programs import cache_folder, enable_compilation_cache
from .info import setting

FUNCTIONS: dict[str, Callable[..., Any]] = {}


def implements(function: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """Decorator entering a function under its name, with NetworkX's arguments.

    What it costs in NetworkX, and what it does not support, is in `info.py`. NetworkX refuses the
    kinds of graphs that a function is not for before it asks a backend.
    """
    signature, name = inspect.signature(function), name or function.__name__
    lazy = inspect.isgeneratorfunction(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:  # another release of NetworkX
            raise NotImplementedError(f"{name}: {error}") from None
        _keep_programs()
        with double_precision():
            found = function(*args, **kwargs)
            if lazy:  # refused before the first is asked for
                found = itertools.chain([*itertools.islice(found, 1)], found)
            return found

    FUNCTIONS[name] = call
    return call


def enter(**functions: Callable[..., Any]) -> None:
    """Enters functions by NetworkX's names, whatever theirs are, as `implements`."""
    for name, function in functions.items():
        implements(function, name)


class _Here:
    """`nx` within NetworkX's functions that run here: this backend's functions, else NetworkX's."""

    def __getattr__(self, name: str) -> Any:
        return FUNCTIONS.get(name) or getattr(nx, name)


def composed(names: str) -> None:
    """Enters NetworkX's own functions, which only call functions that are entered already."""
    for name in names.split():
        own: Any = vars(backends)["_registered_algorithms"][name].orig_func
        known = {**own.__globals__, **FUNCTIONS, "nx": _Here()}
        function = types.FunctionType(own.__code__, known, name, own.__defaults__, own.__closure__)
        function.__kwdefaults__ = own.__kwdefaults__
        implements(function)


@functools.cache
def _keep_programs() -> None:
    """Turns on the cache of compiled programs on disk, unless the configuration says no."""
    wanted = setting("compilation_cache")
    if wanted and cache_folder() is None:
        with contextlib.suppress(OSError):  # of a folder that cannot be written to
            enable_compilation_cache(None if wanted is True else wanted)


def double_precision() -> contextlib.AbstractContextManager[Any]:
    """float64 and int64 in what runs within, as in NetworkX, unless the configuration says no."""
    return jax.enable_x64(bool(setting("double_precision")))
