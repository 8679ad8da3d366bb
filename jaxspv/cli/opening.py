"""FILE of the command line: a path, a graph by its name, or a generator with its sizes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

import jax

from ..formats import FORMATS, SparseMatrix
from ..generators import graphs as generators
from ..interop.labels import Labels
from ..io import datasets, files
from ..io.tables.text import TABLES, read_edgelist
from .output import waiting

SMALL = 1 << 20  # bytes that are read before a bar could be seen
LISTS = (".csv", ".tsv", ".txt", ".edges", ".edgelist")  # and the same with .gz


def open_graph(args: argparse.Namespace) -> SparseMatrix:
    """The matrix of FILE; `args.names` becomes the `Labels` of its vertices, or None."""
    name, format, args.names = args.file, args.format, None
    if format not in FORMATS:
        raise ValueError(f"`--format` must be one of {', '.join(sorted(FORMATS))}; got {format!r}.")
    small = os.path.isfile(name) and os.path.getsize(name) < SMALL
    show: dict[str, Any] = {"format": format, "progress": sys.stderr.isatty() and not small}
    if name.removesuffix(".gz").endswith((*LISTS, *TABLES)):
        columns = dict(zip(("source", "target", "weight"), _columns(args.columns), strict=False))
        A = read_edgelist(name, labels=args.labels, **columns, **show)
        A, args.names = A if args.labels else (A, None)
        return A
    if args.labels or args.columns:
        raise ValueError(f"`--labels` and `--columns` are for lists of edges; {name} is none.")
    if not os.path.exists(name) and name in datasets.REGISTRY:
        return datasets.load(name, **show)
    if name.endswith(".npz"):
        return files.load_npz(name, format=format)
    if name.endswith((".mtx", ".mtx.gz")) or name in files.bundled_names():
        return files.read_mtx(name, **show)
    if os.path.exists(name):
        raise ValueError(f"FILE must end in .mtx, .npz or as a list of edges does; got {name}.")
    if ":" not in name:
        known = ", ".join(files.bundled_names())
        raise FileNotFoundError(f"no file and no bundled graph is called {name!r}; known: {known}.")
    kind, *sizes = name.split(":")
    if kind not in GENERATORS:
        raise ValueError(f"no generator is called {kind!r}; known are {', '.join(GENERATORS)}.")
    with waiting(f"generating {name}", show["progress"]):
        key = jax.random.key(args.seed)
        make, types, needed = GENERATORS[kind]
        return make(key, **_sizes(name, sizes, types, needed), format=format)


def _columns(text: str | None) -> list[str | int]:
    """The column names or numbers of `--columns`."""
    found = [] if text is None else text.split(",")
    if text is not None and not (2 <= len(found) <= 3 and all(found)):
        raise ValueError(f"`--columns` must be FROM,TO or FROM,TO,WEIGHT; got {text!r}.")
    return [int(name) if name.isdecimal() else name for name in found]


def vertex_of(text: str, names: Labels | None, option: str) -> int:
    """The vertex that an argument names: by its label, where the file has labels, or its number."""
    if names is not None:
        return names.vertex(text)
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"`{option}` must be the number of a vertex; got {text!r}.") from None


def _sizes(name: str, texts: list[str], types: dict[str, type], needed: int) -> dict[str, Any]:
    """The sizes after a generator's name."""
    try:
        values = {k: kind(text) for (k, kind), text in zip(types.items(), texts, strict=False)}
    except ValueError:
        values = {}
    if not needed <= len(values) == len(texts):
        wanted = [kind.__name__ for kind in types.values()]
        most = ":".join([name.split(":")[0], *wanted])
        least = ":".join([name.split(":")[0], *wanted[:needed]])
        raise ValueError(f"{name!r} must read {' or '.join(dict.fromkeys([least, most]))}.")
    return values


def _delaunay(key: Any, scale: int, format: str) -> SparseMatrix:
    if not 0 <= scale <= 30:
        raise ValueError(f"the scale must lie in [0, 30]; got {scale}.")
    return generators.delaunay(key, 1 << scale, format=format)


# kind -> what makes it, its sizes in their order, and how many of them it needs
GENERATORS: dict[str, tuple[Callable[..., Any], dict[str, type], int]] = {
    "rmat": (generators.rmat, {"scale": int, "edge_factor": int}, 1),
    "grid": (generators.grid2d, {"rows": int, "drop": float}, 1),
    "delaunay": (_delaunay, {"scale": int}, 1),
    "erdos_renyi": (generators.erdos_renyi, {"n": int, "p": float}, 2),
}
