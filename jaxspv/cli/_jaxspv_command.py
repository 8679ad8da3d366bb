"""Shipped as the top-level module `_jaxspv_command`: the command line as far as it needs no JAX.

Importing anything of jaxspv imports JAX, which takes a second. So words are parsed here:
`--version`, `--help` and typing errors need no more, and `cli/commands.py` runs what is asked for.
"""

import argparse
import importlib.metadata
import io
import json
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

GRAPHS = """FILE is a path (.mtx, .npz; a list of edges: .csv, .tsv, .txt, .parquet; text also .gz),
a bundled graph (karate, jazz, minnesota, delaunay_n13), a public one that is loaded once (such
as SNAP/wiki-Vote, see `jsp.datasets.names()`), or a generator with its sizes:
  rmat:SCALE[:EDGE_FACTOR]    2^SCALE vertices, EDGE_FACTOR (16) edges each before joining
  grid:SIDE[:DROP]            SIDE x SIDE, the share DROP of the edges left out
  delaunay:SCALE              2^SCALE points
  erdos_renyi:N:P             N vertices, every edge with probability P"""


def _flag(text: str) -> dict[str, Any]:
    return {"action": "store_true", "help": text}


def _number(kind: type, text: str, default: Any = None) -> dict[str, Any]:
    return {"type": kind, "help": text, "default": default}


OPTIONS: dict[str, dict[str, Any]] = {  # one that is None is left to the function that it is for
    "file": {"metavar": "FILE", "help": "a graph, see below"},
    "[file]": {"metavar": "FILE", "help": "a graph, see below", "nargs": "?"},
    "out": {
        "metavar": "OUT",
        "help": "path: .mtx, .mtx.gz, .npz (keeps --format), or a list of edges",
    },
    "start": {"metavar": "A", "help": "the first vertex"},
    "end": {"metavar": "B", "help": "the last vertex"},
    "--json": _flag("one line of JSON on stdout"),
    "--verbose": _flag("also print how it was computed; of tune and bench, every time"),
    "--format": {
        "default": "csr",
        "help": "how it is stored: coo, csr (default), csc, ell, sell, tiled",
    },
    "--seed": _number(int, "of random graphs and drawn sources (default 0)", 0),
    "--columns": {
        "metavar": "FROM,TO[,WEIGHT]",
        "help": "columns of a list of edges, by name or by number from 0 (default 0,1)",
    },
    "--labels": _flag("the vertices of a list of edges have names, which the output uses too"),
    "--backend": {
        "choices": ("pallas", "cpu", "xla"),
        "help": "where it runs (default: the fastest)",
    },
    "--repeat": _number(int, "timed calls after the first (default 5)", 5),
    "--method": {"help": "name of a form, which --verbose prints (default: chosen)"},
    "--output": {
        "metavar": "OUT",
        "help": "write the whole result to a file: .npz, .csv, .tsv, .parquet",
    },
    "--source": {"help": "vertex to begin at (default: that of largest out-degree)"},
    "--damping": _number(float, "share of the score that follows edges (default 0.85)"),
    "--tol": _number(float, "stop when the L1 change of a step is at most this (default 1e-6)"),
    "--max-iterations": _number(int, "bound on the steps (default 100)"),
    "--top": _number(int, "vertices to list (default 5)", 5),
    "--undirected": _flag("take every edge in both directions"),
    "--sources": _number(int, "number of sources, drawn by --seed (default: all, at most 256)"),
    "--hops": _flag("count edges, whatever their values"),
}
PRINTED = "--json --verbose"
OPENED = f"--format --seed --columns --labels {PRINTED}"
TIMED = f"{OPENED} --backend --repeat"
ONE = f"--output {TIMED} --method"
COMMANDS = {  # name -> what it does, its options
    "info": (
        "Shape, entries, symmetry and row lengths of a matrix. Without FILE: what is installed.",
        f"[file] {OPENED}",
    ),
    "convert": ("Write a matrix to another file.", f"file out {OPENED}"),
    "bfs": (
        "Breadth-first search from a source: how many vertices each level holds.",
        f"file --source {ONE}",
    ),
    "sssp": ("Shortest paths from a source along the stored weights.", f"file --source {ONE}"),
    "pagerank": ("PageRank of every vertex.", f"file --damping --tol --max-iterations --top {ONE}"),
    "components": ("Weakly connected components and their sizes.", f"file --undirected {ONE}"),
    "triangles": ("The number of triangles.", f"file --undirected {ONE}"),
    "core": (
        "Core numbers: the largest, and how many vertices have each.",
        f"file --undirected {ONE}",
    ),
    "louvain": (
        "Communities by Louvain's method and their modularity.",
        f"file --undirected {ONE}",
    ),
    "betweenness": (
        "Vertices that most shortest paths pass.",
        f"file --sources --top --undirected {ONE}",
    ),
    "path": (
        "A shortest path from one vertex to another.",
        f"file start end --hops --undirected {ONE}",
    ),
    "tune": (
        "Measure constants of kernels on this GPU, in some minutes, and store them for later "
        "processes.",
        PRINTED,
    ),
    "bench": ("Verified times of SpMV, BFS, SSSP and PageRank.", f"file --source {TIMED}"),
}


class _Refused(Exception):
    """Wrong arguments; its text is the one line to print."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise _Refused(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    how: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    text = "Sparse matrices and graphs on JAX."
    parser = _Parser(prog="jaxspv", description=text, epilog=GRAPHS, **how)
    version = _version()
    parser.set_defaults(version=version)
    parser.add_argument("--version", action="version", version=f"jaxspv {version}")
    commands = parser.add_subparsers(
        required=True, metavar="COMMAND", dest="command", parser_class=_Parser
    )
    for name, (text, options) in COMMANDS.items():
        graphs = GRAPHS if "file" in options else None
        sub = commands.add_parser(name, help=text, description=text, epilog=graphs, **how)
        for option in options.split():
            sub.add_argument(option.strip("[]"), **OPTIONS[option])
    return parser


def _version() -> str:
    """That of the installed package."""
    try:
        return importlib.metadata.version("jaxspv")
    except importlib.metadata.PackageNotFoundError:  # run from a tree that is not installed
        return "(not installed)"


def main(argv: Sequence[str] | None = None) -> int:
    """The entry point `jaxspv`: runs one command.

    Returns:
        The exit code: 0; 1 where a result failed (a negative cycle, overflow, a wrong answer); 2
        for bad input. Errors are one line on stderr.
    """
    args = None
    if argv is None and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # bars and names where stdout is ASCII
    try:
        args = _parser().parse_args(argv)
        from jaxspv.cli import commands

        report = commands.run(args, alone=argv is None)
    except (_Refused, ValueError, TypeError, OSError, ImportError, NotImplementedError) as error:
        print(f"jaxspv: error: {_error_line(error, args)}", file=sys.stderr)
        return 2
    failed = report.pop("failed", None)
    if failed:  # before numbers that mean nothing then
        print(f"jaxspv: failed: {failed}", file=sys.stderr, flush=True)
    try:
        if args.json:
            print(json.dumps(report))
        else:
            commands.show(report, verbose=args.verbose)
        print(end="", flush=True)  # also where stdout is closed
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # the reader has ended, as `head` does
            print(f"jaxspv: error: {_error_line(error, None)}", file=sys.stderr)
            return 2
    return 1 if failed else 0


def _error_line(error: Exception, args: argparse.Namespace | None) -> str:
    """An error as one line, with its file and the option that helps."""
    text = " ".join(str(error).split())
    if "symmetric pattern" in text and not getattr(args, "undirected", True):
        text += " The option --undirected does so."
    file = getattr(args, "file", None)
    text = text.replace("(labels=True takes names)", "(the option --labels takes names)")
    text = text.replace("labels=True", "--labels").replace("format='coo'", "--format coo")
    return text if not file or file in text or "`--" in text else f"{file}: {text}"
