"""Loads the library of C++ kernels, registers its handlers with JAX, and calls them.

A handler claims a version of XLA's C ABI, and a runtime older than that refuses it. Registered
before the CPU backend starts, such a handler would keep the backend from starting. So the backend
is started first: then only the registration fails, and the other forms serve.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

import jax
import numpy as np

from .._core.platforms import situation
from . import build

SWITCH = "JAXSPV_NATIVE"  # "0": none; else the path of a library
THREADS = "JAXSPV_NUM_THREADS"
MOST_THREADS = 2**31 - 1  # a larger int of C wraps


def refused(*operands: Any, **static: Any) -> str | None:
    """Why the kernels cannot serve the call that is traced: a sentence, or None.

    Loads them at the first call; in a checkout without a library of its sources compiles them.
    """
    if situation().portable:
        return "what is exported, or spread over devices by XLA, holds no calls of C++ kernels"
    return _loaded()[1]


def refused_but_int32(*operands: Any, dtype: Any = np.int32, **static: Any) -> str | None:
    """`refused`, also for operands or a result of other types than int32 and bool."""
    types = np.dtype(dtype), *(x.dtype for x in jax.tree.leaves(operands))
    if any(t not in (np.int32, bool) for t in types):
        return "its kernel needs int32 indices"
    return refused()


def call(name: str, results: Any, *operands: Any, **attributes: int) -> Any:
    """The results of a handler.

    Args:
        name: of the handler.
        results: the `jax.ShapeDtypeStruct`, or a tuple of them.
        operands: arrays. Under vmap all get the same leading axes, of size 1 where one has none.
        attributes: integers that the handler reads by these names.
    """
    run = jax.ffi.ffi_call(f"jaxspv_{name}", results, vmap_method="expand_dims")
    return run(*operands, **{key: np.int64(value) for key, value in attributes.items()})


def set_num_threads(count: int) -> None:
    """Sets the most threads that a C++ kernel takes on a CPU; 0: as many as there are cores.

    Programs that are compiled already follow it too. The environment variable JAXSPV_NUM_THREADS
    sets it for a process.

    Raises:
        ValueError: `count`, or what that variable holds, is no integer >= 0.

    >>> import jaxspv as jsp
    >>> jsp.config.set_num_threads(1)
    >>> jsp.config.set_num_threads(0)
    """
    if not isinstance(count, int) or count < 0:
        raise ValueError(f"`count` must be an integer >= 0; got {count!r}.")
    library, why = _loaded()
    if library is not None and why is None:
        library.jaxspv_set_num_threads(min(count, MOST_THREADS))


@functools.cache
def _loaded() -> tuple[ctypes.CDLL | None, str | None]:
    """(the library, why it cannot be used or None)."""
    switch = os.environ.get(SWITCH, "")
    if switch == "0":
        return None, f"{SWITCH}=0 leaves the C++ kernels out"
    threads = _asked()  # refused before handlers are registered: that is done once
    try:
        path = switch or str(build.library())
        jax.devices("cpu")  # before anything is registered
        library = ctypes.CDLL(path)
        library.jaxspv_handlers.restype = ctypes.c_char_p
        for name in library.jaxspv_handlers().decode().split():
            capsule = jax.ffi.pycapsule(getattr(library, f"jaxspv_{name}"))
            jax.ffi.register_ffi_target(f"jaxspv_{name}", capsule, platform="cpu")
    except build.NoCompiler as why:
        return None, f"there are no C++ kernels: {why}"
    except Exception as why:  # whatever the linker or the runtime refuses: other forms serve
        text = str(why).strip().partition("\n")[0]
        return None, f"the C++ kernels cannot be used: {text}"
    library.jaxspv_set_num_threads(min(threads, MOST_THREADS))
    return library, None


def _asked() -> int:
    """The number of threads that the environment names; 0: none."""
    text = os.environ.get(THREADS) or "0"
    try:
        count = int(text)
    except ValueError:
        count = -1
    if count < 0:
        raise ValueError(f"{THREADS} must be an integer >= 0; got {text!r}.")
    return count
