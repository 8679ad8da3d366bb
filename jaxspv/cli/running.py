"""What commands that run an algorithm share: their graph, the timed call, their report."""

from __future__ import annotations

import argparse
import dataclasses
import statistics
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
from ..graph import Graph, prepare
from ..io.matrix_market import mirrored
from .opening import open_graph, vertex_of
from .output import check_output, save_table, waiting


@dataclasses.dataclass(frozen=True)
class Timing:
    """Milliseconds of the first call, which compiles, and of those after it."""

    first_ms: float
    runs_ms: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        """The median of the runs after the first."""
        return statistics.median(self.runs_ms)


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
        return vertex_of(self.args.source, self.args.names, "--source")

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
