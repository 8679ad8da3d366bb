"""The command line: `jaxspv COMMAND FILE`."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import jax
import numpy as np

from .._core.eager.compilation_cache import cache_folder
from ..algorithms.bfs.api import bfs
from ..algorithms.common.status import NegativeCycleError
from ..algorithms.pagerank.api import pagerank
from ..algorithms.sssp.api import sssp
from ..graph import Graph, prepare
from ..io import files
from ..io.tables.text import write_edgelist
from ..native import bind
from ..ops.products.mxv.api import mxv
from . import structure
from .opening import add_opening, open_graph
from .output import check_reader, show
from .running import Run, add_choice, add_running
from .support import cached, check_writable, describe_matrix, reached_edges, timed

GRAPHS = """FILE is a path (.mtx, .npz; a list of edges: .csv, .tsv, .txt, .parquet; text also .gz),
a bundled graph (karate, jazz, minnesota, delaunay_n13), a public one that is loaded once (such
as SNAP/wiki-Vote, see `jsp.datasets.names()`), or a generator with its sizes:
  rmat:SCALE[:EDGE_FACTOR]    2^SCALE vertices, EDGE_FACTOR (16) edges each before joining
  grid:SIDE[:DROP]            SIDE x SIDE, the share DROP of the edges left out
  delaunay:SCALE              2^SCALE points
  erdos_renyi:N:P             N vertices, every edge with probability P"""

TUNE = (
    "Measure constants of kernels on this GPU, in some minutes, and store them for later processes."
)


class _Refused(Exception):
    """Wrong arguments; its text is the one line to print."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise _Refused(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns:
        The exit code: 0; 1 where a result failed (a negative cycle, overflow, a wrong answer); 2
        for bad input. Errors are one line on stderr.
    """
    args = None
    try:
        if argv is None:  # a process of its own
            cached()
        args = _parser().parse_args(argv)
        report = args.command(args)
    except (_Refused, ValueError, OSError, ImportError, NotImplementedError) as error:
        print(f"jaxspv: error: {_error_line(error, args)}", file=sys.stderr)
        return 2
    failed = report.pop("failed", None)
    if failed:  # before numbers that mean nothing then
        print(f"jaxspv: failed: {failed}", file=sys.stderr, flush=True)
    try:
        print(json.dumps(report)) if args.json else show(report, verbose=args.verbose)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has ended, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1 if failed else 0


def _error_line(error: Exception, args: argparse.Namespace | None) -> str:
    """An error as one line, with its file and the option that helps."""
    text = " ".join(str(error).split())
    if args is None:
        return text
    if "symmetric pattern" in text and not getattr(args, "undirected", True):
        text += " The option --undirected does so."
    return text if not args.file or args.file in text or "`--" in text else f"{args.file}: {text}"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="jaxspv",
        description="Sparse matrices and graphs on JAX.",
        epilog=GRAPHS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"jaxspv {_version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    def add(
        name: str, run: Callable[..., Any], text: str, needed: bool = True
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name,
            help=text,
            description=text,
            epilog=GRAPHS,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(command=run)
        sub.add_argument(
            "file", metavar="FILE", nargs=None if needed else "?", help="a graph, see below"
        )
        add_opening(sub)
        sub.add_argument("--json", action="store_true", help="one line of JSON on stdout")
        sub.add_argument("--verbose", action="store_true", help="how it was computed, too")
        return sub

    described = "Shape, entries, symmetry and row lengths of a matrix."
    add("info", _info, described + " Without FILE: what is installed.", needed=False)
    convert = add("convert", _convert, "Write a matrix to another file.")
    convert.add_argument(
        "out", metavar="OUT", help="path: .mtx, .mtx.gz, .npz (keeps --format), or a list of edges"
    )
    for sub in (
        add("bfs", _bfs, "Breadth-first search: levels from a source."),
        add("sssp", _sssp, "Shortest paths from a source along the stored weights."),
    ):
        add_choice(sub, "levels or distances")
        sub.add_argument("--source", help="vertex; that of largest out-degree by default")
    rank = add("pagerank", _pagerank, "PageRank of every vertex.")
    add_choice(rank, "the scores")
    rank.add_argument("--damping", type=float, default=0.85)
    rank.add_argument("--tol", type=float, default=1e-6, help="L1 change to stop at")
    rank.add_argument("--max-iterations", type=int, default=100)
    rank.add_argument("--top", type=int, default=5, help="vertices to list")
    structure.add_to(add)
    sub = commands.add_parser("tune", help=TUNE, description=TUNE)
    sub.add_argument("--json", action="store_true", help="one line of JSON on stdout")
    sub.add_argument("--verbose", action="store_true", help="all that was measured, too")
    sub.set_defaults(command=_tune, file="")
    bench = add("bench", _bench, "Verified times of SpMV, BFS, SSSP and PageRank.")
    add_running(bench)
    bench.add_argument("--source", help="vertex; that of largest out-degree by default")
    return parser


def _version() -> str:
    try:
        return importlib.metadata.version("jaxspv")
    except importlib.metadata.PackageNotFoundError:  # run from a tree that is not installed
        return "(not installed)"


def _tune(args: argparse.Namespace) -> dict[str, Any]:
    from .tune import run  # imports kernels

    return run(args)


def _info(args: argparse.Namespace) -> dict[str, Any]:
    report = describe_matrix(args.file, open_graph(args)) if args.file else _installed()
    kernels = bind.refused() or "C++"
    return {**report, "compilation_cache": cache_folder(), "kernels_on_cpus": kernels}


def _installed() -> dict[str, Any]:
    devices = sorted({device.device_kind for device in jax.devices()})
    versions = {"python": platform.python_version(), "jaxspv": _version(), "jax": jax.__version__}
    return {**versions, "backend": jax.default_backend(), "devices": ", ".join(devices)}


def _convert(args: argparse.Namespace) -> dict[str, Any]:
    matrix, plain = args.out.endswith((".npz", ".mtx", ".mtx.gz")), args.out.removesuffix(".gz")
    if not matrix:
        if not plain.endswith((".csv", ".tsv", ".txt", ".parquet")):
            known = ".mtx, .mtx.gz, .npz, .csv, .tsv, .txt or .parquet"
            raise ValueError(f"`OUT` must end in {known}; got {args.out}.")
        check_reader(args.out)
    check_writable(args.out)
    A = open_graph(args)
    if not matrix:
        write_edgelist(args.out, A, args.names)
    else:
        (files.save_npz if args.out.endswith(".npz") else files.write_mtx)(args.out, A)
    return {"graph": args.file, "written": args.out, "matrix": repr(A)}


def _bfs(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args, "bfs")
    source = run.source()
    result = run.call(bfs, source)
    levels = np.asarray(result.levels)
    found = {
        "source": run.shown(source),
        "reached": int((levels >= 0).sum()),
        "levels": int(result.num_levels),
        "level_sizes": np.bincount(levels[levels >= 0]).tolist(),
    }
    columns = {"levels": levels, "parents": result.parents}
    return run.report(result, found, reached_edges(run.G, levels >= 0), **columns)


def _sssp(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args, "sssp")
    source = run.source()
    try:
        result = run.call(sssp, source)
    except NegativeCycleError as error:
        failed = f"converged: {error}"
        return {"source": run.shown(source), "converged": False, "failed": failed}
    distances = np.asarray(result.distances)
    reached = np.asarray(result.parents) >= 0
    found = {
        "source": run.shown(source),
        "reached": int(reached.sum()),
        "farthest": float(distances[reached].max(initial=0)),
        "steps": int(result.steps),
        "converged": bool(result.converged),
    }
    columns = {"distances": distances, "parents": result.parents}
    return run.report(result, found, reached_edges(run.G, reached), **columns)


def _pagerank(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args, "pagerank")
    result = run.call(pagerank, args.damping, args.tol, args.max_iterations)
    scores, steps = np.asarray(result.scores), int(result.iterations)
    found = {"iterations": steps, "converged": bool(result.converged), "top": run.top(scores)}
    return run.report(result, found, int(run.A.count) * steps, scores=scores)


def _bench(args: argparse.Namespace) -> dict[str, Any]:
    """Each result is verified against SciPy before it is timed."""
    from .. import verify  # with parts of SciPy that no other command needs

    graph = Run(args)
    G, source, rows = graph.G, graph.source(), []
    x = jax.numpy.linspace(0, 1, G.n, dtype=np.float32)
    purposes: dict[str, tuple[str, Callable[..., Any], Callable[..., None], tuple[Any, ...]]] = {
        "spmv": ("mxv", lambda g: mxv(g, x, backend=args.backend), _verify_product, (x,)),
        "bfs": ("bfs", lambda g: bfs(g, source, backend=args.backend), verify.bfs, (source,)),
        "sssp": ("sssp", lambda g: sssp(g, source, backend=args.backend), verify.sssp, (source,)),
        "pagerank": ("pagerank", lambda g: pagerank(g, backend=args.backend), verify.pagerank, ()),
    }
    wrong = []
    for name, (purpose, run, verifier, operands) in purposes.items():
        try:
            preparing, prepared = timed(lambda p=purpose: prepare(G, for_=p), 0)
            result = run(prepared)
            verifier(G, *operands, result)
        except (ValueError, NotImplementedError) as refusal:
            rows.append({"program": name, "refused": str(refusal).splitlines()[0]})
            continue
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
            continue
        timing, _ = timed(lambda g=prepared, r=run: r(g), args.repeat)
        rows.append(
            {
                "program": name,
                "time_ms": timing.median_ms,
                "least_ms": min(timing.runs_ms),
                "most_ms": max(timing.runs_ms),
                "prepare_ms": preparing.first_ms,
            }
        )
    return {
        "graph": args.file,
        "vertices": G.n,
        "entries": int(graph.A.count),
        "source": source,
        "device": str(jax.devices()[0].device_kind),
        "runs": args.repeat,
        "programs": rows,
        "failed": "; ".join(wrong) or None,
    }


def _verify_product(G: Graph, x: Any, y: Any) -> None:
    matrix, x = G.out.to_scipy().astype(np.float64), np.asarray(x, np.float64)
    want, scale = matrix @ x, abs(matrix) @ np.abs(x)
    assert np.all(np.abs(np.asarray(y) - want) <= 1e-4 * scale + 1e-30), "the product is wrong."
