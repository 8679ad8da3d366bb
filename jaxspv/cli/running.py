"""What commands that open a graph share: FILE, the timed call, the report."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from .._core.eager.arrays import platform_of
from .._core.platforms import inside, situation
from ..algebra.monoids import min_
from ..checking import check
from ..construct.from_arrays import from_edges
from ..explaining import explain
from ..formats import FORMATS, SparseMatrix
from ..generators import graphs as generators
from ..graph import Graph, prepare
from ..interop.labels import Labels
from ..io import datasets, files
from ..io.matrix_market import mirrored
from ..io.tables.text import TABLES, read_edgelist
from .output import check_output, save_table, waiting

SMALL = 1 << 20  # bytes that are read before a bar could be seen
LISTS = (".csv", ".tsv", ".txt", ".edges", ".edgelist")  # and the same with .gz


# ---- FILE: a path, a graph by its name, or a generator with its sizes ----


def open_graph(args: argparse.Namespace) -> SparseMatrix:
    """The matrix of FILE; `args.names` becomes the `Labels` of its vertices, or None."""
    name, format, args.names = args.file, args.format, None
    if format not in FORMATS:
        raise ValueError(f"`--format` must be one of {', '.join(sorted(FORMATS))}; got {format!r}.")
    if not -(2**63) <= args.seed < 2**63:
        raise ValueError(f"`--seed` must be an integer of 64 bits; got {args.seed}.")
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


# ---- The call ----


@dataclasses.dataclass(frozen=True)
class Timing:
    """Milliseconds of the first call, which compiles, and of those after it."""

    first_ms: float
    runs_ms: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        """The median of the runs after the first."""
        return float(np.median(self.runs_ms))


def timed(
    call: Callable[[], Any], repeats: int, what: str = "compiling and running"
) -> tuple[Timing, Any]:
    """Runs `call` once and `repeats` times more, waiting for every result; gives the last one."""
    spent, result = [], None
    for turn in range(repeats + 1):
        start = time.perf_counter()
        with waiting(what, turn == 0 and sys.stderr.isatty()):
            result = jax.block_until_ready(call())
        spent.append(1e3 * (time.perf_counter() - start))
    return Timing(spent[0], tuple(spent[1:])), result


class Run:
    """A command's matrix `A`, its graph `G`, prepared for `purposes`, and a timed call."""

    def __init__(self, args: argparse.Namespace, *purposes: str):
        if args.repeat < 1:
            raise ValueError(f"`--repeat` must be at least 1; got {args.repeat}.")
        if getattr(args, "top", 0) < 0:
            raise ValueError(f"`--top` must not be negative; got {args.top}.")
        check_output(getattr(args, "output", None))
        self.args, A = args, open_graph(args)
        if getattr(args, "undirected", False):  # the minimum where both directions are stored
            coo = A.to_scipy().tocoo()
            edges = mirrored(coo.row, coo.col, coo.data, "symmetric")
            A = from_edges(*edges, shape=A.shape, dup=min_, format=A.format)
        self.A = A
        self.preparing, self.G = timed(lambda: prepare(self.A, for_=purposes), 0, "preparing")

    def edges(self, of: np.ndarray | None = None) -> int:
        """Edges out of vertices (n,) bool, None for all; each undirected one once."""
        return reached_edges(self.G, np.ones(self.G.n, bool) if of is None else of)

    def source(self) -> int:
        """The one asked for, or the vertex of largest out-degree."""
        if self.G.n == 0:
            raise ValueError(f"{self.args.file} has no vertices.")
        if self.args.source is None:
            return int(np.argmax(np.diff(np.asarray(self.G.out.indptr))))
        return self.inside("source", vertex_of(self.args.source, self.args.names, "--source"))

    def inside(self, name: str, vertex: int) -> int:
        """The vertex, refused where the graph has none of this number."""
        if not 0 <= vertex < self.G.n:
            raise ValueError(f"`{name}` must lie in [0, {self.G.n}); got {vertex}.")
        return vertex

    def shown(self, vertex: Any) -> Any:
        """A vertex as it is printed: by its name, where it has one."""
        names = self.args.names
        return int(vertex) if names is None else names.names[vertex]

    def top(self, scores: np.ndarray) -> list[list[Any]]:
        """The `--top` vertices of largest score."""
        order = np.argsort(-scores, kind="stable")[: self.args.top]
        return [[self.shown(v), float(scores[v])] for v in order]

    def call(self, algorithm: Callable[..., Any], *operands: Any, **options: Any) -> Any:
        """The result of an algorithm on the graph, timed."""
        how = {"backend": self.args.backend, "method": self.args.method, **options}
        with inside(situation().on(platform_of(()))):  # forms for other platforms are not traced
            self.plan = explain(algorithm.__name__, self.G, *operands, **how)
        self.timing, result = timed(lambda: algorithm(self.G, *operands, **how), self.args.repeat)
        return result

    def report(
        self, result: Any, found: dict[str, Any], traversed: int, **columns: Any
    ) -> dict[str, Any]:
        """What every algorithm prints: graph, findings, times, speed, and what ran.

        The speed is that of the edges `traversed`; columns: of the table for `--output`.
        """
        save_table(self.args, **columns)
        ms, failed = self.timing.median_ms, None
        impl = self.plan.on(platform_of(()))
        try:
            check(result)
        except ValueError as error:
            failed = str(error)
        return {
            "graph": self.args.file,
            **found,
            "failed": failed,
            "vertices": self.G.n,
            "entries": int(self.A.count),
            "symmetric": self.G.symmetric,
            "dtype": str(self.A.dtype),
            "edges": self.edges(),
            "traversed_edges": traversed,
            "time_ms": ms,
            "compile_ms": max(self.timing.first_ms - ms, 0.0),
            "prepare_ms": self.preparing.first_ms,
            "runs": len(self.timing.runs_ms),
            "gteps": traversed / ms / 1e6,
            "format": self.G.out.format,
            "backend": impl.backend,
            "method": impl.name,
            "device": jax.devices()[0].device_kind,
            "jax": jax.__version__,
            "plan": str(self.plan),
        }


def reached_edges(G: Graph, reached: np.ndarray) -> int:
    """Edges out of reached vertices: each undirected one once on a symmetric graph."""
    degrees = np.diff(np.asarray(G.out.indptr))
    arcs = int(degrees[reached].sum())
    if not G.symmetric:
        return arcs
    row = np.repeat(np.arange(G.n), degrees)
    loops = int(reached[row[row == np.asarray(G.out.indices)[: row.size]]].sum())
    return (arcs - loops) // 2 + loops
