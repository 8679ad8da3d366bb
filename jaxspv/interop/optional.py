"""Libraries that are imported where they are used, and what to do where one is missing."""

from __future__ import annotations

import importlib
from typing import Any


def required(name: str, what: str, extra: str = "data") -> Any:
    """A library of an extra of the package, or an ImportError that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        how = f"python -m pip install 'jaxspv[{extra}]'"
        raise ImportError(f"{what} needs {name}, which is not installed: {how}") from error
