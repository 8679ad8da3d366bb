"""What commands that run an algorithm share: their options, their graph, their report."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.operations.plan import Plan
from ..checking import check
from ..formats import SparseMatrix
from ..graph import Graph, prepare
from .opening import open_graph, vertex_of
from .output import check_output
from .support import Timing, out_degrees, reached_edges, timed, what_ran

METHOD_HELP = "name of an implementation; chosen by default"


def add_running(sub: argparse.ArgumentParser) -> None:
    """The options of every run."""
    sub.add_argument("--backend", choices=("pallas", "cpu", "xla"), help="the fastest by default")
    sub.add_argument("--repeat", type=int, default=5, help="timed calls after the first")


def prepared(
    args: argparse.Namespace,
    *purposes: str,
    change: Callable[[SparseMatrix], SparseMatrix] | None = None,
) -> tuple[SparseMatrix, Graph, float]:
    """The matrix of the file, changed if asked for, its graph, and the time to prepare that."""
    if args.repeat < 1:
        raise ValueError(f"`--repeat` must be at least 1; got {args.repeat}.")
    check_output(getattr(args, "output", None))
    A = open_graph(args)
    A = A if change is None else change(A)
    timing, G = timed(lambda: prepare(A, for_=purposes), 0, "preparing")
    return A, G, timing.first_ms


def source_of(args: argparse.Namespace, G: Graph) -> int:
    """The one asked for, or the vertex of largest out-degree."""
    if G.n == 0:
        raise ValueError(f"{args.file} has no vertices.")
    if args.source is None:
        return int(np.argmax(out_degrees(G)))
    return vertex_of(args.source, args.names, "--source")


def shown(args: argparse.Namespace, vertex: int) -> Any:
    """A vertex as it is printed: by its name, where it has one."""
    return vertex if args.names is None else args.names.names[vertex]


def report_of(
    args: argparse.Namespace,
    A: SparseMatrix,
    G: Graph,
    prepare_ms: float,
    timing: Timing,
    plan: Plan,
    found: dict[str, Any],
    traversed: int,
) -> dict[str, Any]:
    """What every algorithm prints: graph, findings, times, speed, and what ran.

    `edges` are those of the graph, undirected ones once; the speed is that of the `traversed`.
    """
    ms = timing.median_ms
    return {
        "graph": args.file,
        **found,
        "vertices": G.n,
        "entries": int(A.count),
        "symmetric": G.symmetric,
        "dtype": str(A.dtype),
        "edges": reached_edges(G, np.ones(G.n, bool)),
        "traversed_edges": traversed,
        "time_ms": ms,
        "compile_ms": max(timing.first_ms - ms, 0.0),
        "prepare_ms": prepare_ms,
        "runs": len(timing.runs_ms),
        "gteps": traversed / ms / 1e6,
        "format": G.out.format,
        **what_ran(plan),
    }


def failure_of(result: Any) -> str | None:
    """Why a result failed, or None."""
    try:
        check(result)
    except ValueError as error:
        return str(error)
    return None
