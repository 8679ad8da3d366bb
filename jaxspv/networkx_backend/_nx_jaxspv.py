"""Shipped as the top-level module `_nx_jaxspv`: finds `info.py` without importing jaxspv or JAX."""

import importlib.util
import pathlib
from typing import Any


def get_info() -> dict[str, Any]:
    """The entry point `networkx.backend_info`, called at `import networkx`."""
    package = importlib.util.find_spec("jaxspv")  # looks for it, imports nothing
    if package is None or package.origin is None:
        raise ImportError("_nx_jaxspv is installed without the package jaxspv")
    path = pathlib.Path(package.origin).parent / "networkx_backend" / "info.py"
    found = importlib.util.spec_from_file_location("_jaxspv_networkx_info", path)
    if found is None or found.loader is None:
        raise ImportError(f"{path} is no module")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.get_info()
