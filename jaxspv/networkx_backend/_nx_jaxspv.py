"""Shipped as the top-level module `_nx_jaxspv`: the backend as far as it needs no JAX.

NetworkX loads it. What it asks before a call is answered by `info.py`, which is found here without
importing jaxspv; jaxspv, and so JAX, is imported when a graph is converted or a function is called.
"""

import importlib.util
import pathlib
import types
from collections.abc import Callable
from typing import Any


def _info() -> types.ModuleType:
    package = importlib.util.find_spec("jaxspv")  # looks for it, imports nothing
    if package is None or package.origin is None:
        raise ImportError("_nx_jaxspv is installed without the package jaxspv")
    path = pathlib.Path(package.origin).parent / "networkx_backend" / "info.py"
    found = importlib.util.spec_from_file_location("_jaxspv_networkx_info", path)
    if found is None or found.loader is None:
        raise ImportError(f"{path} is no module")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


info = _info()
get_info = info.get_info  # the entry point `networkx.backend_info`, called at `import networkx`


def _later(name: str) -> Callable[..., Any]:
    """The function of this name of the backend, which imports jaxspv when it is called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        from jaxspv.networkx_backend import backend

        return getattr(backend, name)(*args, **kwargs)

    return call


OTHERS = ("convert_from_nx", "convert_to_nx", "on_start_tests")
backend = types.SimpleNamespace(
    **{name: _later(name) for name in (*info.FUNCTIONS, *OTHERS)},
    can_run=info.can_run,
    should_run=info.should_run,
)  # the entry point `networkx.backends`
