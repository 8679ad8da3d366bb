"""Shipped as the top-level module `_jaxspv_command`: what the command line answers without JAX.

Importing anything of jaxspv imports JAX, which takes a second. `--version`, and a command that does
not exist, are answered here; `COMMANDS` are those of `cli/main.py`.
"""

import importlib.metadata
import sys

COMMANDS = (
    *("info", "convert", "bfs", "sssp", "pagerank"),
    *("components", "triangles", "core", "louvain", "betweenness", "path", "bench", "tune"),
)


def main() -> int:
    """The entry point `jaxspv`: runs one command and returns the exit code."""
    first = sys.argv[1] if len(sys.argv) > 1 else None
    if sys.argv[1:] == ["--version"]:
        print(f"jaxspv {importlib.metadata.version('jaxspv')}")
        return 0
    if first is not None and not first.startswith("-") and first not in COMMANDS:
        known = ", ".join(map(repr, COMMANDS))
        message = f"argument COMMAND: invalid choice: {first!r} (choose from {known})"
        print(f"jaxspv: error: {message} (see jaxspv --help)", file=sys.stderr)
        return 2
    from jaxspv.cli import main as run

    return run()
