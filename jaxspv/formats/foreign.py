"""Conversion of other libraries' matrices and graphs wherever a jaxspv matrix is expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CONVERTERS: dict[str, Callable[[Any], Any]] = {}  # module of a type -> how; `ops/install.py`


def ours(A: Any) -> Any:
    """A matrix of jaxspv made of one of SciPy, `jax.experimental.sparse` or NetworkX; else `A`.

    It is converted at every call: convert it yourself before calling more than once.
    """
    for kind in type(A).__mro__:
        for module, convert in CONVERTERS.items():
            if f"{kind.__module__}.".startswith(f"{module}."):
                return convert(A)
    return A
